import numpy as np

from lpcfg_sk.inspection._displays import Display, fitted_learner

__all__ = ["ConvergenceDisplay"]

_CURVES = {
    "lower_bounds_": "mean log likelihood",
    "log_losses_": "log-loss",
}


class ConvergenceDisplay(Display):
    """Objective of an iterative learner against its iterations.

    Parameters
    ----------
    values : array-like of float
        Objective before each iteration, and at the end.
    name : str
        What the values are.
    chosen : int, default=None
        Number of iterations that held-out data chose, where more were run.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> from lpcfg_sk.inspection import ConvergenceDisplay
    >>> display = ConvergenceDisplay([3.0, 2.0, 1.9], "log-loss")
    >>> display.plot().ax_.get_xlabel()
    'iteration'
    """

    def __init__(self, values, name, chosen=None):
        self.values = np.asarray(values, dtype=float)
        self.name = name
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Draw the curve of a fitted learner.

        Parameters
        ----------
        estimator : EMLPCFG, MarginEMPCFG, AggregateMarkovLM, or a pipeline of one
            Fitted estimator with ``lower_bounds_`` or ``log_losses_``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        learner = fitted_learner(estimator, _CURVES, cls.__name__)
        attribute = next(name for name in _CURVES if hasattr(learner, name))
        values = getattr(learner, attribute)
        # AggregateMarkovLM keeps the iterations after the one that X_val chose.
        chosen = learner.n_iter_ if learner.n_iter_ < len(values) - 1 else None
        return cls(values, _CURVES[attribute], chosen).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ConvergenceDisplay
        """
        ax = self._axes(ax)
        options = {"marker": "o", "markersize": 3, **kwargs}
        (self.line_,) = ax.plot(np.arange(len(self.values)), self.values, **options)
        if self.chosen is not None:
            ax.axvline(self.chosen, color="0.6", linestyle=":", label="chosen")
            ax.legend(fontsize="small")
        ax.set(xlabel="iteration", ylabel=self.name)
        self._whole_ticks()
        return self
