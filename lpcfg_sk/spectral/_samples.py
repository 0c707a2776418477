"""The nodes that singular vectors and moments are estimated from."""

import numpy as np


def draw_samples(X, weight, *, nodes, split, random_state):
    """Choose the nodes of the decompositions (figure 8) and of the moments (figure 7).

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Trees.
    weight : ndarray of float64, shape (n_trees,), or None
        Weights of the trees.
    nodes : {"all", "one", "one-by-size"}
        All nodes, one node of each tree, or one node with the weight of all nodes of
        its tree.
    split : bool
        Whether the two samples are halves of the trees, chosen at random.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    first, second : tuple
        For either sample the weights of the trees and, unless `nodes` is "all", the
        node that was drawn: arguments of :func:`node_weight`.
    """
    drawn = ()
    if nodes != "all":
        drawn = (_draw_nodes(X, random_state),)
        weight = np.ones(len(X)) if weight is None else weight
    if nodes == "one-by-size":
        weight = weight * np.diff(X.node_offsets)
    if not split:
        return (weight, *drawn), (weight, *drawn)
    if len(X) < 2:
        raise ValueError("split_samples=True needs at least two trees")
    is_first = random_state.permutation(len(X)) < len(X) // 2
    weight = np.ones(len(X)) if weight is None else weight
    first, second = np.where(is_first, weight, 0.0), np.where(is_first, 0.0, weight)
    return (first, *drawn), (second, *drawn)


def _draw_nodes(X, random_state):
    """Draw one node of each tree."""
    if not hasattr(X, "node_offsets"):
        raise ValueError(
            'node_sampling="one" and "one-by-size" draw from all trees together; use '
            "X.load(), or all nodes"
        )
    drawn = random_state.randint(0, np.diff(X.node_offsets))
    if drawn.all():
        raise ValueError(
            "node_sampling drew no root node, so nothing is known of roots; "
            "use more trees, another random_state, or all nodes"
        )
    return drawn
