"""Covering numbers of grammars with a margin: propositions 4 and 6 of the paper.

Symbols, and the slips of the text that are corrected, are those of
:mod:`lpcfg_sk.bounds._margin`.
"""

import math
from numbers import Real

from lpcfg_sk.bounds._checks import below, check_constants, positive

__all__ = [
    "hidden_variable_log_covering_number",
    "log_covering_number",
    "log_derivations",
    "log_hidden",
]


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
    below(epsilon, K)
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
    below(epsilon, K)
    log_Z = log_hidden(math.log(K / epsilon), L, q, Lambda)
    return _log_cover(math.log(4 * math.e * K / epsilon) + log_Z, N)


def _log_cover(log_ratio, N):
    return math.log(2) + N * (log_ratio + math.log(log_ratio))


def log_hidden(log_ratio, L, q, Lambda):
    """Logarithm of the number of derivations that proposition 6 counts."""
    m = (math.log(4 * L) + log_ratio - math.log1p(-q)) / -math.log(q)
    return log_derivations(Lambda, m)


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
