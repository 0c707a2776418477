"""Transition tensors with all their weights."""

from functools import cached_property

import numpy as np

from lpcfg_sk.automata._scales import exponent_of

__all__ = ["DenseTensor", "PlainFeatures", "blocks", "frozen"]

#: Bytes of one temporary block; larger intermediates are cut along the first mode.
_BLOCK_BYTES = 1 << 25


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


def frozen(array):
    """The array as contiguous numbers that nobody writes to."""
    array = np.ascontiguousarray(array, dtype=np.float64)
    array.flags.writeable = False
    return array


class PlainFeatures:
    """Part of tensors whose charts sum products of the states themselves."""

    def left(self, vectors):
        """Left features of state vectors (rows)."""
        return vectors

    right = left

    def left_adjoint(self, weights):
        """Transpose of `left`."""
        return weights

    right_adjoint = left_adjoint


class DenseTensor(PlainFeatures):
    """All n³ transition weights.

    Parameters
    ----------
    array : ndarray of float64, shape (n, n, n)
        ``array[i, j, k]`` is the weight of i → j k.
    """

    kind = "dense"

    def __init__(self, array):
        self.array = frozen(array)
        self.n = self.array.shape[0]

    @property
    def n_parameters(self):
        """Numbers that specify the tensor (n³)."""
        return self.array.size

    def apply(self, left, right):
        """Rows ``T(I, left[m], right[m])``."""
        out = np.empty((len(left), self.n))
        for lo, hi in blocks(len(left), 8 * self.n**2):
            grid = left[lo:hi, :, None] * right[lo:hi, None, :]
            out[lo:hi] = self.combine(grid.reshape(hi - lo, -1))
        return out

    def contract(self, x, y, other):
        """The matrix ``Σ T[i,j,k] x[j,j'] y[k,k'] T'[i',j',k']``."""
        if other.kind != "dense":
            return other.contract(x.T, y.T, self).T
        n1, n2 = self.n, other.n
        flat = other.array.reshape(n2, -1).T
        out = np.empty((n1, n2))
        for lo, hi in blocks(n1, 8 * n2 * max(n1, n2)):
            half = self.array[lo:hi].reshape(-1, n1) @ y
            both = np.matmul(x.T, half.reshape(hi - lo, n1, n2))
            out[lo:hi] = both.reshape(hi - lo, -1) @ flat
        return out

    def project(self, first, second, third):
        """Dense array ``T(first, second, third)``."""
        n = self.n
        shape = first.shape[1], second.shape[1], third.shape[1]
        half = (self.array.reshape(-1, n) @ third).reshape(n, n, -1)
        out = np.empty(shape)
        for lo, hi in blocks(shape[1], 8 * n * shape[2]):
            both = np.matmul(second[:, lo:hi].T, half)
            out[:, lo:hi] = (first.T @ both.reshape(n, -1)).reshape(
                -1, hi - lo, shape[2]
            )
        return DenseTensor(out)

    def permuted(self, axes):
        """The tensor with its modes in another order."""
        return DenseTensor(self.array.transpose(axes))

    def scaled(self, factor):
        """The tensor times a number."""
        return DenseTensor(self.array * factor)

    @cached_property
    def _exponent(self):
        return exponent_of(self.array)

    def normalized(self):
        """A tensor of ordinary weights, and the power of two that it lacks."""
        if self._exponent == 0:
            return self, 0
        return DenseTensor(np.ldexp(self.array, -self._exponent)), self._exponent

    def absolute(self):
        """The tensor of absolute values."""
        return DenseTensor(np.abs(self.array))

    def restricted(self, states):
        """The tensor over some of the states."""
        return DenseTensor(self.array[np.ix_(states, states, states)])

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        i, j, k = np.nonzero(self.array)
        return (*(a.astype(np.int32) for a in (i, j, k)), self.array[i, j, k])

    def children(self):
        """Mask of pairs (i, j): state i has a transition with a child j."""
        some = self.array != 0
        return some.any(axis=2) | some.any(axis=1)

    def above(self, below):
        """Mask of states with a transition into two states of a mask."""
        return (self.array[:, below][:, :, below] != 0).any(axis=(1, 2))

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        some = self.array[above][:, below][:, :, below] != 0
        mask = np.zeros(self.n, dtype=bool)
        mask[below] = some.any(axis=(0, 2)) | some.any(axis=(0, 1))
        return mask

    def to_dense(self):
        """The n × n × n array."""
        return self.array

    def arrays(self):
        """What a saved file holds, by name."""
        return {"dense": self.array}

    @property
    def pairs(self):
        """None: a chart sums all products of a left and a right feature."""
        return None

    @property
    def n_features(self):
        """Number of summed products of a left and a right feature."""
        return self.n**2

    def combine(self, sums):
        """State vectors from summed products (rows)."""
        return sums @ self.array.reshape(self.n, -1).T

    def combine_adjoint(self, vectors):
        """Transpose of `combine`."""
        return vectors @ self.array.reshape(self.n, -1)
