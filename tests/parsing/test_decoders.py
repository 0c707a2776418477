from itertools import pairwise

import numpy as np
import pytest

from lpcfg_sk import LPCFG, Treebank
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk.parsing._bracket_marginals import (
    BracketTable,
    bracket_marginals,
    bracket_trees,
)
from lpcfg_sk.parsing._decoders import (
    kbest_items,
    max_marginal,
    max_rule_product,
    viterbi,
    viterbi_derivation,
)
from lpcfg_sk.parsing._sentences import full_charts
from tests.reference import charts as ref
from tests.tolerances import EXACT, SUM

SENTENCES = [["x"], ["x", "y"], ["y", "x", "z"], ["x", "x", "y", "z"]]


def filled(grammar, sentence):
    charts = full_charts(grammar, Treebank([sentence]))
    return charts.model, charts.chart(0)


def named_items(grammar, chart, items):
    start, stop = span_bounds(chart.n)
    spans = chart.forest.item_span[items]
    labels = chart.forest.item_label[items]
    return tuple(
        (grammar.nonterminals[a], int(start[s]), int(stop[s]))
        for a, s in zip(labels, spans, strict=True)
    )


def assert_preorder(chart, items, parent):
    """Parents come before their children and hold their spans."""
    start, stop = span_bounds(chart.n)
    span = chart.forest.item_span[items]
    assert parent[0] == -1
    for node in range(1, len(items)):
        above = parent[node]
        assert 0 <= above < node
        assert start[span[above]] <= start[span[node]]
        assert stop[span[node]] <= stop[span[above]]


@pytest.mark.parametrize("draw", range(3))
@pytest.mark.parametrize("sentence", SENTENCES)
def test_decoders_equal_enumeration(seed, draw, sentence):
    grammar = ref.random_grammar(np.random.default_rng([seed, draw]))
    parses = ref.all_parses(grammar, sentence)
    model, chart = filled(grammar, sentence)
    by_items = {parse.items: i for i, (parse, _) in enumerate(parses)}
    mu = ref.item_values(parses)
    z = sum(value for _, value in parses)

    items, parent = max_marginal(model, chart)
    assert_preorder(chart, items, parent)
    named = named_items(grammar, chart, items)
    assert named in by_items
    score = sum(mu[item] / z for item in named)
    np.testing.assert_allclose(score, ref.max_marginal(parses), rtol=EXACT)

    scores = ref.max_rule_scores(parses)
    items, parent = max_rule_product(model, chart)
    assert_preorder(chart, items, parent)
    found = scores[by_items[named_items(grammar, chart, items)]]
    np.testing.assert_allclose(found, max(scores), rtol=EXACT, atol=EXACT)

    best = ref.viterbi(grammar, parses)
    items, parent, states, log_prob = viterbi_derivation(model, chart)
    assert_preorder(chart, items, parent)
    np.testing.assert_allclose(log_prob, np.log(max(best)), rtol=EXACT, atol=EXACT)
    named = named_items(grammar, chart, items)
    np.testing.assert_allclose(best[by_items[named]], max(best), rtol=EXACT)
    assert all(s < grammar.m[a] for s, (a, _, _) in zip(states, named, strict=True))
    np.testing.assert_array_equal(viterbi(model, chart)[0], items)


def test_max_marginal_of_a_signed_grammar_is_that_of_the_plain_one(seed):
    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng)
    signed = grammar.conjugate(ref.random_transforms(rng, grammar))
    for sentence in SENTENCES:
        one, two = filled(grammar, sentence), filled(signed, sentence)
        np.testing.assert_array_equal(max_marginal(*one)[0], max_marginal(*two)[0])


@pytest.mark.parametrize("penalty", [0.0, 0.2, 0.43, 0.9])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_bracket_tree_equals_enumeration(seed, penalty, sentence):
    grammar = ref.random_grammar(np.random.default_rng(seed), density=0.7)
    n = len(sentence)
    parses = ref.all_parses(grammar, sentence)
    z = sum(value for _, value in parses)
    mu = {item: value / z for item, value in ref.item_values(parses).items()}
    # Over one word the only label is the tag.
    weight = {item: value for item, value in mu.items() if item[2] - item[1] > 1}
    _, chart = filled(grammar, sentence)
    table = BracketTable.from_labels(grammar.nonterminals, binarized=False)
    forest = chart.forest
    rows = (forest.n_words, forest.row_span)
    brackets = bracket_marginals(
        table, *rows, forest.item_offset, forest.item_label, chart.posterior
    )
    ((label, parent, start, stop),) = bracket_trees(table, brackets, penalty)
    is_tag = label >= len(table.names)
    assert is_tag.sum() == n and (parent < 0).sum() == 1
    phrases = zip(label[~is_tag], start[~is_tag], stop[~is_tag], strict=True)
    score = sum(weight[table.names[x], i, j] - penalty for x, i, j in phrases)
    expected = ref.best_bracket_score(n, weight, penalty)
    np.testing.assert_allclose(score, expected, rtol=EXACT, atol=EXACT)
    for word, x in zip(start[is_tag], label[is_tag], strict=True):
        tags = {a: p for (a, i, j), p in mu.items() if (i, j) == (word, word + 1)}
        assert table.tag_names[x - len(table.names)] == max(tags, key=tags.get)


def test_brackets_split_chains_and_skip_intermediate_labels():
    labels = ("@NP", "NP+NP+NN", "ROOT+S", "VP+VB", "\\bare")
    table = BracketTable.from_labels(labels, binarized=True)
    item_label = np.array([1, 3, 4, 3, 2, 0], dtype=np.int32)
    item_offset = np.array([0, 1, 3, 4, 5, 5, 6], dtype=np.int64)
    weight = np.array([1.0, 0.75, 0.25, 1.0, 1.0, 1.0])
    rows = (np.array([3]), np.array([0, 6]))
    brackets = bracket_marginals(table, *rows, item_offset, item_label, weight)
    spans = np.repeat(np.arange(6), np.diff(brackets.offset))
    got = {
        (int(s), table.names[x]): []
        for s, x in zip(spans, brackets.bracket, strict=True)
    }
    for s, x, w, d in zip(
        spans, brackets.bracket, brackets.weight, brackets.depth, strict=True
    ):
        got[int(s), table.names[x]].append((float(w), float(d)))
    assert got == {
        (0, "NP"): [(1.0, 0.0), (1.0, 1.0)],
        (1, "VP"): [(0.75, 0.0)],
        (2, "VP"): [(1.0, 0.0)],
        (3, "ROOT"): [(1.0, 0.0)],
        (3, "S"): [(1.0, 1.0)],
    }
    assert table.tag_names[np.argmax(brackets.tag_weight[0])] == "NN"
    np.testing.assert_array_equal(
        brackets.tag_weight[1, [table.tag[3], table.tag[4]]], [0.75, 0.25]
    )
    ((label, parent, start, _),) = bracket_trees(table, brackets, 0.43)
    names = (*table.names, *table.tag_names)
    # Nothing is known of the whole sentence: the first bracket stands in.
    assert [names[x] for x in label] == [
        *(names[0], "ROOT", "S", "NP", "NP", "NN", "VP", "VB", "VP", "VB")
    ]
    assert parent.tolist() == [-1, 0, 1, 2, 3, 4, 2, 6, 0, 8]
    assert start.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("max_states", [1, 3])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_k_best_equals_sorted_enumeration(seed, max_states, sentence):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=max_states)
    parses = ref.all_parses(grammar, sentence)
    if max_states == 1:
        scores = [np.log(value) for _, value in parses]
    else:
        scores = ref.max_rule_scores(parses)
    model, chart = filled(grammar, sentence)
    for k in (1, 7, len(parses) + 10):
        found, items, parents = kbest_items(model, chart, k)
        expected = sorted(scores, reverse=True)[:k]
        np.testing.assert_allclose(found, expected, rtol=SUM, atol=SUM)
        named = [named_items(grammar, chart, tree) for tree in items]
        assert len(set(named)) == len(named) == len(expected)
        by_items = {
            parse.items: s for (parse, _), s in zip(parses, scores, strict=True)
        }
        np.testing.assert_allclose(
            [by_items[tree] for tree in named], found, rtol=SUM, atol=SUM
        )
        for tree, above in zip(items, parents, strict=True):
            assert_preorder(chart, tree, above)


def test_k_best_of_many_equal_trees():
    grammar = LPCFG.from_parameters(
        {("S", "S", "S"): [[[0.5]]]}, {("S", "x"): [0.5]}, {"S": [1.0]}
    )
    model, chart = filled(grammar, ["x"] * 8)
    found, items, _ = kbest_items(model, chart, 2000)
    assert len(found) == 429
    assert len({tuple(tree) for tree in items.tolist()}) == 429
    assert all(a >= b for a, b in pairwise(found))
