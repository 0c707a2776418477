"""Base of the displays. Matplotlib is optional, and imported when it is used."""

from sklearn.pipeline import Pipeline
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted


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
        # A caller who made the axis logarithmic chose its ticks, too.
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
