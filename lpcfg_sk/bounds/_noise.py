"""Tsybakov noise of probabilistic grammars: section 7.1 and appendix C of the paper.

Slips of Cohen and Smith (2012) that matter here:

* Equation 25 prints the ratio of logarithms where appendix C has the logarithm of the
  ratio.
* The divergence of theorem 5 is printed with E[ψ_k1] twice; the second is E[ψ_k2], and
  the terms of equations C.4 and C.5 add up to -ε, not ε.
* Theorem 5 asks for a positive definite A_G(θ). With two nonterminals that matrix is
  singular: the uses of a nonterminal's rules are as many as its occurrences on the
  right-hand sides of uses of rules, a sum of counts that is always zero. Its hypothesis
  is given here with its exact excess risk and distance.
* Lemma 7 holds for κ < 2 and c1 + c2 > 2μ/(1-μ) only, see :func:`tsybakov_gap`.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk.bounds._margin import between_0_and_1, positive
from lpcfg_sk.cfg import kl_divergence, rule_expectations, rule_second_moments


class TsybakovCounterexample(NamedTuple):
    r"""What :func:`tsybakov_counterexample` returns.

    Attributes
    ----------
    theta : Series of float
        The hypothesis h, probabilities by rule.
    excess_risk : float
        D(p‖h).
    distance : float
        dist(p, h) of equation 25.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.bounds import tsybakov_counterexample
    >>> grammar = CFG.from_string("S -> A S | b\nA -> c A | d")
    >>> found = tsybakov_counterexample(
    ...     grammar, [0.4, 0.6, 0.4, 0.6], 0.01, C=1.0, kappa=1.0,
    ...     nonterminals=("A", "S"))
    >>> round(found.excess_risk, 5), round(found.distance, 3)
    (0.00046, 0.03)
    """

    theta: pd.Series
    excess_risk: float
    distance: float


def log_ratio_distance(grammar, p, g, h):
    r"""Distance of two hypotheses in the Tsybakov noise condition (equation 25).

    Parameters
    ----------
    grammar : CFG
        The rules.
    p : array-like of float, shape (n_rules,)
        Probabilities of the rules in the distribution that the data comes from.
    g, h : array-like of float, shape (n_rules,)
        Those of the hypotheses.

    Returns
    -------
    distance : float
        Infinite where one of them alone forbids a rule that p uses.

    Notes
    -----
    .. math::
        \operatorname{dist}(g, h) = \sqrt{E_p\Bigl[\Bigl(\log\frac gh\Bigr)^2\Bigr]}
        = \sqrt{d^⊤ E_p[ψψ^⊤] d}, \quad d_r = \log g_r - \log h_r

    (The paper prints log g/log h.)

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.bounds import log_ratio_distance
    >>> grammar = CFG.from_string("S -> a S | b")
    >>> half = [0.5, 0.5]
    >>> round(log_ratio_distance(grammar, half, half, [0.25, 0.75]), 4)
    1.0216
    """
    moments = rule_second_moments(grammar, p).to_numpy()
    used = np.diag(moments) > 0
    with np.errstate(divide="ignore"):
        g, h = (np.log(np.asarray(x, dtype=float)[used]) for x in (g, h))
    # A rule that both forbid does not count.
    d = np.subtract(g, h, out=np.zeros_like(g), where=g != h)
    if np.isinf(d).any():
        return math.inf
    return math.sqrt(max(0.0, d @ moments[np.ix_(used, used)] @ d))


def moment_ratios(grammar, theta):
    r"""Second moments of rule counts over products of first moments (lemma 6).

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : array-like of float, shape (n_rules,)
        Their probabilities.

    Returns
    -------
    A : DataFrame of float
        :math:`A_G(θ)_{rr'} = E[ψ_r ψ_{r'}] / (E[ψ_r] E[ψ_{r'}])` over the rules that
        derivations use. It is positive semi-definite, and singular where a nonterminal
        other than the start symbol is used.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.bounds import moment_ratios
    >>> moment_ratios(CFG.from_string("S -> a S | b"), [0.5, 0.5])
                S -> 'a' S  S -> 'b'
    S -> 'a' S         3.0       1.0
    S -> 'b'           1.0       1.0
    """
    mean = rule_expectations(grammar, theta)
    moments = rule_second_moments(grammar, theta)
    used = (mean > 0).to_numpy()
    mean = mean[used].to_numpy()
    return moments.loc[used, used] / np.outer(mean, mean)


def tsybakov_gap(epsilon, *, mu, c1, c2, C, kappa):
    r"""The t(ε) of lemma 7, which should be negative.

    Parameters
    ----------
    epsilon : float
        Excess risk.
    mu : float
        Probability of the first rule of both nonterminals, between 0 and 1/2.
    c1, c2 : float
        Expected counts of these rules.
    C, kappa : float
        Constants of the noise condition.

    Returns
    -------
    t : float

    Notes
    -----
    .. math::
        t(ε) = c_1 \frac{1-μ}{1-a} + c_2 \frac{1-μ}{1-b} - (c_1 + c_2) e^{ε/2}, \quad
        a = μ e^{(Cε^{1/κ} + ε/2)/c_1}, \; b = μ e^{(-Cε^{1/κ} + ε/2)/c_2}

    The lemma says t(ε) ≤ 0 for small ε. To first order t is ε(μ/(1-μ) - (c1 + c2)/2)
    plus a positive multiple of :math:`C^2 ε^{2/κ}`, so this is true for κ < 2 and
    c1 + c2 > 2μ/(1-μ); for κ > 2 the opposite is.

    Examples
    --------
    >>> from lpcfg_sk.bounds import tsybakov_gap
    >>> constants = {"mu": 0.3, "c1": 1.0, "c2": 2.0, "C": 1.0}
    >>> tsybakov_gap(1e-3, kappa=1.0, **constants) < 0
    True
    >>> tsybakov_gap(1e-3, kappa=3.0, **constants) < 0
    False
    """
    positive(epsilon=epsilon, c1=c1, c2=c2, C=C, kappa=kappa)
    between_0_and_1(mu=mu)
    alpha = C * epsilon ** (1 / kappa)
    a = mu * math.exp((alpha + epsilon / 2) / c1)
    b = mu * math.exp((-alpha + epsilon / 2) / c2)
    if max(a, b) >= 1:
        raise ValueError(f"epsilon={epsilon} is too large: a={a:.3g}, b={b:.3g}")
    # Each term minus its value at ε = 0; these values cancel in the sum:
    # (1-μ)/(1-a) - 1 = (a-μ)/(1-a).
    first = c1 * mu * math.expm1((alpha + epsilon / 2) / c1) / (1 - a)
    second = c2 * mu * math.expm1((-alpha + epsilon / 2) / c2) / (1 - b)
    return first + second - (c1 + c2) * math.expm1(epsilon / 2)


def tsybakov_counterexample(grammar, theta, epsilon, *, C, kappa, nonterminals):
    r"""The hypothesis that theorem 5 sets against the Tsybakov noise condition.

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : array-like of float, shape (n_rules,)
        Their probabilities: the distribution p.
    epsilon : float
        The ε of the condition.
    C, kappa : float
        Its constants.
    nonterminals : tuple of str
        Two nonterminals of two rules each. The probability of the first rule of the
        first one is raised, that of the second one is lowered. The theorem has the
        same probability μ for both, and c1 ≤ c2.

    Returns
    -------
    found : TsybakovCounterexample

    Notes
    -----
    With α = Cε^(1/κ) and the expected counts c1, c2 of the two rules,

    .. math::
        θ_{1,1} = θ^*_{1,1} e^{(α + ε/2)/c_1}, \quad
        θ_{2,1} = θ^*_{2,1} e^{(-α + ε/2)/c_2}

    (equations C.4 and C.5). For h close to p the excess risk is dist(p, h)²/2, so among
    them the condition holds with κ = 2, and fails with κ = 1 as this hypothesis shows.
    In the class of all probabilities it fails with every κ: far from p the distance
    grows as fast as the excess risk, which no κ > 1 allows.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.bounds import tsybakov_counterexample
    >>> grammar = CFG.from_string("S -> A S | b\nA -> c A | d")
    >>> found = tsybakov_counterexample(
    ...     grammar, [0.4, 0.6, 0.4, 0.6], 1e-3, C=1.0, kappa=1.0,
    ...     nonterminals=("A", "S"))
    >>> round(found.distance**2 / found.excess_risk, 2)
    2.0
    """
    positive(epsilon=epsilon, C=C, kappa=kappa)
    mean = rule_expectations(grammar, theta)
    alpha = C * epsilon ** (1 / kappa)
    h = np.array(theta, dtype=float)
    for name, sign in zip(nonterminals, (1, -1), strict=True):
        rules = [i for i, rule in enumerate(grammar.rules) if rule.lhs == name]
        if len(rules) != 2:
            raise ValueError(
                f"theorem 5 is about nonterminals of two rules, {name!r} has "
                f"{len(rules)}; see CFG.to_binary_normal_form"
            )
        first, second = rules
        positive(**{f"the expected count of {grammar.rules[first]}": mean.iloc[first]})
        h[first] *= math.exp((sign * alpha + epsilon / 2) / mean.iloc[first])
        if not h[first] < 1:
            raise ValueError(
                f"epsilon={epsilon} is too large: {grammar.rules[first]} would have "
                f"probability {h[first]:.3g}"
            )
        h[second] = 1 - h[first]
    return TsybakovCounterexample(
        theta=pd.Series(h, index=mean.index, name="theta"),
        excess_risk=kl_divergence(grammar, theta, h),
        distance=log_ratio_distance(grammar, theta, theta, h),
    )
