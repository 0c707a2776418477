"""Grammars in a tenth of the space, in single precision.

The tensor of a rule that was seen n times is a sum of few products. It is stored as a
core and a matrix for each of its three axes (Tucker's form, found by a higher-order
singular value decomposition [1]_) where that is smaller. Most lexical vectors are
multiples of the vector of a signature class, so each direction is stored once, with a
scale for each entry. Offsets follow from the numbers of states.

References
----------
.. [1] N. Vannieuwenhoven, R. Vandebril and K. Meerbergen (2012). A new truncation
   strategy for the higher-order singular value decomposition. SIAM J. Sci. Comput. 34.
"""

import numpy as np

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.lpcfg import LPCFG, GrammarArrays

__all__ = ["compact_state", "make_compact"]

#: Norm of what is left out of a tensor, relative to its own, both after each state of
#: the parent was scaled to norm 1: of probabilities, and of signed values, which
#: cancel. After EM, whose tensors have many small singular values, the second takes
#: twice the space.
_TOLERANCE, _SIGNED_TOLERANCE = 5e-5, 1e-7
#: Most parameters per stored number, which bounds the memory that a file can demand.
_EXPANSION = 32


def compact_state(grammar, *, prunes=False):
    """Return plain data that describes a grammar in single precision.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar.
    prunes : bool, default=False
        Whether the grammar only prunes the charts of another one. A plain PCFG that
        chooses trees keeps its digits.

    Returns
    -------
    state : dict
        For :func:`make_compact`.
    """
    a = grammar.arrays
    signed = a.is_signed
    tolerance = _SIGNED_TOLERANCE if signed else _TOLERANCE
    ranks, pieces = np.zeros((len(a.rule_parent), 3), dtype=np.int64), []
    floors = np.zeros(len(ranks))
    with one_blas_thread():
        for rule, shape in enumerate(_shapes(a)):
            tensor = a.binary[a.rule_offset[rule] : a.rule_offset[rule + 1]]
            floors[rule] = tensor.min()
            # A zero, which means that a rule does not exist, would not be restored
            # exactly.
            if signed or floors[rule] > 0:
                rank, piece = _decompose(tensor.reshape(shape), tolerance)
                if len(piece) < len(tensor):
                    ranks[rule], tensor = rank, piece
            pieces.append(tensor)
    values = np.concatenate([*pieces, _NONE])
    if len(a.binary) > _EXPANSION * len(values):
        ranks, values = np.zeros_like(ranks), a.binary
    direction, scale, directions = _directions(a)
    # Trees of a plain PCFG often have equal probabilities, and rounding would decide
    # which of them is best.
    exact = a.n_states.max(initial=1) == 1 and not prunes
    stored = np.asarray if exact else _single
    return {
        "nonterminals": list(grammar.nonterminals),
        "words": list(grammar.words),
        "unknown_word": grammar.unknown_word,
        # Rounding must not turn a probabilistic grammar into one that is not.
        "probabilistic": bool(not exact and grammar.is_probabilistic),
        "n_states": _narrow(a.n_states),
        "rules": _narrow(np.array([a.rule_parent, a.rule_left, a.rule_right])),
        "ranks": _narrow(ranks),
        "floors": None if signed else stored(floors),
        "binary": stored(values),
        "n_entries": _narrow(np.diff(a.word_offset)),
        "lex_label": _narrow(a.lex_label),
        "direction": _narrow(direction),
        "scale": stored(scale),
        "directions": stored(directions),
        "root_label": _narrow(a.root_label),
        "root": a.root,
    }


def make_compact(state):
    """Make the grammar that :func:`compact_state` described.

    Parameters
    ----------
    state : dict
        Plain data, which is not trusted.

    Returns
    -------
    grammar : LPCFG

    Raises
    ------
    ValueError
        If the state does not describe a grammar.
    """
    n_states = _ids(state["n_states"], 1)
    rules, ranks = (_ids(state[name], 2) for name in ("rules", "ranks"))
    lex_label, root_label, direction, n_entries = (
        _ids(state[name], 1)
        for name in ("lex_label", "root_label", "direction", "n_entries")
    )
    if len(rules) != 3 or ranks.shape != (rules.shape[1], 3):
        raise ValueError("the rules of a grammar have three symbols and three ranks")
    for labels in (rules, lex_label, root_label):
        if labels.size and labels.max() >= len(n_states):
            raise ValueError("a rule names a nonterminal that the grammar lacks")
    shapes = n_states[rules.T]
    with one_blas_thread():
        binary = _expand(shapes, ranks, state["binary"], state["floors"])
    arrays = GrammarArrays(
        n_states=n_states,
        rule_parent=rules[0],
        rule_left=rules[1],
        rule_right=rules[2],
        rule_offset=offsets(shapes.prod(axis=1)),
        binary=binary,
        word_offset=offsets(n_entries),
        lex_label=lex_label,
        lex_offset=offsets(n_states[lex_label]),
        lexical=_lexical(n_states[lex_label], direction, state),
        root_label=root_label,
        root_offset=offsets(n_states[root_label]),
        root=state["root"],
    )
    grammar = LPCFG.from_arrays(
        state["nonterminals"],
        state["words"],
        arrays,
        unknown_word=state["unknown_word"],
    )
    return grammar.normalized() if state["probabilistic"] is True else grammar


_NONE = np.zeros(0)


def _shapes(arrays):
    rules = np.array([arrays.rule_parent, arrays.rule_left, arrays.rule_right])
    return arrays.n_states[rules.T].astype(np.int64)


def _decompose(tensor, tolerance):
    """Return a tensor's ranks along its axes, and its core and factors in one array."""
    # Improbable states of the parent need as many digits as the others: where one of
    # them is certain, only its values matter.
    norms = np.sqrt(np.square(tensor).sum(axis=(1, 2)))
    norms[norms == 0] = 1.0
    core, factors = tensor / norms[:, None, None], []
    allowed = tolerance * np.linalg.norm(core)
    for axis in range(3):
        unfolded = np.moveaxis(core, axis, 0)
        matrix = unfolded.reshape(len(unfolded), -1)
        factor, values, _ = np.linalg.svd(matrix, full_matrices=False)
        left_out = np.sqrt(np.cumsum(np.square(values[::-1]))[::-1])
        factor = factor[:, : max(1, int((left_out > allowed).sum()))]
        core = (factor.T @ matrix).reshape(-1, *unfolded.shape[1:])
        core = np.moveaxis(core, 0, axis)
        factors.append(factor if axis else factor * norms[:, None])
    return core.shape, np.concatenate([part.ravel() for part in (core, *factors)])


def _expand(shapes, ranks, values, floors):
    """Return all rule tensors end to end; sizes are checked before memory is taken."""
    # Doubles do not wrap around.
    exact = shapes.astype(float).prod(axis=1)
    dense = (ranks == 0).all(axis=1)
    if (ranks > shapes).any() or ((ranks == 0).any(axis=1) != dense).any():
        raise ValueError("the ranks of a tensor are from 1 to its shape")
    parts = ranks.astype(float).prod(axis=1) + (ranks * shapes.astype(float)).sum(
        axis=1
    )
    stored = np.where(dense, exact, parts)
    if (
        not (isinstance(values, np.ndarray) and values.dtype.kind == "f")
        or values.shape != (stored.sum(),)
        or exact.sum() > _EXPANSION * max(1, len(values))
    ):
        raise ValueError("the tensors of a grammar do not fit its numbers of states")
    if floors is not None and floors.shape != dense.shape:
        raise ValueError("a tensor has one smallest value")
    starts, ends = offsets(stored.astype(np.int64)), offsets(exact.astype(np.int64))
    binary = np.empty(ends[-1])
    kinds, kind = np.unique(np.hstack([shapes, ranks]), axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    bounds = offsets(np.bincount(kind.ravel(), minlength=len(kinds)))
    for number, sizes in enumerate(kinds):
        group = order[bounds[number] : bounds[number + 1]]
        shape, rank = sizes[:3], sizes[3:]
        length = int(stored[group[0]])
        rows = starts[group][:, None] + np.arange(length)
        tensors = values[rows].astype(np.float64)
        if rank.any():
            tensors = _multiply(tensors, shape, rank)
            if floors is not None:
                # All values were positive before rounding.
                tensors = np.maximum(tensors, floors[group][:, None])
        binary[ends[group][:, None] + np.arange(shape.prod())] = tensors
    return binary


def _multiply(parts, shape, rank):
    """Tensors of one shape and rank from cores and factors, one row each."""
    n = len(parts)
    cuts = np.cumsum([rank.prod(), *(rank * shape)])[:-1]
    core, first, second, third = np.split(parts, cuts, axis=1)
    (a, b, c), (r, s, t) = shape, rank
    out = first.reshape(n, a, r) @ core.reshape(n, r, s * t)
    out = out.reshape(n, a * s, t) @ third.reshape(n, c, t).transpose(0, 2, 1)
    out = second.reshape(n, 1, b, s) @ out.reshape(n, a, s, c)
    return out.reshape(n, a * b * c)


def _directions(a):
    """Return each lexical vector's direction and scale, and the distinct directions."""
    direction, scale = np.zeros(len(a.lex_label), np.int64), np.ones(len(a.lex_label))
    pieces, n_found = [_NONE], 0
    for label in np.unique(a.lex_label):
        entries = np.flatnonzero(a.lex_label == label)
        m = a.n_states[label]
        vectors = a.lexical[a.lex_offset[entries][:, None] + np.arange(m)]
        sizes = np.abs(vectors).max(axis=1)
        sizes[sizes == 0] = 1.0
        vectors = vectors / sizes[:, None]
        # Directions of multiples are equal up to the rounding of doubles.
        _, first, number = np.unique(
            vectors.round(12), axis=0, return_index=True, return_inverse=True
        )
        direction[entries], scale[entries] = n_found + number.ravel(), sizes
        pieces.append(vectors[first].ravel())
        n_found += len(first)
    directions = np.concatenate(pieces)
    if len(a.lexical) > _EXPANSION * (len(direction) + len(directions)):
        return np.arange(len(direction)), np.ones(len(direction)), a.lexical
    return direction, scale, directions


def _lexical(lengths, direction, state):
    """Return all lexical vectors end to end."""
    scale, directions = state["scale"], state["directions"]
    if (
        scale.shape != direction.shape
        or direction.shape != lengths.shape
        or direction.max(initial=-1) >= len(direction)
    ):
        raise ValueError("every lexical rule has a direction and a scale")
    sizes = np.zeros(direction.max(initial=-1) + 1, dtype=np.int64)
    sizes[direction] = lengths
    if (
        (sizes[direction] != lengths).any()
        or directions.shape != (sizes.sum(),)
        or lengths.sum() > _EXPANSION * (len(direction) + len(directions))
    ):
        raise ValueError("the directions of lexical vectors have as many states")
    at = ragged_indices(offsets(sizes)[direction], lengths)
    return directions[at].astype(np.float64) * np.repeat(scale, lengths)


def _narrow(ids):
    """Return ids in the smallest type that holds them."""
    return ids.astype(np.min_scalar_type(ids.max(initial=0)))


def _single(values):
    """Return values in single precision if they fit, without turning any into zero."""
    limits = np.finfo(np.float32)
    if np.abs(values).max(initial=0.0) > limits.max:
        return values
    small = (values != 0) & (np.abs(values) < limits.tiny)
    return np.where(small, np.copysign(limits.tiny, values), values).astype(np.float32)


def _ids(array, ndim):
    if array.dtype.kind not in "iu" or array.ndim != ndim or (array < 0).any():
        raise ValueError(f"expected ids with {ndim} axes, got {array.dtype} ids")
    # Larger ids cannot index anything that fits in memory.
    if array.size and array.max() >= 2**31:
        raise ValueError("an id of a grammar is out of range")
    return array.astype(np.int64)
