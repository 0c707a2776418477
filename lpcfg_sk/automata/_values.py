"""Values of trees under a tree automaton, many nodes at a time."""

import numpy as np

from lpcfg_sk._kernels._wta import node_heights, rescale_rows
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk.automata._scales import exponent_of

__all__ = ["tree_condition_numbers", "tree_log_values"]

#: Numbers (nodes × states) that one chunk of trees keeps in memory.
_CHUNK_NUMBERS = 4_000_000


def tree_log_values(alpha, tensors, omega, X, label, word, *, n_jobs=None):
    """Sign and log absolute value of f(t) for each tree.

    Nodes of the same height, over all trees of a chunk, are one call of the
    tensor; each node's vector is divided by its largest absolute value and the
    logarithm carried along, so nothing under- or overflows.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensors : sequence of tensors
        Transition tensors.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.
    X : Treebank
        Binary trees.
    label : ndarray of int, shape (n_nodes,)
        Tensor of each inner node, -1 where there is none.
    word : ndarray of int, shape (n_tokens,)
        Row of `omega` of each token, -1 where there is none.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    sign : ndarray of float64, shape (n_trees,)
        -1, 0 or 1.
    log : ndarray of float64, shape (n_trees,)
        -inf where the sign is 0.
    """
    columns = _over_chunks(_values, alpha, tensors, omega, X, label, word, n_jobs)
    return columns or (np.zeros(0), np.zeros(0))


def tree_condition_numbers(alpha, tensors, omega, X, label, word, *, n_jobs=None):
    """Condition number Σ_v ‖α(c_v)‖ ‖ω(t_v)‖ / |f(t)| of each tree's value.

    The sum is over the nodes v of t = c_v[t_v]. As f(t) = α(c_v)ᵀω(t_v), each term
    is one over the cosine of an angle, and vectors of length 1 are enough.

    Parameters
    ----------
    alpha, tensors, omega, X, label, word, n_jobs
        As in `tree_log_values`.

    Returns
    -------
    ndarray of float64, shape (n_trees,)
        inf where the value is zero.
    """
    columns = _over_chunks(
        _condition_numbers, alpha, tensors, omega, X, label, word, n_jobs
    )
    return columns[0] if columns else np.zeros(0)


def _over_chunks(function, alpha, tensors, omega, X, label, word, n_jobs):
    """Concatenated columns of a function of chunks of trees."""
    omega = np.vstack([omega, np.zeros(len(alpha))])
    tensors, shift = zip(*(t.normalized() for t in tensors), strict=True)
    # A node without a tensor has weight zero, whatever the scale.
    shift = np.log(2.0) * np.array([*shift, 0])

    def of_chunk(begin, end):
        nodes = slice(*X.node_offsets[[begin, end]])
        tokens = slice(*X.token_offsets[[begin, end]])
        return function(
            alpha,
            tensors,
            shift,
            omega[word[tokens]],
            X.node_offsets[begin : end + 1] - X.node_offsets[begin],
            X.size[nodes],
            label[nodes],
        )

    chunks = cut_by_work(np.diff(X.node_offsets) * len(alpha), _CHUNK_NUMBERS)
    parts = list(map_chunks(of_chunk, chunks, n_jobs=n_jobs))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _values(alpha, tensors, shift, leaves, node_offsets, size, label):
    vectors, scale, _ = _inside(tensors, shift, leaves, node_offsets, size, label)
    root = node_offsets[:-1]
    exponent = exponent_of(alpha)
    value = vectors[root] @ np.ldexp(alpha, -exponent)
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(value)) + scale[root] + np.log(2.0) * exponent
    return np.where(log > -np.inf, np.sign(value), 0.0), log


def _condition_numbers(alpha, tensors, shift, leaves, node_offsets, size, label):
    inside, _, levels = _inside(tensors, shift, leaves, node_offsets, size, label)
    outside = np.zeros_like(inside)
    outside[node_offsets[:-1]] = alpha
    to_left, to_right = (
        [t.permuted(axes) for t in tensors] for axes in ((1, 0, 2), (2, 0, 1))
    )
    for nodes in reversed(levels[1:]):
        left = nodes + 1
        right = left + size[left]
        above = outside[nodes]
        rescale_rows(above, np.zeros(len(nodes)))
        outside[left] = _apply(to_left, label[nodes], above, inside[right])
        outside[right] = _apply(to_right, label[nodes], above, inside[left])
    rescale_rows(outside, np.zeros(len(outside)))
    value = np.abs(np.einsum("vi,vi->v", outside, inside))
    length = np.linalg.norm(outside, axis=1) * np.linalg.norm(inside, axis=1)
    terms = np.divide(length, value, out=np.full(len(value), np.inf), where=value > 0)
    return (np.add.reduceat(terms, node_offsets[:-1]),)


def _inside(tensors, shift, leaves, node_offsets, size, label):
    """Rescaled ω(t_v) of all nodes, their log scales, and the nodes by height."""
    height = node_heights(node_offsets, size)
    order = np.argsort(height, kind="stable")
    levels = np.split(order, np.cumsum(np.bincount(height))[:-1])
    vectors = np.empty((len(size), leaves.shape[1]))
    scale = np.zeros(len(size))
    rows, log_scale = np.array(leaves), np.zeros(len(leaves))
    rescale_rows(rows, log_scale)
    vectors[levels[0]], scale[levels[0]] = rows, log_scale
    for nodes in levels[1:]:
        left = nodes + 1
        right = left + size[left]
        rows = _apply(tensors, label[nodes], vectors[left], vectors[right])
        log_scale = scale[left] + scale[right] + shift[label[nodes]]
        rescale_rows(rows, log_scale)
        vectors[nodes], scale[nodes] = rows, log_scale
    return vectors, scale, levels


def _apply(tensors, label, left, right):
    if len(tensors) == 1 and (label == 0).all():
        return tensors[0].apply(left, right)
    rows = np.zeros_like(left)
    for number, tensor in enumerate(tensors):
        of_label = label == number
        if of_label.any():
            rows[of_label] = tensor.apply(left[of_label], right[of_label])
    return rows
