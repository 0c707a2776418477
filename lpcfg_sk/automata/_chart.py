"""Sums over all trees of a sentence: string values and posteriors of spans."""

import numpy as np

from lpcfg_sk._kernels._topology import (
    spread_splits_grid,
    spread_splits_pairs,
    sum_splits_grid,
    sum_splits_pairs,
)
from lpcfg_sk._kernels._wta import rescale_rows
from lpcfg_sk.automata._scales import exponent_of
from lpcfg_sk.automata._tensor_dense import blocks
from lpcfg_sk.exceptions import ChartMemoryError

__all__ = ["SpanChart", "first_cells"]


def first_cells(length):
    """Number of the first cell of each span width.

    Parameters
    ----------
    length : int
        Number of words.

    Returns
    -------
    ndarray of int64, shape (length + 2,)
        ``first[w] + s`` is the cell of the span [s, s + w); the last entry is the
        number of cells.
    """
    first = np.zeros(length + 2, dtype=np.int64)
    first[2:] = np.cumsum(np.arange(length, 0, -1))
    return first


class SpanChart:
    """Inside and outside vectors of all spans of a sentence.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensor : DenseTensor, SparseTensor or CPTensor
        Transition weights, summed over node labels.
    leaves : ndarray of float64, shape (length, n)
        Terminal weights of the words.
    max_memory : int, default=2**31
        Most bytes that the chart may take.

    Attributes
    ----------
    sign : float
        Sign of the string value Σ_t f(t) over the trees t of the sentence.
    log_value : float
        Logarithm of its absolute value.
    """

    def __init__(self, alpha, tensor, leaves, max_memory=2**31):
        exponent = exponent_of(alpha)
        self.alpha = np.ldexp(alpha, -exponent)
        self.tensor, shift = tensor.normalized()
        self.length, n = leaves.shape
        self.first = first_cells(self.length)
        self.n_cells = int(self.first[-1])
        needed = 8 * self.n_cells * 5 * n
        if needed > max_memory:
            raise ChartMemoryError(
                f"The chart of a sentence of {self.length} words under an automaton "
                f"of {n} states takes about {needed / 2**20:.0f} MiB, more than "
                f"max_memory={max_memory}; raise max_memory, leave the sentence out "
                "or use fewer states."
            )
        self.inside = np.zeros((self.n_cells, n))
        self.scale = np.zeros(self.n_cells)
        self.inside[: self.length] = leaves
        self._finish(1, 0, self.length)
        for width in range(2, self.length + 1):
            self._fill(width)
        value = float(self.inside[-1] @ self.alpha)
        self.sign = float(np.sign(value))
        self.log_value = -np.inf
        if value != 0:
            # A tree of the sentence has one inner node less than words.
            power = exponent + (self.length - 1) * shift
            self._log_sum = float(np.log(abs(value)) + self.scale[-1])
            self.log_value = self._log_sum + power * np.log(2.0)

    def _finish(self, width, begin, end):
        cells = slice(self.first[width] + begin, self.first[width] + end)
        rescale_rows(self.inside[cells], self.scale[cells])
        if self.tensor.kind != "cp":
            self.left = self.right = self.inside
            return
        if width == 1:
            self.left = np.zeros((self.n_cells, self.tensor.rank))
            self.right = np.zeros_like(self.left)
        self.left[cells] = self.tensor.left(self.inside[cells])
        self.right[cells] = self.tensor.right(self.inside[cells])

    def _fill(self, width):
        n_spans = self.length - width + 1
        for lo, hi in blocks(n_spans, 8 * self.tensor.n_features):
            sums = np.empty((hi - lo, self.tensor.n_features))
            log_scale = np.empty(hi - lo)
            state = width, lo, self.first, self.scale, self.left, self.right
            if self.tensor.pairs is None:
                sum_splits_grid(*state, sums, log_scale)
            else:
                sum_splits_pairs(*state, *self.tensor.pairs, sums, log_scale)
            cells = slice(self.first[width] + lo, self.first[width] + hi)
            self.inside[cells] = self.tensor.combine(sums)
            self.scale[cells] = log_scale
            self._finish(width, lo, hi)

    def posteriors(self):
        """Share of the string value that each span's trees have.

        Returns
        -------
        ndarray of float64, shape (n_cells,)
            ``μ(s, w) = Σ_{t ∋ span} f(t) / Σ_t f(t)``, 1 for the whole sentence
            and for single words; may be negative or above 1 for signed automata.

        Raises
        ------
        ValueError
            If the string value is zero.
        """
        if self.sign == 0:
            raise ValueError("A sentence of value zero has no posteriors of spans.")
        out_left = np.zeros((self.n_cells, self.left.shape[1]))
        out_right = np.zeros_like(out_left)
        out_scale = np.full(self.n_cells, -np.inf)
        mu = np.zeros(self.n_cells)
        for width in range(self.length, 0, -1):
            n_spans = self.length - width + 1
            for lo, hi in blocks(n_spans, 8 * self.tensor.n_features):
                cells = slice(self.first[width] + lo, self.first[width] + hi)
                if width == self.length:
                    outside, log_scale = self.alpha[None, :].copy(), np.zeros(1)
                else:
                    outside = self.tensor.left_adjoint(out_left[cells])
                    outside = outside + self.tensor.right_adjoint(out_right[cells])
                    log_scale = out_scale[cells].copy()
                rescale_rows(outside, log_scale)
                value = np.einsum("mj,mj->m", outside, self.inside[cells])
                weight = np.exp(log_scale + self.scale[cells] - self._log_sum)
                mu[cells] = self.sign * value * weight
                if width == 1:
                    continue
                grads = np.ascontiguousarray(self.tensor.combine_adjoint(outside))
                state = width, lo, self.first, self.scale, self.left, self.right
                results = grads, log_scale, out_left, out_right, out_scale
                if self.tensor.pairs is None:
                    spread_splits_grid(*state, *results)
                else:
                    spread_splits_pairs(*state, *self.tensor.pairs, *results)
        return mu
