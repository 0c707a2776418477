"""Nonterminals that derivations of sentences can contain."""

import numpy as np


def useful_nonterminals(tables, theta):
    """Find the nonterminals of derivations of positive probability.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    theta : ndarray of float64, shape (n_rules,)
        Rule probabilities; rules of probability zero are not used.

    Returns
    -------
    ndarray of bool, shape (N,)
        Whether the start symbol derives a string of terminals by way of the
        nonterminal.
    """
    n_symbols = tables.n_nonterminals + tables.n_terminals
    trie = n_symbols + np.arange(len(tables.trie_left))
    lhs, item = tables.rule_lhs, tables.rule_item
    generating = np.zeros(n_symbols + len(trie), dtype=bool)
    generating[tables.n_nonterminals : n_symbols] = True

    def upward(mask):
        mask[trie] = mask[tables.trie_left] & mask[tables.trie_right]
        mask[lhs[(theta > 0) & mask[item]]] = True

    _until_nothing_is_new(generating, upward)
    used = (theta > 0) & generating[item]
    reached = np.zeros_like(generating)
    reached[tables.start] = True

    def downward(mask):
        mask[item[used & mask[lhs]]] = True
        for part in (tables.trie_left, tables.trie_right):
            mask[part[mask[trie]]] = True

    _until_nothing_is_new(reached, downward)
    return (generating & reached)[: tables.n_nonterminals]


def _until_nothing_is_new(mask, step):
    count = -1
    while mask.sum() > count:
        count = mask.sum()
        step(mask)
