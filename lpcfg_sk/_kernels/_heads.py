"""Head children and lexical heads of all nodes of trees."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def find_heads(
    label, size, parent, start, node_offsets, intermediate, row, column, rank
):
    """Head child and head word of every node, in one bottom-up sweep.

    A child's rank under its parent is ``2 * group + from_right``. The head is the
    child of the lowest group, the last one of them where ``from_right`` is set and
    the first one otherwise. That choice is associative, so the head among the
    children of a node that was split is found over its intermediate nodes, without
    undoing the binarisation.

    Parameters
    ----------
    label, size, parent, start, node_offsets : arrays
        Columns of a treebank.
    intermediate : bool array, shape (n_labels,)
        Which labels are those of intermediate nodes.
    row, column : int32 arrays, shapes (n_labels,) and (n_labels + 1,)
        Place of each label in `rank`, as parent and as child; the last column is
        that of bare words.
    rank : int32 array, shape (n_rows, n_columns)
        Ranks of children.

    Returns
    -------
    head : int32 array
        Index of the head child within the tree; a leaf is its own head.
    token : int32 array
        Index of the head word within the tree.
    """
    n_labels = intermediate.size
    head = np.full(size.size, -1, dtype=np.int32)
    token = np.empty(size.size, dtype=np.int32)
    # The column of what competes for headship: of an intermediate node, that of
    # the best of its children.
    bid = np.empty(size.size, dtype=np.int32)
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
                bid[i] = column[n_labels]
            elif size[i] == 1 or not intermediate[a]:
                bid[i] = column[a]
            if i == lo:
                continue
            p = lo + parent[i]
            key = rank[row[label[p]], bid[i]]
            better = key >> 1 < best[p] >> 1
            first_of_equals = key >> 1 == best[p] >> 1 and key & 1 == 0
            if head[p] < 0 or better or first_of_equals:
                head[p] = i - lo
                best[p] = key
                bid[p] = bid[i]
    return head, token
