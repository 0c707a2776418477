"""Powers of two that bring weights near the ends of double precision to the middle."""

import numpy as np

__all__ = ["exponent_of", "exponents_of"]

#: Weights within 2 to the power of ± this need no scaling: sums of squares of products
#: of two of them stay in range.
_ORDINARY = 200


def exponent_of(array, ordinary=_ORDINARY):
    """Exponent of the power of two to divide an array by.

    Parameters
    ----------
    array : ndarray of float64
        Finite weights.
    ordinary : int, default=200
        Exponent up to which weights are left as they are.

    Returns
    -------
    int
        0 for arrays of zeros and of ordinary sizes; else the largest absolute value
        becomes one from ½ to 1. Nothing but subnormal numbers is rounded.
    """
    largest = np.abs(array).max(initial=0.0)
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > ordinary else 0


def exponents_of(arrays):
    """Exponents for the factors of a product, which share the range of numbers."""
    return [exponent_of(array, _ORDINARY // len(arrays)) for array in arrays]
