"""Bottom-up order of the nodes of binary trees, and scaled node vectors."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def node_heights(node_offsets, size):
    """Height of each node of binary trees, 0 for leaves.

    Parameters
    ----------
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        First node of each tree.
    size : ndarray of int32, shape (n_nodes,)
        Number of nodes of each subtree, in preorder.

    Returns
    -------
    ndarray of int32, shape (n_nodes,)
    """
    height = np.zeros(size.size, dtype=np.int32)
    for t in range(node_offsets.size - 1):
        for v in range(node_offsets[t + 1] - 1, node_offsets[t] - 1, -1):
            if size[v] > 1:
                left = height[v + 1]
                right = height[v + 1 + size[v + 1]]
                height[v] = 1 + max(left, right)
    return height


@njit(nogil=True, cache=True)
def rescale_rows(rows, log_scale):
    """Divide each row by its largest absolute value and add its log to a scale.

    Parameters
    ----------
    rows : ndarray of float64, shape (n_rows, n)
        Vectors; rescaled in place.
    log_scale : ndarray of float64, shape (n_rows,)
        Logarithm of the factor taken out of each row so far; -inf for a zero row.
    """
    for m in range(rows.shape[0]):
        row = rows[m]
        largest = 0.0
        for j in range(row.size):
            largest = max(largest, abs(row[j]))
        if largest > 0.0:
            # A subnormal maximum has no reciprocal.
            for j in range(row.size):
                row[j] /= largest
            log_scale[m] += np.log(largest)
        else:
            log_scale[m] = -np.inf
