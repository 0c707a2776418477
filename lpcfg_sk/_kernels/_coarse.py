"""Inside-outside of the plain treebank PCFG, which prunes the charts of all models.

Rules are packed by the kind of their children: a word (P, a pre-terminal of width 1)
or a wider item (I). Only I I rules see many split points; their children are summed
over the split points first, once for each pair of child labels. Scaling is that of
the fine charts: one power of two a span.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import span_index


class CoarseTables(NamedTuple):
    """Rules of a PCFG, packed by kind and by child, and again by parent.

    Wide labels (those that head a rule) are numbered apart: ``wide_label[w]`` is the
    nonterminal of wide label w. ``xy_offset, xy_child, xy_parent, xy_prob`` list the
    rules of kind x y by the pre-terminal they have (the left one for p p);
    ``ii_offset, ii_right`` list the pairs of wide children by the left one, and pair q
    has the rules ``ii_rule_offset[q]:ii_rule_offset[q + 1]`` of ``ii_parent, ii_prob``.
    ``up_offset[kind, w]`` gives the same rules by parent: ``up_pair`` is the pair for
    i i, else the pre-terminal, ``up_child`` the other child.
    """

    wide_label: np.ndarray
    ii_offset: np.ndarray
    ii_right: np.ndarray
    ii_rule_offset: np.ndarray
    ii_parent: np.ndarray
    ii_prob: np.ndarray
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
    up_ii_offset: np.ndarray
    up_ii_pair: np.ndarray
    up_ii_prob: np.ndarray
    up_pi_offset: np.ndarray
    up_pi_word: np.ndarray
    up_pi_child: np.ndarray
    up_pi_prob: np.ndarray
    up_ip_offset: np.ndarray
    up_ip_word: np.ndarray
    up_ip_child: np.ndarray
    up_ip_prob: np.ndarray
    up_pp_offset: np.ndarray
    up_pp_word: np.ndarray
    up_pp_child: np.ndarray
    up_pp_prob: np.ndarray


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
def _as_boolean(row):
    for i in range(len(row)):
        if row[i] > 0.0:
            row[i] = 1.0


@njit(nogil=True, cache=True)
def _normalize(row, exponent, span, reference, boolean):
    """Scale a span's values below 1, or to 0 and 1; return whether there are any."""
    largest = 0.0
    for x in row:
        largest = max(largest, x)
    if largest == 0.0:
        return False
    if boolean:
        _as_boolean(row)
        return True
    shift = math.frexp(largest)[1]
    factor = math.ldexp(1.0, -shift)
    for i in range(len(row)):
        row[i] *= factor
    exponent[span] = reference + shift
    return True


@njit(nogil=True, cache=True)
def coarse_inside(n, tables, leaf, boolean, alpha, exponent, alive):
    """Fill the inside values of all spans, and whether a span has any.

    `leaf` holds the lexical values on entry and is scaled; the outputs are zero on
    entry. With `boolean` the values only say what can be derived.
    """
    n_wide = len(tables.wide_label)
    n_labels = leaf.shape[1]
    tags = np.empty((n, n_labels), dtype=np.int32)
    n_tags = np.zeros(n, dtype=np.int64)
    for i in range(n):
        alive[i] = _normalize(leaf[i], exponent, i, 0, boolean)
        for b in range(n_labels):
            if leaf[i, b] > 0.0:
                tags[i, n_tags[i]] = b
                n_tags[i] += 1
    n_left = 0
    lefts = np.empty(n_wide, dtype=np.int32)
    for b in range(n_wide):
        if tables.ii_offset[b + 1] > tables.ii_offset[b]:
            lefts[n_left] = b
            n_left += 1
    lefts = lefts[:n_left]
    sums = np.empty(len(tables.ii_right))
    span = n - 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            span += 1
            j = i + width
            row = alpha[span]
            if width == 2:
                reference = exponent[i] + exponent[i + 1]
                right = leaf[i + 1]
                for t in range(n_tags[i]):
                    b = tags[i, t]
                    x = leaf[i, b]
                    for q in range(tables.pp_offset[b], tables.pp_offset[b + 1]):
                        row[tables.pp_parent[q]] += (
                            x * tables.pp_prob[q] * right[tables.pp_child[q]]
                        )
                alive[span] = _normalize(row, exponent, span, reference, boolean)
                continue
            reference = -(1 << 30)
            for k in range(i + 1, j):
                left_span, right_span = span_index(i, k, n), span_index(k, j, n)
                if alive[left_span] and alive[right_span]:
                    reference = max(
                        reference, exponent[left_span] + exponent[right_span]
                    )
            if reference == -(1 << 30):
                continue
            right_span = span_index(i + 1, j, n)
            if alive[i] and alive[right_span]:
                f = math.ldexp(1.0, exponent[i] + exponent[right_span] - reference)
                right = alpha[right_span]
                for t in range(n_tags[i]):
                    b = tags[i, t]
                    x = f * leaf[i, b]
                    for q in range(tables.pi_offset[b], tables.pi_offset[b + 1]):
                        row[tables.pi_parent[q]] += (
                            x * tables.pi_prob[q] * right[tables.pi_child[q]]
                        )
            left_span = span_index(i, j - 1, n)
            if alive[left_span] and alive[j - 1]:
                f = math.ldexp(1.0, exponent[left_span] + exponent[j - 1] - reference)
                left = alpha[left_span]
                for t in range(n_tags[j - 1]):
                    c = tags[j - 1, t]
                    x = f * leaf[j - 1, c]
                    for q in range(tables.ip_offset[c], tables.ip_offset[c + 1]):
                        row[tables.ip_parent[q]] += (
                            x * tables.ip_prob[q] * left[tables.ip_child[q]]
                        )
            if width > 3:
                sums[:] = 0.0
                for k in range(i + 2, j - 1):
                    left_span, right_span = span_index(i, k, n), span_index(k, j, n)
                    if not (alive[left_span] and alive[right_span]):
                        continue
                    f = math.ldexp(
                        1.0, exponent[left_span] + exponent[right_span] - reference
                    )
                    left = alpha[left_span]
                    right = alpha[right_span]
                    for b in lefts:
                        x = f * left[b]
                        if x > 0.0:
                            for p in range(
                                tables.ii_offset[b], tables.ii_offset[b + 1]
                            ):
                                sums[p] += x * right[tables.ii_right[p]]
                for p in range(len(sums)):
                    x = sums[p]
                    if x > 0.0:
                        for q in range(
                            tables.ii_rule_offset[p], tables.ii_rule_offset[p + 1]
                        ):
                            row[tables.ii_parent[q]] += x * tables.ii_prob[q]
            alive[span] = _normalize(row, exponent, span, reference, boolean)


@njit(nogil=True, cache=True)
def coarse_outside(
    n, tables, leaf, boolean, alpha, exponent, alive, floor, beta, beta_leaf
):
    """Fill the outside values, given those of the root in `beta`.

    Items with a marginal of at most `floor` hand nothing down, which spares most of
    the work; their spans are no longer `alive`.
    """
    n_wide = len(tables.wide_label)
    n_pairs = len(tables.ii_right)
    live = np.empty(n_wide, dtype=np.int32)
    weights = np.zeros(n_pairs)
    first_pair = tables.ii_offset
    span = n * (n + 1) // 2
    for width in range(n, 1, -1):
        for i in range(n - width, -1, -1):
            span -= 1
            j = i + width
            if not alive[span]:
                continue
            if boolean:
                _as_boolean(beta[span])
            n_live = 0
            for a in range(n_wide):
                mass = alpha[span, a] * beta[span, a]
                if mass > floor:
                    live[n_live] = a
                    n_live += 1
            if n_live == 0:
                alive[span] = False
                continue
            above = beta[span]
            if width == 2:
                f = math.ldexp(1.0, exponent[i] + exponent[i + 1] - exponent[span])
                for t in range(n_live):
                    a = live[t]
                    x = f * above[a]
                    for q in range(tables.up_pp_offset[a], tables.up_pp_offset[a + 1]):
                        b, c = tables.up_pp_word[q], tables.up_pp_child[q]
                        y = x * tables.up_pp_prob[q]
                        beta_leaf[i, b] += y * leaf[i + 1, c]
                        beta_leaf[i + 1, c] += y * leaf[i, b]
                continue
            other = span_index(i + 1, j, n)
            if alive[i] and alive[other]:
                f = math.ldexp(1.0, exponent[i] + exponent[other] - exponent[span])
                for t in range(n_live):
                    a = live[t]
                    x = f * above[a]
                    for q in range(tables.up_pi_offset[a], tables.up_pi_offset[a + 1]):
                        b, c = tables.up_pi_word[q], tables.up_pi_child[q]
                        y = x * tables.up_pi_prob[q]
                        beta_leaf[i, b] += y * alpha[other, c]
                        beta[other, c] += y * leaf[i, b]
            other = span_index(i, j - 1, n)
            if alive[j - 1] and alive[other]:
                f = math.ldexp(1.0, exponent[j - 1] + exponent[other] - exponent[span])
                for t in range(n_live):
                    a = live[t]
                    x = f * above[a]
                    for q in range(tables.up_ip_offset[a], tables.up_ip_offset[a + 1]):
                        c, b = tables.up_ip_word[q], tables.up_ip_child[q]
                        y = x * tables.up_ip_prob[q]
                        beta_leaf[j - 1, c] += y * alpha[other, b]
                        beta[other, b] += y * leaf[j - 1, c]
            if width == 3:
                continue
            weights[:] = 0.0
            for t in range(n_live):
                a = live[t]
                for q in range(tables.up_ii_offset[a], tables.up_ii_offset[a + 1]):
                    weights[tables.up_ii_pair[q]] += above[a] * tables.up_ii_prob[q]
            for k in range(i + 2, j - 1):
                left_span, right_span = span_index(i, k, n), span_index(k, j, n)
                if not (alive[left_span] and alive[right_span]):
                    continue
                f = math.ldexp(
                    1.0, exponent[left_span] + exponent[right_span] - exponent[span]
                )
                left, right = alpha[left_span], alpha[right_span]
                below_left, below_right = beta[left_span], beta[right_span]
                for b in range(n_wide):
                    x = f * left[b]
                    if x > 0.0:
                        total = 0.0
                        for p in range(first_pair[b], first_pair[b + 1]):
                            w = weights[p]
                            if w > 0.0:
                                c = tables.ii_right[p]
                                total += w * right[c]
                                below_right[c] += w * x
                        below_left[b] += f * total


@njit(nogil=True, cache=True)
def live_items(n, tables, leaf, alpha, beta, beta_leaf, threshold, forced, offset):
    """Return the labels of each span with a marginal of at least `threshold`.

    Fills `offset`; ``forced`` lists items (span, label) to keep in any case, sorted.
    """
    n_spans = n * (n + 1) // 2
    n_wide = len(tables.wide_label)
    labels = np.empty(1024, dtype=np.int32)
    count = 0
    at = 0
    for span in range(n_spans):
        offset[span] = count
        width = leaf.shape[1] if span < n else n_wide
        if count + width > len(labels):
            longer = np.empty(2 * len(labels) + width, dtype=np.int32)
            longer[:count] = labels[:count]
            labels = longer
        while at < len(forced) and forced[at, 0] < span:
            at += 1
        for a in range(width):
            if span < n:
                label = a
                mass = leaf[span, a] * beta_leaf[span, a]
            else:
                label = tables.wide_label[a]
                mass = alpha[span, a] * beta[span, a]
            keep = mass >= threshold and mass > 0.0
            while at < len(forced) and forced[at, 0] == span and forced[at, 1] < label:
                at += 1
            if at < len(forced) and forced[at, 0] == span and forced[at, 1] == label:
                keep = True
            if keep:
                labels[count] = label
                count += 1
    offset[n_spans] = count
    return labels[:count].copy()
