"""Transition tensors of tree automata: dense, by coordinates, and in CP form.

All three know the same few operations, and everything an automaton computes is
built from them: ``apply`` (one bottom-up step for many nodes at once),
``contract`` (the step of a Gram matrix), ``project`` (a change of basis) and the
factored form ``left``/``right``/``combine`` that charts sum over split points.
"""

import numpy as np
from scipy.sparse import csr_matrix

from lpcfg_sk._kernels._gram import apply_sparse, bilinear_sparse, contract_sparse

__all__ = [
    "CPTensor",
    "DenseTensor",
    "SparseTensor",
    "add",
    "as_tensor",
    "direct_sum",
    "hadamard",
]

#: Bytes of one temporary block; larger intermediates are cut along the first mode.
_BLOCK_BYTES = 1 << 25

#: Above this share of non-zeros a tensor is cheaper to keep dense.
_DENSE_SHARE = 0.1


def _blocks(n_rows, row_bytes):
    step = max(1, int(_BLOCK_BYTES // max(row_bytes, 1)))
    return [(lo, min(lo + step, n_rows)) for lo in range(0, n_rows, step)]


class DenseTensor:
    """All n³ transition weights.

    Parameters
    ----------
    array : ndarray of float64, shape (n, n, n)
        ``array[i, j, k]`` is the weight of i → j k.
    """

    kind = "dense"

    def __init__(self, array):
        self.array = np.ascontiguousarray(array, dtype=np.float64)
        self.n = self.array.shape[0]

    @property
    def n_parameters(self):
        """Numbers that specify the tensor (n³)."""
        return self.array.size

    def apply(self, left, right):
        """Rows ``T(I, left[m], right[m])``."""
        out = np.empty((len(left), self.n))
        for lo, hi in _blocks(len(left), 8 * self.n**2):
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
        for lo, hi in _blocks(n1, 8 * n2 * max(n1, n2)):
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
        for lo, hi in _blocks(shape[1], 8 * n * shape[2]):
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

    def restricted(self, states):
        """The tensor over some of the states."""
        return DenseTensor(self.array[np.ix_(states, states, states)])

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        i, j, k = np.nonzero(self.array)
        return (*(a.astype(np.int32) for a in (i, j, k)), self.array[i, j, k])

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

    def left(self, vectors):
        """Left features of state vectors (rows)."""
        return vectors

    right = left

    def left_adjoint(self, weights):
        """Transpose of `left`."""
        return weights

    right_adjoint = left_adjoint

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


class SparseTensor:
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
        for lo, hi in _blocks(self.n, 8 * other.n**2):
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
        for lo, hi in _blocks(shape[1], 8 * self.n * shape[2]):
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

    def left(self, vectors):
        """Left features of state vectors (rows)."""
        return vectors

    right = left

    def left_adjoint(self, weights):
        """Transpose of `left`."""
        return weights

    right_adjoint = left_adjoint

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


class CPTensor:
    """Sum of R rank-one terms, ``T = Σ_r A[:, r] ⊗ B[:, r] ⊗ C[:, r]``.

    Parameters
    ----------
    a, b, c : array-like of float, shape (n, R)
        Factors of the parent, the left and the right state.
    """

    kind = "cp"

    def __init__(self, a, b, c):
        self.a, self.b, self.c = (
            np.ascontiguousarray(f, dtype=np.float64) for f in (a, b, c)
        )
        self.n, self.rank = self.a.shape

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
        factors = self.a, self.b, self.c
        return CPTensor(*(factors[a] for a in axes))

    def scaled(self, factor):
        """The tensor times a number."""
        return CPTensor(self.a * factor, self.b, self.c)

    def restricted(self, states):
        """The tensor over some of the states."""
        return CPTensor(self.a[states], self.b[states], self.c[states])

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        return DenseTensor(self.to_dense()).entries()

    def above(self, below):
        """Mask of states with a transition into two states of a mask."""
        live = (self.b[below] != 0).any(axis=0) & (self.c[below] != 0).any(axis=0)
        return (self.a[:, live] != 0).any(axis=1)

    def beneath(self, above, below):
        """Mask of the states that transitions from `above` lead to in `below`."""
        live = (self.a[above] != 0).any(axis=0)
        live &= (self.b[below] != 0).any(axis=0) & (self.c[below] != 0).any(axis=0)
        either = (self.b[:, live] != 0) | (self.c[:, live] != 0)
        return either.any(axis=1) & below

    def to_dense(self):
        """The n × n × n array."""
        return np.einsum("ir,jr,kr->ijk", self.a, self.b, self.c, optimize=True)

    def arrays(self):
        """What a saved file holds, by name."""
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
        return index, index

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


def as_tensor(value, n):
    """Read one transition tensor in any of its three forms.

    Parameters
    ----------
    value : array-like of shape (n, n, n), tuple or tensor
        A dense array; coordinates ``((i, j, k), weight)`` or
        ``(i, j, k, weight)``; CP factors ``(A, B, C)``, three n × R arrays.
    n : int
        Number of states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if isinstance(value, DenseTensor | SparseTensor | CPTensor):
        tensor = value
    elif isinstance(value, tuple) and len(value) in (2, 4):
        tensor = _from_coordinates(value, n)
    elif isinstance(value, tuple) and len(value) == 3 and _are_factors(value, n):
        tensor = CPTensor(*value)
    else:
        array = np.asarray(value, dtype=np.float64)
        if array.shape != (n, n, n):
            raise ValueError(
                f"T should have shape {(n, n, n)} to match the {n} initial weights "
                f"in alpha, or be coordinates (i, j, k, weight), or three CP factors "
                f"of shape ({n}, R); got shape {array.shape}."
            )
        tensor = DenseTensor(array)
    if tensor.n != n:
        raise ValueError(
            f"T is over {tensor.n} states, but alpha has {n} initial weights."
        )
    for name, array in tensor.arrays().items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"T holds nan or infinity (in {name!r}).")
    return tensor


def _are_factors(value, n):
    shapes = [np.shape(f) for f in value]
    return all(len(s) == 2 and s[0] == n for s in shapes) and len(set(shapes)) == 1


def _from_coordinates(value, n):
    if len(value) == 2:
        (i, j, k), weight = value
    else:
        i, j, k, weight = value
    index = [np.asarray(a) for a in (i, j, k)]
    weight = np.asarray(weight, dtype=np.float64)
    if any(a.ndim != 1 or a.shape != weight.shape for a in index):
        raise ValueError(
            "Sparse coordinates of T should be four arrays of one length, (i, j, k, "
            f"weight); got shapes {[a.shape for a in index]} and {weight.shape}."
        )
    for name, a in zip("ijk", index, strict=True):
        if a.size and (a.dtype.kind not in "iu" or a.min() < 0 or a.max() >= n):
            raise ValueError(
                f"Coordinate {name} of T should hold integers from 0 to {n - 1}."
            )
    return SparseTensor(*index, weight, n)


def direct_sum(first, second):
    """Tensor of two automata side by side, block-diagonal in all three modes.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
        Over n + n' states.
    """
    if first.kind == second.kind == "cp":
        factors = []
        for f, g in zip(
            (first.a, first.b, first.c), (second.a, second.b, second.c), strict=True
        ):
            block = np.zeros((len(f) + len(g), f.shape[1] + g.shape[1]))
            block[: len(f), : f.shape[1]] = f
            block[len(f) :, f.shape[1] :] = g
            factors.append(block)
        return CPTensor(*factors)
    n = first.n + second.n
    parts = [first.entries(), second.entries()]
    index = [
        np.concatenate([parts[0][mode], parts[1][mode] + np.int32(first.n)])
        for mode in range(3)
    ]
    weight = np.concatenate([parts[0][3], parts[1][3]])
    tensor = SparseTensor(*index, weight, n)
    if tensor.weight.size > _DENSE_SHARE * n**3:
        return DenseTensor(tensor.to_dense())
    return tensor


def add(tensors):
    """Elementwise sum of tensors over the same states.

    Parameters
    ----------
    tensors : sequence of tensors
        At least one.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if len(tensors) == 1:
        return tensors[0]
    kinds = {t.kind for t in tensors}
    if kinds == {"cp"}:
        return CPTensor(
            *(np.hstack([getattr(t, f) for t in tensors]) for f in ("a", "b", "c"))
        )
    if kinds == {"sparse"}:
        parts = [(t.i, t.j, t.k, t.weight) for t in tensors]
        return SparseTensor(
            *(np.concatenate(column) for column in zip(*parts, strict=True)),
            tensors[0].n,
        )
    return DenseTensor(sum(t.to_dense() for t in tensors))


def hadamard(first, second):
    """Tensor of the automaton that computes the product of two functions.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    SparseTensor
        The Kronecker product, over n · n' states.
    """
    *index, weight = first.entries()
    *other_index, other_weight = second.entries()
    joint = [
        np.add.outer(a.astype(np.int64) * second.n, b).ravel()
        for a, b in zip(index, other_index, strict=True)
    ]
    weight = np.multiply.outer(weight, other_weight).ravel()
    return SparseTensor(*joint, weight, first.n * second.n)
