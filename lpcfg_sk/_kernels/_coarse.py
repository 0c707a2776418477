"""Inside-outside of the plain treebank PCFG, which prunes the charts of all models.

Rules are packed by the kind of their children: a word (p, a pre-terminal of width 1)
or a wider item (i). Only i i rules see many split points: their children are summed
over the split points first, all pairs of child labels at once, in single precision.
Scaling is that of the fine charts: one power of two a span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._math import REASSOC

# Smaller products would leave the range of single precision.
_TINY = 1e-30

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


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _pass_down(x, weights, b, inside, right, outside):
    """Add x times a row of weights; return the product of weights and inside row."""
    total = np.float32(0.0)
    for c in range(weights.shape[1]):
        total += weights[b, c] * inside[right, c]
        outside[right, c] += x * weights[b, c]
    return total


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
def _places(labels, n_wide):
    """Return the place of each wide label in a list, -1 for those not in it."""
    place = np.empty(n_wide, dtype=np.int32)
    for a in range(n_wide):
        place[a] = -1
    for t in range(len(labels)):
        place[labels[t]] = t
    return place


@njit(nogil=True, cache=True)
def coarse_inside(
    n,
    tables,
    first,
    last,
    leaf,
    boolean,
    beam,
    exponent,
    alive,
    offset,
    label,
    value,
    left_offset,
    left_item,
    rights,
):
    """Fill the inside values of all spans of two and more words.

    Span s has the items ``offset[s]:offset[s + 1]``, wide labels with their values;
    ``left_item[left_offset[s]:left_offset[s + 1]]`` are those that can be left children
    of i i rules, and a row of `rights` holds the values of right ones. Labels whose
    value times prior is below `beam` times the largest one of the span are left out.
    With `boolean` all values are 1 and only say what can be derived. Returns the number
    of items.
    """
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    left_place = _places(tables.left_label, n_wide)
    right_place = _places(tables.right_label, n_wide)
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
                        for q in range(tables.pp_offset[b], tables.pp_offset[b + 1]):
                            row[tables.pp_parent[q]] += (
                                x * tables.pp_prob[q] * leaf[i + 1, tables.pp_child[q]]
                            )
            else:
                rest = span_index(i + 1, j, n)
                if alive[i] and alive[rest]:
                    factor = power_of_two(exponent[i] + exponent[rest] - reference)
                    begin, to, _, weight = first
                    for t in range(offset[rest], offset[rest + 1]):
                        x = factor * value[t]
                        for q in range(begin[i, label[t]], begin[i, label[t] + 1]):
                            row[to[q]] += x * weight[q]
                rest = span_index(i, j - 1, n)
                if alive[j - 1] and alive[rest]:
                    factor = power_of_two(exponent[j - 1] + exponent[rest] - reference)
                    begin, to, _, weight = last
                    for t in range(offset[rest], offset[rest + 1]):
                        x = factor * value[t]
                        for q in range(
                            begin[j - 1, label[t]], begin[j - 1, label[t] + 1]
                        ):
                            row[to[q]] += x * weight[q]
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
                            for c in range(rights.shape[1]):
                                sums[b, c] += x * rights[right, c]
                for b in range(n_left):
                    if touched[b]:
                        touched[b] = False
                        for q in range(tables.ii_offset[b], tables.ii_offset[b + 1]):
                            row[tables.ii_parent[q]] += (
                                tables.ii_prob[q] * sums[b, tables.ii_child[q]]
                            )
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


@njit(nogil=True, cache=True)
def coarse_outside(
    n,
    tables,
    first,
    last,
    leaf,
    boolean,
    floor,
    root,
    exponent,
    alive,
    offset,
    label,
    value,
    left_offset,
    left_item,
    rights,
    beta,
    leaf_mass,
):
    """Fill the outside values of all items from those of the `root` labels.

    `leaf_mass` takes the marginals of the lexical values. Items with a marginal of at
    most `floor` hand nothing down, which spares most of the work; spans without any
    other are no longer `alive`.
    """
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    n_spans = n * (n + 1) // 2
    left_place = _places(tables.left_label, n_wide)
    right_place = _places(tables.right_label, n_wide)
    beta_rights = np.zeros(rights.shape, dtype=np.float32)
    above = np.zeros(n_wide)
    weights = np.zeros((n_left, rights.shape[1]), dtype=np.float32)
    active = np.zeros(n_left, dtype=np.bool_)
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
                if right_place[a] >= 0:
                    beta[t] += beta_rights[span, right_place[a]]
                if boolean and beta[t] > 0.0:
                    beta[t] = 1.0
                if value[t] * beta[t] <= floor:
                    continue
                alive[span] = True
                above[a] = beta[t]
                if width > 3:
                    for q in range(tables.up_offset[a], tables.up_offset[a + 1]):
                        b = tables.up_left[q]
                        active[b] = True
                        weights[b, tables.up_child[q]] += beta[t] * tables.up_prob[q]
            if not alive[span]:
                continue
            if width == 2:
                factor = power_of_two(exponent[i] + exponent[i + 1] - exponent[span])
                for b in range(leaf.shape[1]):
                    x = factor * leaf[i, b]
                    if x == 0.0:
                        continue
                    for q in range(tables.pp_offset[b], tables.pp_offset[b + 1]):
                        y = x * above[tables.pp_parent[q]] * tables.pp_prob[q]
                        y *= leaf[i + 1, tables.pp_child[q]]
                        leaf_mass[i, b] += y
                        leaf_mass[i + 1, tables.pp_child[q]] += y
            else:
                rest = span_index(i + 1, j, n)
                if alive[i] and alive[rest]:
                    factor = power_of_two(exponent[i] + exponent[rest] - exponent[span])
                    begin, to, tag, weight = first
                    for t in range(offset[rest], offset[rest + 1]):
                        for q in range(begin[i, label[t]], begin[i, label[t] + 1]):
                            if above[to[q]] > 0.0:
                                x = factor * above[to[q]] * weight[q]
                                beta[t] += x
                                leaf_mass[i, tag[q]] += x * value[t]
                rest = span_index(i, j - 1, n)
                if alive[j - 1] and alive[rest]:
                    factor = power_of_two(
                        exponent[j - 1] + exponent[rest] - exponent[span]
                    )
                    begin, to, tag, weight = last
                    for t in range(offset[rest], offset[rest + 1]):
                        for q in range(
                            begin[j - 1, label[t]], begin[j - 1, label[t] + 1]
                        ):
                            if above[to[q]] > 0.0:
                                x = factor * above[to[q]] * weight[q]
                                beta[t] += x
                                leaf_mass[j - 1, tag[q]] += x * value[t]
                for k in range(i + 2, j - 1):
                    left, right = span_index(i, k, n), span_index(k, j, n)
                    if not (alive[left] and alive[right]):
                        continue
                    factor = power_of_two(
                        exponent[left] + exponent[right] - exponent[span]
                    )
                    for t in range(left_offset[left], left_offset[left + 1]):
                        item = left_item[t]
                        b = left_place[label[item]]
                        if active[b]:
                            x = np.float32(factor * value[item])
                            beta[item] += factor * _pass_down(
                                x, weights, b, rights, right, beta_rights
                            )
                for b in range(n_left):
                    if active[b]:
                        active[b] = False
                        for c in range(rights.shape[1]):
                            weights[b, c] = 0.0
            for t in range(offset[span], offset[span + 1]):
                above[label[t]] = 0.0


@njit(nogil=True, cache=True)
def live_items(
    n,
    tables,
    leaf,
    leaf_mass,
    alive,
    offset,
    label,
    value,
    beta,
    threshold,
    live_offset,
):
    """Return the labels of each span with a marginal of at least `threshold`.

    Fills the `live_offset` of each span; returns nonterminals, inside and outside
    values.
    """
    n_spans = n * (n + 1) // 2
    places = len(beta) + leaf.size
    live = np.empty(places, dtype=np.int32)
    inside = np.empty(places)
    outside = np.empty(places)
    count = 0
    for span in range(n_spans):
        live_offset[span] = count
        if span < n:
            for a in range(leaf.shape[1]):
                mass = leaf_mass[span, a]
                if mass >= threshold and mass > 0.0:
                    live[count] = a
                    inside[count] = leaf[span, a]
                    outside[count] = mass / leaf[span, a]
                    count += 1
        elif alive[span]:
            for t in range(offset[span], offset[span + 1]):
                mass = value[t] * beta[t]
                if mass >= threshold and mass > 0.0:
                    live[count] = tables.wide_label[label[t]]
                    inside[count] = value[t]
                    outside[count] = beta[t]
                    count += 1
    live_offset[n_spans] = count
    return live[:count], inside[:count], outside[:count]
