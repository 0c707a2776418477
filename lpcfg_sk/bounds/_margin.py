"""Grammars with a margin: when approximations are proper.

Propositions 1 to 5 and 7 of Cohen and Smith (2012), in their symbols. A
distribution p over derivations z of a grammar G with N rules in binary normal form
obeys

* p(z) ≤ L r^|z| with r < 1, where |z| is the number of rules of z;
* Λ(k)² r^k ≤ q^k with q < 1, where Λ(k) is the number of derivations of k rules;
* |z| ≤ α times the length of the string.

N is ``len(form.grammar.rules)`` of ``form = grammar.to_binary_normal_form()``, which
follows figure 2: nonterminals of one or two rules add no links.

Slips of the text that are corrected here:

* Proposition 1 prints a negative middle term, and its proof replaces a sum that may
  exceed one by one. See :func:`entropy_bound`.
* Proposition 2 prints β = log κ + 1 + log(1/q), which is larger than log(1/q); a β
  that large is impossible.
* Proposition 7 starts its sum at log² m where strings longer than log² m / α are
  meant.
"""

import math
from numbers import Real
from typing import NamedTuple


def check_constants(*, L=1.0, q=0.5, alpha=1.0, s=1.0, N=1):
    """Reject impossible constants of a distribution."""
    positive(L=L, s=s, N=N)
    between_0_and_1(q=q)
    if not alpha >= 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}")


def positive(**values):
    """Reject values that are not positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")


def not_negative(**values):
    """Reject negative values."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name} must not be negative, got {value}")


def between_0_and_1(**values):
    """Reject values outside the open unit interval."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")


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
        bound += math.exp(log_derivations(Lambda, shortest) - 1)
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
        K=loss_bound(x, s, N),
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
    log_M = last_crossing(lambda x: log_mass(x) - log_eps(x), low)
    x = math.log(m)
    return Tightness(
        eps_tail=math.exp(log_eps(x)),
        tail_mass=min(1.0, math.exp(min(0.0, log_mass(x)))),
        M=math.exp(log_M) if log_M < 709 else math.inf,
    )


def asymptotic_risk_gap(n, *, s, N, L, q, B):
    r"""Bound of what the margin costs the empirical risk (lemma 1, proposition 4).

    Parameters
    ----------
    n : float
        Number of samples, more than 1; the margin is n^-s.
    s : float
        Exponent of the margin.
    N : int
        Number of rules of the binary normal form.
    L, q : float
        Constants of the distribution.
    B : float
        Largest expected count of a rule.

    Returns
    -------
    bound : float
        Upper bound of the expected difference between the empirical risk of the best
        grammar with the margin and that of the maximum likelihood estimate. It goes
        to zero: the first is an asymptotic empirical risk minimiser.

    Notes
    -----
    With t = log² n, where only derivations longer than t lose more than ε_tail(n),

    .. math::
        (\log 2 + sN \log n) \Bigl(L \sum_{l > t} l q^l
        + (n - 1) NB \, L \sum_{l > t} q^l\Bigr) + ε_{tail}(n)

    The first factor bounds the losses per rule of the uniform grammar, which is no
    better than the maximum likelihood estimate, and of a grammar with the margin.

    Examples
    --------
    >>> from lpcfg_sk.bounds import asymptotic_risk_gap
    >>> constants = {"s": 1.5, "N": 10, "L": 1.0, "q": 0.5, "B": 2.0}
    >>> [f"{asymptotic_risk_gap(n, **constants):.1e}" for n in (1e3, 1e4, 1e5)]
    ['1.5e-02', '8.5e-04', '4.2e-05']
    """
    check_constants(L=L, q=q, s=s, N=N)
    positive(B=B)
    eps_tail = tightness(n, s=s, N=N, L=L, q=q).eps_tail
    log_n = math.log(n)
    mass, length = length_tail(log_n**2, L=L, q=q)
    per_rule = math.log(2) + s * N * log_n
    return per_rule * (length + (n - 1) * N * B * mass) + eps_tail


def length_tail(t, *, L, q):
    """Bound the probability and the expected length of derivations longer than t.

    Where p(z) ≤ L r^|z| and Λ(k) r^k ≤ q^k: the sums of L q^l and L l q^l over l > t.
    """
    first = math.floor(t) + 1
    mass = L * q**first / (1 - q)
    return mass, mass * (first + q / (1 - q))


def loss_bound(log_n, s, N):
    """Return the bound K_n = s N log³ n on the losses (proposition 2)."""
    return s * N * log_n**3


def last_crossing(excess, low):
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


def log_derivations(Lambda, m):
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
