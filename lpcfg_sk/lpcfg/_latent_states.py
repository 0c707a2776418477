"""Numbers of latent states that the user asks for."""

import warnings
from numbers import Integral, Real

import numpy as np

from lpcfg_sk.exceptions import TreebankWarning

__all__ = ["requested_states"]


def requested_states(m, nonterminals, counts):
    """Return the number of latent states that the user asks for.

    Parameters
    ----------
    m : int, mapping of str to int, or callable
        One number for all; a number for some nonterminals (1 for those not
        named); or ``m(nonterminal, count) -> int``, with the (weighted) number
        of occurrences.
    nonterminals : sequence of str
        Names.
    counts : array-like of float
        Number of occurrences of each.

    Returns
    -------
    ndarray of int64
        At least 1 each.

    Warns
    -----
    TreebankWarning
        If `m` names nonterminals that the trees do not have.

    Examples
    --------
    >>> from lpcfg_sk.lpcfg import requested_states
    >>> requested_states({"NP": 4}, ["NP", "VP"], [10, 10]).tolist()
    [4, 1]
    >>> requested_states(lambda a, n: min(8, n // 3), ["NP", "VP"], [9, 60]).tolist()
    [3, 8]
    """
    if callable(m):
        wanted = [m(a, c) for a, c in zip(nonterminals, counts, strict=True)]
    elif hasattr(m, "items"):
        wanted = [m.get(a, 1) for a in nonterminals]
        _warn_of_unknown(m, nonterminals)
    else:
        wanted = [m] * len(nonterminals)
    for a, value in zip(nonterminals, wanted, strict=True):
        if not _is_whole(value) or value < 1:
            raise ValueError(
                f"m gives {value!r} latent states for {a!r}; a whole number from 1 on "
                "is needed."
            )
    return np.array(wanted, dtype=np.int64)


def _warn_of_unknown(m, nonterminals):
    # No error: a fold of cross-validation may lack a label.
    unknown = [a for a in m if a not in set(nonterminals)]
    if unknown:
        names = ", ".join(map(repr, unknown[:5])) + (", ..." if unknown[5:] else "")
        warnings.warn(
            f"m names nonterminals that the trees do not have, which is ignored: "
            f"{names}",
            TreebankWarning,
            stacklevel=3,
        )


def _is_whole(value):
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return isinstance(value, Integral) or float(value).is_integer()
