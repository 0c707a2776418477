"""The k best trees of a forest, found lazily (Huang and Chiang 2005, algorithm 3).

Each item has a list of its derivations, the best first, and a heap of candidates for
the next one. A derivation is an *entry*: an edge and an entry of each child. The next
derivation of an item is only looked for when one of a parent's candidates needs it.
"""

import math

import numpy as np
from numba import njit

from lpcfg_sk._kernels._decode import follow
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held, lengthened

# Columns of the entries: item, edge (-1 for a leaf), entries of the children, next
# entry of the item, and the children in the item's heap (a skew heap).
_ITEM, _EDGE, _LEFT, _RIGHT, _NEXT, _HEAP_LEFT, _HEAP_RIGHT = range(7)


@njit(**HELPER)
def _meld(score, ids, a, b):
    """Return the root of the union of two heaps.

    Parameters
    ----------
    score : ndarray of float64, shape (n_entries,)
        Scores of all entries.
    ids : ndarray of int32, shape (n_entries, 7)
        All entries.
    a, b : int
        Roots of the heaps, -1 for an empty one.
    """
    if a < 0 or b < 0:
        return max(a, b)
    if score[a] < score[b]:
        a, b = b, a
    root = a
    while True:
        below = ids[a, _HEAP_RIGHT]
        ids[a, _HEAP_RIGHT] = ids[a, _HEAP_LEFT]
        if below < 0:
            ids[a, _HEAP_LEFT] = b
            return root
        if score[below] < score[b]:
            below, b = b, below
        ids[a, _HEAP_LEFT] = below
        a = below


@njit(**HELPER)
def _reserve(score, ids, length):
    """Return the entries, or longer copies where they have fewer places."""
    if length <= len(score):
        return score, ids
    return lengthened(score, 2 * length), lengthened(ids, 2 * length)


@njit(**HELPER)
def _set_entry(ids, entry, item, edge, left, right):
    """Write a new entry, without a successor and a heap of its own.

    Parameters
    ----------
    ids : ndarray of int32, shape (n_entries, 7)
        All entries.
    entry : int
        Row to write.
    item, edge : int
        Item, and edge of its derivation.
    left, right : int
        Entries of the children.
    """
    ids[entry, _ITEM], ids[entry, _EDGE] = item, edge
    ids[entry, _LEFT], ids[entry, _RIGHT] = left, right
    ids[entry, _NEXT] = ids[entry, _HEAP_LEFT] = ids[entry, _HEAP_RIGHT] = -1


@held
@njit(**KERNEL)
def k_best(forest, n, applications, scores, best, back, k):
    """Find the k best derivations of a sentence.

    Parameters
    ----------
    forest : Forest
        Items of the sentence.
    n : int
        Number of words.
    applications : Applications
        Rule applications by parent.
    scores : TreeScores
        Scores that add up.
    best : ndarray of float64, shape (n_items,)
        Best score of each item, from ``best_derivations``.
    back : ndarray of int64, shape (n_items,)
        Edge of the best derivation, from ``best_derivations``.
    k : int
        Number of derivations.

    Returns
    -------
    scores : ndarray of float64, shape (n_trees,)
        Scores, falling.
    items, parents : ndarray of int32, shape (n_trees, 2n - 1)
        Items and parents of each tree, in preorder.
    """
    item_score, app_score, root_score = scores.item, scores.application, scores.root
    hyper_offset, hyper_score = scores.hyper_offset, scores.hyper
    n_items = len(best)
    score = np.empty(4 * n_items + 64)
    ids = np.empty((len(score), 7), dtype=np.int32)
    count = 0
    first = np.full(n_items, -1, dtype=np.int32)
    last = np.full(n_items, -1, dtype=np.int32)
    heap = np.full(n_items, -1, dtype=np.int32)
    opened = np.zeros(n_items, dtype=np.bool_)
    pending = np.ones(n_items, dtype=np.bool_)
    done = np.zeros(n_items, dtype=np.bool_)
    for item in range(n_items):
        if best[item] == -math.inf:
            done[item] = True
            continue
        left = right = -1
        edge = back[item]
        if edge >= 0:
            left = first[forest.edge_left[edge]]
            right = first[forest.edge_right[edge]]
        score[count] = best[item]
        _set_entry(ids, count, item, edge, left, right)
        first[item] = last[item] = count
        count += 1

    root_first = forest.item_offset[-2]
    n_roots = n_items - root_first
    at_root = first[root_first:].copy()
    entries = np.empty(k, dtype=np.int32)
    tree_score = np.empty(k)
    n_trees = 0
    stack = np.empty(n_items + 1, dtype=np.int32)
    while n_trees < k:
        best_root = -1
        best_score = -math.inf
        for t in range(n_roots):
            if at_root[t] >= 0:
                value = (
                    score[at_root[t]] + root_score[forest.item_label[root_first + t]]
                )
                if value > best_score:
                    best_root, best_score = t, value
        if best_root < 0:
            break
        entries[n_trees] = at_root[best_root]
        tree_score[n_trees] = best_score
        n_trees += 1
        if n_trees == k:
            break
        stack[0] = root_first + best_root
        height = 1
        while height > 0:
            item = stack[height - 1]
            if not opened[item]:
                opened[item] = True
                for q in range(
                    applications.offset[item], applications.offset[item + 1]
                ):
                    a = applications.by_item[q]
                    g = applications.group[a]
                    begin, end = forest.edge_offset[g], forest.edge_offset[g + 1]
                    score, ids = _reserve(score, ids, count + end - begin)
                    for e in range(begin, end):
                        left = first[forest.edge_left[e]]
                        right = first[forest.edge_right[e]]
                        if e == back[item] or left < 0 or right < 0:
                            continue
                        value = score[left] + score[right] + item_score[item]
                        if len(hyper_score) > 0:
                            value += hyper_score[hyper_offset[a] + e - begin]
                        else:
                            value += app_score[a]
                        if value == -math.inf:
                            continue
                        score[count] = value
                        _set_entry(ids, count, item, e, left, right)
                        heap[item] = _meld(score, ids, heap[item], count)
                        count += 1
            entry = last[item]
            if pending[item] and ids[entry, _EDGE] >= 0:
                left, right = ids[entry, _LEFT], ids[entry, _RIGHT]
                left_item, right_item = ids[left, _ITEM], ids[right, _ITEM]
                # The pair of ranks (x, y) follows (x, y - 1), and (x, 0) follows
                # (x - 1, 0): every pair has one predecessor, which is no worse.
                left_moves = right == first[right_item]
                if left_moves and ids[left, _NEXT] < 0 and not done[left_item]:
                    stack[height] = left_item
                    height += 1
                    continue
                if ids[right, _NEXT] < 0 and not done[right_item]:
                    stack[height] = right_item
                    height += 1
                    continue
                score, ids = _reserve(score, ids, count + 2)
                rest = score[entry] - score[left] - score[right]
                after_left, after_right = ids[left, _NEXT], ids[right, _NEXT]
                if left_moves and after_left >= 0:
                    score[count] = rest + score[after_left] + score[right]
                    _set_entry(ids, count, item, ids[entry, _EDGE], after_left, right)
                    heap[item] = _meld(score, ids, heap[item], count)
                    count += 1
                if after_right >= 0:
                    score[count] = rest + score[left] + score[after_right]
                    _set_entry(ids, count, item, ids[entry, _EDGE], left, after_right)
                    heap[item] = _meld(score, ids, heap[item], count)
                    count += 1
            pending[item] = False
            if heap[item] < 0:
                done[item] = True
            else:
                entry = heap[item]
                heap[item] = _meld(
                    score, ids, ids[entry, _HEAP_LEFT], ids[entry, _HEAP_RIGHT]
                )
                ids[last[item], _NEXT] = entry
                last[item] = entry
                pending[item] = True
            height -= 1
        at_root[best_root] = ids[at_root[best_root], _NEXT]
    items = np.empty((n_trees, 2 * n - 1), dtype=np.int32)
    parents = np.empty((n_trees, 2 * n - 1), dtype=np.int32)
    for t in range(n_trees):
        follow(ids[:, _LEFT], ids[:, _RIGHT], entries[t], items[t], parents[t])
        items[t] = ids[:, _ITEM][items[t]]
    return tree_score[:n_trees], items, parents
