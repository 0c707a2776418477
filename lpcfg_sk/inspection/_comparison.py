"""Comparison of parsers on the same trees: a table and its picture."""

import sys
import time
import warnings
from itertools import islice

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.inspection._display import Display, learner_and_input
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
