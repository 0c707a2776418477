"""Transition tensors as sums of rank-one terms."""

import numpy as np

from lpcfg_sk.automata._scales import exponents_of
from lpcfg_sk.automata._tensor_dense import DenseTensor, frozen

__all__ = ["CPTensor"]


class CPTensor:
    """Sum of R rank-one terms, ``T = Σ_r A[:, r] ⊗ B[:, r] ⊗ C[:, r]``.

    Parameters
    ----------
    a, b, c : array-like of float, shape (n, R)
        Factors of the parent, the left and the right state.
    """

    kind = "cp"

    def __init__(self, a, b, c):
        self.a, self.b, self.c = (frozen(factor) for factor in (a, b, c))
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

    def normalized(self):
        """A tensor of ordinary weights, and the power of two that it lacks."""
        factors = self.a, self.b, self.c
        exponents = exponents_of(factors)
        if not any(exponents):
            return self, 0
        pairs = zip(factors, exponents, strict=True)
        return CPTensor(*(np.ldexp(f, -e) for f, e in pairs)), sum(exponents)

    def absolute(self):
        """A tensor of at least the absolute values."""
        return CPTensor(np.abs(self.a), np.abs(self.b), np.abs(self.c))

    def restricted(self, states):
        """The tensor over some of the states."""
        return CPTensor(self.a[states], self.b[states], self.c[states])

    def entries(self):
        """Coordinates and values of the non-zeros: (i, j, k, weight)."""
        return DenseTensor(self.to_dense()).entries()

    def children(self):
        """Mask of pairs (i, j): state i may have a transition with a child j."""
        live = (self.b != 0).any(axis=0) & (self.c != 0).any(axis=0)
        child = (self.b != 0) | (self.c != 0)
        return (self.a[:, live] != 0) @ child[:, live].T

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
