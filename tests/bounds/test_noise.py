"""Tsybakov noise, proposition 4 and Hoeffding's inequality for rule frequencies."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from lpcfg_sk import CFG
from lpcfg_sk.bounds import (
    asymptotic_risk_gap,
    log_ratio_distance,
    moment_ratios,
    parameter_deviation_probability,
    tightness,
    tsybakov_counterexample,
    tsybakov_gap,
)
from lpcfg_sk.cfg import kl_divergence
from tests.tolerances import EXACT, SUM

TWO = CFG.from_string("S -> A S | b\nA -> c A | d")
P = [0.4, 0.6, 0.4, 0.6]


def chain(stop, n=400):
    """Counts of the first rule of S -> a S | b, and their probabilities."""
    k = np.arange(n)
    return k, (1 - stop) ** k * stop


def test_distance_is_a_sum_over_derivations():
    grammar = CFG.from_string("S -> a S | b")
    k, mass = chain(0.5)
    g, h = (0.3, 0.7), (0.6, 0.4)
    ratio = k * math.log(g[0] / h[0]) + math.log(g[1] / h[1])
    found = log_ratio_distance(grammar, [0.5, 0.5], g, h)
    assert found == pytest.approx(math.sqrt(mass @ ratio**2), rel=SUM)
    assert log_ratio_distance(grammar, [0.5, 0.5], g, g) == 0
    assert log_ratio_distance(grammar, [0.5, 0.5], g, [0.0, 1.0]) == math.inf


def test_moment_ratios_are_positive_semidefinite():
    """Lemma 6; singular with more than one nonterminal, so theorem 5 says nothing."""
    one = CFG.from_string("S -> a S | b | c")
    assert np.linalg.eigvalsh(moment_ratios(one, [0.5, 0.3, 0.2]))[0] > 0.01
    assert np.linalg.eigvalsh(moment_ratios(TWO, P))[0] == pytest.approx(0, abs=SUM)
    k, mass = chain(0.3)
    ratios = moment_ratios(CFG.from_string("S -> a S | b"), [0.7, 0.3]).to_numpy()
    assert ratios[0, 0] == pytest.approx(mass @ k**2 / (mass @ k) ** 2, rel=SUM)


def exact_gap(epsilon, mu, c1, c2, C, kappa):
    """Lemma 7 as printed, with 80 digits."""
    with localcontext() as context:
        context.prec = 80
        epsilon, mu, c1, c2, C = map(Decimal, (epsilon, mu, c1, c2, C))
        alpha = C * (epsilon.ln() / Decimal(kappa)).exp()
        a = mu * ((alpha + epsilon / 2) / c1).exp()
        b = mu * ((-alpha + epsilon / 2) / c2).exp()
        ratios = c1 * (1 - mu) / (1 - a) + c2 * (1 - mu) / (1 - b)
        return float(ratios - (c1 + c2) * (epsilon / 2).exp())


@pytest.mark.parametrize("kappa", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1e-3, 1e-6, 1e-12])
def test_lemma_7_has_no_cancellation(epsilon, kappa):
    constants = {"mu": 0.3, "c1": 1.0, "c2": 2.0, "C": 0.5, "kappa": kappa}
    found = tsybakov_gap(epsilon, **constants)
    # The two terms of ±α cancel to first order: doubles leave α² of α.
    scale = max(abs(found), 1e-7 * epsilon ** (1 / kappa))
    assert abs(found - exact_gap(epsilon, **constants)) <= SUM * scale


@pytest.mark.parametrize(("c1", "c2", "C"), [(1.0, 2.0, 1.0), (0.5, 3.0, 0.2)])
def test_lemma_7_to_first_order(c1, c2, C):
    mu, epsilon = 0.3, 1e-11
    slope = mu / (1 - mu) - (c1 + c2) / 2
    t = tsybakov_gap(epsilon, mu=mu, c1=c1, c2=c2, C=C, kappa=1.0)
    # With κ = 1 the next term of the expansion is of order ε².
    assert t / epsilon == pytest.approx(slope, rel=SUM)
    assert t < 0
    epsilon = 1e-5
    # With few uses of the rules, or a large kappa, the lemma does not hold.
    assert tsybakov_gap(epsilon, mu=mu, c1=0.1, c2=0.2, C=1e-3, kappa=1.0) > 0
    assert tsybakov_gap(epsilon, mu=mu, c1=c1, c2=c2, C=C, kappa=3.0) > 0


@pytest.mark.parametrize("kappa", [1.0, 1.5])
def test_counterexample_of_theorem_5(kappa):
    epsilon, C = 1e-4, 0.5
    names = {"nonterminals": ("A", "S")}
    found = tsybakov_counterexample(TWO, P, epsilon, C=C, kappa=kappa, **names)
    # Expected counts: 2/3 uses of S -> A S, then 2/3 of A -> c A below each.
    c = {"S": 2 / 3, "A": 4 / 9}
    alpha = C * epsilon ** (1 / kappa)
    raised = 0.4 * math.exp((alpha + epsilon / 2) / c["A"])
    lowered = 0.4 * math.exp((-alpha + epsilon / 2) / c["S"])
    np.testing.assert_allclose(
        found.theta, [lowered, 1 - lowered, raised, 1 - raised], rtol=EXACT
    )
    assert found.excess_risk == kl_divergence(TWO, P, found.theta)
    # Close to p the excess risk is half the squared distance.
    assert found.distance**2 / found.excess_risk == pytest.approx(2, rel=0.02)


def test_far_from_p_the_distance_grows_as_fast_as_the_excess_risk():
    """So no exponent 1/κ < 1 bounds it: the condition fails for every κ."""
    ratios = []
    for small in (1e-10, 1e-100, 1e-200):
        h = [small, 1 - small, 0.4, 0.6]
        ratios.append(log_ratio_distance(TWO, P, P, h) / kl_divergence(TWO, P, h))
    assert min(ratios) > 1
    assert ratios[-1] == pytest.approx(ratios[-2], rel=0.02)


def test_counterexamples_that_do_not_exist():
    with pytest.raises(ValueError, match="too large"):
        tsybakov_counterexample(TWO, P, 1.0, C=1.0, kappa=1.0, nonterminals=("A", "S"))
    grammar = CFG.from_string("S -> A S | b | c\nA -> a | d")
    with pytest.raises(ValueError, match="'S' has 3"):
        tsybakov_counterexample(
            grammar, [0.2, 0.4, 0.4, 0.5, 0.5], 0.1, C=1, kappa=1, nonterminals="SA"
        )
    with pytest.raises(ValueError, match="epsilon=5"):
        tsybakov_gap(5, mu=0.4, c1=1, c2=1, C=1, kappa=1)


def test_risk_gap_is_the_sum_of_its_series():
    n, s, N, L, q, B = 1e4, 1.5, 6, 1.3, 0.9, 1.7
    x = math.log(n)
    lengths = [k for k in range(1, 3000) if k > x * x]
    mass = L * sum(q**k for k in lengths)
    length = L * sum(k * q**k for k in lengths)
    expected = (math.log(2) + s * N * x) * (length + (n - 1) * N * B * mass)
    expected += tightness(n, s=s, N=N, L=L, q=q).eps_tail
    found = asymptotic_risk_gap(n, s=s, N=N, L=L, q=q, B=B)
    assert found == pytest.approx(expected, rel=SUM)
    larger = [asymptotic_risk_gap(10.0**e, s=s, N=N, L=L, q=q, B=B) for e in (6, 9, 15)]
    assert larger == sorted(larger, reverse=True)
    assert larger[-1] < 1e-15


def exact_deviation(n, stop, delta):
    """Probability that the frequency of S -> a S in n trees of a chain is off."""
    total = 0.0
    for k in range(4000):
        # k uses of the rule in n trees: negative binomial.
        p = math.exp(
            math.lgamma(k + n)
            - math.lgamma(n)
            - math.lgamma(k + 1)
            + n * math.log(stop)
            + k * math.log(1 - stop)
        )
        if abs(k / (k + n) - (1 - stop)) > delta:
            total += p
    return total


@pytest.mark.parametrize("stop", [0.7, 0.9])
def test_parameter_deviation_holds_for_a_chain(stop):
    """S -> a S | b: p(z) = (1 - stop)^(k-1) stop for k rules, so L and q are these."""
    constants = {"mean": 1 / stop, "L": stop / (1 - stop), "q": 1 - stop}
    for n in (200, 1000):
        for delta in (0.1, 0.2):
            bound = parameter_deviation_probability(n, delta, **constants)
            assert exact_deviation(n, stop, delta) <= bound
    assert parameter_deviation_probability(100_000, 0.1, **constants) < 1e-3


def test_parameter_deviation_by_hand():
    n, delta, mean, L, q, K = 1e5, 0.1, 2.0, 1.5, 0.5, 20
    epsilon = 0.2 / 1.1
    tail = sum(L * q**k for k in range(K + 1, 500))
    shift = sum(L * k * q**k for k in range(K + 1, 500))
    expected = 3 * math.exp(-2 * n * (epsilon - shift) ** 2 / K**2) + n * tail
    constants = {"mean": mean, "L": L, "q": q}
    found = parameter_deviation_probability(n, delta, K=K, **constants)
    assert found == pytest.approx(expected, rel=SUM)
    assert parameter_deviation_probability(n, delta, **constants) <= found
    best = min(
        parameter_deviation_probability(n, delta, K=k, **constants)
        for k in range(1, 400)
    )
    assert parameter_deviation_probability(n, delta, **constants) == best
    assert parameter_deviation_probability(n, delta, K=1, **constants) == 1
