"""Settings and small functions that the kernels of several families share."""

import numpy as np
from numba import njit
from numba.core.registry import CPUDispatcher

from lpcfg_sk._interrupts import held_back

#: Lets the compiler reorder sums (SIMD) while infinities and nans keep their
#: meaning; for inner-product loops only.
REASSOC = {"reassoc", "contract", "nsz", "arcp", "afn"}

#: Options of kernels. Nothing calls them from C, so they compile without the wrapper
#: that C would need.
KERNEL = {"nogil": True, "cache": True, "no_cfunc_wrapper": True}

#: Options of functions that only kernels call: no wrapper for Python either.
HELPER = {**KERNEL, "no_cpython_wrapper": True}


class _HeldDispatcher(CPUDispatcher):
    def __call__(self, *args):
        with held_back():
            return super().__call__(*args)


def held(kernel):
    """Let Ctrl-C wait while a kernel runs whose arrays are returned to Python.

    See :func:`lpcfg_sk._interrupts.held_back`. Other kernels may call it as well.

    Parameters
    ----------
    kernel : Dispatcher, or function where there is no compiler
        What ``njit`` made.

    Returns
    -------
    kernel : Dispatcher or function
        The same object.
    """
    if isinstance(kernel, CPUDispatcher):
        kernel.__class__ = _HeldDispatcher
    return kernel


@njit(**KERNEL)
def rescale(vector):
    """Divide a vector by its largest absolute value and return that value."""
    largest = 0.0
    for h in range(len(vector)):
        largest = max(largest, abs(vector[h]))
    if largest > 0.0:
        # A subnormal maximum has no reciprocal.
        for h in range(len(vector)):
            vector[h] /= largest
    return largest


@njit(**HELPER)
def lengthened(array, size):
    """Return a copy of an array with room for `size` rows."""
    longer = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    # Assigning to a slice would compile the text of an error message, in seconds.
    for i, value in enumerate(array.flat):
        longer.flat[i] = value
    return longer


@njit(**KERNEL)
def longest(offsets):
    """Return the length of the longest piece, 0 where there is none."""
    length = 0
    for t in range(len(offsets) - 1):
        length = max(length, offsets[t + 1] - offsets[t])
    return length


@njit(nogil=True, inline="always")
def set_row(table, row, first, second, third):
    """Write the first three columns of a row.

    Parameters
    ----------
    table : ndarray of int, shape (n_rows, at least 3)
        Written to.
    row : int
        Which row.
    first, second, third : int
        Its values.
    """
    table[row, 0] = first
    table[row, 1] = second
    table[row, 2] = third
