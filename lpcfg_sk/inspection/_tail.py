from lpcfg_sk.bounds import tail_fit
from lpcfg_sk.inspection._displays import Display

__all__ = ["TailFitDisplay"]


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
        self.lines_ = [
            *ax.plot(
                points.index, points["frequency"], color="tab:red", label="treebank"
            ),
            *ax.plot(
                unseen.index,
                unseen,
                "o",
                markersize=3,
                color="tab:gray",
                label=f"held out, squared error {fit.squared_error:.1g}",
            ),
            *ax.plot(
                points.index,
                points["curve"],
                **{
                    "color": "tab:blue",
                    "label": f"${fit.c:.2f} · {fit.alpha:.2f}^l$",
                    **kwargs,
                },
            ),
        ]
        ax.set(xlabel="sentence length l", ylabel="frequency")
        ax.legend(fontsize="small")
        return self
