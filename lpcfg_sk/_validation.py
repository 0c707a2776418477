"""Constraints of parameters, and the decorator of every fit.

scikit-learn's parameter constraints live in a private module, which is imported here
and nowhere else.
"""

from collections.abc import Mapping
from functools import wraps
from numbers import Integral

from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_params,
)

import lpcfg_sk
from lpcfg_sk._interrupts import interruptible

__all__ = [
    "N_JOBS",
    "N_STATES",
    "CheckedStateMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_count",
    "fit_context",
    "validate_params",
]

#: Allowed values of `n_jobs`; joblib has no zero jobs.
N_JOBS = [
    Interval(Integral, 1, None, closed="left"),
    Interval(Integral, None, -1, closed="right"),
    None,
]

#: Allowed values of `m`, the numbers of latent states.
N_STATES = [Interval(Integral, 1, None, closed="left"), Mapping, callable]


def check_count(name, value, least):
    """Return a whole number as an int, or raise a ValueError.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        What was passed.
    least : int
        Smallest allowed value.

    Returns
    -------
    int
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{name} must be a whole number from {least} on, got {value!r}"
        )
    return int(value)


class CheckedStateMixin:
    """An estimator that is checked when it comes out of a pickle, as out of a file."""

    def __setstate__(self, state):
        super().__setstate__(state)
        lpcfg_sk.persistence.check_state(self)


def fit_context(*, prefer_skip_nested_validation):
    """Check the parameters before a fit, and undo a fit that fails.

    scikit-learn's decorator checks them. After an error or an interruption the
    estimator is in its earlier state: fitted to the earlier data, or not fitted. An
    interruption is always a ``KeyboardInterrupt``.

    Parameters
    ----------
    prefer_skip_nested_validation : bool
        Whether the parameters of estimators inside are not checked again.

    Returns
    -------
    decorator : callable
        For methods that fit. A class with ``_keeps_interrupted_model`` handles a
        ``KeyboardInterrupt`` itself.
    """
    check = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)

    def decorator(fit):
        checked = check(fit)

        @wraps(fit)
        def wrapper(estimator, *args, **kwargs):
            before = dict(vars(estimator))
            try:
                with interruptible():
                    return checked(estimator, *args, **kwargs)
            except BaseException as error:
                kept = getattr(estimator, "_keeps_interrupted_model", False)
                if not (kept and isinstance(error, KeyboardInterrupt)):
                    vars(estimator).clear()
                    vars(estimator).update(before)
                raise

        return wrapper

    return decorator
