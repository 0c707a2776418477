"""What sums over all trees say of an automaton: Gram matrices, rank, minimisation."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk.automata._balance import balance
from lpcfg_sk.automata._gram import GramMatrices, context_gram, tree_gram
from lpcfg_sk.automata._reduction import reduction
from lpcfg_sk.automata._scales import exponent_of
from lpcfg_sk.automata._tensors import DenseTensor, SparseTensor
from lpcfg_sk.exceptions import NotStronglyConvergentError

__all__ = [
    "Analysis",
    "analyse",
    "balanced",
    "canonical",
    "exact_minimum",
    "in_ordinary_units",
    "reduced",
    "restricted",
    "truncated",
    "unit_of",
    "unit_of_gamma",
    "useful_states",
]

#: Exponent of γ up to which it is left at 1.
_ORDINARY_GAMMA = 10


class Analysis(NamedTuple):
    """Gram matrices of an automaton over its useful states.

    Parameters
    ----------
    states : ndarray of int64
        The states that some tree reaches and some context observes.
    gram : GramMatrices
        Over those states; the one of contexts for α divided by `unit`.
    radius : float
        Spectral radius ρ(E) of the Gram iteration.
    unit : float
        A power of two, 1 unless squares of α would leave the range of numbers.
    """

    states: np.ndarray
    gram: GramMatrices
    radius: float
    unit: float


def useful_states(alpha, tensors, omega):
    """States that some tree gives weight to and some context observes.

    Decided by the pattern of non-zero weights.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensors : sequence of tensors
        Transition tensors.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.

    Returns
    -------
    ndarray of int64
    """
    productive = (omega != 0).any(axis=0)
    grown = True
    while grown:
        reached = productive.copy()
        for tensor in tensors:
            reached |= tensor.above(reached)
        grown = reached.sum() > productive.sum()
        productive = reached
    useful = (alpha != 0) & productive
    grown = True
    while grown:
        reached = useful.copy()
        for tensor in tensors:
            reached |= tensor.beneath(reached, productive)
        grown = reached.sum() > useful.sum()
        useful = reached
    return np.flatnonzero(useful)


def analyse(wta):
    """Solve for the Gram matrices of an automaton, without its useless states.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    Analysis

    Raises
    ------
    NotStronglyConvergentError
        If the sums over all trees diverge.
    """
    states = useful_states(wta.alpha, wta.tensors, wta.omega_matrix)
    if len(states) == 0:
        none = np.zeros((0, 0))
        return Analysis(states, GramMatrices(none, none), 0.0, 1.0)
    alpha, tensors, omega = restricted(wta, states)
    tree, radius = tree_gram(tensors, omega)
    unit = unit_of(wta)
    context = context_gram(tensors, alpha / unit, tree)
    return Analysis(states, GramMatrices(context, tree), radius, unit)


def unit_of(wta):
    """Power of two in units of which values are squared."""
    return 2.0 ** exponent_of(wta.alpha)


def restricted(wta, states):
    """Weights of an automaton over some of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.
    states : ndarray of int64
        The states to keep, in order.

    Returns
    -------
    alpha : ndarray of float64
    tensors : list of tensors
    omega : ndarray of float64
    """
    tensors = wta.tensors
    if len(states) < wta.n_states:
        tensors = [t.restricted(states) for t in tensors]
    return wta.alpha[states], tensors, np.ascontiguousarray(wta.omega_matrix[:, states])


def in_ordinary_units(wta):
    """The same automaton with weights of words whose squares are in range.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    wta : WTA
        ⟨cα, cT, {ω_σ / c}⟩, the given one where c = 1.
    c : float
        A power of two.
    """
    sizes = np.abs(wta.omega_matrix).max(axis=0)
    if not sizes.any():
        return wta, 1.0
    # The middle of large and small states, so that neither leaves the range.
    middle = np.sqrt(sizes.max()) * np.sqrt(sizes[sizes > 0].min())
    c = 2.0 ** exponent_of(middle)
    if c == 1:
        return wta, 1.0

    def scaled():
        tensors = [t.scaled(c) for t in wta.tensors]
        return wta._derived(wta.alpha * c, tensors, wta.omega_matrix / c)

    return wta._cached("ordinary", scaled), c


def canonical(wta):
    """The automaton itself, or its minimum where only hidden states diverge.

    A subspace of states that no tree reaches, or no context observes, may diverge
    while f is fine; trimming single states does not see it in a general basis.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    WTA
        Has Gram matrices.

    Raises
    ------
    NotStronglyConvergentError
        If f itself diverges.
    """
    wta, _ = in_ordinary_units(wta)
    try:
        wta.analysis()
    except NotStronglyConvergentError:
        smaller = reduced(wta)
        if smaller is wta:
            raise
        smaller.analysis()
        return smaller
    return wta


def reduced(wta):
    """Find the smallest automaton of the same function, in terms of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    WTA
        The given one if it is minimal.
    """
    small = reduction(wta.alpha, wta.tensors, wta.omega_matrix)
    if small.rank == 0:
        return _zero(wta)
    return wta if small.rank == wta.n_states else _changed(wta, *small)


def balanced(wta, rank_tol):
    """Balanced factors of the Hankel matrix, over the useful states.

    Parameters
    ----------
    wta : WTA
        The automaton.
    rank_tol : float or None
        Share of the largest singular value that counts as zero.

    Returns
    -------
    states : ndarray of int64
    balance : Balance or None
        None for the automaton of the zero function.
    """
    states, gram, _, unit = wta.analysis()
    small = _useful_part(wta)
    if small.rank == 0:
        return states, None
    factors = balance(
        small.basis.T @ gram.context @ small.basis,
        small.dual.T @ gram.tree @ small.dual,
        rank_tol,
    )
    factors = factors._replace(
        singular_values=unit * factors.singular_values,
        tree_root=small.basis @ factors.tree_root,
        context_root=small.dual @ (unit * factors.context_root),
    )
    return states, factors if len(factors.singular_values) else None


def _useful_part(wta):
    """Exact reduction of the useful states; found once."""

    def find():
        return reduction(*restricted(wta, wta.analysis().states))

    return wta._cached("reduction", find)


def truncated(wta, n_states, rank_tol):
    """Truncate the singular value tree automaton, without ever building it whole.

    Parameters
    ----------
    wta : WTA
        The automaton.
    n_states : int or None
        Number of states to keep; all of the rank where None.
    rank_tol : float or None
        Share of the largest singular value that counts as zero.

    Returns
    -------
    WTA
    """
    states, factors = balanced(wta, rank_tol)
    if factors is None:
        return _zero(wta)
    rank = len(factors.singular_values)
    basis, dual = factors.bases(rank if n_states is None else min(n_states, rank))
    return _changed(wta, basis, dual, states)


def _changed(wta, basis, dual, states=None):
    """The automaton ⟨Bᵀα, T(D, B, B), {Dᵀω_σ}⟩ over some of the states."""
    if states is None:
        states = np.arange(wta.n_states)
    alpha, tensors, omega = restricted(wta, states)
    return wta._derived(
        basis.T @ alpha, [_project(t, basis, dual) for t in tensors], omega @ dual
    )


def _project(tensor, basis, dual):
    new = tensor.project(dual, basis, basis)
    if new.kind == "cp" and 3 * new.rank > new.n**2:
        return DenseTensor(new.to_dense())
    return new


def _zero(wta):
    empty = np.zeros(0, dtype=np.int32)
    tensors = [SparseTensor(empty, empty, empty, np.zeros(0), 1) for _ in wta.tensors]
    return wta._derived(np.zeros(1), tensors, np.zeros((len(wta.words), 1)))


def exact_minimum(wta, rank_tol):
    """Smallest automaton of the same function, also of divergent ones.

    Parameters
    ----------
    wta : WTA
        The automaton.
    rank_tol : float or None
        Share of the largest singular value that counts as zero.

    Returns
    -------
    WTA

    Notes
    -----
    f_γ(t) = γ^size(t) f(t) has the same rank as f and converges for a small enough
    γ, so it is minimised in place of a divergent f. So it is where f alone does not
    show all states: transitions may be so small that the values of large trees are
    lost beside those of small ones.
    """
    small, rank = _minimum(wta, 1.0, rank_tol)
    if small.n_states < rank and not rank_tol:
        gamma = unit_of_gamma(wta.tensors, wta.omega_matrix)
        other, _ = _minimum(wta, gamma, rank_tol)
        return max(small, other, key=lambda found: found.n_states)
    return small


def _minimum(wta, gamma, rank_tol):
    """Minimum by the largest γ that converges of those tried, and the exact rank."""
    least, hidden = gamma * 1e-150, True
    while True:
        try:
            weighted = canonical(wta.reweight(gamma))
            small = truncated(weighted, None, rank_tol)
            return small.reweight(1 / gamma), _useful_part(weighted).rank
        except NotStronglyConvergentError:
            if hidden:
                # Hidden states may diverge where f does not.
                wta, hidden = reduced(wta), False
            gamma /= 2
            if gamma < least:
                raise


def unit_of_gamma(tensors, omega):
    """Size of an inner node's weight that makes up for weights far from 1.

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
    Weights are taken in units of each state, which are those of its largest word, or of
    the smallest trees that reach it.
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
