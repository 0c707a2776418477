"""Scores of trees by their brackets, scores of models, and scorers of both."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from lpcfg_sk._kernels._brackets_match import (
    GOLD,
    LENGTH,
    MATCH,
    MATCHED,
    NO_BRACKET,
    TEST,
)
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.metrics._alignment import align_treebanks
from lpcfg_sk.treebank import Treebank, check_sample_weight

_ZERO = ("inf", "skip")


class BracketCounts(NamedTuple):
    """Numbers of brackets, one entry per sentence.

    Attributes
    ----------
    matched, gold, test : ndarray of int64, shape (n_sentences,)
        Brackets that both trees have, brackets of the gold tree and of the
        predicted tree.

    Examples
    --------
    >>> from lpcfg_sk.metrics import bracket_counts
    >>> trees = ["(S (NP (PRP I)) (VP (VBP am)))"]
    >>> bracket_counts(trees, trees).matched
    array([3])
    """

    matched: np.ndarray
    gold: np.ndarray
    test: np.ndarray


def bracket_counts(gold, predicted, params="collins"):
    """Count the brackets of each sentence: matched, gold, predicted.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order; every gold row has a tree.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`.

    Returns
    -------
    counts : BracketCounts
        Named tuple of three arrays. Unlike in :func:`parseval`, a sentence without a
        parse, or whose words differ, still has its gold and predicted brackets, and
        none of them match.

    Examples
    --------
    >>> from lpcfg_sk.metrics import bracket_counts
    >>> gold = ["(S (NP (PRP I)) (VP (VBP am)))", "(S (VP (VB go)))"]
    >>> predicted = ["(S (NP (PRP I)) (XP (VBP am)))", ["go"]]
    >>> for array in bracket_counts(gold, predicted):
    ...     print(array)
    [2 0]
    [3 2]
    [3 0]
    """
    counts = align_treebanks(gold, predicted, params, parsed=True).counts
    return BracketCounts(counts[:, MATCHED], counts[:, GOLD], counts[:, TEST])


def f1_score(gold, predicted, *, params="collins", sample_weight=None):
    """Labelled F1 of brackets over all sentences, between 0 and 1.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order; every gold row has a tree.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`.
    sample_weight : array-like of float, shape (n_sentences,), default=None
        How often each sentence counts.

    Returns
    -------
    f1 : float
        ``2 * matched / (gold + predicted)``, summed over sentences; 0 where there
        are no brackets.

    Notes
    -----
    The root does not count, see :func:`parseval`. Where every sentence has a parse over
    the right words this is the F-measure of EVALB (in percent there). EVALB leaves the
    other sentences out, which rewards a parser for giving up; here their gold brackets
    count as missed and what was predicted for them as wrong.

    Examples
    --------
    >>> from lpcfg_sk.metrics import f1_score
    >>> gold = ["(S (NP (PRP I)) (VP (VBP am)))", "(S (VP (VB go)))"]
    >>> f1_score(gold, gold)
    1.0
    >>> f1_score(gold, [gold[0], ["go"]])
    0.75
    """
    counts = bracket_counts(gold, predicted, params)
    weight = check_sample_weight(sample_weight, counts.gold)
    matched, gold, test = (float(weight @ column) for column in counts)
    return 2.0 * matched / (gold + test) if gold + test > 0 else 0.0


def label_report(gold, predicted, params="collins"):
    """Precision, recall and F1 of brackets by label.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order; every gold row has a tree.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`.

    Returns
    -------
    report : DataFrame
        Index ``label`` (without function tags), frequent ones first; columns
        ``precision``, ``recall``, ``f1`` (in percent, 0 for 0/0), ``support`` (gold
        brackets) and ``predicted`` (predicted brackets). Sentences that failed count
        as in :func:`bracket_counts`.

    Notes
    -----
    Two labels that count as equal may match each other: a predicted ADVP on a gold
    PRT is right for the precision of ADVP and for the recall of PRT.

    Examples
    --------
    >>> from lpcfg_sk.metrics import label_report
    >>> label_report(["(S (NP (PRP I)) (VP (VBP am)))"],
    ...              ["(S (NP (PRP I)) (NP (VBP am)))"])
           precision  recall          f1  support  predicted
    label
    NP          50.0   100.0   66.666667        1          2
    S          100.0   100.0  100.000000        1          1
    VP           0.0     0.0    0.000000        1          0
    """
    alignment = align_treebanks(gold, predicted, params, parsed=True)
    _, gold_state, test_state, gold_name, test_name, names = alignment

    def count(chosen):
        return np.bincount(chosen, minlength=len(names))

    report = _rates(
        count(gold_name[gold_state == MATCH]),
        count(gold_name[gold_state != NO_BRACKET]),
        count(test_name[test_state == MATCH]),
        count(test_name[test_state != NO_BRACKET]),
    )
    report.index = pd.Index(names, name="label", dtype=object)
    report = report[(report["support"] > 0) | (report["predicted"] > 0)]
    order = np.lexsort((report.index, -report["predicted"], -report["support"]))
    return report.iloc[order]


def _rates(recalled, gold, right, test):
    precision = np.divide(100 * right, test, out=np.zeros(len(test)), where=test > 0)
    recall = np.divide(100 * recalled, gold, out=np.zeros(len(gold)), where=gold > 0)
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=0.0 * both, where=both > 0)
    columns = {"precision": precision, "recall": recall, "f1": f1}
    return pd.DataFrame({**columns, "support": gold, "predicted": test})


def length_report(gold, predicted, params="collins", *, edges=(10, 20, 30, 40)):
    """Precision, recall and F1 of brackets by length of the sentence.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order; every gold row has a tree.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`; they also say which words count for length.
    edges : sequence of int, default=(10, 20, 30, 40)
        Greatest length of each group but the last, ascending.

    Returns
    -------
    report : DataFrame
        Index ``length`` (``1-10``, ``11-20``, ..., ``41-``); columns ``n_sentences``
        and those of :func:`label_report`. Sentences that failed count as in
        :func:`bracket_counts`.

    Examples
    --------
    >>> from lpcfg_sk.metrics import length_report
    >>> gold = ["(S (NP (PRP I)) (VP (VBP am)))", "(S (VP (VB go)))"]
    >>> length_report(gold, gold, edges=[1])[["n_sentences", "f1", "support"]]
            n_sentences     f1  support
    length
    0-1               1  100.0        2
    2-                1  100.0        3
    """
    edges = np.asarray(edges, dtype=np.int64)
    if edges.ndim != 1 or (np.diff(edges) <= 0).any() or (edges < 0).any():
        raise ValueError(f"edges must be ascending lengths, got {edges.tolist()}")
    counts = align_treebanks(gold, predicted, params, parsed=True).counts
    group = np.searchsorted(edges, counts[:, LENGTH])
    n_sentences, matched, n_gold, n_test = (
        np.bincount(group, weights, minlength=len(edges) + 1).astype(np.int64)
        for weights in (None, *(counts[:, c] for c in (MATCHED, GOLD, TEST)))
    )
    report = _rates(matched, n_gold, matched, n_test)
    report.insert(0, "n_sentences", n_sentences)
    low = [0, *(int(e) + 1 for e in edges)]
    high = [*map(str, edges.tolist()), ""]
    names = [f"{a}-{b}" for a, b in zip(low, high, strict=True)]
    report.index = pd.Index(names, name="length", dtype=object)
    return report


def parseval_scorer(estimator, X, y=None, *, params="collins", sample_weight=None):
    """Score a parser by labelled F1, as a ``scoring`` callable of scikit-learn.

    Parameters
    ----------
    estimator : fitted parser
        Has ``predict``.
    X : Treebank or iterable of trees
        Sentences to parse, and gold trees where `y` is None.
    y : Treebank or iterable of trees, default=None
        Gold trees.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`. ``functools.partial`` sets them for a search.
    sample_weight : array-like of float, shape (n_sentences,), default=None
        How often each sentence counts.

    Returns
    -------
    f1 : float
        :func:`f1_score` of the predictions; failures count.

    Examples
    --------
    >>> from lpcfg_sk.metrics import parseval_scorer
    >>> class Copycat:
    ...     def predict(self, X):
    ...         return X
    >>> parseval_scorer(Copycat(), ["(S (NP (PRP I)) (VP (VBP am)))"])
    1.0
    """
    gold = X if y is None else y
    return f1_score(
        gold, estimator.predict(X), params=params, sample_weight=sample_weight
    )


def log_likelihood_scorer(
    estimator,
    X,
    y=None,
    *,
    sample_weight=None,
    zero="inf",
    method="score_samples",
    mix=0.01,
):
    """Score a model by mean log probability, as a ``scoring`` callable.

    Parameters
    ----------
    estimator : fitted model
        Has ``score_samples``, the log probability of each row.
    X : Treebank or iterable of trees or sentences
        What to score.
    y : ignored
        For scikit-learn.
    sample_weight : array-like of float, shape (n_rows,), default=None
        How often each row counts.
    zero : {"inf", "skip", "mix"}, default="inf"
        Effect of a row of probability zero: "inf" makes the score minus infinity;
        "skip" leaves the row out of the mean, with a warning that counts such rows;
        "mix" adds the probability under the plain PCFG of the training trees (see
        Notes).
    method : {"score_samples", "sentence_log_prob"}, default="score_samples"
        Method of the model: the probability of a tree and its words, or of the words.
    mix : float, default=0.01
        Weight of the plain PCFG for ``zero="mix"``.

    Returns
    -------
    score : float
        Mean of the log probabilities. Minus infinity where no row is left.

    See Also
    --------
    SpectralLPCFG.mixture_log_prob : The log probabilities of ``zero="mix"``.

    Notes
    -----
    Spectral grammars give some trees and sentences values that are not positive, more
    of them with more states, so that neither "inf" nor "skip" compares numbers of
    states. "mix" does: it is the mean of log((1 − w) max(f, 0) + w p), with f the value
    under the model, p the probability under the plain PCFG of the same training trees,
    and w = `mix`. A value that is not positive counts as zero and costs about log(1/w)
    and what the states gain on that row. Rows without a tree under the plain PCFG, for
    instance with a rule that training does not have, are left out with a warning; they
    are the same whatever the number of states. With ``method="sentence_log_prob"``
    there are few of them.

    Examples
    --------
    >>> from lpcfg_sk.metrics import log_likelihood_scorer
    >>> class Uniform:
    ...     def score_samples(self, X):
    ...         return [-2.0] * len(X)
    >>> log_likelihood_scorer(Uniform(), [["a"], ["b"]])
    -2.0

    To choose the number of states of a spectral grammar by likelihood:

    >>> from functools import partial
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lpcfg_sk import SpectralLPCFG, make_parser
    >>> search = GridSearchCV(
    ...     make_parser(SpectralLPCFG()),
    ...     {"learner__m": [1, 2, 4]},
    ...     scoring=partial(
    ...         log_likelihood_scorer, zero="mix", method="sentence_log_prob"
    ...     ),
    ... )
    """
    log_prob = _check_log_prob(_log_probs(estimator, X, zero, method, mix))
    weight = check_sample_weight(sample_weight, log_prob)
    total, mass = _total(log_prob, weight, weight, "skip" if zero == "mix" else zero)
    return total / mass if mass > 0 else -np.inf


def _log_probs(estimator, X, zero, method, mix):
    """Log probability of each row, by the method that `zero` needs."""
    if zero != "mix" and hasattr(estimator, method):
        return getattr(estimator, method)(X)
    if isinstance(estimator, Pipeline):
        # A pipeline only has the methods that scikit-learn knows.
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    needed = "mixture_log_prob" if zero == "mix" else method
    if not hasattr(estimator, needed):
        raise TypeError(
            f"{type(estimator).__name__} has no method {needed!r}, which "
            f"log_likelihood_scorer(zero={zero!r}, method={method!r}) calls"
        )
    if zero == "mix":
        return estimator.mixture_log_prob(X, weight=mix, method=method)
    return getattr(estimator, method)(X)


def perplexity(log_prob, X, *, method="score_samples", sample_weight=None, zero="inf"):
    """Perplexity per token: ``exp(-sum of log probabilities / number of tokens)``.

    Parameters
    ----------
    log_prob : array-like of float, shape (n_rows,), or fitted model
        Natural log probability of each row, or a model to compute them with.
    X : Treebank, iterable of trees or token lists, or array of int
        The rows, or how many tokens each of them counts for. A model that also
        predicts the end of a sentence is compared fairly with others by the
        same token counts.
    method : str, default="score_samples"
        Method of the model: ``"score_samples"`` is the probability of a tree and its
        words, ``"sentence_log_prob"`` that of the words. Tokens of ``"score_samples"``
        are those of ``scored_tokens`` where the model has it: language models leave
        unknown words out, and count the end of a sentence where they predict it, so
        that this is their own ``perplexity(X)``.
    sample_weight : array-like of float, shape (n_rows,), default=None
        How often each row counts.
    zero : {"inf", "skip"}, default="inf"
        Effect of a row of probability zero: "inf" makes the perplexity infinite;
        "skip" leaves out the row and its tokens, with a warning that counts such rows.
        Perplexities that skip rows are not comparable between models.

    Returns
    -------
    perplexity : float
        Infinite where no row is left.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.metrics import perplexity
    >>> round(perplexity(np.log([0.25, 0.5]), [["a", "b"], ["c"]]), 6)
    2.0
    """
    if not hasattr(X, "__len__"):
        # Both the probabilities and the tokens are read from X.
        X = list(X)
    tokens = X
    if hasattr(log_prob, method):
        model = log_prob
        log_prob = getattr(model, method)(X)
        if method == "score_samples" and hasattr(model, "scored_tokens"):
            tokens = model.scored_tokens(X)
    elif hasattr(log_prob, "fit"):
        raise TypeError(f"{type(log_prob).__name__} has no method {method!r}")
    log_prob = _check_log_prob(log_prob)
    n_tokens = _token_counts(tokens)
    if n_tokens.shape != log_prob.shape:
        raise ValueError(
            f"{len(log_prob)} log probabilities for {len(n_tokens)} rows; expected one "
            "for each row"
        )
    weight = check_sample_weight(sample_weight, log_prob)
    total, mass = _total(log_prob, weight, weight * n_tokens, zero)
    with np.errstate(over="ignore"):
        return float(np.exp(-total / mass)) if mass > 0 else np.inf


def _token_counts(X):
    if isinstance(X, np.ndarray) and np.issubdtype(X.dtype, np.number):
        if X.ndim != 1 or not np.isfinite(X).all() or (X < 0).any():
            raise ValueError("token counts must be one non-negative number per row")
        return X.astype(np.float64)
    if isinstance(X, list) and all(isinstance(row, list | tuple) for row in X):
        return np.array([len(row) for row in X], dtype=np.float64)
    treebank = X if isinstance(X, Treebank) else Treebank(X)
    return treebank.lengths.astype(np.float64)


def _check_log_prob(log_prob):
    log_prob = np.asarray(log_prob, dtype=np.float64)
    if log_prob.ndim != 1:
        raise ValueError(
            f"log probabilities have shape {log_prob.shape}, expected one per row"
        )
    if np.isnan(log_prob).any() or (log_prob == np.inf).any():
        row = int(np.flatnonzero(~(log_prob < np.inf))[0])
        raise ValueError(
            f"log probability of row {row} is {log_prob[row]}; expected a number or "
            "minus infinity"
        )
    return log_prob


def _total(log_prob, weight, mass, zero):
    """Weighted sum of log probabilities, and of the mass of the rows in it."""
    if zero not in _ZERO:
        raise ValueError(f"zero must be one of {_ZERO}, got {zero!r}")
    impossible = np.isneginf(log_prob) & (weight > 0)
    if impossible.any():
        if zero == "inf":
            return -np.inf, float(mass.sum())
        warn_caller(
            f"{int(impossible.sum())} of {len(log_prob)} rows have probability zero "
            "and are left out",
            TreebankWarning,
        )
    counted = ~np.isneginf(log_prob)
    return float(weight[counted] @ log_prob[counted]), float(mass[counted].sum())
