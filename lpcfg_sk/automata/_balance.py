"""Balanced truncation of tree automata by square roots of their Gram matrices."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import svd
from scipy.linalg.lapack import dgejsv

from lpcfg_sk._kernels._gram import semidefinite_cholesky

__all__ = ["Balance", "balance"]

#: Pivots of a unit-diagonal Gram matrix that are rounding errors. On treebank
#: grammars the smallest true ones are about 1e-10, the largest false ones 1e-15.
_PIVOT_TOL = 1e-12
#: Singular values of a matrix with unit columns that are rounding errors.
_RANK_EPS = 16 * np.finfo(np.float64).eps


class Balance(NamedTuple):
    """What is needed to cut an automaton to any number of states.

    Parameters
    ----------
    singular_values : ndarray of float64, shape (rank,)
        Singular values of the Hankel matrix, largest first.
    tree_root : ndarray of float64, shape (n, rank)
        L V, where G_T = L Lᵀ and Kᵀ L = U D Vᵀ.
    context_root : ndarray of float64, shape (n, rank)
        K U, where G_C = K Kᵀ.
    """

    singular_values: np.ndarray
    tree_root: np.ndarray
    context_root: np.ndarray

    def bases(self, n_states):
        """Bases Q and (Q⁺)ᵀ of the truncation to the leading states.

        Parameters
        ----------
        n_states : int
            Number of states to keep.

        Returns
        -------
        basis, dual : ndarray of float64, shape (n, n_states)
            ``dual.T @ basis`` is the identity; the truncated automaton is
            ⟨Qᵀα, T((Q⁺)ᵀ, Q, Q), Q⁺ω⟩.
        """
        root = np.sqrt(self.singular_values[:n_states])
        basis = self.tree_root[:, :n_states] / root
        dual = self.context_root[:, :n_states] / root
        product = dual.T @ basis
        if np.abs(product - np.eye(len(root))).max() < 0.1:
            # Rounding is restored to where it harms least: basis and dual fit.
            dual = np.linalg.solve(product, dual.T).T
        return basis, dual


def balance(context, tree, rank_tol):
    """Factor the Hankel matrix through the square roots of two Gram matrices.

    Parameters
    ----------
    context, tree : ndarray of float64, shape (n, n)
        The Gram matrices G_C and G_T.
    rank_tol : float or None
        Singular values up to this share of the largest one are taken as zero;
        where None, those that rounding alone explains.

    Returns
    -------
    Balance

    Notes
    -----
    Algorithm 1 of Rabusseau, Balle and Cohen (2016) inverts the square root of
    G_C (and prints V_T where its Lemma 1 has V_C), which fails on automata that
    are not minimal. With G_T = L Lᵀ, G_C = K Kᵀ and Kᵀ L = U D Vᵀ the basis
    Q = L V D^-½ has the left inverse Q⁺ = D^-½ Uᵀ Kᵀ, and only singular values
    that are kept are divided by.

    The roots are triangular, states in order of their weight in the Hankel matrix,
    and the singular values come from Jacobi's method: rare states of a grammar are
    twenty orders of magnitude below frequent ones, yet whole trees depend on them,
    and this keeps their relative accuracy where eigenvectors would mix them with
    rounding errors of the frequent ones.
    """
    sizes = [np.sqrt(np.maximum(np.diagonal(g), 0.0)) for g in (context, tree)]
    order = np.argsort(-(sizes[0] * sizes[1]), kind="stable")
    left = _root(context, sizes[0], order)
    right = _root(tree, sizes[1], order)
    core = left.T @ right
    if not core.any():
        return Balance(np.zeros(0), right[:, :0], left[:, :0])
    u, d, v = _jacobi_svd(core)
    if rank_tol is None:
        rank = _scaled_rank(core)
    else:
        rank = int((d > rank_tol * d[0]).sum())
    rank = min(rank, int((d > 0).sum()))
    return Balance(d[:rank], right @ v[:, :rank], left @ u[:, :rank])


def _root(gram, size, order):
    """A factor R with R Rᵀ = gram, triangular up to the order of the rows."""
    sizes = np.where(size > 0, size, 1.0)[order]
    unit = gram[np.ix_(order, order)] / np.outer(sizes, sizes)
    lower = semidefinite_cholesky(unit, _PIVOT_TOL)
    lower = sizes[:, None] * lower[:, np.diagonal(lower) > 0]
    root = np.empty_like(lower)
    root[order] = lower
    return root


def _jacobi_svd(matrix):
    """SVD with high relative accuracy for graded matrices."""
    if matrix.shape[0] < matrix.shape[1]:
        v, d, u = _jacobi_svd(matrix.T)
        return u, d, v
    # joba=2: accurate up to scalings of both rows and columns.
    d, u, v, work, _, info = dgejsv(matrix, joba=2, jobu=0, jobv=0)
    if info != 0:
        u, d, vt = svd(matrix, full_matrices=False)
        return u, d, vt.T
    return u, d * (work[0] / work[1]), v


def _scaled_rank(matrix):
    """Numerical rank, judged in units of each column."""
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 0] / norms[norms > 0]
    values = svd(scaled, compute_uv=False) if scaled.size else np.zeros(1)
    return int((values > _RANK_EPS).sum())
