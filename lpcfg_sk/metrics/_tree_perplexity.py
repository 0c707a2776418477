"""Perplexity of an approximate automaton over test trees."""

from typing import NamedTuple

import numpy as np


class TreePerplexity(NamedTuple):
    """What :func:`tree_perplexity` returns.

    Attributes
    ----------
    perplexity : float
        Perplexity of the approximation under the original.
    original : float
        Perplexity of the original itself, a lower bound for all approximations.
    n_clipped : int
        Number of trees with a value that is not positive.
    clipped_mass : float
        Their share of the original.
    median_log_ratio : float
        Median of ``|log(f̂/f)|`` over the other trees of positive value. Unlike the
        perplexity it does not depend on a few very likely trees.

    Examples
    --------
    >>> from lpcfg_sk.metrics import tree_perplexity
    >>> tree_perplexity([0.5, 0.5], [0.5, 0.5]).perplexity
    2.0
    """

    perplexity: float
    original: float
    n_clipped: int
    clipped_mass: float
    median_log_ratio: float


def tree_perplexity(f, f_hat):
    r"""Perplexity of an approximation over test trees (Rabusseau et al., 2016, 5.2).

    Parameters
    ----------
    f, f_hat : array-like of float, shape (n_trees,), or tuple (sign, log)
        Values of the trees under the original and under its approximation; pairs
        of signs and natural logarithms of absolute values, as
        :meth:`WTA.log_value <lpcfg_sk.WTA.log_value>` returns them, do not underflow.

    Returns
    -------
    result : TreePerplexity

    Notes
    -----
    .. math:: 2^{-\sum_t f(t) \log_2 \hat f(t)}

    where f and f̂ are normalised to sum to one over the test trees. Values of f̂ that
    are not positive are set to the smallest positive one and counted: leaving these
    trees out can make the perplexity smaller than that of f itself.

    Examples
    --------
    >>> from lpcfg_sk.metrics import tree_perplexity
    >>> result = tree_perplexity([0.4, 0.1], [0.3, -0.1])
    >>> result.n_clipped, round(result.clipped_mass, 3), round(result.perplexity, 3)
    (1, 0.2, 2.0)
    """
    (sign, log_f), (sign_hat, log_hat) = map(_signs_and_logs, (f, f_hat))
    if log_f.shape != log_hat.shape:
        raise ValueError(
            f"{len(log_f)} values of f and {len(log_hat)} of f_hat; expected one per "
            "tree"
        )
    if (sign < 0).any() or not (sign > 0).any():
        raise ValueError("f must have a positive value and no negative ones")
    clipped = sign_hat <= 0
    if clipped.all():
        raise ValueError("f_hat has no positive value")
    both = ~clipped & (sign > 0)
    ratio = np.abs(log_hat[both] - log_f[both])
    log_hat = np.where(clipped, log_hat[~clipped].min(), log_hat)
    log_p, log_q = (log - np.logaddexp.reduce(log) for log in (log_f, log_hat))
    p = np.exp(log_p)
    used = p > 0
    return TreePerplexity(
        perplexity=float(np.exp(-p[used] @ log_q[used])),
        original=float(np.exp(-p[used] @ log_p[used])),
        n_clipped=int(clipped.sum()),
        clipped_mass=float(p[clipped].sum()),
        median_log_ratio=float(np.median(ratio)) if len(ratio) else np.nan,
    )


def _signs_and_logs(values):
    if isinstance(values, tuple):
        sign, log = (np.asarray(part, dtype=np.float64) for part in values)
    else:
        values = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore"):
            sign, log = np.sign(values), np.log(np.abs(values))
    if log.ndim != 1 or sign.shape != log.shape or not (log < np.inf).all():
        raise ValueError("expected one finite value per tree")
    return sign, np.where(sign == 0, -np.inf, log)
