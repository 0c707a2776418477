"""Gram matrices of tree automata: sums over all trees and all contexts, matrix-free.

Notation of Rabusseau, Balle and Cohen (2016): S = G_T = Σ_t ω(t)ω(t)ᵀ is the least
fixed point of F(S) = Σ_σ ω_σω_σᵀ + K(T, S, S, T), G_C = Σ_c α(c)α(c)ᵀ solves
G = ααᵀ + E*(G), and E is the derivative of F at S. E is never formed: K, E and E*
are all the ``contract`` of a transition tensor.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._fixed_points import (
    CRITICAL,
    KLEENE_STEPS,
    ROUNDING,
    TOL,
    QuadraticStep,
    divergent,
    fixed_point,
    leading_value,
    solve_shifted,
)
from lpcfg_sk.automata._reduction import restrict, useful_states
from lpcfg_sk.automata._tensors import scale_exponent


class GramMatrices(NamedTuple):
    """The two Gram matrices of an automaton.

    Parameters
    ----------
    context : ndarray of float64, shape (n, n)
        G_C = Σ_c α(c)α(c)ᵀ, over all contexts.
    tree : ndarray of float64, shape (n, n)
        G_T = Σ_t ω(t)ω(t)ᵀ, over all trees.
    """

    context: np.ndarray
    tree: np.ndarray


class Recursion(NamedTuple):
    """The states of an automaton that depend on themselves.

    Parameters
    ----------
    pairs : ndarray of bool, shape (n, n)
        Pairs of states of one strongly connected component with a cycle. Without any
        pair, only trees up to a certain height have a value.
    depth : int
        Length of the longest path from component to component.
    """

    pairs: np.ndarray
    depth: int


class TreeSum(NamedTuple):
    """Gram matrix of all trees of an automaton over its useful states.

    Parameters
    ----------
    states : ndarray of int64
        The states that some tree reaches and some context observes.
    recursion : Recursion
        That of the transitions between them.
    gram : ndarray of float64
        Over those states.
    settled : bool
        Whether it is known, without a check of ρ(E), to be the sum over all trees.
    """

    states: np.ndarray
    recursion: Recursion
    gram: np.ndarray
    settled: bool


class Analysis(NamedTuple):
    """Gram matrices of an automaton over its useful states.

    Parameters
    ----------
    states : ndarray of int64
        The states that some tree reaches and some context observes.
    gram : GramMatrices
        Over those states; the one of contexts is for α divided by `unit`.
    radius : float
        Spectral radius ρ(E) of the Gram iteration.
    unit : float
        A power of two, 1 unless squares of α would leave the range of numbers.
    """

    states: np.ndarray
    gram: GramMatrices
    radius: float
    unit: float


def find_recursion(tensors):
    """Find the states that depend on themselves, by the pattern of transitions.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors, one per node label.

    Returns
    -------
    Recursion
    """
    if not tensors:
        # Two automata may have no node label in common.
        return Recursion(np.zeros((0, 0), dtype=bool), 0)
    below = np.logical_or.reduce([t.children() for t in tensors])
    n_parts, part = connected_components(csr_array(below), connection="strong")
    cyclic = np.bincount(part, minlength=n_parts) > 1
    cyclic[part[np.diagonal(below)]] = True
    pairs = (part[:, None] == part) & cyclic[part][:, None]
    parents, children = (part[states] for states in np.nonzero(below))
    between = parents != children
    edges = np.unique(np.stack([parents[between], children[between]]), axis=1)
    depth = np.zeros(n_parts, dtype=np.int64)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, edges[0], depth[edges[1]] + 1)
        if np.array_equal(deeper, depth):
            return Recursion(pairs, int(depth.max(initial=0)))
        depth = deeper


def _gram_step(first, second, constant):
    """F and its derivative for one pair of automata."""

    def contract(x, y):
        pairs = zip(first, second, strict=True)
        return sum((t1.contract(x, y, t2) for t1, t2 in pairs), 0.0)

    return QuadraticStep(constant, contract)


def diagonal_sizes(gram):
    """Square roots of the diagonal of a Gram matrix, 1 where a state has no weight.

    Parameters
    ----------
    gram : ndarray of float64, shape (n, n)
        The matrix.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    sizes = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    return np.where(sizes > 0, sizes, 1.0)


def _entry_sizes(gram):
    """Bounds of the absolute entries of a Gram matrix, by its diagonal."""
    sizes = diagonal_sizes(gram)
    return np.outer(sizes, sizes)


def tree_sum(tensors, omega, recursion, start=None):
    """Solve S = Σ_σ ω_σω_σᵀ + K(T, S, S, T), without a check of ρ(E).

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors, one per node label.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.
    recursion : Recursion
        That of the tensors.
    start : ndarray of float64, shape (n, n), default=None
        A lower bound of the solution to start from, e.g. the Gram matrix of the
        same automaton with smaller transition weights.

    Returns
    -------
    gram : ndarray of float64, shape (n, n)
        The least solution if ρ(E) < 1 there.
    settled : bool
        Whether plain steps alone reached it, so that it is the sum over all trees
        without a check of ρ(E).

    Raises
    ------
    NotStronglyConvergentError
        If no positive semidefinite solution was found.

    Notes
    -----
    Up to 60 plain steps (Algorithm 2) beyond those that trees without recursion take,
    then Newton's method with GMRES on I − E, which stays fast near the critical point,
    where plain iteration stalls.
    """
    constant = omega.T @ omega
    step = _gram_step(tensors, tensors, constant)
    s = np.zeros_like(constant) if start is None else start
    s, settled = fixed_point(step, s, _entry_sizes, recursion.depth, symmetric=True)
    s = (s + s.T) / 2
    if eigh(s / _entry_sizes(s), eigvals_only=True)[0] < -ROUNDING * len(s):
        raise divergent("the Gram matrix of its trees is not positive semidefinite")
    return s, settled


def tree_gram(tensors, omega, recursion, start=None):
    """Solve for the Gram matrix of all trees, and check it by its spectral radius.

    Parameters
    ----------
    tensors, omega, recursion, start
        As in `tree_sum`.

    Returns
    -------
    gram : ndarray of float64, shape (n, n)
    radius : float
        Spectral radius ρ(E) at the solution.

    Raises
    ------
    NotStronglyConvergentError
        If there is no solution with ρ(E) < 1.

    Notes
    -----
    Newton's method may land on a fixed point other than the sum over trees; such a
    point has ρ(E) ≥ 1 and is refused.
    """
    s, _ = tree_sum(tensors, omega, recursion, start)
    return s, subcritical_radius(tensors, s, recursion)


def subcritical_radius(tensors, s, recursion):
    """Spectral radius ρ(E) of a convergent automaton.

    Parameters
    ----------
    tensors, s, recursion
        As in `spectral_radius`.

    Returns
    -------
    float

    Raises
    ------
    NotStronglyConvergentError
        If ρ(E) is not below 1.
    """
    rho = spectral_radius(tensors, s, recursion)
    if rho >= 1 - CRITICAL:
        raise divergent(
            f"1 − ρ = {1 - rho:.3g} for the spectral radius ρ of the Gram iteration, "
            f"not more than {CRITICAL:g}, below which a sum cannot be told from a "
            "divergent one"
        )
    return rho


def cross_gram(first, omega_first, second, omega_second, units):
    """Sum of ω_A(t)ω_B(t)ᵀ over all trees, for two automata.

    Parameters
    ----------
    first, second : sequence of tensors
        Transition tensors, in the same order of node labels.
    omega_first, omega_second : ndarray of float64, shape (n_words, n)
        Terminal weights over the same words.
    units : tuple of two ndarray
        `diagonal_sizes` of the Gram matrices of both automata; convergence is judged
        in these units.

    Returns
    -------
    ndarray of float64, shape (n_first, n_second)
    """
    step = _gram_step(first, second, omega_first.T @ omega_second)
    unit = np.outer(*units)
    start = np.zeros_like(unit)
    depth = max(find_recursion(tensors).depth for tensors in (first, second))
    return fixed_point(step, start, lambda _: unit, depth, symmetric=False)[0]


def _adjoint(tensors, s):
    """The map E* at S."""
    left = [t.permuted((1, 0, 2)) for t in tensors]
    right = [t.permuted((2, 0, 1)) for t in tensors]
    return lambda g: sum((t.contract(g, s, t) for t in (*left, *right)), 0.0)


def context_gram(tensors, alpha, s, recursion):
    """Solve G = ααᵀ + E*(G), the Gram matrix of all contexts.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors, one per node label.
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    s : ndarray of float64, shape (n, n)
        Gram matrix of all trees.
    recursion : Recursion
        That of the tensors.

    Returns
    -------
    ndarray of float64, shape (n, n)

    Raises
    ------
    NotStronglyConvergentError
        If the solution is not positive semidefinite.
    """
    constant = np.outer(alpha, alpha)
    adjoint = _adjoint(tensors, s)
    g = constant
    for _ in range(recursion.depth + KLEENE_STEPS):
        new = constant + adjoint(g)
        unit = _entry_sizes(new)
        change = np.abs((new - g) / unit).max()
        g = new
        if change <= TOL:
            break
    else:
        for _ in range(3):
            residual = constant + adjoint(g) - g
            if np.abs(residual / unit).max() <= TOL:
                break
            delta = solve_shifted(adjoint, residual, unit)
            if delta is None:
                raise divergent("the Gram matrix of its contexts cannot be solved")
            g = g + (delta + delta.T) / 2
        # Two plain iterations restore the accuracy of small entries.
        for _ in range(2):
            g = constant + adjoint(g)
    g = (g + g.T) / 2
    scaled = g / _entry_sizes(g)
    if not np.isfinite(scaled).all():
        raise divergent("the Gram matrix of its contexts does not converge")
    if eigh(scaled, eigvals_only=True)[0] < -ROUNDING * len(g):
        raise divergent("the Gram matrix of its contexts is not positive semidefinite")
    return g


def spectral_radius(tensors, s, recursion):
    """Largest |eigenvalue| of E, the derivative of F at S.

    E is block triangular in pairs of strongly connected components, and the radius of
    a block of two components is at most the geometric mean of their own radii, so only
    pairs of states within one component count.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors, one per node label.
    s : ndarray of float64, shape (n, n)
        Gram matrix of all trees.
    recursion : Recursion
        That of the tensors.

    Returns
    -------
    float
    """
    n = len(s)
    step = _gram_step(tensors, tensors, s)
    pairs = recursion.pairs
    unit = _entry_sizes(s)[pairs]
    if len(unit) == 0:
        return 0.0

    def matvec(v):
        h = np.zeros((n, n))
        h[pairs] = v * unit
        return step.derivative(s, h)[pairs] / unit

    return leading_value(matvec, np.eye(n)[pairs] + s[pairs] / unit)


def tree_analysis(wta):
    """Solve for the Gram matrix of all trees, without useless states.

    Parameters
    ----------
    wta : WTA
        The automaton, which keeps the result.

    Returns
    -------
    TreeSum

    Raises
    ------
    NotStronglyConvergentError
        If no solution was found.
    """

    def solve():
        states = useful_states(wta)
        if len(states) == 0:
            return TreeSum(states, find_recursion([]), np.zeros((0, 0)), True)
        _, tensors, omega = restrict(wta, states)
        recursion = find_recursion(tensors)
        with one_blas_thread():
            return TreeSum(states, recursion, *tree_sum(tensors, omega, recursion))

    return wta._cached("trees", solve)


def gram_analysis(wta):
    """Solve for the Gram matrices of an automaton, without its useless states.

    Parameters
    ----------
    wta : WTA
        The automaton, which keeps the result.

    Returns
    -------
    Analysis

    Raises
    ------
    NotStronglyConvergentError
        If the sums over all trees diverge.
    """

    def solve():
        states, recursion, tree, _ = tree_analysis(wta)
        if len(states) == 0:
            return Analysis(states, GramMatrices(tree, tree), 0.0, 1.0)
        alpha, tensors, _ = restrict(wta, states)
        unit = value_unit(wta)
        with one_blas_thread():
            radius = subcritical_radius(tensors, tree, recursion)
            context = context_gram(tensors, alpha / unit, tree, recursion)
        return Analysis(states, GramMatrices(context, tree), radius, unit)

    return wta._cached("analysis", solve)


def value_unit(wta):
    """Power of two in units of which values are squared."""
    return 2.0 ** scale_exponent(wta.alpha)
