"""Gram matrices of automata, solved once per automaton, and forms that have them."""

from functools import partial
from typing import NamedTuple

import numpy as np

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._gram_matrices import (
    GramMatrices,
    Recursion,
    context_gram,
    find_recursion,
    subcritical_radius,
    tree_sum,
)
from lpcfg_sk.automata._reduction import reduce_exactly, restrict
from lpcfg_sk.automata._tensors import scale_exponent
from lpcfg_sk.exceptions import NotStronglyConvergentError


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
        Whether it is known to be the sum over all trees without a check of ρ(E).
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
        Over those states; that of contexts belongs to α divided by `unit`.
    radius : float
        Spectral radius ρ(E) of the Gram iteration.
    unit : float
        A power of two, 1 unless squares of α would leave the range of numbers.
    """

    states: np.ndarray
    gram: GramMatrices
    radius: float
    unit: float


def useful_states(wta):
    """Find the states that some tree reaches and some context observes.

    Only the pattern of non-zero weights counts.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    ndarray of int64
    """
    words = (wta.omega_matrix != 0).any(axis=0)
    productive = _closure(words, [t.above for t in wta.tensors])
    steps = [partial(t.beneath, below=productive) for t in wta.tensors]
    return np.flatnonzero(_closure((wta.alpha != 0) & productive, steps))


def _closure(mask, steps):
    """Apply all steps to a mask of states and join the results until nothing is new."""
    while True:
        larger = np.logical_or.reduce([mask, *(step(mask) for step in steps)])
        if larger.sum() == mask.sum():
            return mask
        mask = larger


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
    in a general basis it is not seen by leaving out single states.

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

    Norms and inner products need no more than that, and the spectral radius and the
    Gram matrix of contexts take most of the time for dense transitions.

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
