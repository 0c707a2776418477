import numpy as np
import pytest

from lpcfg_sk import CFG, Treebank
from lpcfg_sk.cfg._derivations import (
    best_trees,
    expected_rule_counts,
    rules_of_trees,
    treebank_from_nodes,
)
from lpcfg_sk.cfg._empirical_risk import normalised, uniform
from tests.reference import cfg as reference
from tests.tolerances import EXACT, ITERATIVE, SUM

pytestmark = pytest.mark.kernels

GRAMMARS = {
    "ambiguous": "S -> S S | a | b",
    "long": "S -> A S B | A 'x' B | 'x'\nA -> 'a' | A 'a' | 'x' A 'x'\nB -> 'b' | A",
    "unary": "S -> A | A B\nA -> C | 'a'\nC -> B | 'c' C\nB -> 'b' | 'a' 'b'",
    "mixed": "S -> S 'and' S | NP VP\nNP -> N | 'the' N | NP PP\nVP -> V NP | VP PP\n"
    "PP -> 'on' NP\nN -> 'dog' | 'park'\nV -> 'sees' | 'dog'",
}
SENTENCES = {
    "ambiguous": ["a", "a b", "a b a b a"],
    "long": ["x", "a x b", "a x a", "x a x x b", "a a x b b"],
    "unary": ["a", "b", "c b", "a b a b", "c c a b b"],
    "mixed": [
        "dog sees dog",
        "the dog sees the park on dog",
        "dog sees dog and park dog park on the dog",
    ],
}


def random_theta(grammar, rng):
    return normalised(grammar, rng.standard_exponential(len(grammar.rules)))


@pytest.mark.parametrize("name", GRAMMARS)
def test_inside_outside_equals_enumeration(name, seed):
    grammar = CFG.from_string(GRAMMARS[name])
    rng = np.random.default_rng(seed)
    theta = random_theta(grammar, rng)
    for text in SENTENCES[name]:
        X = Treebank([text.split()])
        total, counts = reference.expected_counts(grammar, text.split(), theta)
        log_probability, found = expected_rule_counts(
            grammar, X, theta, np.array([2.0])
        )
        np.testing.assert_allclose(np.exp(log_probability[0]), total, rtol=EXACT)
        np.testing.assert_allclose(found, 2 * np.array(counts), rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", GRAMMARS)
def test_best_tree_equals_enumeration(name, seed):
    grammar = CFG.from_string(GRAMMARS[name])
    theta = random_theta(grammar, np.random.default_rng(seed))
    X = Treebank([text.split() for text in SENTENCES[name]])
    found = treebank_from_nodes(
        X, list(best_trees(grammar, X, theta, "viterbi")), grammar.nonterminals
    )
    for tree, text in zip(found, SENTENCES[name], strict=True):
        best = max(
            reference.derivations(grammar, text.split()),
            key=lambda d: reference.probability(d, theta),
        )
        assert str(tree) == reference.bracketed(grammar, best)


@pytest.mark.parametrize("name", GRAMMARS)
def test_max_marginal_tree_equals_enumeration(name, seed):
    grammar = CFG.from_string(GRAMMARS[name])
    theta = random_theta(grammar, np.random.default_rng(seed + 1))
    X = Treebank([text.split() for text in SENTENCES[name]])
    found = treebank_from_nodes(
        X, list(best_trees(grammar, X, theta, "max-marginal")), grammar.nonterminals
    )
    for tree, text in zip(found, SENTENCES[name], strict=True):
        options = reference.derivations(grammar, text.split())
        weights = np.array([reference.probability(d, theta) for d in options])
        posterior = {}
        for d, w in zip(options, weights / weights.sum(), strict=True):
            for span in reference.constituents(grammar, d)[0]:
                posterior[span] = posterior.get(span, 0.0) + w
        gains = {
            reference.bracketed(grammar, d): sum(
                posterior[s] for s in reference.constituents(grammar, d)[0]
            )
            for d in options
        }
        np.testing.assert_allclose(gains[str(tree)], max(gains.values()), rtol=SUM)


@pytest.mark.parametrize("name", GRAMMARS)
def test_expected_counts_are_the_gradient(name, seed):
    grammar = CFG.from_string(GRAMMARS[name])
    theta = random_theta(grammar, np.random.default_rng(seed)) * 0.9
    X = Treebank([text.split() for text in SENTENCES[name]])
    weights = np.ones(len(X))
    _, counts = expected_rule_counts(grammar, X, theta, weights)
    step = 1e-6
    for rule in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[rule] *= 1 + step
        down[rule] *= 1 - step
        rise = expected_rule_counts(grammar, X, up, weights)[0].sum()
        fall = expected_rule_counts(grammar, X, down, weights)[0].sum()
        # d log p / d log theta is the expected count.
        np.testing.assert_allclose(
            counts[rule], (rise - fall) / (2 * step), rtol=ITERATIVE, atol=ITERATIVE
        )


def test_cyclic_unaries_sum_to_a_geometric_series():
    grammar = CFG.from_string("S -> S | a", unary_cycles="allow")
    theta = np.array([0.25, 0.75])
    X = Treebank([["a"]])
    log_probability, counts = expected_rule_counts(grammar, X, theta, np.ones(1))
    np.testing.assert_allclose(np.exp(log_probability), 1.0, rtol=EXACT)
    np.testing.assert_allclose(counts, [0.25 / 0.75, 1.0], rtol=EXACT)
    label, size, _ = next(best_trees(grammar, X, theta, "viterbi"))
    assert label.tolist() == [0]
    assert size.tolist() == [1]
    with pytest.raises(ValueError, match="spectral radius 1"):
        expected_rule_counts(grammar, X, np.array([1.0, 0.0]), np.ones(1))


@pytest.mark.slow_without_jit
def test_long_sentences_do_not_underflow():
    grammar = CFG.from_string("S -> 'a' S | 'b' S | 'a'")
    theta = np.array([1e-9, 1.0 - 2e-9, 1e-9])
    X = Treebank([["a"] * 150])
    log_probability, counts = expected_rule_counts(grammar, X, theta, np.ones(1))
    np.testing.assert_allclose(log_probability, 150 * np.log(1e-9), rtol=EXACT)
    np.testing.assert_allclose(counts, [149, 0, 1], atol=SUM)


def test_what_the_grammar_does_not_derive():
    grammar = CFG.from_string(GRAMMARS["mixed"])
    X = Treebank([["dog"], ["never", "seen"], []])
    log_probability, counts = expected_rule_counts(
        grammar, X, uniform(grammar), np.ones(3)
    )
    assert np.isneginf(log_probability).all()
    assert not counts.any()
    assert [len(t[0]) for t in best_trees(grammar, X, uniform(grammar), "viterbi")] == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("name", GRAMMARS)
def test_rules_of_trees_equal_the_derivations(name):
    grammar = CFG.from_string(GRAMMARS[name])
    for text in SENTENCES[name]:
        options = reference.derivations(grammar, text.split())
        X = Treebank([reference.bracketed(grammar, d) for d in options])
        row, rule, derivable = rules_of_trees(grammar, X)
        assert derivable.all()
        for i, d in enumerate(options):
            counts = np.bincount(rule[row == i], minlength=len(grammar.rules))
            wanted = reference.rule_counts(d)
            assert {r: n for r, n in enumerate(counts) if n} == dict(wanted)


@pytest.mark.parametrize(
    "tree",
    [
        "(S (A a) (B b))",
        "(S (A a) x (B zzz))",
        "(Q x)",
        "(A a)",
        "(S (A a) (S x) (C b))",
        "(S (A a) y (B b))",
    ],
)
def test_trees_outside_the_grammar(tree):
    grammar = CFG.from_string(GRAMMARS["long"])
    X = Treebank(["(S (A a) x (B b))", tree])
    np.testing.assert_array_equal(rules_of_trees(grammar, X)[2], [True, False])


def test_jobs_do_not_change_a_bit(wsj_dev):
    tags = wsj_dev.label[wsj_dev.size == 1]
    X = wsj_dev.replace(
        token=tags, tokens=wsj_dev.labels, word=tags, words=wsj_dev.labels
    )
    X = X[X.lengths <= 15]
    grammar = CFG.from_treebank(X)
    theta, weights = uniform(grammar), np.ones(len(X))
    one = expected_rule_counts(grammar, X, theta, weights, n_jobs=1)
    two = expected_rule_counts(grammar, X, theta, weights, n_jobs=2)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
