"""Results of comparisons and of searches: tables and their pictures."""

import sys
import time
import warnings
from collections.abc import Mapping
from itertools import islice
from numbers import Integral, Real

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.inspection._displays import Display, learner_and_input
from lpcfg_sk.metrics import bootstrap_ci, paired_bootstrap
from lpcfg_sk.treebank import check_treebank, concatenate

# Columns of the table, and how many decimals are worth printing.
_DECIMALS = {
    "f1": 2,
    "low": 2,
    "high": 2,
    "p_value": 4,
    "failures": 0,
    "perplexity": 2,
    "fit_time": 3,
    "parse_time": 3,
    "sentences_per_second": 1,
    "parameters": 0,
    "iterations": 1,
}

_MEANS = ("fit_time", "parse_time", "parameters", "iterations")
#: Columns of a table that are not parameters, and their names in ``cv_results_``.
_RESULTS = {
    "mean_score": "mean_test_score",
    "std_score": "std_test_score",
    "fit_time": "mean_fit_time",
    "score_time": "mean_score_time",
    "iteration": "iter",
    "rank": "rank_test_score",
}


def compare(
    estimators,
    treebank,
    *,
    cv=3,
    test=None,
    confidence=0.95,
    n_jobs=None,
    verbose=0,
    random_state=0,
):
    """Compare parsers on the same trees.

    Parameters
    ----------
    estimators : dict of str to estimator
        Parsers by name; pipelines as :func:`make_parser` gives them.
    treebank : Treebank
        Trees to train on, and to test on where `test` is None.
    cv : int or cross-validation generator, default=3
        How to cut the treebank; every tree is parsed once by a parser that has not
        seen it.
    test : Treebank, default=None
        Trees to test on instead of cross-validation.
    confidence : float, default=0.95
        Confidence of the interval of the F1, by resampling sentences.
    n_jobs : int, default=None
        Number of fits at the same time, each in its own process, as in
        ``GridSearchCV``. Only the times depend on it.
    verbose : int, default=0
        Whether to write to standard error which parser is being fitted.
    random_state : int, RandomState instance or None, default=0
        Source of the resampling.

    Returns
    -------
    table : DataFrame
        One row per estimator, indexed by name: ``f1`` in percent with its interval
        ``low`` and ``high``; ``p_value`` of the difference to the first row by paired
        bootstrap; ``failures``, sentences without a parse; ``perplexity`` per word of
        the other sentences, where the grammar is probabilistic; ``fit_time`` and
        ``parse_time``, seconds per fold; ``sentences_per_second`` of parsing; the
        number of ``parameters``, and of ``iterations`` where there are any. Numbers are
        rounded to what is worth printing; ``table.to_markdown()``,
        ``table.to_latex()`` and :class:`ComparisonDisplay` export and draw them.

    Notes
    -----
    Perplexities are those of the words that the models see (rare words are classes) and
    are comparable only between rows with the same preprocessing. The time of the first
    fit of a process includes the compilation of kernels.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> from lpcfg_sk.inspection import compare
    >>> table = compare({"PCFG": make_parser(PCFG())}, load_toy(200), cv=2)
    >>> table.index.tolist()
    ['PCFG']
    """
    if not isinstance(estimators, Mapping):
        raise TypeError(
            "compare takes a dict of parsers by name, such as "
            "{'pcfg': make_parser(PCFG())}, got a "
            f"{type(estimators).__name__}"
        )
    treebank = check_treebank(treebank, estimator="compare", parsed=True)
    if test is None:
        folds = list(check_cv(cv).split(treebank))
        parts = [(treebank[fit], treebank[held]) for fit, held in folds]
    else:
        test = check_treebank(test, estimator="compare", parsed=True)
        parts = [(treebank, test)]
    gold = concatenate([held for _, held in parts])
    tasks = _tasks(estimators, parts, verbose)
    results = iter(Parallel(n_jobs=n_jobs)(delayed(_measure)(*task) for task in tasks))
    rows, first = {}, None
    for name in estimators:
        measured = list(islice(results, len(parts)))
        predicted = concatenate([m.pop("predicted") for m in measured])
        rows[name] = _row(gold, predicted, measured, confidence, random_state)
        if first is None:
            first = predicted
        else:
            rows[name]["p_value"] = paired_bootstrap(
                gold, predicted, first, random_state=random_state
            ).p_value
    table = pd.DataFrame.from_dict(rows, orient="index")
    table = table.reindex(columns=list(_DECIMALS)).round(_DECIMALS)
    table.index.name = "model"
    return table.astype({"failures": "Int64", "parameters": "Int64"})


def _tasks(estimators, parts, verbose):
    for name, estimator in estimators.items():
        for fold, (fit, held) in enumerate(parts, start=1):
            if verbose:
                sys.stderr.write(f"compare: {name}, {fold} of {len(parts)}\n")
            yield estimator, fit, held


def _measure(estimator, fit, held):
    model = clone(estimator)
    begin = time.perf_counter()
    model.fit(fit)
    fitted = time.perf_counter()
    with warnings.catch_warnings():
        # Failures are counted in a column of the table.
        warnings.simplefilter("ignore", ParseFailureWarning)
        predicted = model.predict(held)
    parsed = time.perf_counter()
    learner, seen = learner_and_input(model, held)
    grammar = getattr(learner, "grammar_", None)
    log_prob, n_tokens, failures = np.nan, 0, np.nan
    if getattr(grammar, "is_probabilistic", False):
        log_probs = learner.sentence_log_prob(seen)
        has_parse = np.isfinite(log_probs)
        failures = (~has_parse).sum()
        log_prob = float(log_probs[has_parse].sum())
        n_tokens = int(held.lengths[has_parse].sum())
    return {
        "predicted": predicted,
        "fit_time": fitted - begin,
        "parse_time": parsed - fitted,
        "log_prob": log_prob,
        "n_tokens": n_tokens,
        "failures": failures,
        "parameters": getattr(grammar, "n_parameters", np.nan),
        "iterations": getattr(learner, "n_iter_", np.nan),
    }


def _row(gold, predicted, measured, confidence, random_state):
    interval = bootstrap_ci(
        gold, predicted, confidence=confidence, random_state=random_state
    )
    total = {key: np.array([m[key] for m in measured], float) for key in measured[0]}
    n_tokens = max(1.0, total["n_tokens"].sum())
    return {
        "f1": 100 * interval.estimate,
        "low": 100 * interval.low,
        "high": 100 * interval.high,
        "failures": total["failures"].sum(),
        "perplexity": np.exp(-total["log_prob"].sum() / n_tokens),
        "sentences_per_second": len(gold) / total["parse_time"].sum(),
        **{key: total[key].mean() for key in _MEANS},
    }


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
            "expected a fitted search such as GridSearchCV, got "
            f"{type(search).__name__}"
        )
    results = search.cv_results_
    names = [n.removeprefix("param_") for n in results if n.startswith("param_")]
    # Not from the arrays of cv_results_, in which integers beside floats are floats.
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
