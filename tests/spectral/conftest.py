"""A grammar of finitely many trees, small enough to enumerate."""

import numpy as np
import pytest

from lpcfg_sk import LPCFG, InsideFeatures, OutsideFeatures, Treebank

WORDS = ("x", "y", "z")
RULES = {
    "S": (("A", "B"), ("B", "A"), ("A", "C")),
    "A": (("C", "D"), ("D", "C")),
    "B": (("C", "C"), ("A", "D")),
}
STATES = {"S": 1, "A": 2, "B": 2, "C": 2, "D": 3}


def finite_grammar(rng):
    """Random parameters; S stands only at roots and has one state."""
    binary, lexical = {}, {}
    for a, children in RULES.items():
        sizes = [STATES[b] * STATES[c] for b, c in children]
        p = rng.dirichlet(np.full(sum(sizes), 0.7), size=STATES[a])
        pieces = np.split(p, np.cumsum(sizes)[:-1], axis=1)
        for (b, c), piece in zip(children, pieces, strict=True):
            binary[a, b, c] = piece.reshape(STATES[a], STATES[b], STATES[c])
    for a in ("C", "D"):
        q = rng.dirichlet(np.full(len(WORDS), 0.7), size=STATES[a])
        for x, column in zip(WORDS, q.T, strict=True):
            lexical[a, x] = column
    return LPCFG.from_parameters(binary, lexical, {"S": [1.0]})


def enumerate_trees(a):
    if a not in RULES:
        return [f"({a} {x})" for x in WORDS]
    return [
        f"({a} {left} {right})"
        for b, c in RULES[a]
        for left in enumerate_trees(b)
        for right in enumerate_trees(c)
    ]


def with_features(treebank):
    return OutsideFeatures().fit_transform(InsideFeatures().fit_transform(treebank))


@pytest.fixture(scope="session")
def finite():
    """The grammar, all its trees with features, and their probabilities."""
    grammar = finite_grammar(np.random.default_rng(0))
    trees = with_features(Treebank(enumerate_trees("S")))
    return grammar, trees, np.exp(grammar.log_prob(trees))


@pytest.fixture(scope="session")
def sampled(finite):
    """Two hundred trees of the grammar."""
    _, trees, p = finite
    rng = np.random.default_rng(1)
    return trees[rng.choice(len(trees), size=200, p=p / p.sum())]
