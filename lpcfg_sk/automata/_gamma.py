"""The largest weight of tree size under which an automaton still converges."""

import numpy as np

from lpcfg_sk.automata._analysis import (
    in_ordinary_units,
    reduced,
    restricted,
    unit_of_gamma,
    useful_states,
)
from lpcfg_sk.automata._gram import tree_gram
from lpcfg_sk.automata._recursion import recursion
from lpcfg_sk.automata._wta import WTA
from lpcfg_sk.exceptions import NotStronglyConvergentError

__all__ = ["critical_gamma"]

_MAX_SOLVES = 60
_LARGEST = 1e8


def critical_gamma(wta, *, rtol=1e-3):
    """Find the largest γ for which t ↦ γ^size(t) f(t) has singular values.

    Parameters
    ----------
    wta : WTA
        The automaton of f.
    rtol : float, default=1e-3
        Relative accuracy.

    Returns
    -------
    float
        A lower bound of γ*, at most `rtol` away from it; inf where there are only
        finitely many trees of non-zero value.

    Notes
    -----
    The criterion is ``Σ_t |t| γ^(2 size(t)) f(t)² < ∞``, which is what the singular
    value decomposition needs. (The paper asks for strong convergence in ℓ1, under
    which hardly any γ > 1 is left for a treebank grammar, and then uses 2.4.) As γ
    grows to γ*, 1 − ρ(E) goes to zero as γ*² − γ² or as its square root; both are
    extrapolated from the solves so far, which start from each other's solutions.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG, WTA
    >>> from lpcfg_sk.automata import critical_gamma
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "S", "S"): [[[0.3]]]}, lexical={("S", "x"): [0.7]},
    ...     root={"S": [1.0]},
    ... )
    >>> bool(critical_gamma(WTA.from_pcfg(grammar)) > 1)
    True
    """
    if not isinstance(wta, WTA):
        raise TypeError(f"critical_gamma takes a WTA, got {type(wta).__name__}.")
    if not 0 < rtol < 1:
        raise ValueError(f"rtol should be between 0 and 1, got {rtol!r}.")
    if all(tensor.kind != "sparse" for tensor in wta.tensors):
        # Hidden states diverge as others do, but do not limit γ. In sparse automata
        # such as grammars they are states of their own, which are left out below.
        wta = reduced(wta)
    wta, _ = in_ordinary_units(wta)
    states = useful_states(wta.alpha, wta.tensors, wta.omega_matrix)
    if len(states) == 0:
        return np.inf
    _, tensors, omega = restricted(wta, states)
    if not recursion(tensors).pairs.any():
        return np.inf
    unit = unit_of_gamma(tensors, omega)

    def solve(gamma, start):
        scaled = [t.scaled(gamma) for t in tensors]
        try:
            gram, radius = tree_gram(scaled, omega, start=start)
        except NotStronglyConvergentError:
            return None
        return gram, 1 - radius

    low, found = unit, None
    for _ in range(_MAX_SOLVES):
        found = solve(low, None)
        if found is not None:
            break
        low /= 2
    if found is None:
        raise NotStronglyConvergentError(
            f"No γ down to {low:.3g} makes the automaton convergent; its weights are "
            "too large, divide the transition weights by a constant first."
        )
    gram, gap = found
    high = np.inf
    points = [(low**2, gap)]
    for _ in range(_MAX_SOLVES):
        if high <= low * (1 + rtol):
            break
        if low > _LARGEST * unit:
            return np.inf
        gamma = _next(points, low, high, rtol)
        found = solve(gamma, gram)
        if found is None:
            high = gamma
        else:
            low, (gram, gap) = gamma, found
            points.append((low**2, gap))
    return low


def _next(points, low, high, rtol):
    """Where to solve next: beside the extrapolated zero of 1 − ρ."""
    guess = _extrapolate(points)
    if guess is not None:
        for gamma in (guess * (1 - rtol / 3), guess * (1 + rtol / 3)):
            if low * (1 + rtol / 10) < gamma < high * (1 - rtol / 10):
                return gamma
    if np.isinf(high):
        return low * (1.25 if len(points) < 3 else 2)
    return np.sqrt(low * high)


def _extrapolate(points):
    """Zero of 1 − ρ, by the law that fits the solves so far better."""
    if len(points) < 2:
        return None
    (x1, y1), (x2, y2) = points[-2:]
    best, least = None, np.inf
    for power in (1, 2):
        slope = (y1**power - y2**power) / (x2 - x1)
        if slope <= 0:
            continue
        error = 0.0
        if len(points) > 2:
            x0, y0 = points[-3]
            error = abs(y1**power + slope * (x1 - x0) - y0**power) / y0**power
        if error < least:
            best, least = np.sqrt(x2 + y2**power / slope), error
    return best
