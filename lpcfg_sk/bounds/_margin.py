"""Grammars with a margin: when approximations are proper, and sample sizes.

Propositions 1 to 3 and 5 to 7, lemmas 2 and 3 and theorems 2 and 3 of Cohen and Smith
(2012), in their symbols. A distribution p over derivations z of a grammar G with N
rules in binary normal form obeys

* p(z) ≤ L r^|z| with r < 1, where |z| is the number of rules of z;
* Λ(k)² r^k ≤ q^k with q < 1, where Λ(k) is the number of derivations of k rules;
* |z| ≤ α times the length of the string.

Slips of the text that are corrected here:

* Proposition 1 prints a negative middle term, and its proof replaces a sum that may
  exceed one by one. See :func:`entropy_bound`.
* Proposition 2 prints β = log κ + 1 + log(1/q), which is larger than log(1/q); no β
  so large will do. The theorems need ε_bound(n) ≤ δε/2, which n ≥ log(4/(δε))/β does
  not give (β multiplies log² n): the bound κ log³ n q^(log² n) is used itself.
* Lemma 2 prints the indicator of |f| ≤ K where it means |f| ≥ K.
* Proposition 6 prints Λ(m) where its proof has all derivations of at most m rules,
  and drops L; theorem 3 takes the rule at ε where lemma 2 needs it at ε/8; equation
  20 prints t(ρ) where it means Λ(t(ρ)). Its proof holds where all derivations of a
  string are of one length, as in Chomsky normal form.
* Proposition 7 starts its sum at log² m where strings longer than log² m / α are
  meant.
* Equation 17 needs a lower bound of the entropy, not an upper one.
"""

import math
from numbers import Real
from typing import NamedTuple

from lpcfg_sk.bounds._checks import between_0_and_1, check_constants, positive

# Sample sizes are searched from here downwards; about 1e304.
_LARGEST_LOG = 700.0


class Boundedness(NamedTuple):
    """What :func:`boundedness` returns.

    Attributes
    ----------
    K : float
        K_m; log-losses of short derivations are below it.
    eps_bound : float
        Bound of the expected log-loss above K_m.
    beta : float
        The largest β such that ``eps_bound`` is at most m'^(-β log m') for all
        m' ≥ m; negative where m is too small for any.

    Examples
    --------
    >>> from lpcfg_sk.bounds import boundedness
    >>> result = boundedness(1000, s=1.5, N=10, L=1.0, q=0.8)
    >>> round(result.K, 1)
    4944.3
    """

    K: float
    eps_bound: float
    beta: float


class Tightness(NamedTuple):
    """What :func:`tightness` returns.

    Attributes
    ----------
    eps_tail : float
        ε_tail(m): how much the margin can add to the log-loss of a short derivation.
    tail_mass : float
        Bound of the probability of the long derivations.
    M : float
        From this m on, ``tail_mass`` is at most ``eps_tail``, and the proposition
        holds.

    Examples
    --------
    >>> from lpcfg_sk.bounds import tightness
    >>> result = tightness(10_000, s=1.5, N=10, L=1.0, q=0.8)
    >>> result.tail_mass < result.eps_tail
    True
    """

    eps_tail: float
    tail_mass: float
    M: float


def entropy_bound(*, L, r, q, Lambda):
    r"""Bound of the entropy of derivations (proposition 1).

    Parameters
    ----------
    L, r, q : float
        Constants of the distribution.
    Lambda : callable or float
        Λ(k), the number of derivations of k rules; a number g means Λ(k) = g^k.

    Returns
    -------
    bound : float
        Upper bound, in nats, of H_d(p), and so of the entropy H_s(p) of strings.

    Notes
    -----
    With k* = (1 + log L)/log(1/r), derivations shorter than k* contribute at most
    1/e each, the others at most what their bound L r^k ≤ 1/e does:

    .. math::
        H_d(p) ≤ \max(0, -\log L) \frac{Lq}{1-q}
        + L \log\frac1r \frac{q}{(1-q)^2}
        + \frac1e \sum_{k=1}^{\max(0, ⌈k^*⌉)} Λ(k)

    The paper prints −log L for the first term, which takes Σ L r^|z| for at most
    one; L log r log(1/r)/(1−q)², which is negative, for the second (equation 14 has
    yet another form); and ⌈k*⌉ Λ(⌈k*⌉) for the sum. Its proof splits at p(z) = 1/e,
    where −a log a is not monotone in the bound of p(z); here it is split by length.

    Examples
    --------
    >>> from lpcfg_sk.bounds import entropy_bound
    >>> round(entropy_bound(L=1.0, r=0.2, q=0.8, Lambda=2.0), 3)
    32.925
    """
    check_constants(L=L, q=q)
    between_0_and_1(r=r)
    shortest = (1 + math.log(L)) / math.log(1 / r)
    bound = max(0.0, -math.log(L)) * L * q / (1 - q)
    bound += L * math.log(1 / r) * q / (1 - q) ** 2
    if shortest > 0:
        bound += math.exp(_log_derivations(Lambda, shortest) - 1)
    return bound


def boundedness(m, *, s, N, L, q, alpha=1.0):
    r"""Boundedness of the approximations with margin m^-s (propositions 2 and 7).

    Parameters
    ----------
    m : float
        Index of the approximation, with log² m ≥ alpha.
    s : float
        Exponent of the margin.
    N : int
        Number of rules of the binary normal form.
    L, q : float
        Constants of the distribution.
    alpha : float, default=1.0
        1 for derivations (proposition 2); for strings (proposition 7) the bound of
        derivation length over string length.

    Returns
    -------
    result : Boundedness

    Notes
    -----
    .. math:: K_m = sN \log^3 m, \quad
        ε_{bound}(m) = \frac{sNL}{(1-q)^2} \log^3 m \; q^{\log^2 m/α}

    Examples
    --------
    >>> from lpcfg_sk.bounds import boundedness
    >>> K, eps_bound, beta = boundedness(1000, s=1.5, N=10, L=1.0, q=0.8)
    >>> round(K, 1), round(eps_bound, 3), round(beta, 3)
    (4944.3, 2.936, -0.023)
    """
    check_constants(L=L, q=q, alpha=alpha, s=s, N=N)
    x = math.log(m) if m > 1 else 0.0
    if x * x < alpha:
        raise ValueError(
            f"m must be at least exp(sqrt(alpha)) = {math.exp(alpha**0.5):.4g}, got {m}"
        )
    log_kappa = math.log(s * N * L) - 2 * math.log1p(-q)
    decay = -math.log(q) / alpha
    # (log κ + 3 log y)/y² is largest here.
    worst = max(x, math.exp(0.5 - log_kappa / 3))
    return Boundedness(
        K=_K_n(x, s, N),
        eps_bound=math.exp(log_kappa + 3 * math.log(x) - decay * x * x),
        beta=decay - (log_kappa + 3 * math.log(worst)) / worst**2,
    )


def tightness(m, *, s, N, L, q, alpha=1.0):
    r"""Tightness of the approximations with margin m^-s (propositions 3 and 5).

    Parameters
    ----------
    m : float
        Index of the approximation, more than 1.
    s : float
        Exponent of the margin.
    N : int
        Number of rules of the binary normal form.
    L, q : float
        Constants of the distribution.
    alpha : float, default=1.0
        1 for derivations; for strings their bound of derivation over string length.

    Returns
    -------
    result : Tightness

    Notes
    -----
    .. math:: ε_{tail}(m) = \frac{N \log^2 m}{m^s - 1}, \quad
        p(|z| > \log^2 m) ≤ \frac{L}{1-q} q^{\log^2 m/α}

    ``M`` is searched where the second falls faster than the first, log m ≥
    sα/(2 log(1/q)), and where m^s ≥ 3 as the proof needs. (The proof has θ'/θ for
    θ/θ' in equation A.2.)

    Examples
    --------
    >>> from lpcfg_sk.bounds import tightness
    >>> result = tightness(10_000, s=1.5, N=10, L=1.0, q=0.8)
    >>> f"{result.eps_tail:.2e} {result.tail_mass:.2e} {result.M:.0f}"
    '8.48e-04 3.01e-08 29'
    """
    check_constants(L=L, q=q, alpha=alpha, s=s, N=N)
    if not m > 1:
        raise ValueError(f"m must be more than 1, got {m}")
    decay = -math.log(q) / alpha

    def log_mass(x):
        return math.log(L) - math.log1p(-q) - decay * x * x

    def log_eps(x):
        return math.log(N) + 2 * math.log(x) - s * x - math.log(-math.expm1(-s * x))

    low = max(s / (2 * decay), math.log(3) / s)
    log_M = _last_crossing(lambda x: log_mass(x) - log_eps(x), low)
    x = math.log(m)
    return Tightness(
        eps_tail=math.exp(log_eps(x)),
        tail_mass=min(1.0, math.exp(min(0.0, log_mass(x)))),
        M=math.exp(log_M) if log_M < 709 else math.inf,
    )


def _K_n(log_n, s, N):
    """Return the bound K_n = s N log³ n on the losses (proposition 2)."""
    return s * N * log_n**3


def _last_crossing(excess, low):
    """Return where a function that falls from `low` on reaches zero."""
    if excess(low) <= 0:
        return low
    high = 2 * low
    while excess(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return high


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
    return _log_derivations(Lambda, m)


def _log_derivations(Lambda, m):
    """Logarithm of Λ(1) + ... + Λ(⌈m⌉), at least that of one derivation."""
    last = max(1, math.ceil(m))
    if isinstance(Lambda, Real):
        if not Lambda >= 1:
            raise ValueError(f"a growth rate Lambda must be at least 1, got {Lambda}")
        log_g = math.log(Lambda)
        if log_g == 0:
            return math.log(last)
        # Geometric sum, without its powers.
        return last * log_g + math.log(-math.expm1(-last * log_g) / -math.expm1(-log_g))
    if not callable(Lambda):
        raise TypeError(
            f"Lambda is a function of k or a growth rate, got {type(Lambda).__name__}"
        )
    total = 0
    for k in range(1, last + 1):
        count = Lambda(k)
        if not count >= 0:
            raise ValueError(f"Lambda({k}) must not be negative, got {count}")
        total += count
    if total == math.inf:
        raise ValueError(
            f"Lambda overflows at k={last}; return Python integers, or give the growth "
            "rate as a number"
        )
    return math.log(max(total, 1))


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
        ratio = _K_n(x, s, N) / epsilon
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
    low = _last_crossing(lambda x: excess(x) + math.log(2), low)
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
    log(1/q). What it says of the log-loss is in :func:`margin_relative_deviation`.

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
    return 2 * rho * _K_n(math.log(n), s, N) / H


def _alpha_of(Lambda, alpha):
    """The α of boundedness, which is 1 for derivations."""
    check_constants(alpha=alpha)
    return 1.0 if Lambda is None else alpha
