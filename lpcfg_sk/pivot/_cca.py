"""Canonical correlation analysis of one-hot variables, from their joint counts."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from lpcfg_sk._svd import leading_triplets
from lpcfg_sk._validation import Interval, StrOptions, validate_params

#: Names of the solvers of the singular value decomposition.
SVD_SOLVERS = {"auto", "dense", "arpack", "randomized"}
# Below this size LAPACK is both faster and exact to the last digits.
_DENSE_SIZE = 400
# Directions times size up to which ARPACK is the faster of the iterative solvers.
_ARPACK_SIZE = 200_000


class CCA(NamedTuple):
    """Projections found by canonical correlation analysis of a co-occurrence matrix.

    Attributes
    ----------
    singular_values : ndarray of shape (n_components,)
        Canonical correlations, in decreasing order (shrunk when ``kappa > 0``).
    left : ndarray of shape (d, n_components)
        Representation of each row symbol.
    right : ndarray of shape (d', n_components)
        Representation φ(g) of each column symbol.

    Examples
    --------
    >>> from lpcfg_sk.pivot import cca
    >>> result = cca([[0.5, 0.1], [0.1, 0.5]], 2)
    >>> result.truncate(1).left.shape
    (2, 1)
    """

    singular_values: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def truncate(self, n_components):
        """Take the leading directions: one SVD serves all smaller sizes.

        Parameters
        ----------
        n_components : int
            How many.

        Returns
        -------
        CCA
            The same analysis with fewer columns.
        """
        return CCA(
            self.singular_values[:n_components],
            self.left[:, :n_components],
            self.right[:, :n_components],
        )


@validate_params(
    {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kappa": [Interval(Real, 0, None, closed="left")],
        "svd_solver": [StrOptions(SVD_SOLVERS)],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def cca(Q, n_components, *, kappa=0.0, svd_solver="auto", random_state=None):
    r"""Canonical correlation analysis of one-hot variables from their joint counts.

    The rank-``n_components`` SVD of :math:`(D_1+κ)^{-1/2} Q (D_2+κ)^{-1/2}`, where
    :math:`D_1` and :math:`D_2` hold the row and column sums of Q.

    Parameters
    ----------
    Q : {ndarray, sparse matrix} of shape (d, d')
        Non-negative co-occurrence counts or probabilities.
    n_components : int
        Number of directions wanted; fewer are returned when the rank is lower.
    kappa : float, default=0.0
        Added to the row and column sums, in the units of Q.  Without it every tiny
        component of the co-occurrence graph has a correlation close to 1.
    svd_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "auto" takes LAPACK for small matrices, ARPACK for few directions of larger
        ones, else randomized subspace iteration in single precision.
    random_state : int, RandomState instance or None, default=None
        Starting vectors of the iterative solvers.

    Returns
    -------
    CCA
        Singular values and the two scaled bases.

    Examples
    --------
    >>> from lpcfg_sk.pivot import cca
    >>> cca([[0.5, 0.0], [0.0, 0.5]], 2).singular_values
    array([1., 1.])
    """
    Q = check_counts(Q)
    left_scale = _inverse_root(Q.sum(axis=1) + kappa)
    right_scale = _inverse_root(Q.sum(axis=0) + kappa)
    scaled = sparse.csr_array(
        sparse.diags_array(left_scale) @ Q @ sparse.diags_array(right_scale)
    )
    size = min(Q.shape)
    k = min(n_components, size)
    if svd_solver == "auto":
        if size <= max(_DENSE_SIZE, k + 1):
            svd_solver = "dense"
        else:
            svd_solver = "arpack" if k * size <= _ARPACK_SIZE else "randomized"
    elif svd_solver == "arpack" and k >= size:
        svd_solver = "dense"
    random_state = check_random_state(random_state)
    if svd_solver == "dense":
        U, S, Vt = leading_triplets(scaled.toarray(), k, "dense")
    elif svd_solver == "arpack":
        start = random_state.standard_normal(size)
        U, S, Vt = leading_triplets(scaled, k, "arpack", start=start)
    else:
        U, S, Vt = leading_triplets(
            scaled.astype(np.float32),
            k,
            "randomized",
            random_state=random_state,
            n_oversamples=max(32, k // 4),
            n_iter=4,
            power_iteration_normalizer="LU",
        )
    U, S, V = U[:, :k], S[:k], Vt[:k].T
    rank = int(np.sum(S > S[:1] * size * np.finfo(U.dtype).eps))
    return CCA(
        S[:rank],
        U[:, :rank] * left_scale[:, np.newaxis],
        V[:, :rank] * right_scale[:, np.newaxis],
    )


def _inverse_root(degrees):
    scale = np.zeros_like(degrees)
    np.divide(1.0, np.sqrt(degrees), out=scale, where=degrees > 0)
    return scale


def check_counts(Q):
    """Return joint counts as a CSR array of float64 without stored zeros."""
    if not sparse.issparse(Q):
        Q = np.asarray(Q)
    if Q.ndim != 2 or not np.issubdtype(Q.dtype, np.number):
        raise ValueError(
            f"Q must be a matrix of joint counts, got shape {Q.shape}, dtype {Q.dtype}"
        )
    Q = sparse.csr_array(Q, dtype=np.float64)
    Q.sum_duplicates()
    Q.eliminate_zeros()
    if not np.isfinite(Q.data).all() or (Q.data < 0).any():
        raise ValueError(
            "Q must hold finite non-negative counts; it has negative entries, NaN or "
            "infinity"
        )
    if not Q.nnz:
        raise ValueError("Q has no events: all its entries are zero")
    return Q
