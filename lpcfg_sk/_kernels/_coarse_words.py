"""Words under the plain treebank PCFG that prunes all charts.

Lexical values, rules with a word as one child, and estimates of how likely an item is
given the words around its span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held


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
        The tag of each nonterminal over a word.
    """

    word_offset: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    unknown: np.ndarray
    any_word: np.ndarray
    tag_of_label: np.ndarray


class Tokens(NamedTuple):
    """The words of a sentence, and the values that their given tags allow.

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


class Neighbours(NamedTuple):
    """Tags that a PCFG expects next to each other and next to its nonterminals.

    Sentences begin and end with a mark, which is the last row, and column, of tags.

    Attributes
    ----------
    share : ndarray of float64, shape (n_nonterminals,)
        Probability of each nonterminal over a word, given its tag.
    follows : ndarray of float64, shape (n_tags + 1, n_tags + 1)
        Probability of the second tag after the first one.
    before : ndarray of float64, shape (n_tags + 1, n_nonterminals)
        Expected number of nodes after each occurrence of a tag, by label.
    after : ndarray of float64, shape (n_tags + 1, n_nonterminals)
        Probability of each tag after a node, by the label of the node.
    """

    share: np.ndarray
    follows: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Surroundings(NamedTuple):
    """Estimated outside values of all items of a sentence, over its probability.

    That of a nonterminal a over the words i, ..., j - 1 is ``before[i, a] *
    after[j, a] * 2 ** (before_exponent[i] + after_exponent[j])``.

    Attributes
    ----------
    before, after : ndarray of float64, shape (n + 1, n_nonterminals)
        By the words to the left of a place, and to the right of it.
    before_exponent, after_exponent : ndarray of int64, shape (n + 1,)
        Powers of two.
    """

    before: np.ndarray
    after: np.ndarray
    before_exponent: np.ndarray
    after_exponent: np.ndarray


class Thresholds(NamedTuple):
    """What the pruning passes leave out, as parts of a sentence's probability.

    Attributes
    ----------
    beam : float
        Smallest estimated posterior of an item, as a part of the largest of its span.
    estimate : float
        Smallest estimated posterior of an item.
    floor : float
        Items with at most this posterior pass nothing down.
    item : float
        Smallest posterior of a live item.
    boolean : bool
        Whether all values are 1 and only show what can be derived.
    """

    beam: float
    estimate: float
    floor: float
    item: float
    boolean: bool


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


@njit(**KERNEL)
def fill_tags(tokens, lexicon, leaf, as_unknown):
    """Fill the lexical values of each word.

    A word with the id -1 takes the values of the unknown word. So does a word that
    never occurs with its given tag, unless it may take other tags. A tag that no label
    has is ignored.

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
def _rescale(row):
    """Bring the largest number of a row into [1/2, 1); return the exponent."""
    largest = 0.0
    for x in row:
        largest = max(largest, x)
    shift = math.frexp(largest)[1]
    for c in range(len(row)):
        row[c] = math.ldexp(row[c], -shift)
    return shift


@njit(**HELPER)
def _add_rows(weights, table, out):
    """Add weights @ table."""
    for c in range(len(weights)):
        x = weights[c]
        if x > 0.0:
            for a in range(len(out)):
                out[a] += x * table[c, a]


@held
@njit(**KERNEL)
def surroundings(leaf, tag_of_label, neighbours):
    """Estimate outside values by a hidden Markov model over the tags of the words.

    Parameters
    ----------
    leaf : ndarray of float64, shape (n, n_nonterminals)
        Lexical values, not scaled.
    tag_of_label : ndarray of int32, shape (n_nonterminals,)
        The tag of each nonterminal over a word.
    neighbours : Neighbours
        The model.

    Returns
    -------
    Surroundings
        Zeros for a sentence that is impossible under the model.
    """
    n, n_labels = leaf.shape
    follows, end = neighbours.follows, len(neighbours.follows) - 1
    emitted = np.zeros((n, end))
    for i in range(n):
        for a in range(n_labels):
            if leaf[i, a] > 0.0:
                emitted[i, tag_of_label[a]] += neighbours.share[a] * leaf[i, a]
    # Probabilities of the tag before each position together with all words before it,
    # and of the tag after it together with all words after it.
    forward, backward = np.zeros((n + 1, end + 1)), np.zeros((n + 1, end + 1))
    before_exponent = np.zeros(n + 1, dtype=np.int64)
    after_exponent = np.zeros(n + 1, dtype=np.int64)
    forward[0, end] = 1.0
    backward[n, end] = 1.0
    for i in range(n):
        _add_rows(forward[i], follows[:, :end], forward[i + 1, :end])
        for d in range(end):
            forward[i + 1, d] *= emitted[i, d]
        before_exponent[i + 1] = before_exponent[i] + _rescale(forward[i + 1])
    total = 0.0
    for c in range(end + 1):
        total += forward[n, c] * follows[c, end]
    for i in range(n - 1, -1, -1):
        for c in range(end):
            if emitted[i, c] > 0.0:
                x = 0.0
                for d in range(end + 1):
                    x += follows[c, d] * backward[i + 1, d]
                backward[i, c] = emitted[i, c] * x
        after_exponent[i] = after_exponent[i + 1] + _rescale(backward[i])
    before, after = np.zeros((n + 1, n_labels)), np.zeros((n + 1, n_labels))
    for i in range(n + 1):
        if total > 0.0:
            for c in range(end + 1):
                forward[i, c] /= total
            _add_rows(forward[i], neighbours.before, before[i])
            _add_rows(backward[i], neighbours.after, after[i])
    for i in range(n + 1):
        after_exponent[i] -= before_exponent[n]
    return Surroundings(before, after, before_exponent, after_exponent)


@njit(**HELPER)
def smallest_merit(largest, exponent, around, start, stop, limits):
    """Return the smallest merit with which an item of a span is kept.

    Merits are values times the estimated outside values without their exponents.

    Parameters
    ----------
    largest : float
        Largest merit of the span.
    exponent : int
        Exponent of the values.
    around : Surroundings
        Estimated outside values.
    start, stop : int
        The span.
    limits : Thresholds
        What is left out.
    """
    exponent += around.before_exponent[start] + around.after_exponent[stop]
    # Larger powers would be infinite.
    estimate = limits.estimate * power_of_two(min(-exponent, 1000))
    return max(limits.beam * largest, estimate)


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
                    slot = place[child[q]]
                    place[child[q]] += 1
                    parent[slot] = rules.parent[q]
                    tag[slot] = b
                    weight[slot] = rules.prob[q] * leaf[i, b]
    return WordRules(begin, parent, tag, weight)


@held
@njit(**KERNEL)
def word_rules(tables, chart, around, limits):
    """Scale the lexical values; return the rules that the words allow.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    chart : CoarseChart
        Holds the lexical values; those of the words, and their exponents and `alive`,
        are set.
    around : Surroundings
        Estimated outside values.
    limits : Thresholds
        What is left out.

    Returns
    -------
    first, last : WordRules
        Rules whose left, and rules whose right child is the word.
    """
    leaf, exponent, alive = chart.leaf, chart.exponent, chart.alive
    for i in range(len(leaf)):
        before, after = around.before[i], around.after[i + 1]
        most = 0.0
        likeliest = 0.0
        for b in range(leaf.shape[1]):
            most = max(most, leaf[i, b])
            likeliest = max(likeliest, leaf[i, b] * before[b] * after[b])
        smallest = smallest_merit(likeliest, np.int64(0), around, i, i + 1, limits)
        alive[i] = most > 0.0
        exponent[i] = 0 if limits.boolean else math.frexp(most)[1]
        for b in range(leaf.shape[1]):
            if leaf[i, b] == 0.0:
                continue
            if limits.boolean:
                leaf[i, b] = 1.0
            elif leaf[i, b] * before[b] * after[b] < smallest:
                leaf[i, b] = 0.0
            else:
                leaf[i, b] = math.ldexp(leaf[i, b], -int(exponent[i]))
    n_wide = len(tables.wide_label)
    return (
        _rules_of_words(leaf, tables.pi, n_wide),
        _rules_of_words(leaf, tables.ip, n_wide),
    )
