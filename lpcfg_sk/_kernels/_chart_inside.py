"""Inside-outside over a forest, in tensor form.

Figure 5 of the L-PCFG paper. Every span carries one power of two: the stored inside
vector of an item is the true one over ``2 ** exponent[span]``, the stored outside
vector the true one over ``2 ** (exponent[whole sentence] - exponent[span])``. Their
product is then the marginal in the scale of the sentence's total, and scaling changes
no bit of a mantissa.

Vectors and tensors have one floating type, double or single, and so have all sums.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL, REASSOC


class Tensors(NamedTuple):
    """Rule tensors of a model, for the rules of a forest.

    Attributes
    ----------
    rule_offset : ndarray of int64, shape (n_rules,)
        Where the tensor of each rule begins; -1 where the model lacks the rule.
    binary : ndarray of float
        All tensors, one after the other, each row-major.
    largest : int
        Upper bound of m_b · m_c over all rules a → b c.
    """

    rule_offset: np.ndarray
    binary: np.ndarray
    largest: int


class Lexicon(NamedTuple):
    """Lexical vectors of a model.

    Attributes
    ----------
    word_offset : ndarray of int64, shape (n_words + 1,)
        Word x has the entries ``word_offset[x]:word_offset[x + 1]``.
    label : ndarray of int32, shape (n_entries,)
        Nonterminal of each entry, increasing within a word.
    offset : ndarray of int64, shape (n_entries + 1,)
        Entry e has the vector ``lexical[offset[e]:offset[e + 1]]``.
    lexical : ndarray of float
        Vectors of all entries.
    unknown_offset : ndarray of int64, shape (n_nonterminals + 1,)
        Where the vector of the unknown word under each nonterminal begins.
    unknown : ndarray of float
        Vectors of the unknown word.
    any_word : ndarray of float
        Sums of the vectors of all words under each nonterminal, as `unknown`.
    tag_of_label : ndarray of int32, shape (n_nonterminals,)
        The tag of each nonterminal over a word.
    """

    word_offset: np.ndarray
    label: np.ndarray
    offset: np.ndarray
    lexical: np.ndarray
    unknown_offset: np.ndarray
    unknown: np.ndarray
    any_word: np.ndarray
    tag_of_label: np.ndarray


class ItemVectors(NamedTuple):
    """One vector per item of a forest.

    Attributes
    ----------
    offset : ndarray of int64, shape (n_items + 1,)
        Item t has the vector ``values[offset[t]:offset[t + 1]]``.
    values : ndarray of float
        All vectors, scaled.
    exponent : ndarray of int32, shape (n_spans,)
        Power of two of each span.
    """

    offset: np.ndarray
    values: np.ndarray
    exponent: np.ndarray


@njit(**KERNEL)
def fill_leaves(forest, tokens, lexicon, vectors):
    """Fill the lexical vectors c∞ of the width-1 items.

    A label that the word does not have gets the zero vector, plus the shares of any
    word and of the unknown word.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    tokens : Tokens
        The sentences, one after the other, in words of the model.
    lexicon : Lexicon
        Vectors of the model.
    vectors : ItemVectors
        Its `values` are filled.
    """
    word_offset, lex_label = lexicon.word_offset, lexicon.label
    vector_offset, inside = vectors.offset, vectors.values
    row, end = 0, forest.n_words[0]
    for token in range(len(tokens.word)):
        while token == end:
            row += 1
            end += forest.n_words[row]
        word, tag = tokens.word[token], tokens.tag[token]
        span = forest.row_span[row] + token - end + forest.n_words[row]
        for item in range(forest.item_offset[span], forest.item_offset[span + 1]):
            label = forest.item_label[item]
            out = inside[vector_offset[item] : vector_offset[item + 1]]
            whole = lexicon.unknown_offset[label]
            tagged = tag >= 0 and lexicon.tag_of_label[label] == tag
            factor = 1.0 if tagged or tag < 0 else tokens.other
            if word < 0:
                for h in range(len(out)):
                    out[h] = factor * lexicon.unknown[whole + h]
                continue
            low, high = word_offset[word], word_offset[word + 1]
            while low < high:
                middle = (low + high) // 2
                if lex_label[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            if low < word_offset[word + 1] and lex_label[low] == label:
                begin = lexicon.offset[low]
                for h in range(len(out)):
                    out[h] = factor * lexicon.lexical[begin + h]
            else:
                for h in range(len(out)):
                    out[h] = 0.0
            if tagged or tag < 0:
                for h in range(len(out)):
                    out[h] += tokens.any_word[token] * lexicon.any_word[whole + h]
                    out[h] += tokens.unknown[token] * lexicon.unknown[whole + h]


@njit(**HELPER)
def rescale_span(forest, span, vectors):
    """Bring the largest magnitude of a span's vectors into [1/2, 1).

    Returns that magnitude, 0 where all vectors are zero.
    """
    begin = vectors.offset[forest.item_offset[span]]
    end = vectors.offset[forest.item_offset[span + 1]]
    values = vectors.values[begin:end]
    largest = 0.0
    for x in values:
        largest = max(largest, abs(x))
    if largest > 0.0:
        # The reciprocal of a smaller power of two would overflow.
        shift = max(math.frexp(largest)[1], -1000)
        factor = power_of_two(-shift)
        for i in range(len(values)):
            values[i] *= factor
        vectors.exponent[span] += shift
    elif begin == end:
        vectors.exponent[span] = 0
    return largest


@njit(**HELPER)
def child_sizes(forest, group, vector_offset):
    """Return the lengths of the vectors of the left and right children of a group."""
    left = forest.edge_left[forest.edge_offset[group]]
    right = forest.edge_right[forest.edge_offset[group]]
    return (
        vector_offset[left + 1] - vector_offset[left],
        vector_offset[right + 1] - vector_offset[right],
    )


@njit(**HELPER, fastmath=REASSOC)
def _add_outer(total, left, right, factor):
    """Add factor · left ⊗ right.

    Parameters
    ----------
    total : ndarray of float, shape (m_left * m_right,)
        Added to, row-major.
    left, right : ndarray of float
        Inside vectors of the children.
    factor : float
        Scale of the edge.
    """
    m = len(right)
    for j in range(len(left)):
        x = factor * left[j]
        row = total[j * m : (j + 1) * m]
        for k in range(m):
            row[k] += x * right[k]


@njit(**HELPER, fastmath=REASSOC)
def _add_product(matrix, vector, out):
    """Add matrix @ vector, the matrix stored row after row.

    Four rows at a time, so that each value of the vector is read once for four rows.
    """
    size = len(vector)
    rest = len(out) - len(out) % 4
    for h in range(0, rest, 4):
        first = matrix[h * size : (h + 1) * size]
        second = matrix[(h + 1) * size : (h + 2) * size]
        third = matrix[(h + 2) * size : (h + 3) * size]
        fourth = matrix[(h + 3) * size : (h + 4) * size]
        a = b = c = d = vector.dtype.type(0)
        for s in range(size):
            x = vector[s]
            a += first[s] * x
            b += second[s] * x
            c += third[s] * x
            d += fourth[s] * x
        out[h] += a
        out[h + 1] += b
        out[h + 2] += c
        out[h + 3] += d
    for h in range(rest, len(out)):
        row = matrix[h * size : (h + 1) * size]
        a = vector.dtype.type(0)
        for s in range(size):
            a += row[s] * vector[s]
        out[h] += a


@njit(**HELPER, fastmath=REASSOC)
def _add_transposed_product(matrix, vector, out):
    """Add matrixᵀ @ vector, the matrix stored row after row.

    Four rows at a time, so that each value of the output is read and written once for
    four rows.
    """
    size = len(out)
    rest = len(vector) - len(vector) % 4
    for h in range(0, rest, 4):
        first = matrix[h * size : (h + 1) * size]
        second = matrix[(h + 1) * size : (h + 2) * size]
        third = matrix[(h + 2) * size : (h + 3) * size]
        fourth = matrix[(h + 3) * size : (h + 4) * size]
        a, b, c, d = vector[h], vector[h + 1], vector[h + 2], vector[h + 3]
        for s in range(size):
            out[s] += a * first[s] + b * second[s] + (c * third[s] + d * fourth[s])
    for h in range(rest, len(vector)):
        a = vector[h]
        row = matrix[h * size : (h + 1) * size]
        for s in range(size):
            out[s] += a * row[s]


@njit(**HELPER)
def _edge_exponent(forest, exponent, edge):
    """Return the sum of the exponents of the two children of an edge."""
    left, right = forest.edge_left[edge], forest.edge_right[edge]
    return exponent[forest.item_span[left]] + exponent[forest.item_span[right]]


@njit(**HELPER)
def edge_factor(forest, exponent, edge, group):
    """Return the scale of an edge relative to that of its span.

    Parameters
    ----------
    forest : Forest
        Edges of the sentence.
    exponent : ndarray of int32, shape (n_spans,)
        Power of two of each span.
    edge, group : int
        The edge and its group.
    """
    reference = exponent[forest.group_span[group]]
    return power_of_two(_edge_exponent(forest, exponent, edge) - reference)


@njit(**HELPER)
def spans_of_row(forest, row, width):
    """Return the range of the spans of one width in a sentence of a forest."""
    n = forest.n_words[row]
    if width > n:
        return range(0, 0)
    first = forest.row_span[row] + span_index(0, width, n)
    return range(first, first + n - width + 1)


@njit(**HELPER)
def set_references(forest, width, exponent):
    """Set the exponent of each span of one width to the largest of its edges.

    Parameters
    ----------
    forest : Forest
        Edges of the sentence.
    width : int
        Width of the spans.
    exponent : ndarray of int32, shape (n_spans,)
        Power of two of each span; those of narrower spans are known.
    """
    for row in range(len(forest.n_words)):
        for span in spans_of_row(forest, row, width):
            exponent[span] = -(1 << 30)
    for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
        reference = exponent[forest.group_span[g]]
        for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
            reference = max(reference, _edge_exponent(forest, exponent, e))
        exponent[forest.group_span[g]] = reference


@njit(**HELPER)
def rescale_level(forest, width, vectors):
    """Rescale the vectors of all spans of one width."""
    for row in range(len(forest.n_words)):
        for span in spans_of_row(forest, row, width):
            rescale_span(forest, span, vectors)


@njit(**KERNEL)
def inside(forest, tensors, alpha):
    """Fill the inside vectors of all wider items from those of the leaves.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    tensors : Tensors
        Rules of the model.
    alpha : ItemVectors
        Inside vectors; those of wider items, and the exponents, are zero on entry.
    """
    vector_offset, vectors, exponent = alpha.offset, alpha.values, alpha.exponent
    rule_offset, binary = tensors.rule_offset, tensors.binary
    outer = np.empty(tensors.largest, dtype=vectors.dtype)
    rescale_level(forest, np.int64(1), alpha)
    for width in range(2, len(forest.level_offset) - 1):
        set_references(forest, width, exponent)
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            m_left, m_right = child_sizes(forest, g, vector_offset)
            size = m_left * m_right
            total = outer[:size]
            total[:] = 0.0
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                factor = vectors.dtype.type(edge_factor(forest, exponent, e, g))
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
        rescale_level(forest, width, alpha)


@njit(**KERNEL)
def outside(forest, tensors, alpha, beta):
    """Fill the outside vectors of all items from those of the root items.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    tensors : Tensors
        Rules of the model.
    alpha : ItemVectors
        Inside vectors.
    beta : ndarray of float, as long as ``alpha.values``
        Outside vectors; only those of the root items are not zero on entry.
    """
    vector_offset, inside, exponent = alpha.offset, alpha.values, alpha.exponent
    rule_offset, binary, vectors = tensors.rule_offset, tensors.binary, beta
    gathered = np.empty(tensors.largest, dtype=vectors.dtype)
    for width in range(len(forest.level_offset) - 2, 1, -1):
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            m_left, m_right = child_sizes(forest, g, vector_offset)
            size = m_left * m_right
            total = gathered[:size]
            total[:] = 0.0
            for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                begin = rule_offset[forest.app_rule[a]]
                if begin < 0:
                    continue
                item = forest.app_parent[a]
                above = vectors[vector_offset[item] : vector_offset[item + 1]]
                _add_transposed_product(
                    binary[begin : begin + size * len(above)], above, total
                )
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                factor = vectors.dtype.type(edge_factor(forest, exponent, e, g))
                _pass_down(
                    total,
                    factor,
                    inside[vector_offset[left] : vector_offset[left + 1]],
                    inside[vector_offset[right] : vector_offset[right + 1]],
                    vectors[vector_offset[left] : vector_offset[left + 1]],
                    vectors[vector_offset[right] : vector_offset[right + 1]],
                )


@njit(**HELPER, fastmath=REASSOC)
def _pass_down(matrix, factor, left, right, beta_left, beta_right):
    """Add what a parent's matrix M = βᵀT contributes to both children.

    Parameters
    ----------
    matrix : ndarray of float, shape (m_left * m_right,)
        M, row-major.
    factor : float
        Scale of the edge.
    left, right : ndarray of float
        Inside vectors of the children.
    beta_left, beta_right : ndarray of float
        Outside vectors of the children, which are added to.
    """
    m = len(right)
    for j in range(len(left)):
        row = matrix[j * m : (j + 1) * m]
        x = factor * left[j]
        total = row.dtype.type(0)
        for k in range(m):
            total += row[k] * right[k]
            beta_right[k] += row[k] * x
        beta_left[j] += factor * total


@njit(**KERNEL)
def fill_roots(forest, root_offset, root, alpha, beta, total):
    """Fill the root vectors of the items over whole sentences, and the totals.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    root_offset : ndarray of int64, shape (n_nonterminals,)
        Where the vector of each nonterminal begins in `root`; -1 for none.
    root : ndarray of float
        Root vectors of the model.
    alpha : ItemVectors
        Inside vectors.
    beta : ndarray of float, as long as ``alpha.values``
        Zeros, in which root vectors are filled.
    total : ndarray of float64, shape (n_rows,)
        Zeros, to which the scaled values of the sentences are added.
    """
    for row in range(len(total)):
        whole = forest.row_span[row + 1] - 1
        for item in range(forest.item_offset[whole], forest.item_offset[whole + 1]):
            begin = root_offset[forest.item_label[item]]
            if begin >= 0:
                first = alpha.offset[item]
                for s in range(first, alpha.offset[item + 1]):
                    beta[s] = root[begin + s - first]
                    total[row] += alpha.values[s] * beta[s]


@njit(**KERNEL)
def marginals(alpha, beta, out):
    """Fill μ = α · β of each item, in the scale of the sentence's total."""
    for item in range(len(out)):
        total = 0.0
        for s in range(alpha.offset[item], alpha.offset[item + 1]):
            total += alpha.values[s] * beta[s]
        out[item] = total
