"""Which states of an automaton depend on themselves."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

__all__ = ["Recursion", "recursion"]


class Recursion(NamedTuple):
    """The recursive part of an automaton, by the pattern of its transitions.

    Parameters
    ----------
    pairs : ndarray of bool, shape (n, n)
        Pairs of states of one strongly connected component with a cycle. No pair: only
        trees up to a certain height have a value.
    depth : int
        Length of the longest path from component to component.
    """

    pairs: np.ndarray
    depth: int


def recursion(tensors):
    """Find the states that depend on themselves.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors, one a node label.

    Returns
    -------
    Recursion
    """
    if not tensors:
        # Two automata may have no node label in common.
        return Recursion(np.zeros((0, 0), dtype=bool), 0)
    below = np.logical_or.reduce([t.children() for t in tensors])
    n_parts, part = connected_components(csr_array(below), connection="strong")
    cyclic = np.bincount(part, minlength=n_parts) > 1
    cyclic[part[np.diagonal(below)]] = True
    pairs = (part[:, None] == part) & cyclic[part][:, None]
    parents, children = (part[states] for states in np.nonzero(below))
    between = parents != children
    edges = np.unique(np.stack([parents[between], children[between]]), axis=1)
    depth = np.zeros(n_parts, dtype=np.int64)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, edges[0], depth[edges[1]] + 1)
        if np.array_equal(deeper, depth):
            return Recursion(pairs, int(depth.max(initial=0)))
        depth = deeper
