"""Rules and inside values of the plain treebank PCFG that prunes all charts.

Rules are packed by the kind of their children: a word (p, a pre-terminal of width 1)
or a wider item (i). Only i i rules see many split points: their children are summed
over the split points first, all pairs of child labels at once, in single precision.
Scaling is that of the fine charts: one power of two per span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._shared import HELPER

# Rows of single precision numbers have a multiple of this many places: the compiler
# then needs no loop for a remainder.
ROW = 32
# Smaller products would leave the range of single precision.
_TINY = 1e-30
# One of this many places that are next to each other costs as much as one that is not.
_SPARSE = 8


class RulesByChild(NamedTuple):
    """Rules of one kind, listed by one of their children.

    Child x has the rules ``offset[x]:offset[x + 1]``, each with its other child, its
    parent and its probability.
    """

    offset: np.ndarray
    child: np.ndarray
    parent: np.ndarray
    prob: np.ndarray


class RulesByParent(NamedTuple):
    """Rules of one kind, listed by their parent as in :class:`RulesByChild`."""

    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray
    prob: np.ndarray


class RightPlaces(NamedTuple):
    """Places of the right children that each left child has in i i rules.

    Left child b has ``place[offset[b]:offset[b + 1]]``.
    """

    offset: np.ndarray
    place: np.ndarray


class CoarseTables(NamedTuple):
    """Rules of a PCFG, packed by kind and child.

    Attributes
    ----------
    wide_label : ndarray of int32, shape (n_wide,)
        Nonterminals that head a rule. These wide labels are numbered by their place
        here.
    left_label, right_label : ndarray of int32
        Wide labels that are left and right children of i i rules.
    ii : RulesByChild
        Rules of kind i i by place of the left child, with the place of the right one.
    up : RulesByParent
        The same by parent, with the places of both children.
    columns : RightPlaces
        Right children of each left child.
    pi, ip, pp : RulesByChild
        Rules of the other kinds by pre-terminal (the left one for p p), with the other
        child.
    prior : ndarray of float64, shape (n_wide,)
        Expected frequency of each wide label.
    tag_prior : ndarray of float64, shape (n_nonterminals,)
        Expected frequency of each nonterminal.
    """

    wide_label: np.ndarray
    left_label: np.ndarray
    right_label: np.ndarray
    ii: RulesByChild
    up: RulesByParent
    columns: RightPlaces
    pi: RulesByChild
    ip: RulesByChild
    pp: RulesByChild
    prior: np.ndarray
    tag_prior: np.ndarray


class TagLexicon(NamedTuple):
    """Lexical values of a PCFG.

    Attributes
    ----------
    word_offset : ndarray of int64, shape (n_words + 1,)
        Word x has the entries ``word_offset[x]:word_offset[x + 1]``.
    label : ndarray of int32, shape (n_entries,)
        Nonterminal of each entry.
    weight : ndarray of float64, shape (n_entries,)
        Value of each entry.
    unknown : ndarray of float64, shape (n_nonterminals,)
        Values of the unknown word.
    any_word : ndarray of float64, shape (n_nonterminals,)
        Sums over all words.
    tag_of_label : ndarray of int32, shape (n_nonterminals,)
        The tag that each nonterminal stands for over a word.
    """

    word_offset: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    unknown: np.ndarray
    any_word: np.ndarray
    tag_of_label: np.ndarray


class Tokens(NamedTuple):
    """The words of a sentence, and what their given tags leave open.

    Attributes
    ----------
    word : ndarray of int32, shape (n,)
        Words, -1 for unknown ones.
    tag : ndarray of int32, shape (n,)
        Given tags, -1 for none.
    any_word, unknown : ndarray of float64, shape (n,)
        Shares of any word, and of the unknown word, in the values of each word under
        the labels of its given tag, or under all labels without one.
    other : float
        Factor of the values under labels that do not have the given tag.
    """

    word: np.ndarray
    tag: np.ndarray
    any_word: np.ndarray
    unknown: np.ndarray
    other: float


class WordRules(NamedTuple):
    """Rules with a word as one child, by word and wide child.

    Attributes
    ----------
    begin : ndarray of int64, shape (n, n_wide + 1)
        Word i with the wide child c has the rules ``begin[i, c]:begin[i, c + 1]``.
    parent : ndarray of int32, shape (n_rules,)
        Wide label of the parent.
    tag : ndarray of int32, shape (n_rules,)
        Pre-terminal of the word.
    weight : ndarray of float64, shape (n_rules,)
        Probability of the rule times the value of the word.
    """

    begin: np.ndarray
    parent: np.ndarray
    tag: np.ndarray
    weight: np.ndarray


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
    left_offset, left_item : ndarray of int64 and of int32
        Items ``left_item[left_offset[s]:left_offset[s + 1]]`` of span s can be left
        children of i i rules.
    rights : ndarray of float32, shape (n_spans, multiple of ROW)
        Values of the right children of i i rules.
    """

    leaf: np.ndarray
    exponent: np.ndarray
    alive: np.ndarray
    offset: np.ndarray
    label: np.ndarray
    value: np.ndarray
    left_offset: np.ndarray
    left_item: np.ndarray
    rights: np.ndarray


@njit(nogil=True, cache=True)
def fill_tags(tokens, lexicon, leaf, as_unknown):
    """Fill the lexical values of each word.

    A word of id -1 takes the values of the unknown word, and so does one that never
    has the given tag where no other tag is open to it; a tag that no label has is
    ignored.

    Parameters
    ----------
    tokens : Tokens
        The sentence.
    lexicon : TagLexicon
        Values of all words.
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Zeros, which are filled.
    as_unknown : ndarray of bool, shape (n,)
        Filled: which words take the values of the unknown word.
    """
    word_offset, weight, unknown = lexicon.word_offset, lexicon.weight, lexicon.unknown
    tag_of_label = lexicon.tag_of_label
    for i in range(len(tokens.word)):
        word, tag = tokens.word[i], tokens.tag[i]
        known = False
        if word >= 0:
            for e in range(word_offset[word], word_offset[word + 1]):
                label = lexicon.label[e]
                if tag < 0 or tag_of_label[label] == tag:
                    leaf[i, label] = weight[e]
                    known = known or weight[e] > 0.0
                else:
                    leaf[i, label] = tokens.other * weight[e]
            shares = tokens.any_word[i] + tokens.unknown[i] > 0.0
            for label in range(len(unknown) if shares else 0):
                if tag < 0 or tag_of_label[label] == tag:
                    leaf[i, label] += tokens.any_word[i] * lexicon.any_word[label]
                    leaf[i, label] += tokens.unknown[i] * unknown[label]
                    known = known or leaf[i, label] > 0.0
        as_unknown[i] = not known
        if not known:
            for label in range(len(unknown)):
                if tag < 0 or tag_of_label[label] == tag:
                    leaf[i, label] = unknown[label]
                    known = known or unknown[label] > 0.0
                else:
                    leaf[i, label] = tokens.other * unknown[label]
        if not known:
            for label in range(len(unknown)):
                leaf[i, label] = unknown[label]


@njit(**HELPER)
def _rules_of_words(leaf, rules, n_wide):
    """Return the WordRules of the rules of kind p i or i p."""
    offset, child = rules.offset, rules.child
    n, n_labels = leaf.shape
    begin = np.zeros((n, n_wide + 1), dtype=np.int64)
    total = 0
    for i in range(n):
        for b in range(n_labels):
            if leaf[i, b] > 0.0:
                for q in range(offset[b], offset[b + 1]):
                    begin[i, child[q]] += 1
        for c in range(n_wide + 1):
            here = begin[i, c]
            begin[i, c] = total
            total += here
    parent = np.empty(total, dtype=np.int32)
    tag = np.empty(total, dtype=np.int32)
    weight = np.empty(total)
    place = np.empty(n_wide, dtype=np.int64)
    for i in range(n):
        for c in range(n_wide):
            place[c] = begin[i, c]
        for b in range(n_labels):
            if leaf[i, b] > 0.0:
                for q in range(offset[b], offset[b + 1]):
                    at = place[child[q]]
                    place[child[q]] += 1
                    parent[at] = rules.parent[q]
                    tag[at] = b
                    weight[at] = rules.prob[q] * leaf[i, b]
    return WordRules(begin, parent, tag, weight)


@njit(nogil=True, cache=True)
def word_rules(tables, chart, boolean, beam):
    """Scale the lexical values; return the rules that the words allow.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    chart : CoarseChart
        Holds the lexical values; those of the words, and their exponents and `alive`,
        are set.
    boolean, beam
        As in :func:`coarse_inside`.

    Returns
    -------
    first, last : WordRules
        Rules whose left, and rules whose right child is the word.
    """
    leaf, exponent, alive = chart.leaf, chart.exponent, chart.alive
    for i in range(len(leaf)):
        largest = 0.0
        likeliest = 0.0
        for b in range(leaf.shape[1]):
            largest = max(largest, leaf[i, b])
            likeliest = max(likeliest, leaf[i, b] * tables.tag_prior[b])
        alive[i] = largest > 0.0
        exponent[i] = 0 if boolean else math.frexp(largest)[1]
        for b in range(leaf.shape[1]):
            if leaf[i, b] == 0.0:
                continue
            if boolean:
                leaf[i, b] = 1.0
            elif leaf[i, b] * tables.tag_prior[b] < beam * likeliest:
                leaf[i, b] = 0.0
            else:
                leaf[i, b] = math.ldexp(leaf[i, b], -int(exponent[i]))
    n_wide = len(tables.wide_label)
    return (
        _rules_of_words(leaf, tables.pi, n_wide),
        _rules_of_words(leaf, tables.ip, n_wide),
    )


@njit(**HELPER)
def is_dense(columns, b, rights):
    """Whether whole rows are added up faster than the places of one left child.

    Parameters
    ----------
    columns : RightPlaces
        Right children of each left child.
    b : int
        Place of the left child.
    rights : ndarray of float32, shape (n_spans, multiple of ROW)
        Rows of right children.
    """
    n_places = columns.offset[b + 1] - columns.offset[b]
    return n_places * _SPARSE > rights.shape[1]


@njit(nogil=True, cache=True)
def places(labels, n_wide):
    """Return the place of each wide label in a list, -1 for those not in it."""
    place = np.full(n_wide, -1, dtype=np.int32)
    for t in range(len(labels)):
        place[labels[t]] = t
    return place


@njit(**HELPER)
def _add_word(word, rest, rules, chart, reference, row):
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
        Exponent of the values in `row`.
    row : ndarray of float64, shape (n_wide,)
        Added to.
    """
    exponent, label = chart.exponent, chart.label
    begin, parent, weight = rules.begin[word], rules.parent, rules.weight
    if chart.alive[word] and chart.alive[rest]:
        factor = power_of_two(exponent[word] + exponent[rest] - reference)
        for t in range(chart.offset[rest], chart.offset[rest + 1]):
            x = factor * chart.value[t]
            for q in range(begin[label[t]], begin[label[t] + 1]):
                row[parent[q]] += x * weight[q]


@njit(nogil=True, cache=True)
def coarse_inside(tables, rules, chart, boolean, beam):
    """Fill the inside values of all spans of two and more words.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    rules : tuple of two WordRules
        What :func:`word_rules` returns.
    chart : CoarseChart
        Its lexical values are those of :func:`word_rules`; all else is filled.
    boolean : bool
        Whether all values are 1 and only say what can be derived.
    beam : float
        Labels whose value times prior is below `beam` times the largest one of the
        span are left out.

    Returns
    -------
    int
        Number of items.
    """
    leaf, exponent, alive = chart.leaf, chart.exponent, chart.alive
    offset, label, value = chart.offset, chart.label, chart.value
    left_offset, left_item = chart.left_offset, chart.left_item
    rights, n = chart.rights, len(leaf)
    first, last = rules
    ii, pp, columns = tables.ii, tables.pp, tables.columns
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    left_place = places(tables.left_label, n_wide)
    right_place = places(tables.right_label, n_wide)
    row = np.zeros(n_wide)
    some = np.empty(n_wide, dtype=np.int32)
    sums = np.zeros((n_left, rights.shape[1]), dtype=np.float32)
    touched = np.zeros(n_left, dtype=np.bool_)
    left_child = np.empty(len(left_item), dtype=np.int32)
    left_value = np.empty(len(left_item))
    count = 0
    n_lefts = 0
    for i in range(n + 1):
        offset[i] = 0
        left_offset[i] = 0
    span = n - 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            span += 1
            j = i + width
            reference = -(1 << 30)
            for k in range(i + 1, j):
                left, right = span_index(i, k, n), span_index(k, j, n)
                if alive[left] and alive[right]:
                    reference = max(reference, exponent[left] + exponent[right])
            if reference == -(1 << 30):
                offset[span + 1] = count
                left_offset[span + 1] = n_lefts
                continue
            if width == 2:
                for b in range(leaf.shape[1]):
                    x = leaf[i, b]
                    if x > 0.0:
                        for q in range(pp.offset[b], pp.offset[b + 1]):
                            row[pp.parent[q]] += (
                                x * pp.prob[q] * leaf[i + 1, pp.child[q]]
                            )
            else:
                _add_word(i, span_index(i + 1, j, n), first, chart, reference, row)
                _add_word(j - 1, span_index(i, j - 1, n), last, chart, reference, row)
                for k in range(i + 2, j - 1):
                    left, right = span_index(i, k, n), span_index(k, j, n)
                    if not (alive[left] and alive[right]):
                        continue
                    factor = power_of_two(exponent[left] + exponent[right] - reference)
                    for t in range(left_offset[left], left_offset[left + 1]):
                        x = np.float32(factor * left_value[t])
                        if x > _TINY:
                            b = left_child[t]
                            touched[b] = True
                            if is_dense(columns, b, rights):
                                for c in range(rights.shape[1]):
                                    sums[b, c] += x * rights[right, c]
                                continue
                            for q in range(columns.offset[b], columns.offset[b + 1]):
                                c = columns.place[q]
                                sums[b, c] += x * rights[right, c]
                for b in range(n_left):
                    if touched[b]:
                        touched[b] = False
                        for q in range(ii.offset[b], ii.offset[b + 1]):
                            row[ii.parent[q]] += ii.prob[q] * sums[b, ii.child[q]]
                        for c in range(rights.shape[1]):
                            sums[b, c] = 0.0
            n_some = 0
            largest = 0.0
            likeliest = 0.0
            for a in range(n_wide):
                if row[a] > 0.0:
                    some[n_some] = a
                    n_some += 1
                    largest = max(largest, row[a])
                    likeliest = max(likeliest, row[a] * tables.prior[a])
            if n_some > 0:
                alive[span] = True
                shift = 0 if boolean else math.frexp(largest)[1]
                factor = power_of_two(-shift)
                exponent[span] = 0 if boolean else reference + shift
                for c in range(rights.shape[1]):
                    rights[span, c] = 0.0
                for t in range(n_some):
                    a = some[t]
                    x = row[a]
                    row[a] = 0.0
                    if x * tables.prior[a] < beam * likeliest:
                        continue
                    x = 1.0 if boolean else x * factor
                    label[count] = a
                    value[count] = x
                    if right_place[a] >= 0:
                        rights[span, right_place[a]] = x
                    if left_place[a] >= 0:
                        left_item[n_lefts] = count
                        left_child[n_lefts] = left_place[a]
                        left_value[n_lefts] = x
                        n_lefts += 1
                    count += 1
            offset[span + 1] = count
            left_offset[span + 1] = n_lefts
    return count
