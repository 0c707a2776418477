"""Head children and lexical heads of all nodes of trees."""

from typing import NamedTuple

import numpy as np
from numba import njit


class HeadRules(NamedTuple):
    """Head rules over the labels of a treebank.

    Attributes
    ----------
    intermediate : bool array, shape (n_labels,)
        Which labels belong to intermediate nodes.
    row : int32 array, shape (n_labels,)
        Row of each label, as a parent, in `rank`.
    column : int32 array, shape (n_labels + 1,)
        Column of each label, as a child, in `rank`; the last one is for bare words.
    rank : int32 array, shape (n_rows, n_columns)
        ``2 * group + from_right`` of each child under each parent.
    """

    intermediate: np.ndarray
    row: np.ndarray
    column: np.ndarray
    rank: np.ndarray


@njit(nogil=True, cache=True)
def find_heads(nodes, rules):
    """Find the head child and the head word of every node, in one bottom-up sweep.

    The head is the child of the lowest group: the last one of them if ``from_right``
    is set and the first one otherwise. That choice is associative, so the head among
    the children of a node that was split is found over its intermediate nodes,
    without undoing the binarisation.

    Parameters
    ----------
    nodes : NodeColumns
        Trees.
    rules : HeadRules
        Ranks of children.

    Returns
    -------
    head : int32 array, shape (n_nodes,)
        Index of the head child within the tree; a leaf is its own head.
    token : int32 array, shape (n_nodes,)
        Index of the head word within the tree.
    """
    label, size, parent, start, _, node_offsets = nodes
    intermediate, row, column, rank = rules
    n_labels = intermediate.size
    head = np.full(size.size, -1, dtype=np.int32)
    token = np.empty(size.size, dtype=np.int32)
    # Column of the candidate for head; for an intermediate node, that of the best of
    # its children.
    candidate = np.empty(size.size, dtype=np.int32)
    best = np.empty(size.size, dtype=np.int32)
    for t in range(node_offsets.size - 1):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        for i in range(hi - 1, lo - 1, -1):
            a = label[i]
            if size[i] == 1:
                head[i] = i - lo
                token[i] = start[i]
            else:
                token[i] = token[lo + head[i]]
            if a < 0:
                candidate[i] = column[n_labels]
            elif size[i] == 1 or not intermediate[a]:
                candidate[i] = column[a]
            if i == lo:
                continue
            p = lo + parent[i]
            key = rank[row[label[p]], candidate[i]]
            better = key >> 1 < best[p] >> 1
            first_of_equals = key >> 1 == best[p] >> 1 and key & 1 == 0
            if head[p] < 0 or better or first_of_equals:
                head[p] = i - lo
                best[p] = key
                candidate[p] = candidate[i]
    return head, token
