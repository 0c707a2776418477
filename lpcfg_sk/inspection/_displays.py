"""The base of the displays, and curves: convergence, singular values, lengths.

Matplotlib is optional, and imported when it is used.
"""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.bounds import tail_fit

_CURVES = {
    "lower_bounds_": "mean log likelihood",
    "log_losses_": "log-loss",
}


class Display:
    """Base of the displays: they hold data, `plot` draws it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    """

    _own_figure = None

    def _axes(self, ax, figsize=None):
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if self._own_figure is not None:
            # from_estimator has drawn already; plotting again replaces that figure.
            plt.close(self._own_figure)
            self._own_figure = None
        if ax is None:
            self._own_figure, ax = plt.subplots(figsize=figsize, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _whole_ticks(self):
        # If the caller made the axis logarithmic, its ticks are not changed.
        if self.ax_.get_xscale() == "linear":
            self.ax_.locator_params(axis="x", integer=True)


def fitted_learner(estimator, attributes, name):
    """Learner of an estimator or pipeline that has one of the fitted attributes."""
    learner = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    check_is_fitted(learner)
    if not any(hasattr(learner, attribute) for attribute in attributes):
        raise ValueError(
            f"{name} needs an estimator with {' or '.join(attributes)}, which "
            f"{type(learner).__name__} does not have"
        )
    return learner


def learner_and_input(estimator, X):
    """Learner of an estimator or pipeline, and X as the learner sees it."""
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X)
    return estimator, X


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


class SingularValueDisplay(Display):
    """Singular values of each nonterminal, or of an automaton.

    They show how many latent states the data supports: where the curve has fallen to
    the level of noise, further states learn nothing.

    Parameters
    ----------
    singular_values : dict of str to ndarray
        Decreasing singular values by name.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curves.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.inspection import SingularValueDisplay
    >>> display = SingularValueDisplay({"NP": np.array([1.0, 0.5, 0.1])})
    >>> display.plot().ax_.get_ylabel()
    'singular value'
    """

    def __init__(self, singular_values):
        self.singular_values = singular_values

    @classmethod
    def from_estimator(cls, estimator, *, nonterminals=None, most=8, ax=None, **kwargs):
        """Draw the values of a fitted estimator.

        Parameters
        ----------
        estimator : SpectralLPCFG, SVTAMinimizer, or a pipeline that ends in one
            Fitted estimator with ``singular_values_``.
        nonterminals : list of str, default=None
            Which nonterminals; the most frequent ones with several values where
            None.
        most : int, default=8
            Largest number of nonterminals to draw.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : SingularValueDisplay
        """
        learner = fitted_learner(estimator, ["singular_values_"], cls.__name__)
        values = learner.singular_values_
        if not isinstance(values, dict):
            return cls({type(learner).__name__: np.asarray(values)}).plot(ax, **kwargs)
        if nonterminals is None:
            counts = learner.counts_
            ranked = sorted(values, key=lambda a: (len(values[a]) < 2, -counts[a], a))
            nonterminals = ranked[:most]
        missing = [a for a in nonterminals if a not in values]
        if missing:
            raise ValueError(f"no singular values for {', '.join(missing)}")
        chosen = {a: np.asarray(values[a]) for a in nonterminals}
        return cls(chosen).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the curves on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.plot``.

        Returns
        -------
        display : SingularValueDisplay
        """
        ax = self._axes(ax)
        self.lines_ = []
        for name, values in self.singular_values.items():
            options = {"marker": "o", "markersize": 3, "label": name, **kwargs}
            self.lines_ += ax.plot(np.arange(1, len(values) + 1), values, **options)
        ax.set(xlabel="rank", ylabel="singular value", yscale="log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(fontsize="small", ncols=1 + len(self.lines_) // 6)
        return self


class TailFitDisplay(Display):
    """Tail of sentence lengths and the exponential curve fitted to it.

    Figure 1 of Cohen and Smith (2012).

    Parameters
    ----------
    fit : TailFit
        What :func:`~lpcfg_sk.bounds.tail_fit` returned.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Frequencies, held-out frequencies, curve.

    Examples
    --------
    >>> from lpcfg_sk.inspection import TailFitDisplay
    >>> sentences = [["a"] * l for l in range(1, 9) for _ in range(2 ** (9 - l))]
    >>> display = TailFitDisplay.from_treebank(sentences)
    >>> round(display.fit.alpha, 3)
    0.5
    """

    def __init__(self, fit):
        self.fit = fit

    @classmethod
    def from_treebank(cls, treebank, *, held_out=None, ax=None, **kwargs):
        """Fit and draw the tail of a treebank.

        Parameters
        ----------
        treebank : Treebank
            Sentences, with or without trees.
        held_out : Treebank, default=None
            New data; every second length where None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : TailFitDisplay
        """
        return cls(tail_fit(treebank, held_out=held_out)).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw frequencies over lengths, and the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.plot`` for the curve.

        Returns
        -------
        display : TailFitDisplay
        """
        ax = self._axes(ax)
        fit, points = self.fit, self.fit.points
        unseen = points["held_out"].dropna()
        held_out = {"markersize": 3, "color": "tab:gray"}
        held_out["label"] = f"held out, squared error {fit.squared_error:.1g}"
        formula = f"${fit.c:.2f} · {fit.alpha:.2f}^l$"
        curve = {"color": "tab:blue", "label": formula, **kwargs}
        self.lines_ = [
            *ax.plot(points["frequency"], color="tab:red", label="treebank"),
            *ax.plot(unseen, "o", **held_out),
            *ax.plot(points["curve"], **curve),
        ]
        ax.set(xlabel="sentence length l", ylabel="frequency")
        ax.legend(fontsize="small")
        return self
