"""EM step and scoring of the aggregate bigram model, over the nonzeros of the counts.

Each nonzero gathers two rows of the parameters and uses them twice while they are in
cache. That gather limits the speed, so large models pass float32. All arrays of one
call have the same floating type.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import KERNEL, REASSOC


class SparseRows(NamedTuple):
    """Consecutive rows of a matrix in CSR form, or columns of one in CSC form.

    Attributes
    ----------
    indptr : ndarray of int, shape (n_rows + 1,)
        Where the entries of each row begin in `indices` and `data`; it may start
        anywhere.
    indices : ndarray of int
        Column of each entry of the whole matrix.
    data : ndarray
        Value of each entry of the whole matrix.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


@njit(**KERNEL, fastmath=REASSOC)
def posterior_rows(rows, left, right, scaled, ratio, out):
    """Distribute the counts of some rows over the states.

    ``ratio[k] = counts[k] / (left[i] . right[j])`` and
    ``out[i] = sum_k ratio[k] right[j]`` for the entries ``k = (i, j)`` of row i, the
    gradient of the log likelihood; times ``left[i]`` if `scaled`, which gives the
    expected counts.

    Parameters
    ----------
    rows : SparseRows
        Counts of (context, outcome) pairs.
    left : ndarray of float, shape (n_rows, n_states)
        Parameters of these rows.
    right : ndarray of float, shape (n_columns, n_states)
        Parameters of all columns.
    scaled : bool
        Whether to return expected counts, not the gradient.
    ratio : ndarray of float, shape (n_entries,)
        Result for the entries of these rows.
    out : ndarray of float, shape (n_rows, n_states)
        Result for these rows.

    Returns
    -------
    log_likelihood : float
        Of the entries of positive probability.
    impossible : float
        Count of the other entries.
    """
    indptr, indices, counts = rows
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
            # Starting from a product keeps the type of the arrays; 0.0 would not.
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


@njit(**KERNEL, fastmath=REASSOC)
def posterior_columns(columns, ratio, left, right, out):
    """Expected counts of some columns, from the ratios of ``posterior_rows``.

    ``out[j] = right[j] * sum_k ratio[position[k]] left[i]`` for the entries
    ``k = (i, j)`` of column j.

    Parameters
    ----------
    columns : SparseRows
        Columns of the matrix, with the position of each entry in `ratio` as data.
    ratio : ndarray of float, shape (n_entries,)
        Ratios of all entries.
    left : ndarray of float, shape (n_rows, n_states)
        Parameters of all rows.
    right : ndarray of float, shape (n_columns, n_states)
        Parameters of these columns.
    out : ndarray of float, shape (n_columns, n_states)
        Result for these columns.
    """
    indptr, indices, position = columns
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


@njit(**KERNEL, fastmath=REASSOC)
def pair_probabilities(rows, columns, left, right, out):
    """Compute ``out[k] = left[rows[k]] . right[columns[k]]``.

    Parameters
    ----------
    rows, columns : ndarray of int, shape (n_pairs,)
        The two words of each pair.
    left, right : ndarray of float, shape (n_words, n_states)
        Parameters.
    out : ndarray of float, shape (n_pairs,)
        Result.
    """
    n_states = left.shape[1]
    for k in range(rows.size):
        a = left[rows[k]]
        b = right[columns[k]]
        dot = a[0] * b[0]
        for h in range(1, n_states):
            dot += a[h] * b[h]
        out[k] = dot
