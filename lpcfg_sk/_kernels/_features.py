"""Walks over trees that feature templates need."""

import numpy as np
from numba import njit

__all__ = ["first_other_head"]


@njit(nogil=True, cache=True)
def first_other_head(up, head):
    """First ancestor's head that differs from a node's own.

    Parameters
    ----------
    up : ndarray of int64, shape (n_nodes,)
        Index of each node's parent, -1 for a root; parents come before children.
    head : ndarray of int64, shape (n_nodes,)
        Head token of each node.

    Returns
    -------
    other : ndarray of int64, shape (n_nodes,)
        Head token of the first node on the path to the root whose head is not
        `head[i]`; -1 where there is none.
    """
    other = np.empty(len(up), dtype=np.int64)
    for i in range(len(up)):
        parent = up[i]
        if parent < 0:
            other[i] = -1
        elif head[parent] != head[i]:
            other[i] = head[parent]
        else:
            other[i] = other[parent]
    return other
