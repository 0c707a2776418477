import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lpcfg_sk.metrics import (
    ParsevalParameters,
    bracket_counts,
    f1_score,
    label_report,
    length_report,
    parseval,
)
from lpcfg_sk.treebank import Treebank
from tests.metrics.strategies import pairs, parameters
from tests.reference import parseval as reference
from tests.tolerances import EXACT

GOLD = [
    "(S (NP (PRP I)) (VP (VBP am)))",
    "(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))))",
    "(S (VP (VB go)))",
]
TEST = [
    "(S (NP (PRP I)) (XP (VBP am)))",
    "(S (NP (DT a)) (VP (NN b) (VB c) (NP (NN d))))",
    "(S (VP (VB go)))",
]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(pairs(), min_size=1, max_size=4), parameters())
def test_every_sentence_counts(sentences, prm):
    gold, test = map(list, zip(*sentences, strict=True))
    params = ParsevalParameters(**prm)
    counts = bracket_counts(gold, test, params)
    frame = parseval(gold, test, params)
    valid = (frame["status"] == 0).to_numpy()
    for array, name in zip(counts, ("matched", "gold", "test"), strict=True):
        assert_array_equal(array[valid], frame.loc[valid, f"{name}_brackets"])
    assert (counts.matched[~valid] == 0).all()
    if not prm["quote_labels"]:
        for array, lines in ((counts.gold, gold), (counts.test, test)):
            expected = [
                len(reference.counted_brackets(reference.read_line(s, prm)[1], prm))
                for s in lines
            ]
            assert array.tolist() == expected
    report = label_report(gold, test, params)
    assert report["support"].sum() == counts.gold.sum()
    assert report["predicted"].sum() == counts.test.sum()
    for rate, column in (("recall", "support"), ("precision", "predicted")):
        total = (report[rate] / 100 * report[column]).sum()
        assert_allclose(total, counts.matched.sum(), rtol=EXACT, atol=EXACT)


def test_f1_is_that_of_evalb_where_all_is_parsed():
    expected = parseval(GOLD, TEST).attrs["all"]["f1"] / 100
    assert_allclose(f1_score(GOLD, TEST), expected, rtol=EXACT)
    assert 0 < expected < 1


def test_f1_counts_failures_that_evalb_leaves_out():
    failed = [GOLD[0], ["a", "b", "c", "d"], "(S (VP (VB stop)))"]
    assert parseval(GOLD, failed).attrs["all"]["f1"] == 100.0
    # 3 of 3 + 4 + 2 gold brackets, and 3 + 0 + 2 predicted ones.
    assert_allclose(f1_score(GOLD, failed), 2 * 3 / (9 + 5), rtol=EXACT)


def test_f1_weights_are_repetitions():
    weighted = f1_score(GOLD, TEST, sample_weight=[2, 0, 1])
    rows = [0, 0, 2]
    repeated = f1_score([GOLD[i] for i in rows], [TEST[i] for i in rows])
    assert_allclose(weighted, repeated, rtol=EXACT)
    with pytest.raises(ValueError, match="expected one weight for each of the 3"):
        f1_score(GOLD, TEST, sample_weight=[1, 2])


def test_f1_without_brackets_is_zero():
    assert f1_score([], []) == 0.0
    assert f1_score(["(NN a)"], ["(NN a)"]) == 0.0
    assert f1_score(["(S (NN a))"], ["(X (NN a))"]) == 0.0


def test_gold_rows_need_trees():
    for function in (f1_score, bracket_counts, label_report, length_report):
        with pytest.raises(ValueError, match="gold row 1 is a sentence without a tree"):
            function([GOLD[0], ["a"]], TEST[:2])


def test_order_of_rows_does_not_matter(wsj_dev):
    gold, test = wsj_dev, wsj_dev[list(range(len(wsj_dev)))]
    order = np.random.default_rng(1).permutation(len(gold))
    shuffled = bracket_counts(gold[order], test[order])
    for one, two in zip(shuffled, bracket_counts(gold, test), strict=True):
        assert_array_equal(one, two[order])
    assert f1_score(gold, test) == 1.0


def test_label_report():
    report = label_report(GOLD, TEST)
    assert report.index.tolist() == ["NP", "S", "VP", "XP"]
    assert report["support"].tolist() == [3, 3, 3, 0]
    assert report["predicted"].tolist() == [3, 3, 2, 1]
    assert_allclose(report["recall"], [200 / 3, 100, 100 / 3, 0], rtol=EXACT)
    assert_allclose(report["precision"], [200 / 3, 100, 50, 0], rtol=EXACT)
    assert_allclose(report["f1"], [200 / 3, 100, 40, 0], rtol=EXACT)


def test_label_report_of_equal_labels_and_function_tags():
    gold, test = ["(S (ADVP-X (RB up)) (V b))"], ["(S (PRT (RB up)) (V b))"]
    report = label_report(gold, test)
    counts = ["support", "predicted"]
    assert report.loc["ADVP", ["recall", *counts]].tolist() == [100, 1, 0]
    assert report.loc["PRT", ["precision", *counts]].tolist() == [100, 0, 1]


def test_label_report_keeps_labels_in_unlabelled_mode():
    params = ParsevalParameters(labeled=False)
    report = label_report(["(S (NP (A a)) (B b))"], ["(S (VP (A a)) (B b))"], params)
    assert report.loc["NP", "recall"] == report.loc["VP", "precision"] == 100.0


def test_label_report_of_nothing():
    assert label_report([], []).empty


def test_length_report():
    report = length_report(GOLD, TEST, edges=[1, 2])
    assert report.index.tolist() == ["0-1", "2-2", "3-"]
    assert report["n_sentences"].tolist() == [1, 1, 1]
    assert report["support"].tolist() == [2, 3, 4]
    whole = length_report(GOLD, TEST, edges=[])
    assert_allclose(whole["f1"], [100 * f1_score(GOLD, TEST)], rtol=EXACT)
    with pytest.raises(ValueError, match="ascending"):
        length_report(GOLD, TEST, edges=[20, 10])


def test_inputs_are_not_written_to():
    gold, test = Treebank(GOLD), Treebank(TEST)
    before = [gold.to_frame(), test.to_frame()]
    f1_score(gold, test)
    for bank, frame in zip((gold, test), before, strict=True):
        pd.testing.assert_frame_equal(bank.to_frame(), frame)


def test_words_are_compared_by_surface():
    gold, test = Treebank(GOLD), Treebank(TEST)
    rare = gold.replace(word=np.zeros_like(gold.word))
    assert f1_score(rare, test) == f1_score(gold, test)
