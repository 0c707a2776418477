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
from scipy.sparse.linalg import LinearOperator, gmres

from lpcfg_sk.exceptions import NotStronglyConvergentError

#: Steps of plain iteration before Newton's method takes over.
_KLEENE_STEPS = 60
_NEWTON_STEPS = 60
_GMRES_RTOL = 1e-7
_GMRES_RESTART = 60
_GMRES_CYCLES = 10

#: Relative change at which an iteration has converged; rounding stops it there.
_TOL = 1e-14
#: Entries beyond this are not those of a convergent sum.
_OVERFLOW = 1e280
#: ρ(E) this close to 1 cannot be told from a divergent sum.
_CRITICAL = 1e-6
#: Largest relative residual that is still put down to rounding.
_ROUNDING = 1e-10
#: Share of a Newton step that the next one may take back: solves are not exact.
_OVERSHOOT = 1e-2

#: Krylov spaces of the spectral radius.
_KRYLOV_SIZE = 30
_KRYLOV_RESTARTS = 40
_KRYLOV_RTOL = 1e-8
#: Up to this many entries the matrix of E itself is formed.
_SMALL = 64


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


def _divergent(detail):
    return NotStronglyConvergentError(
        "The weighted tree automaton is not strongly convergent: the sum of "
        f"|t|·f(t)² over all trees t is infinite ({detail}), so its Hankel matrix has "
        "no singular value decomposition and its l2 norm may be infinite. Scale the "
        "transition weights down (f_γ(t) = γ^size(t) f(t) with γ < 1, parameter "
        "`gamma` of SVTAMinimizer), or renormalise the grammar."
    )


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


class _Step:
    """F, its derivative and adjoint for one pair of automata."""

    def __init__(self, first, second, constant):
        self.first, self.second, self.constant = first, second, constant

    def _sum(self, x, y):
        out = 0.0
        for t1, t2 in zip(self.first, self.second, strict=True):
            # Divergence shows as overflow, which the callers check.
            with np.errstate(over="ignore", invalid="ignore"):
                out = out + t1.contract(x, y, t2)
        return out

    def value(self, s):
        return self.constant + self._sum(s, s)

    def derivative(self, s, h):
        return self._sum(h, s) + self._sum(s, h)


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


def _iterate(step, s, scale, depth):
    """Iterate from below; stop early where convergence would be too slow.

    States outside of any recursion have their values after `depth` steps.
    """
    change, n_steps = np.inf, depth + _KLEENE_STEPS
    for k in range(n_steps):
        new = step.value(s)
        if not np.abs(new).max() < _OVERFLOW:
            raise _divergent("the Gram matrix of its trees grows without bound")
        last, change = change, np.abs((new - s) / scale(new)).max()
        s = new
        if change <= _TOL:
            break
        rate = change / last
        if k >= depth + 8 and change * max(rate, 1e-3) ** (n_steps - k) > 1e-10:
            break
    return s, change


def _solve(apply, rhs, unit):
    """Solve (I − apply) x = rhs by GMRES in units of `unit`, or return None."""
    shape = rhs.shape

    def matvec(v):
        v = v.reshape(shape)
        return (v - apply(v * unit) / unit).ravel()

    operator = LinearOperator((rhs.size, rhs.size), matvec=matvec, dtype=np.float64)
    restart = min(_GMRES_RESTART, rhs.size)
    b = (rhs / unit).ravel()
    if not b.any():
        return np.zeros(shape)
    options = {"rtol": _GMRES_RTOL, "restart": restart, "maxiter": _GMRES_CYCLES}
    with np.errstate(over="ignore", invalid="ignore"):
        x, _ = gmres(operator, b, **options)
    if not np.isfinite(x).all():
        return None
    return x.reshape(shape) * unit


def _fixed_point(step, start, scale, depth, *, symmetric):
    """Least fixed point of F from below: plain steps, then Newton's method."""
    s, change = _iterate(step, start, scale, depth)
    best = change
    for _ in range(_NEWTON_STEPS):
        if change <= _TOL:
            break
        unit = scale(s)
        residual = step.value(s) - s
        size = np.abs(residual / unit).max()
        if size <= _TOL:
            break
        # Once steps no longer improve, the residual is rounding error.
        if best <= _ROUNDING and size >= best / 2:
            break
        best = min(best, size)
        delta = _solve(lambda h, s=s: step.derivative(s, h), residual, unit)
        if delta is None:
            raise _divergent("Newton's method for the Gram matrix broke down")
        if symmetric:
            delta = (delta + delta.T) / 2
            if np.trace(delta / unit) < -max(_ROUNDING, _OVERSHOOT * change):
                # From below every Newton step of a convergent automaton is positive.
                raise _divergent("the Gram matrix of its trees has no fixed point")
        s = s + delta
        if not np.abs(s).max() < _OVERFLOW:
            raise _divergent("the Gram matrix of its trees grows without bound")
        change = np.abs(delta / unit).max()
    residual = step.value(s) - s
    if not np.isfinite(residual).all() or np.abs(residual / scale(s)).max() > _ROUNDING:
        raise _divergent("the Gram matrix of its trees does not converge")
    return step.value(s)


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
    ndarray of float64, shape (n, n)
        The least solution if the automaton is strongly convergent.

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
    step = _Step(tensors, tensors, constant)
    s = np.zeros_like(constant) if start is None else start
    s = _fixed_point(step, s, _entry_sizes, recursion.depth, symmetric=True)
    s = (s + s.T) / 2
    if eigh(s / _entry_sizes(s), eigvals_only=True)[0] < -_ROUNDING * len(s):
        raise _divergent("the Gram matrix of its trees is not positive semidefinite")
    return s


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
    s = tree_sum(tensors, omega, recursion, start)
    rho = spectral_radius(tensors, s, recursion)
    if rho >= 1 - _CRITICAL:
        raise _divergent(
            f"1 − ρ = {1 - rho:.3g} for the spectral radius ρ of the Gram iteration, "
            f"not more than {_CRITICAL:g}, below which a sum cannot be told from a "
            "divergent one"
        )
    return s, rho


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
    step = _Step(first, second, omega_first.T @ omega_second)
    unit = np.outer(*units)
    start = np.zeros_like(unit)
    depth = max(find_recursion(tensors).depth for tensors in (first, second))
    return _fixed_point(step, start, lambda _: unit, depth, symmetric=False)


def _adjoint(tensors, s):
    """The map E* at S."""
    left = [t.permuted((1, 0, 2)) for t in tensors]
    right = [t.permuted((2, 0, 1)) for t in tensors]

    def apply(g):
        out = 0.0
        for t in (*left, *right):
            out = out + t.contract(g, s, t)
        return out

    return apply


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
    for _ in range(recursion.depth + _KLEENE_STEPS):
        new = constant + adjoint(g)
        unit = _entry_sizes(new)
        change = np.abs((new - g) / unit).max()
        g = new
        if change <= _TOL:
            break
    else:
        for _ in range(3):
            residual = constant + adjoint(g) - g
            if np.abs(residual / unit).max() <= _TOL:
                break
            delta = _solve(adjoint, residual, unit)
            if delta is None:
                raise _divergent("the Gram matrix of its contexts cannot be solved")
            g = g + (delta + delta.T) / 2
        # Plain sweeps restore the accuracy of the small entries.
        for _ in range(2):
            g = constant + adjoint(g)
    g = (g + g.T) / 2
    scaled = g / _entry_sizes(g)
    if not np.isfinite(scaled).all():
        raise _divergent("the Gram matrix of its contexts does not converge")
    if eigh(scaled, eigvals_only=True)[0] < -_ROUNDING * len(g):
        raise _divergent("the Gram matrix of its contexts is not positive semidefinite")
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
    step = _Step(tensors, tensors, s)
    pairs = recursion.pairs
    unit = _entry_sizes(s)[pairs]
    if len(unit) == 0:
        return 0.0

    def matvec(v):
        h = np.zeros((n, n))
        h[pairs] = v * unit
        return step.derivative(s, h)[pairs] / unit

    if len(unit) <= _SMALL:
        matrix = np.stack([matvec(e) for e in np.eye(len(unit))], axis=1)
        if not np.isfinite(matrix).all():
            return np.inf
        return float(np.abs(np.linalg.eigvals(matrix)).max())
    return _leading_value(matvec, np.eye(n)[pairs] + s[pairs] / unit)


def _leading_value(matvec, v):
    """Leading eigenvalue of a map that preserves positive semidefinite matrices.

    By the theorem of Krein and Rutman it is real and nonnegative, and a positive
    definite start has a component along its eigenvector. Arnoldi's method is written
    out because ARPACK continues from random vectors where a Krylov space is exhausted,
    which happens for small automata.
    """
    value = 0.0
    for _ in range(_KRYLOV_RESTARTS):
        basis = np.zeros((_KRYLOV_SIZE + 1, len(v)))
        h = np.zeros((_KRYLOV_SIZE + 1, _KRYLOV_SIZE))
        basis[0] = v / np.linalg.norm(v)
        for k in range(_KRYLOV_SIZE):
            w = matvec(basis[k])
            if not np.isfinite(w).all():
                return np.inf
            for _ in range(2):  # twice is enough to be orthogonal
                share = basis[: k + 1] @ w
                w -= share @ basis[: k + 1]
                h[: k + 1, k] += share
            h[k + 1, k] = np.linalg.norm(w)
            if h[k + 1, k] <= 1e-14 * np.linalg.norm(h[: k + 1, k]):
                return float(np.linalg.eigvals(h[: k + 1, : k + 1]).real.max())
            basis[k + 1] = w / h[k + 1, k]
        values, vectors = np.linalg.eig(h[:-1])
        best = np.argmax(values.real)
        value = float(values[best].real)
        if abs(h[-1, -1] * vectors[-1, best]) <= _KRYLOV_RTOL * value:
            break
        v = vectors[:, best].real @ basis[:-1]
    return value
