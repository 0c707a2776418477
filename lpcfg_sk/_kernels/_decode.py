"""The best tree of a forest, for scores that add up over items and rules."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def best_derivations(forest, n, item_score, app_score, hyper_score, best, back):
    """Fill the best score of each item and the edge that gives it.

    A tree scores the sum of `item_score` over its items, and, over its rule
    applications, of `app_score` (one value a rule application) or `hyper_score` (one
    value for each of its edges; empty where `app_score` counts).
    """
    for item in range(forest.item_offset[n]):
        best[item] = item_score[item]
        back[item] = -1
    for item in range(forest.item_offset[n], len(best)):
        best[item] = -math.inf
        back[item] = -1
    hyper = 0
    span = n
    for width in range(2, n + 1):
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            edges = range(forest.edge_offset[g], forest.edge_offset[g + 1])
            if len(hyper_score) == 0:
                top = -math.inf
                top_edge = -1
                for e in edges:
                    value = best[forest.edge_left[e]] + best[forest.edge_right[e]]
                    if value > top:
                        top = value
                        top_edge = e
                for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                    value = top + app_score[a]
                    if value > best[forest.app_parent[a]]:
                        best[forest.app_parent[a]] = value
                        back[forest.app_parent[a]] = top_edge
            else:
                for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                    item = forest.app_parent[a]
                    for e in edges:
                        value = (
                            best[forest.edge_left[e]]
                            + best[forest.edge_right[e]]
                            + hyper_score[hyper]
                        )
                        hyper += 1
                        if value > best[item]:
                            best[item] = value
                            back[item] = e
        end = span + n - width + 1
        for item in range(forest.item_offset[span], forest.item_offset[end]):
            best[item] += item_score[item]
        span = end


@njit(nogil=True, cache=True)
def follow(forest, root, back, items, parent):
    """Fill items and parents of the tree below `root`, in preorder."""
    stack = np.empty((len(items) + 1, 2), dtype=np.int32)
    stack[0, 0], stack[0, 1] = root, -1
    height = 1
    count = 0
    while height > 0:
        height -= 1
        item = stack[height, 0]
        items[count] = item
        parent[count] = stack[height, 1]
        if back[item] >= 0:
            stack[height, 0] = forest.edge_right[back[item]]
            stack[height, 1] = count
            stack[height + 1, 0] = forest.edge_left[back[item]]
            stack[height + 1, 1] = count
            height += 2
        count += 1


@njit(nogil=True, cache=True)
def subtree_sizes(node_offsets, parent, size):
    """Fill the number of nodes below each node, with itself; `size` is one."""
    for t in range(len(node_offsets) - 1):
        first = node_offsets[t]
        for node in range(node_offsets[t + 1] - 1, first, -1):
            size[first + parent[node]] += size[node]
