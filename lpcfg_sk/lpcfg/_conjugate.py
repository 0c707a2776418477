"""Change of basis of the latent states (theorem 3 of the paper)."""

import numpy as np

__all__ = ["conjugate"]


def conjugate(grammar, transforms):
    """See :meth:`LPCFG.conjugate`."""
    a = grammar.arrays
    forward = [np.eye(m) for m in a.n_states]
    backward = list(forward)
    for name, matrix in transforms.items():
        label = grammar._labels.index(name)
        if label < 0:
            raise ValueError(f"The grammar has no nonterminal {name!r}.")
        matrix = np.asarray(matrix, dtype=np.float64)
        m = int(a.n_states[label])
        if matrix.shape != (m, m) or not np.all(np.isfinite(matrix)):
            raise ValueError(
                f"The transform of {name!r} must be a finite {m} by {m} matrix, got "
                f"shape {matrix.shape}."
            )
        forward[label] = matrix
        try:
            backward[label] = np.linalg.inv(matrix)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"The transform of {name!r} must be invertible."
            ) from error
    binary = np.empty_like(a.binary)
    rules = zip(a.rule_parent, a.rule_left, a.rule_right, strict=True)
    for r, (parent, left, right) in enumerate(rules):
        piece = slice(a.rule_offset[r], a.rule_offset[r + 1])
        tensor = a.binary[piece].reshape(a.n_states[[parent, left, right]])
        tensor = np.tensordot(backward[parent].T, tensor, axes=1)
        binary[piece] = (forward[left] @ (tensor @ forward[right].T)).ravel()
    lexical = np.empty_like(a.lexical)
    for label in np.unique(a.lex_label):
        entries = np.flatnonzero(a.lex_label == label)
        at = a.lex_offset[entries][:, None] + np.arange(a.n_states[label])
        lexical[at] = a.lexical[at] @ backward[label]
    root = np.empty_like(a.root)
    for k, label in enumerate(a.root_label):
        piece = slice(a.root_offset[k], a.root_offset[k + 1])
        root[piece] = forward[label] @ a.root[piece]
    return type(grammar).from_arrays(
        grammar.nonterminals,
        grammar.words,
        a._replace(binary=binary, lexical=lexical, root=root),
        unknown_word=grammar.unknown_word,
    )
