"""Inside-outside over a forest, in tensor form.

Figure 5 of the L-PCFG paper. Every span carries one power of two: the stored inside
vector of an item is the true one over ``2 ** exponent[span]``, the stored outside
vector the true one over ``2 ** (exponent[whole sentence] - exponent[span])``. Their
product is then the marginal in the scale of the sentence's total, no exponent is ever
looked for twice, and scaling changes no bit of a mantissa.

Vectors and tensors are of one floating type, double or single, and so are all sums.
"""

import math

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two
from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True)
def fill_leaves(
    forest,
    words,
    word_offset,
    lex_label,
    lex_offset,
    lexical,
    unknown_offset,
    unknown,
    vector_offset,
    inside,
):
    """Copy the lexical vectors c∞ of the width-1 items; unknown words have id -1.

    A label that the word lacks has the vector zero.
    """
    n = len(words)
    for span in range(n):
        word = words[span]
        for item in range(forest.item_offset[span], forest.item_offset[span + 1]):
            label = forest.item_label[item]
            out = inside[vector_offset[item] : vector_offset[item + 1]]
            if word < 0:
                begin = unknown_offset[label]
                out[:] = unknown[begin : begin + len(out)]
                continue
            low, high = word_offset[word], word_offset[word + 1]
            while low < high:
                middle = (low + high) // 2
                if lex_label[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            if low < word_offset[word + 1] and lex_label[low] == label:
                out[:] = lexical[lex_offset[low] : lex_offset[low + 1]]
            else:
                out[:] = 0.0


@njit(nogil=True, cache=True)
def _rescale(values, exponent, span):
    """Bring the largest magnitude of a span's vectors into [1/2, 1)."""
    largest = 0.0
    for x in values:
        largest = max(largest, abs(x))
    if largest > 0.0:
        # The inverse of a smaller power of two would overflow.
        shift = max(math.frexp(largest)[1], -1000)
        factor = power_of_two(-shift)
        for i in range(len(values)):
            values[i] *= factor
        exponent[span] += shift


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_outer(total, left, right, factor):
    """Add factor · left ⊗ right."""
    m = len(right)
    for j in range(len(left)):
        x = factor * left[j]
        row = total[j * m : (j + 1) * m]
        for k in range(m):
            row[k] += x * right[k]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_product(matrix, vector, out):
    """Add matrix @ vector, the matrix stored row after row."""
    size = len(vector)
    for h in range(len(out)):
        row = matrix[h * size : (h + 1) * size]
        total = row.dtype.type(0)
        for s in range(size):
            total += row[s] * vector[s]
        out[h] += total


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_transposed_product(matrix, vector, out):
    """Add matrixᵀ @ vector, the matrix stored row after row."""
    size = len(out)
    for h in range(len(vector)):
        x = vector[h]
        row = matrix[h * size : (h + 1) * size]
        for s in range(size):
            out[s] += x * row[s]


@njit(nogil=True, cache=True)
def inside(forest, n, vector_offset, rule_offset, binary, largest, vectors, exponent):
    """Fill the inside vectors of all wider items from those of the leaves.

    ``rule_offset[r]`` is where the tensor of rule r begins, -1 where the model lacks
    the rule; `largest` bounds m_b · m_c. `exponent` must be zero on entry.
    """
    outer = np.empty(largest, dtype=vectors.dtype)
    for span in range(n):
        begin = vector_offset[forest.item_offset[span]]
        end = vector_offset[forest.item_offset[span + 1]]
        _rescale(vectors[begin:end], exponent, span)
    next_span = n
    for width in range(2, n + 1):
        spans = range(next_span, next_span + n - width + 1)
        next_span = spans.stop
        first, last = forest.level_offset[width], forest.level_offset[width + 1]
        for span in spans:
            exponent[span] = -(1 << 30)
        for g in range(first, last):
            reference = exponent[forest.group_span[g]]
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                reference = max(
                    reference,
                    exponent[forest.item_span[forest.edge_left[e]]]
                    + exponent[forest.item_span[forest.edge_right[e]]],
                )
            exponent[forest.group_span[g]] = reference
        for g in range(first, last):
            reference = exponent[forest.group_span[g]]
            e = forest.edge_offset[g]
            size = (
                vector_offset[forest.edge_left[e] + 1]
                - vector_offset[forest.edge_left[e]]
            ) * (
                vector_offset[forest.edge_right[e] + 1]
                - vector_offset[forest.edge_right[e]]
            )
            total = outer[:size]
            total[:] = 0.0
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                shift = exponent[forest.item_span[left]] - reference
                shift += exponent[forest.item_span[right]]
                factor = vectors.dtype.type(power_of_two(shift))
                _add_outer(
                    total,
                    vectors[vector_offset[left] : vector_offset[left + 1]],
                    vectors[vector_offset[right] : vector_offset[right + 1]],
                    factor,
                )
            for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                begin = rule_offset[forest.app_rule[a]]
                if begin < 0:
                    continue
                item = forest.app_parent[a]
                out = vectors[vector_offset[item] : vector_offset[item + 1]]
                _add_product(binary[begin : begin + size * len(out)], total, out)
        for span in spans:
            begin = vector_offset[forest.item_offset[span]]
            end = vector_offset[forest.item_offset[span + 1]]
            if begin == end:
                exponent[span] = 0
            else:
                _rescale(vectors[begin:end], exponent, span)


@njit(nogil=True, cache=True)
def outside(
    forest, n, vector_offset, rule_offset, binary, largest, inside, exponent, vectors
):
    """Fill the outside vectors of all items from those of the root items."""
    gathered = np.empty(largest, dtype=vectors.dtype)
    for width in range(n, 1, -1):
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            e = forest.edge_offset[g]
            m_left = (
                vector_offset[forest.edge_left[e] + 1]
                - vector_offset[forest.edge_left[e]]
            )
            m_right = (
                vector_offset[forest.edge_right[e] + 1]
                - vector_offset[forest.edge_right[e]]
            )
            size = m_left * m_right
            total = gathered[:size]
            total[:] = 0.0
            for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                begin = rule_offset[forest.app_rule[a]]
                if begin < 0:
                    continue
                item = forest.app_parent[a]
                beta = vectors[vector_offset[item] : vector_offset[item + 1]]
                _add_transposed_product(
                    binary[begin : begin + size * len(beta)], beta, total
                )
            reference = exponent[forest.group_span[g]]
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                shift = exponent[forest.item_span[left]] - reference
                shift += exponent[forest.item_span[right]]
                factor = vectors.dtype.type(power_of_two(shift))
                _pass_down(
                    total,
                    factor,
                    inside[vector_offset[left] : vector_offset[left + 1]],
                    inside[vector_offset[right] : vector_offset[right + 1]],
                    vectors[vector_offset[left] : vector_offset[left + 1]],
                    vectors[vector_offset[right] : vector_offset[right + 1]],
                )


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _pass_down(matrix, factor, left, right, beta_left, beta_right):
    """Add what a parent's matrix M = βᵀT hands to both children."""
    m = len(right)
    for j in range(len(left)):
        row = matrix[j * m : (j + 1) * m]
        x = factor * left[j]
        total = row.dtype.type(0)
        for k in range(m):
            total += row[k] * right[k]
            beta_right[k] += row[k] * x
        beta_left[j] += factor * total


@njit(nogil=True, cache=True)
def marginals(vector_offset, inside, outside, out):
    """Fill μ = α · β of each item, in the scale of the sentence's total."""
    for item in range(len(out)):
        total = 0.0
        for s in range(vector_offset[item], vector_offset[item + 1]):
            total += inside[s] * outside[s]
        out[item] = total
