"""The packed forest of a sentence: live items and the ways to derive them.

An item is a nonterminal over a span. All derivations of the items of one span from
children labelled (b, c) form a *group*: its edges are the pairs of child items at all
split points, its applications the rules a → b c whose parent item is live. What the
edges contribute is summed once a group, whatever the number of rules.
"""

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
def _reserve(array, length):
    """Return the array, or a longer copy where it has fewer than `length` places."""
    if length <= len(array):
        return array
    longer = np.empty(max(length, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(nogil=True, cache=True)
def _offsets(bins, n_bins):
    """Return where each bin begins when values are sorted by bin."""
    offset = np.zeros(n_bins + 1, dtype=np.int64)
    for value in bins:
        offset[value + 1] += 1
    for b in range(n_bins):
        offset[b + 1] += offset[b]
    return offset


@njit(nogil=True, cache=True)
def _stable_order(bins, offset, before):
    """Return the positions of `before` sorted by bin, equal ones in their order."""
    place = offset.copy()
    order = np.empty(len(before), dtype=np.int64)
    for position in before:
        order[place[bins[position]]] = position
        place[bins[position]] += 1
    return order


@njit(nogil=True, cache=True)
def build_forest(n, live_offset, live_label, n_labels, rules, limit):
    """Connect the live labels of all spans, leaving out what cannot be derived.

    The labels ``live_label[live_offset[s]:live_offset[s + 1]]`` are live on span s.
    Groups are sorted by (width, child labels), so that the tensors of a rule are used
    several times in a row. Returns whether the forest stayed within `limit` bytes, and
    the forest (an unusable part of it where it did not).
    """
    n_spans = n * (n + 1) // 2
    n_pairs = len(rules.pair_left)
    item_offset = np.zeros(n_spans + 1, dtype=np.int64)
    item_label = np.empty(len(live_label), dtype=np.int32)
    item_span = np.empty(len(live_label), dtype=np.int32)
    slot_of_label = np.full(n_labels, -1, dtype=np.int32)
    item_of_slot = np.empty(n_labels, dtype=np.int32)
    seen_at = np.full(n_pairs, -1, dtype=np.int32)
    group_of_pair = np.empty(n_pairs, dtype=np.int32)
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
            item_span[n_items] = span
            n_items += 1
    span = n - 1
    for width in range(2, n + 1):
        for start in range(n - width + 1):
            span += 1
            item_offset[span] = n_items
            live = live_label[live_offset[span] : live_offset[span + 1]]
            if len(live) == 0 or not fits:
                continue
            for s in range(len(live)):
                slot_of_label[live[s]] = s
                item_of_slot[s] = -1
            first_app = n_apps
            for split in range(start + 1, start + width):
                left_span = span_index(start, split, n)
                right_span = span_index(split, start + width, n)
                right_begin = item_offset[right_span]
                right_end = item_offset[right_span + 1]
                for left in range(item_offset[left_span], item_offset[left_span + 1]):
                    for right in range(right_begin, right_end):
                        pair = _find_pair(item_label[left], item_label[right], rules)
                        if pair < 0:
                            continue
                        if seen_at[pair] != span:
                            seen_at[pair] = span
                            group_of_pair[pair] = -1
                            for q in range(
                                rules.pair_rule_offset[pair],
                                rules.pair_rule_offset[pair + 1],
                            ):
                                rule = rules.pair_rule[q]
                                slot = slot_of_label[rules.rule_parent[rule]]
                                if slot < 0:
                                    continue
                                app_group = _reserve(app_group, n_apps + 1)
                                app_rule = _reserve(app_rule, n_apps + 1)
                                app_parent = _reserve(app_parent, n_apps + 1)
                                app_group[n_apps] = n_groups
                                app_rule[n_apps] = rule
                                app_parent[n_apps] = slot
                                item_of_slot[slot] = 0
                                group_of_pair[pair] = n_groups
                                n_apps += 1
                            if group_of_pair[pair] >= 0:
                                group_pair = _reserve(group_pair, n_groups + 1)
                                group_width = _reserve(group_width, n_groups + 1)
                                group_span = _reserve(group_span, n_groups + 1)
                                group_pair[n_groups] = pair
                                group_width[n_groups] = width
                                group_span[n_groups] = span
                                n_groups += 1
                        if group_of_pair[pair] >= 0:
                            edge_group = _reserve(edge_group, n_edges + 1)
                            edge_left = _reserve(edge_left, n_edges + 1)
                            edge_right = _reserve(edge_right, n_edges + 1)
                            edge_group[n_edges] = group_of_pair[pair]
                            edge_left[n_edges] = left
                            edge_right[n_edges] = right
                            n_edges += 1
                if 40 * n_edges + 40 * n_apps + 60 * n_groups > limit:
                    fits = False
                    break
            for s in range(len(live)):
                slot_of_label[live[s]] = -1
                if item_of_slot[s] == 0:
                    item_label[n_items] = live[s]
                    item_span[n_items] = span
                    item_of_slot[s] = n_items
                    n_items += 1
            for a in range(first_app, n_apps):
                app_parent[a] = item_of_slot[app_parent[a]]
    item_offset[n_spans] = n_items

    pairs = group_pair[:n_groups]
    widths = group_width[:n_groups]
    order = np.arange(n_groups)
    order = _stable_order(pairs, _offsets(pairs, n_pairs), order)
    level_offset = _offsets(widths, n + 1)
    order = _stable_order(widths, level_offset, order)
    rank = np.empty(n_groups, dtype=np.int64)
    rank[order] = np.arange(n_groups)
    edge_rank = rank[edge_group[:n_edges]]
    edge_offset = _offsets(edge_rank, n_groups)
    edges = _stable_order(edge_rank, edge_offset, np.arange(n_edges))
    app_rank = rank[app_group[:n_apps]]
    app_offset = _offsets(app_rank, n_groups)
    apps = _stable_order(app_rank, app_offset, np.arange(n_apps))
    forest = Forest(
        item_offset,
        item_label[:n_items].copy(),
        item_span[:n_items].copy(),
        level_offset,
        group_span[order],
        edge_offset,
        edge_left[edges],
        edge_right[edges],
        app_offset,
        app_rule[apps],
        app_parent[apps],
    )
    return fits, forest
