"""The sparse form of the contraction behind Gram matrices of tree automata."""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True, fastmath=REASSOC)
def contract_sparse(
    pair_i,
    pair_k,
    pair_start,
    rule_j,
    rule_weight,
    x,
    y,
    group_start,
    group_j,
    column_k,
    column_start,
    entry_i,
    entry_weight,
    n_out,
):
    """Contract two sparse tensors with a matrix on each of the last two modes.

    ``out[i, i'] = sum T1[i, j, k] x[j, j'] y[k, k'] T2[i', j', k']``, over
    non-empty (i, k) pairs of T1 and non-empty (j', k') pairs of T2 only.

    Parameters
    ----------
    pair_i, pair_k : ndarray of int32, shape (n_pairs,)
        Distinct (i, k) of T1, sorted by i.
    pair_start : ndarray of int64, shape (n_pairs + 1,)
        Entries of T1 by pair.
    rule_j : ndarray of int32
        Second index of each entry of T1.
    rule_weight : ndarray of float64
        Entries of T1.
    x, y : ndarray of float64, shape (n1, n2)
        Matrices on the second and third mode.
    group_start : ndarray of int64, shape (n_groups + 1,)
        Columns (j', k') of T2 by their j'.
    group_j : ndarray of int32, shape (n_groups,)
        The j' of each group.
    column_k : ndarray of int32, shape (n_columns,)
        The k' of each column.
    column_start : ndarray of int64, shape (n_columns + 1,)
        Entries of T2 by column.
    entry_i : ndarray of int32
        First index of each entry of T2.
    entry_weight : ndarray of float64
        Entries of T2.
    n_out : int
        First dimension of T2.

    Returns
    -------
    ndarray of float64, shape (n1, n_out)
    """
    n1, n2 = x.shape
    n_pairs = pair_i.size
    n_groups = group_j.size
    n_columns = column_k.size
    out = np.zeros((n1, n_out))
    left = np.empty(n2)
    both = np.zeros(n_columns)
    p = 0
    while p < n_pairs:
        i = pair_i[p]
        both[:] = 0.0
        while p < n_pairs and pair_i[p] == i:
            left[:] = 0.0
            for r in range(pair_start[p], pair_start[p + 1]):
                row = x[rule_j[r]]
                weight = rule_weight[r]
                for j in range(n2):
                    left[j] += weight * row[j]
            right = y[pair_k[p]]
            for g in range(n_groups):
                value = left[group_j[g]]
                if value != 0.0:
                    for c in range(group_start[g], group_start[g + 1]):
                        both[c] += value * right[column_k[c]]
            p += 1
        row = out[i]
        for c in range(n_columns):
            value = both[c]
            if value != 0.0:
                for e in range(column_start[c], column_start[c + 1]):
                    row[entry_i[e]] += value * entry_weight[e]
    return out


@njit(nogil=True, cache=True, fastmath=REASSOC)
def bilinear_sparse(pair_i, pair_k, pair_start, rule_j, rule_weight, x, y, out):
    """Add ``T(I, x, y)`` of a sparse tensor to `out`, one slab for each i.

    Parameters
    ----------
    pair_i, pair_k, pair_start, rule_j, rule_weight : ndarray
        The tensor, as in `contract_sparse`.
    x : ndarray of float64, shape (n, p)
        Matrix on the second mode.
    y : ndarray of float64, shape (n, q)
        Matrix on the third mode.
    out : ndarray of float64, shape (n, p, q)
        Output buffer.
    """
    n_left = x.shape[1]
    n_right = y.shape[1]
    left = np.empty(n_left)
    for p in range(pair_i.size):
        left[:] = 0.0
        for r in range(pair_start[p], pair_start[p + 1]):
            row = x[rule_j[r]]
            weight = rule_weight[r]
            for j in range(n_left):
                left[j] += weight * row[j]
        right = y[pair_k[p]]
        slab = out[pair_i[p]]
        for j in range(n_left):
            value = left[j]
            if value != 0.0:
                row = slab[j]
                for k in range(n_right):
                    row[k] += value * right[k]


@njit(nogil=True, cache=True)
def apply_sparse(
    group_start,
    group_j,
    column_k,
    column_start,
    entry_i,
    entry_weight,
    left,
    right,
    out,
):
    """Set ``out[m, i] = sum T[i, j, k] left[m, j] right[m, k]`` for a sparse T.

    Parameters
    ----------
    group_start, group_j, column_k, column_start, entry_i, entry_weight : ndarray
        The tensor by columns (j, k), as T2 of `contract_sparse`.
    left, right : ndarray of float64, shape (n_rows, n)
        One pair of vectors a row.
    out : ndarray of float64, shape (n_rows, n_out)
        Output buffer.
    """
    for m in range(left.shape[0]):
        vl = left[m]
        vr = right[m]
        row = out[m]
        row[:] = 0.0
        for g in range(group_j.size):
            value = vl[group_j[g]]
            if value != 0.0:
                for c in range(group_start[g], group_start[g + 1]):
                    product = value * vr[column_k[c]]
                    if product != 0.0:
                        for e in range(column_start[c], column_start[c + 1]):
                            row[entry_i[e]] += product * entry_weight[e]


@njit(nogil=True, cache=True)
def semidefinite_cholesky(gram, tol):
    """Lower triangular L with L Lᵀ = gram, rows in the given order.

    Parameters
    ----------
    gram : ndarray of float64, shape (n, n)
        Positive semidefinite, with ones on the diagonal.
    tol : float
        A pivot up to this is rounding: its row depends on the rows above and its
        column is left zero.

    Returns
    -------
    ndarray of float64, shape (n, n)
    """
    n = gram.shape[0]
    lower = np.zeros((n, n))
    for j in range(n):
        row = lower[j]
        pivot = gram[j, j]
        for k in range(j):
            pivot -= row[k] * row[k]
        if pivot > tol:
            root = np.sqrt(pivot)
            row[j] = root
            for i in range(j + 1, n):
                other = lower[i]
                value = gram[i, j]
                for k in range(j):
                    value -= other[k] * row[k]
                other[j] = value / root
    return lower
