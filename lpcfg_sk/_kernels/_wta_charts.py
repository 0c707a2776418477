"""Scaled vectors of tree nodes and spans under tree automata, and the best bracketing.

The spans of a sentence are numbered by `span_index`. Each span has a vector and one log
scale. A transition tensor is used only through the products of left and right features
that it sums over split points: all products (dense tensors) or a list of pairs (sparse
and CP tensors).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import best_splits, span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL, REASSOC, held, rescale


class SpanFeatures(NamedTuple):
    """Features of the spans of a sentence, as left and as right parts of wider ones.

    Parameters
    ----------
    length : int
        Number of words.
    left, right : ndarray of float64, shape (n_spans, n)
        Features of each span.
    log_scale : ndarray of float64, shape (n_spans,)
        Logarithm of the factor that both lack; -inf for a zero row.
    """

    length: int
    left: np.ndarray
    right: np.ndarray
    log_scale: np.ndarray


class FeaturePairs(NamedTuple):
    """The products of features that a tensor sums.

    Parameters
    ----------
    left, right : ndarray of int32, shape (n_pairs,)
        The left and the right feature of each product.
    """

    left: np.ndarray
    right: np.ndarray


@held
@njit(**KERNEL)
def node_heights(node_offsets, size):
    """Compute the height of each node of binary trees, 0 for leaves.

    Parameters
    ----------
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        First node of each tree.
    size : ndarray of int32, shape (n_nodes,)
        Number of nodes of each subtree, in preorder.

    Returns
    -------
    ndarray of int32, shape (n_nodes,)
    """
    height = np.zeros(size.size, dtype=np.int32)
    for t in range(node_offsets.size - 1):
        for v in range(node_offsets[t + 1] - 1, node_offsets[t] - 1, -1):
            if size[v] > 1:
                left = height[v + 1]
                right = height[v + 1 + size[v + 1]]
                height[v] = 1 + max(left, right)
    return height


@njit(**KERNEL)
def rescale_rows(rows, log_scale):
    """Divide each row by its largest absolute value and add its log to a scale.

    Parameters
    ----------
    rows : ndarray of float64, shape (n_rows, n)
        Vectors; rescaled in place.
    log_scale : ndarray of float64, shape (n_rows,)
        Logarithm of the factor taken out of each row so far; -inf for a zero row.
    """
    for m in range(rows.shape[0]):
        largest = rescale(rows[m])
        if largest > 0.0:
            log_scale[m] += np.log(largest)
        else:
            log_scale[m] = -np.inf


@njit(**HELPER)
def _largest_scale(start, stop, length, log_scale):
    """Find the largest log scale of the two parts of a span, over its split points."""
    largest = -np.inf
    for split in range(start + 1, stop):
        both = (
            log_scale[span_index(start, split, length)]
            + log_scale[span_index(split, stop, length)]
        )
        largest = max(largest, both)
    return largest


@njit(**KERNEL, fastmath=REASSOC)
def sum_splits(width, begin, features, pairs, sums, out_scale):
    """Sum products of features of the two parts of each span over its split points.

    Parameters
    ----------
    width : int
        Width of the spans.
    begin : int
        Start of the first span; there are as many as rows of `sums`.
    features : SpanFeatures
        Features of all narrower spans.
    pairs : FeaturePairs or None
        The products; None for all n² products of a left and a right feature.
    sums : ndarray of float64, shape (n_rows, n_products)
        Output buffer.
    out_scale : ndarray of float64, shape (n_rows,)
        Output buffer: log scale of each row of `sums`.
    """
    length, left, right, log_scale = features
    n = left.shape[1]
    for m in range(sums.shape[0]):
        start = begin + m
        stop = start + width
        out = sums[m]
        out[:] = 0.0
        largest = _largest_scale(start, stop, length, log_scale)
        out_scale[m] = largest
        if largest == -np.inf:
            continue
        for split in range(start + 1, stop):
            a = span_index(start, split, length)
            b = span_index(split, stop, length)
            factor = np.exp(log_scale[a] + log_scale[b] - largest)
            if factor == 0.0:
                continue
            va = left[a]
            vb = right[b]
            if pairs is None:
                for j in range(n):
                    value = factor * va[j]
                    if value != 0.0:
                        row = out[j * n : (j + 1) * n]
                        for k in range(n):
                            row[k] += value * vb[k]
            else:
                for p in range(pairs.left.size):
                    out[p] += factor * va[pairs.left[p]] * vb[pairs.right[p]]


@njit(**HELPER, fastmath=REASSOC)
def _add_scaled(vector, vector_scale, span, rows, other_rows, log_scale):
    """Add a scaled vector to the row of a span, which keeps the larger scale.

    Parameters
    ----------
    vector : ndarray of float64, shape (n,)
        What to add.
    vector_scale : float
        Its log scale.
    span : int
        Number of the span.
    rows : ndarray of float64, shape (n_spans, n)
        Added to.
    other_rows : ndarray of float64, shape (n_spans, n)
        Rows of the same log scale, rescaled together with `rows`.
    log_scale : ndarray of float64, shape (n_spans,)
        Log scale of each span; raised where needed.
    """
    old = log_scale[span]
    if vector_scale > old:
        shrink = np.exp(old - vector_scale)
        a = rows[span]
        b = other_rows[span]
        for j in range(a.size):
            a[j] *= shrink
        for j in range(b.size):
            b[j] *= shrink
        log_scale[span] = vector_scale
        factor = 1.0
    else:
        factor = np.exp(vector_scale - old)
    if factor != 0.0:
        row = rows[span]
        for j in range(row.size):
            row[j] += factor * vector[j]


@njit(**KERNEL, fastmath=REASSOC)
def spread_splits(width, begin, features, pairs, grads, grad_scale, outside):
    """Transpose of `sum_splits`: pass outside weights on to both parts.

    Parameters
    ----------
    width, begin, features, pairs
        As in `sum_splits`.
    grads : ndarray of float64, shape (n_rows, n_products)
        Outside weight of each product of features.
    grad_scale : ndarray of float64, shape (n_rows,)
        Log scale of each row of `grads`.
    outside : SpanFeatures
        Outside weights of the features of each span as a left and as a right part;
        added to, with log scales raised where needed.
    """
    length, left, right, log_scale = features
    _, out_left, out_right, out_scale = outside
    n = left.shape[1]
    to_left = np.empty(n)
    to_right = np.empty(n)
    for m in range(grads.shape[0]):
        if grad_scale[m] == -np.inf:
            continue
        start = begin + m
        stop = start + width
        grad = grads[m]
        for split in range(start + 1, stop):
            a = span_index(start, split, length)
            b = span_index(split, stop, length)
            if log_scale[a] == -np.inf or log_scale[b] == -np.inf:
                continue
            va = left[a]
            vb = right[b]
            to_left[:] = 0.0
            to_right[:] = 0.0
            if pairs is None:
                for j in range(n):
                    row = grad[j * n : (j + 1) * n]
                    value = va[j]
                    total = 0.0
                    for k in range(n):
                        total += row[k] * vb[k]
                        to_right[k] += value * row[k]
                    to_left[j] = total
            else:
                for p in range(pairs.left.size):
                    value = grad[p]
                    if value != 0.0:
                        to_left[pairs.left[p]] += value * vb[pairs.right[p]]
                        to_right[pairs.right[p]] += value * va[pairs.left[p]]
            scale_a = grad_scale[m] + log_scale[b]
            scale_b = grad_scale[m] + log_scale[a]
            _add_scaled(to_left, scale_a, a, out_left, out_right, out_scale)
            _add_scaled(to_right, scale_b, b, out_right, out_left, out_scale)


@held
@njit(**KERNEL)
def best_bracketing(length, gain):
    """Find the binary tree with the largest sum of gains of its spans.

    Parameters
    ----------
    length : int
        Number of words.
    gain : ndarray of float64, shape (n_spans,)
        Gain of each span.

    Returns
    -------
    size, parent, start, stop : ndarray of int32, shape (2 * length - 1,)
        The nodes of the tree in preorder: nodes of the subtree, parent (-1 for
        the root) and span.
    """
    gain = gain.copy()
    gain[:length] = 0.0
    split = best_splits(length, gain)
    n_nodes = 2 * length - 1
    size = np.empty(n_nodes, dtype=np.int32)
    parent = np.empty(n_nodes, dtype=np.int32)
    start = np.empty(n_nodes, dtype=np.int32)
    stop = np.empty(n_nodes, dtype=np.int32)
    size[0] = n_nodes
    parent[0] = -1
    start[0] = 0
    stop[0] = length
    for v in range(n_nodes):
        width = stop[v] - start[v]
        if width > 1:
            u = split[span_index(start[v], stop[v], length)] - start[v]
            a = v + 1
            b = v + 2 * u
            size[a] = 2 * u - 1
            size[b] = 2 * (width - u) - 1
            parent[a] = v
            parent[b] = v
            start[a] = start[v]
            stop[a] = start[v] + u
            start[b] = start[v] + u
            stop[b] = stop[v]
    return size, parent, start, stop
