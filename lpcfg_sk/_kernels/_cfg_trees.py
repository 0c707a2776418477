"""Rules that the nodes of given trees use."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def cfg_rules_of_trees(
    label,
    size,
    node_offsets,
    word,
    token_offsets,
    n_nonterminals,
    n_symbols,
    start,
    left_offset,
    trie_right,
    lookup_key,
    lookup_rule,
    rule,
    top_rule,
):
    """Find the rule at each node of each tree.

    Parameters
    ----------
    label : int array of shape (n_nodes,)
        Nonterminal numbers, -1 for a bare word, -2 for a label without rules.
    size, node_offsets : int arrays
        Shape of the trees.
    word : int array of shape (n_tokens,)
        Terminal numbers, -1 for a token that the grammar does not know.
    token_offsets : int array
        First token of each tree.
    n_nonterminals, ..., lookup_rule
        Tables of the grammar.
    rule : int array of shape (n_nodes,)
        Output: the rule, -1 for a bare word, -2 where the grammar has none.
    top_rule : int array of shape (n_trees,)
        Output: the rule from the start symbol to the root's label, -1 where the
        root is the start symbol, -2 where there is no such rule.
    """
    for tree in range(len(node_offsets) - 1):
        lo, hi = node_offsets[tree], node_offsets[tree + 1]
        if lo == hi:
            continue
        leaf = token_offsets[tree]
        for node in range(lo, hi):
            if size[node] == 1:
                w = word[leaf]
                leaf += 1
                if label[node] == -1:
                    # A bare word is looked up with its parent's rule; its terminal
                    # is kept here until then.
                    rule[node] = -3 - w if w >= 0 else -2
                elif label[node] == -2 or w < 0:
                    rule[node] = -2
                else:
                    rule[node] = _find(
                        lookup_key,
                        lookup_rule,
                        (n_nonterminals + w) * n_nonterminals + label[node],
                    )
        for node in range(lo, hi):
            if size[node] == 1:
                continue
            if label[node] < 0:
                rule[node] = -2
                continue
            item = np.int64(-1)
            child = node + 1
            while child < node + size[node]:
                if label[child] >= 0:
                    symbol = label[child]
                elif label[child] == -1 and rule[child] <= -3:
                    symbol = n_nonterminals - 3 - rule[child]
                else:
                    item = -1
                    break
                if child == node + 1:
                    item = symbol
                else:
                    item = _extend(left_offset, trie_right, item, symbol, n_symbols)
                    if item < 0:
                        break
                child += size[child]
            if item < 0:
                rule[node] = -2
            else:
                rule[node] = _find(
                    lookup_key, lookup_rule, item * n_nonterminals + label[node]
                )
        for node in range(lo, hi):
            if rule[node] <= -3:
                rule[node] = -1
        if label[lo] == start:
            top_rule[tree] = -1
        elif label[lo] < 0:
            top_rule[tree] = -2
        else:
            top_rule[tree] = _find(
                lookup_key, lookup_rule, np.int64(label[lo]) * n_nonterminals + start
            )


@njit(nogil=True, cache=True)
def _find(keys, values, key):
    """Value of a key in sorted keys, -2 where it is absent."""
    at = np.searchsorted(keys, key)
    if at < len(keys) and keys[at] == key:
        return values[at]
    return np.int32(-2)


@njit(nogil=True, cache=True)
def _extend(left_offset, trie_right, item, symbol, n_symbols):
    """Trie item that extends another by a symbol, -1 where there is none."""
    lo, hi = left_offset[item], left_offset[item + 1]
    at = lo + np.searchsorted(trie_right[lo:hi], symbol)
    if at < hi and trie_right[at] == symbol:
        return n_symbols + at
    return np.int64(-1)
