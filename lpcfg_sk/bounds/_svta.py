"""Error bounds of truncated singular value tree automata: theorems 6 and 7.

Symbols are those of Rabusseau, Balle and Cohen (2016). Proposition 3 bounds trees
with M leaves and then speaks of trees of size M, which have M + 1 leaves; the bounds
here have the exponent 2M + 1 for trees of size M (inner nodes). The second part of
theorem 7 survives the correction as printed, and is a little sharper here.
"""

from typing import NamedTuple

import numpy as np

from lpcfg_sk.bounds._margin import between_0_and_1, positive


class SVTAWeightBounds(NamedTuple):
    """Bounds on the absolute weights of a singular value tree automaton.

    Parameters
    ----------
    state : ndarray of float64, shape (n,)
        Bounds on α, on every ω_σ, and on ω(t) and α(c) for all trees and contexts.
    transition : ndarray of float64, shape (n, n, n)
        Bounds on T.

    Examples
    --------
    >>> from lpcfg_sk.bounds import svta_weight_bounds
    >>> svta_weight_bounds([4.0, 1.0]).transition.shape
    (2, 2, 2)
    """

    state: np.ndarray
    transition: np.ndarray


def svta_weight_bounds(singular_values):
    r"""Bound the weights of a singular value tree automaton (theorem 6).

    Parameters
    ----------
    singular_values : array-like of float, shape (n,)
        Singular values of the Hankel matrix, all positive.

    Returns
    -------
    SVTAWeightBounds

    Notes
    -----
    .. math::
        |ω(t)_i| ≤ \sqrt{s_i},\quad |α_i| ≤ \sqrt{s_i},\quad
        |T_{ijk}| ≤ \frac{\min(s_i, s_j, s_k)}{\sqrt{s_i s_j s_k}}

    Examples
    --------
    >>> from lpcfg_sk.bounds import svta_weight_bounds
    >>> svta_weight_bounds([4.0, 1.0]).state
    array([2., 1.])
    """
    s = np.asarray(singular_values, dtype=np.float64)
    if s.ndim != 1 or not ((s > 0) & np.isfinite(s)).all():
        raise ValueError("singular_values should be a vector of positive numbers.")
    root = np.sqrt(s)
    # With sorted values the bound is √s₃ / (√s₁ √s₂), in which nothing overflows.
    three = np.stack(np.broadcast_arrays(*np.ix_(root, root, root)))
    low, middle, high = np.sort(three, axis=0)
    return SVTAWeightBounds(root, low / middle / high)


def truncation_error(M, *, n, s):
    r"""Bound ``|f(t) − f̂(t)|`` for a tree of size M (proposition 3, corrected).

    Parameters
    ----------
    M : int
        Number of inner nodes of the tree.
    n : int
        Number of states before truncation.
    s : float
        Largest singular value that was cut off.

    Returns
    -------
    float
        :math:`n^{2M+1} s`.

    Examples
    --------
    >>> from lpcfg_sk.bounds import truncation_error
    >>> truncation_error(1, n=2, s=0.5)
    4.0
    """
    _check(n=n, s=s, M=M)
    return float(_power(n, 2 * M + 1) * s) if s > 0 else 0.0


def truncation_max_size(epsilon, *, n, s):
    r"""Size up to which every tree is within ε (theorem 7, first part, corrected).

    Parameters
    ----------
    epsilon : float
        Allowed error ``|f(t) − f̂(t)|``.
    n : int
        Number of states before truncation.
    s : float
        Largest singular value that was cut off.

    Returns
    -------
    float
        Trees with fewer inner nodes than this have an error below ε:
        :math:`M < (\log(1/s) + \log ε - \log n) / (2 \log n)`; inf for n = 1.

    Examples
    --------
    >>> from lpcfg_sk.bounds import truncation_max_size
    >>> round(truncation_max_size(0.1, n=10, s=1e-6), 6)
    2.0
    """
    _check(n=n, s=s, epsilon=epsilon)
    if s == 0:
        return np.inf
    room = np.log(epsilon) - np.log(s) - np.log(n)
    if n == 1:
        return np.inf if room > 0 else 0.0
    return float(room / (2 * np.log(n)))


def truncation_total_error(M, *, n, n_words, s):
    r"""Bound Σ ``|f(t) − f̂(t)|`` over all trees of size below M (prop. 4, corrected).

    Parameters
    ----------
    M : int
        Trees with fewer inner nodes count.
    n : int
        Number of states before truncation.
    n_words : int
        Size S of the alphabet.
    s : float
        Largest singular value that was cut off.

    Returns
    -------
    float
        :math:`S n s ((4Sn^2)^M - 1) / (4Sn^2 - 1)`.

    Notes
    -----
    There are at most 4^m topologies with m inner nodes and S^{m+1} ways to label
    their leaves; each tree's error is at most n^{2m+1} s.

    Examples
    --------
    >>> from lpcfg_sk.bounds import truncation_total_error
    >>> truncation_total_error(1, n=2, n_words=3, s=0.5)
    3.0
    """
    _check(n=n, s=s, n_words=n_words, M=M)
    base = 4.0 * n_words * n**2
    sizes = (_power(base, M) - 1) / (base - 1)
    return float(n_words * n * sizes * s) if s > 0 else 0.0


def truncation_total_max_size(epsilon, *, n, n_words, s):
    r"""Size below which the total error stays under ε (theorem 7, second part).

    Parameters
    ----------
    epsilon : float
        Allowed sum of errors.
    n : int
        Number of states before truncation.
    n_words : int
        Size S of the alphabet.
    s : float
        Largest singular value that was cut off.

    Returns
    -------
    float
        :math:`M < (\log(1/s) + \log ε) / \log(4Sn^2) - 1`, as printed.

    Examples
    --------
    >>> from lpcfg_sk.bounds import truncation_total_max_size
    >>> round(truncation_total_max_size(0.1, n=5, n_words=1, s=1e-9), 6)
    3.0
    """
    _check(n=n, s=s, n_words=n_words, epsilon=epsilon)
    if s == 0:
        return np.inf
    room = np.log(epsilon) - np.log(s)
    return float(room / np.log(4.0 * n_words * n**2) - 1)


def geometric_truncation_max_size(epsilon, *, n, n_kept, n_words, C, theta):
    r"""Size below which the total error stays under ε at s_i = C θ^i (section 4).

    Parameters
    ----------
    epsilon : float
        Allowed sum of errors.
    n : int
        Number of states before truncation.
    n_kept : int
        Number of states that are kept, n̂.
    n_words : int
        Size S of the alphabet.
    C, theta : float
        Singular values are :math:`s_i = C θ^i` with 0 < θ < 1.

    Returns
    -------
    float
        :math:`M < ((\hat n + 1) \log(1/θ) + \log ε - \log C) / \log(4Sn^2) - 1`:
        :func:`truncation_total_max_size` at :math:`s_{\hat n + 1}`. The paper prints
        + log C, and leaves the last term out.

    Examples
    --------
    >>> from lpcfg_sk.bounds import geometric_truncation_max_size
    >>> round(geometric_truncation_max_size(
    ...     0.1, n=5, n_kept=3, n_words=1, C=10.0, theta=0.01), 6)
    2.0
    """
    _check(n=n, s=C, n_words=n_words, epsilon=epsilon, M=n_kept)
    between_0_and_1(theta=theta)
    positive(C=C)
    room = -(n_kept + 1) * np.log(theta) + np.log(epsilon) - np.log(C)
    return float(room / np.log(4.0 * n_words * n**2) - 1)


def _power(base, exponent):
    """Return the power, inf where it is too large."""
    with np.errstate(over="ignore"):
        # A larger exponent may not fit a double, and would not change the result.
        return np.power(float(base), float(min(exponent, 10**9)))


def _check(*, n, s, n_words=1, epsilon=1.0, M=0):
    if not (n >= 1 and n_words >= 1 and s >= 0 and epsilon > 0 and M >= 0):
        raise ValueError(
            "Expected n ≥ 1, n_words ≥ 1, s ≥ 0, epsilon > 0 and M ≥ 0, got "
            f"n={n}, n_words={n_words}, s={s}, epsilon={epsilon}, M={M}."
        )
