"""States of the columns, given those of the rows (section 5.3)."""

import numpy as np
from scipy import sparse

from lpcfg_sk._kernels._aggregate import SparseRows, posterior_rows


def match_states(Q, posteriors, s, start, *, tol, max_iter):
    r"""Step 3 of figure 2: t(h'|h) that maximises eq. 3, by EM.

    Parameters
    ----------
    Q : csr_array of shape (d, d')
        Joint counts.
    posteriors : ndarray of shape (d, m)
        r(h | f).
    s : ndarray of shape (d', m')
        s(g | h').
    start : ndarray of shape (m, m')
        First guess of t.
    tol, max_iter : float and int
        As in :func:`pivot_decomposition`.

    Returns
    -------
    t : ndarray of shape (m, m')
        Rows sum to 1.
    n_iter : int
        Iterations done.
    gap : float
        Duality gap of the mean log likelihood at t, plus the fraction of events of
        probability 0 (rounding leaves some in exact input).
    """
    s = np.ascontiguousarray(s)
    ratio = np.empty(Q.nnz)
    weighted = np.empty((Q.shape[0], s.shape[1]))
    total = Q.sum()
    row_counts = np.repeat(Q.sum(axis=1), np.diff(Q.indptr))
    # no model of the columns given the row beats their relative frequencies
    ceiling = (Q.data * np.log(Q.data / row_counts)).sum()

    rows = SparseRows(Q.indptr, Q.indices, Q.data)

    def expect(t):
        log_likelihood, impossible = posterior_rows(
            rows, posteriors @ t, s, False, ratio, weighted
        )
        gradient = posteriors.T @ weighted
        counts = (t * gradient).sum(axis=1)
        # t is optimal when no entry of a row has a gradient above the row's count
        gap = np.maximum(gradient.max(axis=1) - counts, 0.0).sum()
        gap = min(gap, abs(ceiling - log_likelihood))
        return gradient, (gap + impossible) / total

    t = start
    gradient, gap = expect(t)
    n_iter = 0
    if gap > tol and max_iter > 0:
        # zeros are absorbing in EM
        t = 0.99 * start + 0.01 / start.shape[1]
        gradient, gap = expect(t)
        while gap > tol and n_iter < max_iter:
            counts = t * gradient
            norm = counts.sum(axis=1, keepdims=True)
            t = np.divide(counts, norm, out=t.copy(), where=norm > 0)
            n_iter += 1
            gradient, gap = expect(t)
    return t, n_iter, float(gap)


def likeliest_columns(Q, posteriors, start, *, tol, max_iter):
    r"""Maximise :math:`\sum Q_{fg} \log \sum_h r(h|f) s(g|h)` over s by EM.

    The alternative to steps 2 and 3 of figure 2 in the remark of section 5.3.

    Parameters
    ----------
    Q : csr_array of shape (d, d')
        Joint counts.
    posteriors : ndarray of shape (d, m)
        r(h | f).
    start : ndarray of shape (d', m)
        First guess of s; columns sum to 1.
    tol, max_iter : float and int
        As in :func:`pivot_decomposition`.

    Returns
    -------
    s : ndarray of shape (d', m)
        Columns sum to 1.
    n_iter : int
        Iterations done.
    gap : float
        As in :func:`match_states`.
    """
    posteriors = np.ascontiguousarray(posteriors)
    ratio, unused = np.empty(Q.nnz), np.empty(posteriors.shape)
    total = Q.sum()
    rows = SparseRows(Q.indptr, Q.indices, Q.data)
    shares = sparse.csr_array((ratio, Q.indices, Q.indptr), shape=Q.shape)

    def expect(s):
        _, impossible = posterior_rows(rows, posteriors, s, False, ratio, unused)
        gradient = shares.T @ posteriors
        counts = (s * gradient).sum(axis=0)
        # s is optimal when no entry of a column has a gradient above its count
        gap = np.maximum(gradient.max(axis=0) - counts, 0.0).sum()
        return gradient, (gap + impossible) / total

    s, n_iter = np.ascontiguousarray(start), 0
    gradient, gap = expect(s)
    if gap > tol and max_iter > 0:
        # zeros are absorbing in EM
        s = 0.99 * s + 0.01 * (Q.sum(axis=0) / total)[:, None]
        gradient, gap = expect(s)
        while gap > tol and n_iter < max_iter:
            counts = s * gradient
            norm = counts.sum(axis=0)
            s = np.divide(counts, norm, out=s.copy(), where=norm > 0)
            n_iter += 1
            gradient, gap = expect(s)
    return s, n_iter, float(gap)
