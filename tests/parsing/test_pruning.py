"""What `prune` leaves out, and how right probabilities are."""

import copy

import numpy as np
import pytest

from lpcfg_sk import EMLPCFG, LPCFG, PCFG, Treebank, make_parser
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing import _charts, marginals, sentence_log_prob
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._decoders import max_marginal, max_rule_product, viterbi
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.parsing._sentences import SentenceCharts, chart_log_probs, full_charts
from tests.reference import charts as ref
from tests.tolerances import ITERATIVE, SUM

pytestmark = pytest.mark.slow_without_jit


@pytest.mark.parametrize("draw", range(3))
@pytest.mark.parametrize("threshold", [0.3, 0.03])
def test_prune_keeps_exactly_the_items_that_the_guide_says(seed, draw, threshold):
    rng = np.random.default_rng([seed, draw])
    grammar = ref.random_grammar(rng, max_states=1)
    pruner = ChartPruner(grammar, threshold)
    sentences = [["x"], ["x", "y"], ["z", "x", "y", "x", "z", "y", "x"]]
    charts = SentenceCharts(ChartModel(grammar, pruner), Treebank(sentences))
    for row, sentence in enumerate(sentences):
        limit = threshold
        expected = ref.pruned_posteriors(grammar, sentence, limit)
        if not expected:
            # The labels that are left out early have all trees of the sentence.
            limit = 0.0
            expected = ref.pruned_posteriors(grammar, sentence, limit)
        live = charts.live_items(row)
        start, stop = span_bounds(len(sentence))
        span = np.repeat(np.arange(len(start)), np.diff(live.offset))
        got = {
            (grammar.nonterminals[a], start[s], stop[s]): value
            for a, s, value in zip(live.label, span, live.posterior, strict=True)
        }
        likely = {x for x, value in expected.items() if value >= limit and value > 0.0}
        assert set(got) == likely
        for item, value in got.items():
            np.testing.assert_allclose(value, expected[item], rtol=1e-5)


def assert_frames_close(one, two, atol):
    keys = [name for name in one if name != "marginal"]
    both = one.merge(two, on=keys, how="outer").fillna(
        {"marginal_x": 0.0, "marginal_y": 0.0}
    )
    np.testing.assert_allclose(both["marginal_x"], both["marginal_y"], atol=atol)


def assert_right_to_six_digits(learner, X):
    exact = copy.copy(learner)
    exact.prune = None
    logs = learner.sentence_log_prob(X)
    assert np.isfinite(logs).any()
    np.testing.assert_allclose(logs, exact.sentence_log_prob(X), rtol=0, atol=ITERATIVE)
    for one, two in zip(
        learner.marginals(X, normalize=True),
        exact.marginals(X, normalize=True),
        strict=True,
    ):
        assert_frames_close(one, two, ITERATIVE)
    for one, two in zip(
        learner.span_marginals(X), exact.span_marginals(X), strict=True
    ):
        assert_frames_close(one, two, ITERATIVE)


def test_log_probs_and_marginals_are_right_at_the_default():
    trees = load_toy(200)
    parser = make_parser(PCFG(prune=3e-3)).fit(trees)
    assert_right_to_six_digits(parser[-1], parser[:-1].transform(trees[:15].unparsed()))


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    "learner", [PCFG(), EMLPCFG(2, max_iter=2, validation_fraction=None, tol=None)]
)
def test_log_probs_and_marginals_of_wsj_are_right_at_the_default(
    wsj_train, wsj_dev, learner
):
    parser = make_parser(learner, horizontal=1).fit(wsj_train)
    rows = np.flatnonzero((wsj_dev.lengths >= 8) & (wsj_dev.lengths <= 16))[:8]
    assert_right_to_six_digits(
        parser[-1], parser[:-1].transform(wsj_dev[rows].unparsed())
    )


def test_pruning_leaves_as_many_trees_as_are_asked_for():
    trees = load_toy(200)
    parser = make_parser(PCFG(prune=0.05)).fit(trees)
    pruned = parser.parse_kbest(trees[:3], 5)
    parser.set_params(learner__prune=None)
    assert [len(parses) for parses in pruned] == [5, 5, 5]
    for parses, exact in zip(pruned, parser.parse_kbest(trees[:3], 5), strict=True):
        scores, expected = ([score for _, score in x] for x in (parses, exact))
        np.testing.assert_allclose(scores, expected, rtol=SUM)


def test_a_chart_that_is_too_large_to_be_precise_is_computed_as_prune_says():
    grammar = LPCFG.from_parameters(
        {("S", "S", "S"): [[[0.5]]]}, {("S", "x"): [0.5]}, {"S": [1.0]}
    )
    model = ChartModel(grammar, ChartPruner(grammar, 0.05))
    X = Treebank([["x"] * 6])
    expected = SentenceCharts(model, X).chart(0).log_prob
    chart = model.pruner.chart

    def limited(tokens, name, threshold):
        if threshold < 0.05:
            raise ChartMemoryError(f"the chart of {name} is too large")
        return chart(tokens, name, threshold)

    model.pruner.chart = limited
    with pytest.warns(RuntimeWarning, match=r"with prune=0.05.* row 0 is too large"):
        log = chart_log_probs(SentenceCharts(model, X, precise=True))
    np.testing.assert_allclose(log, [expected], rtol=SUM)


# Words w are A, and in trees of the root B: 1e-10 as likely.
EXTREME = LPCFG.from_parameters(
    binary={
        ("T", "B", "T"): [[[0.5]]],
        ("T", "B", "B"): [[[0.4]]],
        ("T", "V", "U"): [[[0.1]]],
        ("U", "A", "U"): [[[0.5]]],
        ("U", "A", "A"): [[[0.5]]],
    },
    lexical={
        ("A", "w"): [1.0],
        ("B", "w"): [1e-10],
        ("B", "v"): [1 - 1e-10],
        ("V", "u"): [1.0],
        ("V", "w"): [0.0],
    },
    root={"T": [1.0]},
)
# The same with T and U as states of one label.
EXTREME_STATES = LPCFG.from_parameters(
    binary={
        ("N", "B", "N"): [[[0.5, 0.0]], [[0.0, 0.0]]],
        ("N", "B", "B"): [[[0.4]], [[0.0]]],
        ("N", "V", "N"): [[[0.0, 0.1]], [[0.0, 0.0]]],
        ("N", "A", "N"): [[[0.0, 0.0]], [[0.0, 0.5]]],
        ("N", "A", "A"): [[[0.0]], [[0.5]]],
    },
    lexical=EXTREME.lexical,
    root={"N": [1.0, 0.0]},
)


def extreme_log_prob(n):
    return (n - 2) * np.log(0.5) + np.log(0.4) + n * np.log(1e-10)


@pytest.mark.parametrize("n", [12, 30, 33, 34, 45])
@pytest.mark.parametrize(
    "grammar",
    [EXTREME, EXTREME_STATES, EXTREME.conjugate({"T": [[-3.0]], "B": [[-2.0]]})],
    ids=["labels", "states", "signed"],
)
def test_probabilities_that_differ_by_more_than_doubles_hold_are_right(grammar, n):
    X = Treebank([["w"] * n])
    (log,) = sentence_log_prob(grammar, X)
    np.testing.assert_allclose(log, extreme_log_prob(n), rtol=SUM)
    posterior = marginals(grammar, X, normalize=True)[0]["marginal"]
    np.testing.assert_allclose(posterior.sum(), 2 * n - 1, rtol=SUM)
    np.testing.assert_allclose(posterior, posterior.round(), atol=SUM)


def test_a_sentence_of_probability_zero_is_still_impossible():
    X = Treebank([["w", "w", "u"]])
    np.testing.assert_array_equal(sentence_log_prob(EXTREME, X), -np.inf)


def test_pruning_does_not_lose_a_tree_to_underflow():
    X = Treebank([["w"] * 34])
    model = ChartModel(EXTREME, ChartPruner(EXTREME, 3e-4))
    chart = SentenceCharts(model, X).chart(0)
    np.testing.assert_allclose(chart.log_prob, extreme_log_prob(34), rtol=SUM)


def test_decoders_warn_where_vectors_have_lost_values():
    charts = full_charts(EXTREME, Treebank([["w"] * 34]))
    chart = charts.chart(0)
    items, _ = max_marginal(charts.model, chart)
    assert len(items) == 67
    for decoder in (viterbi, max_rule_product):
        with pytest.warns(RuntimeWarning, match="34 words differ by more than float"):
            decoder(charts.model, chart)


@pytest.mark.parametrize("signed", [False, True])
def test_logarithms_give_the_numbers_of_the_kernels(seed, signed, monkeypatch):
    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng)
    if signed:
        grammar = grammar.conjugate(ref.random_transforms(rng, grammar))
    X = Treebank([["x"], ["x", "y"], ["y", "x", "z", "x", "y"]])
    expected = [full_charts(grammar, X).chart(row) for row in range(len(X))]
    assert all(chart.in_range for chart in expected)
    monkeypatch.setattr(_charts, "lost_nothing", lambda chart: False)
    for row, chart in enumerate(expected):
        got = full_charts(grammar, X).chart(row)
        assert not got.in_range
        np.testing.assert_allclose(got.log_prob, chart.log_prob, rtol=SUM)
        np.testing.assert_allclose(got.posterior, chart.posterior, rtol=SUM, atol=SUM)
