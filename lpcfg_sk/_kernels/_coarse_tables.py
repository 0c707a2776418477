"""Tables of the plain treebank PCFG, which prunes the charts of all models.

Rules are packed by the kind of their children: a word (p, a pre-terminal of width 1)
or a wider item (i). Only i i rules see many split points: their children are summed
over the split points first, all pairs of child labels at once, in single precision.
Scaling is that of the fine charts: one power of two a span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

# Rows of single precision numbers have this many places, or a multiple: the compiler
# then needs no loop for a remainder.
ROW = 32


class CoarseTables(NamedTuple):
    """Rules of a PCFG, packed by kind and child.

    Labels that head a rule are numbered apart: ``wide_label[w]`` is the nonterminal of
    wide label w. ``xy_offset, xy_child, xy_parent, xy_prob`` list the rules of kind
    x y by their pre-terminal (the left one for p p), with the other child. The left
    and right children of i i rules are ``left_label`` and ``right_label``; these rules
    are listed by place of the left child in ``ii_offset, ii_child, ii_parent,
    ii_prob``, and by parent in ``up_offset, up_left, up_child, up_prob``, with places
    of children. ``prior`` is the expected frequency of each wide label, ``tag_prior``
    that of each nonterminal.
    """

    wide_label: np.ndarray
    left_label: np.ndarray
    right_label: np.ndarray
    ii_offset: np.ndarray
    ii_child: np.ndarray
    ii_parent: np.ndarray
    ii_prob: np.ndarray
    up_offset: np.ndarray
    up_left: np.ndarray
    up_child: np.ndarray
    up_prob: np.ndarray
    pi_offset: np.ndarray
    pi_child: np.ndarray
    pi_parent: np.ndarray
    pi_prob: np.ndarray
    ip_offset: np.ndarray
    ip_child: np.ndarray
    ip_parent: np.ndarray
    ip_prob: np.ndarray
    pp_offset: np.ndarray
    pp_child: np.ndarray
    pp_parent: np.ndarray
    pp_prob: np.ndarray
    prior: np.ndarray
    tag_prior: np.ndarray


@njit(nogil=True, cache=True)
def fill_tags(
    words, tags, tag_of_label, word_offset, lex_label, weight, unknown, leaf, as_unknown
):
    """Fill the lexical values of each word, within its given tag.

    A word of id -1, and one that never has the given tag, takes the values of the
    unknown word; a tag that no label has is ignored. ``tags[i]`` is -1 for none.
    """
    for i in range(len(words)):
        word = words[i]
        found = False
        if word >= 0:
            for e in range(word_offset[word], word_offset[word + 1]):
                label = lex_label[e]
                if tags[i] < 0 or tag_of_label[label] == tags[i]:
                    leaf[i, label] = weight[e]
                    found = found or weight[e] > 0.0
        as_unknown[i] = not found
        if not found:
            for label in range(len(unknown)):
                if tags[i] < 0 or tag_of_label[label] == tags[i]:
                    leaf[i, label] = unknown[label]
                    found = found or unknown[label] > 0.0
        if not found:
            leaf[i] = unknown


@njit(nogil=True, cache=True)
def _rules_of_words(leaf, offset, child, parent, prob, n_wide):
    """List the rules over each word by their wide child.

    Returns where the rules of each child begin (one row a word), and for each rule its
    parent, its pre-terminal, and its probability times the value of the word.
    """
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
    to = np.empty(total, dtype=np.int32)
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
                    to[at] = parent[q]
                    tag[at] = b
                    weight[at] = prob[q] * leaf[i, b]
    return begin, to, tag, weight


@njit(nogil=True, cache=True)
def word_rules(tables, leaf, boolean, beam, exponent, alive):
    """Scale the lexical values; return the rules that the first and last words allow.

    What :func:`_rules_of_words` gives for rules whose left, then for rules whose right
    child is the word. `boolean` and `beam` as in :func:`coarse_inside`.
    """
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
    first = _rules_of_words(
        leaf,
        tables.pi_offset,
        tables.pi_child,
        tables.pi_parent,
        tables.pi_prob,
        n_wide,
    )
    last = _rules_of_words(
        leaf,
        tables.ip_offset,
        tables.ip_child,
        tables.ip_parent,
        tables.ip_prob,
        n_wide,
    )
    return first, last


@njit(nogil=True, cache=True)
def places(labels, n_wide):
    """Return the place of each wide label in a list, -1 for those not in it."""
    place = np.empty(n_wide, dtype=np.int32)
    for a in range(n_wide):
        place[a] = -1
    for t in range(len(labels)):
        place[labels[t]] = t
    return place
