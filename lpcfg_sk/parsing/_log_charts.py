"""Inside-outside in logarithms, for charts that leave the range of floating point.

The kernels keep one power of two per span, so that the items of a span must not differ
by more than the range of a double. Grammars whose likeliest items are useless, and
whose useful items are less likely by hundreds of orders of magnitude, need a logarithm
per number. This is slow, and rarely needed.
"""

import numpy as np


def log_inside_outside(forest, n, tensors, leaves, roots):
    """Fill the chart of a sentence in logarithms (figure 5 of the L-PCFG paper).

    Parameters
    ----------
    forest : Forest
        Items of the sentence.
    n : int
        Number of words.
    tensors : Tensors
        Rules of the model, in double precision.
    leaves : ItemVectors
        Lexical vectors of the items over one word, not scaled.
    roots : ndarray of float64, as long as ``leaves.values``
        Root vectors of the items over the whole sentence, zero for all others.

    Returns
    -------
    total : (float, float)
        Logarithm of the magnitude of the sentence's value, and its sign.
    marginal : (ndarray of float64, ndarray of float64), each of shape (n_items,)
        The same for the marginal of each item.
    """
    offset = leaves.offset
    places = [np.arange(*offset[t : t + 2]) for t in range(len(offset) - 1)]
    with np.errstate(divide="ignore"):
        binary = np.array([np.log(np.abs(tensors.binary)), np.sign(tensors.binary)])
        inside = np.array([np.log(np.abs(leaves.values)), np.sign(leaves.values)])
        outside = np.array([np.log(np.abs(roots)), np.sign(roots)])
    groups = range(len(forest.group_span))
    for g in groups:
        left, right = _children(forest, g, places)
        pairs = _product(inside[:, left][:, :, :, None], inside[:, right][:, :, None])
        pairs = _sum(pairs, axis=1)
        for parent, tensor in _applications(forest, g, tensors, binary, places):
            value = _sum(_sum(_product(tensor, pairs[:, None]), axis=3), axis=2)
            inside[:, parent] = _add(inside[:, parent], value)
    for g in reversed(groups):
        left, right = _children(forest, g, places)
        shape = (left.shape[1], right.shape[1])
        above = np.stack([np.full(shape, -np.inf), np.zeros(shape)])
        for parent, tensor in _applications(forest, g, tensors, binary, places):
            value = _sum(_product(tensor, outside[:, parent, None, None]), axis=1)
            above = _add(above, value)
        above = above[:, None]
        value = _sum(_product(above, inside[:, right][:, :, None]), axis=3)
        outside[:, left] = _add(outside[:, left], value)
        value = _sum(_product(above, inside[:, left][:, :, :, None]), axis=2)
        outside[:, right] = _add(outside[:, right], value)
    both = _product(inside, outside)
    marginal = np.array([_sum(both[:, place], axis=1) for place in places]).T
    whole = slice(*forest.item_offset[-2:])
    return _sum(marginal[:, whole], axis=1), marginal


def _children(forest, group, places):
    """Return where the vectors of the left and right children of each edge are."""
    edges = slice(*forest.edge_offset[group : group + 2])
    return (
        np.array([places[t] for t in forest.edge_left[edges]]),
        np.array([places[t] for t in forest.edge_right[edges]]),
    )


def _applications(forest, group, tensors, binary, places):
    """Yield where the vector of each parent is, and the tensor of its rule."""
    first = forest.edge_offset[group]
    m_left = len(places[forest.edge_left[first]])
    m_right = len(places[forest.edge_right[first]])
    for a in range(*forest.app_offset[group : group + 2]):
        begin = tensors.rule_offset[forest.app_rule[a]]
        parent = places[forest.app_parent[a]]
        if begin >= 0 and len(parent):
            shape = (2, len(parent), m_left, m_right)
            end = begin + len(parent) * m_left * m_right
            yield parent, binary[:, begin:end].reshape(shape)


def _product(one, two):
    """Multiply numbers given as (log magnitude, sign)."""
    return np.stack([one[0] + two[0], one[1] * two[1]])


def _sum(numbers, axis):
    """Add numbers given as (log magnitude, sign) along an axis of the stack."""
    if numbers.shape[axis] == 0:
        shape = [size for i, size in enumerate(numbers.shape[1:], 1) if i != axis]
        return np.stack([np.full(shape, -np.inf), np.zeros(shape)])
    log, sign = numbers
    largest = log.max(axis=axis - 1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    total = np.sum(sign * np.exp(log - largest), axis=axis - 1)
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(total)) + np.squeeze(largest, axis=axis - 1)
    return np.stack([log, np.sign(total)])


def _add(one, two):
    """Add numbers given as (log magnitude, sign)."""
    return _sum(np.stack([one, two], axis=1), axis=1)
