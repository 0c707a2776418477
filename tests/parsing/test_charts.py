import numba
import numpy as np
import pytest

from lpcfg_sk import LPCFG, Treebank
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._kernels._coarse_inside import coarse_inside
from lpcfg_sk._kernels._coarse_outside import CoarseOutside, coarse_outside
from lpcfg_sk._kernels._coarse_words import (
    Thresholds,
    Tokens,
    surroundings,
    word_rules,
)
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._coarse_rows import coarse_chart, no_surroundings
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.parsing._sentences import (
    SentenceCharts,
    full_charts,
    marginals,
    sentence_log_prob,
)
from tests.reference import charts as ref
from tests.tolerances import EXACT, ITERATIVE, SUM

SINGLE = 1e-5  # sums in single precision

SENTENCES = [["x"], ["x", "y"], ["y", "x", "z"], ["x", "x", "y", "z"]]


def untagged(words):
    none = np.zeros(len(words))
    return Tokens(words, np.full(len(words), -1, dtype=np.int32), none, none, 0.0)


def frame_items(frame):
    rows = frame.itertuples(index=False)
    return {(r.label, r.start, r.end): r.marginal for r in rows}


def assert_items_equal(got, expected, rtol=EXACT):
    scale = max(map(abs, expected.values()))
    for item in set(got) | set(expected):
        np.testing.assert_allclose(
            got.get(item, 0.0),
            expected.get(item, 0.0),
            rtol=rtol,
            atol=rtol * scale,
            err_msg=str(item),
        )


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize("signed", [False, True])
def test_sentences_and_marginals_equal_enumeration(seed, draw, signed):
    rng = np.random.default_rng([seed, draw])
    grammar = ref.random_grammar(rng)
    used = grammar.conjugate(ref.random_transforms(rng, grammar)) if signed else grammar
    rtol = 10 * EXACT if signed else EXACT  # the transforms are inverted, too
    logs = sentence_log_prob(used, Treebank(SENTENCES))
    frames = marginals(used, Treebank(SENTENCES))
    for sentence, log, frame in zip(SENTENCES, logs, frames, strict=True):
        parses = ref.all_parses(grammar, sentence)
        z = sum(value for _, value in parses)
        np.testing.assert_allclose(np.exp(log), z, rtol=rtol)
        mu = ref.item_values(parses)
        assert_items_equal(frame_items(frame), mu, rtol)
        total = (2 * len(sentence) - 1) * z
        np.testing.assert_allclose(frame["marginal"].sum(), total, rtol=rtol)


def test_full_chart_has_exactly_the_items_of_trees(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        grammar = ref.random_grammar(rng, max_states=1, density=0.2)
        for sentence in SENTENCES:
            parses = ref.all_parses(grammar, sentence)
            if not parses:
                continue
            frame = marginals(grammar, Treebank([sentence]))[0]
            assert set(frame_items(frame)) == set(ref.item_values(parses))


def test_posteriors_are_divided_by_the_sentence(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed))
    frame = marginals(grammar, Treebank([SENTENCES[-1]]), normalize=True)[0]
    np.testing.assert_allclose(frame["marginal"].sum(), 7.0, rtol=EXACT)


def test_pruned_chart_of_a_tiny_threshold_is_the_full_chart(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=1)
    treebank = Treebank(SENTENCES)
    pruned = SentenceCharts(ChartModel(grammar, ChartPruner(grammar, 1e-300)), treebank)
    full = full_charts(grammar, treebank)
    for row in range(len(treebank)):
        one, two = pruned.chart(row), full.chart(row)
        for a, b in zip(one.forest, two.forest, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(one.marginal, two.marginal)


@pytest.mark.parametrize("draw", range(4))
def test_single_precision_gives_six_digits(seed, draw):
    rng = np.random.default_rng([seed, draw])
    grammar = ref.random_grammar(rng)
    pruner = ChartPruner(grammar, None)
    treebank = Treebank(SENTENCES)
    double = SentenceCharts(ChartModel(grammar, pruner), treebank)
    single = SentenceCharts(ChartModel(grammar, pruner, np.float32), treebank)
    for row in range(len(treebank)):
        one, two = single.chart(row), double.chart(row)
        assert one.inside.dtype == np.float32
        np.testing.assert_allclose(one.posterior, two.posterior, rtol=SINGLE, atol=1e-6)
        np.testing.assert_allclose(one.log_prob, two.log_prob, rtol=SINGLE)


def test_what_single_precision_cannot_hold_is_done_again_in_double():
    # The only root has 1e-60 of the weight of the other label of its span.
    grammar = LPCFG.from_parameters(
        binary={
            ("S", "A", "A"): np.full((1, 1, 1), 1e-60),
            ("T", "A", "A"): np.ones((1, 1, 1)),
        },
        lexical={("A", "x"): np.ones(1)},
        root={"S": np.ones(1)},
    )
    pruner = ChartPruner(grammar, None)
    single = ChartModel(grammar, pruner, np.float32)
    double = ChartModel(grammar, pruner)
    X = Treebank([["x", "x"]])
    assert not SentenceCharts(single, X).chart(0).usable
    chart = SentenceCharts(single, X, exact=double).chart(0)
    np.testing.assert_allclose(chart.log_prob, -60 * np.log(10), rtol=SUM)


@pytest.mark.parametrize("draw", range(4))
def test_live_items_have_the_marginals_of_the_pruner(seed, draw):
    rng = np.random.default_rng([seed, draw])
    grammar = ref.random_grammar(rng, max_states=1)
    pruner = ChartPruner(grammar, 1e-300)
    charts = SentenceCharts(ChartModel(grammar, pruner), Treebank(SENTENCES))
    for row, sentence in enumerate(SENTENCES):
        parses = ref.all_parses(grammar, sentence)
        live = charts.live_items(row)
        z = sum(value for _, value in parses)
        expected = {item: mu / z for item, mu in ref.item_values(parses).items()}
        start, stop = span_bounds(len(sentence))
        span = np.repeat(np.arange(len(start)), np.diff(live.offset))
        got = {
            (grammar.nonterminals[a], start[s], stop[s]): mu
            for a, s, mu in zip(live.label, span, live.posterior, strict=True)
        }
        assert_items_equal(got, expected, SINGLE)


def chart_items(grammar, chart):
    start, stop = span_bounds(chart.n)
    labels, spans = chart.forest.item_label, chart.forest.item_span
    return {
        (grammar.nonterminals[a], start[s], stop[s])
        for a, s in zip(labels, spans, strict=True)
    }


def test_pruning_keeps_the_likely_items(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=1)
    threshold = 0.05
    charts = SentenceCharts(
        ChartModel(grammar, ChartPruner(grammar, threshold)), Treebank(SENTENCES)
    )
    for row, sentence in enumerate(SENTENCES):
        parses = ref.all_parses(grammar, sentence)
        z = sum(value for _, value in parses)
        mu = {item: value / z for item, value in ref.item_values(parses).items()}
        chart = charts.chart(row)
        items = chart_items(grammar, chart)
        assert all(mu[item] >= threshold * 0.999 for item in items)
        # Items near the threshold may lose the parents that made them likely.
        assert {item for item in mu if mu[item] >= 2 * threshold} <= items
        assert chart.log_prob > -np.inf


def test_a_threshold_that_leaves_no_tree_is_lowered():
    # All 429 trees of eight words are equally likely, no inner item reaches 0.5.
    grammar = LPCFG.from_parameters(
        {("S", "S", "S"): [[[0.5]]]}, {("S", "x"): [0.5]}, {"S": [1.0]}
    )
    pruner = ChartPruner(grammar, 0.5)
    charts = SentenceCharts(ChartModel(grammar, pruner), Treebank([["x"] * 8]))
    chart = charts.chart(0)
    full = full_charts(grammar, Treebank([["x"] * 8])).chart(0)
    np.testing.assert_allclose(chart.log_prob, full.log_prob, rtol=EXACT)


def test_rare_edges_and_rules_are_left_out():
    # S -> A A | B B with A and B over x: the rule of B B is a thousandth.
    binary = {("S", "A", "A"): [[[0.999]]], ("S", "B", "B"): [[[0.001]]]}
    lexical = {("A", "x"): [1.0], ("B", "x"): [1.0]}
    grammar = LPCFG.from_parameters(binary, lexical, {"S": [1.0]})
    for threshold, n_rules in ((1e-4, 2), (1e-1, 1)):
        pruner = ChartPruner(grammar, threshold)
        forest = pruner.chart(untagged(np.zeros(2, dtype=np.int32))).forest
        assert len(forest.app_rule) == n_rules
        assert len(forest.item_label) == 1 + 2 * n_rules


def test_a_fine_model_may_lack_rules_and_words_of_the_coarse_one(seed):
    rng = np.random.default_rng(seed)
    coarse = ref.random_grammar(rng, max_states=1, density=0.8)
    binary = {r: rng.random((2, 2, 2)) for r in list(coarse.binary)[::2]}
    binary["A", "D", "E"] = rng.random((2, 2, 2))
    lexical = {(a, x): rng.random(2) for a, x in coarse.lexical if a != "C"}
    fine = LPCFG.from_parameters(binary, lexical, {"A": rng.random(2)})
    sentence = ["x", "y", "x", "z"]
    model = ChartModel(fine, ChartPruner(coarse, 1e-300))
    chart = SentenceCharts(model, Treebank([sentence])).chart(0)
    z = sum(value for _, value in ref.all_parses(fine, sentence))
    np.testing.assert_allclose(np.exp(chart.log_prob), z, rtol=EXACT)


@pytest.mark.parametrize("signed", [False, True])
def test_long_sentences_neither_underflow_nor_overflow(signed):
    # One label, S -> S S | x: the number of binary trees times a power.
    n, p, q = (30 if numba.config.DISABLE_JIT else 250), 1e-3, 1e-4
    grammar = LPCFG.from_parameters(
        {("S", "S", "S"): [[[p]]]}, {("S", "x"): [q]}, {"S": [1.0]}
    )
    if signed:
        grammar = grammar.conjugate({"S": [[-3.0]]})
    (log,) = sentence_log_prob(grammar, Treebank([["x"] * n]))
    catalan = np.sum(np.log(np.arange(n, 2 * n - 1))) - np.sum(np.log(np.arange(1, n)))
    expected = catalan - np.log(n) + (n - 1) * np.log(p) + n * np.log(q)
    np.testing.assert_allclose(log, expected, rtol=SUM)
    frame = marginals(grammar, Treebank([["x"] * n]), normalize=True)[0]
    np.testing.assert_allclose(frame["marginal"].sum(), 2 * n - 1, rtol=SUM)


def test_unparsable_sentence():
    grammar = LPCFG.from_parameters(
        {("S", "A", "B"): [[[1.0]]]},
        {("A", "x"): [1.0], ("B", "y"): [1.0]},
        {"S": [1.0]},
    )
    treebank = Treebank([["y", "x"], ["x", "y"], ["x", "never seen"]])
    logs = sentence_log_prob(grammar, treebank)
    np.testing.assert_array_equal(logs, [-np.inf, 0.0, -np.inf])
    assert [len(frame) for frame in marginals(grammar, treebank)] == [0, 3, 0]


def test_an_empty_sentence_has_no_tree():
    grammar = ref.random_grammar(np.random.default_rng(0))
    X = Treebank([["x"], []])
    assert sentence_log_prob(grammar, X)[1] == -np.inf
    assert len(marginals(grammar, X)[1]) == 0


def test_memory_limit_is_checked_before_allocation():
    grammar = ref.random_grammar(np.random.default_rng(0))
    with pytest.raises(ChartMemoryError, match=r"row 0 \(3000 words\) needs at least"):
        sentence_log_prob(grammar, Treebank([["x"] * 3000]), max_memory=2**26)
    with pytest.raises(ChartMemoryError, match="max_memory=20,000"):
        sentence_log_prob(grammar, Treebank([["x"] * 12]), max_memory=20_000)


@pytest.mark.parametrize("boolean", [False, True])
def test_coarse_kernels_equal_dictionaries(seed, boolean):
    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng, max_states=1, density=0.4)
    pruner = ChartPruner(grammar, None if boolean else 0.5)
    tables = pruner.tables
    for sentence in (["x"], ["x", "y"], ["x", "y", "z", "x", "y", "z", "y"]):
        n = len(sentence)
        n_spans = n * (n + 1) // 2
        words = np.array([grammar.words.index(x) for x in sentence], dtype=np.int32)
        leaf, _ = pruner._leaves(untagged(words))
        chart, around = coarse_chart(leaf, tables), no_surroundings(leaf)
        limits = Thresholds(0.0, 0.0, 0.0, 0.0, boolean)
        rules = word_rules(tables, chart, around, limits)
        count = coarse_inside(tables, rules, chart, around, limits)
        beta, leaf_mass = np.zeros(count), np.zeros_like(leaf)
        root = pruner._root[tables.wide_label]
        if n == 1:
            leaf_mass[0] = leaf[0] * pruner._root
        outside = CoarseOutside(beta, leaf_mass)
        coarse_outside(tables, rules, chart, boolean, 0.0, root, outside)
        exponent, offset = chart.exponent, chart.offset
        label, value = chart.label, chart.value
        start, stop = span_bounds(n)
        got, mass = {}, {}
        for i, a in zip(*np.nonzero(leaf), strict=True):
            item = (grammar.nonterminals[a], i, i + 1)
            got[item] = leaf[i, a] * 2.0 ** exponent[i]
            mass[item] = leaf_mass[i, a] * 2.0 ** exponent[-1]
        for span in range(n, n_spans):
            for t in range(offset[span], offset[span + 1]):
                a = tables.wide_label[label[t]]
                item = (grammar.nonterminals[a], start[span], stop[span])
                got[item] = value[t] * 2.0 ** exponent[span]
                mass[item] = value[t] * beta[t] * 2.0 ** exponent[-1]
        inside, outside = ref.pcfg_inside_outside(grammar, sentence)
        expected = {item: inside[item] * outside.get(item, 0.0) for item in inside}
        assert set(got) == set(inside)
        if boolean:
            assert {x for x in mass if mass[x]} == {x for x in expected if expected[x]}
        else:
            assert_items_equal(got, inside, SUM)
            assert_items_equal(mass, expected, SUM)


def test_estimated_outside_values_equal_dictionaries(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=1)
    pruner = ChartPruner(grammar, 0.5)
    lexicon, neighbours = pruner._grammar.lexicon, pruner._grammar.neighbours
    for sentence in (["x"], ["z", "x", "y", "x"]):
        words = [grammar.words.index(x) for x in sentence]
        leaf, _ = pruner._leaves(untagged(np.array(words, dtype=np.int32)))
        got = surroundings(leaf, lexicon.tag_of_label, neighbours)
        before = np.ldexp(got.before, got.before_exponent[:, np.newaxis])
        after = np.ldexp(got.after, got.after_exponent[:, np.newaxis])
        expected = ref.estimated_outside(grammar, sentence)
        for place, a in enumerate(grammar.nonterminals):
            for i in range(len(sentence)):
                for j in range(i + 1, len(sentence) + 1):
                    value = before[i, place] * after[j, place]
                    np.testing.assert_allclose(value, expected(a, i, j), rtol=ITERATIVE)


def test_forest_of_all_items_has_all_edges(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=1)
    sentence = SENTENCES[-1]
    chart = full_charts(grammar, Treebank([sentence])).chart(0)
    forest = chart.forest
    start, stop = span_bounds(chart.n)
    items = [
        (grammar.nonterminals[a], start[s], stop[s])
        for a, s in zip(forest.item_label, forest.item_span, strict=True)
    ]
    rules = list(grammar.binary)
    found = []
    for g in range(len(forest.group_span)):
        for a in range(*forest.app_offset[g : g + 2]):
            for e in range(*forest.edge_offset[g : g + 2]):
                top = items[forest.app_parent[a]]
                left, right = items[forest.edge_left[e]], items[forest.edge_right[e]]
                assert rules[forest.app_rule[a]] == (top[0], left[0], right[0])
                assert (top[1], left[2], right[2]) == (left[1], right[1], top[2])
                found.append((*rules[forest.app_rule[a]], top[1], left[2], top[2]))
    parses = ref.all_parses(grammar, sentence)
    expected = {r for parse, _ in parses for r in parse.rules if len(r) == 6}
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_kernels_take_read_only_arrays(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed))
    charts = full_charts(grammar, Treebank([SENTENCES[-1]]))
    pruned = charts.pruned(0)
    for array in pruned.forest:
        array.flags.writeable = False
    assert np.isfinite(charts.chart(0, pruned=pruned).log_prob)
