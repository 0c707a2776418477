"""Results of a search over hyperparameters: a table and its picture."""

from numbers import Integral, Real

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.inspection._display import Display

#: Columns of a table that are not parameters, and their names in ``cv_results_``.
_RESULTS = {
    "mean_score": "mean_test_score",
    "std_score": "std_test_score",
    "fit_time": "mean_fit_time",
    "score_time": "mean_score_time",
    "iteration": "iter",
    "rank": "rank_test_score",
}


def results_table(search):
    """Tidy table of a search over hyperparameters.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or HalvingGridSearchCV
        A fitted search.

    Returns
    -------
    table : DataFrame
        One row per candidate, the best first: its parameters under their short names,
        mean and standard deviation of the score over the folds (of each score, where
        there are several), mean times in seconds, and the rank. Parameters keep their
        values: None and integers stay what they are, and ``pd.NA`` stands where a
        candidate does not set the parameter. A result with the name of a parameter is
        called as in ``cv_results_``, so ``rank_test_score`` beside a parameter `rank`.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lpcfg_sk import CFG, MarginEMPCFG
    >>> from lpcfg_sk.inspection import results_table
    >>> grammar = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
    >>> X = [["a", "c"], ["a", "a", "c"], ["c"], ["b", "c"]] * 3
    >>> margins = {"gamma": [0.01, 0.3]}
    >>> search = GridSearchCV(MarginEMPCFG(grammar), margins, cv=2).fit(X)
    >>> results_table(search)[["gamma", "mean_score", "rank"]].round(2)
       gamma  mean_score  rank
    0   0.30       -2.08     1
    1   0.01       -2.10     2
    """
    if not hasattr(search, "cv_results_"):
        check_is_fitted(search)
        raise TypeError(
            "results_table takes a fitted search such as GridSearchCV, got "
            f"{type(search).__name__}"
        )
    results = search.cv_results_
    names = [n.removeprefix("param_") for n in results if n.startswith("param_")]
    # The arrays of cv_results_ turn integers beside floats into floats.
    columns = {
        short: _column([params.get(name, pd.NA) for params in results["params"]])
        for name, short in zip(names, _short_names(names), strict=True)
    }
    prefix = "rank_test_"
    scores = [n.removeprefix(prefix) for n in results if n.startswith(prefix)]
    ranks = {}
    for column, name in _RESULTS.items():
        for score in scores if name.endswith("_test_score") else [None]:
            found = name.removesuffix("score") + score if score else name
            if found not in results:
                continue
            several = score is not None and len(scores) > 1
            own = f"{column}_{score}" if several else column
            own = found if own in columns else own
            columns[own] = results[found]
            if column == "rank":
                ranks[score] = own
    main = search.refit if search.refit in scores else scores[0]
    table = pd.DataFrame(columns)
    return table.sort_values(ranks[main], kind="stable", ignore_index=True)


def _column(values):
    """Return parameter values as a column that changes none of them."""
    kinds = {_kind(value) for value in values}
    is_plain = len(kinds) == 1 and object not in kinds
    return pd.Series(values, dtype=None if is_plain else object)


def _kind(value):
    if isinstance(value, bool | np.bool_):
        return bool
    kinds = ((Integral, int), (Real, float), (str, str))
    return next((kind for family, kind in kinds if isinstance(value, family)), object)


def _short_names(names):
    """Last part of each name, longer where two would be the same."""
    parts = [name.split("__") for name in names]
    for length in range(1, 1 + max((len(p) for p in parts), default=0)):
        short = ["__".join(p[-length:]) for p in parts]
        if len(set(short)) == len(short):
            return short
    return names


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
        columns = self.table.columns
        shown = {self.x, "mean_score", "std_score"}
        shown |= {name if name in columns else own for own, name in _RESULTS.items()}
        others = [c for c in columns if c not in shown]
        table = self.table.sort_values([*others, self.x], key=_sortable)
        if all(_kind(value) in (int, float) for value in table[self.x]):
            table[self.x] = pd.to_numeric(table[self.x])
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
    if all(_kind(value) in (int, float) for value in column):
        return pd.to_numeric(column)
    # Lists, names and None can only be ordered by their text.
    return column.astype(str)
