"""Values of trees under a tree automaton, many nodes at a time."""

from itertools import pairwise

import numpy as np

from lpcfg_sk._kernels._wta import node_heights, rescale_rows
from lpcfg_sk._parallel import cut_by_work, map_chunks

__all__ = ["tree_log_values"]

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
    omega = np.vstack([omega, np.zeros(len(alpha))])

    def values(begin, end):
        nodes = slice(*X.node_offsets[[begin, end]])
        tokens = slice(*X.token_offsets[[begin, end]])
        return _values(
            alpha,
            tensors,
            omega[word[tokens]],
            X.node_offsets[begin : end + 1] - X.node_offsets[begin],
            X.size[nodes],
            label[nodes],
        )

    chunks = cut_by_work(np.diff(X.node_offsets) * len(alpha), _CHUNK_NUMBERS)
    parts = list(map_chunks(values, chunks, n_jobs=n_jobs))
    if not parts:
        return np.zeros(0), np.zeros(0)
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _values(alpha, tensors, leaves, node_offsets, size, label):
    height = node_heights(node_offsets, size)
    order = np.argsort(height, kind="stable")
    ends = np.cumsum(np.bincount(height))
    vectors = np.empty((len(size), len(alpha)))
    scale = np.zeros(len(size))
    rows, log_scale = np.array(leaves), np.zeros(len(leaves))
    rescale_rows(rows, log_scale)
    vectors[order[: ends[0]]], scale[order[: ends[0]]] = rows, log_scale
    for lo, hi in pairwise(ends):
        nodes = order[lo:hi]
        left = nodes + 1
        right = left + size[left]
        rows = _apply(tensors, label[nodes], vectors[left], vectors[right])
        log_scale = scale[left] + scale[right]
        rescale_rows(rows, log_scale)
        vectors[nodes], scale[nodes] = rows, log_scale
    root = node_offsets[:-1]
    value = vectors[root] @ alpha
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(value)) + scale[root]
    return np.where(log > -np.inf, np.sign(value), 0.0), log


def _apply(tensors, label, left, right):
    if len(tensors) == 1 and (label == 0).all():
        return tensors[0].apply(left, right)
    rows = np.zeros_like(left)
    for number, tensor in enumerate(tensors):
        of_label = label == number
        if of_label.any():
            rows[of_label] = tensor.apply(left[of_label], right[of_label])
    return rows
