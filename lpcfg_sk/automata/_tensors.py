"""Transition tensors of tree automata: dense, by coordinates, and in CP form.

All three have the same few operations, and everything an automaton computes is
built from them: ``apply`` (one bottom-up step for many nodes at once),
``contract`` (the step of a Gram matrix), ``project`` (a change of basis) and the
factored form ``left``/``right``/``combine`` that charts sum over split points.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from lpcfg_sk._kernels._wta_charts import FeaturePairs
from lpcfg_sk._kernels._wta_tensors import (
    EntriesByColumn,
    EntriesByRow,
    apply_sparse,
    bilinear_sparse,
    contract_sparse,
)
from lpcfg_sk._ragged import read_only

#: Bytes of one temporary block; larger intermediates are cut along the first mode.
_BLOCK_BYTES = 1 << 25
#: Weights between 2 to the power of minus this and 2 to the power of this need no
#: scaling: sums of squares of products of two of them stay in range.
ORDINARY_EXPONENT = 200


def _constant(array):
    return read_only(np.ascontiguousarray(array, dtype=np.float64))


class _ListedTensor:
    """Base of tensors that list their weights one by one.

    Subclasses have the attributes `n` and `weight` and the method `_with_weight`.
    """

    @property
    def n_parameters(self):
        """Number of listed weights."""
        return self.weight.size

    def scaled(self, factor):
        """The tensor times a number."""
        return self._with_weight(self.weight * factor)

    def absolute(self):
        """The tensor of absolute values."""
        return self._with_weight(np.abs(self.weight))

    @cached_property
    def _exponent(self):
        return scale_exponent(self.weight)

    def normalized(self):
        """A tensor of ordinary weights, and the exponent of 2 taken out of it."""
        if self._exponent == 0:
            return self, 0
        weight = np.ldexp(self.weight, -self._exponent)
        return self._with_weight(weight), self._exponent

    def project(self, first, second, third):
        """The tensor ``T(first, second, third)``, in dense form."""
        n_second, n_third = second.shape[1], third.shape[1]
        bilinear = self._bilinear_map(third)
        out = np.empty((first.shape[1], n_second, n_third))
        for lo, hi in blocks(n_second, 8 * self.n * n_third):
            both = bilinear(second[:, lo:hi]).reshape(self.n, -1)
            out[:, lo:hi] = (first.T @ both).reshape(-1, hi - lo, n_third)
        return DenseTensor(out)

    def left(self, vectors):
        """Left features of state vectors (rows): the vectors themselves."""
        return vectors

    right = left

    def left_adjoint(self, weights):
        """Transpose of `left`."""
        return weights

    right_adjoint = left_adjoint


class DenseTensor(_ListedTensor):
    """All n³ transition weights.

    Parameters
    ----------
    weight : ndarray of float64, shape (n, n, n)
        ``weight[i, j, k]`` is the weight of i → j k.
    """

    kind = "dense"
    #: A chart sums all products of a left and a right feature.
    pairs = None

    def __init__(self, weight):
        self.weight = _constant(weight)
        self.n = self.weight.shape[0]

    def _with_weight(self, weight):
        return DenseTensor(weight)

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
        flat = other.weight.reshape(n2, -1).T
        out = np.empty((n1, n2))
        for lo, hi in blocks(n1, 8 * n2 * max(n1, n2)):
            half = self.weight[lo:hi].reshape(-1, n1) @ y
            both = np.matmul(x.T, half.reshape(hi - lo, n1, n2))
            out[lo:hi] = both.reshape(hi - lo, -1) @ flat
        return out

    def _bilinear_map(self, third):
        half = (self.weight.reshape(-1, self.n) @ third).reshape(self.n, self.n, -1)
        return lambda second: np.matmul(second.T, half)

    def permuted(self, axes):
        """The tensor with its modes in another order."""
        return DenseTensor(self.weight.transpose(axes))

    def restricted(self, states):
        """The tensor over some of the states."""
        return DenseTensor(self.weight[np.ix_(states, states, states)])

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        i, j, k = np.nonzero(self.weight)
        return (*(a.astype(np.int32) for a in (i, j, k)), self.weight[i, j, k])

    def children(self):
        """Mask of pairs (i, j): state i has a transition with a child j."""
        some = self.weight != 0
        return some.any(axis=2) | some.any(axis=1)

    def above(self, below):
        """Mask of states with a transition into two states of a mask."""
        return (self.weight[:, below][:, :, below] != 0).any(axis=(1, 2))

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        some = self.weight[above][:, below][:, :, below] != 0
        mask = np.zeros(self.n, dtype=bool)
        mask[below] = some.any(axis=(0, 2)) | some.any(axis=(0, 1))
        return mask

    def to_dense(self):
        """The n × n × n array."""
        return self.weight

    def arrays(self):
        """The arrays of a saved file, by name."""
        return {"dense": self.weight}

    @property
    def n_features(self):
        """Number of summed products of a left and a right feature."""
        return self.n**2

    def combine(self, sums):
        """State vectors from summed products (rows)."""
        return sums @ self.weight.reshape(self.n, -1).T

    def combine_adjoint(self, vectors):
        """Transpose of `combine`."""
        return vectors @ self.weight.reshape(self.n, -1)


class SparseTensor(_ListedTensor):
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
        if n >= 2**21:
            raise ValueError(f"A sparse T has at most 2097151 states, got {n}.")
        i, j, k = (np.asarray(a, dtype=np.int64) for a in (i, j, k))
        key, where = np.unique((i * n + j) * n + k, return_inverse=True)
        weight = np.bincount(
            where, np.asarray(weight, dtype=np.float64), minlength=len(key)
        )
        self.n = int(n)
        self.i, self.j, self.k = (
            read_only(a.astype(np.int32))
            for a in (key // (n * n), key // n % n, key % n)
        )
        self.weight = read_only(weight)
        self._by_row = EntriesByRow(*self._grouped(self.i, self.k, self.j))
        column_j, column_k, start, *entries = self._grouped(self.j, self.k, self.i)
        self.pairs = FeaturePairs(column_j, column_k)
        group = np.flatnonzero(np.diff(column_j, prepend=-1))
        group_start = np.append(group, len(column_j)).astype(np.int64)
        self._by_column = EntriesByColumn(
            group_start, column_j[group], column_k, start, *entries
        )
        self._incidence = csr_matrix(
            (entries[1], entries[0], start), shape=(len(column_j), self.n)
        )

    @classmethod
    def zeros(cls, n):
        """Make a tensor over n states without any transition."""
        empty = np.zeros(0, dtype=np.int32)
        return cls(empty, empty, empty, np.zeros(0), n)

    def _grouped(self, first, second, third):
        """Entries by pairs of two modes: pairs, start of each, third mode, weight."""
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        change = np.diff(first, prepend=-1) | np.diff(second, prepend=-1)
        pair = np.flatnonzero(change)
        start = np.append(pair, len(order)).astype(np.int64)
        return first[pair], second[pair], start, third[order], self.weight[order]

    def _with_weight(self, weight):
        return SparseTensor(self.i, self.j, self.k, weight, self.n)

    def apply(self, left, right):
        """Rows ``T(I, left[m], right[m])``."""
        out = np.empty((len(left), self.n))
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        apply_sparse(self._by_column, left, right, out)
        return out

    def contract(self, x, y, other):
        """The matrix ``Σ T[i,j,k] x[j,j'] y[k,k'] T'[i',j',k']``."""
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        if other.kind == "sparse":
            return contract_sparse(self._by_row, x, y, other._by_column, other.n)
        if other.kind == "cp":
            return other.contract(x.T, y.T, self).T
        flat = other.weight.reshape(other.n, -1).T
        out = np.empty((self.n, other.n))
        for lo, hi in blocks(self.n, 8 * other.n**2):
            both = self._bilinear(lo, hi, x, y)
            out[lo:hi] = both.reshape(hi - lo, -1) @ flat
        return out

    def _bilinear_map(self, third):
        return lambda second: self._bilinear(0, self.n, second, third)

    def _bilinear(self, lo, hi, x, y):
        """The slabs lo:hi of T(I, x, y)."""
        i, k, start, j, weight = self._by_row
        a, b = np.searchsorted(i, (lo, hi))
        rows = EntriesByRow(i[a:b] - np.int32(lo), k[a:b], start[a : b + 1], j, weight)
        out = np.zeros((hi - lo, x.shape[1], y.shape[1]))
        bilinear_sparse(rows, np.ascontiguousarray(x), np.ascontiguousarray(y), out)
        return out

    def permuted(self, axes):
        """The tensor with its modes in another order."""
        modes = self.i, self.j, self.k
        return SparseTensor(*(modes[a] for a in axes), self.weight, self.n)

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
        i, j, k, _ = self.entries()
        mask = np.zeros(self.n, dtype=bool)
        mask[i[below[j] & below[k]]] = True
        return mask

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        i, j, k, _ = self.entries()
        live = above[i] & below[j] & below[k]
        mask = np.zeros(self.n, dtype=bool)
        mask[j[live]] = mask[k[live]] = True
        return mask

    def to_dense(self):
        """The n × n × n array."""
        out = np.zeros((self.n,) * 3)
        out[self.i, self.j, self.k] = self.weight
        return out

    def arrays(self):
        """The arrays of a saved file, by name."""
        return {"i": self.i, "j": self.j, "k": self.k, "weight": self.weight}

    @property
    def n_features(self):
        """Number of summed products of a left and a right feature."""
        return self.pairs.left.size

    def combine(self, sums):
        """State vectors from summed products (rows)."""
        return sums @ self._incidence

    def combine_adjoint(self, vectors):
        """Transpose of `combine`."""
        return vectors @ self._incidence.T


class CPTensor:
    """Sum of R rank-one terms, ``T = Σ_r A[:, r] ⊗ B[:, r] ⊗ C[:, r]``.

    Parameters
    ----------
    a, b, c : array-like of float, shape (n, R)
        Factors of the parent, the left and the right state.
    """

    kind = "cp"

    def __init__(self, a, b, c):
        self.a, self.b, self.c = (_constant(factor) for factor in (a, b, c))
        self.n, self.rank = self.a.shape

    @property
    def factors(self):
        """The three factors."""
        return self.a, self.b, self.c

    @property
    def n_parameters(self):
        """Numbers that specify the tensor (3Rn)."""
        return 3 * self.a.size

    def apply(self, left, right):
        """Rows ``T(I, left[m], right[m])``."""
        return ((left @ self.b) * (right @ self.c)) @ self.a.T

    def contract(self, x, y, other):
        """The matrix ``Σ T[i,j,k] x[j,j'] y[k,k'] T'[i',j',k']``."""
        if other.kind == "cp":
            core = (self.b.T @ x @ other.b) * (self.c.T @ y @ other.c)
            return self.a @ core @ other.a.T
        return self.a @ other.apply(self.b.T @ x, self.c.T @ y)

    def project(self, first, second, third):
        """The tensor ``T(first, second, third)``, in CP form."""
        return CPTensor(first.T @ self.a, second.T @ self.b, third.T @ self.c)

    def permuted(self, axes):
        """The tensor with its modes in another order."""
        return CPTensor(*(self.factors[a] for a in axes))

    def scaled(self, factor):
        """The tensor times a number."""
        return CPTensor(self.a * factor, self.b, self.c)

    def normalized(self):
        """A tensor of ordinary weights, and the exponent of 2 taken out of it."""
        # A product of three factors must stay in the ordinary range.
        exponents = [scale_exponent(f, ORDINARY_EXPONENT // 3) for f in self.factors]
        if not any(exponents):
            return self, 0
        pairs = zip(self.factors, exponents, strict=True)
        return CPTensor(*(np.ldexp(f, -e) for f, e in pairs)), sum(exponents)

    def absolute(self):
        """A tensor of at least the absolute values."""
        return CPTensor(*map(np.abs, self.factors))

    def restricted(self, states):
        """The tensor over some of the states."""
        return CPTensor(*(factor[states] for factor in self.factors))

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        return DenseTensor(self.to_dense()).entries()

    def children(self):
        """Mask of pairs (i, j): state i may have a transition with a child j."""
        live = self._live(slice(None))
        child = (self.b != 0) | (self.c != 0)
        return (self.a[:, live] != 0) @ child[:, live].T

    def above(self, below):
        """Mask of states with a transition into two states of a mask."""
        return (self.a[:, self._live(below)] != 0).any(axis=1)

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        live = (self.a[above] != 0).any(axis=0) & self._live(below)
        either = (self.b[:, live] != 0) | (self.c[:, live] != 0)
        return either.any(axis=1) & below

    def _live(self, below):
        """Mask of the terms with a left and a right child among some states."""
        return (self.b[below] != 0).any(axis=0) & (self.c[below] != 0).any(axis=0)

    def to_dense(self):
        """The n × n × n array."""
        return np.einsum("ir,jr,kr->ijk", *self.factors, optimize=True)

    def arrays(self):
        """The arrays of a saved file, by name."""
        return {"a": self.a, "b": self.b, "c": self.c}

    def left(self, vectors):
        """Left features of state vectors (rows)."""
        return vectors @ self.b

    def right(self, vectors):
        """Right features of state vectors (rows)."""
        return vectors @ self.c

    def left_adjoint(self, weights):
        """Transpose of `left`."""
        return weights @ self.b.T

    def right_adjoint(self, weights):
        """Transpose of `right`."""
        return weights @ self.c.T

    @property
    def pairs(self):
        """Left and right feature of each product that a chart sums."""
        index = np.arange(self.rank, dtype=np.int32)
        return FeaturePairs(index, index)

    @property
    def n_features(self):
        """Number of summed products of a left and a right feature."""
        return self.rank

    def combine(self, sums):
        """State vectors from summed products (rows)."""
        return sums @ self.a.T

    def combine_adjoint(self, vectors):
        """Transpose of `combine`."""
        return vectors @ self.a


def blocks(n_rows, row_bytes):
    """Cut rows into runs (begin, end) whose temporaries fit a block of memory."""
    step = max(1, int(_BLOCK_BYTES // max(row_bytes, 1)))
    return [(lo, min(lo + step, n_rows)) for lo in range(0, n_rows, step)]


def scale_exponent(array, ordinary=ORDINARY_EXPONENT):
    """Find the exponent of the power of two to divide an array by.

    Parameters
    ----------
    array : ndarray of float64
        Finite weights, which may be near the ends of double precision.
    ordinary : int, default=200
        Exponent up to which weights are not scaled.

    Returns
    -------
    int
        0 for arrays of zeros and of ordinary sizes; otherwise division brings the
        largest absolute value between ½ and 1. Only subnormal numbers are rounded.
    """
    largest = np.abs(array).max(initial=0.0)
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > ordinary else 0
