"""Rules and inside values of the plain treebank PCFG that prunes all charts.

Rules are packed by the kind of their children: a word (p, a pre-terminal of width 1)
or a wider item (i). Only i i rules see many split points: their children are summed
over the split points first, by pair of child labels. Scaling is that of the fine
charts: one power of two per span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._coarse_words import smallest_merit
from lpcfg_sk._kernels._shared import HELPER, KERNEL

# If a span has at most this many right children, each is paired with each left child.
_FEW = 16


class RulesByChild(NamedTuple):
    """Rules of one kind, listed by one of their children.

    Child x has the rules ``offset[x]:offset[x + 1]``, each with its other child, its
    parent and its probability.
    """

    offset: np.ndarray
    child: np.ndarray
    parent: np.ndarray
    prob: np.ndarray


class RulesByPair(NamedTuple):
    """Rules of kind i i, listed by the pair of their children.

    Pair q has the rules ``offset[q]:offset[q + 1]``.
    """

    offset: np.ndarray
    parent: np.ndarray
    prob: np.ndarray


class RulesByParent(NamedTuple):
    """Rules of kind i i, listed by their parent.

    Parent a has the rules ``offset[a]:offset[a + 1]``.
    """

    offset: np.ndarray
    pair: np.ndarray
    prob: np.ndarray


class ChildPairs(NamedTuple):
    """Pairs of children of i i rules.

    Places of children and numbers of pairs are unsigned, which saves the test for
    negative indices.

    Attributes
    ----------
    offset : ndarray of int64, shape (n_left + 1,)
        The left child at place b has the pairs ``offset[b]:offset[b + 1]``.
    left, right : ndarray of uint32, shape (n_pairs,)
        Places of both children.
    number : ndarray of uint32, shape (n_left, n_right)
        Number of each pair, n_pairs for children without a rule.
    """

    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray
    number: np.ndarray


class CoarseTables(NamedTuple):
    """Rules of a PCFG, packed by kind and child.

    Attributes
    ----------
    wide_label : ndarray of int32, shape (n_wide,)
        Nonterminals that head a rule. These wide labels are numbered by their place
        here.
    left_place, right_place : ndarray of int32, shape (n_wide,)
        Places of the wide labels among those that are left, and right, children of i i
        rules; -1 for none.
    pairs : ChildPairs
        Pairs of children of i i rules.
    ii : RulesByPair
        Rules of kind i i.
    up : RulesByParent
        The same by parent.
    pi, ip, pp : RulesByChild
        Rules of the other kinds by pre-terminal (the left one for p p), with the other
        child.
    """

    wide_label: np.ndarray
    left_place: np.ndarray
    right_place: np.ndarray
    pairs: ChildPairs
    ii: RulesByPair
    up: RulesByParent
    pi: RulesByChild
    ip: RulesByChild
    pp: RulesByChild


class Children(NamedTuple):
    """Items that can be left, or right, children of i i rules.

    Attributes
    ----------
    offset : ndarray of int64, shape (n_spans + 1,)
        Span s has the children ``offset[s]:offset[s + 1]``.
    item : ndarray of int32
        Number of the item.
    place : ndarray of uint32
        Place of its label among the left, or right, children.
    """

    offset: np.ndarray
    item: np.ndarray
    place: np.ndarray


class CoarseChart(NamedTuple):
    """Inside values of a sentence.

    Attributes
    ----------
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Values of the words.
    exponent : ndarray of int32, shape (n_spans,)
        Power of two of each span.
    alive : ndarray of bool, shape (n_spans,)
        Spans that have items.
    offset : ndarray of int64, shape (n_spans + 1,)
        Span s has the items ``offset[s]:offset[s + 1]``.
    label, value : ndarray of int32 and of float64
        Wide label and value of each item.
    lefts, rights : Children
        Items that can be left, and right, children of i i rules.
    """

    leaf: np.ndarray
    exponent: np.ndarray
    alive: np.ndarray
    offset: np.ndarray
    label: np.ndarray
    value: np.ndarray
    lefts: Children
    rights: Children


class LabelSums(NamedTuple):
    """Sums by wide label, of which few are not zero.

    Attributes
    ----------
    value : ndarray of float64, shape (n_wide,)
        The sums.
    label : ndarray of int32, shape (n_wide,)
        Labels with a sum that is not zero; the other places are free.
    """

    value: np.ndarray
    label: np.ndarray


@njit(**HELPER)
def _add_word(word, rest, rules, chart, reference, sums, count):
    """Add the values of the rules over a word and a wider span beside it.

    Parameters
    ----------
    word, rest : int
        The word and the span.
    rules : WordRules
        Rules of the words.
    chart : CoarseChart
        Values of narrower spans.
    reference : int
        Exponent of the sums.
    sums : LabelSums
        Added to.
    count : int
        Number of labels with a sum so far.

    Returns
    -------
    int
        The same afterwards.
    """
    exponent, label, value, offset = (
        chart.exponent,
        chart.label,
        chart.value,
        chart.offset,
    )
    begin, parent, weight = rules.begin, rules.parent, rules.weight
    total, some = sums.value, sums.label
    if chart.alive[word] and chart.alive[rest]:
        factor = power_of_two(exponent[word] + exponent[rest] - reference)
        for t in range(offset[rest], offset[rest + 1]):
            x = factor * value[t]
            for q in range(begin[word, label[t]], begin[word, label[t] + 1]):
                y = x * weight[q]
                a = parent[q]
                if total[a] == 0.0 and y > 0.0:
                    some[count] = a
                    count += 1
                total[a] += y
    return count


@njit(**HELPER)
def _add_two_words(leaf, i, pp, sums):
    """Add the values of the rules over words i and i + 1.

    Parameters
    ----------
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Values of the words.
    i : int
        The first word.
    pp : RulesByChild
        Rules over two words.
    sums : LabelSums
        Zeros, which are added to.

    Returns
    -------
    int
        Number of labels with a sum.
    """
    offset, child, parent, prob = pp.offset, pp.child, pp.parent, pp.prob
    total, some = sums.value, sums.label
    count = 0
    for b in range(leaf.shape[1]):
        x = leaf[i, b]
        if x > 0.0:
            for q in range(offset[b], offset[b + 1]):
                y = x * prob[q] * leaf[i + 1, child[q]]
                a = parent[q]
                if total[a] == 0.0 and y > 0.0:
                    some[count] = a
                    count += 1
                total[a] += y
    return count


@njit(**HELPER)
def _sum_pairs(i, j, pairs, chart, reference, row, out):
    """Add up the products of two wide spans that make up [i, j), by pair of children.

    Parameters
    ----------
    i, j : int
        The span.
    pairs : ChildPairs
        Pairs of children.
    chart : CoarseChart
        Values of narrower spans.
    reference : int
        Exponent of the sums.
    row : ndarray of float64, shape (n_right,)
        Zeros, for work.
    out : ndarray of float64, shape (n_pairs + 1,)
        Added to. The last place is for children without a rule.

    Returns
    -------
    bool
        Whether anything was added.
    """
    n, exponent, value = len(chart.leaf), chart.exponent, chart.value
    left_offset, left_item, left_place = chart.lefts
    right_offset, right_item, right_place = chart.rights
    pair_offset, pair_right, number = pairs.offset, pairs.right, pairs.number
    found = False
    for k in range(i + 2, j - 1):
        left, right = span_index(i, k, n), span_index(k, j, n)
        first, last = left_offset[left], left_offset[left + 1]
        begin, end = right_offset[right], right_offset[right + 1]
        if first == last or begin == end:
            continue
        found = True
        factor = power_of_two(exponent[left] + exponent[right] - reference)
        if end - begin <= _FEW:
            for t in range(first, last):
                x = factor * value[left_item[t]]
                numbers = number[left_place[t]]
                for u in range(begin, end):
                    out[numbers[right_place[u]]] += x * value[right_item[u]]
            continue
        for u in range(begin, end):
            row[right_place[u]] = value[right_item[u]]
        for t in range(first, last):
            x = factor * value[left_item[t]]
            b = left_place[t]
            for q in range(pair_offset[b], pair_offset[b + 1]):
                out[q] += x * row[pair_right[q]]
        for u in range(begin, end):
            row[right_place[u]] = 0.0
    return found


@njit(**HELPER)
def _add_wide(rules, pair_sums, sums, count):
    """Add the values of the rules over two wide spans.

    Parameters
    ----------
    rules : RulesByPair
        Rules of kind i i.
    pair_sums : ndarray of float64, shape (n_pairs + 1,)
        What :func:`_sum_pairs` gives; zeros afterwards.
    sums : LabelSums
        Added to.
    count : int
        Number of labels with a sum so far.

    Returns
    -------
    int
        The same afterwards.
    """
    offset, parent, prob = rules.offset, rules.parent, rules.prob
    total, some = sums.value, sums.label
    pair_sums[len(pair_sums) - 1] = 0.0
    for q in range(len(pair_sums) - 1):
        x = pair_sums[q]
        if x > 0.0:
            pair_sums[q] = 0.0
            for r in range(offset[q], offset[q + 1]):
                y = x * prob[r]
                a = parent[r]
                if total[a] == 0.0 and y > 0.0:
                    some[count] = a
                    count += 1
                total[a] += y
    return count


@njit(**HELPER)
def _reference(i, j, chart):
    """Return the largest exponent of two spans that make up [i, j), -2^30 for none."""
    n, alive, exponent = len(chart.leaf), chart.alive, chart.exponent
    reference = -(1 << 30)
    for k in range(i + 1, j):
        left, right = span_index(i, k, n), span_index(k, j, n)
        if alive[left] and alive[right]:
            reference = max(reference, exponent[left] + exponent[right])
    return reference


@njit(**KERNEL)
def coarse_inside(tables, rules, chart, around, limits):
    """Fill the inside values of all spans of two and more words.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    rules : tuple of two WordRules
        What ``word_rules`` returns.
    chart : CoarseChart
        Its lexical values are those of ``word_rules``; all else is filled.
    around : Surroundings
        Estimated outside values.
    limits : Thresholds
        What is left out.

    Returns
    -------
    int
        Number of items.
    """
    alive, exponent, offset = chart.alive, chart.exponent, chart.offset
    label, value = chart.label, chart.value
    left_offset, left_item, left_child = chart.lefts
    right_offset, right_item, right_child = chart.rights
    before, after, boolean = around.before, around.after, limits.boolean
    wide_label, left_place = tables.wide_label, tables.left_place
    right_place, n, n_wide = tables.right_place, len(chart.leaf), len(tables.wide_label)
    first, last = rules
    total, some = np.zeros(n_wide), np.empty(n_wide, dtype=np.int32)
    sums = LabelSums(total, some)
    merit = np.empty(n_wide)
    pair_sums = np.zeros(len(tables.pairs.left) + 1)
    row = np.zeros(tables.pairs.number.shape[1])
    count = 0
    n_lefts = 0
    n_rights = 0
    for i in range(n + 1):
        offset[i] = 0
        left_offset[i] = 0
        right_offset[i] = 0
    span = n - 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            span += 1
            j = i + width
            reference = _reference(i, j, chart)
            n_some = 0
            if reference == -(1 << 30):
                offset[span + 1] = count
                left_offset[span + 1] = n_lefts
                right_offset[span + 1] = n_rights
                continue
            if width == 2:
                n_some = _add_two_words(chart.leaf, i, tables.pp, sums)
            else:
                rest = span_index(i + 1, j, n)
                # An int64, because numba would compile _add_word again for a literal 0.
                none = np.int64(0)
                n_some = _add_word(i, rest, first, chart, reference, sums, none)
                rest = span_index(i, j - 1, n)
                n_some = _add_word(j - 1, rest, last, chart, reference, sums, n_some)
                if _sum_pairs(i, j, tables.pairs, chart, reference, row, pair_sums):
                    n_some = _add_wide(tables.ii, pair_sums, sums, n_some)
            largest = 0.0
            for t in range(n_some):
                a = wide_label[some[t]]
                merit[t] = total[some[t]] * before[i, a] * after[j, a]
                largest = max(largest, merit[t])
            smallest = smallest_merit(largest, reference, around, i, j, limits)
            largest = 0.0
            begin = count
            for t in range(n_some):
                a = some[t]
                if merit[t] >= smallest:
                    label[count] = a
                    value[count] = total[a]
                    largest = max(largest, total[a])
                    count += 1
                total[a] = 0.0
            if count > begin:
                alive[span] = True
                shift = 0 if boolean else math.frexp(largest)[1]
                exponent[span] = 0 if boolean else reference + shift
                factor = power_of_two(-shift)
                for t in range(begin, count):
                    a = label[t]
                    value[t] = 1.0 if boolean else value[t] * factor
                    if right_place[a] >= 0:
                        right_item[n_rights] = t
                        right_child[n_rights] = right_place[a]
                        n_rights += 1
                    if left_place[a] >= 0:
                        left_item[n_lefts] = t
                        left_child[n_lefts] = left_place[a]
                        n_lefts += 1
            offset[span + 1] = count
            left_offset[span + 1] = n_lefts
            right_offset[span + 1] = n_rights
    return count
