"""Tables of a grammar, and weights of its rules, as the kernels read them."""

import numpy as np

from lpcfg_sk._kernels._cfg_inside import CFGTables, RuleWeights
from lpcfg_sk._ragged import offsets

__all__ = ["best_chains", "make_tables", "rule_weights"]


def make_tables(grammar):
    """Number the symbols of a grammar and lay out its rules.

    Parameters
    ----------
    grammar : CFG
        Any grammar.

    Returns
    -------
    tables : CFGTables
    """
    nonterminal = {s: i for i, s in enumerate(grammar.nonterminals)}
    n_nonterminals = len(nonterminal)
    terminal = {s: n_nonterminals + i for i, s in enumerate(grammar.terminals)}
    n_symbols = n_nonterminals + len(terminal)
    sides = [
        tuple(
            terminal[s] if t else nonterminal[s]
            for s, t in zip(rule.rhs, rule.terminal, strict=True)
        )
        for rule in grammar.rules
    ]
    items = _trie(sides, n_symbols)
    trie = sorted((item, prefix) for prefix, item in items.items() if len(prefix) > 1)
    trie_left = [items[prefix[:-1]] for _, prefix in trie]
    trie_right = [prefix[-1] for _, prefix in trie]
    n_items = n_symbols + len(trie)
    lhs = np.array([nonterminal[rule.lhs] for rule in grammar.rules], dtype=np.int32)
    item = np.array([items[side] for side in sides], dtype=np.int32)
    rules = np.arange(len(lhs), dtype=np.int32)
    is_unary, is_trie = item < n_nonterminals, item >= n_symbols
    is_word = ~is_unary & ~is_trie
    done_offset, done_rule = _group(
        item[is_trie] - n_symbols, rules[is_trie], len(trie)
    )
    word_offset, word_rule = _group(
        item[is_word] - n_nonterminals, rules[is_word], len(terminal)
    )
    left_offset = np.searchsorted(trie_left, np.arange(n_items + 1)).astype(np.int64)
    adds_nonterminal = np.array(trie_right, dtype=np.int64) < n_nonterminals
    before = offsets(adds_nonterminal)
    key = item.astype(np.int64) * n_nonterminals + lhs
    order = np.argsort(key, kind="stable")
    return CFGTables(
        n_nonterminals=n_nonterminals,
        n_terminals=len(terminal),
        start=nonterminal[grammar.start],
        left_offset=left_offset,
        terminal_offset=left_offset[:-1] + np.diff(before[left_offset]),
        trie_left=np.array(trie_left, dtype=np.int32),
        trie_right=np.array(trie_right, dtype=np.int32),
        rule_lhs=lhs,
        rule_item=item,
        done_offset=done_offset,
        done_rule=done_rule,
        word_offset=word_offset,
        word_rule=word_rule,
        unary_rule=rules[is_unary],
        unary_lhs=lhs[is_unary],
        unary_child=item[is_unary],
        begins=_begins(lhs, [side[0] for side in sides], n_nonterminals, n_symbols),
        lookup_key=key[order],
        lookup_rule=rules[order],
    )


def rule_weights(tables, theta):
    """Return probabilities of rules, and sums over all chains of unary rules.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    theta : ndarray of float64, shape (n_rules,)
        Rule probabilities.

    Returns
    -------
    weights : RuleWeights
        The weight of the chains from A to B is entry (A, B) of (I - U)⁻¹, where U holds
        the probabilities of A → B.

    Raises
    ------
    ValueError
        If the sum diverges.
    """
    n = tables.n_nonterminals
    step = np.zeros((n, n))
    np.add.at(step, (tables.unary_lhs, tables.unary_child), theta[tables.unary_rule])
    radius = np.abs(np.linalg.eigvals(step)).max(initial=0.0)
    if radius >= 1 - 1e-12:
        raise ValueError(
            "the probabilities of the unary rules leave a cycle of them with "
            f"probability one (spectral radius {radius:.6g}): the sum over derivations "
            "diverges; remove the cycle from the grammar"
        )
    total = np.linalg.inv(np.eye(n) - step)
    # Rounding must not open chains that do not exist.
    possible = _transitive(step > 0)
    total = np.where(possible, np.maximum(total, 0.0), 0.0)
    return _with_chains(theta, total, total != 0)


def best_chains(tables, log_theta):
    """Return scores of rules, and of the best chains of unary rules.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    log_theta : ndarray of float64, shape (n_rules,)
        Rule scores, at most zero; -inf forbids a rule.

    Returns
    -------
    weights : RuleWeights
        Scores of the rules and of the best chain from each A to each B.
    next_hop : ndarray of int32, shape (N, N)
        ``next_hop[A, B]`` is the symbol below A on the best chain from A to B, -1
        where there is none or A is B.
    """
    n = tables.n_nonterminals
    best = np.full((n, n), -np.inf)
    hop = np.full((n, n), -1, dtype=np.int32)
    scores = log_theta[tables.unary_rule]
    for lhs, child, score in zip(
        tables.unary_lhs.tolist(), tables.unary_child.tolist(), scores, strict=True
    ):
        if lhs != child and score > best[lhs, child]:
            best[lhs, child] = score
            hop[lhs, child] = child
    np.fill_diagonal(best, 0.0)
    for via in range(n):
        through = best[:, via, None] + best[None, via, :]
        better = through > best
        best = np.where(better, through, best)
        hop = np.where(better, hop[:, via, None], hop)
    return _with_chains(log_theta, best, np.isfinite(best)), np.ascontiguousarray(hop)


def _with_chains(rule, chain, exists):
    """Group the chains of a matrix (A, B) by their lower ends B."""
    bottom, top = np.nonzero(exists.T)
    return RuleWeights(
        rule=rule,
        chain_offset=np.searchsorted(bottom, np.arange(len(chain) + 1)).astype(
            np.int64
        ),
        chain_top=top.astype(np.int32),
        chain=chain[top, bottom],
    )


def _trie(sides, n_symbols):
    """Number all prefixes of two or more symbols so that left items ascend."""
    items = {(s,): s for s in range(n_symbols)}
    level = {side[:2] for side in sides if len(side) > 1}
    length = 2
    while level:
        for prefix in sorted(level, key=lambda p: (items[p[:-1]], p[-1])):
            items[prefix] = len(items)
        length += 1
        level = {side[:length] for side in sides if len(side) >= length}
    return items


def _begins(lhs, corner, n_nonterminals, n_symbols):
    """Left-corner relation between nonterminals and terminals."""
    direct = np.zeros((n_nonterminals, n_symbols), dtype=bool)
    direct[lhs, corner] = True
    above = _transitive(direct[:, :n_nonterminals])
    return above @ direct[:, n_nonterminals:]


def _group(keys, values, n):
    order = np.argsort(keys, kind="stable")
    offset = np.searchsorted(keys[order], np.arange(n + 1)).astype(np.int64)
    return offset, values[order]


def _transitive(step):
    possible = step | np.eye(len(step), dtype=bool)
    for via in range(len(step)):
        possible |= possible[:, via, None] & possible[None, via, :]
    return possible
