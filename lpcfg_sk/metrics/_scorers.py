import warnings

import numpy as np

from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.metrics._scores import f1_score
from lpcfg_sk.treebank import Treebank, check_sample_weight

_ZERO = ("inf", "skip")


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


def log_likelihood_scorer(estimator, X, y=None, *, sample_weight=None, zero="inf"):
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
    zero : {"inf", "skip"}, default="inf"
        What a row of probability zero does: make the score minus infinity, or stay
        out of the mean with a warning that says how many did.

    Returns
    -------
    score : float
        Mean of ``estimator.score_samples(X)``. Minus infinity where no row is left.

    Examples
    --------
    >>> from lpcfg_sk.metrics import log_likelihood_scorer
    >>> class Uniform:
    ...     def score_samples(self, X):
    ...         return [-2.0] * len(X)
    >>> log_likelihood_scorer(Uniform(), [["a"], ["b"]])
    -2.0
    """
    log_prob = _check_log_prob(estimator.score_samples(X))
    weight = check_sample_weight(sample_weight, log_prob)
    total, mass = _total(log_prob, weight, weight, zero)
    return total / mass if mass > 0 else -np.inf


def perplexity(log_prob, X, *, method="score_samples", sample_weight=None, zero="inf"):
    """Perplexity a token: ``exp(-sum of log probabilities / number of tokens)``.

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
        What a row of probability zero does: make the perplexity infinite, or stay out
        with its tokens, with a warning that says how many did. Numbers that skip
        rows are not comparable between models.

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
        # both the probabilities and the tokens are read from it
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
            raise ValueError("token counts must be one non-negative number a row")
        return X.astype(np.float64)
    if isinstance(X, list) and all(isinstance(row, list | tuple) for row in X):
        return np.array([len(row) for row in X], dtype=np.float64)
    treebank = X if isinstance(X, Treebank) else Treebank(X)
    return treebank.lengths.astype(np.float64)


def _check_log_prob(log_prob):
    log_prob = np.asarray(log_prob, dtype=np.float64)
    if log_prob.ndim != 1:
        raise ValueError(
            f"log probabilities have shape {log_prob.shape}, expected one a row"
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
        warnings.warn(
            f"{int(impossible.sum())} of {len(log_prob)} rows have probability zero "
            "and are left out",
            TreebankWarning,
            stacklevel=3,
        )
    counted = ~np.isneginf(log_prob)
    return float(weight[counted] @ log_prob[counted]), float(mass[counted].sum())
