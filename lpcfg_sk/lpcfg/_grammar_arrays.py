"""The flat arrays behind a grammar, the form that kernels read."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import offsets, ragged_indices, read_only
from lpcfg_sk.treebank import lexical_keys, rule_keys


class GrammarArrays(NamedTuple):
    """Parameters of an L-PCFG in flat arrays.

    Nonterminals are 0..N-1, words 0..V-1; nonterminal a has ``n_states[a]`` latent
    states.

    Attributes
    ----------
    n_states : ndarray of int32, shape (N,)
        Number of latent states of each nonterminal.
    rule_parent, rule_left, rule_right : ndarray of int32, shape (R,)
        The binary rules a → b c, sorted by (a, b, c).
    rule_offset : ndarray of int64, shape (R + 1,)
        Rule r has the tensor ``binary[rule_offset[r]:rule_offset[r + 1]]``, of
        shape (m_a, m_b, m_c), row-major.
    binary : ndarray of float64
        All rule tensors, one after the other.
    word_offset : ndarray of int64, shape (V + 1,)
        The lexical entries of word x are ``word_offset[x]:word_offset[x + 1]``.
    lex_label : ndarray of int32, shape (E,)
        Nonterminal of each lexical entry, increasing within a word.
    lex_offset : ndarray of int64, shape (E + 1,)
        Entry e has the vector ``lexical[lex_offset[e]:lex_offset[e + 1]]``.
    lexical : ndarray of float64
        All lexical vectors.
    root_label : ndarray of int32, shape (K,)
        Nonterminals that may stand at the root, increasing.
    root_offset : ndarray of int64, shape (K + 1,)
        Root entry k has the vector ``root[root_offset[k]:root_offset[k + 1]]``.
    root : ndarray of float64
        All root vectors.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[1.0]]]},
    ...     lexical={("A", "x"): [0.25], ("A", "y"): [0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> grammar.arrays.lexical
    array([0.25, 0.75])
    >>> grammar.arrays.rule_parent
    array([1], dtype=int32)
    """

    n_states: np.ndarray
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    rule_offset: np.ndarray
    binary: np.ndarray
    word_offset: np.ndarray
    lex_label: np.ndarray
    lex_offset: np.ndarray
    lexical: np.ndarray
    root_label: np.ndarray
    root_offset: np.ndarray
    root: np.ndarray

    def rule_keys(self):
        """Return the key of each binary rule.

        Returns
        -------
        ndarray of int64, shape (R,)
            Increasing.
        """
        rules = (self.rule_parent, self.rule_left, self.rule_right)
        return rule_keys(*rules, len(self.n_states))

    def lexical_keys(self):
        """Return the key of each lexical entry.

        Returns
        -------
        ndarray of int64, shape (E,)
            Increasing.
        """
        return lexical_keys(self.lex_word, self.lex_label, len(self.n_states))

    @property
    def lex_word(self):
        """Word of each lexical entry."""
        words = np.arange(len(self.word_offset) - 1)
        return np.repeat(words, np.diff(self.word_offset))

    def states(self, labels):
        """Return which state, among all states, each value of given vectors belongs to.

        Parameters
        ----------
        labels : ndarray of int
            The nonterminals of the vectors.

        Returns
        -------
        ndarray of int64
        """
        return ragged_indices(offsets(self.n_states)[labels], self.n_states[labels])

    def binary_states(self):
        """Return the rule of each value of `binary`, and its three states.

        Returns
        -------
        rule, parent, left, right : ndarray of int64, shape (len(binary),)
        """
        m = self.n_states.astype(np.int64)
        rule = np.repeat(np.arange(len(self.rule_parent)), np.diff(self.rule_offset))
        within = np.arange(len(self.binary)) - self.rule_offset[rule]
        m_left, m_right = m[self.rule_left[rule]], m[self.rule_right[rule]]
        parent, rest = np.divmod(within, m_left * m_right)
        return rule, parent, *np.divmod(rest, m_right)

    @property
    def is_signed(self):
        """Whether a parameter is negative."""
        values = (self.binary, self.lexical, self.root)
        return any(part.min(initial=0.0) < 0.0 for part in values)


#: Largest number whose cube, the largest key of a rule, fits 64 bits.
_MOST_LABELS = 2**21 - 1

#: Largest absolute value of a parameter: the product of those of a rule and of its
#: two children is finite, also when it is summed over states.
LARGEST_PARAMETER = 1e100


def _dtype(name):
    if name in ("binary", "lexical", "root"):
        return np.float64
    return np.int64 if name.endswith("_offset") else np.int32


def check_arrays(arrays, n_words):
    """Check flat parameters and return them with the agreed types, read-only.

    Parameters
    ----------
    arrays : GrammarArrays
        The parameters.
    n_words : int
        Number of words of the grammar.

    Returns
    -------
    GrammarArrays
        Contiguous read-only arrays of the agreed types; copies only where needed.

    Raises
    ------
    ValueError
        If lengths, offsets, ids or order do not agree, or a value is not finite or
        beyond 1e100, where products would overflow.
    """
    checked = {}
    for name in GrammarArrays._fields:
        dtype = _dtype(name)
        given = np.asarray(getattr(arrays, name))
        if given.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {given.shape}.")
        array = np.ascontiguousarray(given, dtype=dtype)
        if dtype is not np.float64 and not np.array_equal(array, given):
            raise ValueError(f"{name} must hold integers that fit {dtype.__name__}.")
        checked[name] = read_only(array)
    arrays = GrammarArrays(**checked)
    n_states = arrays.n_states
    if n_states.size and n_states.min() < 1:
        bad = int(np.argmin(n_states))
        raise ValueError(
            f"Nonterminal {bad} has {n_states[bad]} latent states; at least 1 needed."
        )
    for name in ("rule_parent", "rule_left", "rule_right", "lex_label", "root_label"):
        ids = getattr(arrays, name)
        if ids.size and (ids.min() < 0 or ids.max() >= len(n_states)):
            raise ValueError(
                f"{name} must hold nonterminal ids from 0 to {len(n_states) - 1}, "
                f"got {ids.min()} to {ids.max()}."
            )
    _check_sizes(arrays)
    m = n_states.astype(np.int64)
    rules = m[arrays.rule_parent] * m[arrays.rule_left] * m[arrays.rule_right]
    _check_pieces("binary", arrays.binary, arrays.rule_offset, rules)
    _check_pieces("lexical", arrays.lexical, arrays.lex_offset, m[arrays.lex_label])
    _check_pieces("root", arrays.root, arrays.root_offset, m[arrays.root_label])
    if (
        len(arrays.word_offset) != n_words + 1
        or arrays.word_offset[0] != 0
        or arrays.word_offset[-1] != len(arrays.lex_label)
        or np.any(np.diff(arrays.word_offset) < 0)
    ):
        raise ValueError(
            f"word_offset must rise from 0 to {len(arrays.lex_label)} in "
            f"{n_words + 1} steps, one more than there are words."
        )
    _check_increasing("rules by (parent, left, right)", arrays.rule_keys())
    _check_increasing("lexical entries by (word, label)", arrays.lexical_keys())
    _check_increasing("root entries by label", arrays.root_label)
    return arrays


def _check_sizes(arrays):
    """Check that keys of rules and numbers of parameters fit 64 bits."""
    n_labels = len(arrays.n_states)
    if n_labels > _MOST_LABELS:
        raise ValueError(
            f"A grammar has at most {_MOST_LABELS} nonterminals, got {n_labels}."
        )
    # Doubles do not wrap around; below 2**53 they are as exact as integers.
    m = arrays.n_states.astype(np.float64)
    parts = (arrays.rule_parent, arrays.rule_left, arrays.rule_right)
    n_binary = np.prod([m[part] for part in parts], axis=0).sum()
    if n_binary > 2**53:
        raise ValueError(
            f"binary must hold {n_binary:.3g} values for the numbers of latent "
            f"states, got {len(arrays.binary)}."
        )
    unused = np.ones(n_labels, dtype=bool)
    for part in (*parts, arrays.lex_label, arrays.root_label):
        unused[part] = False
    n_values = len(arrays.binary) + len(arrays.lexical) + len(arrays.root)
    if m[unused].sum() > n_values + unused.sum():
        bad = int(np.argmax(np.where(unused, m, 0.0)))
        raise ValueError(
            f"Nonterminal {bad} has {arrays.n_states[bad]} latent states, and occurs "
            "neither in a rule nor at a root; give it 1."
        )


def _check_pieces(name, values, offset, lengths):
    expected = offsets(lengths)
    if not np.array_equal(offset, expected):
        raise ValueError(
            f"The offsets of {name} do not agree with the numbers of latent states: "
            f"expected {len(lengths)} pieces of {expected[-1]} values in all."
        )
    if len(values) != expected[-1]:
        raise ValueError(
            f"{name} must hold {expected[-1]} values for the numbers of latent "
            f"states, got {len(values)}."
        )
    # nan is the minimum and maximum of values that hold it.
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if not np.isfinite([low, high]).all():
        raise ValueError(f"{name} must be finite, found nan or infinity.")
    largest = max(-low, high)
    if largest > LARGEST_PARAMETER:
        raise ValueError(
            f"{name} must hold values of at most {LARGEST_PARAMETER:g}, got "
            f"{largest:.3g}: products would overflow. Divide the parameters by a "
            "constant, or change the basis of the states."
        )


def _check_increasing(name, keys):
    if np.any(np.diff(keys) <= 0):
        raise ValueError(f"The {name} must be sorted, without repetition.")


def conjugate(a, labels, transforms):
    """Change the basis of the latent states (theorem 3 of the paper).

    Parameters
    ----------
    a : GrammarArrays
        The parameters.
    labels : SymbolTable
        Names of the nonterminals.
    transforms : mapping of str to array-like of shape (m_a, m_a)
        See :meth:`LPCFG.conjugate`.

    Returns
    -------
    dict of str to ndarray
        The new values of `binary`, `lexical` and `root`.
    """
    forward = [np.eye(m) for m in a.n_states]
    backward = list(forward)
    for name, matrix in transforms.items():
        label = labels.index(name)
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
        places = a.lex_offset[entries][:, None] + np.arange(a.n_states[label])
        lexical[places] = a.lexical[places] @ backward[label]
    root = np.empty_like(a.root)
    for k, label in enumerate(a.root_label):
        piece = slice(a.root_offset[k], a.root_offset[k + 1])
        root[piece] = forward[label] @ a.root[piece]
    return {"binary": binary, "lexical": lexical, "root": root}
