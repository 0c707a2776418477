import numpy as np
import pytest

from lpcfg_sk import WTA, Treebank
from lpcfg_sk._kernels._chart_spans import span_index
from lpcfg_sk._kernels._wta_charts import best_bracketing
from lpcfg_sk.automata import bracketing_counts, bracketing_f1
from lpcfg_sk.automata._compressor import mbr_bracketings
from lpcfg_sk.automata._values import width_offsets
from tests.reference import wta as reference


def test_cells_of_spans():
    np.testing.assert_array_equal(width_offsets(3), [0, 0, 3, 5, 6])
    for length in (1, 2, 7):
        first = width_offsets(length)
        for width in range(1, length + 1):
            for start in range(length - width + 1):
                number = span_index(start, start + width, length)
                assert first[width] + start == number
        assert first[-1] == span_index(0, length, length) + 1


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_best_bracketing_by_enumeration(seed, length):
    rng = np.random.default_rng(seed)
    first = width_offsets(length)
    gain = rng.standard_normal(first[-1])
    gain.flags.writeable = False
    size, parent, start, stop = best_bracketing(length, gain)

    def total(spans):
        return sum(gain[first[b - a] + a] for a, b in spans if b - a > 1)

    best = max(map(reference.spans, reference.topologies(length)), key=total)
    assert list(zip(start.tolist(), stop.tolist(), strict=True)) == best
    for v in range(1, len(size)):
        p = parent[v]
        assert p < v < p + size[p]
        assert start[p] <= start[v] and stop[v] <= stop[p]
    assert parent[0] == -1 and size[0] == 2 * length - 1


def test_mbr_tree_has_the_largest_sum_of_posteriors(seed):
    rng = np.random.default_rng(seed)
    wta = reference.random_wta(rng, 3, scale=2.0)
    X = Treebank([list("abbab"), ["a"], ["b", "a"]])
    trees, failed = mbr_bracketings(wta, X, n_jobs=2)
    assert len(failed) == 0
    assert trees.sentences() == X.sentences()
    chart = next(wta.span_charts(X[:1]))
    mu = chart.posteriors()
    best = max(
        map(reference.spans, reference.topologies(5)),
        key=lambda s: sum(mu[chart.first[b - a] + a] for a, b in s),
    )
    nodes = slice(*trees.node_offsets[:2])
    found = list(zip(trees.start[nodes], trees.stop[nodes], strict=True))
    assert [tuple(map(int, s)) for s in found] == best


def test_zero_sentences_branch_to_the_right():
    wta = WTA([1.0], [[[0.5]]], {"a": [1.0]})
    trees, failed = mbr_bracketings(wta, Treebank([["z", "z", "a"], ["a"], ["z"]]))
    np.testing.assert_array_equal(failed, [0])
    assert str(trees[0]) == "(X (X z) (X (X z) (X a)))"


def test_counts_and_f1():
    gold = Treebank(["(S (A a) (B (C b) (D c)))", "(S (A a) (B b))", "(A a)"])
    other = Treebank(["(S (T (A a) (C b)) (D c))", "(X (X a) (X b))", "(X a)"])
    matched, n_gold, n_predicted = bracketing_counts(gold, other)
    np.testing.assert_array_equal(matched, [1, 1, 0])
    np.testing.assert_array_equal(n_gold, [2, 1, 0])
    np.testing.assert_array_equal(n_predicted, [2, 1, 0])
    assert bracketing_f1(gold, other) == 2 * 2 / 6
    assert bracketing_f1(gold, other, np.array([0.0, 1, 1])) == 1
    assert bracketing_f1(gold[2:], other[2:]) == 1
    with pytest.raises(ValueError, match="same sentences"):
        bracketing_counts(gold, other[:2])


def test_unary_chains_and_wide_nodes_count_spans_once():
    gold = Treebank(["(S (VP (A a) (B b) (C c)))"])
    assert bracketing_counts(gold, gold)[1][0] == 1
