"""Bootstrap intervals and tests, by resampling sentences."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._brackets_match import STATUS, VALID
from lpcfg_sk.metrics._alignment import align_treebanks
from lpcfg_sk.metrics._parseval import COUNTS, is_parseval_frame

_METRICS = ("f1", "recall", "precision", "complete_match", "tag_accuracy")

#: Entries of a block of resampling weights; fixed, so that results do not depend on
#: the machine.
_BLOCK = 1 << 22


class BootstrapInterval(NamedTuple):
    """A score and its confidence interval.

    Attributes
    ----------
    estimate : float
        Score of the original sentences.
    low, high : float
        Ends of the interval.
    standard_error : float
        Standard deviation of the score over the resamples.

    Examples
    --------
    >>> from lpcfg_sk.metrics import bootstrap_ci
    >>> trees = ["(S (NP (PRP I)) (VP (VBP am)))"] * 20
    >>> bootstrap_ci(trees, trees, random_state=0).high
    1.0
    """

    estimate: float
    low: float
    high: float
    standard_error: float


class PairedBootstrap(NamedTuple):
    """Difference of two systems on the same sentences.

    Attributes
    ----------
    difference : float
        Score of the first system minus score of the second.
    low, high : float
        Ends of the confidence interval of the difference.
    p_value : float
        Two-sided: how often resampling alone gives a difference as large as this.

    Examples
    --------
    >>> from lpcfg_sk.metrics import paired_bootstrap
    >>> trees = ["(S (NP (PRP I)) (VP (VBP am)))"] * 20
    >>> paired_bootstrap(trees, trees, trees, random_state=0).p_value
    1.0
    """

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap_ci(
    gold,
    predicted,
    *,
    metric="f1",
    n_resamples=10_000,
    confidence=0.95,
    params="collins",
    random_state=None,
):
    """Percentile bootstrap interval of a score, over sentences.

    Parameters
    ----------
    gold : Treebank or iterable of trees, or None
        Gold trees; ignored where `predicted` is a result of :func:`parseval`.
    predicted : Treebank or iterable of trees, or DataFrame
        Predicted trees, among which sentences that failed count as in
        :func:`f1_score`, or a result of :func:`parseval`, of which only valid rows
        count, as in EVALB.
    metric : {"f1", "recall", "precision", "complete_match", "tag_accuracy"}, \
            default="f1"
        Score that is computed for each resample, between 0 and 1.
    n_resamples : int, default=10000
        Number of resamples.
    confidence : float, default=0.95
        Confidence level of the interval.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`; ignored for a result.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    interval : BootstrapInterval
        Named tuple ``(estimate, low, high, standard_error)``.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.

    Examples
    --------
    >>> from lpcfg_sk.metrics import bootstrap_ci
    >>> gold = ["(S (NP (PRP I)) (VP (VBP am)))", "(S (VP (VB go)))"] * 20
    >>> predicted = ["(S (NP (PRP I)) (XP (VBP am)))", "(S (VP (VB go)))"] * 20
    >>> interval = bootstrap_ci(gold, predicted, random_state=0)
    >>> interval.estimate
    0.8
    >>> interval.low < 0.8 < interval.high
    True
    """
    _check_settings(metric, n_resamples, confidence)
    sums = _sums(gold, predicted, metric, params)
    if len(sums) == 0:
        raise ValueError("bootstrap_ci needs at least one sentence, got none")
    scores = _score(_resample(sums, n_resamples, random_state))
    low, high = _percentiles(scores, confidence)
    estimate = _score(sums.sum(axis=0))
    return BootstrapInterval(float(estimate), low, high, float(scores.std(ddof=1)))


def paired_bootstrap(
    gold,
    predicted_a,
    predicted_b,
    *,
    metric="f1",
    n_resamples=10_000,
    confidence=0.95,
    params="collins",
    random_state=None,
):
    """Paired bootstrap test of two systems on the same sentences.

    Parameters
    ----------
    gold : Treebank or iterable of trees, or None
        Gold trees.
    predicted_a, predicted_b : Treebank or iterable of trees, or DataFrame
        What the systems predicted for the same sentences, or their results of
        :func:`parseval`; see :func:`bootstrap_ci`.
    metric : {"f1", "recall", "precision", "complete_match", "tag_accuracy"}, \
            default="f1"
        Score that is compared, between 0 and 1.
    n_resamples : int, default=10000
        Number of resamples.
    confidence : float, default=0.95
        Confidence level of the interval.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`; ignored for results.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    result : PairedBootstrap
        Named tuple ``(difference, low, high, p_value)``.

    Notes
    -----
    With the difference d of the systems and d* that of a resample, the p-value is
    ``(1 + #{|d* - d| >= |d|}) / (1 + n_resamples)``: the resampled differences are
    shifted to mean zero, as under the null hypothesis.

    References
    ----------
    Berg-Kirkpatrick, Burkett and Klein (2012), An Empirical Investigation of
    Statistical Significance in NLP, section 2.

    Examples
    --------
    >>> from lpcfg_sk.metrics import paired_bootstrap
    >>> gold = ["(S (NP (PRP I)) (VP (VBP am)))"] * 30
    >>> wrong = ["(S (NP (PRP I)) (XP (VBP am)))"] * 30
    >>> result = paired_bootstrap(gold, gold, wrong[:15] + gold[15:], random_state=0)
    >>> round(result.difference, 3), result.p_value < 0.01
    (0.167, True)
    """
    _check_settings(metric, n_resamples, confidence)
    one = _sums(gold, predicted_a, metric, params)
    two = _sums(gold, predicted_b, metric, params)
    if len(one) != len(two):
        raise ValueError(
            f"the systems have {len(one)} and {len(two)} sentences; a paired "
            "test needs the same sentences in the same order"
        )
    if len(one) == 0:
        raise ValueError("paired_bootstrap needs at least one sentence, got none")
    resampled = _resample(np.hstack([one, two]), n_resamples, random_state)
    differences = _score(resampled[:, :2]) - _score(resampled[:, 2:])
    difference = _score(one.sum(axis=0)) - _score(two.sum(axis=0))
    low, high = _percentiles(differences, confidence)
    # With the tolerance, ties count as ties whatever the order of summation.
    as_far = np.abs(differences - difference) >= np.abs(difference) - 1e-12
    p_value = (1 + int(as_far.sum())) / (1 + n_resamples)
    return PairedBootstrap(float(difference), low, high, p_value)


def _check_settings(metric, n_resamples, confidence):
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {_METRICS}, got {metric!r}")
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")


def _sums(gold, predicted, metric, params):
    """Numerator and denominator of the metric for each sentence."""
    if is_parseval_frame(predicted):
        numbers = {name: predicted[name].to_numpy() for name in COUNTS}
        valid = counted = predicted["status"].to_numpy() == VALID
    else:
        counts = align_treebanks(gold, predicted, params, parsed=True).counts
        numbers = {name: counts[:, column] for name, column in COUNTS.items()}
        valid = counts[:, STATUS] == VALID
        counted = np.ones(len(counts))
    matched, n_gold, n_test = (
        numbers[f"{side}_brackets"] for side in ("matched", "gold", "test")
    )
    complete = valid & (matched == n_gold) & (matched == n_test)
    sums = {
        "f1": (2 * matched, n_gold + n_test),
        "recall": (matched, n_gold),
        "precision": (matched, n_test),
        "complete_match": (complete, counted),
        "tag_accuracy": (numbers["correct_tags"], numbers["words"]),
    }
    return np.column_stack(sums[metric]).astype(np.float64)


def _resample(sums, n_resamples, random_state):
    """Column sums of each resample of the rows: a matrix of multiplicities @ sums."""
    n = len(sums)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    generator = np.random.default_rng(seed)
    resampled = np.empty((n_resamples, sums.shape[1]))
    step = max(1, _BLOCK // n)
    for begin in range(0, n_resamples, step):
        rows = min(step, n_resamples - begin)
        drawn = generator.integers(n, size=(rows, n), dtype=np.int64)
        drawn += n * np.arange(rows)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=rows * n)
        resampled[begin : begin + rows] = weights.reshape(rows, n) @ sums
    return resampled


def _score(sums):
    part, whole = sums[..., 0], sums[..., 1]
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _percentiles(values, confidence):
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
