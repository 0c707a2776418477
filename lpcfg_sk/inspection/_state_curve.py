import numpy as np
import pandas as pd

from lpcfg_sk.inspection._displays import Display
from lpcfg_sk.inspection._results import results_table

__all__ = ["StateCurveDisplay"]


class StateCurveDisplay(Display):
    """Score against the number of latent states, with error bars.

    Parameters
    ----------
    table : DataFrame
        Columns ``mean_score``, ``std_score``, the parameter `x`, and perhaps others,
        each combination of which is a curve.
    x : str, default="m"
        The parameter on the axis.

    Attributes
    ----------
    containers_ : list of matplotlib ErrorbarContainer
        The curves.

    Examples
    --------
    >>> import pandas as pd
    >>> from lpcfg_sk.inspection import StateCurveDisplay
    >>> table = pd.DataFrame(
    ...     {"m": [2, 4], "mean_score": [0.7, 0.8], "std_score": [0.02, 0.01]}
    ... )
    >>> StateCurveDisplay(table).plot().ax_.get_xlabel()
    'm'
    """

    def __init__(self, table, x="m"):
        missing = {x, "mean_score", "std_score"} - set(table.columns)
        if missing:
            raise ValueError(f"the table has no columns {sorted(missing)}")
        self.table = table
        self.x = x

    @classmethod
    def from_estimator(cls, search, *, x="m", ax=None, **kwargs):
        """Draw the results of a fitted search.

        Parameters
        ----------
        search : GridSearchCV or like
            A fitted search over `x`, and perhaps other parameters.
        x : str, default="m"
            The parameter on the axis, by its short name.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : StateCurveDisplay
        """
        return cls(results_table(search), x).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw a curve for each setting of the other parameters.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : StateCurveDisplay
        """
        ax = self._axes(ax)
        shown = {self.x, "mean_score", "std_score", "fit_time", "score_time"}
        shown |= {"rank", "iteration"}
        others = [c for c in self.table.columns if c not in shown]
        table = self.table.sort_values([*others, self.x], key=_sortable)
        keys = table[others].astype(str).agg(", ".join, axis=1)
        groups = table.groupby(keys, sort=False) if others else [("", table)]
        numeric = pd.api.types.is_numeric_dtype(table[self.x])
        self.containers_ = []
        for key, part in groups:
            if numeric:
                where = part[self.x]
            else:
                where = np.arange(len(part))
                ax.set_xticks(where, [str(v) for v in part[self.x]])
            options = {"marker": "o", "capsize": 3, "label": key or None, **kwargs}
            self.containers_.append(
                ax.errorbar(where, part["mean_score"], part["std_score"], **options)
            )
        if others:
            ax.legend(title=", ".join(others), fontsize="small")
        if pd.api.types.is_integer_dtype(table[self.x]):
            self._whole_ticks()
        ax.set(xlabel=self.x, ylabel="mean score ± standard deviation of the folds")
        return self


def _sortable(column):
    if pd.api.types.is_numeric_dtype(column):
        return column
    # Lists, names and None among them have no order but that of their text.
    return column.astype(str)
