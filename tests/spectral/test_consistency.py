"""Exact moments through the whole pipeline give the distribution of the trees."""

from itertools import product

import numpy as np
import pytest

from lpcfg_sk import (
    LPCFG,
    InsideFeatures,
    OutsideFeatures,
    SpectralLPCFG,
    Treebank,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk.treebank import unbinarize

pytestmark = pytest.mark.slow_without_jit

LITERAL = {"smoothing": None, "lexical_smoothing": None, "lexicon_alpha": 0.0}
N1, N2 = "(NP (NN a) (CC b) (NN a))", "(NP (NN a) (CC b) (JJ c))"


def test_four_trees_with_intermediate_labels_are_learnt_exactly():
    trees = [f"(S {noun} (VB v))" for noun in (N1, N2)]
    trees += [f"(S (VB v) {noun})" for noun in (N1, N2)]
    p = np.array([0.18, 0.42, 0.12, 0.28])  # a PCFG with one state
    parser = make_parser(SpectralLPCFG(m=1, scaling=None, **LITERAL))
    parser.fit(Treebank(trees), learner__sample_weight=p)
    values = np.exp(parser[-1].score_samples(parser[:-1].transform(Treebank(trees))))
    assert np.abs(values - p).sum() <= 1e-10


WORDS = {
    "NN": "a c",
    "JJ": "c d",
    "CC": "b",
    "VB": "v w",
    "NP+NN": "a c",
    "VP+VB": "v w",
    "S+VP+VB": "v w",
}
#: Rules of a finite grammar with the labels that the default binarisation makes of
#: phrases with three and four children and of unary chains.
RIGHT = {
    "S": ["NP VP", "VP NP", "NP+NN VP", "NP+NN VP+VB", "NP S+VP+VB"],
    "VP": ["VB NP", "VB NP+NN"],
    "NP": ["NN @NP", "JJ @NP", "JJ NN"],
    "@NP": ["CC NN", "CC JJ", "JJ NN"],
}
LEFT = {
    **RIGHT,
    "NP": ["@NP NN", "@NP JJ", "JJ NN"],
    "@NP": ["NN CC", "JJ CC", "NN JJ"],
}


#: Labels with one inside tree, or in one place only, cannot tell two states apart.
ONE_STATE = {"S", "CC", "VP+VB", "S+VP+VB"}


def latent_grammar(rules, m, rng):
    """Random parameters of a grammar with the given numbers of states."""
    binary, lexical = {}, {}
    for a, bodies in rules.items():
        children = [body.split() for body in bodies]
        sizes = [m[b] * m[c] for b, c in children]
        p = rng.dirichlet(np.ones(sum(sizes)), size=m[a])
        pieces = np.split(p, np.cumsum(sizes)[:-1], axis=1)
        for (b, c), piece in zip(children, pieces, strict=True):
            binary[a, b, c] = piece.reshape(m[a], m[b], m[c])
    for a, words in WORDS.items():
        q = rng.dirichlet(np.ones(len(words.split())), size=m[a])
        for word, column in zip(words.split(), q.T, strict=True):
            lexical[a, word] = column
    return LPCFG.from_parameters(binary, lexical, {"S": [1.0]})


def enumerate_trees(a, rules):
    if a not in rules:
        return [f"({a} {word})" for word in WORDS[a].split()]
    return [
        f"({a} {left} {right})"
        for body in rules[a]
        for left, right in product(
            *(enumerate_trees(child, rules) for child in body.split())
        )
    ]


@pytest.mark.parametrize(("direction", "rules"), [("right", RIGHT), ("left", LEFT)])
@pytest.mark.parametrize("states", [1, 2])
def test_exact_moments_of_the_default_pipeline_give_the_exact_distribution(
    direction, rules, states
):
    binary = Treebank(enumerate_trees("S", rules)).replace(binarized=True)
    m = {a: 1 if a in ONE_STATE else states for a in [*rules, *WORDS]}
    grammar = latent_grammar(rules, m, np.random.default_rng(0))
    p = np.exp(grammar.log_prob(binary))
    assert np.isclose(p.sum(), 1.0, rtol=1e-12, atol=0)
    trees = unbinarize(binary)
    parser = make_parser(SpectralLPCFG(m=states, **LITERAL), direction=direction)
    parser.fit(trees, learner__sample_weight=p)
    assert parser[-1].m_ == m
    seen = parser[:-1].transform(trees)
    assert [str(tree) for tree in seen] == [str(tree) for tree in binary]
    sign, log_value = parser[-1].grammar_.tree_values(seen)
    assert np.abs(sign * np.exp(log_value) - p).sum() <= 1e-10


@pytest.mark.parametrize("horizontal", [0, 1, None])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_outside_features_do_not_change_with_the_inside_tree(direction, horizontal):
    """Trees that differ only below a node have the same features at the node."""
    bodies = ["(NN a) (CC b) (NN a)", "(NN a) (CC b) (JJ c)", "(JJ c) (JJ c) (JJ c)"]
    trees = [
        f"(S (VB v) (NP {head} {body} {tail}) (VP (VB v)))"
        for head in ("(DT d)", "(NN n)")
        for body in bodies
        for tail in ("(NN n)", "(JJ c)")
    ]
    binarizer = TreeBinarizer(direction=direction, horizontal=horizontal)
    bank = binarizer.fit_transform(Treebank(trees))
    bank = OutsideFeatures().fit_transform(InsideFeatures().fit_transform(bank))
    seen, n_compared = {}, 0
    for tree, (begin, end) in enumerate(
        zip(bank.node_offsets[:-1], bank.node_offsets[1:], strict=True)
    ):
        labels = [bank.labels[i] for i in bank.label[begin:end]]
        words = bank.sentences()[tree]
        for node in range(end - begin):
            first, last = node, node + int(bank.size[begin + node])
            start, stop = bank.start[begin + node], bank.stop[begin + node]
            outside = (
                tuple(labels[: first + 1]),
                tuple(labels[last:]),
                tuple(bank.size[begin + last : end].tolist()),
                tuple(words[:start]),
                tuple(words[stop:]),
            )
            features = bank.blocks["outside"][begin + node].indices.tolist()
            n_compared += outside in seen
            assert seen.setdefault(outside, features) == features
    assert n_compared > 20
