"""Inside values of strings under context-free rules of any length.

Values of a span are divided by a power of two that is stored with them, so long
strings neither underflow nor lose a bit.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import span_index
from lpcfg_sk._kernels._shared import HELPER

# Kinds of growth of an item.
_MANY, _ONE = 1, 2

# An unsigned index saves the test for negative indices, which takes a quarter of the
# time of the innermost loops.
unsigned = np.uintp


class CFGTables(NamedTuple):
    """Rules and symbols of a grammar.

    Nonterminals are symbols ``0..N-1``, terminals ``N..N+T-1``. Right-hand sides of two
    or more symbols are kept in a trie of prefixes: node t of the trie extends an item
    on its left (a symbol, or another node) by one symbol on its right, and is itself
    item ``N+T+t``. A prefix is built in one way only, so derivations of the grammar
    and of the tables are one-to-one.

    Attributes
    ----------
    n_nonterminals, n_terminals, start : int
        N, T and the start symbol.
    left_offset : int64 array of shape (N + T + n_trie + 1,)
        Item i is extended to the trie nodes ``left_offset[i]:left_offset[i + 1]``.
    terminal_offset : int64 array of shape (N + T + n_trie,)
        From here on these nodes add a terminal, before it a nonterminal.
    trie_left, trie_right : int32 array of shape (n_trie,)
        The item that a trie node extends, and the symbol it adds.
    rule_lhs, rule_item : int32 array of shape (n_rules,)
        Left-hand side of a rule, and the item of its right-hand side.
    done_offset, done_rule : int arrays
        Trie node t completes the rules
        ``done_rule[done_offset[t]:done_offset[t + 1]]``.
    word_offset, word_rule : int arrays
        Rules A → x of terminal x, likewise.
    unary_rule, unary_lhs, unary_child : int32 arrays
        Rules A → B.
    begins : bool array of shape (N, T)
        Whether a string that A derives can begin with terminal x.
    lookup_key, lookup_rule : int arrays of shape (n_rules,)
        Keys ``item * N + lhs`` in ascending order, and their rules.
    """

    n_nonterminals: int
    n_terminals: int
    start: int
    left_offset: np.ndarray
    terminal_offset: np.ndarray
    trie_left: np.ndarray
    trie_right: np.ndarray
    rule_lhs: np.ndarray
    rule_item: np.ndarray
    done_offset: np.ndarray
    done_rule: np.ndarray
    word_offset: np.ndarray
    word_rule: np.ndarray
    unary_rule: np.ndarray
    unary_lhs: np.ndarray
    unary_child: np.ndarray
    begins: np.ndarray
    lookup_key: np.ndarray
    lookup_rule: np.ndarray


class RuleWeights(NamedTuple):
    """Weights of the rules, and of chains of unary rules by their lower end.

    They are probabilities where derivations are summed, and scores (logarithms) where
    the best one is sought.

    Attributes
    ----------
    rule : float array of shape (n_rules,)
        Weight of each rule.
    chain_offset : int64 array of shape (N + 1,)
        Chains that end in B are ``chain_offset[B]:chain_offset[B + 1]``.
    chain_top : int32 array of shape (n_chains,)
        Upper end A of each chain.
    chain : float array of shape (n_chains,)
        Weight of all chains from A to B together, or of the best one.
    """

    rule: np.ndarray
    chain_offset: np.ndarray
    chain_top: np.ndarray
    chain: np.ndarray


class InsideChart(NamedTuple):
    """Inside values of one string.

    Attributes
    ----------
    value : float64 array of shape (n_spans, N)
        Inside values of the nonterminals over each span, scaled.
    exponent : int64 array of shape (n_spans,)
        Values of a span are to be multiplied by 2 to this power.
    alive : bool array of shape (n_spans,)
        Whether a span has any item.
    item_offset : int64 array of shape (n_spans, 4)
        Items of a span: from 0 to 1 those that the next word can extend in several
        ways, from 1 to 2 those that it can extend by one nonterminal only, from 2 to 3
        finished right-hand sides.
    items : int32 array of shape (n_items,)
        Symbols and trie nodes, numbered as in :class:`CFGTables`.
    item_values : float64 array of shape (n_items,)
        Inside values of the items, scaled.
    """

    value: np.ndarray
    exponent: np.ndarray
    alive: np.ndarray
    item_offset: np.ndarray
    items: np.ndarray
    item_values: np.ndarray


@njit(**HELPER)
def cfg_inside(words, tables, weights, space):
    """Fill the inside chart of a string, from its last word to its first.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers, -1 for a token that the grammar does not know.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities of its rules and unary chains.
    space : InsideChart
        Room for the chart, which uses its first spans and items. The caller allocates
        it, because arrays of a kernel that runs out of memory are never freed.

    Returns
    -------
    fits : bool
        Whether there was room for all items; otherwise the chart is not complete.
    chart : InsideChart
    """
    n, n_nonterminals = len(words), tables.n_nonterminals
    left_offset = tables.left_offset
    n_spans = n * (n + 1) // 2
    chart = InsideChart(
        space.value[:n_spans],
        space.exponent[:n_spans],
        space.alive[:n_spans],
        space.item_offset[:n_spans],
        space.items,
        space.item_values,
    )
    chart.value[:] = 0.0
    chart.exponent[:] = 0
    chart.alive[:] = False
    n_items = 0
    prefix = np.zeros(len(tables.trie_right))
    touched = np.empty(len(prefix) + 1, dtype=np.int32)
    # Items that grow from the current position, each once.
    growing = np.empty(len(tables.terminal_offset), dtype=np.int32)
    is_growing = np.zeros(len(growing), dtype=np.bool_)
    growth, growth_row = _lookahead(words, tables)
    base = np.zeros(n_nonterminals)

    for i in range(n - 1, -1, -1):
        n_growing = 0
        for j in range(i + 1, n + 1):
            span = span_index(i, j, n)
            exponent = _extend_prefixes(words, i, j, tables, chart, prefix)
            n_touched = 0
            for q in range(n_growing):
                item = growing[q]
                first, last = left_offset[item], left_offset[item + 1]
                for t in range(unsigned(first), unsigned(last)):
                    touched[n_touched] = t
                    n_touched += prefix[t] > 0.0
            word = words[i] if j - i == 1 else -1
            row = chart.value[span]
            _complete_rules(
                word, touched[:n_touched], prefix, tables, weights, base, row
            )
            largest = 1.0 if word >= 0 else 0.0
            for a in range(n_nonterminals):
                largest = max(largest, row[a])
            for q in range(n_touched):
                largest = max(largest, prefix[touched[q]])
            chart.item_offset[span] = n_items
            if largest == 0.0:
                continue
            shift = np.int64(np.floor(np.log2(largest)))
            chart.alive[span] = True
            chart.exponent[span] = exponent + shift
            scale = 2.0 ** (-shift)
            for a in range(n_nonterminals):
                row[a] *= scale
            for q in range(n_touched):
                prefix[touched[q]] *= scale
            if n_items + n_nonterminals + n_touched + 2 > len(chart.items):
                return False, chart
            kinds = growth[growth_row[j]]
            n_items = _store_items(
                span, word, touched[:n_touched], prefix, kinds, tables, chart
            )
            for e in range(chart.item_offset[span, 0], chart.item_offset[span, 2]):
                item = chart.items[e]
                if not is_growing[item]:
                    is_growing[item] = True
                    growing[n_growing] = item
                    n_growing += 1
        for q in range(n_growing):
            is_growing[growing[q]] = False
    return True, InsideChart(
        chart.value,
        chart.exponent,
        chart.alive,
        chart.item_offset,
        chart.items[:n_items],
        chart.item_values[:n_items],
    )


@njit(**HELPER)
def _extend_prefixes(words, i, j, tables, chart, prefix):
    """Add up the values of all trie nodes over a span of two words or more.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers.
    i, j : int
        The span.
    tables : CFGTables
        The grammar.
    chart : InsideChart
        Filled for all spans within this one.
    prefix : float64 array of shape (n_trie,)
        Output; all zero before.

    Returns
    -------
    exponent : int
        The values in `prefix` are to be multiplied by 2 to this power.
    """
    n = len(words)
    value, exponent, alive = chart.value, chart.exponent, chart.alive
    item_offset, items, item_values = chart.item_offset, chart.items, chart.item_values
    left_offset, terminal_offset = tables.left_offset, tables.terminal_offset
    trie_right = tables.trie_right
    reference = 0
    any_split = False
    for k in range(i + 1, j):
        left, right = span_index(i, k, n), span_index(k, j, n)
        if alive[left] and alive[right]:
            both = exponent[left] + exponent[right]
            if not any_split or both > reference:
                reference = both
                any_split = True
    for k in range(i + 1, j):
        left, right = span_index(i, k, n), span_index(k, j, n)
        if not (alive[left] and alive[right]):
            continue
        factor = 2.0 ** (exponent[left] + exponent[right] - reference)
        right_value = value[right]
        many, one = unsigned(item_offset[left, 0]), unsigned(item_offset[left, 1])
        # Half of these products are zero: a branch would cost more.
        for e in range(many, one):
            left_value = item_values[e] * factor
            item = unsigned(items[e])
            first, last = left_offset[item], terminal_offset[item]
            for t in range(unsigned(first), unsigned(last)):
                prefix[t] += left_value * right_value[unsigned(trie_right[t])]
        for e in range(one, unsigned(item_offset[left, 2])):
            t = unsigned(left_offset[unsigned(items[e])])
            left_value = item_values[e] * factor
            prefix[t] += left_value * right_value[unsigned(trie_right[t])]
        if j - k == 1 and words[k] >= 0:
            symbol = tables.n_nonterminals + words[k]
            word_value = factor * 2.0 ** (-exponent[right])
            for e in range(item_offset[left, 0], item_offset[left, 1]):
                item = items[e]
                for t in range(terminal_offset[item], left_offset[item + 1]):
                    if trie_right[t] == symbol:
                        prefix[t] += item_values[e] * word_value
    return reference


@njit(**HELPER)
def _complete_rules(word, touched, prefix, tables, weights, base, row):
    """Inside values of the nonterminals over a span.

    Parameters
    ----------
    word : int
        Terminal of a span of one word, else -1.
    touched : int32 array
        Trie nodes with a positive value.
    prefix : float64 array of shape (n_trie,)
        Their values.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities.
    base : float64 array of shape (N,)
        Work space: values without unary rules.
    row : float64 array of shape (N,)
        Output; all zero before.
    """
    theta, rule_lhs = weights.rule, tables.rule_lhs
    done_offset, done_rule = tables.done_offset, tables.done_rule
    word_offset, word_rule = tables.word_offset, tables.word_rule
    chain_offset, chain_top = weights.chain_offset, weights.chain_top
    chain_weight = weights.chain
    base[:] = 0.0
    for t in touched:
        for d in range(unsigned(done_offset[t]), unsigned(done_offset[t + 1])):
            r = unsigned(done_rule[d])
            base[unsigned(rule_lhs[r])] += theta[r] * prefix[t]
    if word >= 0:
        for d in range(word_offset[word], word_offset[word + 1]):
            r = word_rule[d]
            base[rule_lhs[r]] += theta[r]
    for b in range(len(base)):
        if base[b] > 0.0:
            for c in range(chain_offset[b], chain_offset[b + 1]):
                row[chain_top[c]] += chain_weight[c] * base[b]


@njit(**HELPER)
def _store_items(span, word, touched, prefix, kinds, tables, chart):
    """Write the items of a span to the chart, and set `prefix` to zero again.

    Parameters
    ----------
    span : int
        The span.
    word : int
        Terminal of a span of one word, else -1.
    touched : int32 array
        Trie nodes with a positive value.
    prefix : float64 array of shape (n_trie,)
        Their values, scaled.
    kinds : uint8 array of shape (N + T + n_trie,)
        How the word after the span can extend each item, a row of `_lookahead`.
    tables : CFGTables
        The grammar.
    chart : InsideChart
        The chart; its items from ``item_offset[span, 0]`` on are written.

    Returns
    -------
    n_items : int
        Number of items of the chart.
    """
    items, item_values = chart.items, chart.item_values
    n_nonterminals, done_offset = tables.n_nonterminals, tables.done_offset
    n_symbols = n_nonterminals + tables.n_terminals
    trie_kinds = kinds[n_symbols:]
    row = chart.value[span]
    n_items = chart.item_offset[span, 0]
    for kind in range(_MANY, _ONE + 1):
        for a in range(n_nonterminals):
            items[n_items] = a
            item_values[n_items] = row[a]
            n_items += kinds[a] == kind and row[a] > 0.0
        if word >= 0:
            items[n_items] = n_nonterminals + word
            item_values[n_items] = 2.0 ** (-chart.exponent[span])
            n_items += kinds[n_nonterminals + word] == kind
        for q in range(len(touched)):
            t = unsigned(touched[q])
            items[n_items] = n_symbols + touched[q]
            item_values[n_items] = prefix[t]
            n_items += trie_kinds[t] == kind
        chart.item_offset[span, kind] = n_items
    for t in touched:
        items[n_items] = n_symbols + t
        item_values[n_items] = prefix[t]
        finished = done_offset[t] < done_offset[t + 1]
        n_items += finished and trie_kinds[t] == 0
        prefix[t] = 0.0
    chart.item_offset[span, 3] = n_items
    return n_items


@njit(**HELPER)
def _lookahead(words, tables):
    """How items can be extended by symbols that begin with the word at a position.

    Returns one row of kinds of growth for each different word, 0 for none, and the row
    of each position; that of the end of the string is empty.
    """
    n, n_nonterminals = len(words), tables.n_nonterminals
    left_offset, terminal_offset = tables.left_offset, tables.terminal_offset
    trie_left, trie_right = tables.trie_left, tables.trie_right
    row = np.zeros(n + 1, dtype=np.int64)
    n_rows = 1
    for j in range(n):
        for earlier in range(j):
            if words[earlier] == words[j]:
                row[j] = row[earlier]
        if row[j] == 0 and words[j] >= 0:
            row[j] = n_rows
            n_rows += 1
    growth = np.zeros((n_rows, len(terminal_offset)), dtype=np.uint8)
    can_begin = np.zeros(n_nonterminals + tables.n_terminals, dtype=np.uint8)
    filled = 0
    for j in range(n):
        if row[j] <= filled:
            continue
        filled = row[j]
        kinds = growth[filled]
        for a in range(n_nonterminals):
            can_begin[a] = tables.begins[a, words[j]]
        can_begin[n_nonterminals + words[j]] = 1
        for t in range(len(trie_left)):
            kinds[trie_left[t]] |= can_begin[trie_right[t]]
        can_begin[n_nonterminals + words[j]] = 0
        for item in range(len(kinds)):
            one = left_offset[item + 1] - left_offset[item] == 1
            one &= terminal_offset[item] == left_offset[item + 1]
            kinds[item] *= _ONE if one else _MANY
    return growth, row
