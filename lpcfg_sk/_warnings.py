"""Warnings that point at the line of the user's program that caused them."""

import os
import sys
import warnings

import joblib
import sklearn

# Packages whose frames are passed over.
_BETWEEN = tuple(
    os.path.dirname(path) + os.sep
    for path in (__file__, joblib.__file__, sklearn.__file__)
)

# Lines that have been warned about, see `once`.
_WARNED = set()


def warn_caller(message, category, *, once=False):
    """Issue a warning at the innermost line outside of the library.

    Frames of this library, scikit-learn and joblib are passed over, so that the line
    is the user's, through pipelines and searches alike.

    Parameters
    ----------
    message : str
        What happened, and what to do about it.
    category : type
        Class of the warning.
    once : bool, default=False
        Whether each line of the user's program is warned only once per process.
        Python's own filters cannot do that in a search, because scikit-learn resets
        them for every fold.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        level, frame = level + 1, frame.f_back
    if once:
        place = (frame.f_code.co_filename, frame.f_lineno, category, message)
        if place in _WARNED:
            return
        _WARNED.add(place)
    warnings.warn(message, category, stacklevel=level)
