"""Multiplicative updates of a nonnegative CP decomposition under KL divergence."""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True, fastmath=REASSOC)
def update_factor(rows, other_rows, third_rows, weight, factor, other, third):
    """One multiplicative update of a factor of a sparse nonnegative tensor.

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
    top = np.zeros((n, rank))
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
            row = top[rows[e]]
            for r in range(rank):
                row[r] += ratio * product[r]
    for r in range(rank):
        sum_b = 0.0
        sum_c = 0.0
        for i in range(n):
            sum_b += other[i, r]
            sum_c += third[i, r]
        bottom = sum_b * sum_c
        for i in range(n):
            if bottom > 0.0:
                factor[i, r] *= top[i, r] / bottom
            else:
                factor[i, r] = 0.0


@njit(nogil=True, cache=True, fastmath=REASSOC)
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
