"""The packed forest of one or several sentences: live items and their derivations.

An item is a nonterminal over a span. All derivations of the items of one span from
children labelled (b, c) form a *group*: its edges are the pairs of child items at all
split points, its applications the rules a → b c whose parent item is live. The edges
are summed once per group, whatever the number of rules. The spans of several sentences
are numbered one sentence after the other.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL, lengthened, set_row


class LiveItems(NamedTuple):
    """The items of sentences with their values under a plain PCFG.

    Attributes
    ----------
    offset : ndarray of int64, shape (n_spans + 1,)
        Span s has the items ``offset[s]:offset[s + 1]``.
    label : ndarray of int32, shape (n_items,)
        Nonterminals.
    inside, outside : ndarray of float64, shape (n_items,)
        Scaled values; their product is the marginal, in the scale of `total`.
    exponent : ndarray of int32, shape (n_spans,)
        Power of two of each span.
    row_span : ndarray of int64, shape (n_rows + 1,)
        Sentence r has the spans ``row_span[r]:row_span[r + 1]``.
    total : ndarray of float64, shape (n_rows,)
        Scaled probability of each sentence; 0 for one without items.
    """

    offset: np.ndarray
    label: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    exponent: np.ndarray
    row_span: np.ndarray
    total: np.ndarray

    @property
    def posterior(self):
        """Marginals divided by the probability of the sentence."""
        n_items = np.diff(self.offset[self.row_span])
        return self.inside * self.outside / np.repeat(self.total, n_items)


class RuleTables(NamedTuple):
    """Binary rules of a plain PCFG by the pair of their children.

    Pair p stands for the children ``pair_left[p], pair_right[p]`` and has the rules
    ``pair_rule[pair_rule_offset[p]:pair_rule_offset[p + 1]]``; `pair_slots` is a hash
    table of the pairs. `n_labels` is the number of nonterminals.
    """

    n_labels: int
    rule_parent: np.ndarray
    rule_weight: np.ndarray
    pair_left: np.ndarray
    pair_right: np.ndarray
    pair_rule_offset: np.ndarray
    pair_rule: np.ndarray
    pair_slots: np.ndarray


class Forest(NamedTuple):
    """Items, groups, edges and rule applications of sentences.

    Sentence r has ``n_words[r]`` words and the spans ``row_span[r]:row_span[r + 1]``,
    numbered by width, then from left to right. The items of span s are
    ``item_offset[s]:item_offset[s + 1]``. The groups of width w are
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
    n_words: np.ndarray
    row_span: np.ndarray


@njit(**KERNEL)
def fill_pair_slots(pair_left, pair_right, pair_slots):
    """Enter all pairs into an open-addressing hash table that is filled with -1."""
    mask = len(pair_slots) - 1
    for pair in range(len(pair_left)):
        slot = (pair_left[pair] * 40503 + pair_right[pair]) & mask
        while pair_slots[slot] >= 0:
            slot = (slot + 1) & mask
        pair_slots[slot] = pair


@njit(**HELPER)
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


@njit(**KERNEL)
def sort_rows(bins, n_bins, before):
    """Sort the rows of a table by their bin.

    Parameters
    ----------
    bins : ndarray of int32, shape (n_rows,)
        Bin of each row.
    n_bins : int
        Number of bins.
    before : ndarray of int64
        Row numbers in their order before, which the rows of a bin keep; empty for the
        order of the table.

    Returns
    -------
    offset : ndarray of int64, shape (n_bins + 1,)
        Where each bin begins.
    order : ndarray of int64, shape (n_rows,)
        Row numbers, sorted.
    """
    offset = np.zeros(n_bins + 1, dtype=np.int64)
    for row in range(len(bins)):
        offset[bins[row] + 1] += 1
    for b in range(n_bins):
        offset[b + 1] += offset[b]
    place = offset.copy()
    order = np.empty(len(bins), dtype=np.int64)
    for t in range(len(order)):
        row = before[t] if len(before) > 0 else t
        order[place[bins[row]]] = row
        place[bins[row]] += 1
    return offset, order


@njit(**KERNEL)
def connect_items(n_words, live, rules, threshold, limit):
    """Find the groups, edges and rule applications of live items, in any order.

    Parameters
    ----------
    n_words, live, rules, threshold, limit
        As in :func:`build_forest`.

    Returns
    -------
    fits : ndarray of bool, shape (n_rows,)
        Whether each sentence stayed within the limit.
    counts : tuple of int
        Numbers of items, groups, edges and applications: what the tables hold.
    item_offset, item_label, item_span : ndarray
        As in a :class:`Forest`.
    groups : ndarray of int32, shape (n_places, 3)
        Pair of children, width and span of each group.
    edges : ndarray of int32, shape (n_places, 3)
        Group and children of each edge.
    apps : ndarray of int32, shape (n_places, 3)
        Group, rule and parent of each application.
    """
    live_offset, live_label = live.offset, live.label
    live_inside, live_outside, exponent = live.inside, live.outside, live.exponent
    n_labels, rule_weight = rules.n_labels, rules.rule_weight
    pair_rule_offset = rules.pair_rule_offset
    n_spans = len(live_offset) - 1
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
    tries = np.empty((256, 3), dtype=np.int32)
    try_value = np.empty(256)
    groups = np.empty((256, 3), dtype=np.int32)
    apps = np.empty((256, 3), dtype=np.int32)
    edges = np.empty((256, 3), dtype=np.int32)
    n_items = 0
    n_groups = 0
    n_apps = 0
    n_edges = 0
    fits = np.ones(len(n_words), dtype=np.bool_)
    for row in range(len(n_words)):
        n, at = n_words[row], live.row_span[row]
        smallest = threshold * live.total[row]
        first_item, first_group = n_items, n_groups
        first_app, first_edge = n_apps, n_edges
        for span in range(at, at + n):
            item_offset[span] = n_items
            for s in range(live_offset[span], live_offset[span + 1]):
                item_label[n_items] = live_label[s]
                item_inside[n_items] = live_inside[s]
                item_span[n_items] = span
                n_items += 1
        span = at + n - 1
        for width in range(2, n + 1):
            for start in range(n - width + 1):
                span += 1
                item_offset[span] = n_items
                first, last = live_offset[span], live_offset[span + 1]
                if first == last or not fits[row]:
                    continue
                n_open = 0
                n_tries = 0
                for split in range(start + 1, start + width):
                    left_span = at + span_index(start, split, n)
                    right_span = at + span_index(split, start + width, n)
                    left_end = item_offset[left_span + 1]
                    right_begin = item_offset[right_span]
                    right_end = item_offset[right_span + 1]
                    if item_offset[left_span] == left_end or right_begin == right_end:
                        continue
                    factor = power_of_two(
                        exponent[left_span] + exponent[right_span] - exponent[span]
                    )
                    for left in range(item_offset[left_span], left_end):
                        for right in range(right_begin, right_end):
                            pair = _find_pair(
                                item_label[left], item_label[right], rules
                            )
                            if pair < 0:
                                continue
                            if seen_at[pair] != span:
                                seen_at[pair] = span
                                open_of_pair[pair] = n_open
                                open_pair[n_open] = pair
                                open_sum[n_open] = 0.0
                                open_best[n_open] = -1.0
                                n_open += 1
                            if n_tries == len(tries):
                                tries = lengthened(tries, 2 * len(tries))
                                try_value = lengthened(try_value, 2 * len(try_value))
                            value = factor * item_inside[left] * item_inside[right]
                            which = open_of_pair[pair]
                            open_sum[which] += value
                            open_best[which] = max(open_best[which], value)
                            set_row(tries, n_tries, which, left, right)
                            try_value[n_tries] = value
                            n_tries += 1
                for s in range(first, last):
                    slot_of_label[live_label[s]] = s - first
                    item_of_slot[s - first] = -1
                    best_app[s - first] = -1.0
                for which in range(n_open):
                    pair = open_pair[which]
                    for q in range(pair_rule_offset[pair], pair_rule_offset[pair + 1]):
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
                    for q in range(pair_rule_offset[pair], pair_rule_offset[pair + 1]):
                        rule = rules.pair_rule[q]
                        slot = slot_of_label[rules.rule_parent[rule]]
                        if slot < 0:
                            continue
                        value = rule_weight[rule] * open_sum[which]
                        above = live_outside[first + slot]
                        if value * above < smallest and value < best_app[slot]:
                            continue
                        if n_apps == len(apps):
                            apps = lengthened(apps, 2 * len(apps))
                        set_row(apps, n_apps, n_groups, rule, item_of_slot[slot])
                        n_apps += 1
                        open_group[which] = n_groups
                        open_weight[which] += rule_weight[rule] * above
                    if open_group[which] >= 0:
                        if n_groups == len(groups):
                            groups = lengthened(groups, 2 * len(groups))
                        set_row(groups, n_groups, pair, width, span)
                        n_groups += 1
                for t in range(n_tries):
                    which = tries[t, 0]
                    value = try_value[t]
                    likely = value * open_weight[which] >= smallest
                    if open_group[which] < 0 or not (
                        likely or value >= open_best[which]
                    ):
                        continue
                    if n_edges == len(edges):
                        edges = lengthened(edges, 2 * len(edges))
                    set_row(edges, n_edges, open_group[which], tries[t, 1], tries[t, 2])
                    n_edges += 1
                for s in range(first, last):
                    slot_of_label[live_label[s]] = -1
                size = 40 * (n_edges - first_edge + n_apps - first_app)
                fits[row] = size + 60 * (n_groups - first_group) <= limit
        if not fits[row]:
            n_items, n_groups, n_apps, n_edges = (
                first_item,
                first_group,
                first_app,
                first_edge,
            )
            for span in range(at, live.row_span[row + 1]):
                item_offset[span] = n_items
    item_offset[n_spans] = n_items

    counts = n_items, n_groups, n_edges, n_apps
    return fits, counts, item_offset, item_label, item_span, groups, edges, apps


def _columns(table, n_rows):
    """Return the columns of the first rows of a table, each in one piece."""
    return np.ascontiguousarray(table[:n_rows].T)


def build_forest(n_words, live, rules, threshold, limit):
    """Connect the live labels of all spans, except for unlikely derivations.

    An edge, or a rule application, is kept if its own marginal reaches `threshold`, or
    if it is the best one of its group or parent: a label that can be derived from live
    ones stays derivable. Groups are sorted by (width, child labels), so that the
    tensors of a rule are used several times in a row.

    Parameters
    ----------
    n_words : ndarray of int64, shape (n_rows,)
        Number of words of each sentence.
    live : LiveItems
        Live labels of all spans, with their values.
    rules : RuleTables
        Rules and their weights.
    threshold : float
        Smallest posterior of an edge or a rule application.
    limit : int
        Most bytes that the forest of one sentence may take.

    Returns
    -------
    fits : ndarray of bool, shape (n_rows,)
        Whether each sentence stayed within the limit.
    forest : Forest
        Without the sentences that did not.
    """
    fits, counts, item_offset, item_label, item_span, *tables = connect_items(
        n_words, live, rules, threshold, limit
    )
    n_items, *rows = counts
    groups, edges, apps = map(_columns, tables, rows)
    pair, width, span = groups
    none = np.empty(0, dtype=np.int64)
    _, by_pair = sort_rows(pair, len(rules.pair_left), none)
    longest = int(n_words.max(initial=0))
    level_offset, order = sort_rows(width, longest + 1, by_pair)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    edge_offset, edge_order = sort_rows(rank[edges[0]], len(order), none)
    app_offset, app_order = sort_rows(rank[apps[0]], len(order), none)
    forest = Forest(
        item_offset,
        item_label[:n_items].copy(),
        item_span[:n_items].copy(),
        level_offset,
        span[order],
        edge_offset,
        edges[1][edge_order],
        edges[2][edge_order],
        app_offset,
        apps[1][app_order],
        apps[2][app_order],
        n_words,
        live.row_span,
    )
    return fits, forest
