"""EM step and scoring of the aggregate bigram model, over the nonzeros of the counts.

Rows of the parameters are gathered once a nonzero and used twice while they are in
cache: that gather bounds the speed, so large models pass float32.  All arrays of one
call have the same floating type.
"""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True, fastmath=REASSOC)
def posterior_rows(indptr, indices, counts, left, right, scaled, ratio, out):
    """Distribute the counts of some rows of a CSR matrix over the states.

    ``ratio[k] = counts[k] / (left[i] . right[j])`` and
    ``out[i] = sum_k ratio[k] right[j]`` for the entries ``k = (i, j)`` of row i,
    the gradient of the log likelihood; times ``left[i]`` if ``scaled``, which gives
    the expected counts.  ``indptr`` may start anywhere: ``left`` and ``out`` hold its
    rows only, ``ratio`` its entries only.

    Returns the log likelihood of the entries of positive probability and the count
    of the others.
    """
    n_states = left.shape[1]
    first = indptr[0]
    log_likelihood = 0.0
    impossible = 0.0
    for i in range(indptr.size - 1):
        a = left[i]
        total = out[i]
        total[:] = 0
        for k in range(indptr[i], indptr[i + 1]):
            b = right[indices[k]]
            # starting from a product keeps the type of the arrays; 0.0 would not
            dot = a[0] * b[0]
            for h in range(1, n_states):
                dot += a[h] * b[h]
            if dot > 0:
                weight = counts[k] / dot
                log_likelihood += counts[k] * np.log(np.float64(dot))
            else:
                weight = dot
                impossible += counts[k]
            ratio[k - first] = weight
            for h in range(n_states):
                total[h] += weight * b[h]
        if scaled:
            for h in range(n_states):
                total[h] *= a[h]
    return log_likelihood, impossible


@njit(nogil=True, cache=True, fastmath=REASSOC)
def posterior_columns(indptr, indices, position, ratio, left, right, out):
    """Expected counts of some columns, from the ratios of ``posterior_rows``.

    ``out[j] = right[j] * sum_k ratio[position[k]] left[i]`` for the entries
    ``k = (i, j)`` of column j; ``right`` and ``out`` hold these columns only.
    """
    n_states = left.shape[1]
    for j in range(indptr.size - 1):
        total = out[j]
        total[:] = 0
        for k in range(indptr[j], indptr[j + 1]):
            a = left[indices[k]]
            weight = ratio[position[k]]
            for h in range(n_states):
                total[h] += weight * a[h]
        b = right[j]
        for h in range(n_states):
            total[h] *= b[h]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def pair_probabilities(rows, columns, left, right, out):
    """``out[k] = left[rows[k]] . right[columns[k]]``."""
    n_states = left.shape[1]
    for k in range(rows.size):
        a = left[rows[k]]
        b = right[columns[k]]
        dot = a[0] * b[0]
        for h in range(1, n_states):
            dot += a[h] * b[h]
        out[k] = dot
