"""The packed forest of a sentence: live items and the ways to derive them.

An item is a nonterminal over a span. All derivations of the items of one span from
children labelled (b, c) form a *group*: its edges are the pairs of child items at all
split points, its applications the rules a → b c whose parent item is live. What the
edges contribute is summed once a group, whatever the number of rules.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import span_index


class RuleTables(NamedTuple):
    """Binary rules by the pair of their children.

    Pair p stands for the children ``pair_left[p], pair_right[p]`` and has the rules
    ``pair_rule[pair_rule_offset[p]:pair_rule_offset[p + 1]]``; `pair_slots` is a hash
    table of the pairs.
    """

    rule_parent: np.ndarray
    pair_left: np.ndarray
    pair_right: np.ndarray
    pair_rule_offset: np.ndarray
    pair_rule: np.ndarray
    pair_slots: np.ndarray


class Forest(NamedTuple):
    """Items, groups, edges and rule applications of one sentence.

    The items of span s are ``item_offset[s]:item_offset[s + 1]``, spans numbered by
    width, then from left to right. The groups of width w are
    ``level_offset[w]:level_offset[w + 1]``, sorted by their pair of child labels;
    group g has the edges ``edge_offset[g]:edge_offset[g + 1]`` and the applications
    ``app_offset[g]:app_offset[g + 1]``.
    """

    item_offset: np.ndarray
    item_label: np.ndarray
    item_span: np.ndarray
    level_offset: np.ndarray
    group_span: np.ndarray
    edge_offset: np.ndarray
    edge_left: np.ndarray
    edge_right: np.ndarray
    app_offset: np.ndarray
    app_rule: np.ndarray
    app_parent: np.ndarray


@njit(nogil=True, cache=True)
def fill_pair_slots(pair_left, pair_right, pair_slots):
    """Enter all pairs into an open-addressing hash table that is filled with -1."""
    mask = len(pair_slots) - 1
    for pair in range(len(pair_left)):
        slot = (pair_left[pair] * 40503 + pair_right[pair]) & mask
        while pair_slots[slot] >= 0:
            slot = (slot + 1) & mask
        pair_slots[slot] = pair


@njit(nogil=True, cache=True)
def _find_pair(left, right, rules):
    """Return the number of the children pair (left, right), -1 if no rule has it."""
    mask = len(rules.pair_slots) - 1
    slot = (left * 40503 + right) & mask
    while True:
        pair = rules.pair_slots[slot]
        if pair < 0 or (
            rules.pair_left[pair] == left and rules.pair_right[pair] == right
        ):
            return pair
        slot = (slot + 1) & mask


@njit(nogil=True, cache=True)
def _doubled(array):
    """Return a copy with twice as many places."""
    longer = np.empty(2 * len(array), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(nogil=True, cache=True)
def _offsets(bins, count, n_bins):
    """Return where each bin begins when the first `count` values are sorted by bin."""
    offset = np.zeros(n_bins + 1, dtype=np.int64)
    for t in range(count):
        offset[bins[t] + 1] += 1
    for b in range(n_bins):
        offset[b + 1] += offset[b]
    return offset


@njit(nogil=True, cache=True)
def _sorted_by(bins, offset, positions):
    """Return the positions sorted by their bin, those of one bin in their order."""
    place = offset.copy()
    order = np.empty(len(positions), dtype=np.int64)
    for position in positions:
        order[place[bins[position]]] = position
        place[bins[position]] += 1
    return order


@njit(nogil=True, cache=True)
def _taken(array, positions):
    """Return the values at some positions."""
    out = np.empty(len(positions), dtype=array.dtype)
    for t in range(len(positions)):
        out[t] = array[positions[t]]
    return out


@njit(nogil=True, cache=True)
def build_forest(
    n,
    live_offset,
    live_label,
    live_inside,
    live_outside,
    exponent,
    n_labels,
    rules,
    rule_weight,
    threshold,
    limit,
):
    """Connect the live labels of all spans, leaving out what is not worth it.

    Span s has the live labels ``live_label[live_offset[s]:live_offset[s + 1]]``, with
    their inside and outside values, scaled as in ``_chart_inside``. An edge, and a
    rule application, is kept if its own marginal reaches `threshold`, or if it is the
    best one of its group or parent: a label that can be derived from live ones stays
    derivable. Groups are sorted by (width, child labels), so that the tensors of a
    rule are used several times in a row. Returns whether the forest stayed within
    `limit` bytes, and the forest (an unusable part of it where it did not).
    """
    n_spans = n * (n + 1) // 2
    n_pairs = len(rules.pair_left)
    item_offset = np.zeros(n_spans + 1, dtype=np.int64)
    item_label = np.empty(len(live_label), dtype=np.int32)
    item_span = np.empty(len(live_label), dtype=np.int32)
    item_inside = np.empty(len(live_label))
    slot_of_label = np.full(n_labels, -1, dtype=np.int32)
    item_of_slot = np.empty(n_labels, dtype=np.int32)
    best_app = np.empty(n_labels)
    seen_at = np.full(n_pairs, -1, dtype=np.int32)
    open_of_pair = np.empty(n_pairs, dtype=np.int32)
    # Groups and edges of the current span, before the choice.
    open_pair = np.empty(n_pairs, dtype=np.int32)
    open_sum = np.empty(n_pairs)
    open_best = np.empty(n_pairs)
    open_weight = np.empty(n_pairs)
    open_group = np.empty(n_pairs, dtype=np.int32)
    try_open = np.empty(256, dtype=np.int32)
    try_left = np.empty(256, dtype=np.int32)
    try_right = np.empty(256, dtype=np.int32)
    try_value = np.empty(256)
    group_pair = np.empty(256, dtype=np.int32)
    group_width = np.empty(256, dtype=np.int32)
    group_span = np.empty(256, dtype=np.int32)
    app_group = np.empty(256, dtype=np.int32)
    app_rule = np.empty(256, dtype=np.int32)
    app_parent = np.empty(256, dtype=np.int32)
    edge_group = np.empty(256, dtype=np.int32)
    edge_left = np.empty(256, dtype=np.int32)
    edge_right = np.empty(256, dtype=np.int32)
    n_items = 0
    n_groups = 0
    n_apps = 0
    n_edges = 0
    fits = True

    for span in range(n):
        item_offset[span] = n_items
        for s in range(live_offset[span], live_offset[span + 1]):
            item_label[n_items] = live_label[s]
            item_inside[n_items] = live_inside[s]
            item_span[n_items] = span
            n_items += 1
    span = n - 1
    for width in range(2, n + 1):
        for start in range(n - width + 1):
            span += 1
            item_offset[span] = n_items
            first, last = live_offset[span], live_offset[span + 1]
            if first == last or not fits:
                continue
            n_open = 0
            n_tries = 0
            for split in range(start + 1, start + width):
                left_span = span_index(start, split, n)
                right_span = span_index(split, start + width, n)
                left_end = item_offset[left_span + 1]
                right_begin = item_offset[right_span]
                right_end = item_offset[right_span + 1]
                if item_offset[left_span] == left_end or right_begin == right_end:
                    continue
                factor = math.ldexp(
                    1.0, exponent[left_span] + exponent[right_span] - exponent[span]
                )
                for left in range(item_offset[left_span], left_end):
                    for right in range(right_begin, right_end):
                        pair = _find_pair(item_label[left], item_label[right], rules)
                        if pair < 0:
                            continue
                        if seen_at[pair] != span:
                            seen_at[pair] = span
                            open_of_pair[pair] = n_open
                            open_pair[n_open] = pair
                            open_sum[n_open] = 0.0
                            open_best[n_open] = -1.0
                            n_open += 1
                        if n_tries == len(try_open):
                            try_open = _doubled(try_open)
                            try_left = _doubled(try_left)
                            try_right = _doubled(try_right)
                            try_value = _doubled(try_value)
                        value = factor * item_inside[left] * item_inside[right]
                        which = open_of_pair[pair]
                        open_sum[which] += value
                        open_best[which] = max(open_best[which], value)
                        try_open[n_tries] = which
                        try_left[n_tries] = left
                        try_right[n_tries] = right
                        try_value[n_tries] = value
                        n_tries += 1
            for s in range(first, last):
                slot_of_label[live_label[s]] = s - first
                item_of_slot[s - first] = -1
                best_app[s - first] = -1.0
            for which in range(n_open):
                pair = open_pair[which]
                for q in range(
                    rules.pair_rule_offset[pair], rules.pair_rule_offset[pair + 1]
                ):
                    rule = rules.pair_rule[q]
                    slot = slot_of_label[rules.rule_parent[rule]]
                    if slot >= 0:
                        value = rule_weight[rule] * open_sum[which]
                        best_app[slot] = max(best_app[slot], value)
            for s in range(first, last):
                if best_app[s - first] >= 0.0:
                    item_label[n_items] = live_label[s]
                    item_inside[n_items] = live_inside[s]
                    item_span[n_items] = span
                    item_of_slot[s - first] = n_items
                    n_items += 1
            for which in range(n_open):
                pair = open_pair[which]
                open_group[which] = -1
                open_weight[which] = 0.0
                for q in range(
                    rules.pair_rule_offset[pair], rules.pair_rule_offset[pair + 1]
                ):
                    rule = rules.pair_rule[q]
                    slot = slot_of_label[rules.rule_parent[rule]]
                    if slot < 0:
                        continue
                    value = rule_weight[rule] * open_sum[which]
                    above = live_outside[first + slot]
                    if value * above < threshold and value < best_app[slot]:
                        continue
                    if n_apps == len(app_group):
                        app_group = _doubled(app_group)
                        app_rule = _doubled(app_rule)
                        app_parent = _doubled(app_parent)
                    app_group[n_apps] = n_groups
                    app_rule[n_apps] = rule
                    app_parent[n_apps] = item_of_slot[slot]
                    n_apps += 1
                    open_group[which] = n_groups
                    open_weight[which] += rule_weight[rule] * above
                if open_group[which] >= 0:
                    if n_groups == len(group_pair):
                        group_pair = _doubled(group_pair)
                        group_width = _doubled(group_width)
                        group_span = _doubled(group_span)
                    group_pair[n_groups] = pair
                    group_width[n_groups] = width
                    group_span[n_groups] = span
                    n_groups += 1
            for t in range(n_tries):
                which = try_open[t]
                if open_group[which] < 0 or (
                    try_value[t] * open_weight[which] < threshold
                    and try_value[t] < open_best[which]
                ):
                    continue
                if n_edges == len(edge_group):
                    edge_group = _doubled(edge_group)
                    edge_left = _doubled(edge_left)
                    edge_right = _doubled(edge_right)
                edge_group[n_edges] = open_group[which]
                edge_left[n_edges] = try_left[t]
                edge_right[n_edges] = try_right[t]
                n_edges += 1
            for s in range(first, last):
                slot_of_label[live_label[s]] = -1
            fits = 40 * (n_edges + n_apps) + 60 * n_groups <= limit
    item_offset[n_spans] = n_items

    by_pair = _sorted_by(
        group_pair, _offsets(group_pair, n_groups, n_pairs), np.arange(n_groups)
    )
    level_offset = _offsets(group_width, n_groups, n + 1)
    order = _sorted_by(group_width, level_offset, by_pair)
    rank = np.empty(n_groups, dtype=np.int32)
    ordered_span = np.empty(n_groups, dtype=np.int32)
    for g in range(n_groups):
        rank[order[g]] = g
        ordered_span[g] = group_span[order[g]]
    for e in range(n_edges):
        edge_group[e] = rank[edge_group[e]]
    for a in range(n_apps):
        app_group[a] = rank[app_group[a]]
    edge_offset = _offsets(edge_group, n_edges, n_groups)
    edges = _sorted_by(edge_group, edge_offset, np.arange(n_edges))
    app_offset = _offsets(app_group, n_apps, n_groups)
    apps = _sorted_by(app_group, app_offset, np.arange(n_apps))
    identity = np.arange(n_items)
    forest = Forest(
        item_offset,
        _taken(item_label, identity),
        _taken(item_span, identity),
        level_offset,
        ordered_span,
        edge_offset,
        _taken(edge_left, edges),
        _taken(edge_right, edges),
        app_offset,
        _taken(app_rule, apps),
        _taken(app_parent, apps),
    )
    return fits, forest
