"""Strong convergence: whether Σ_t |t| |f(t)| is finite."""

import numpy as np

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._analysis import (
    convergent_form,
    gram_analysis,
    rescale_terminals,
    useful_states,
)
from lpcfg_sk.automata._fixed_points import (
    CRITICAL,
    TOL,
    fixed_point,
    leading_value,
)
from lpcfg_sk.automata._gram_matrices import diagonal_sizes, find_recursion
from lpcfg_sk.automata._reduction import reduce_exactly, restrict
from lpcfg_sk.exceptions import NotStronglyConvergentError

#: Steps in which a sum of signed weights shows that it diverges.
_SIGNED_STEPS = 1000
#: Up to this many states the matrix of the derivative itself is formed.
_SMALL = 64


def strongly_convergent(wta):
    """Decide whether Σ_t |t| |f(t)| is finite.

    Parameters
    ----------
    wta : WTA
        The automaton of f.

    Returns
    -------
    bool or None
        None where weights of both signs leave it undecided.

    Notes
    -----
    With nonnegative weights s = Σ_t ω(t) is the least solution of
    s = Σ_σ ω_σ + T(I, s, s), and Σ_t |t| f(t) is finite if and only if s is and the
    derivative T(I, s, ·) + T(I, ·, s) has a spectral radius below 1, as in the proof of
    theorem 4 of Rabusseau, Balle and Cohen (2016) with ω in place of ω⊗ω.

    The automaton of the absolute weights bounds |f| from above. If f is strongly
    convergent, the sums of the ω(t) of a minimal automaton over all trees up to a
    height converge, because each entry is a combination of some f(c[t]).
    """
    wta, _ = rescale_terminals(wta)
    states = useful_states(wta)
    if len(states) == 0:
        return True
    alpha, tensors, omega = restrict(wta, states)
    with one_blas_thread():
        bound = [tensor.absolute() for tensor in tensors]
        if _nonnegative_sum_converges(bound, np.abs(omega)):
            return True
        if _one_sign(alpha, tensors, omega):
            return False
        try:
            small = convergent_form(reduce_exactly(wta))
        except NotStronglyConvergentError:
            return False
        return False if _signed_sum_diverges(small) else None


def _one_sign(alpha, tensors, omega):
    parts = [part for tensor in tensors for part in tensor.arrays().values()]
    return any((sign * alpha >= 0).all() for sign in (1, -1)) and all(
        (part >= 0).all() for part in (omega, *parts)
    )


class _Step:
    """s ↦ Σ_σ ω_σ + T(I, s, s) and its derivative."""

    def __init__(self, tensors, omega):
        self.tensors, self.constant = tensors, omega.sum(axis=0)

    def _sum(self, left, right):
        # Divergence shows as overflow, which the callers check.
        with np.errstate(over="ignore", invalid="ignore"):
            return sum(t.apply(left[None], right[None])[0] for t in self.tensors)

    def value(self, s):
        return self.constant + self._sum(s, s)

    def derivative(self, s, h):
        return self._sum(h, s) + self._sum(s, h)


def _nonnegative_sum_converges(tensors, omega):
    """Whether s is finite and the derivative there has a spectral radius below 1."""
    recursion = find_recursion(tensors)
    inside = np.diagonal(recursion.pairs)
    if not inside.any():
        return True
    step, start = _Step(tensors, omega), np.zeros(omega.shape[1])
    try:
        s, _ = fixed_point(step, start, _sizes, recursion.depth, symmetric=False)
    except NotStronglyConvergentError:
        return False
    if (s < 0).any():
        # Newton's method left the region below the least solution: there is none.
        return False
    unit = _sizes(s)[inside]

    def matvec(v):
        h = np.zeros(len(s))
        h[inside] = v * unit
        return step.derivative(s, h)[inside] / unit

    if len(unit) <= _SMALL:
        matrix = np.stack([matvec(e) for e in np.eye(len(unit))], axis=1)
        radius = np.abs(np.linalg.eigvals(matrix)).max()
    else:
        radius = leading_value(matvec, np.ones(len(unit)))
    return bool(radius < 1 - CRITICAL)


def _sizes(s):
    return np.where(s == 0, 1.0, np.abs(s))


def _signed_sum_diverges(wta):
    """Whether the sums of ω(t) over trees up to a height surely grow without bound."""
    states, gram, *_ = gram_analysis(wta)
    if len(states) == 0:
        return False
    _, tensors, omega = restrict(wta, states)
    step, unit = _Step(tensors, omega), diagonal_sizes(gram.tree)
    s = np.zeros(len(states))
    for _ in range(_SIGNED_STEPS):
        new = step.value(s)
        if not np.isfinite(new).all():
            return True
        if (np.abs(new - s) <= TOL * unit).all():
            return False
        s = new
    return False
