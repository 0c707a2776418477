"""Columns of trees: empty categories, head children and lexical heads."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import KERNEL, held


class NodeColumns(NamedTuple):
    """Nodes of all trees, in preorder.

    Attributes
    ----------
    label : int32 array, shape (n_nodes,)
        Label ids, -1 for a word that has siblings.
    size : int32 array, shape (n_nodes,)
        Number of nodes of the subtree; the first child of node ``i`` is ``i + 1``,
        the next sibling of ``c`` is ``c + size[c]``.
    parent : int32 array, shape (n_nodes,)
        Index of the parent within the tree, -1 for a root.
    start, stop : int32 arrays, shape (n_nodes,)
        Span in words.
    node_offsets : int64 array, shape (n_trees + 1,)
        Tree ``t`` has the nodes ``node_offsets[t]:node_offsets[t + 1]``.
    """

    label: np.ndarray
    size: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    node_offsets: np.ndarray


class Columns(NamedTuple):
    """Nodes of all trees as in :class:`NodeColumns`, and their tokens.

    Attributes
    ----------
    token : int32 array, shape (n_tokens,)
        Token ids; the k-th leaf of a tree is its k-th token.
    token_offsets : int64 array, shape (n_trees + 1,)
        Tree ``t`` has the tokens ``token_offsets[t]:token_offsets[t + 1]``.
    """

    label: np.ndarray
    size: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    node_offsets: np.ndarray
    token: np.ndarray
    token_offsets: np.ndarray


@held
@njit(**KERNEL)
def drop_traces(columns, trees, trace, pruned):
    """Remove the leaves labelled ``trace`` and the nodes that become empty.

    A node that is left with a single word becomes its pre-terminal. A tree that
    consists of traces is removed.

    Parameters
    ----------
    columns : Columns
        The trees.
    trees : int
        Number of trees in the columns.
    trace : int
        Label of the leaves to remove.
    pruned : Columns
        Output, as long as ``columns``. It may be ``columns`` itself, because nothing
        is written ahead of what has been read.

    Returns
    -------
    trees, nodes, tokens : int
        Number of each that are left.
    """
    label, size, parent, start, stop, node_offsets, token, token_offsets = columns
    node = 0
    word = 0
    tree = 0
    pruned.node_offsets[0] = 0
    pruned.token_offsets[0] = 0
    next_first = 0
    next_token = 0
    for t in range(trees):
        first = next_first
        token_first = next_token
        next_first = node_offsets[t + 1]
        next_token = token_offsets[t + 1]
        n_nodes = next_first - first
        n_tokens = next_token - token_first
        # kept[k] is how many of the first k tokens stay.
        kept = np.zeros(n_tokens + 1, dtype=np.int32)
        for i in range(first, first + n_nodes):
            if size[i] == 1 and label[i] != trace:
                kept[start[i] + 1] = 1
        for k in range(n_tokens):
            kept[k + 1] += kept[k]
            if kept[k + 1] > kept[k]:
                pruned.token[word + kept[k]] = token[token_first + k]
        if kept[n_tokens] == 0:
            continue
        index = np.empty(n_nodes, dtype=np.int32)
        n_kept = 0
        for i in range(n_nodes):
            begin = kept[start[first + i]]
            end = kept[stop[first + i]]
            if begin == end:
                index[i] = -1
                continue
            up = parent[first + i]
            new_parent = index[up] if up >= 0 else -1
            if (
                label[first + i] < 0
                and new_parent == n_kept - 1
                and pruned.stop[node + new_parent] - pruned.start[node + new_parent]
                == 1
            ):
                # The parent of an only child without a label is its pre-terminal.
                index[i] = -1
                continue
            index[i] = n_kept
            pruned.label[node + n_kept] = label[first + i]
            pruned.parent[node + n_kept] = new_parent
            pruned.start[node + n_kept] = begin
            pruned.stop[node + n_kept] = end
            pruned.size[node + n_kept] = 1
            n_kept += 1
        for i in range(n_kept - 1, 0, -1):
            pruned.size[node + pruned.parent[node + i]] += pruned.size[node + i]
        node += n_kept
        word += kept[n_tokens]
        tree += 1
        pruned.node_offsets[tree] = node
        pruned.token_offsets[tree] = word
    return tree, node, word


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


@held
@njit(**KERNEL)
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


@held
@njit(**KERNEL)
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
