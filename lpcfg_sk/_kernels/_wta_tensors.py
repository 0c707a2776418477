"""Sparse transition tensors of tree automata: contractions and CP updates."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import KERNEL, REASSOC, held


class EntriesByRow(NamedTuple):
    """The entries of a sparse tensor T[i, j, k], grouped by pairs (i, k).

    Parameters
    ----------
    i, k : ndarray of int32, shape (n_pairs,)
        The distinct pairs, sorted by i and then by k.
    start : ndarray of int64, shape (n_pairs + 1,)
        Pair p has the entries ``start[p]:start[p + 1]``.
    j : ndarray of int32, shape (n_entries,)
        Second index of each entry.
    weight : ndarray of float64, shape (n_entries,)
        Value of each entry.
    """

    i: np.ndarray
    k: np.ndarray
    start: np.ndarray
    j: np.ndarray
    weight: np.ndarray


class EntriesByColumn(NamedTuple):
    """The entries of a sparse tensor T[i, j, k], grouped by columns (j, k).

    Parameters
    ----------
    group_start : ndarray of int64, shape (n_groups + 1,)
        Group g has the columns ``group_start[g]:group_start[g + 1]``.
    group_j : ndarray of int32, shape (n_groups,)
        The j that the columns of each group share.
    k : ndarray of int32, shape (n_columns,)
        The k of each column.
    start : ndarray of int64, shape (n_columns + 1,)
        Column c has the entries ``start[c]:start[c + 1]``.
    i : ndarray of int32, shape (n_entries,)
        First index of each entry.
    weight : ndarray of float64, shape (n_entries,)
        Value of each entry.
    """

    group_start: np.ndarray
    group_j: np.ndarray
    k: np.ndarray
    start: np.ndarray
    i: np.ndarray
    weight: np.ndarray


@held
@njit(**KERNEL, fastmath=REASSOC)
def contract_sparse(rows, x, y, columns, n_out):
    """Contract two sparse tensors with a matrix on each of the last two modes.

    ``out[i, i'] = Σ T1[i, j, k] x[j, j'] y[k, k'] T2[i', j', k']``, over the
    non-empty (i, k) pairs of T1 and the non-empty (j', k') columns of T2 only.

    Parameters
    ----------
    rows : EntriesByRow
        The tensor T1.
    x, y : ndarray of float64, shape (n1, n2)
        Matrices on the second and third mode.
    columns : EntriesByColumn
        The tensor T2.
    n_out : int
        First dimension of T2.

    Returns
    -------
    ndarray of float64, shape (n1, n_out)
    """
    pair_i, pair_k, pair_start, rule_j, rule_weight = rows
    group_start, group_j, column_k, column_start, entry_i, entry_weight = columns
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


@njit(**KERNEL, fastmath=REASSOC)
def bilinear_sparse(rows, x, y, out):
    """Add ``T(I, x, y)`` of a sparse tensor to `out`, one slab for each i.

    Parameters
    ----------
    rows : EntriesByRow
        The tensor.
    x : ndarray of float64, shape (n, p)
        Matrix on the second mode.
    y : ndarray of float64, shape (n, q)
        Matrix on the third mode.
    out : ndarray of float64, shape (n, p, q)
        Output buffer, added to.
    """
    pair_i, pair_k, pair_start, rule_j, rule_weight = rows
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


@njit(**KERNEL)
def apply_sparse(columns, left, right, out):
    """Set ``out[m, i] = Σ T[i, j, k] left[m, j] right[m, k]`` for a sparse T.

    Parameters
    ----------
    columns : EntriesByColumn
        The tensor.
    left, right : ndarray of float64, shape (n_rows, n)
        One pair of vectors per row.
    out : ndarray of float64, shape (n_rows, n_out)
        Output buffer.
    """
    group_start, group_j, column_k, column_start, entry_i, entry_weight = columns
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


@held
@njit(**KERNEL)
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


@njit(**KERNEL, fastmath=REASSOC)
def update_factor(rows, other_rows, third_rows, weight, factor, other, third):
    """Do one multiplicative update of a factor of a sparse nonnegative tensor.

    ``factor[i, r] *= (Σ_e t_e / m_e · other · third) / (Σ other · Σ third)``, which
    never raises the divergence Σ m − t log m of the model m from the tensor t.

    Parameters
    ----------
    rows, other_rows, third_rows : ndarray of int32, shape (n_entries,)
        Index of each entry in the three modes.
    weight : ndarray of float64, shape (n_entries,)
        The non-zero entries.
    factor : ndarray of float64, shape (n, rank)
        Updated in place.
    other, third : ndarray of float64, shape (n, rank)
        The other two factors.
    """
    n, rank = factor.shape
    numerator = np.zeros((n, rank))
    product = np.empty(rank)
    for e in range(weight.size):
        a = factor[rows[e]]
        b = other[other_rows[e]]
        c = third[third_rows[e]]
        model = 0.0
        for r in range(rank):
            product[r] = b[r] * c[r]
            model += a[r] * product[r]
        if model > 0.0:
            ratio = weight[e] / model
            row = numerator[rows[e]]
            for r in range(rank):
                row[r] += ratio * product[r]
    for r in range(rank):
        sum_b = 0.0
        sum_c = 0.0
        for i in range(n):
            sum_b += other[i, r]
            sum_c += third[i, r]
        denominator = sum_b * sum_c
        for i in range(n):
            if denominator > 0.0:
                factor[i, r] *= numerator[i, r] / denominator
            else:
                factor[i, r] = 0.0


@njit(**KERNEL, fastmath=REASSOC)
def divergence(i, j, k, weight, a, b, c):
    """KL divergence of a CP model from a sparse nonnegative tensor.

    Parameters
    ----------
    i, j, k : ndarray of int32, shape (n_entries,)
        Positions.
    weight : ndarray of float64, shape (n_entries,)
        The non-zero entries.
    a, b, c : ndarray of float64, shape (n, rank)
        Factors.

    Returns
    -------
    float
        Σ t log(t / m) − t + m over all positions; inf where m is 0 and t is not.
    """
    n, rank = a.shape
    total = 0.0
    for e in range(weight.size):
        x = a[i[e]]
        y = b[j[e]]
        z = c[k[e]]
        model = 0.0
        for r in range(rank):
            model += x[r] * y[r] * z[r]
        if model > 0.0:
            total += weight[e] * (np.log(weight[e] / model) - 1.0)
        else:
            return np.inf
    for r in range(rank):
        sum_a = 0.0
        sum_b = 0.0
        sum_c = 0.0
        for x in range(n):
            sum_a += a[x, r]
            sum_b += b[x, r]
            sum_c += c[x, r]
        total += sum_a * sum_b * sum_c
    return total
