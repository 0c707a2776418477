"""Leading singular vectors: which solver, and how it is called."""

import numpy as np
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

#: Below this many multiplications a dense SVD is quicker than ARPACK.
_DENSE_WORK = 2e7
#: Enough for singular vectors that agree with those of ARPACK.
_ITERATIONS = {"n_iter": 10, "power_iteration_normalizer": "QR"}


def is_small(shape, k):
    """Whether a dense SVD is the quickest way to k singular vectors.

    Parameters
    ----------
    shape : tuple of int
        Shape of the matrix.
    k : int
        Number of singular vectors.

    Returns
    -------
    bool
    """
    return k >= min(shape) or min(shape) ** 2 * max(shape) <= _DENSE_WORK


def leading_triplets(matrix, k, solver, *, start=None, random_state=None, **options):
    """Leading singular triplets of a matrix, decreasing.

    Parameters
    ----------
    matrix : ndarray, sparse matrix or LinearOperator
        An ndarray for "dense", no LinearOperator for "randomized".
    k : int
        Number of triplets.
    solver : {"dense", "arpack", "randomized"}
        LAPACK, ARPACK, or randomized subspace iteration.
    start : ndarray, shape (min(matrix.shape),), default=None
        Starting vector of ARPACK; ones by default, so that the result depends on
        nothing but the data.
    random_state : int, RandomState instance or None, default=None
        For the randomized solver.
    **options
        Arguments of scikit-learn's ``randomized_svd``; many iterations with a block
        of 2k vectors by default.

    Returns
    -------
    u : ndarray, shape (n_rows, k)
    s : ndarray, shape (k,)
    vt : ndarray, shape (k, n_columns)
        More than k triplets where they cost nothing.
    """
    if solver == "dense":
        return np.linalg.svd(matrix, full_matrices=False)
    if solver == "randomized":
        return randomized_svd(
            matrix,
            n_components=k,
            random_state=random_state,
            **{"n_oversamples": max(10, k), **_ITERATIONS, **options},
        )
    start = np.ones(min(matrix.shape)) if start is None else start
    u, s, vt = svds(matrix, k=k, v0=start, solver="arpack")
    order = np.argsort(-s, kind="stable")
    return u[:, order], s[order], vt[order]
