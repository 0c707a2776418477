import numpy as np
from scipy import sparse

from lpcfg_sk._kernels._aggregate import posterior_columns, posterior_rows
from lpcfg_sk._parallel import Resident, cut_by_work, map_chunks

# Nonzeros of the counts in a chunk of work.
_CHUNK_NONZEROS = 100_000


class BigramCounts:
    """Counts of (context, outcome) pairs by rows and by columns, for EM.

    Parameters
    ----------
    context, outcome : ndarray of int, shape (n_events,)
        The two words of each bigram.
    weight : ndarray of shape (n_events,)
        Weight of each bigram.
    shape : tuple of int
        Number of contexts and of outcomes.

    Attributes
    ----------
    matrix : csr_array of float64
        The counts.
    total : float
        Their sum.
    outcome_counts : ndarray of float64
        Column sums.
    """

    def __init__(self, context, outcome, weight, shape):
        matrix = sparse.coo_array((weight, (context, outcome)), shape=shape).tocsr()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.matrix = matrix
        self.total = float(matrix.data.sum())
        self.outcome_counts = matrix.sum(axis=0)
        # What all iterations read: a cluster gets it once.
        self._by_row = Resident(
            (matrix.indptr, matrix.indices, matrix.data.astype(np.float32))
        )
        # A transpose of the entry numbers instead of the counts gives each entry's
        # place in the rows; counted from 1, as a stored 0 might be dropped.
        number = sparse.csr_array(
            (np.arange(1, matrix.nnz + 1), matrix.indices, matrix.indptr), shape=shape
        ).tocsc()
        self._by_column = Resident((number.indptr, number.indices, number.data - 1))
        self._row_chunks = cut_by_work(np.diff(matrix.indptr), _CHUNK_NONZEROS)
        self._column_chunks = cut_by_work(np.diff(number.indptr), _CHUNK_NONZEROS)

    def expect(self, r, s, *, columns=True, n_jobs=None):
        """E-step: how often each state goes with each context and each outcome.

        Parameters
        ----------
        r : ndarray of float32, shape (n_contexts, m)
            r(h | w1).
        s : ndarray of float32, shape (n_outcomes, m)
            s(w2 | h).
        columns : bool, default=True
            Whether counts of the outcomes are wanted.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        contexts : ndarray of float32, shape (n_contexts, m)
            Expected counts of (w1, h).
        outcomes : ndarray of float32, shape (n_outcomes, m), or None
            Expected counts of (w2, h).
        log_likelihood : float
            Of the events of positive probability.
        impossible : float
            Count of the other events.
        """
        indptr = self.matrix.indptr
        ratio = np.empty(self.matrix.nnz, np.float32)
        contexts = np.empty_like(r)

        def by_row(counts, begin, end):
            indptr, indices, data = counts
            part = np.empty((end - begin, r.shape[1]), np.float32)
            part_ratio = np.empty(indptr[end] - indptr[begin], np.float32)
            log_likelihood, impossible = posterior_rows(
                indptr[begin : end + 1],
                indices,
                data,
                r[begin:end],
                s,
                True,
                part_ratio,
                part,
            )
            return part, part_ratio, log_likelihood, impossible

        def by_column(counts, begin, end):
            indptr, indices, position = counts
            part = np.empty((end - begin, s.shape[1]), np.float32)
            posterior_columns(
                indptr[begin : end + 1],
                indices,
                position,
                ratio,
                r,
                s[begin:end],
                part,
            )
            return part

        log_likelihood = impossible = 0.0
        chunks = [(self._by_row, *rows) for rows in self._row_chunks]
        parts = map_chunks(by_row, chunks, n_jobs=n_jobs)
        for (begin, end), part in zip(self._row_chunks, parts, strict=True):
            contexts[begin:end], ratio[indptr[begin] : indptr[end]] = part[:2]
            log_likelihood += part[2]
            impossible += part[3]
        if not columns:
            return contexts, None, log_likelihood, impossible
        outcomes = np.empty_like(s)
        chunks = [(self._by_column, *rows) for rows in self._column_chunks]
        parts = map_chunks(by_column, chunks, n_jobs=n_jobs)
        for (begin, end), part in zip(self._column_chunks, parts, strict=True):
            outcomes[begin:end] = part
        return contexts, outcomes, log_likelihood, impossible
