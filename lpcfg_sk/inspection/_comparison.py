import numpy as np

from lpcfg_sk.inspection._compare import compare
from lpcfg_sk.inspection._displays import Display

__all__ = ["ComparisonDisplay"]


class ComparisonDisplay(Display):
    """F1 of several parsers with confidence intervals.

    Parameters
    ----------
    table : DataFrame
        What :func:`compare` returned.

    Attributes
    ----------
    container_ : matplotlib ErrorbarContainer
        Points and intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from lpcfg_sk.inspection import ComparisonDisplay
    >>> table = pd.DataFrame(
    ...     {"f1": [80.0, 88.0], "low": [78.0, 86.0], "high": [82.0, 89.0]},
    ...     index=["PCFG", "Spectral"],
    ... )
    >>> ComparisonDisplay(table).plot().ax_.get_xlabel()
    'F1'
    """

    def __init__(self, table):
        self.table = table

    @classmethod
    def from_estimators(cls, estimators, treebank, *, ax=None, **kwargs):
        """Compare parsers and draw the result.

        Parameters
        ----------
        estimators : dict of str to estimator
            Parsers by name.
        treebank : Treebank
            Trees to train on.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :func:`compare`.

        Returns
        -------
        display : ComparisonDisplay
        """
        return cls(compare(estimators, treebank, **kwargs)).plot(ax)

    def plot(self, ax=None, **kwargs):
        """Draw a point and an interval for each parser, the first at the top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : ComparisonDisplay
        """
        table = self.table
        ax = self._axes(ax, figsize=(6.4, 1.2 + 0.4 * len(table)))
        where = np.arange(len(table))
        reach = [table["f1"] - table["low"], table["high"] - table["f1"]]
        options = {"fmt": "o", "capsize": 4, **kwargs}
        self.container_ = ax.errorbar(table["f1"], where, xerr=reach, **options)
        ax.set_yticks(where, table.index)
        ax.set_ylim(len(table) - 0.5, -0.5)
        ax.grid(axis="x", color="0.9")
        ax.set(xlabel="F1")
        return self
