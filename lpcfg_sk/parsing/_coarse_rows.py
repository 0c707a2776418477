"""The pruning passes over whole sentences.

Python calls the kernels of each pass in turn. A kernel that called all of them would
contain a compiled copy of each, which would double the time of compilation.
"""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._chart_forest import LiveItems
from lpcfg_sk._kernels._coarse_inside import (
    Children,
    CoarseChart,
    CoarseTables,
    coarse_inside,
)
from lpcfg_sk._kernels._coarse_outside import CoarseOutside, coarse_outside
from lpcfg_sk._kernels._coarse_words import (
    Neighbours,
    Surroundings,
    TagLexicon,
    Tokens,
    fill_tags,
    surroundings,
    word_rules,
)
from lpcfg_sk._ragged import offsets


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


def _children(n_spans, n_labels):
    """Allocate arrays for the children of all spans."""
    return Children(
        np.empty(n_spans + 1, dtype=np.int64),
        np.empty(n_spans * n_labels, dtype=np.int32),
        np.empty(n_spans * n_labels, dtype=np.uint32),
    )


def coarse_chart(leaf, tables):
    """Return a chart over lexical values, with room for all items."""
    n_spans = len(leaf) * (len(leaf) + 1) // 2
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


def no_surroundings(leaf):
    """Return the estimate that all outside values are 1."""
    n, n_labels = leaf.shape
    ones, exponent = np.ones((n + 1, n_labels)), np.zeros(n + 1, dtype=np.int64)
    return Surroundings(ones, ones, exponent, exponent)


def _total(chart, count, root, wide_root):
    """Return the scaled probability of a sentence."""
    if len(chart.leaf) == 1:
        terms = chart.leaf[0] * root
    else:
        roots = slice(chart.offset[-2], count)
        terms = chart.value[roots] * wide_root[chart.label[roots]]
    # Summed in order, so that the last bit is the same on every machine.
    return np.cumsum(terms)[-1] if len(terms) else 0.0


def _live_of_leaves(leaf, grammar, wide_root, limits):
    """Return the live items of a sentence.

    Parameters
    ----------
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Lexical values, which are overwritten.
    grammar : PruningGrammar
        The grammar.
    wide_root : ndarray of float64, shape (n_wide,)
        Weight of each wide label at the root.
    limits : Thresholds
        What is left out.

    Returns
    -------
    LiveItems
        Its total is 0 where no mass is left.
    """
    tables = grammar.tables
    if limits.estimate > 0.0:
        tags = grammar.lexicon.tag_of_label
        around = surroundings(leaf, tags, grammar.neighbours)
    else:
        around = no_surroundings(leaf)
    chart = coarse_chart(leaf, tables)
    rules = word_rules(tables, chart, around, limits)
    count = coarse_inside(tables, rules, chart, around, limits)
    total = _total(chart, count, grammar.root, wide_root)
    if not total > 0.0:
        chart.offset[:], count, total = 0, 0, 0.0
    outside = CoarseOutside(np.zeros(count), np.zeros(leaf.shape))
    if total > 0.0 and len(leaf) == 1:
        np.multiply(leaf, grammar.root, out=outside.leaf_mass)
    elif total > 0.0:
        floor = total * limits.floor
        coarse_outside(tables, rules, chart, limits.boolean, floor, wide_root, outside)
    return _live_items(tables, chart, outside, total * limits.item, total)


def _live_items(tables, chart, outside, threshold, total):
    """Return the items of each span with a marginal of at least `threshold`.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    chart : CoarseChart
        Inside values.
    outside : CoarseOutside
        Outside values.
    threshold : float
        Smallest marginal, in the scale of `total`.
    total : float
        Scaled probability of the sentence.

    Returns
    -------
    LiveItems
    """
    n, n_items = len(chart.leaf), len(outside.item)
    mass = outside.leaf_mass
    tag = (mass >= threshold) & (mass > 0.0)
    inside = chart.leaf[tag]
    value = chart.value[:n_items]
    product = value * outside.item
    wide = (product >= threshold) & (product > 0.0)
    wide &= np.repeat(chart.alive, np.diff(chart.offset))
    return LiveItems(
        np.append(
            offsets(np.count_nonzero(tag, axis=1)),
            len(inside) + offsets(wide)[chart.offset[n + 1 :]],
        ),
        np.append(
            np.nonzero(tag)[1].astype(np.int32),
            tables.wide_label[chart.label[:n_items][wide]],
        ),
        np.append(inside, value[wide]),
        np.append(mass[tag] / inside, outside.item[wide]),
        chart.exponent,
        np.array([0, len(chart.alive)]),
        np.array([total]),
    )


def _no_items(n):
    """Return the live items of a sentence that has none."""
    n_spans = n * (n + 1) // 2
    return LiveItems(
        np.zeros(n_spans + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0),
        np.zeros(0),
        np.zeros(n_spans, dtype=np.int32),
        np.array([0, n_spans]),
        np.zeros(1),
    )


def _joined(parts):
    """Return the live items of sentences as one."""
    if len(parts) == 1:
        return parts[0]
    offset, *columns, _, _ = zip(*parts, strict=True)
    return LiveItems(
        offsets(np.concatenate([np.diff(own) for own in offset])),
        *(np.concatenate(column) for column in columns),
        offsets([len(own) - 1 for own in offset]),
        np.concatenate([part.total for part in parts]),
    )


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
    wide_root = grammar.root[grammar.tables.wide_label]
    first = offsets(n_words)
    parts = []
    for row, n in enumerate(n_words.tolist()):
        own = slice(first[row], first[row + 1])
        if skipped[row]:
            parts.append(_no_items(n))
            continue
        leaf = np.zeros((n, len(grammar.root)))
        words = Tokens(*(column[own] for column in tokens[:-1]), tokens.other)
        fill_tags(words, grammar.lexicon, leaf, as_unknown[own])
        parts.append(_live_of_leaves(leaf, grammar, wide_root, limits))
    return _joined(parts)
