import numpy as np
import pytest

from lpcfg_sk import LPCFG, Treebank
from lpcfg_sk.decoding._charts import (
    ChartModel,
    SentenceCharts,
    full_charts,
    marginals,
    sentence_log_prob,
    span_bounds,
)
from lpcfg_sk.decoding._pruning import ChartPruner
from lpcfg_sk.exceptions import ChartMemoryError
from tests.reference import charts as ref
from tests.tolerances import EXACT, SUM

SENTENCES = [["x"], ["x", "y"], ["y", "x", "z"], ["x", "x", "y", "z"]]


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
    logs = sentence_log_prob(used, Treebank(SENTENCES))
    frames = marginals(used, Treebank(SENTENCES))
    for sentence, log, frame in zip(SENTENCES, logs, frames, strict=True):
        parses = ref.all_parses(grammar, sentence)
        z = sum(value for _, value in parses)
        np.testing.assert_allclose(np.exp(log), z, rtol=EXACT * 10)
        mu = ref.item_values(parses)
        assert_items_equal(frame_items(frame), mu, EXACT * 10)
        total = (2 * len(sentence) - 1) * z
        np.testing.assert_allclose(frame["marginal"].sum(), total, rtol=EXACT * 10)


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


def test_pruning_keeps_the_likely_items(seed):
    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng, max_states=1)
    threshold = 0.05
    charts = SentenceCharts(
        ChartModel(grammar, ChartPruner(grammar, threshold)), Treebank(SENTENCES)
    )
    for row, sentence in enumerate(SENTENCES):
        parses = ref.all_parses(grammar, sentence)
        z = sum(value for _, value in parses)
        mu = {item: value / z for item, value in ref.item_values(parses).items()}
        best = max(parses, key=lambda parse: parse[1])[0]
        forest = charts.chart(row).forest
        start, stop = span_bounds(len(sentence))
        items = {
            (grammar.nonterminals[a], start[s], stop[s])
            for a, s in zip(forest.item_label, forest.item_span, strict=True)
        }
        assert set(best.items) <= items
        for item in items - set(best.items):
            assert mu[item] >= threshold * (1 - SUM)


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
    np.testing.assert_allclose(np.exp(chart.log_prob), z, rtol=EXACT * 10)


@pytest.mark.parametrize("signed", [False, True])
def test_long_sentences_neither_underflow_nor_overflow(signed):
    # One label, S -> S S | x: the number of binary trees times a power.
    n, p, q = 250, 1e-3, 1e-4
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
    treebank = Treebank([["y", "x"], ["x", "y"]])
    np.testing.assert_array_equal(sentence_log_prob(grammar, treebank), [-np.inf, 0.0])
    assert [len(frame) for frame in marginals(grammar, treebank)] == [0, 3]


def test_empty_sentence_is_named():
    grammar = ref.random_grammar(np.random.default_rng(0))
    with pytest.raises(ValueError, match="row 1 is an empty sentence"):
        sentence_log_prob(grammar, Treebank([["x"], []]))


def test_memory_limit_is_checked_before_allocation():
    grammar = ref.random_grammar(np.random.default_rng(0))
    with pytest.raises(ChartMemoryError, match=r"row 0 \(3000 words\) needs at least"):
        sentence_log_prob(grammar, Treebank([["x"] * 3000]), max_memory=2**26)
    with pytest.raises(ChartMemoryError, match="max_memory=20,000"):
        sentence_log_prob(grammar, Treebank([["x"] * 12]), max_memory=20_000)


@pytest.mark.parametrize("boolean", [False, True])
def test_coarse_kernels_equal_dictionaries(seed, boolean):
    from lpcfg_sk._kernels import _coarse as kernel

    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng, max_states=1, density=0.4)
    pruner = ChartPruner(grammar, None if boolean else 0.5)
    for sentence in (["x"], ["x", "y"], ["x", "y", "z", "x", "y", "z", "y"]):
        n = len(sentence)
        words = np.array([grammar.words.index(x) for x in sentence], dtype=np.int32)
        leaf, _ = pruner._leaves(words, np.full(n, -1, dtype=np.int32))
        n_spans, wide = n * (n + 1) // 2, pruner.tables.wide_label
        alpha = np.zeros((n_spans, len(wide)))
        exponent = np.zeros(n_spans, dtype=np.int32)
        alive = np.zeros(n_spans, dtype=np.bool_)
        kernel.coarse_inside(n, pruner.tables, leaf, boolean, alpha, exponent, alive)
        beta, beta_leaf = np.zeros_like(alpha), np.zeros_like(leaf)
        (beta_leaf[0] if n == 1 else beta[-1])[:] = (
            pruner._root if n == 1 else pruner._root[wide]
        )
        kernel.coarse_outside(
            n,
            pruner.tables,
            leaf,
            boolean,
            alpha,
            exponent,
            alive,
            0.0,
            beta,
            beta_leaf,
        )
        inside, outside = ref.pcfg_inside_outside(grammar, sentence)
        start, stop = span_bounds(n)
        for span in range(n_spans):
            table, below = (leaf, beta_leaf) if span < n else (alpha, beta)
            labels = range(len(grammar.nonterminals)) if span < n else wide
            for column, a in enumerate(labels):
                item = (grammar.nonterminals[a], start[span], stop[span])
                got = table[span, column] * 2.0 ** exponent[span]
                expected = inside.get(item, 0.0)
                mass = table[span, column] * below[span, column]
                expected_mass = expected * outside.get(item, 0.0)
                if boolean:
                    assert (got > 0) == (expected > 0)
                    assert (mass > 0) == (expected_mass > 0)
                else:
                    np.testing.assert_allclose(got, expected, rtol=EXACT)
                    mass *= 2.0 ** exponent[-1]
                    np.testing.assert_allclose(mass, expected_mass, rtol=EXACT)
