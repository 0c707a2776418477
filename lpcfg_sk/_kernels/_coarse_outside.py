"""Outside values of the pruning PCFG."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_count, span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL


class CoarseOutside(NamedTuple):
    """Results of the outside pass.

    Attributes
    ----------
    item : ndarray of float64, shape (n_items,)
        Outside value of each item.
    leaf_mass : ndarray of float64, shape (n, n_nonterminals)
        Marginals of the lexical values.
    """

    item: np.ndarray
    leaf_mass: np.ndarray


@njit(**HELPER)
def _pass_to_word(word, rest, rules, chart, reference, above, out):
    """Pass outside values on to a word and a wider span beside it.

    Parameters
    ----------
    word, rest : int
        The word and the span.
    rules : WordRules
        Rules of the words.
    chart : CoarseChart
        Inside values.
    reference : int
        Exponent of the span that both form.
    above : ndarray of float64, shape (n_wide,)
        Outside values of the labels of that span.
    out : CoarseOutside
        Added to.
    """
    exponent, label, value = chart.exponent, chart.label, chart.value
    begin, parent, tag, weight = rules
    beta, leaf_mass = out.item, out.leaf_mass
    if chart.alive[word] and chart.alive[rest]:
        factor = power_of_two(exponent[word] + exponent[rest] - reference)
        for t in range(chart.offset[rest], chart.offset[rest + 1]):
            for q in range(begin[word, label[t]], begin[word, label[t] + 1]):
                if above[parent[q]] > 0.0:
                    x = factor * above[parent[q]] * weight[q]
                    beta[t] += x
                    leaf_mass[word, tag[q]] += x * value[t]


@njit(**HELPER)
def _pass_to_wide(i, j, number, chart, weights, active, beta):
    """Pass outside values on to two wide spans that make up [i, j).

    Parameters
    ----------
    i, j : int
        The span.
    number : ndarray of uint32, shape (n_left, n_right)
        Numbers of the pairs of children.
    chart : CoarseChart
        Inside values.
    weights : ndarray of float64, shape (n_pairs + 1,)
        Outside values times rule probabilities, by pair of children; 0 for those
        without a rule.
    active : ndarray of bool, shape (n_left,)
        Left children of pairs with a weight.
    beta : ndarray of float64, shape (n_items,)
        Outside values, which are added to.
    """
    n, alive, exponent, value = (
        len(chart.leaf),
        chart.alive,
        chart.exponent,
        chart.value,
    )
    left_offset, left_item, left_place = chart.lefts
    right_offset, right_item, right_place = chart.rights
    reference = exponent[span_index(i, j, n)]
    for k in range(i + 2, j - 1):
        left, right = span_index(i, k, n), span_index(k, j, n)
        begin, end = right_offset[right], right_offset[right + 1]
        if begin == end or not (alive[left] and alive[right]):
            continue
        factor = power_of_two(exponent[left] + exponent[right] - reference)
        for t in range(left_offset[left], left_offset[left + 1]):
            if active[left_place[t]]:
                numbers = number[left_place[t]]
                x = factor * value[left_item[t]]
                total = 0.0
                for u in range(begin, end):
                    weight = weights[numbers[right_place[u]]]
                    total += weight * value[right_item[u]]
                    beta[right_item[u]] += x * weight
                beta[left_item[t]] += factor * total


@njit(**HELPER)
def _pass_to_two_words(i, pp, chart, above, out):
    """Pass outside values on to words i and i + 1.

    Parameters
    ----------
    i : int
        The first word.
    pp : RulesByChild
        Rules over two words.
    chart : CoarseChart
        Inside values.
    above : ndarray of float64, shape (n_wide,)
        Outside values of the labels of the span of both words.
    out : CoarseOutside
        Added to.
    """
    leaf, exponent, leaf_mass = chart.leaf, chart.exponent, out.leaf_mass
    span = span_index(i, i + 2, len(leaf))
    factor = power_of_two(exponent[i] + exponent[i + 1] - exponent[span])
    offset, child, parent, prob = pp.offset, pp.child, pp.parent, pp.prob
    for b in range(leaf.shape[1]):
        x = factor * leaf[i, b]
        if x == 0.0:
            continue
        for q in range(offset[b], offset[b + 1]):
            y = x * above[parent[q]] * prob[q] * leaf[i + 1, child[q]]
            leaf_mass[i, b] += y
            leaf_mass[i + 1, child[q]] += y


@njit(**KERNEL)
def coarse_outside(tables, rules, chart, boolean, floor, root, out):
    """Fill the outside values of all items from those of the root.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    rules : tuple of two WordRules
        What ``word_rules`` returns.
    chart : CoarseChart
        Inside values. Spans whose items pass nothing down are no longer `alive`.
    boolean : bool
        Whether all values are 1 and only show what can be derived.
    floor : float
        Items with a marginal of at most `floor` pass nothing down, which saves most
        of the work.
    root : ndarray of float64, shape (n_wide,)
        Weight of each wide label at the root.
    out : CoarseOutside
        Zeros, which are filled.
    """
    alive, offset, label, value = chart.alive, chart.offset, chart.label, chart.value
    n, up, pairs, beta = len(chart.leaf), tables.up, tables.pairs, out.item
    first, last = rules
    n_spans = span_count(n)
    up_offset, up_pair, up_prob, pair_left = up.offset, up.pair, up.prob, pairs.left
    above = np.zeros(len(tables.wide_label))
    weights = np.zeros(len(pairs.left) + 1)
    active = np.zeros(len(pairs.offset) - 1, dtype=np.bool_)
    if n > 1:
        for t in range(offset[n_spans - 1], offset[n_spans]):
            beta[t] = root[label[t]]
    span = n_spans
    for width in range(n, 1, -1):
        for i in range(n - width, -1, -1):
            span -= 1
            j = i + width
            if not alive[span]:
                continue
            alive[span] = False
            for t in range(offset[span], offset[span + 1]):
                a = label[t]
                if boolean and beta[t] > 0.0:
                    beta[t] = 1.0
                if value[t] * beta[t] <= floor:
                    continue
                alive[span] = True
                above[a] = beta[t]
                if width > 3:
                    for q in range(up_offset[a], up_offset[a + 1]):
                        active[pair_left[up_pair[q]]] = True
                        weights[up_pair[q]] += beta[t] * up_prob[q]
            if not alive[span]:
                continue
            if width == 2:
                _pass_to_two_words(i, tables.pp, chart, above, out)
            else:
                reference = chart.exponent[span]
                rest = span_index(i + 1, j, n)
                _pass_to_word(i, rest, first, chart, reference, above, out)
                rest = span_index(i, j - 1, n)
                _pass_to_word(j - 1, rest, last, chart, reference, above, out)
                _pass_to_wide(i, j, pairs.number, chart, weights, active, beta)
            for t in range(offset[span], offset[span + 1]):
                a = label[t]
                if above[a] > 0.0:
                    above[a] = 0.0
                    for q in range(up_offset[a], up_offset[a + 1]):
                        active[pair_left[up_pair[q]]] = False
                        weights[up_pair[q]] = 0.0
