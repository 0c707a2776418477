"""Rules of derivations: expected counts in strings, and the rules of given trees."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._cfg_inside import cfg_inside, unsigned
from lpcfg_sk._kernels._chart_spans import span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL


class OutsideChart(NamedTuple):
    """Outside values of one string, scaled by the inverse of the inside scale.

    Attributes
    ----------
    value : float64 array of shape (n_spans, N)
        Outside values of nonterminals.
    item_values : float64 array of shape (n_items,)
        Outside values of the items of the inside chart.
    """

    value: np.ndarray
    item_values: np.ndarray


@njit(**KERNEL)
def cfg_expected_counts(
    words,
    offsets,
    first,
    tables,
    weights,
    sentence_weights,
    inside_space,
    outside_space,
    log_probabilities,
    counts,
):
    """Run `cfg_inside_outside` over the strings of a chunk, adding up counts.

    Parameters
    ----------
    words : int32 array of shape (n_words,)
        Terminal numbers of all strings, -1 for a token that the grammar does not know.
    offsets : int64 array of shape (n_strings + 1,)
        First word of each string.
    first : int
        The string to begin with.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities of its rules and unary chains.
    sentence_weights : float64 array of shape (n_strings,)
        Weights of the strings; where 0, only the probability is computed.
    inside_space : InsideChart
        Room for the longest string.
    outside_space : OutsideChart
        The same; empty where all weights are 0.
    log_probabilities : float64 array of shape (n_strings,)
        Output: -inf where a string has no derivation.
    counts : float64 array of shape (n_rules,)
        Weighted expected counts are added here.

    Returns
    -------
    next : int
        The string whose items found no room, the number of strings where all did.
    """
    no_posterior = np.zeros((0, 0))
    for s in range(first, len(offsets) - 1):
        fits, log_probabilities[s] = cfg_inside_outside(
            words[offsets[s] : offsets[s + 1]],
            tables,
            weights,
            sentence_weights[s],
            inside_space,
            outside_space,
            counts,
            no_posterior,
        )
        if not fits:
            return s
    return len(offsets) - 1


@njit(**KERNEL)
def cfg_inside_outside(
    words,
    tables,
    weights,
    sentence_weight,
    inside_space,
    outside_space,
    counts,
    posterior,
):
    """Inside and outside of one string; adds expected rule counts.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers, -1 for a token that the grammar does not know.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities of its rules and unary chains.
    sentence_weight : float
        Weight of the string; 0 computes the probability alone.
    inside_space : InsideChart
        Room for the string, see `cfg_inside`.
    outside_space : OutsideChart
        The same; may be empty where the weight is 0.
    counts : float64 array of shape (n_rules,)
        Expected counts times the weight are added here.
    posterior : float64 array of shape (n * (n + 1) // 2, N) or (0, 0)
        Expected numbers of constituents A over each span are added here, unless it is
        empty; spans are numbered by `span_index`.

    Returns
    -------
    fits : bool
        Whether there was room for all items; otherwise nothing is added.
    log_probability : float
        -inf where the string has no derivation.
    """
    if len(words) == 0:
        return True, -np.inf
    fits, chart = cfg_inside(words, tables, weights, inside_space)
    if not fits:
        return False, -np.inf
    root = len(chart.alive) - 1
    probability = chart.value[root, tables.start]
    if not chart.alive[root] or probability == 0.0:
        return True, -np.inf
    if sentence_weight != 0.0:
        outside = OutsideChart(
            outside_space.value[: root + 1],
            outside_space.item_values[: len(chart.items)],
        )
        outside.value[:] = 0.0
        outside.item_values[:] = 0.0
        outside.value[root, tables.start] = sentence_weight / probability
        _outside(words, tables, weights, chart, outside, counts, posterior)
    return True, np.log(probability) + chart.exponent[root] * np.log(2.0)


@njit(**KERNEL)
def _outside(words, tables, weights, chart, outside, counts, posterior):
    """Outside values from the whole string to its words, and expected counts.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities of its rules and unary chains.
    chart : InsideChart
        Inside values.
    outside : OutsideChart
        Zero but for the start symbol over the whole string.
    counts : float64 array of shape (n_rules,)
        Weighted expected counts are added here.
    posterior : float64 array of shape (n_spans, N) or (0, 0)
        Expected numbers of constituents are added here, unless it is empty.
    """
    n, n_nonterminals = len(words), tables.n_nonterminals
    n_symbols = n_nonterminals + tables.n_terminals
    theta, rule_lhs = weights.rule, tables.rule_lhs
    done_offset, done_rule = tables.done_offset, tables.done_rule
    items, item_values = chart.items, chart.item_values
    value, item_offset, alive = chart.value, chart.item_offset, chart.alive
    item_outside = outside.item_values
    total = np.zeros(n_nonterminals)
    prefix = np.zeros(len(tables.trie_right))
    touched = np.empty(len(prefix) + 1, dtype=np.int32)
    for i in range(n):
        for j in range(n, i, -1):
            span = span_index(i, j, n)
            if not alive[span]:
                continue
            _close_chains(span, tables, weights, chart, outside, total)
            word = words[i] if j - i == 1 else -1
            _count_short_rules(span, word, tables, weights, chart, total, counts)
            if posterior.size > 0:
                for a in range(n_nonterminals):
                    posterior[span, a] += total[a] * value[span, a]
            if j - i == 1:
                continue
            n_touched = 0
            for e in range(item_offset[span, 0], item_offset[span, 3]):
                t = items[e] - n_symbols
                if t < 0:
                    continue
                above = item_outside[e]
                first, last = done_offset[t], done_offset[t + 1]
                for d in range(unsigned(first), unsigned(last)):
                    r = unsigned(done_rule[d])
                    part = theta[r] * total[unsigned(rule_lhs[r])]
                    above += part
                    counts[r] += part * item_values[e]
                prefix[t] = above
                touched[n_touched] = t
                n_touched += above > 0.0
            if n_touched > 0:
                _split_prefixes(words, i, j, tables, chart, outside, prefix)
            for q in range(n_touched):
                prefix[touched[q]] = 0.0


@njit(**HELPER)
def _close_chains(span, tables, weights, chart, outside, total):
    """Outside values of the nonterminals of a span, over all unary chains above.

    Parameters
    ----------
    span : int
        The span.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities.
    chart : InsideChart
        Inside values.
    outside : OutsideChart
        Complete for the items of the span.
    total : float64 array of shape (N,)
        Output.
    """
    items, item_outside, row = chart.items, outside.item_values, outside.value[span]
    n_nonterminals = tables.n_nonterminals
    chain_offset, chain_top = weights.chain_offset, weights.chain_top
    chain_weight = weights.chain
    for e in range(chart.item_offset[span, 0], chart.item_offset[span, 3]):
        if items[e] < n_nonterminals:
            row[items[e]] += item_outside[e]
    for b in range(n_nonterminals):
        total[b] = 0.0
        for c in range(chain_offset[b], chain_offset[b + 1]):
            total[b] += chain_weight[c] * row[chain_top[c]]


@njit(**HELPER)
def _count_short_rules(span, word, tables, weights, chart, total, counts):
    """Add the expected counts of the rules A → B and A → x over a span.

    Parameters
    ----------
    span : int
        The span.
    word : int
        Terminal x of a span of one word, else -1.
    tables : CFGTables
        The grammar.
    weights : RuleWeights
        Probabilities.
    chart : InsideChart
        Inside values.
    total : float64 array of shape (N,)
        Outside values of the nonterminals, over all unary chains above.
    counts : float64 array of shape (n_rules,)
        Expected counts are added here.
    """
    theta, value = weights.rule, chart.value[span]
    unary_rule, unary_child = tables.unary_rule, tables.unary_child
    unary_lhs, rule_lhs = tables.unary_lhs, tables.rule_lhs
    word_offset, word_rule = tables.word_offset, tables.word_rule
    for q in range(len(unary_rule)):
        r = unary_rule[q]
        counts[r] += total[unary_lhs[q]] * theta[r] * value[unary_child[q]]
    if word >= 0:
        scale = 2.0 ** (-chart.exponent[span])
        for d in range(word_offset[word], word_offset[word + 1]):
            r = word_rule[d]
            counts[r] += total[rule_lhs[r]] * theta[r] * scale


@njit(**HELPER)
def _split_prefixes(words, i, j, tables, chart, outside, prefix):
    """Pass the outside values of the trie nodes over a span down to their parts.

    Parameters
    ----------
    words : int32 array of shape (n,)
        Terminal numbers.
    i, j : int
        The span.
    tables : CFGTables
        The grammar.
    chart : InsideChart
        Inside values.
    outside : OutsideChart
        Values of the spans within this one are added to.
    prefix : float64 array of shape (n_trie,)
        Outside values of the trie nodes.
    """
    n, span = len(words), span_index(i, j, len(words))
    value, exponent, alive = chart.value, chart.exponent, chart.alive
    item_offset, items, item_values = chart.item_offset, chart.items, chart.item_values
    left_offset, terminal_offset = tables.left_offset, tables.terminal_offset
    trie_right, item_outside = tables.trie_right, outside.item_values
    for k in range(i + 1, j):
        left, right = span_index(i, k, n), span_index(k, j, n)
        if not (alive[left] and alive[right]):
            continue
        factor = 2.0 ** (exponent[left] + exponent[right] - exponent[span])
        right_value = value[right]
        right_outside = outside.value[right]
        word_symbol = -1
        word_value = 0.0
        if j - k == 1 and words[k] >= 0:
            word_symbol = tables.n_nonterminals + words[k]
            word_value = 2.0 ** (-exponent[right])
        many, one = unsigned(item_offset[left, 0]), unsigned(item_offset[left, 1])
        for e in range(many, one):
            item = unsigned(items[e])
            left_value = item_values[e] * factor
            gained = 0.0
            first, last = left_offset[item], terminal_offset[item]
            for t in range(unsigned(first), unsigned(last)):
                symbol = unsigned(trie_right[t])
                gained += prefix[t] * right_value[symbol]
                right_outside[symbol] += prefix[t] * left_value
            if word_symbol >= 0:
                for t in range(terminal_offset[item], left_offset[item + 1]):
                    if trie_right[t] == word_symbol:
                        gained += prefix[t] * word_value
            item_outside[e] += gained * factor
        for e in range(one, unsigned(item_offset[left, 2])):
            t = unsigned(left_offset[unsigned(items[e])])
            symbol = unsigned(trie_right[t])
            above = prefix[t] * factor
            item_outside[e] += above * right_value[symbol]
            right_outside[symbol] += above * item_values[e]


class TreeColumns(NamedTuple):
    """Nodes of trees in preorder, one tree after the other.

    Attributes
    ----------
    label : int32 array of shape (n_nodes,)
        Nonterminals, -1 for a bare word, -2 for a label without rules.
    size : int array of shape (n_nodes,)
        Number of nodes of the subtree.
    node_offsets : int64 array of shape (n_trees + 1,)
        First node of each tree.
    word : int array of shape (n_tokens,)
        Terminals, counted from 0; -1 for a token that the grammar does not know.
    token_offsets : int64 array of shape (n_trees + 1,)
        First token of each tree.
    """

    label: np.ndarray
    size: np.ndarray
    node_offsets: np.ndarray
    word: np.ndarray
    token_offsets: np.ndarray


@njit(**KERNEL)
def cfg_rules_of_trees(trees, tables, rule, root_rule):
    """Find the rule at each node of each tree.

    Parameters
    ----------
    trees : TreeColumns
        The trees.
    tables : CFGTables
        The grammar.
    rule : int32 array of shape (n_nodes,)
        Output: the rule, -1 for a bare word, -2 where the grammar has none.
    root_rule : int32 array of shape (n_trees,)
        Output: the rule from the start symbol to the root's label, -1 where the
        root is the start symbol, -2 where there is no such rule.
    """
    node_offsets, label = trees.node_offsets, trees.label
    for tree in range(len(node_offsets) - 1):
        lo, hi = node_offsets[tree], node_offsets[tree + 1]
        if lo == hi:
            continue
        _find_leaf_rules(trees, tree, tables, rule)
        for node in range(lo, hi):
            if trees.size[node] > 1:
                item = -1
                if label[node] >= 0:
                    item = _item_of_children(trees, node, tables, rule)
                rule[node] = _find_rule(tables, item, label[node])
        for node in range(lo, hi):
            if rule[node] <= -3:
                rule[node] = -1
        if label[lo] == tables.start:
            root_rule[tree] = -1
        else:
            root_rule[tree] = _find_rule(tables, label[lo], tables.start)


@njit(**HELPER)
def _find_leaf_rules(trees, tree, tables, rule):
    """Find the rules of pre-terminals; keep terminal w of a bare word as -3 - w.

    A bare word is looked up with the rule of its parent.
    """
    leaf = trees.token_offsets[tree]
    for node in range(trees.node_offsets[tree], trees.node_offsets[tree + 1]):
        if trees.size[node] > 1:
            continue
        word, label = trees.word[leaf], trees.label[node]
        leaf += 1
        if label < 0 or word < 0:
            rule[node] = -3 - word if label == -1 and word >= 0 else -2
        else:
            rule[node] = _find_rule(tables, tables.n_nonterminals + word, label)


@njit(**HELPER)
def _item_of_children(trees, node, tables, rule):
    """Return the item of the children of a node, -1 where the trie has none."""
    n_symbols = tables.n_nonterminals + tables.n_terminals
    item = np.int64(-1)
    child = node + 1
    while child < node + trees.size[node]:
        symbol = np.int64(trees.label[child])
        if symbol == -1 and rule[child] <= -3:
            symbol = np.int64(tables.n_nonterminals - 3 - rule[child])
        if symbol < 0:
            return np.int64(-1)
        if child == node + 1:
            item = symbol
        else:
            lo, hi = tables.left_offset[item], tables.left_offset[item + 1]
            position = lo + np.searchsorted(tables.trie_right[lo:hi], symbol)
            if position == hi or tables.trie_right[position] != symbol:
                return np.int64(-1)
            item = n_symbols + position
        child += trees.size[child]
    return item


@njit(**HELPER)
def _find_rule(tables, item, lhs):
    """Return the rule from `lhs` to an item, -2 where there is none."""
    if item >= 0:
        key = np.int64(item) * tables.n_nonterminals + lhs
        position = np.searchsorted(tables.lookup_key, key)
        if position < len(tables.lookup_key) and tables.lookup_key[position] == key:
            return tables.lookup_rule[position]
    return np.int32(-2)
