"""Binarisation of trees and its inverse.

Labels are combined as numbers: a combination is a path in a growing table of pairs.
The caller turns the pairs that occur into strings, each of them once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._columns import NodeColumns
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held, lengthened

# First members of the pairs that begin a path. They are numpy integers, because numba
# compiles a function again for each plain constant that it is called with.
CHAIN = np.int64(-1)
ANCESTORS = np.int64(-2)
SIBLINGS = np.int64(-3)
INNER = np.int64(-4)
LEAF = np.int64(-5)
INTERMEDIATE = np.int64(-6)

# Second member of a path that remembers nothing.
EMPTY = np.int64(0)

RIGHT = 0
LEFT = 1
HEAD = 2


@njit(**HELPER)
def _slot(slots, keys, key):
    """Return where a key is, or where it belongs."""
    mask = slots.size - 1
    mixed = (key >> 32) * 1000003 + (key & 0xFFFFFFFF) * 7919
    position = (mixed ^ (mixed >> 15)) & mask
    while slots[position] >= 0 and keys[slots[position]] != key:
        position = (position + 1) & mask
    return position


class _PairTable(NamedTuple):
    """An open-addressing table of pairs.

    Attributes
    ----------
    keys : int64 array
        Pairs, packed as ``first << 32 | second``.
    slots : int32 array
        Hash table: numbers of pairs, -1 where it is free.
    count : int64
        Number of pairs in the table.
    """

    keys: np.ndarray
    slots: np.ndarray
    count: int


@njit(**KERNEL)
def _pair(table, first, second):
    """Return the number of a pair, and the table, which is a new one if it grew."""
    keys, slots, count = table
    key = (first << 32) | second
    position = _slot(slots, keys, key)
    if slots[position] >= 0:
        return np.int64(slots[position]), table
    if count == keys.size:
        keys = lengthened(keys, 2 * keys.size)
        slots = np.full(4 * keys.size, -1, dtype=np.int32)
        for i in range(count):
            slots[_slot(slots, keys, keys[i])] = i
        position = _slot(slots, keys, key)
    keys[count] = key
    slots[position] = count
    return np.int64(count), _PairTable(keys, slots, count + 1)


@held
@njit(**KERNEL)
def binarize_trees(nodes, head, n_labels, direction, horizontal, vertical, max_pieces):
    """Collapse unary chains and binarise, in one sweep over the preorder.

    Parameters
    ----------
    nodes : NodeColumns
        Trees.
    head : int32 array, shape (n_nodes,)
        Head child of each node within its tree; only used if `direction` is HEAD.
    n_labels : int
        Number of labels, which also stands for a bare word in the pairs.
    direction : int
        RIGHT, LEFT or HEAD. The first two are the same as heads that always are
        the last or the first child.
    horizontal : int
        How many siblings an intermediate node remembers, -1 for all.
    vertical : int
        How many generations a label includes, counting itself.
    max_pieces : int
        Greatest number of labels that the distinct labels may remember in all.

    Returns
    -------
    out_label : int32 array, shape (n_new_nodes,)
        Pair of each new node.
    out_start, out_stop : int32 arrays, shape (n_new_nodes,)
        Spans. A binary node over n words has ``2 * n - 1`` nodes.
    out_offsets : int64 array, shape (n_trees + 1,)
        First new node of each tree.
    keys : int64 array
        The pairs, packed as ``first << 32 | second``.
    pieces : int64
        Number of remembered labels. If it is more than `max_pieces`, the kernel gave
        up and the other results must not be used.
    """
    label, size, parent, start, stop, node_offsets = nodes
    n_trees = node_offsets.size - 1
    n_nodes = size.size
    out_offsets = np.zeros(n_trees + 1, dtype=np.int64)
    widest = np.int64(0)
    for t in range(n_trees):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        out_offsets[t + 1] = out_offsets[t]
        if hi > lo:
            out_offsets[t + 1] += 2 * np.int64(stop[lo]) - 1
            widest = max(widest, np.int64(stop[lo]))
    out_label = np.empty(out_offsets[n_trees], dtype=np.int32)
    out_start = np.empty(out_offsets[n_trees], dtype=np.int32)
    out_stop = np.empty(out_offsets[n_trees], dtype=np.int32)

    table = _PairTable(
        np.empty(1024, dtype=np.int64),
        np.full(4096, -1, dtype=np.int32),
        np.int64(0),
    )
    pieces = np.int64(0)
    # For each node: the chain that ends in it, the first node of its chain, and the
    # intermediate node to write just before it.
    chain = np.empty(n_nodes, dtype=np.int32)
    chain_top = np.empty(n_nodes, dtype=np.int32)
    before = np.full(n_nodes, -1, dtype=np.int32)
    before_stop = np.empty(n_nodes, dtype=np.int32)
    children = np.empty(widest, dtype=np.int64)
    split_off = np.empty(widest, dtype=np.int64)
    out = 0
    for t in range(n_trees):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        for i in range(lo, hi):
            if pieces > max_pieces:
                break
            symbol = np.int64(label[i])
            if symbol < 0:
                symbol = np.int64(n_labels)
            p = lo + parent[i]
            if i > lo and size[p + 1] == size[p] - 1:
                begin = np.int64(chain[p])
                chain_top[i] = chain_top[p]
            else:
                begin = CHAIN
                chain_top[i] = i - lo
            pair, table = _pair(table, begin, symbol)
            chain[i] = pair
            if size[i] > 1 and size[i + 1] == size[i] - 1:
                continue
            leaf = size[i] == 1
            first = lo + chain_top[i]

            # Vertical memory; a single pre-terminal has none.
            memory, table = _pair(table, ANCESTORS, EMPTY)
            n_above = 0
            if not (leaf and first == i):
                p = np.int64(parent[first])
                while n_above < vertical - 1 and p >= 0:
                    memory, table = _pair(table, memory, np.int64(label[lo + p]))
                    n_above += 1
                    p = np.int64(parent[lo + p])

            if before[first] >= 0:
                out_label[out] = before[first]
                out_start[out] = start[first]
                out_stop[out] = before_stop[first]
                out += 1
            kind = LEAF if leaf else INNER
            pair, table = _pair(table, kind, np.int64(chain[i]))
            n_known = table.count
            pair, table = _pair(table, pair, memory)
            if table.count > n_known:
                pieces += n_above
            out_label[out] = pair
            out_start[out] = start[i]
            out_stop[out] = stop[i]
            out += 1
            if leaf:
                continue

            n = 0
            n_left = 0
            c = i + 1
            while c < i + size[i]:
                if direction == HEAD and lo + head[i] == c:
                    n_left = n
                children[n] = c
                n += 1
                c += size[c]
            if direction == RIGHT:
                n_left = n - 1
            elif direction == LEFT:
                n_left = 0
            n_right = n - 1 - n_left
            # From the root down: the right children, outermost first, then the left.
            for k in range(n_right):
                split_off[k] = children[n - 1 - k]
            for k in range(n_left):
                split_off[n_right + k] = children[k]
            owner, table = _pair(table, INTERMEDIATE, np.int64(label[i]))
            owner, table = _pair(table, owner, memory)
            empty, table = _pair(table, SIBLINGS, EMPTY)
            remembered = empty
            for k in range(1, n - 1):
                n_remembered = k if horizontal < 0 else min(k, horizontal)
                if horizontal < 0:
                    oldest = k - 1
                else:
                    remembered = empty
                    oldest = k - n_remembered
                for s in range(oldest, k):
                    symbol = np.int64(label[split_off[s]])
                    if symbol < 0:
                        symbol = np.int64(n_labels)
                    remembered, table = _pair(table, remembered, symbol)
                n_known = table.count
                pair, table = _pair(table, owner, remembered)
                if table.count > n_known:
                    pieces += n_above + n_remembered
                    if pieces > max_pieces:
                        break
                if k <= n_right:
                    out_label[out] = pair
                    out_start[out] = start[i]
                    out_stop[out] = start[children[n - k]]
                    out += 1
                else:
                    c = children[k - n_right]
                    before[c] = pair
                    before_stop[c] = stop[children[n_left]]
    return (
        out_label,
        out_start,
        out_stop,
        out_offsets,
        table.keys[: table.count],
        pieces,
    )


@held
@njit(**KERNEL)
def link_binary(start, stop, node_offsets):
    """Return sizes and parents of binary trees in preorder, from their spans.

    Parameters
    ----------
    start, stop : int32 arrays, shape (n_nodes,)
        Spans of the nodes.
    node_offsets : int64 array, shape (n_trees + 1,)
        First node of each tree.

    Returns
    -------
    size, parent : int32 arrays
    """
    size = np.empty(start.size, dtype=np.int32)
    parent = np.empty(start.size, dtype=np.int32)
    for t in range(node_offsets.size - 1):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        if hi > lo:
            parent[lo] = -1
        for i in range(lo, hi):
            size[i] = 2 * (stop[i] - start[i]) - 1
            if size[i] > 1:
                left = i + 1
                right = left + 2 * (stop[left] - start[left]) - 1
                parent[left] = i - lo
                parent[right] = i - lo
    return size, parent


@held
@njit(**KERNEL)
def unbinarize_trees(nodes, intermediate, chain_offsets, chain, fallback):
    """Expand unary chains and splice the children of intermediate nodes.

    Parameters
    ----------
    nodes : NodeColumns
        Trees, which need not be binary.
    intermediate : bool array, shape (n_labels,)
        Which labels belong to intermediate nodes.
    chain_offsets : int64 array, shape (n_labels + 1,)
        Label ``a`` stands for ``chain[chain_offsets[a]:chain_offsets[a + 1]]``, which
        is empty for a bare word.
    chain : int32 array
        Original labels.
    fallback : int
        Original label of a root that stands for a bare word.

    Returns
    -------
    NodeColumns
        The original trees.
    """
    label, size, parent, start, stop, node_offsets = nodes
    n_trees = node_offsets.size - 1
    n_nodes = size.size
    # For each node: how many nodes it becomes, the nearest node at or above it that
    # becomes at least one, its subtree's new size, and the last node that it becomes.
    n_new = np.empty(n_nodes, dtype=np.int32)
    kept = np.empty(n_nodes, dtype=np.int64)
    new_size = np.empty(n_nodes, dtype=np.int32)
    last = np.empty(n_nodes, dtype=np.int32)
    out_offsets = np.zeros(n_trees + 1, dtype=np.int64)
    for t in range(n_trees):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        for i in range(lo, hi):
            a = label[i]
            length = np.int64(0)
            if a >= 0 and not (intermediate[a] and size[i] > 1 and i > lo):
                length = chain_offsets[a + 1] - chain_offsets[a]
            if i == lo:
                length = max(length, np.int64(1))
            elif length == 0 and size[i] == 1:
                # A bare word alone under a node makes that node a pre-terminal.
                above = kept[lo + parent[i]]
                length = np.int64(stop[above] - start[above] > 1)
            n_new[i] = length
            kept[i] = i if length > 0 else kept[lo + parent[i]]
            new_size[i] = length
        for i in range(hi - 1, lo, -1):
            new_size[lo + parent[i]] += new_size[i]
        out_offsets[t + 1] = out_offsets[t] + (new_size[lo] if hi > lo else 0)

    n_out = out_offsets[n_trees]
    out_label = np.empty(n_out, dtype=np.int32)
    out_size = np.empty(n_out, dtype=np.int32)
    out_parent = np.empty(n_out, dtype=np.int32)
    out_start = np.empty(n_out, dtype=np.int32)
    out_stop = np.empty(n_out, dtype=np.int32)
    out = np.int64(0)
    for t in range(n_trees):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        base = out_offsets[t]
        for i in range(lo, hi):
            a = label[i]
            bare = a < 0 or chain_offsets[a + 1] == chain_offsets[a]
            above = np.int64(-1)
            if i > lo:
                above = np.int64(last[kept[lo + parent[i]]])
            for k in range(n_new[i]):
                if not bare:
                    out_label[out] = chain[chain_offsets[a] + k]
                else:
                    out_label[out] = fallback if i == lo else -1
                out_size[out] = new_size[i] - k
                out_parent[out] = above
                out_start[out] = start[i]
                out_stop[out] = stop[i]
                above = out - base
                out += 1
            last[i] = above
    return NodeColumns(
        out_label, out_size, out_parent, out_start, out_stop, out_offsets
    )
