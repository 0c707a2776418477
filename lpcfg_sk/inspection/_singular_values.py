import numpy as np

from lpcfg_sk.inspection._displays import Display, fitted_learner

__all__ = ["SingularValueDisplay"]


class SingularValueDisplay(Display):
    """Singular values of each nonterminal, or of an automaton.

    They say how many latent states the data supports: where the curve has fallen to
    the noise, further states learn nothing.

    Parameters
    ----------
    singular_values : dict of str to ndarray
        Falling values by name.

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
            Which nonterminals; those with the most values where None.
        most : int, default=8
            How many of them at most.
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
            ranked = sorted(values, key=lambda a: (-len(values[a]), -values[a][0], a))
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
