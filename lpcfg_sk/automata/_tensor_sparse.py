"""Transition tensors by coordinates, as a grammar lists its rules."""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from lpcfg_sk._kernels._gram import apply_sparse, bilinear_sparse, contract_sparse
from lpcfg_sk.automata._scales import exponent_of
from lpcfg_sk.automata._tensor_dense import DenseTensor, PlainFeatures, blocks

__all__ = ["SparseTensor"]


class SparseTensor(PlainFeatures):
    """The non-zero transition weights, as a grammar lists its rules.

    Parameters
    ----------
    i, j, k : array-like of int, shape (n_entries,)
        Positions; an entry i → j k given twice counts twice.
    weight : array-like of float, shape (n_entries,)
        Weights.
    n : int
        Number of states.
    """

    kind = "sparse"

    def __init__(self, i, j, k, weight, n):
        i, j, k = (np.asarray(a, dtype=np.int64) for a in (i, j, k))
        key, where = np.unique((i * n + j) * n + k, return_inverse=True)
        weight = np.bincount(
            where, np.asarray(weight, dtype=np.float64), minlength=len(key)
        )
        self.n = int(n)
        self.i, self.j, self.k = (
            a.astype(np.int32) for a in (key // (n * n), key // n % n, key % n)
        )
        self.weight = weight
        for array in (self.i, self.j, self.k, self.weight):
            array.flags.writeable = False
        self._by_row = self._pairs(self.i, self.k, self.j)
        columns = self._pairs(self.j, self.k, self.i)
        self._column_j, self._column_k = columns[:2]
        start = np.flatnonzero(np.diff(self._column_j, prepend=-1))
        group_j = np.ascontiguousarray(self._column_j[start])
        start = np.append(start, len(self._column_j)).astype(np.int64)
        self._by_column = (start, group_j, *columns[1:])
        self._incidence = csr_matrix(
            (columns[4], columns[3], columns[2]), shape=(len(columns[0]), self.n)
        )

    def _pairs(self, first, second, third):
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        change = np.diff(first, prepend=-1) | np.diff(second, prepend=-1)
        start = np.flatnonzero(change)
        return (
            np.ascontiguousarray(first[start]),
            np.ascontiguousarray(second[start]),
            np.append(start, len(order)).astype(np.int64),
            np.ascontiguousarray(third[order]),
            np.ascontiguousarray(self.weight[order]),
        )

    @property
    def n_parameters(self):
        """Numbers that specify the tensor (its non-zeros)."""
        return self.weight.size

    def apply(self, left, right):
        """Rows ``T(I, left[m], right[m])``."""
        out = np.empty((len(left), self.n))
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        apply_sparse(*self._by_column, left, right, out)
        return out

    def contract(self, x, y, other):
        """The matrix ``Σ T[i,j,k] x[j,j'] y[k,k'] T'[i',j',k']``."""
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        if other.kind == "sparse":
            return contract_sparse(*self._by_row, x, y, *other._by_column, other.n)
        if other.kind == "cp":
            return other.contract(x.T, y.T, self).T
        flat = other.array.reshape(other.n, -1).T
        out = np.empty((self.n, other.n))
        for lo, hi in blocks(self.n, 8 * other.n**2):
            both = self._bilinear(lo, hi, x, y)
            out[lo:hi] = both.reshape(hi - lo, -1) @ flat
        return out

    def _bilinear(self, lo, hi, x, y):
        pair_i, pair_k, start, rule_j, weight = self._by_row
        a, b = np.searchsorted(pair_i, (lo, hi))
        out = np.zeros((hi - lo, x.shape[1], y.shape[1]))
        bilinear_sparse(
            pair_i[a:b] - np.int32(lo),
            pair_k[a:b],
            start[a : b + 1],
            rule_j,
            weight,
            np.ascontiguousarray(x),
            np.ascontiguousarray(y),
            out,
        )
        return out

    def project(self, first, second, third):
        """Dense array ``T(first, second, third)``."""
        shape = first.shape[1], second.shape[1], third.shape[1]
        out = np.empty(shape)
        for lo, hi in blocks(shape[1], 8 * self.n * shape[2]):
            both = self._bilinear(0, self.n, second[:, lo:hi], third)
            out[:, lo:hi] = (first.T @ both.reshape(self.n, -1)).reshape(
                -1, hi - lo, shape[2]
            )
        return DenseTensor(out)

    def permuted(self, axes):
        """The tensor with its modes in another order."""
        modes = self.i, self.j, self.k
        return SparseTensor(*(modes[a] for a in axes), self.weight, self.n)

    def scaled(self, factor):
        """The tensor times a number."""
        return SparseTensor(self.i, self.j, self.k, self.weight * factor, self.n)

    @cached_property
    def _exponent(self):
        return exponent_of(self.weight)

    def normalized(self):
        """A tensor of ordinary weights, and the power of two that it lacks."""
        if self._exponent == 0:
            return self, 0
        weight = np.ldexp(self.weight, -self._exponent)
        return SparseTensor(self.i, self.j, self.k, weight, self.n), self._exponent

    def absolute(self):
        """The tensor of absolute values."""
        return SparseTensor(self.i, self.j, self.k, np.abs(self.weight), self.n)

    def restricted(self, states):
        """The tensor over some of the states."""
        place = np.full(self.n, -1)
        place[states] = np.arange(len(states))
        i, j, k = place[self.i], place[self.j], place[self.k]
        keep = (i >= 0) & (j >= 0) & (k >= 0)
        return SparseTensor(i[keep], j[keep], k[keep], self.weight[keep], len(states))

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        keep = self.weight != 0
        return self.i[keep], self.j[keep], self.k[keep], self.weight[keep]

    def children(self):
        """Mask of pairs (i, j): state i has a transition with a child j."""
        i, j, k, _ = self.entries()
        mask = np.zeros((self.n, self.n), dtype=bool)
        mask[i, j] = mask[i, k] = True
        return mask

    def above(self, below):
        """Mask of states with a transition into two states of a mask."""
        mask = np.zeros(self.n, dtype=bool)
        mask[self.i[below[self.j] & below[self.k] & (self.weight != 0)]] = True
        return mask

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        live = above[self.i] & below[self.j] & below[self.k] & (self.weight != 0)
        mask = np.zeros(self.n, dtype=bool)
        mask[self.j[live]] = mask[self.k[live]] = True
        return mask

    def to_dense(self):
        """The n × n × n array."""
        out = np.zeros((self.n,) * 3)
        out[self.i, self.j, self.k] = self.weight
        return out

    def arrays(self):
        """What a saved file holds, by name."""
        return {"i": self.i, "j": self.j, "k": self.k, "weight": self.weight}

    @property
    def pairs(self):
        """Left and right feature of each product that a chart sums."""
        return self._column_j, self._column_k

    @property
    def n_features(self):
        """Number of summed products of a left and a right feature."""
        return self._column_j.size

    def combine(self, sums):
        """State vectors from summed products (rows)."""
        return sums @ self._incidence

    def combine_adjoint(self, vectors):
        """Transpose of `combine`."""
        return vectors @ self._incidence.T
