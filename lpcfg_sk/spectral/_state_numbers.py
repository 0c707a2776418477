"""Numbers of latent states read off the singular values of each nonterminal."""

import numpy as np

__all__ = ["STATE_RULES", "numerical_rank", "state_number"]

#: Counts between which the ramp rises, those of Rainbow, the parser of Narayan and
#: Cohen. It has a second ramp, from 10 to 100, which never lies below this one.
_RAMP = (50.0, 500.0)


def numerical_rank(singular_values, tol):
    """Number of singular values above a fraction of the largest one.

    Parameters
    ----------
    singular_values : ndarray of float64
        Decreasing.
    tol : float
        The fraction.

    Returns
    -------
    int
    """
    return int(np.sum(singular_values > tol * singular_values[:1]))


def state_number(singular_values, count, m_max, rule, threshold=None):
    """Number of states of one nonterminal by a rule of ``SpectralLPCFG``.

    Parameters
    ----------
    singular_values : ndarray of float64, shape (k,)
        The leading singular values, decreasing and positive.
    count : float
        Number of nodes of the nonterminal.
    m_max : int
        Most states; `singular_values` beyond them are not used.
    rule : {"energy", "gap", "ramp"}
        Name of the rule.
    threshold : float, default=None
        Its parameter; that of ``STATE_RULES`` where None.

    Returns
    -------
    m : int
        At least 1.
    """
    values = np.asarray(singular_values, dtype=float)[:m_max]
    if len(values) < 2:
        return 1
    function, default = STATE_RULES[rule]
    return function(values, count, m_max, default if threshold is None else threshold)


def _energy(values, count, m_max, share):
    energy = np.cumsum(values**2)
    return min(len(values), 1 + int(np.sum(energy < share * energy[-1])))


def _gap(values, count, m_max, least):
    if len(values) < m_max:
        # Zeros follow, and no gap is wider.
        return len(values)
    ratios = values[:-1] / values[1:]
    widest = int(np.argmax(ratios))
    return widest + 1 if ratios[widest] >= least else len(values)


def _ramp(values, count, m_max, share):
    low, high = _RAMP
    height = 1 + (m_max - 1) * np.clip((count - low) / (high - low), 0.0, 1.0)
    return min(numerical_rank(values, share), round(float(height)))


#: Rules by name, each with its default threshold.
STATE_RULES = {"energy": (_energy, 0.95), "gap": (_gap, 3.0), "ramp": (_ramp, 0.01)}
