"""Grammars with a margin: covering numbers and sample sizes.

Lemmas 2 and 3, proposition 6, theorems 2 and 3 and section 5 of Cohen and Smith (2012),
in their symbols, which ``_margin.py`` lists. They hold for a class Θ(γ) of grammars
that is fixed before the data is seen: the rules of each nonterminal are in the order of
the grammar, as in ``MarginEMPCFG(rule_order="grammar")``.

Slips of the text that are corrected here:

* The theorems need ε_bound(n) ≤ δε/2, which n ≥ log(4/(δε))/β does not give (β
  multiplies log² n): the bound κ log³ n q^(log² n) is used itself.
* Lemma 2 prints the indicator of |f| ≤ K where it means |f| ≥ K.
* Proposition 6 prints Λ(m) where its proof has all derivations of at most m rules,
  and drops L; theorem 3 takes the rule at ε where lemma 2 needs it at ε/8; equation
  20 prints t(ρ) where it means Λ(t(ρ)). Its proof holds where all derivations of a
  string are of one length, as in Chomsky normal form.
* Equation 17 needs a lower bound of the entropy, not an upper one.
"""

import math

from lpcfg_sk.bounds._margin import (
    between_0_and_1,
    boundedness,
    check_constants,
    last_crossing,
    length_tail,
    log_derivations,
    loss_bound,
    positive,
)

# Sample sizes are searched from here downwards; about 1e304.
_LARGEST_LOG = 700.0


def log_covering_number(epsilon, *, K, N):
    r"""Logarithm of the covering number of truncated log-losses (lemma 3).

    Parameters
    ----------
    epsilon : float
        Radius, less than `K`.
    K : float
        Where the log-losses are truncated.
    N : int
        Number of rules of the binary normal form, which bounds the pseudo-dimension.

    Returns
    -------
    bound : float

    Notes
    -----
    .. math:: \mathcal N(ε) < 2 \Bigl(\frac{2eK}{ε} \log \frac{2eK}{ε}\Bigr)^N

    Examples
    --------
    >>> from lpcfg_sk.bounds import log_covering_number
    >>> round(log_covering_number(0.5, K=10.0, N=3), 4)
    19.3954
    """
    positive(epsilon=epsilon, K=K, N=N)
    _check_radius(epsilon, K)
    return _log_cover(math.log(2 * math.e * K / epsilon), N)


def hidden_variable_log_covering_number(epsilon, *, K, N, L, q, Lambda):
    r"""Logarithm of the covering number where derivations are hidden (proposition 6).

    Parameters
    ----------
    epsilon : float
        Radius, less than `K`.
    K : float
        Where the log-losses are truncated.
    N : int
        Number of rules of the binary normal form.
    L, q : float
        Constants of the distribution.
    Lambda : callable or float
        Λ(k), the number of derivations of k rules; a number g means Λ(k) = g^k.

    Returns
    -------
    bound : float

    Notes
    -----
    The covering number of :func:`log_covering_number` at ε/(2Z(m)), where

    .. math:: m = \log\frac{4LK}{ε(1-q)} \Big/ \log\frac1q, \quad
        Z(m) = \sum_{k=1}^{⌈m⌉} Λ(k)

    Examples
    --------
    >>> from lpcfg_sk.bounds import hidden_variable_log_covering_number
    >>> value = hidden_variable_log_covering_number(
    ...     0.5, K=10.0, N=3, L=1.0, q=0.5, Lambda=2.0)
    >>> round(value, 4)
    42.8997
    """
    positive(epsilon=epsilon, K=K, N=N)
    check_constants(L=L, q=q)
    _check_radius(epsilon, K)
    log_Z = _log_hidden(math.log(K / epsilon), L, q, Lambda)
    return _log_cover(math.log(4 * math.e * K / epsilon) + log_Z, N)


def _check_radius(epsilon, K):
    if not epsilon < K:
        raise ValueError(f"epsilon must be less than K={K}, got {epsilon}")


def _log_cover(log_ratio, N):
    return math.log(2) + N * (log_ratio + math.log(log_ratio))


def _log_hidden(log_ratio, L, q, Lambda):
    """Logarithm of the number of derivations that proposition 6 counts."""
    m = (math.log(4 * L) + log_ratio - math.log1p(-q)) / -math.log(q)
    return log_derivations(Lambda, m)


def deviation_probability(n, epsilon, *, N, s, L, q, Lambda=None, alpha=1.0):
    r"""Probability that some empirical log-loss is far from its expectation (lemma 2).

    Parameters
    ----------
    n : float
        Number of samples; the margin is n^-s.
    epsilon : float
        The deviation is 2ε.
    N : int
        Number of rules of the binary normal form.
    s : float
        Exponent of the margin.
    L, q : float
        Constants of the distribution.
    Lambda : callable or float, default=None
        Λ(k) of :func:`entropy_bound` where the samples are strings; None where they
        are derivations.
    alpha : float, default=1.0
        Bound of derivation length over string length, where the samples are strings.

    Returns
    -------
    probability : float
        1 where the lemma says nothing, for n < K_n²/(4ε²) or ε_bound(n) ≥ ε.

    Notes
    -----
    .. math:: p\Bigl(\sup_f |E_{\tilde p_n} f - E_p f| > 2ε\Bigr)
        ≤ 8 \mathcal N(ε/8) \exp\Bigl(-\frac{nε^2}{128 K_n^2}\Bigr)
        + \frac{ε_{bound}(n)}{ε}

    Examples
    --------
    >>> from lpcfg_sk.bounds import deviation_probability
    >>> constants = {"N": 10, "s": 1.5, "L": 1.0, "q": 0.8}
    >>> deviation_probability(1e6, 1.0, **constants)
    1.0
    >>> f"{deviation_probability(2e16, 1.0, **constants):.1e}"
    '1.3e-19'
    """
    positive(n=n, epsilon=epsilon)
    alpha = _alpha_of(Lambda, alpha)
    K, eps_bound, _ = boundedness(n, s=s, N=N, L=L, q=q, alpha=alpha)
    if n < (K / epsilon) ** 2 / 4 or eps_bound >= epsilon or epsilon >= 8 * K:
        return 1.0
    if Lambda is None:
        log_cover = log_covering_number(epsilon / 8, K=K, N=N)
    else:
        log_cover = hidden_variable_log_covering_number(
            epsilon / 8, K=K, N=N, L=L, q=q, Lambda=Lambda
        )
    log_first = math.log(8) + log_cover - n * (epsilon / K) ** 2 / 128
    return min(1.0, math.exp(min(0.0, log_first)) + eps_bound / epsilon)


def margin_sample_size(epsilon, delta, *, N, s, L, q, Lambda=None, alpha=1.0):
    r"""Samples after which all empirical log-losses are close (theorems 2 and 3).

    Parameters
    ----------
    epsilon : float
        With probability 1 − δ, no log-loss is more than 2ε from its expectation.
    delta : float
        Probability of failure.
    N : int
        Number of rules of the binary normal form.
    s : float
        Exponent of the margin γ = n^-s.
    L, q : float
        Constants of the distribution.
    Lambda : callable or float, default=None
        None for samples of derivations (theorem 2); for samples of strings
        (theorem 3) Λ(k), the number of derivations of k rules, where a number g
        means Λ(k) = g^k.
    alpha : float, default=1.0
        Bound of derivation length over string length, where the samples are strings.

    Returns
    -------
    n : int
        The smallest n such that the condition holds for it and all larger n.

    Notes
    -----
    .. math::
        n ≥ \frac{128 K_n^2}{ε^2} \Bigl(2N \log \frac{16eK_n}{ε}
        + \log\frac{32}{δ}\Bigr), \quad ε_{bound}(n) ≤ \frac{δε}{2}, \quad
        K_n = sN \log^3 n > ε

    where 16eK_n/ε is 32eK_n Z(m)/ε for strings, with m and Z(m) of
    :func:`hidden_variable_log_covering_number` at ε/8. Both sides of the first
    condition grow with n. The right-hand side grows, so if n is above its value at
    some larger n', then the condition holds from n to n': the search goes down from
    about 1e304 to the last n that has this property.

    Examples
    --------
    >>> from lpcfg_sk.bounds import margin_sample_size
    >>> n = margin_sample_size(1.0, 0.05, N=10, s=1.5, L=1.0, q=0.8)
    >>> f"{n:.3g}"
    '3.05e+16'
    """
    positive(epsilon=epsilon)
    between_0_and_1(delta=delta)
    check_constants(L=L, q=q, s=s, N=N)
    alpha = _alpha_of(Lambda, alpha)
    log_kappa = math.log(s * N * L) - 2 * math.log1p(-q)
    decay = -math.log(q) / alpha

    def needed(x):
        ratio = loss_bound(x, s, N) / epsilon
        inner = math.log(16 * math.e * ratio)
        if Lambda is not None:
            inner += math.log(2) + _log_hidden(math.log(8 * ratio), L, q, Lambda)
        return 128 * ratio**2 * (2 * N * inner + math.log(32 / delta))

    def excess(x):
        return log_kappa + 3 * math.log(x) - decay * x * x - math.log(delta * epsilon)

    # K_n > ε, the range of the boundedness, and ε_bound(n) past its peak.
    low = max((epsilon / (s * N)) ** (1 / 3), math.sqrt(alpha), math.sqrt(1.5 / decay))
    if low >= _LARGEST_LOG or needed(_LARGEST_LOG) > math.exp(_LARGEST_LOG):
        raise ValueError(
            f"no n below 1e304 is enough for epsilon={epsilon}, N={N}, q={q}, "
            f"alpha={alpha}; allow a larger epsilon"
        )
    low = last_crossing(lambda x: excess(x) + math.log(2), low)
    n = math.exp(_LARGEST_LOG)
    least = math.floor(math.exp(low)) + 1
    while True:
        below = max(math.ceil(needed(math.log(n))), least)
        if below >= n:
            below = int(n) - 1
            # A step of the right-hand side between two integers.
            if below < least or needed(math.log(below)) > below:
                return int(n)
        n = below


def margin_relative_sample_size(rho, delta, *, N, L, q, Lambda=None, alpha=1.0):
    r"""Samples of the multiplicative forms of theorems 2 and 3 (equation 20).

    Parameters
    ----------
    rho : float
        Deviation 2ε = 2ρK_n, between 0 and 1.
    delta : float
        Probability of failure.
    N : int
        Number of rules of the binary normal form.
    L, q : float
        Constants of the distribution.
    Lambda : callable or float, default=None
        As in :func:`margin_sample_size`.
    alpha : float, default=1.0
        As in :func:`margin_sample_size`.

    Returns
    -------
    n : int

    Notes
    -----
    With ε = ρK_n neither side has an n left on the right:

    .. math::
        n ≥ \frac{128}{ρ^2} \Bigl(2N \log \frac{16e}{ρ} + \log\frac{32}{δ}\Bigr),
        \quad
        \log^2 n ≥ α \log\frac{2L}{δρ(1-q)^2} \Big/ \log\frac1q

    and log² n ≥ α. For strings 16e/ρ is 32e Z(m)/ρ, with m = log(32L/(ρ(1−q))) /
    log(1/q). :func:`margin_relative_deviation` gives the deviation of the log-loss.

    Examples
    --------
    >>> from lpcfg_sk.bounds import margin_relative_sample_size
    >>> margin_relative_sample_size(0.5, 0.1, N=1, L=1.0, q=0.8)
    7527
    """
    between_0_and_1(rho=rho, delta=delta)
    check_constants(L=L, q=q, N=N)
    alpha = _alpha_of(Lambda, alpha)
    inner = math.log(16 * math.e / rho)
    if Lambda is not None:
        inner += math.log(2) + _log_hidden(math.log(8 / rho), L, q, Lambda)
    first = 128 / rho**2 * (2 * N * inner + math.log(32 / delta))
    tail = math.log(2 * L / (delta * rho)) - 2 * math.log1p(-q)
    second = math.exp(math.sqrt(alpha * max(1.0, tail / -math.log(q))))
    return math.ceil(max(first, second))


def margin_relative_deviation(n, rho, *, N, s, H):
    r"""Relative deviation of the log-loss at a relative sample size (equation 17).

    Parameters
    ----------
    n : float
        Number of samples, at least :func:`margin_relative_sample_size`.
    rho : float
        The ρ of that sample size.
    N : int
        Number of rules of the binary normal form.
    s : float
        Exponent of the margin.
    H : float
        Entropy of the distribution in nats, or a lower bound of it.

    Returns
    -------
    bound : float
        Upper bound of the distance of (empirical log-loss)/(expected log-loss) from 1.

    Notes
    -----
    .. math:: \frac{2ρ \, sN \log^3 n}{H(p)}

    Examples
    --------
    >>> from lpcfg_sk.bounds import margin_relative_deviation
    >>> round(margin_relative_deviation(1e6, 1e-4, N=10, s=1.5, H=50.0), 4)
    0.1582
    """
    between_0_and_1(rho=rho)
    positive(n=n, N=N, s=s, H=H)
    return 2 * rho * loss_bound(math.log(n), s, N) / H


def parameter_deviation_probability(n, delta, *, mean, L, q, K=None):
    r"""Probability that a rule's relative frequency deviates (section 7.3.2).

    Parameters
    ----------
    n : float
        Number of trees.
    delta : float
        Deviation of the relative frequency of a rule from its probability.
    mean : float
        Expected count of the rule's left-hand side in a derivation, see
        :func:`lpcfg_sk.cfg.rule_expectations`.
    L, q : float
        Constants of the distribution.
    K : int, default=None
        Length of derivations up to which Hoeffding's inequality is applied; the one
        that gives the smallest bound where None.

    Returns
    -------
    probability : float
        At most 1.

    Notes
    -----
    The remark of the paper, worked out. A tree with counts c of the rule and d of its
    left-hand side has E[c - θd] = 0. If the means of c - θd and of d over the n trees
    are within ε = δ mean/(1 + δ) of their expectations, then the ratio of the means of
    c and d is within δ of θ. Trees of more than K rules are set aside, which moves an
    expectation by at most τ:

    .. math:: 3 \exp\Bigl(-\frac{2n(ε - τ)^2}{K^2}\Bigr) + n L \sum_{l > K} q^l,
        \quad τ = L \sum_{l > K} l q^l

    Examples
    --------
    >>> from lpcfg_sk.bounds import parameter_deviation_probability
    >>> constants = {"mean": 2.0, "L": 1.0, "q": 0.5}
    >>> f"{parameter_deviation_probability(1e6, 0.05, **constants):.1e}"
    '1.3e-05'
    """
    positive(n=n, delta=delta, mean=mean)
    check_constants(L=L, q=q)
    epsilon = delta * mean / (1 + delta)

    def bound(K):
        mass, length = length_tail(K, L=L, q=q)
        if length >= epsilon:
            return 1.0
        return 3 * math.exp(-2 * n * ((epsilon - length) / K) ** 2) + n * mass

    if K is not None:
        positive(K=K)
        return min(1.0, bound(K))
    # Beyond the length where the tail is negligible only the first term grows.
    longest = math.ceil((math.log(n * L) - math.log1p(-q) + 50) / -math.log(q))
    return min(1.0, *map(bound, range(1, max(2, longest))))


def _alpha_of(Lambda, alpha):
    """The α of boundedness, which is 1 for derivations."""
    check_constants(alpha=alpha)
    return 1.0 if Lambda is None else alpha
