"""Blocks of temporaries, and units of weights near the ends of double precision."""

import numpy as np

#: Bytes of one temporary block; larger intermediates are cut along the first mode.
_BLOCK_BYTES = 1 << 25
#: Weights within 2 to the power of ± this need no scaling: sums of squares of products
#: of two of them stay in range.
ORDINARY_EXPONENT = 200


def blocks(n_rows, row_bytes):
    """Cut rows into runs whose temporaries fit a block of memory.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_bytes : int
        Bytes of the temporaries of one row.

    Returns
    -------
    list of tuple (begin, end)
    """
    step = max(1, int(_BLOCK_BYTES // max(row_bytes, 1)))
    return [(lo, min(lo + step, n_rows)) for lo in range(0, n_rows, step)]


def scale_exponent(array, ordinary=ORDINARY_EXPONENT):
    """Find the exponent of the power of two to divide an array by.

    Parameters
    ----------
    array : ndarray of float64
        Finite weights, which may be near the ends of double precision.
    ordinary : int, default=200
        Exponent up to which weights are left as they are.

    Returns
    -------
    int
        0 for arrays of zeros and of ordinary sizes; otherwise division brings the
        largest absolute value between ½ and 1. Only subnormal numbers are rounded.
    """
    largest = np.abs(array).max(initial=0.0)
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > ordinary else 0
