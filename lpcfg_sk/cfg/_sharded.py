"""Rows of margin EM that are read from shards in each iteration."""

import numpy as np

from lpcfg_sk.cfg._expectations import expected_counts, rules_of_trees
from lpcfg_sk.treebank._sharded import map_shards, split_by_shard

__all__ = ["expectations_of_shards", "look_at_shards"]


def expectations_of_shards(grammar, X, theta, weights, *, n_jobs=None):
    """Weighted log probability of sentences, and expected counts of rules.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    X : ShardedTreebank
        Sentences.
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules.
    weights : ndarray of float64, shape (n_sentences,)
        Weights of the sentences.
    n_jobs : int, default=None
        Number of shards to work on at the same time.

    Returns
    -------
    log_probability : float
    counts : ndarray of float64, shape (n_rules,)
    """

    def count(treebank, weights):
        logs, counts = expected_counts(grammar, treebank, theta, weights)
        return float(weights @ logs), counts

    total, counts = 0.0, np.zeros(len(theta))
    weights = split_by_shard(X, weights)
    for log_probability, part in map_shards(count, X, weights, n_jobs=n_jobs):
        total += log_probability
        counts += part
    return total, counts


def look_at_shards(X, weights, grammar, uniform, *, n_jobs=None):
    """Count the rules of the trees, and find the rows that the grammar derives.

    Parameters
    ----------
    X : ShardedTreebank
        Trees, sentences, or both.
    weights : ndarray of float64, shape (n_rows,)
        Their weights.
    grammar : CFG
        The grammar.
    uniform : ndarray of float64, shape (n_rules,)
        Any positive probabilities of the rules.
    n_jobs : int, default=None
        Number of shards to look at together.

    Returns
    -------
    tree_counts : ndarray of float64, shape (n_rules,)
        Weight of the uses of each rule in trees that the grammar derives.
    derivable, parsed : ndarray of bool, shape (n_rows,)
        Which rows the grammar derives, and which have a tree.
    """

    def look(treebank, weights):
        row, rule, derivable = rules_of_trees(grammar, treebank)
        parsed = treebank.is_parsed
        sentences = treebank[~parsed]
        if len(sentences):
            zero = np.zeros(len(sentences))
            logs, _ = expected_counts(grammar, sentences, uniform, zero)
            derivable[~parsed] = np.isfinite(logs)
        used = derivable[row]
        counts = np.bincount(
            rule[used], weights=weights[row[used]], minlength=len(uniform)
        )
        return counts, derivable, parsed

    weights = split_by_shard(X, weights)
    parts = map_shards(look, X, weights, n_jobs=n_jobs)
    counts, derivable, parsed = zip(*parts, strict=True)
    return sum(counts), np.concatenate(derivable), np.concatenate(parsed)
