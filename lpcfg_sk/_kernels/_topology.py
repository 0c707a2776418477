"""Charts over spans for automata with vector-valued items, and the best bracketing.

The cell of the span [s, s + w) has the number ``first[w] + s``. Each cell has a
vector and one log scale. A transition tensor enters only by the products of a left
and a right feature that it sums over split points: all of them ("grid", dense
tensors) or a list of pairs (sparse and CP tensors).
"""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True)
def _largest_scale(width, start, first, scale):
    largest = -np.inf
    for u in range(1, width):
        both = scale[first[u] + start] + scale[first[width - u] + start + u]
        largest = max(largest, both)
    return largest


@njit(nogil=True, cache=True, fastmath=REASSOC)
def sum_splits_grid(width, begin, first, scale, left, right, sums, out_scale):
    """Sum outer products of the two parts of each span over its split points.

    Parameters
    ----------
    width : int
        Width of the spans.
    begin : int
        Start of the first span; there are as many as rows of `sums`.
    first : ndarray of int64
        Number of the first cell of each width.
    scale : ndarray of float64, shape (n_cells,)
        Log scales of the cells.
    left, right : ndarray of float64, shape (n_cells, n)
        Features of the cells.
    sums : ndarray of float64, shape (n_spans, n * n)
        Output buffer.
    out_scale : ndarray of float64, shape (n_spans,)
        Output buffer: log scale of each row of `sums`.
    """
    n = left.shape[1]
    for m in range(sums.shape[0]):
        start = begin + m
        out = sums[m]
        out[:] = 0.0
        largest = _largest_scale(width, start, first, scale)
        out_scale[m] = largest
        if largest == -np.inf:
            continue
        for u in range(1, width):
            a = first[u] + start
            b = first[width - u] + start + u
            factor = np.exp(scale[a] + scale[b] - largest)
            if factor == 0.0:
                continue
            va = left[a]
            vb = right[b]
            for j in range(n):
                value = factor * va[j]
                if value != 0.0:
                    row = out[j * n : (j + 1) * n]
                    for k in range(n):
                        row[k] += value * vb[k]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def sum_splits_pairs(
    width, begin, first, scale, left, right, pair_left, pair_right, sums, out_scale
):
    """Sum products of listed feature pairs over the split points of each span.

    Parameters
    ----------
    width, begin, first, scale, left, right, sums, out_scale
        As in `sum_splits_grid`; `sums` has one column a pair.
    pair_left, pair_right : ndarray of int32, shape (n_pairs,)
        The features of each product.
    """
    n_pairs = pair_left.size
    for m in range(sums.shape[0]):
        start = begin + m
        out = sums[m]
        out[:] = 0.0
        largest = _largest_scale(width, start, first, scale)
        out_scale[m] = largest
        if largest == -np.inf:
            continue
        for u in range(1, width):
            a = first[u] + start
            b = first[width - u] + start + u
            factor = np.exp(scale[a] + scale[b] - largest)
            if factor == 0.0:
                continue
            va = left[a]
            vb = right[b]
            for p in range(n_pairs):
                out[p] += factor * va[pair_left[p]] * vb[pair_right[p]]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_scaled(vector, log_scale, cell, rows, other, scales):
    """Add a scaled vector to a row, keeping the larger scale of the cell."""
    old = scales[cell]
    if log_scale > old:
        shrink = np.exp(old - log_scale)
        a = rows[cell]
        b = other[cell]
        for j in range(a.size):
            a[j] *= shrink
        for j in range(b.size):
            b[j] *= shrink
        scales[cell] = log_scale
        factor = 1.0
    else:
        factor = np.exp(log_scale - old)
    if factor != 0.0:
        row = rows[cell]
        for j in range(row.size):
            row[j] += factor * vector[j]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def spread_splits_grid(
    width,
    begin,
    first,
    scale,
    left,
    right,
    grads,
    grad_scale,
    out_left,
    out_right,
    out_scale,
):
    """Transpose of `sum_splits_grid`: pass outside weights on to both parts.

    Parameters
    ----------
    width, begin, first, scale, left, right
        As in `sum_splits_grid`.
    grads : ndarray of float64, shape (n_spans, n * n)
        Outside weight of each product of features.
    grad_scale : ndarray of float64, shape (n_spans,)
        Log scale of each row of `grads`.
    out_left, out_right : ndarray of float64, shape (n_cells, n)
        Outside weights of the features of each cell as a left and as a right
        part; added to.
    out_scale : ndarray of float64, shape (n_cells,)
        Log scale of each cell of both; raised where needed.
    """
    n = left.shape[1]
    to_left = np.empty(n)
    to_right = np.empty(n)
    for m in range(grads.shape[0]):
        if grad_scale[m] == -np.inf:
            continue
        start = begin + m
        grad = grads[m]
        for u in range(1, width):
            a = first[u] + start
            b = first[width - u] + start + u
            if scale[a] == -np.inf or scale[b] == -np.inf:
                continue
            va = left[a]
            vb = right[b]
            to_right[:] = 0.0
            for j in range(n):
                row = grad[j * n : (j + 1) * n]
                value = va[j]
                total = 0.0
                for k in range(n):
                    total += row[k] * vb[k]
                    to_right[k] += value * row[k]
                to_left[j] = total
            _add_scaled(
                to_left, grad_scale[m] + scale[b], a, out_left, out_right, out_scale
            )
            _add_scaled(
                to_right, grad_scale[m] + scale[a], b, out_right, out_left, out_scale
            )


@njit(nogil=True, cache=True, fastmath=REASSOC)
def spread_splits_pairs(
    width,
    begin,
    first,
    scale,
    left,
    right,
    pair_left,
    pair_right,
    grads,
    grad_scale,
    out_left,
    out_right,
    out_scale,
):
    """Transpose of `sum_splits_pairs`.

    Parameters
    ----------
    width, begin, first, scale, left, right, pair_left, pair_right
        As in `sum_splits_pairs`.
    grads, grad_scale, out_left, out_right, out_scale
        As in `spread_splits_grid`; `grads` has one column a pair.
    """
    to_left = np.empty(left.shape[1])
    to_right = np.empty(right.shape[1])
    for m in range(grads.shape[0]):
        if grad_scale[m] == -np.inf:
            continue
        start = begin + m
        grad = grads[m]
        for u in range(1, width):
            a = first[u] + start
            b = first[width - u] + start + u
            if scale[a] == -np.inf or scale[b] == -np.inf:
                continue
            va = left[a]
            vb = right[b]
            to_left[:] = 0.0
            to_right[:] = 0.0
            for p in range(pair_left.size):
                value = grad[p]
                if value != 0.0:
                    to_left[pair_left[p]] += value * vb[pair_right[p]]
                    to_right[pair_right[p]] += value * va[pair_left[p]]
            _add_scaled(
                to_left, grad_scale[m] + scale[b], a, out_left, out_right, out_scale
            )
            _add_scaled(
                to_right, grad_scale[m] + scale[a], b, out_right, out_left, out_scale
            )


@njit(nogil=True, cache=True)
def best_bracketing(length, first, gain):
    """Find the binary tree with the largest sum of gains of its spans.

    Parameters
    ----------
    length : int
        Number of words.
    first : ndarray of int64, shape (length + 2,)
        Number of the first cell of each width.
    gain : ndarray of float64, shape (n_cells,)
        What each span is worth.

    Returns
    -------
    size, parent, start, stop : ndarray of int32, shape (2 * length - 1,)
        The nodes of the tree in preorder: nodes of the subtree, parent (-1 for
        the root) and span.
    """
    best = np.zeros(gain.size)
    split = np.zeros(gain.size, dtype=np.int32)
    for width in range(2, length + 1):
        for s in range(length - width + 1):
            top = -np.inf
            at = 1
            for u in range(1, width):
                value = best[first[u] + s] + best[first[width - u] + s + u]
                if value > top:
                    top = value
                    at = u
            cell = first[width] + s
            best[cell] = top + gain[cell]
            split[cell] = at
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
            u = split[first[width] + start[v]]
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
