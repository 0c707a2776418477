import sys
import time
import warnings
from itertools import islice

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed

from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.metrics import bootstrap_ci, paired_bootstrap
from lpcfg_sk.treebank import check_treebank, concatenate

__all__ = ["compare"]

_DECIMALS = {
    "f1": 2,
    "low": 2,
    "high": 2,
    "p_value": 4,
    "perplexity": 2,
    "fit_time": 3,
    "parse_time": 3,
    "sentences_per_second": 1,
    "parameters": 0,
    "iterations": 1,
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
        Number of fits at the same time, each in a process of its own, as in
        ``GridSearchCV``. Only the times depend on it.
    verbose : int, default=0
        Whether to say on standard error which parser is at work.
    random_state : int, RandomState instance or None, default=0
        Source of the resampling.

    Returns
    -------
    table : DataFrame
        One row an estimator, indexed by name: ``f1`` in percent with its interval
        ``low`` and ``high``; ``p_value`` of the difference to the first row by paired
        bootstrap; ``failures``, sentences without a parse; ``perplexity`` a word of the
        other sentences, where the grammar is probabilistic; ``fit_time`` and
        ``parse_time``, seconds a fold; ``sentences_per_second`` of parsing; the number
        of ``parameters``, and of ``iterations`` where there are any. Numbers are
        rounded to what is worth printing; ``table.to_markdown()``,
        ``table.to_latex()`` and :class:`ComparisonDisplay` export and draw them.

    Notes
    -----
    Perplexities are those of the words that the models see (rare words are classes) and
    are comparable between rows with the same preprocessing only. The first fit of a
    process also compiles kernels; its time says so.

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
    found = iter(Parallel(n_jobs=n_jobs)(delayed(_measure)(*task) for task in tasks))
    rows, first = {}, None
    for name in estimators:
        measured = list(islice(found, len(parts)))
        predicted = concatenate([m.pop("predicted") for m in measured])
        rows[name] = _row(gold, predicted, measured, confidence, random_state)
        if first is None:
            first = predicted
        else:
            rows[name]["p_value"] = paired_bootstrap(
                gold, predicted, first, random_state=random_state
            ).p_value
    table = pd.DataFrame.from_dict(rows, orient="index")
    order = ["f1", "low", "high", "p_value", "failures", "perplexity", "fit_time"]
    order += ["parse_time", "sentences_per_second", "parameters", "iterations"]
    table = table.reindex(columns=order).round(_DECIMALS)
    table.index.name = "model"
    whole = {"failures": "Int64", "parameters": "Int64"}
    return table.astype(whole)


def _tasks(estimators, parts, verbose):
    for name, estimator in estimators.items():
        for number, (fit, held) in enumerate(parts, start=1):
            if verbose:
                sys.stderr.write(f"compare: {name}, {number} of {len(parts)}\n")
            yield estimator, fit, held


def _measure(estimator, fit, held):
    model = clone(estimator)
    begin = time.perf_counter()
    model.fit(fit)
    fitted = time.perf_counter()
    with warnings.catch_warnings():
        # Counted in a column of the table.
        warnings.simplefilter("ignore", ParseFailureWarning)
        predicted = model.predict(held)
    parsed = time.perf_counter()
    learner = model[-1] if isinstance(model, Pipeline) else model
    seen = model[:-1].transform(held) if isinstance(model, Pipeline) else held
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
        "p_value": np.nan,
        "failures": total["failures"].sum(),
        "perplexity": np.exp(-total["log_prob"].sum() / n_tokens),
        "fit_time": total["fit_time"].mean(),
        "parse_time": total["parse_time"].mean(),
        "sentences_per_second": len(gold) / total["parse_time"].sum(),
        "parameters": total["parameters"].mean(),
        "iterations": total["iterations"].mean(),
    }
