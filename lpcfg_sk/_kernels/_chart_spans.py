"""Numbering of the spans of a sentence, and their scales."""

import math

from numba import njit


@njit(nogil=True, cache=True)
def span_index(start, stop, n):
    """Return the number of span [start, stop) among the n(n+1)/2 of a sentence.

    Narrow spans come first, spans of one width from left to right, so that a loop
    over the numbers is bottom-up.
    """
    width = stop - start
    return (width - 1) * n - (width - 1) * (width - 2) // 2 + start


@njit(nogil=True, cache=True)
def power_of_two(exponent):
    """Return 2 to the power of an integer."""
    return math.ldexp(1.0, int(exponent))
