"""Numbering of the spans of a sentence, their best splits, and powers of two."""

import math

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import HELPER, KERNEL, held


@njit(**KERNEL)
def span_count(n):
    """Return the number of spans of a sentence of n words."""
    return n * (n + 1) // 2


@njit(**KERNEL)
def span_index(start, stop, n):
    """Return the number of span [start, stop) in a sentence of n words.

    Narrow spans come first, spans of one width from left to right, so that a loop
    over the numbers is bottom-up.
    """
    width = stop - start
    return (width - 1) * n - (width - 1) * (width - 2) // 2 + start


@njit(**HELPER)
def spans_of_width(width, n):
    """Return the range of the spans of one width in a sentence of n words."""
    first = span_index(0, width, n)
    return range(first, first + n - width + 1)


@held
@njit(**KERNEL)
def span_bounds(n):
    """Return the start and stop of all spans of a sentence of n words."""
    start = np.empty(span_count(n), dtype=np.int64)
    stop = np.empty(span_count(n), dtype=np.int64)
    for width in range(1, n + 1):
        for i, span in enumerate(spans_of_width(width, n)):
            start[span] = i
            stop[span] = i + width
    return start, stop


@njit(**HELPER)
def power_of_two(exponent):
    """Return 2 to the power of an integer."""
    return math.ldexp(1.0, int(exponent))


@njit(**HELPER)
def best_splits(n, gain):
    """Return the split point of each span in the tree of the largest sum of gains.

    Parameters
    ----------
    n : int
        Number of words.
    gain : ndarray of float64, shape (n_spans,)
        Gain of each span.
    """
    best = gain.copy()
    split = np.zeros(len(gain), dtype=np.int32)
    for width in range(2, n + 1):
        for i, span in enumerate(spans_of_width(width, n)):
            j = i + width
            largest = -math.inf
            # If all sums are NaN, any split will do, but one must be set.
            split[span] = i + 1
            for k in range(i + 1, j):
                value = best[span_index(i, k, n)] + best[span_index(k, j, n)]
                if value > largest:
                    largest = value
                    split[span] = k
            best[span] += largest
    return split
