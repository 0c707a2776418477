"""Least fixed points of sums over all trees, and their spectral radius."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from lpcfg_sk.exceptions import NotStronglyConvergentError

#: Steps of plain iteration before Newton's method takes over.
KLEENE_STEPS = 60
_NEWTON_STEPS = 60
_GMRES_RTOL = 1e-7
_GMRES_RESTART = 60
_GMRES_CYCLES = 10

#: Relative change at which an iteration has converged, about that of rounding.
TOL = 1e-14
#: A sum with entries beyond this counts as divergent.
_OVERFLOW = 1e280
#: ρ(E) this close to 1 cannot be distinguished from a divergent sum.
CRITICAL = 1e-6
#: Largest relative residual that is attributed to rounding.
ROUNDING = 1e-10
#: Fraction of a Newton step that the next one may undo, because solves are inexact.
_OVERSHOOT = 1e-2

#: The matrix of a linear map on at most this many entries is formed explicitly.
_SMALL = 64
#: Dimension of the Krylov spaces for the spectral radius.
_KRYLOV_SIZE = 30
_KRYLOV_RESTARTS = 40
_KRYLOV_RTOL = 1e-8


def divergent(detail):
    """Make the error of an infinite sum over all trees.

    Parameters
    ----------
    detail : str
        How the divergence was noticed.

    Returns
    -------
    NotStronglyConvergentError
        Where Σ_t |t| f(t)² is infinite, so is Σ_t |t| |f(t)|.
    """
    return NotStronglyConvergentError(
        "The sum of |t|·f(t)² over all trees t is infinite for this weighted tree "
        f"automaton ({detail}), so its Hankel matrix has no singular value "
        "decomposition and its l2 norm may be infinite. Scale the transition weights "
        "down (f_γ(t) = γ^size(t) f(t) with γ < 1, parameter `gamma` of "
        "SVTAMinimizer), or renormalise the grammar."
    )


class QuadraticStep:
    """F(s) = constant + B(s, s) for a bilinear map B, and its derivative.

    Parameters
    ----------
    constant : ndarray of float64
        F(0).
    bilinear : callable
        The map B of two arrays. Divergence shows as overflow in it, for which callers
        check.
    """

    def __init__(self, constant, bilinear):
        self.constant, self._bilinear = constant, bilinear

    def _sum(self, x, y):
        with np.errstate(over="ignore", invalid="ignore"):
            return self._bilinear(x, y)

    def value(self, s):
        """Return F(s)."""
        return self.constant + self._sum(s, s)

    def derivative(self, s, h):
        """Return the derivative of F at s in the direction h."""
        return self._sum(h, s) + self._sum(s, h)


def _iterate(step, s, scale, depth):
    """Iterate from below; stop early where convergence would be too slow.

    States outside any recursion reach their final values after `depth` steps.
    """
    change, n_steps = np.inf, depth + KLEENE_STEPS
    for k in range(n_steps):
        new = step.value(s)
        if not np.abs(new).max() < _OVERFLOW:
            raise divergent("the Gram matrix of its trees grows without bound")
        last, change = change, np.abs((new - s) / scale(new)).max()
        s = new
        if change <= TOL:
            break
        rate = change / last
        if k >= depth + 8 and change * max(rate, 1e-3) ** (n_steps - k) > 1e-10:
            break
    return s, change


def solve_shifted(apply, rhs, unit):
    """Solve (I − apply) x = rhs by GMRES.

    Parameters
    ----------
    apply : callable
        A linear map of arrays.
    rhs : ndarray of float64
        The right-hand side.
    unit : ndarray of float64
        Sizes of the entries of x, which is solved for in these units.

    Returns
    -------
    ndarray of float64 or None
        None where the solution is not finite.
    """
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


def fixed_point(step, start, scale, depth, *, symmetric):
    """Find the least fixed point of F from below: plain steps, then Newton's method.

    Parameters
    ----------
    step : QuadraticStep
        F and its derivative.
    start : ndarray of float64
        Where to start, below the fixed point.
    scale : callable
        Returns the sizes of the entries of s, relative to which changes are measured.
    depth : int
        Steps after which states outside any recursion have their final values.
    symmetric : bool
        Whether s is a symmetric matrix, and F preserves positive semidefinite ones.

    Returns
    -------
    s : ndarray of float64
        A fixed point.
    settled : bool
        Whether plain steps were enough, so that it is certainly the least one.

    Raises
    ------
    NotStronglyConvergentError
        If none was found.
    """
    s, change = _iterate(step, start, scale, depth)
    best, settled = change, change <= TOL
    for _ in range(_NEWTON_STEPS):
        if change <= TOL:
            break
        unit = scale(s)
        residual = step.value(s) - s
        size = np.abs(residual / unit).max()
        if size <= TOL:
            break
        # Once steps no longer improve, the residual is rounding error.
        if best <= ROUNDING and size >= best / 2:
            break
        best = min(best, size)
        delta = solve_shifted(lambda h, s=s: step.derivative(s, h), residual, unit)
        if delta is None:
            raise divergent("Newton's method for the Gram matrix broke down")
        if symmetric:
            delta = (delta + delta.T) / 2
            if np.trace(delta / unit) < -max(ROUNDING, _OVERSHOOT * change):
                # From below every Newton step of a convergent automaton is positive.
                raise divergent("the Gram matrix of its trees has no fixed point")
        s = s + delta
        if not np.abs(s).max() < _OVERFLOW:
            raise divergent("the Gram matrix of its trees grows without bound")
        change = np.abs(delta / unit).max()
    residual = step.value(s) - s
    if not np.isfinite(residual).all() or np.abs(residual / scale(s)).max() > ROUNDING:
        raise divergent("the Gram matrix of its trees does not converge")
    return step.value(s), settled


def leading_value(matvec, v):
    """Find the leading eigenvalue of a linear map that preserves a cone.

    Parameters
    ----------
    matvec : callable
        The map of vectors, e.g. of positive semidefinite matrices to such matrices.
    v : ndarray of float64
        A vector inside the cone.

    Returns
    -------
    float
        Infinite where the map is not finite.

    Notes
    -----
    By the theorem of Krein and Rutman the eigenvalue is real and nonnegative, and a
    start inside the cone has a component along its eigenvector. Arnoldi's method is
    written out because ARPACK continues from random vectors where a Krylov space is
    exhausted, which happens for small automata. The matrix of the smallest maps is
    formed.
    """
    if len(v) <= _SMALL:
        matrix = np.stack([matvec(e) for e in np.eye(len(v))], axis=1)
        if not np.isfinite(matrix).all():
            return np.inf
        return float(np.abs(np.linalg.eigvals(matrix)).max())
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
