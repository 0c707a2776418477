"""Matching of the states found on rows and on columns (step 3 of figure 2)."""

import numpy as np

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
