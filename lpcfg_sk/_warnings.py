"""Warnings that point at the line of the user's program that caused them."""

import os
import re
import sys
import warnings

import joblib
import sklearn

_HERE = os.path.dirname(__file__) + os.sep
_SKLEARN = os.path.dirname(sklearn.__file__) + os.sep

# Packages whose frames are passed over.
_BETWEEN = (_HERE, _SKLEARN, os.path.dirname(joblib.__file__) + os.sep)

# Those that fit and score an estimator many times.
_SEARCHES = tuple(
    os.path.join(folder, "model_selection", "") for folder in (_HERE, _SKLEARN)
)

# What searches have warned of, and from which line of the user's program.
_WARNED = set()


def warn_caller(message, category=UserWarning):
    """Issue a warning at the innermost line outside of the library.

    Frames of this library, scikit-learn and joblib are passed over, so that the line
    is the user's, through pipelines and searches alike. A search or cross-validation
    warns once of what happens in several of its fits, whatever the numbers in the
    message: Python's own filters cannot do that, because scikit-learn resets them for
    every fold.

    Parameters
    ----------
    message : str
        What happened, and what to do about it.
    category : type, default=UserWarning
        Class of the warning.
    """
    level, frame, searching = 2, sys._getframe(1), False
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        searching = searching or frame.f_code.co_filename.startswith(_SEARCHES)
        level, frame = level + 1, frame.f_back
    if searching:
        text = re.sub(r"[\d.]+", "", str(message))
        place = (frame.f_code.co_filename, frame.f_lineno, category, text)
        if place in _WARNED:
            return
        _WARNED.add(place)
    warnings.warn(message, category, stacklevel=level)
