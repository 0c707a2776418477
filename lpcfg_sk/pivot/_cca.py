from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import svds
from sklearn.utils import check_random_state

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
    Q = sparse.csr_array(Q, dtype=np.float64)
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
        U, S, Vt = np.linalg.svd(scaled.toarray(), full_matrices=False)
        U, S, V = U[:, :k], S[:k], Vt[:k].T
    elif svd_solver == "arpack":
        start = random_state.standard_normal(size)
        U, S, Vt = svds(scaled, k, v0=start)
        U, S, V = U[:, ::-1], S[::-1], Vt[::-1].T
    else:
        U, S, V = _subspace_svd(scaled, k, random_state)
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


def _subspace_svd(A, k, random_state, *, n_iter=4):
    """Randomized subspace iteration, orthonormalised through the Gram matrix.

    The Gram route costs two matrix products where Householder QR costs ten times as
    much; its loss of digits does not matter as the block is refreshed every time.
    """
    A = A.astype(np.float32)
    At = sparse.csr_array(A.T)
    block = min(k + max(32, k // 4), min(A.shape))
    Y = random_state.standard_normal((A.shape[1], block)).astype(np.float32)
    for _ in range(n_iter):
        Y = _orthonormal(At @ (A @ Y))
    Z = A @ Y
    eigenvalues, E = np.linalg.eigh((Z.T @ Z).astype(np.float64))
    S = np.sqrt(np.maximum(eigenvalues[::-1][:k], 0.0))
    E = E[:, ::-1][:, :k].astype(np.float32)
    U = (Z @ E) * _inverse_root(S * S).astype(np.float32)
    return U, S, Y @ E


def _orthonormal(Y):
    gram = (Y.T @ Y).astype(np.float64)
    try:
        R = cholesky(gram)
    except LinAlgError:
        # lower rank than the block: drop the directions that are rounding errors
        eigenvalues, E = np.linalg.eigh(gram)
        keep = eigenvalues > eigenvalues[-1] * 1e-10
        return Y @ (E[:, keep] / np.sqrt(eigenvalues[keep])).astype(np.float32)
    return Y @ np.linalg.inv(R).astype(np.float32)
