"""Singular value tree automata: decomposition, truncation, minimisation."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import svd
from scipy.linalg.lapack import dgejsv

from lpcfg_sk._kernels._wta_tensors import semidefinite_cholesky
from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._gram_matrices import (
    diagonal_sizes,
    gram_analysis,
    tree_analysis,
)
from lpcfg_sk.automata._reduction import (
    change_basis,
    reduce_exactly,
    reduction,
    restrict,
    zero_automaton,
)
from lpcfg_sk.automata._tensors import scale_exponent
from lpcfg_sk.exceptions import NotStronglyConvergentError

#: Up to this exponent, γ is left at 1.
_ORDINARY_GAMMA = 10
#: Pivots of a unit-diagonal Gram matrix below this are rounding errors. On treebank
#: grammars the smallest true pivots are about 1e-10, the largest rounding errors 1e-15.
_PIVOT_TOL = 1e-12
#: Singular values of a matrix with unit columns below this are rounding errors.
_RANK_EPS = 16 * np.finfo(np.float64).eps


class HankelSVD(NamedTuple):
    """Singular value decomposition of the Hankel matrix of an automaton.

    With the Gram matrices G_T = L Lᵀ and G_C = K Kᵀ over the useful states it is that
    of Kᵀ L = U D Vᵀ.

    Parameters
    ----------
    wta : WTA
        The automaton.
    states : ndarray of int64, shape (n,)
        Its useful states.
    singular_values : ndarray of float64, shape (rank,)
        The diagonal of D, largest first.
    tree_root, context_root : ndarray of float64, shape (n, rank)
        L V and K U.
    exact_rank : int
        Rank of the exact reduction; `rank` is less where singular values are lost in
        rounding errors of others, or are below the tolerance.
    """

    wta: object
    states: np.ndarray
    singular_values: np.ndarray
    tree_root: np.ndarray
    context_root: np.ndarray
    exact_rank: int

    def truncate(self, n_states=None):
        """Make the automaton of the leading singular values.

        Parameters
        ----------
        n_states : int, default=None
            Number of states to keep; all of the rank where None.

        Returns
        -------
        WTA
            ⟨Qᵀα, T((Q⁺)ᵀ, Q, Q), Q⁺ω⟩ with Q = L V D^-½ and Q⁺ = D^-½ Uᵀ Kᵀ, cut to
            the leading columns; the n³ weights of the whole SVTA are never computed.
        """
        if len(self.singular_values) == 0:
            return zero_automaton(self.wta)
        with one_blas_thread():
            return change_basis(self.wta, self.states, *self._bases(n_states))

    def _bases(self, n_states):
        """Leading columns of Q and of the transpose of Q⁺."""
        root = np.sqrt(self.singular_values[:n_states])
        basis = self.tree_root[:, :n_states] / root
        dual = self.context_root[:, :n_states] / root
        product = dual.T @ basis
        if np.abs(product - np.eye(len(root))).max() < 0.1:
            # Rounding errors do least harm if dual and basis are exactly biorthogonal.
            dual = np.linalg.solve(product, dual.T).T
        return basis, dual


def rescale_terminals(wta):
    """Scale the terminal weights of an automaton so that their squares are in range.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    wta : WTA
        ⟨cα, cT, {ω_σ / c}⟩, which has the same values; the given one where c = 1.
    c : float
        A power of two.
    """
    sizes = np.abs(wta.omega_matrix).max(axis=0)
    if not sizes.any():
        return wta, 1.0
    # The geometric mean of the extremes, so that neither leaves the range.
    middle = np.sqrt(sizes.max()) * np.sqrt(sizes[sizes > 0].min())
    c = 2.0 ** scale_exponent(middle)
    if c == 1:
        return wta, 1.0

    def scaled():
        tensors = [t.scaled(c) for t in wta.tensors]
        return wta._derived(wta.alpha * c, tensors, wta.omega_matrix / c)

    return wta._cached("rescaled", scaled), c


def convergent_form(wta):
    """Find an automaton of the same function that has Gram matrices.

    This is the automaton itself, up to scale, unless hidden states diverge: a subspace
    that no tree reaches, or no context observes, may diverge although f converges, and
    in a general basis leaving out single states does not remove it.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    WTA

    Raises
    ------
    NotStronglyConvergentError
        If f itself diverges.
    """
    wta, _ = rescale_terminals(wta)
    try:
        gram_analysis(wta)
    except NotStronglyConvergentError:
        smaller = reduce_exactly(wta)
        if smaller is wta:
            raise
        gram_analysis(smaller)
        return smaller
    return wta


def summable_form(wta):
    """Find an automaton of the same function that has a Gram matrix of trees.

    Norms and inner products need no more than that. The spectral radius and the Gram
    matrix of contexts, which take most of the time for dense transitions, are skipped.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    WTA

    Raises
    ------
    NotStronglyConvergentError
        If f itself diverges.
    """
    scaled, _ = rescale_terminals(wta)
    try:
        settled = tree_analysis(scaled).settled
    except NotStronglyConvergentError:
        settled = False
    return scaled if settled else convergent_form(wta)


def hankel_svd(wta, rank_tol=None):
    """Decompose the Hankel matrix of an automaton by its two Gram matrices.

    Parameters
    ----------
    wta : WTA
        The automaton.
    rank_tol : float, default=None
        Singular values up to this share of the largest one are taken as zero;
        where None, those that rounding alone explains.

    Returns
    -------
    HankelSVD

    Raises
    ------
    NotStronglyConvergentError
        If the sums over all trees diverge.

    Notes
    -----
    Algorithm 1 of Rabusseau, Balle and Cohen (2016) inverts the square root of
    G_C (and prints V_T where its Lemma 1 has V_C), which fails on automata that
    are not minimal. Here only the singular values that are kept are inverted.

    The roots are triangular, with the states in order of their weight in the Hankel
    matrix, and the singular values come from Jacobi's method: rare states of a grammar
    are twenty orders of magnitude below frequent ones, yet whole trees depend on them.
    This keeps their relative accuracy, where eigenvectors would mix them with rounding
    errors of the frequent ones.
    """
    wta = convergent_form(wta)
    states, gram, _, unit = gram_analysis(wta)
    exact = exact_reduction(wta, states)
    with one_blas_thread():
        d, tree_root, context_root = _balance(gram, exact, rank_tol)
    return HankelSVD(
        wta=wta,
        states=states,
        singular_values=unit * d,
        tree_root=tree_root,
        context_root=unit * context_root,
        exact_rank=exact.rank,
    )


def exact_reduction(wta, states):
    """Reduce an automaton exactly over its useful states.

    Parameters
    ----------
    wta : WTA
        The automaton, which keeps the result.
    states : ndarray of int64
        Its useful states.

    Returns
    -------
    Reduction
    """
    return wta._cached("reduction", lambda: reduction(*restrict(wta, states)))


def _balance(gram, exact, rank_tol):
    """Singular values D of Kᵀ L, and the roots L V and K U over all useful states."""
    basis, dual = exact
    context, tree = basis.T @ gram.context @ basis, dual.T @ gram.tree @ dual
    sizes = [np.sqrt(np.maximum(np.diagonal(g), 0.0)) for g in (context, tree)]
    order = np.argsort(-(sizes[0] * sizes[1]), kind="stable")
    left, right = _triangular_root(context, order), _triangular_root(tree, order)
    u, d, v = _truncated_svd(left.T @ right, rank_tol)
    return d, basis @ (right @ v), dual @ (left @ u)


def _triangular_root(gram, order):
    """A factor R with R Rᵀ = gram, triangular up to the order of the rows."""
    sizes = diagonal_sizes(gram)[order]
    unit = gram[np.ix_(order, order)] / np.outer(sizes, sizes)
    lower = semidefinite_cholesky(unit, _PIVOT_TOL)
    lower = sizes[:, None] * lower[:, np.diagonal(lower) > 0]
    root = np.empty_like(lower)
    root[order] = lower
    return root


def _truncated_svd(matrix, rank_tol):
    """Factors U, D and V of a graded matrix, without the singular values of zero."""
    if not matrix.any():
        return (
            np.zeros((matrix.shape[0], 0)),
            np.zeros(0),
            np.zeros((matrix.shape[1], 0)),
        )
    u, d, v = _jacobi_svd(matrix)
    if rank_tol is None:
        rank = _scaled_rank(matrix)
    else:
        rank = int((d > rank_tol * d[0]).sum())
    rank = min(rank, int((d > 0).sum()))
    return u[:, :rank], d[:rank], v[:, :rank]


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


def minimum(wta, rank_tol=None):
    """Find the smallest automaton of the same function, which may diverge.

    Parameters
    ----------
    wta : WTA
        The automaton.
    rank_tol : float, default=None
        Share of the largest singular value that counts as zero.

    Returns
    -------
    WTA

    Notes
    -----
    f_γ(t) = γ^size(t) f(t) has the same rank as f and converges for a small enough
    γ, so it is minimised in place of a divergent f. The same is done where transitions
    are so small that the values of large trees vanish beside those of small ones, which
    hides states.
    """
    small, rank = _minimum(wta, 1.0, rank_tol)
    if small.n_states < rank and not rank_tol:
        gamma = gamma_scale(wta.tensors, wta.omega_matrix)
        other, _ = _minimum(wta, gamma, rank_tol)
        return max(small, other, key=lambda candidate: candidate.n_states)
    return small


def _minimum(wta, gamma, rank_tol):
    """Minimum by the first γ of γ, γ/2, … that converges, and the exact rank."""
    least, hidden = gamma * 1e-150, True
    while True:
        try:
            svd = hankel_svd(wta.reweight(gamma), rank_tol)
            return svd.truncate().reweight(1 / gamma), svd.exact_rank
        except NotStronglyConvergentError:
            if hidden:
                # Hidden states may diverge where f does not.
                wta, hidden = reduce_exactly(wta), False
            gamma /= 2
            if gamma < least:
                raise


def gamma_scale(tensors, omega):
    """Find the weight of an inner node that makes up for transitions far from 1.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.

    Returns
    -------
    float
        A power of two; 1 for ordinary weights.

    Notes
    -----
    Weights are taken in units of each state: the largest weight of a word there, or the
    weight of the smallest trees that reach it.
    """
    tensors = [t.absolute() for t in tensors]
    unit = np.abs(omega).max(axis=0)
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            above = sum(t.apply(unit[None], unit[None])[0] for t in tensors)
        new = (unit == 0) & (above > 0)
        if not new.any():
            break
        unit = np.where(new, above, unit)
    largest = (above[unit > 0] / unit[unit > 0]).max(initial=0.0)
    if largest == 0 or not np.isfinite(largest):
        return 1.0
    exponent = -int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= _ORDINARY_GAMMA else 2.0**exponent
