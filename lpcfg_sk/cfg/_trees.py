"""Trees of a CFG as rows of a treebank."""

import numpy as np

from lpcfg_sk.treebank import Treebank

__all__ = ["flat_tree", "treebank_of"]


def flat_tree(start, n):
    """Return label, size and parent of the nodes of a flat tree over n words."""
    if n == 1:
        return np.array([start]), np.array([1]), np.array([-1])
    label = np.full(n + 1, -1)
    label[0] = start
    size = np.ones(n + 1, dtype=int)
    size[0] = n + 1
    parent = np.zeros(n + 1, dtype=int)
    parent[0] = -1
    return label, size, parent


def treebank_of(X, trees, nonterminals):
    """Make a treebank of (label, size, parent) triples over the tokens of X."""
    columns = {
        name: np.concatenate([np.zeros(0, int), *(tree[i] for tree in trees)])
        for i, name in enumerate(("label", "size", "parent"))
    }
    counts = np.array([len(tree[0]) for tree in trees], dtype=np.int64)
    node_offsets = np.concatenate([[0], np.cumsum(counts)])
    leaf = columns["size"] == 1
    leaves = np.concatenate([[0], np.cumsum(leaf)])
    begin = leaves[node_offsets[:-1]]
    start = leaves[:-1] - np.repeat(begin, counts)
    end = leaves[np.arange(len(leaf)) + columns["size"]] - np.repeat(begin, counts)
    return Treebank.from_columns(
        **columns,
        start=start,
        stop=end,
        node_offsets=node_offsets,
        token=X.token,
        token_offsets=X.token_offsets,
        labels=nonterminals,
        tokens=X.tokens,
    )
