"""Entropy, divergences and Chi's construction against sums over all derivations."""

import math
from collections import defaultdict
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from lpcfg_sk import CFG, MarginEMPCFG, Treebank
from lpcfg_sk.cfg import (
    entropy,
    excess_risk,
    hmm_to_cfg,
    kl_divergence,
    partition_function,
    renormalize,
    rule_expectations,
    rule_second_moments,
)
from lpcfg_sk.cfg._derivations import expected_rule_counts
from lpcfg_sk.cfg._empirical_risk import normalised
from tests.tolerances import EXACT, ITERATIVE, SUM

#: The first two have finitely many derivations, the others are cut off by length.
GRAMMARS = {
    "finite": "S -> A B | B B | A\nA -> a | B b\nB -> c | d | C\nC -> e | f",
    "repeated": "S -> A A A | A\nA -> B B | x\nB -> y | z",
    "recursive": "S -> A S | b\nA -> c A | d",
    "branching": "S -> S S | A | B\nA -> a | b A\nB -> c",
}


def all_derivations(grammar, theta, length=40):
    """Weights of derivations by their rule counts, up to a number of rules."""
    unit = np.eye(len(grammar.rules), dtype=int)

    def product(left, right):
        out = defaultdict(float)
        for a, p in left.items():
            for b, q in right.items():
                if sum(a) + sum(b) <= length:
                    out[tuple(np.add(a, b))] += p * q
        return out

    nothing = tuple(np.zeros(len(grammar.rules), dtype=int))
    below = {name: {} for name in grammar.nonterminals}
    while True:
        new = {name: defaultdict(float) for name in below}
        for r, rule in enumerate(grammar.rules):
            part = {tuple(unit[r]): theta[r]}
            for symbol, terminal in zip(rule.rhs, rule.terminal, strict=True):
                part = product(part, {nothing: 1.0} if terminal else below[symbol])
            for counts, p in part.items():
                new[rule.lhs][counts] += p
        if all(new[name].keys() == below[name].keys() for name in below):
            counts = np.array(list(new[grammar.start]))
            return counts, np.array(list(new[grammar.start].values()))
        below = new


def draw(grammar, seed):
    """Two sets of probabilities with little weight on long derivations."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 1.5, size=(2, len(grammar.rules)))
    for r, rule in enumerate(grammar.rules):
        if rule.lhs in rule.rhs:
            base[:, r] *= 0.01
    return [normalised(grammar, weights) for weights in base]


@pytest.fixture(params=GRAMMARS, scope="module")
def model(request):
    grammar = CFG.from_string(GRAMMARS[request.param])
    p, q = draw(grammar, 0)
    counts, mass = all_derivations(grammar, p, 22)
    assert mass.sum() == pytest.approx(1, abs=SUM)
    return grammar, p, q, counts, mass


def test_moments_are_sums_over_derivations(model):
    grammar, p, _, counts, mass = model
    np.testing.assert_allclose(rule_expectations(grammar, p), mass @ counts, atol=SUM)
    second = (counts.T * mass) @ counts
    np.testing.assert_allclose(rule_second_moments(grammar, p), second, atol=SUM)


def test_entropy_and_divergence_are_sums_over_derivations(model):
    grammar, p, q, counts, mass = model
    log_p, log_q = counts @ np.log(p), counts @ np.log(q)
    assert entropy(grammar, p) == pytest.approx(-mass @ log_p, abs=SUM)
    divergence = kl_divergence(grammar, p, q)
    assert divergence == pytest.approx(mass @ (log_p - log_q), abs=SUM)
    assert divergence > 0
    assert excess_risk(grammar, p, q) == divergence


def test_closed_forms_of_a_geometric_chain():
    grammar, stop = CFG.from_string("S -> a S | b"), 0.3
    theta = [1 - stop, stop]
    mean, square = (1 - stop) / stop, (1 - stop) * (2 - stop) / stop**2
    np.testing.assert_allclose(
        rule_second_moments(grammar, theta), [[square, mean], [mean, 1]], rtol=EXACT
    )
    h = -(1 - stop) * math.log(1 - stop) - stop * math.log(stop)
    assert entropy(grammar, theta) == pytest.approx(h / stop, rel=EXACT)


def test_divergence_is_infinite_where_a_used_rule_is_forbidden():
    grammar = CFG.from_string("S -> a S | b")
    assert kl_divergence(grammar, [0.5, 0.5], [0.0, 1.0]) == math.inf
    # log(1/0.5) for the one derivation that is left.
    value = kl_divergence(grammar, [0.0, 1.0], [0.5, 0.5])
    assert value == pytest.approx(math.log(2), rel=EXACT)


@pytest.mark.parametrize("gamma", [0.1, 0.3, 0.5])
def test_excess_risk_is_relative_to_the_best_grammar_with_the_margin(gamma):
    grammar = CFG.from_string(GRAMMARS["finite"])
    p, q = draw(grammar, 1)
    counts = rule_expectations(grammar, p).to_numpy()
    risk = excess_risk(grammar, p, q, gamma=gamma)
    best = -counts @ np.log(q) - risk
    # The loss of each link is convex in its probability: a root of the derivative, or
    # the end of the interval towards which it falls.
    losses = []
    for lhs in grammar.nonterminals:
        own = [
            c for c, rule in zip(counts, grammar.rules, strict=True) if rule.lhs == lhs
        ]
        total = 0.0
        for i in range(len(own) - 1):
            later = sum(own[i + 1 :])
            slope = partial(_slope, own[i], later)
            ends = gamma, 1 - gamma
            if slope(ends[0]) < 0 < slope(ends[1]):
                b = brentq(slope, *ends, xtol=1e-15)
            else:
                b = ends[0] if slope(ends[0]) >= 0 else ends[1]
            total += -own[i] * math.log(b) - later * math.log(1 - b)
        losses.append(total)
    assert best == pytest.approx(sum(losses), rel=SUM)


def _slope(first, later, b):
    """Derivative of -first log b - later log(1 - b)."""
    return later / (1 - b) - first / b


def test_infinite_expectations_are_refused():
    grammar = CFG.from_string("S -> S S | a")
    with pytest.raises(ValueError, match="infinitely long in expectation"):
        entropy(grammar, [0.5, 0.5])
    with pytest.raises(ValueError, match=r"sum to 0.9, not 1"):
        entropy(grammar, [0.3, 0.6])
    with pytest.raises(ValueError, match="one number per rule, 2"):
        entropy(grammar, [1.0])
    with pytest.raises(ValueError, match="not negative"):
        partition_function(grammar, [-1.0, 1.0])


def test_rules_that_the_start_symbol_does_not_reach_have_no_part():
    grammar = CFG.from_string("S -> a | B\nB -> B B | b")
    theta = [1.0, 0.0, 0.9, 0.1]
    assert rule_expectations(grammar, theta).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert entropy(grammar, theta) == 0


@pytest.mark.parametrize(("again", "stop"), [(0.75, 0.25), (0.2, 0.8), (3.0, 0.01)])
def test_partition_function_of_a_branching_process(again, stop):
    """Z = again Z² + stop."""
    grammar = CFG.from_string("S -> S S | a")
    Z = (1 - math.sqrt(1 - 4 * again * stop)) / (2 * again)
    found = partition_function(grammar, [again, stop])
    assert found["S"] == pytest.approx(Z, rel=SUM)
    theta = renormalize(grammar, [again, stop])
    np.testing.assert_allclose(theta, [again * Z, stop / Z], rtol=SUM)


def test_partition_function_at_a_double_root_and_beyond():
    grammar = CFG.from_string("S -> S S | a")
    assert partition_function(grammar, [0.5, 0.5])["S"] == pytest.approx(
        1, abs=ITERATIVE
    )
    with pytest.raises(ValueError, match="infinite"):
        partition_function(grammar, [0.5, 0.6])
    with pytest.raises(ValueError, match="nothing to sum"):
        partition_function(grammar, [0.5, 0.0])


@pytest.mark.parametrize("name", GRAMMARS)
def test_renormalised_probabilities_are_the_weights_over_their_sum(name, seed):
    grammar = CFG.from_string(GRAMMARS[name])
    weights = draw(grammar, seed)[0] * 0.7
    counts, mass = all_derivations(grammar, weights, 22)
    Z = partition_function(grammar, weights)
    assert Z[grammar.start] == pytest.approx(mass.sum(), abs=SUM)
    theta = renormalize(grammar, weights)
    log_weight, log_p = counts @ np.log(weights), counts @ np.log(theta)
    np.testing.assert_allclose(log_p, log_weight - math.log(Z[grammar.start]), atol=SUM)
    again = renormalize(grammar, theta)
    np.testing.assert_allclose(again, theta, atol=SUM)


def test_renormalised_probabilities_of_useless_rules():
    grammar = CFG.from_string("S -> a S | B | b\nB -> B | c", unary_cycles="allow")
    theta = renormalize(grammar, [0.5, 1.0, 0.5, 1.0, 0.0])
    assert theta.tolist() == [0.5, 0.0, 0.5, 0.5, 0.5]


def forward(initial, transition, emission, stop, sentence):
    alpha = initial * emission[:, sentence[0]]
    for word in sentence[1:]:
        alpha = (alpha @ transition) * emission[:, word]
    return alpha @ stop


def test_hmm_gives_the_probabilities_of_the_forward_algorithm(seed):
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(3))
    both = rng.dirichlet(np.ones(4), size=3)
    transition, stop = both[:, :3], both[:, 3]
    emission = rng.dirichlet(np.ones(2), size=3)
    grammar, theta = hmm_to_cfg(initial, transition, emission, stop=stop)
    sentences = [[0], [1, 0], [0, 0, 1, 1, 0, 1]]
    X = Treebank([[str(w) for w in sentence] for sentence in sentences])
    log_p, _ = expected_rule_counts(grammar, X, theta.to_numpy(), np.zeros(3))
    expected = [forward(initial, transition, emission, stop, s) for s in sentences]
    np.testing.assert_allclose(np.exp(log_p), expected, rtol=SUM)
    # Expected number of words: 1'(I - T)^-1 from the initial distribution.
    words = initial @ np.linalg.inv(np.eye(3) - transition) @ np.ones(3)
    found = rule_expectations(grammar, theta).filter(regex="^E").sum()
    assert found == pytest.approx(words, rel=SUM)
    fitted = MarginEMPCFG(grammar, max_iter=2, tol=None).fit(X)
    assert fitted.log_losses_[-1] <= fitted.log_losses_[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("initial", [0.5, 0.6]),
        ("transition", [[0.5, 0.5], [0.5, 0.5]]),
        ("emission", [[0.5], [1.0]]),
        ("stop", [0.5]),
        ("stop", [-0.5, 1.5]),
    ],
)
def test_bad_hmms_are_refused(name, value):
    good = {
        "initial": [0.5, 0.5],
        "transition": [[0.5, 0.0], [0.0, 0.5]],
        "emission": [[1.0], [1.0]],
        "stop": [0.5, 0.5],
    }
    hmm_to_cfg(**good)
    with pytest.raises(ValueError, match=name):
        hmm_to_cfg(**{**good, name: value})
