"""Best derivation of a string under context-free rules of any length."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._cfg_chains import add_probable_chains, add_rewarded_chains
from lpcfg_sk._kernels._chart_spans import span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held, set_row


class BestChart(NamedTuple):
    """Best derivations of one string, and how they were made.

    Attributes
    ----------
    score : float64 array of shape (n_spans, N)
        Score of the best derivation of each nonterminal over each span.
    bottom : int32 array of shape (n_spans, N)
        Lower end of its chain of unary rules, or of the part of it that `next_hop`
        describes.
    leave : int32 array of shape (n_spans, N)
        Symbol below that lower end, -1 where the chain ends there.
    base_rule : int32 array of shape (n_spans, N)
        Rule of the best derivation without a unary rule at its top.
    item_offset : int64 array of shape (n_spans, 2)
        Items of span s are ``item_offset[s, 0]:item_offset[s, 1]``.
    items : int32 array of shape (n_items,)
        Symbols and trie nodes, numbered as in :class:`CFGTables`.
    item_scores : float64 array of shape (n_items,)
        Their best scores.
    splits : int32 array of shape (n_items,)
        Where the last symbol of a trie node begins.
    """

    score: np.ndarray
    bottom: np.ndarray
    leave: np.ndarray
    base_rule: np.ndarray
    item_offset: np.ndarray
    items: np.ndarray
    item_scores: np.ndarray
    splits: np.ndarray


class _Prefixes(NamedTuple):
    """Best scores of the trie nodes over the span at hand.

    Attributes
    ----------
    score : float64 array of shape (n_trie,)
        -inf where a node has no derivation.
    split : int32 array of shape (n_trie,)
        Where its last symbol begins.
    touched : int32 array of shape (n_trie,)
        Nodes with a derivation, in the order in which they were found.
    """

    score: np.ndarray
    split: np.ndarray
    touched: np.ndarray


@held
@njit(**KERNEL)
def cfg_best_tree(words, tables, weights, chains, bonus, chart):
    """Derivation with the largest sum of rule scores and constituent scores.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers, -1 for a token that the grammar does not know.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Scores of rules, -inf to forbid one, and of the best chains of unary rules; with
        `bonus`, the chains within components.
    chains : UnaryChains
        The chains of unary rules.
    bonus : float64 array of shape (n * (n + 1) // 2, N) or (0, 0)
        Score of a constituent A over a span, numbered by `span_index`.
    chart : BestChart
        Written to; on entry it holds no derivation, chain or rule. The caller allocates
        it, because arrays of a kernel that runs out of memory are never freed.

    Returns
    -------
    fits : bool
        Whether there was room for all items; otherwise there is no tree.
    label, size, parent : int32 arrays
        Nodes of the tree in preorder; the label of a bare word is -1. Empty where the
        string has no derivation, or scores are such that the best chains of unary
        rules have no end.
    """
    n = len(words)
    root = n * (n + 1) // 2 - 1
    fits = _fill_chart(words, tables, weights, chains, bonus, chart)
    if fits and n > 0 and chart.score[root, tables.start] > -np.inf:
        label, size, parent = _read_tree(n, tables, chains.next_hop, chart)
    else:
        label = size = parent = np.zeros(0, dtype=np.int32)
    return fits, label, size, parent


@njit(**HELPER)
def _fill_chart(words, tables, weights, chains, bonus, chart):
    """Fill the chart bottom-up.

    Parameters
    ----------
    words, tables, weights, chains, bonus, chart
        As in `cfg_best_tree`.

    Returns
    -------
    fits : bool
        Whether there was room for all items.
    """
    n, n_nonterminals = len(words), tables.n_nonterminals
    n_trie = len(tables.trie_right)
    prefixes = _Prefixes(
        np.full(n_trie, -np.inf),
        np.zeros(n_trie, dtype=np.int32),
        np.empty(n_trie, dtype=np.int32),
    )
    base = np.empty(n_nonterminals)
    n_items = 0
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            span = span_index(i, i + width, n)
            n_touched = _extend_prefixes(words, i, i + width, tables, chart, prefixes)
            touched = prefixes.touched[:n_touched]
            word = words[i] if width == 1 else -1
            base_rule = chart.base_rule[span]
            _find_base_rules(word, touched, prefixes, tables, weights, base, base_rule)
            score, bottom = chart.score[span], chart.bottom[span]
            if bonus.size > 0:
                leave = chart.leave[span]
                add_rewarded_chains(
                    base, weights, chains, bonus[span], score, bottom, leave
                )
            else:
                add_probable_chains(base, weights, score, bottom)
            if n_items + n_nonterminals + n_touched + 1 > len(chart.items):
                return False
            n_items = _store_items(
                n_items, span, word, touched, prefixes, tables, chart
            )
    return True


@njit(**HELPER)
def _extend_prefixes(words, i, j, tables, chart, prefixes):
    """Find the best scores of the trie nodes over a span.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers.
    i, j : int
        The span.
    tables : CFGTables
        The grammar.
    chart : BestChart
        Filled for all narrower spans.
    prefixes : _Prefixes
        Output; all scores are -inf before.

    Returns
    -------
    n_touched : int
        Number of trie nodes with a derivation.
    """
    n, n_nonterminals = len(words), tables.n_nonterminals
    chart_score = chart.score
    items, item_scores, item_offset = chart.items, chart.item_scores, chart.item_offset
    left_offset, trie_right = tables.left_offset, tables.trie_right
    score, split, touched = prefixes.score, prefixes.split, prefixes.touched
    n_touched = 0
    for k in range(i + 1, j):
        left = span_index(i, k, n)
        right_score = chart_score[span_index(k, j, n)]
        right_word = -2
        if j - k == 1:
            right_word = n_nonterminals + words[k]
        for e in range(item_offset[left, 0], item_offset[left, 1]):
            item = items[e]
            for t in range(left_offset[item], left_offset[item + 1]):
                symbol = trie_right[t]
                if symbol < n_nonterminals:
                    v = item_scores[e] + right_score[symbol]
                elif symbol == right_word:
                    v = item_scores[e]
                else:
                    continue
                if v > score[t]:
                    if score[t] == -np.inf:
                        touched[n_touched] = t
                        n_touched += 1
                    score[t] = v
                    split[t] = k
    return n_touched


@njit(**HELPER)
def _find_base_rules(word, touched, prefixes, tables, weights, base, base_rule):
    """Find the best derivations over a span without a unary rule at their top.

    Parameters
    ----------
    word : int
        Terminal of a span of one word, else -1.
    touched : int32 array
        Trie nodes with a derivation.
    prefixes : _Prefixes
        Their scores.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Scores of the rules.
    base : float64 array of shape (N,)
        Output: score of the best derivation of each nonterminal.
    base_rule : int32 array of shape (N,)
        Output: its rule; not written where there is no derivation.
    """
    done_offset, done_rule = tables.done_offset, tables.done_rule
    word_offset, word_rule = tables.word_offset, tables.word_rule
    rule_lhs, rule_score, prefix_score = tables.rule_lhs, weights.rule, prefixes.score
    base[:] = -np.inf
    for t in touched:
        for d in range(done_offset[t], done_offset[t + 1]):
            r = done_rule[d]
            v = rule_score[r] + prefix_score[t]
            if v > base[rule_lhs[r]]:
                base[rule_lhs[r]] = v
                base_rule[rule_lhs[r]] = r
    if word >= 0:
        for d in range(word_offset[word], word_offset[word + 1]):
            r = word_rule[d]
            if rule_score[r] > base[rule_lhs[r]]:
                base[rule_lhs[r]] = rule_score[r]
                base_rule[rule_lhs[r]] = r


@njit(**HELPER)
def _store_items(n_items, span, word, touched, prefixes, tables, chart):
    """Write the items of a span to the chart, and empty `prefixes` again.

    Parameters
    ----------
    n_items : int
        Number of items before.
    span : int
        The span.
    word : int
        Terminal of a span of one word, else -1.
    touched : int32 array
        Trie nodes with a derivation.
    prefixes : _Prefixes
        Their scores.
    tables : CFGTables
        The grammar.
    chart : BestChart
        The chart, with room for the items.

    Returns
    -------
    n_items : int
        Number of items after.
    """
    items, item_scores, splits = chart.items, chart.item_scores, chart.splits
    left_offset, n_nonterminals = tables.left_offset, tables.n_nonterminals
    n_symbols = n_nonterminals + tables.n_terminals
    score, prefix_score, split = chart.score[span], prefixes.score, prefixes.split
    chart.item_offset[span, 0] = n_items
    for a in range(n_nonterminals):
        if score[a] > -np.inf and left_offset[a] < left_offset[a + 1]:
            items[n_items] = a
            item_scores[n_items] = score[a]
            n_items += 1
    if word >= 0:
        item = n_nonterminals + word
        if left_offset[item] < left_offset[item + 1]:
            items[n_items] = item
            item_scores[n_items] = 0.0
            n_items += 1
    for t in touched:
        items[n_items] = n_symbols + t
        item_scores[n_items] = prefix_score[t]
        splits[n_items] = split[t]
        n_items += 1
        prefix_score[t] = -np.inf
    chart.item_offset[span, 1] = n_items
    return n_items


@njit(**HELPER)
def _read_tree(n, tables, next_hop, chart):
    """Read the best tree off a chart.

    Parameters
    ----------
    n : int
        Number of words.
    tables : CFGTables
        The grammar.
    next_hop : int32 array of shape (N, N)
        Symbols on the best chains.
    chart : BestChart
        The chart, with a derivation of the start symbol over all words.

    Returns
    -------
    label, size, parent : int32 arrays
        Nodes of the tree in preorder; none where a chain does not lead to a rule.
    """
    nothing = np.zeros(0, dtype=np.int32)
    n_nonterminals = tables.n_nonterminals
    n_symbols = n_nonterminals + tables.n_terminals
    most = 2 * n * (n_nonterminals + 1)
    label = np.empty(most, dtype=np.int32)
    parent = np.empty(most, dtype=np.int32)
    n_nodes = 0
    # Symbol, begin, end and parent of subtrees to be read, the leftmost last.
    agenda = np.empty((2 * n + 2, 4), dtype=np.int32)
    set_row(agenda, 0, tables.start, 0, n)
    agenda[0, 3] = -1
    n_open = 1
    while n_open > 0:
        n_open -= 1
        symbol, i, j, above = agenda[n_open]
        if symbol >= n_nonterminals:
            if n_nodes == most:
                return nothing, nothing, nothing
            label[n_nodes] = -1
            parent[n_nodes] = above
            n_nodes += 1
            continue
        span = span_index(i, j, n)
        lowest = chart.bottom[span, symbol]
        while symbol >= 0:
            # A chain of the most probable rules ends, unless scores are not logarithms
            # of probabilities.
            if n_nodes == most:
                return nothing, nothing, nothing
            label[n_nodes] = symbol
            parent[n_nodes] = above
            above = n_nodes
            n_nodes += 1
            if symbol != lowest:
                symbol = next_hop[symbol, lowest] if lowest >= 0 else np.int32(-1)
                continue
            symbol = chart.leave[span, lowest]
            if symbol >= 0:
                lowest = chart.bottom[span, symbol]
        rule = chart.base_rule[span, lowest] if lowest >= 0 else np.int32(-1)
        if rule < 0:
            return nothing, nothing, nothing
        item = tables.rule_item[rule]
        if item < n_symbols:
            continue
        while item >= n_symbols:
            left = span_index(i, j, n)
            e, end = chart.item_offset[left, 0], chart.item_offset[left, 1]
            while e < end and chart.items[e] != item:
                e += 1
            if e == end:
                return nothing, nothing, nothing
            split = chart.splits[e]
            set_row(agenda, n_open, tables.trie_right[item - n_symbols], split, j)
            agenda[n_open, 3] = above
            n_open += 1
            j = split
            item = tables.trie_left[item - n_symbols]
        set_row(agenda, n_open, item, i, j)
        agenda[n_open, 3] = above
        n_open += 1
    size = np.ones(n_nodes, dtype=np.int32)
    for node in range(n_nodes - 1, 0, -1):
        size[parent[node]] += size[node]
    return label[:n_nodes].copy(), size, parent[:n_nodes].copy()
