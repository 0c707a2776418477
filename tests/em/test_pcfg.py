import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import PCFG, Treebank, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.testing import tree_checks
from tests.tolerances import EXACT

TREES = Treebank(
    [
        "(S (NP (D the) (N dog)) (VP barks))",
        "(S (NP (D the) (N cat)) (VP (V sees) (NP (D the) (N dog))))",
        "(S (NP (D a) (N dog)) (VP (V sees) (NP (D a) (N cat))))",
        "(S (NP (D a) (N cat)) (VP sleeps))",
        "(S (NP (D the) (N cat)) (VP barks))",
        "(S (NP (D a) (N bird)) (VP sings))",
        "(S (NP (D the) (N bird)) (VP (V sees) (NP (D a) (N cat))))",
        "(S (NP (D the) (N dog)) (VP (V hears) (NP (D the) (N bird))))",
    ]
)
CHECKS = dict(tree_checks(PCFG(), TREES))


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


def test_probabilities_are_relative_frequencies():
    grammar = PCFG(smoothing=0).fit(TREES).grammar_
    assert grammar.is_probabilistic
    assert grammar.unknown_word is None
    assert_allclose(grammar.binary["VP", "V", "NP"], 4 / 8, rtol=EXACT)
    assert_allclose(grammar.lexical["VP", "barks"], 2 / 8, rtol=EXACT)
    assert_allclose(grammar.lexical["D", "the"], 7 / 12, rtol=EXACT)
    assert_allclose(grammar.root["S"], 1.0, rtol=EXACT)


def test_no_other_probabilities_make_the_trees_more_likely(seed):
    # Moving weight between the rules of one nonterminal lowers the likelihood.
    grammar = PCFG(smoothing=0).fit(TREES).grammar_
    best = grammar.log_prob(TREES).sum()
    rng = np.random.default_rng(seed)
    for _ in range(20):
        binary, lexical = (
            v * np.exp(0.1 * rng.standard_normal(len(v)))
            for v in (grammar.arrays.binary, grammar.arrays.lexical)
        )
        arrays = grammar.arrays._replace(binary=binary, lexical=lexical)
        other = type(grammar).from_arrays(grammar.nonterminals, grammar.words, arrays)
        assert other.normalized().log_prob(TREES).sum() < best


def test_smoothing_knows_unknown_words():
    model = PCFG().fit(TREES)
    assert model.grammar_.is_probabilistic
    assert model.m_ == dict.fromkeys(("D", "N", "NP", "S", "V", "VP"), 1)
    tree = model.predict([["the", "wug", "sleeps"]])[0]
    assert str(tree) == "(S (NP (D the) (N wug)) (VP sleeps))"


def test_transform_of_one_state_is_one():
    vectors = PCFG().fit(TREES).transform(TREES).blocks["vectors"]
    assert_allclose(vectors, 1.0, rtol=EXACT)
    assert vectors.shape == (TREES.n_nodes, 1)


@pytest.mark.slow_without_jit
def test_the_toy_treebank_is_parsed():
    trees = load_toy()
    assert make_parser(PCFG()).fit(trees).score(trees) > 0.6


@pytest.mark.slow
def test_wsj(wsj_train, wsj_dev):
    parser = make_parser(PCFG(decoder="max-marginal")).fit(wsj_train)
    assert parser.score(wsj_dev) >= 0.69
