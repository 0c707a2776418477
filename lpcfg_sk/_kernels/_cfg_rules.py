"""Tables of context-free rules, and the rules that the nodes of given trees use."""

from typing import NamedTuple

import numpy as np
from numba import njit


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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _find_rule(tables, item, lhs):
    """Return the rule from `lhs` to an item, -2 where there is none."""
    if item >= 0:
        key = np.int64(item) * tables.n_nonterminals + lhs
        position = np.searchsorted(tables.lookup_key, key)
        if position < len(tables.lookup_key) and tables.lookup_key[position] == key:
            return tables.lookup_rule[position]
    return np.int32(-2)
