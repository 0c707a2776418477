from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import LPCFG
from tests.reference import lpcfg as reference


@pytest.fixture
def grammar():
    return LPCFG.from_parameters(
        binary={
            ("S", "A", "A"): [[[0.5, 0.1], [0.0, 0.1]]],
            ("S", "S", "A"): [[[0.2, 0.1]]],
        },
        lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
        root={"S": [1.0]},
    )


@pytest.mark.slow_without_jit
def test_trees_come_with_their_probabilities(grammar):
    n = 40_000
    trees = grammar.sample(n, 0)
    counts = Counter(map(str, trees))
    for tree, count in counts.most_common(8):
        p = float(np.exp(grammar.log_prob([tree])[0]))
        assert abs(count / n - p) < 5 * np.sqrt(p * (1 - p) / n), tree


@pytest.mark.slow_without_jit
def test_states_come_with_their_posteriors(grammar):
    trees, states = grammar.sample(40_000, 1, return_states=True)
    leaf = trees.size == 1
    word = trees.word[trees.token_offsets[:-1].repeat(np.diff(trees.token_offsets))]
    assert len(states) == trees.n_nodes
    assert len(word) == leaf.sum()
    y = trees.words.index("y")
    assert np.all(states[leaf][trees.word == y] == 1)
    emitted = states[leaf] == 1
    assert_allclose((trees.word[emitted] == y).mean(), 0.75, rtol=0.03, atol=0)


def test_columns_are_those_of_the_bracketed_trees(seed):
    rng = np.random.default_rng(seed)
    grammar = reference.random_grammar(rng)
    small = {  # rules that lead to words, so that trees are finite
        rule: tensor * (1.0 if {rule[1], rule[2]} <= set(reference.TAGS) else 0.1)
        for rule, tensor in grammar.binary.items()
    }
    grammar = LPCFG.from_parameters(small, grammar.lexical, grammar.root).normalized()
    trees = grammar.sample(50, seed, max_nodes=10_000)
    again = type(trees)([str(t) for t in trees])
    assert again == trees
    for name in ("size", "parent", "start", "stop"):
        assert np.array_equal(getattr(again, name), getattr(trees, name)), name
    assert np.all(np.isfinite(grammar.log_prob(trees)))


def test_a_smaller_sample_is_the_beginning_of_a_larger_one(grammar):
    assert grammar.sample(20, 3)[:7] == grammar.sample(7, 3)
    assert grammar.sample(7, 3) != grammar.sample(7, 4)
    assert len(grammar.sample(0, 3)) == 0


def test_only_probabilities_can_be_sampled(grammar):
    with pytest.raises(ValueError, match="parameter of lexical is negative"):
        grammar.conjugate({"A": [[1.0, 2.0], [0.0, 1.0]]}).sample()
    double = LPCFG.from_parameters(
        grammar.binary, {r: 2 * v for r, v in grammar.lexical.items()}, grammar.root
    )
    with pytest.raises(ValueError, match="state 0 of 'A' sum to 2"):
        double.sample()
    rootless = LPCFG.from_parameters(grammar.binary, grammar.lexical, {"S": [0.5]})
    with pytest.raises(ValueError, match=r"root probabilities sum to 0\.5"):
        rootless.sample()
    with pytest.raises(ValueError, match="whole number"):
        grammar.sample(-1)


def test_infinite_trees_are_refused():
    grammar = LPCFG.from_parameters(
        binary={("S", "S", "S"): [[[0.9]]]},
        lexical={("S", "x"): [0.1]},
        root={"S": [1.0]},
    )
    with pytest.raises(ValueError, match="max_nodes=500"):
        grammar.sample(20, 0, max_nodes=500)
