"""One run of EM: from a starting point to a number of iterations or a fixed point."""

import warnings

from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.lpcfg._maximization import grammar_of_parameters, maximize

__all__ = ["EMRun"]


class EMRun:
    """EM on some trees.

    Parameters
    ----------
    index : RuleIndex or RuleInventory
        The rules of the trees.
    layout : Layout
        Where parameters lie.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    estimates : Estimates
        Where to start; belongs to the run from now on.
    counts : ExpectedCounts
        What counts the trees.
    smoothing : float
        See :func:`maximize`.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    lower_bounds : list of float
        Mean log likelihood of a tree before each iteration.
    """

    def __init__(self, index, layout, weight, estimates, counts, *, smoothing, n_jobs):
        self.index = index
        self.layout = layout
        self.weight = weight
        self.smoothing = smoothing
        self.n_jobs = n_jobs
        self.lower_bounds = []
        self._state = (estimates, None)
        self._counts = counts

    @property
    def estimates(self):
        """The current parameters."""
        return self._state[0]

    @property
    def totals(self):
        """Expected counts of the states, None before the first iteration."""
        return self._state[1]

    def step(self):
        """Do one iteration."""
        counts, log_likelihood, lost = self._counts(self.estimates, n_jobs=self.n_jobs)
        mass = self.weight.sum()
        if lost > 0:
            raise ValueError(
                f"Trees with {lost:g} of the weight {mass:g} have probability zero "
                "under the starting point; start from one that can generate them."
            )
        totals = maximize(
            self.index,
            self.layout,
            counts,
            parameters=self.estimates,
            smoothing=self.smoothing,
        )
        old = self.estimates
        # One assignment: an interrupt finds either the old or the new state.
        self._state = (counts, totals)
        self.lower_bounds.append(float(log_likelihood / mass))
        self._counts.recycle(old)
        if self.smoothing > 0 or len(self.lower_bounds) < 2:
            return
        before, now = self.lower_bounds[-2:]
        if now < before - 1e-9 * abs(before):
            warnings.warn(
                f"The likelihood fell by {before - now:.3g} in iteration "
                f"{len(self.lower_bounds) - 1}, which EM should never do; the "
                "parameters may have lost too many digits.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def grammar(self, alpha):
        """Return the grammar, with the lexicon smoothed by `alpha`."""
        return grammar_of_parameters(
            self.index,
            self.layout,
            self.estimates,
            self.totals,
            weight=self.weight,
            alpha=alpha,
        )
