import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk.metrics import (
    _bootstrap,
    bootstrap_ci,
    bracket_counts,
    f1_score,
    paired_bootstrap,
    parseval,
)
from tests.tolerances import EXACT

RIGHT = "(S (NP (PRP I)) (VP (VBP am)))"
WRONG = "(S (NP (PRP I)) (XP (VBP am)))"
WORST = "(X (Y (PRP I)) (Z (VBP am)))"
GOLD = [RIGHT] * 60
TEST = [RIGHT] * 30 + [WRONG] * 20 + [WORST] * 10


@pytest.mark.parametrize("metric", ["f1", "recall", "precision"])
def test_interval_is_that_of_explicit_resampling(metric):
    counts = bracket_counts(GOLD, TEST)
    rng = np.random.default_rng(3)
    scores = []
    for _ in range(4000):
        rows = rng.integers(60, size=60)
        matched, gold, test = (column[rows].sum() for column in counts)
        scores.append(
            {
                "f1": 2 * matched / (gold + test),
                "recall": matched / gold,
                "precision": matched / test,
            }[metric]
        )
    found = bootstrap_ci(GOLD, TEST, metric=metric, confidence=0.9, random_state=0)
    assert_allclose(found.estimate, np.mean(scores), atol=0.003)
    assert_allclose(found[1:3], np.quantile(scores, [0.05, 0.95]), atol=0.01)
    assert_allclose(found.standard_error, np.std(scores), rtol=0.05)


def test_standard_error_of_a_proportion():
    found = bootstrap_ci(GOLD, TEST, metric="complete_match", random_state=0)
    assert found.estimate == 0.5
    assert_allclose(found.standard_error, np.sqrt(0.25 / 60), rtol=0.03)


def test_more_confidence_is_wider():
    narrow, wide = (
        bootstrap_ci(GOLD, TEST, confidence=c, random_state=0) for c in (0.5, 0.99)
    )
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high


def test_estimate_is_f1_score_and_failures_count():
    test = [*TEST[:-1], ["I", "am"]]
    found = bootstrap_ci(GOLD, test, n_resamples=10, random_state=0)
    assert_allclose(found.estimate, f1_score(GOLD, test), rtol=EXACT)


@pytest.mark.parametrize(
    "metric", ["f1", "recall", "precision", "complete_match", "tag_accuracy"]
)
def test_frame_of_parseval(metric):
    frame = parseval(GOLD, [*TEST[:-1], ["I", "am"]])
    found = bootstrap_ci(None, frame, metric=metric, n_resamples=50, random_state=0)
    expected = frame.attrs["all"][metric] / 100
    assert_allclose(found.estimate, expected, rtol=EXACT)


def test_same_seed_same_bits_for_any_block(monkeypatch):
    first = bootstrap_ci(GOLD, TEST, n_resamples=100, random_state=5)
    assert bootstrap_ci(GOLD, TEST, n_resamples=100, random_state=5) == first
    assert bootstrap_ci(GOLD, TEST, n_resamples=100, random_state=6) != first
    monkeypatch.setattr(_bootstrap, "_BLOCK", 60 * 7)
    assert bootstrap_ci(GOLD, TEST, n_resamples=100, random_state=5) == first


def test_paired_difference_and_sign():
    found = paired_bootstrap(GOLD, TEST, GOLD, random_state=0)
    assert_allclose(found.difference, f1_score(GOLD, TEST) - 1, rtol=EXACT)
    assert found.low < found.difference < found.high < 0
    assert found.p_value < 0.001
    mirrored = paired_bootstrap(GOLD, GOLD, TEST, random_state=0)
    assert_allclose(mirrored[:3], (-found[0], -found[2], -found[1]), rtol=EXACT)
    assert mirrored.p_value == found.p_value


def test_paired_systems_without_difference():
    same = paired_bootstrap(GOLD, TEST, TEST, n_resamples=100, random_state=0)
    assert same == (0.0, 0.0, 0.0, 1.0)
    swapped = paired_bootstrap(GOLD, TEST, TEST[::-1], random_state=0)
    assert_allclose(swapped.difference, 0, atol=EXACT)
    assert swapped.p_value == 1.0


@pytest.mark.slow_without_jit
def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    p_values = []
    for k in range(60):
        a, b = ([RIGHT if u else WRONG for u in rng.random(60) < 0.7] for _ in "ab")
        p_values.append(
            paired_bootstrap(GOLD, a, b, n_resamples=300, random_state=k).p_value
        )
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.1) < 0.25


def test_paired_frames():
    a, b = parseval(GOLD, TEST), parseval(GOLD, GOLD)
    found = paired_bootstrap(None, a, b, random_state=0)
    assert found == paired_bootstrap(GOLD, TEST, GOLD, random_state=0)
    with pytest.raises(ValueError, match="60 and 59 sentences"):
        paired_bootstrap(None, a, b.iloc[1:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "f2"}, "metric must be one of"),
        ({"n_resamples": 1}, "n_resamples"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_bad_settings(settings, message):
    for function, data in (
        (bootstrap_ci, (GOLD, TEST)),
        (paired_bootstrap, (GOLD, TEST, TEST)),
    ):
        with pytest.raises(ValueError, match=message):
            function(*data, **settings)


def test_no_sentences():
    with pytest.raises(ValueError, match="at least one sentence"):
        bootstrap_ci([], [])
    with pytest.raises(ValueError, match="at least one sentence"):
        paired_bootstrap([], [], [])


def test_no_brackets_score_zero():
    found = bootstrap_ci(["(NN a)"], ["(NN a)"], n_resamples=10)
    assert found == (0.0, 0.0, 0.0, 0.0)
