"""Algorithm 1: expectations, then equation 22, until the loss falls no more."""

import logging
import warnings
from typing import NamedTuple

import numpy as np

from lpcfg_sk.cfg._binomials import BinomialChains
from lpcfg_sk.exceptions import ConvergenceWarning

__all__ = ["Run", "minimise"]

_LOGGER = logging.getLogger("lpcfg_sk.cfg")

# A log-loss may rise by rounding, never by more.
_ROUNDING = 1e-9


class Run(NamedTuple):
    """Where one start has ended.

    Attributes
    ----------
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules.
    binomials : tuple of ndarray of float64, shape (n_rules,)
        The links of the chains: probabilities to stop at a rule, and to go on.
    chains : BinomialChains
        Which rule is at which place.
    losses : list of float
        Log-loss before each iteration and at the end.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the loss fell by less than `tol`.
    """

    theta: np.ndarray
    binomials: tuple
    chains: BinomialChains
    losses: list
    n_iter: int
    converged: bool


def minimise(
    task, chains, theta, *, gamma=0.0, pseudo_count=0.0, max_iter, tol, verbose=0
):
    """Minimise the log-loss of a task from given rule probabilities.

    Parameters
    ----------
    task : Task
        Trees and sentences.
    chains : BinomialChains
        Order of the rules.
    theta : ndarray of float64, shape (n_rules,)
        Where to start.
    gamma : float, default=0.0
        The margin.
    pseudo_count : float, default=0.0
        Added to the count of each rule.
    max_iter : int
        Largest number of iterations.
    tol : float or None
        Stop when the log-loss falls by less than this; None never stops early.
    verbose : int, default=0
        Whether to report iterations through :mod:`logging`.

    Returns
    -------
    Run
    """
    binomials = chains.split(theta)
    if gamma > 0:
        binomials = chains.truncate(*binomials, gamma)
    # Without sentences the counts do not depend on theta: equation 22 solves it.
    converged = len(task.sentences) == 0
    if converged:
        binomials = chains.estimate(task.tree_counts, binomials, gamma, pseudo_count)
    losses = []
    n_iter = 0
    while True:
        theta = chains.join(*binomials)
        loss, counts = task.expectations(theta)
        losses.append(loss)
        if verbose:
            _LOGGER.info("iteration %d: log-loss %.6f", n_iter, loss)
        if converged or n_iter == max_iter:
            break
        if n_iter > 0:
            if pseudo_count == 0:
                _check_fall(*losses[-2:])
            if tol is not None and losses[-2] - loss < tol:
                converged = True
                break
        binomials = chains.estimate(counts, binomials, gamma, pseudo_count)
        n_iter += 1
    return Run(theta, binomials, chains, losses, n_iter, converged)


def _check_fall(before, after):
    if after > before + _ROUNDING * abs(before):
        warnings.warn(
            f"the log-loss rose from {before:.9g} to {after:.9g}",
            ConvergenceWarning,
            stacklevel=6,
        )
