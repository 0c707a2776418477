"""Sentences that are parsed together get what each of them gets alone."""

import re

import numpy as np
import pytest

from lpcfg_sk import EMLPCFG, LPCFG, PCFG, SpectralLPCFG, Treebank, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.ensemble import VotingParser
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing import ChartParser
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.parsing._sentences import SentenceCharts
from tests.reference import charts as ref
from tests.tolerances import SUM

pytestmark = [pytest.mark.kernels, pytest.mark.slow_without_jit]

TREES = load_toy(150)
EM = EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None)


def alone(parser, charts):
    """Parse each row alone, by the path of rows that need care."""
    return [parser._alone(charts, row) for row in range(len(charts.treebank))]


def assert_same_rows(one, two):
    assert [ok for _, ok in one] == [ok for _, ok in two]
    for (nodes, _), (expected, _) in zip(one, two, strict=True):
        np.testing.assert_array_equal(nodes, expected)


def sentences():
    plain = [list(x) for x in TREES[:12].sentences()]
    leaves = re.findall(r"\((\S+) ([^()\s]+)\)", str(TREES[20]))
    pairs = [(word, tag) for tag, word in leaves]
    one_word = [[plain[0][0]], ["never-seen"]]
    unknown = [[*plain[1][:2], "never-seen", *plain[1][2:]]]
    no_parse = [[plain[2][-1]] * 3]
    return Treebank([*plain, *one_word, *unknown, *no_parse, pairs])


@pytest.mark.parametrize("decoder", ["mbr", "max-marginal"])
@pytest.mark.parametrize("learner", [PCFG(), EM, SpectralLPCFG(3)], ids=str)
def test_rows_get_the_trees_that_they_get_alone(learner, decoder):
    pipeline = make_parser(learner, horizontal=1)
    pipeline.set_params(learner__decoder=decoder).fit(TREES)
    parser = pipeline[-1]._parser()
    charts = parser.charts(pipeline[:-1].transform(sentences()), quick=True)
    expected = alone(parser, charts)
    assert_same_rows(parser._parse(charts, 0, len(charts.treebank)), expected)
    # Neither does it matter which rows are together.
    parts = parser._parse(charts, 0, 5) + parser._parse(charts, 5, len(charts.treebank))
    assert_same_rows(parts, expected)


def test_posteriors_of_rows_have_the_bits_of_single_charts(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed))
    plain = ref.random_grammar(np.random.default_rng(seed), max_states=1)
    words = ["x", "xy", "zxyxzyx", "yyx", "xzzy"]
    X = Treebank([list(x) for x in words])
    model = ChartModel(grammar, ChartPruner(plain, 0.01))
    charts = SentenceCharts(model, X)
    pruned = charts.pruned_rows(0, len(X))
    posterior, usable = charts.posteriors(0, len(X), pruned)
    forest = pruned.forest
    for row in np.flatnonzero(usable):
        chart = charts.chart(row)
        first, last = forest.item_offset[forest.row_span[row : row + 2]]
        np.testing.assert_array_equal(
            forest.item_label[first:last], chart.forest.item_label
        )
        np.testing.assert_array_equal(posterior[first:last], chart.posterior)
    assert usable.sum() >= 3


def test_a_long_row_does_not_spoil_the_others(seed):
    grammar = LPCFG.from_parameters(
        {("S", "S", "S"): [[[0.5]]]}, {("S", "x"): [0.5]}, {"S": [1.0]}
    )
    X = Treebank([["x"] * 3, ["x"] * 40, ["x"]])
    parser = ChartParser(grammar, grammar, prune=1e-3, max_memory=50_000)
    charts = parser.charts(X, quick=True)
    pruned = charts.pruned_rows(0, 3)
    assert pruned.found.tolist() == [True, False, True]
    np.testing.assert_allclose(pruned.live.posterior[:3], 1.0, rtol=SUM)
    with pytest.raises(ChartMemoryError, match=r"row 1 \(40 words\)"):
        parser.predict(X)


def test_votes_on_rows_are_those_on_each_row_alone(monkeypatch):
    members = [("pcfg", make_parser(PCFG())), ("em", make_parser(EM, horizontal=1))]
    vote = VotingParser(members).fit(TREES)
    X = TREES[:20].unparsed()
    together = vote.predict(X)
    monkeypatch.setattr(
        "lpcfg_sk.ensemble._voting._Ballot.count_rows", lambda *rows: (None, None)
    )
    assert together.tolist() == vote.predict(X).tolist()


@pytest.mark.parametrize("decoder", ["mbr", "max-marginal", "viterbi"])
def test_words_of_a_sentence_without_a_parse_may_be_open_class_words(decoder):
    trees = ["(S (N fish) (V swim))"] * 4000 + ["(S (N zog) (V fip))"] * 2
    parser = make_parser(PCFG(decoder=decoder)).fit(trees)
    # No spelling of "swim" is that of a noun, and it was never seen as one.
    trees, status = parser.predict([["swim", "swim"]], return_status=True)
    assert str(trees[0]) == "(S (N swim) (V swim))"
    assert status["status"].tolist() == ["parsed"]
    assert parser.sentence_log_prob([["swim", "swim"]])[0] == -np.inf
    # Without classes of words the lexicon is taken at its word.
    bare = PCFG(decoder=decoder).fit(Treebank(["(S (N fish) (V swim))"] * 3))
    _, status = bare.predict([["swim", "swim"]], return_status=True)
    assert status["status"].tolist() == ["flat"]


@pytest.mark.parametrize("root", ["@S", "@Z", "S"])
@pytest.mark.parametrize(
    "decoder", ["viterbi", "max-marginal", "max-rule-product", "mbr"]
)
def test_an_intermediate_root_gives_one_tree(root, decoder):
    # Without its root a tree was once written beyond the end of its array.
    model = PCFG(decoder=decoder)
    model.grammar_ = model.coarse_ = LPCFG.from_parameters(
        {(root, "NN", "VB"): [[[1.0]]]},
        {("NN", "he"): [1.0], ("VB", "runs"): [1.0]},
        {root: [1.0]},
    )
    model.binarized_ = True
    parsed = model.predict([["he", "runs"]])[0]
    assert len(parsed.children) == 2
    assert str(parsed).endswith(" (NN he) (VB runs))")
    # A sentence without a parse gets a flat tree.
    with pytest.warns(UserWarning, match="flat"):
        tree = model.predict([["runs", "he", "he"]])[0]
    assert str(tree) == f"({root.strip('@')} (VB runs) (NN he) (NN he))"
