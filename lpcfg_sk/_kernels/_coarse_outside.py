"""Outside values of the pruning PCFG, and the items that reach a threshold."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_forest import LiveItems
from lpcfg_sk._kernels._chart_spans import power_of_two, span_count, span_index
from lpcfg_sk._kernels._coarse_inside import is_dense, places
from lpcfg_sk._kernels._shared import HELPER, REASSOC


@njit(**HELPER, fastmath=REASSOC)
def _pass_down(x, weights, b, inside, right, outside):
    """Add x times a row of weights; return the product of weights and inside row.

    Parameters
    ----------
    x : float
        Inside value of the left child.
    weights : ndarray of float32, shape (n_left, multiple of ROW)
        Outside values times rule probabilities, by left and right child.
    b : int
        Row of the left child.
    inside, outside : ndarray of float32, shape (n_spans, multiple of ROW)
        Values of right children; those of outside are added to.
    right : int
        Span of the right child.
    """
    total = np.float32(0.0)
    for c in range(weights.shape[1]):
        total += weights[b, c] * inside[right, c]
        outside[right, c] += x * weights[b, c]
    return total


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


@njit(nogil=True, cache=True)
def coarse_outside(tables, rules, chart, boolean, floor, root, out):
    """Fill the outside values of all items from those of the root.

    Parameters
    ----------
    tables : CoarseTables
        Rules of the grammar.
    rules : tuple of two WordRules
        What ``word_rules`` returns.
    chart : CoarseChart
        Inside values. Spans whose items all hand nothing down are no longer `alive`.
    boolean : bool
        Whether all values are 1 and only say what can be derived.
    floor : float
        Items with a marginal of at most `floor` hand nothing down, which spares most
        of the work.
    root : ndarray of float64, shape (n_wide,)
        Weight of each wide label at the root.
    out : CoarseOutside
        Zeros, which are filled.
    """
    leaf, exponent, alive = chart.leaf, chart.exponent, chart.alive
    offset, label, value = chart.offset, chart.label, chart.value
    left_offset, left_item = chart.left_offset, chart.left_item
    rights, n = chart.rights, len(leaf)
    first, last = rules
    up, pp, columns = tables.up, tables.pp, tables.columns
    beta, leaf_mass = out.item, out.leaf_mass
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    n_spans = span_count(n)
    left_place = places(tables.left_label, n_wide)
    right_place = places(tables.right_label, n_wide)
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
                    for q in range(up.offset[a], up.offset[a + 1]):
                        b = up.left[q]
                        active[b] = True
                        weights[b, up.right[q]] += beta[t] * up.prob[q]
            if not alive[span]:
                continue
            if width == 2:
                factor = power_of_two(exponent[i] + exponent[i + 1] - exponent[span])
                for b in range(leaf.shape[1]):
                    x = factor * leaf[i, b]
                    if x == 0.0:
                        continue
                    for q in range(pp.offset[b], pp.offset[b + 1]):
                        y = x * above[pp.parent[q]] * pp.prob[q]
                        y *= leaf[i + 1, pp.child[q]]
                        leaf_mass[i, b] += y
                        leaf_mass[i + 1, pp.child[q]] += y
            else:
                rest = span_index(i + 1, j, n)
                _pass_to_word(i, rest, first, chart, exponent[span], above, out)
                rest = span_index(i, j - 1, n)
                _pass_to_word(j - 1, rest, last, chart, exponent[span], above, out)
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
                            if is_dense(columns, b, rights):
                                beta[item] += factor * _pass_down(
                                    x, weights, b, rights, right, beta_rights
                                )
                                continue
                            total = 0.0
                            for q in range(columns.offset[b], columns.offset[b + 1]):
                                c = columns.place[q]
                                total += weights[b, c] * rights[right, c]
                                beta_rights[right, c] += x * weights[b, c]
                            beta[item] += factor * total
                for b in range(n_left):
                    if active[b]:
                        active[b] = False
                        for c in range(weights.shape[1]):
                            weights[b, c] = 0.0
            for t in range(offset[span], offset[span + 1]):
                above[label[t]] = 0.0


@njit(nogil=True, cache=True)
def live_items(tables, chart, outside, threshold, total):
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
    leaf, offset, label, value = chart.leaf, chart.offset, chart.label, chart.value
    beta, leaf_mass, n = outside.item, outside.leaf_mass, len(leaf)
    n_spans = span_count(n)
    places = len(beta) + leaf.size
    live_offset = np.empty(n_spans + 1, dtype=np.int64)
    live_label = np.empty(places, dtype=np.int32)
    live_inside = np.empty(places)
    live_outside = np.empty(places)
    count = 0
    for span in range(n_spans):
        live_offset[span] = count
        if span < n:
            for a in range(leaf.shape[1]):
                mass = leaf_mass[span, a]
                if mass >= threshold and mass > 0.0:
                    live_label[count] = a
                    live_inside[count] = leaf[span, a]
                    live_outside[count] = mass / leaf[span, a]
                    count += 1
        elif chart.alive[span]:
            for t in range(offset[span], offset[span + 1]):
                mass = value[t] * beta[t]
                if mass >= threshold and mass > 0.0:
                    live_label[count] = tables.wide_label[label[t]]
                    live_inside[count] = value[t]
                    live_outside[count] = beta[t]
                    count += 1
    live_offset[n_spans] = count
    row_span = np.zeros(2, dtype=np.int64)
    row_span[1] = n_spans
    totals = np.empty(1)
    totals[0] = total
    return LiveItems(
        live_offset,
        live_label[:count],
        live_inside[:count],
        live_outside[:count],
        chart.exponent,
        row_span,
        totals,
    )
