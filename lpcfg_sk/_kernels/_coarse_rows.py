"""The pruning passes of whole sentences, one after the other."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_forest import LiveItems
from lpcfg_sk._kernels._chart_spans import span_count
from lpcfg_sk._kernels._coarse_inside import (
    Children,
    CoarseChart,
    CoarseTables,
    coarse_inside,
)
from lpcfg_sk._kernels._coarse_outside import CoarseOutside, coarse_outside, live_items
from lpcfg_sk._kernels._coarse_words import (
    Neighbours,
    Surroundings,
    TagLexicon,
    Tokens,
    fill_tags,
    surroundings,
    word_rules,
)
from lpcfg_sk._kernels._shared import HELPER, lengthened


class PruningGrammar(NamedTuple):
    """A plain PCFG that prunes.

    Attributes
    ----------
    tables : CoarseTables
        Its rules.
    lexicon : TagLexicon
        Its words.
    neighbours : Neighbours
        Which tags it expects side by side.
    root : ndarray of float64, shape (n_nonterminals,)
        Weight of each nonterminal at the root.
    """

    tables: CoarseTables
    lexicon: TagLexicon
    neighbours: Neighbours
    root: np.ndarray


@njit(**HELPER)
def _children(n_spans, n_labels):
    """Return room for the children of all spans."""
    return Children(
        np.empty(n_spans + 1, dtype=np.int64),
        np.empty(n_spans * n_labels, dtype=np.int32),
        np.empty(n_spans * n_labels, dtype=np.uint32),
    )


@njit(nogil=True, cache=True)
def coarse_chart(leaf, tables):
    """Return a chart over lexical values, with room for all items."""
    n_spans = span_count(len(leaf))
    n_places = n_spans * len(tables.wide_label)
    return CoarseChart(
        leaf,
        np.zeros(n_spans, dtype=np.int32),
        np.zeros(n_spans, dtype=np.bool_),
        np.empty(n_spans + 1, dtype=np.int64),
        np.empty(n_places, dtype=np.int32),
        np.empty(n_places),
        _children(n_spans, tables.pairs.number.shape[0]),
        _children(n_spans, tables.pairs.number.shape[1]),
    )


@njit(nogil=True, cache=True)
def no_surroundings(leaf):
    """Return the estimate that all outside values are 1."""
    n, n_labels = leaf.shape
    ones, exponent = np.ones((n + 1, n_labels)), np.zeros(n + 1, dtype=np.int64)
    return Surroundings(ones, ones, exponent, exponent)


@njit(**HELPER)
def _surroundings(leaf, grammar, limits):
    """Estimate outside values, where limits ask for it."""
    if limits.estimate > 0.0:
        return surroundings(leaf, grammar.lexicon.tag_of_label, grammar.neighbours)
    return no_surroundings(leaf)


@njit(**HELPER)
def _live_of_leaves(leaf, grammar, limits):
    """Return the live items of a sentence.

    Parameters
    ----------
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Lexical values, which are overwritten.
    grammar : PruningGrammar
        The grammar.
    limits : Thresholds
        What is left out.

    Returns
    -------
    LiveItems
        Its total is 0 where no mass is left.
    """
    n, tables = len(leaf), grammar.tables
    around = _surroundings(leaf, grammar, limits)
    chart = coarse_chart(leaf, tables)
    rules = word_rules(tables, chart, around, limits)
    count = coarse_inside(tables, rules, chart, around, limits)
    root = np.empty(len(tables.wide_label))
    for a in range(len(root)):
        root[a] = grammar.root[tables.wide_label[a]]
    leaf_mass = np.zeros(leaf.shape)
    total = 0.0
    if n == 1:
        for a in range(leaf.shape[1]):
            leaf_mass[0, a] = leaf[0, a] * grammar.root[a]
            total += leaf_mass[0, a]
    else:
        n_spans = len(chart.alive)
        for t in range(chart.offset[n_spans - 1], chart.offset[n_spans]):
            total += chart.value[t] * root[chart.label[t]]
    if not total > 0.0:
        count, total = 0, 0.0
        for span in range(len(chart.alive)):
            chart.alive[span] = False
    outside = CoarseOutside(np.zeros(count), leaf_mass)
    if total > 0.0:
        floor = total * limits.floor
        coarse_outside(tables, rules, chart, limits.boolean, floor, root, outside)
    return live_items(tables, chart, outside, total * limits.item, total)


@njit(**HELPER)
def _append(column, count, values):
    """Write values behind the first `count` ones; return the column, longer if needed.

    Parameters
    ----------
    column : ndarray
        Written to.
    count : int
        Number of values so far.
    values : ndarray
        More values.
    """
    if count + len(values) > len(column):
        column = lengthened(column, 2 * (count + len(values)))
    for t in range(len(values)):
        column[count + t] = values[t]
    return column


@njit(nogil=True, cache=True)
def live_rows(n_words, tokens, skipped, grammar, limits, as_unknown):
    """Return the live items of several sentences.

    Parameters
    ----------
    n_words : ndarray of int64, shape (n_rows,)
        Number of words of each sentence.
    tokens : Tokens
        The sentences, one after the other.
    skipped : ndarray of bool, shape (n_rows,)
        Sentences that get no items.
    grammar : PruningGrammar
        The grammar.
    limits : Thresholds
        What is left out.
    as_unknown : ndarray of bool, shape (n_tokens,)
        Filled: which words take the values of the unknown word.

    Returns
    -------
    LiveItems
    """
    n_rows, n_labels = len(n_words), len(grammar.root)
    row_span = np.zeros(n_rows + 1, dtype=np.int64)
    for row in range(n_rows):
        row_span[row + 1] = row_span[row] + span_count(n_words[row])
    offset = np.zeros(row_span[n_rows] + 1, dtype=np.int64)
    exponent = np.zeros(row_span[n_rows], dtype=np.int32)
    total = np.zeros(n_rows)
    label = np.empty(1024, dtype=np.int32)
    inside = np.empty(1024)
    outside = np.empty(1024)
    count = 0
    first = 0
    for row in range(n_rows):
        last = first + n_words[row]
        begin, end = row_span[row], row_span[row + 1]
        if not skipped[row]:
            own = Tokens(
                tokens.word[first:last],
                tokens.tag[first:last],
                tokens.any_word[first:last],
                tokens.unknown[first:last],
                tokens.other,
            )
            leaf = np.zeros((last - first, n_labels))
            fill_tags(own, grammar.lexicon, leaf, as_unknown[first:last])
            live = _live_of_leaves(leaf, grammar, limits)
            label = _append(label, count, live.label)
            inside = _append(inside, count, live.inside)
            outside = _append(outside, count, live.outside)
            for s in range(end - begin):
                offset[begin + s] = count + live.offset[s]
                exponent[begin + s] = live.exponent[s]
            count += len(live.label)
            total[row] = live.total[0]
        else:
            for span in range(begin, end):
                offset[span] = count
        first = last
    offset[row_span[n_rows]] = count
    return LiveItems(
        offset,
        label[:count],
        inside[:count],
        outside[:count],
        exponent,
        row_span,
        total,
    )
