"""Expected rule counts of trees and sentences under a probabilistic CFG."""

from functools import partial

import numpy as np

from lpcfg_sk._kernels._cfg_best import cfg_best_tree
from lpcfg_sk._kernels._cfg_inside_outside import (
    cfg_expected_counts,
    cfg_inside_outside,
)
from lpcfg_sk._kernels._cfg_trees import cfg_rules_of_trees
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk.cfg._tables import unary_chains, unary_closure

__all__ = ["best_trees", "encode", "expected_counts", "rules_of_trees"]

# A sentence costs about the cube of its length; this is some twenty sentences of
# ordinary length.
_CHUNK_WORK = 200_000.0


def encode(grammar, treebank):
    """Terminal number of each token, -1 where the grammar does not know it."""
    ids = treebank.tokens.map_to(grammar.terminals)
    return np.append(ids, np.int32(-1))[treebank.token]


def rules_of_trees(grammar, treebank):
    """Rules that the trees of a treebank use.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Trees; rows without a tree are left out of the result.

    Returns
    -------
    row, rule : ndarray of int
        One entry for each use of a rule.
    derivable : ndarray of bool, shape (n_rows,)
        Which rows are derivations of the grammar.
    """
    tables = grammar.tables()
    labels = np.append(treebank.labels.map_to(grammar.nonterminals), -1)
    labels = np.where(labels < 0, -2, labels).astype(np.int32)
    labels[-1] = -1
    label = labels[treebank.label]
    rule = np.full(treebank.n_nodes, -2, dtype=np.int32)
    top_rule = np.full(len(treebank), -1, dtype=np.int32)
    cfg_rules_of_trees(
        label,
        treebank.size,
        treebank.node_offsets,
        encode(grammar, treebank),
        treebank.token_offsets,
        tables.n_nonterminals,
        tables.n_nonterminals + tables.n_terminals,
        tables.start,
        tables.left_offset,
        tables.trie_right,
        tables.lookup_key,
        tables.lookup_rule,
        rule,
        top_rule,
    )
    row = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    derivable = treebank.is_parsed
    bad = np.zeros(len(treebank), dtype=bool)
    np.logical_or.at(bad, row[rule == -2], True)
    if grammar.implicit_start:
        bad |= derivable & (top_rule == -2)
        tops = np.flatnonzero(top_rule >= 0)
    else:
        bad |= derivable & (top_rule != -1)
        tops = np.zeros(0, dtype=np.int64)
    used = rule >= 0
    row = np.concatenate([row[used], tops])
    rule = np.concatenate([rule[used], top_rule[tops]])
    return row, rule, derivable & ~bad


def expected_counts(grammar, treebank, theta, weights, *, n_jobs=None):
    """Log probabilities of sentences, and their expected rule counts.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Rows whose yields are summed over all derivations.
    theta : ndarray of float, shape (n_rules,)
        Rule probabilities.
    weights : ndarray of float, shape (n_rows,)
        Weights of the rows; where 0, only the probability is computed.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    log_probabilities : ndarray of float, shape (n_rows,)
    counts : ndarray of float, shape (n_rules,)
        Sum of the expected counts times the weights.
    """
    tables = _kernel_tables(grammar.tables(), theta)
    words, offsets = encode(grammar, treebank), treebank.token_offsets
    chunks = [
        (
            words[offsets[lo] : offsets[hi]],
            offsets[lo : hi + 1] - offsets[lo],
            weights[lo:hi],
        )
        for lo, hi in cut_by_work(treebank.lengths.astype(float) ** 3, _CHUNK_WORK)
    ]
    counts, parts = np.zeros(len(theta)), [np.zeros(0)]
    count = partial(_count_chunk, tables, theta)
    for log_probabilities, part in map_chunks(count, chunks, n_jobs=n_jobs):
        counts += part
        parts.append(log_probabilities)
    return np.concatenate(parts), counts


def best_trees(grammar, treebank, theta, decoder):
    """Best derivation of each row's sentence.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Rows to parse.
    theta : ndarray of float, shape (n_rules,)
        Rule probabilities.
    decoder : {"viterbi", "max-marginal"}
        The most probable derivation, or the one with the largest expected number of
        right constituents.

    Yields
    ------
    label, size, parent : ndarray of int
        Nodes in preorder; empty where the sentence has no derivation.
    """
    tables = grammar.tables()
    with np.errstate(divide="ignore"):
        log_theta = np.log(theta)
    chains, next_hop = unary_chains(tables, log_theta)
    score, chain_score = log_theta, chains.weight
    if decoder == "max-marginal":
        score = np.where(theta > 0, 0.0, -np.inf)
        chain_score = np.zeros_like(chain_score)
    sums = _kernel_tables(tables, theta)
    words, offsets = encode(grammar, treebank), treebank.token_offsets
    unused = np.zeros(len(theta))
    for row in range(len(treebank)):
        sentence = words[offsets[row] : offsets[row + 1]]
        bonus = np.zeros((0, 0))
        if decoder == "max-marginal":
            n = len(sentence)
            bonus = np.zeros((n * (n + 1) // 2, tables.n_nonterminals))
            cfg_inside_outside(sentence, *sums, theta, 1.0, unused, bonus)
        _, label, size, parent = cfg_best_tree(
            sentence,
            tables.n_nonterminals,
            tables.start,
            tables.left_offset,
            tables.trie_left,
            tables.trie_right,
            tables.done_offset,
            tables.done_rule,
            tables.rule_lhs,
            tables.rule_item,
            tables.word_offset,
            tables.word_rule,
            chains.offset,
            chains.top,
            chain_score,
            next_hop,
            score,
            bonus,
        )
        yield label, size, parent


def _count_chunk(tables, theta, words, offsets, weights):
    log_probabilities, counts = np.empty(len(weights)), np.zeros(len(theta))
    cfg_expected_counts(
        words, offsets, *tables, theta, weights, log_probabilities, counts
    )
    return log_probabilities, counts


def _kernel_tables(tables, theta):
    """Arguments of the inside-outside kernel that describe the grammar."""
    return (
        tables.n_nonterminals,
        tables.start,
        tables.left_offset,
        tables.terminal_offset,
        tables.trie_left,
        tables.trie_right,
        tables.done_offset,
        tables.done_rule,
        tables.rule_lhs,
        tables.word_offset,
        tables.word_rule,
        tables.unary_rule,
        tables.unary_lhs,
        tables.unary_child,
        tables.begins,
        *unary_closure(tables, theta),
    )
