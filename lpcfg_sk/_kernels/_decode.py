"""Best trees of a forest, by additive scores or with latent states."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_inside import (
    child_sizes,
    edge_factor,
    rescale_span,
    set_references,
    spans_of_row,
)
from lpcfg_sk._kernels._shared import KERNEL, set_row


class TreeScores(NamedTuple):
    """Scores that add up over the parts of a tree.

    Attributes
    ----------
    item : ndarray of float64, shape (n_items,)
        One score per item.
    application : ndarray of float64
        One score per rule application; empty where `hyper` counts.
    hyper_offset : ndarray of int64
        Application a has the scores ``hyper[hyper_offset[a]:hyper_offset[a + 1]]``.
    hyper : ndarray of float64
        One score per edge of each rule application; empty where `application` counts.
    root : ndarray of float64, shape (n_nonterminals,)
        Score of each nonterminal at the root.
    """

    item: np.ndarray
    application: np.ndarray
    hyper_offset: np.ndarray
    hyper: np.ndarray
    root: np.ndarray


class Applications(NamedTuple):
    """Rule applications of a forest by their parent.

    Attributes
    ----------
    group : ndarray of int64, shape (n_applications,)
        Group of each application.
    offset : ndarray of int64, shape (n_items + 1,)
        Item t has the applications ``by_item[offset[t]:offset[t + 1]]``.
    by_item : ndarray of int64, shape (n_applications,)
        Applications, sorted by their parent item.
    """

    group: np.ndarray
    offset: np.ndarray
    by_item: np.ndarray


@njit(**KERNEL)
def best_derivations(forest, scores, best, back):
    """Fill the best score of each item and the edge that gives it.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    scores : TreeScores
        Scores of items and rule applications; those of roots are not counted.
    best : ndarray of float64, shape (n_items,)
        Best score of each item.
    back : ndarray of int64, shape (n_items,)
        Edge of the best derivation, -1 for leaves.
    """
    item_score, app_score, hyper_score = scores.item, scores.application, scores.hyper
    n_rows = len(forest.n_words)
    for item in range(len(best)):
        best[item] = -math.inf
        back[item] = -1
    for row in range(n_rows):
        words = spans_of_row(forest, row, np.int64(1))
        for item in range(
            forest.item_offset[words.start], forest.item_offset[words.stop]
        ):
            best[item] = item_score[item]
    hyper = 0
    for width in range(2, len(forest.level_offset) - 1):
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            edges = range(forest.edge_offset[g], forest.edge_offset[g + 1])
            if len(hyper_score) == 0:
                best_pair = -math.inf
                best_edge = -1
                for e in edges:
                    value = best[forest.edge_left[e]] + best[forest.edge_right[e]]
                    if value > best_pair:
                        best_pair = value
                        best_edge = e
                for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                    value = best_pair + app_score[a]
                    if value > best[forest.app_parent[a]]:
                        best[forest.app_parent[a]] = value
                        back[forest.app_parent[a]] = best_edge
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
        for row in range(n_rows):
            spans = spans_of_row(forest, row, width)
            for item in range(
                forest.item_offset[spans.start], forest.item_offset[spans.stop]
            ):
                best[item] += item_score[item]


@njit(**KERNEL)
def follow(left, right, root, nodes, parent):
    """List a binary tree in preorder.

    Parameters
    ----------
    left, right : ndarray of int, shape (n,)
        Children of each node, -1 for a leaf.
    root : int
        Node at the root.
    nodes, parent : ndarray of int32, shape (n_nodes,)
        Filled with the nodes of the tree, and with the places of their parents.
    """
    stack = np.empty((len(nodes) + 1, 2), dtype=np.int32)
    stack[0, 0], stack[0, 1] = root, -1
    height = 1
    count = 0
    while height > 0:
        height -= 1
        node = stack[height, 0]
        nodes[count] = node
        parent[count] = stack[height, 1]
        if left[node] >= 0:
            stack[height, 0], stack[height, 1] = right[node], count
            stack[height + 1, 0], stack[height + 1, 1] = left[node], count
            height += 2
        count += 1


@njit(**KERNEL)
def follow_rows(forest, root, best, back, items, parent, found):
    """List the best tree of each sentence.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    root : ndarray of float64, shape (n_nonterminals,)
        Score of each nonterminal at the root.
    best, back : ndarray
        As :func:`best_derivations` fills them.
    items, parent : ndarray of int32, shape (n_nodes,)
        Filled with the 2n - 1 nodes of each sentence, in preorder.
    found : ndarray of bool, shape (n_rows,)
        Filled: whether the sentence has a tree with a score above -inf.
    """
    left = np.full(len(back), -1, dtype=np.int32)
    right = np.full(len(back), -1, dtype=np.int32)
    for item in range(len(back)):
        if back[item] >= 0:
            left[item] = forest.edge_left[back[item]]
            right[item] = forest.edge_right[back[item]]
    first = 0
    for row in range(len(found)):
        last = first + 2 * forest.n_words[row] - 1
        whole = forest.row_span[row + 1] - 1
        largest, top = -math.inf, np.int64(-1)
        for item in range(forest.item_offset[whole], forest.item_offset[whole + 1]):
            value = best[item] + root[forest.item_label[item]]
            if value > largest:
                largest, top = value, item
        found[row] = top >= 0
        if top >= 0:
            follow(left, right, top, items[first:last], parent[first:last])
        first = last


@njit(**KERNEL)
def viterbi(forest, n, tensors, best):
    """Fill the probability of the best derivation of each item and state.

    Parameters
    ----------
    forest : Forest
        Items of the sentence.
    n : int
        Number of words.
    tensors : Tensors
        Rules of the model, none of them negative.
    best : ItemVectors
        Scaled like inside vectors. On entry those of the leaves are given, all others
        are zero.
    """
    vector_offset, vectors, exponent = best.offset, best.values, best.exponent
    rule_offset, binary = tensors.rule_offset, tensors.binary
    best_pair = np.empty(tensors.largest)
    for width in range(2, n + 1):
        set_references(forest, width, exponent)
        for g in range(forest.level_offset[width], forest.level_offset[width + 1]):
            best_pair[:] = 0.0
            size = 0
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                factor = edge_factor(forest, exponent, e, g)
                size = 0
                for j in range(vector_offset[left], vector_offset[left + 1]):
                    x = factor * vectors[j]
                    for k in range(vector_offset[right], vector_offset[right + 1]):
                        best_pair[size] = max(best_pair[size], x * vectors[k])
                        size += 1
            for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                cell = rule_offset[forest.app_rule[a]]
                if cell < 0:
                    continue
                item = forest.app_parent[a]
                for h in range(vector_offset[item], vector_offset[item + 1]):
                    largest = vectors[h]
                    for s in range(size):
                        largest = max(largest, binary[cell + s] * best_pair[s])
                    vectors[h] = largest
                    cell += size
        for span in spans_of_row(forest, 0, width):
            if rescale_span(forest, span, best) == 0.0:
                exponent[span] = 0


@njit(**KERNEL)
def follow_viterbi(forest, applications, tensors, best, root, root_state, nodes):
    """Follow the best derivation of an item and state.

    Parameters
    ----------
    forest : Forest
        Items of the sentence.
    applications : Applications
        Rule applications by parent.
    tensors : Tensors
        Rules of the model.
    best : ItemVectors
        Probabilities of :func:`viterbi`.
    root, root_state : int
        Item at the root, and its state.
    nodes : ndarray of int32, shape (3, 2n - 1)
        Filled with items, parents and states of the tree, in preorder.
    """
    vector_offset, vectors, exponent = best.offset, best.values, best.exponent
    rule_offset, binary = tensors.rule_offset, tensors.binary
    items, parent, states = nodes[0], nodes[1], nodes[2]
    stack = np.empty((len(items) + 1, 3), dtype=np.int64)
    set_row(stack, 0, root, root_state, -1)
    height = 1
    count = 0
    while height > 0:
        height -= 1
        item, state = stack[height, 0], stack[height, 1]
        items[count] = item
        states[count] = state
        parent[count] = stack[height, 2]
        largest = -1.0
        best_edge = best_left = best_right = -1
        for q in range(applications.offset[item], applications.offset[item + 1]):
            a = applications.by_item[q]
            if rule_offset[forest.app_rule[a]] < 0:
                continue
            g = applications.group[a]
            m_left, m_right = child_sizes(forest, g, vector_offset)
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                factor = edge_factor(forest, exponent, e, g)
                cell = rule_offset[forest.app_rule[a]] + state * m_left * m_right
                for j in range(m_left):
                    x = factor * vectors[vector_offset[left] + j]
                    for k in range(m_right):
                        value = x * vectors[vector_offset[right] + k] * binary[cell]
                        cell += 1
                        if value > largest:
                            largest = value
                            best_edge, best_left, best_right = e, j, k
        if best_edge >= 0:
            set_row(stack, height, forest.edge_right[best_edge], best_right, count)
            set_row(stack, height + 1, forest.edge_left[best_edge], best_left, count)
            height += 2
        count += 1


@njit(**KERNEL)
def rule_marginals(forest, tensors, alpha, beta, hyper_offset, out):
    """Fill μ(a → b c, i, k, j) of each edge of each rule application.

    Parameters
    ----------
    forest : Forest
        Items of the sentence.
    tensors : Tensors
        Rules of the model.
    alpha : ItemVectors
        Inside vectors.
    beta : ndarray of float, as long as ``alpha.values``
        Outside vectors.
    hyper_offset : ndarray of int64, shape (n_applications + 1,)
        Application x has the marginals ``out[hyper_offset[x]:hyper_offset[x + 1]]``.
    out : ndarray of float64
        Marginals, in the scale of the sentence's total.
    """
    vector_offset, inside, exponent = alpha.offset, alpha.values, alpha.exponent
    rule_offset, binary, outside = tensors.rule_offset, tensors.binary, beta
    gathered = np.empty(tensors.largest)
    for g in range(len(forest.group_span)):
        first, last = forest.edge_offset[g], forest.edge_offset[g + 1]
        m_left, m_right = child_sizes(forest, g, vector_offset)
        size = m_left * m_right
        for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
            cell = rule_offset[forest.app_rule[a]]
            if cell < 0:
                out[hyper_offset[a] : hyper_offset[a + 1]] = 0.0
                continue
            gathered[:size] = 0.0
            item = forest.app_parent[a]
            for h in range(vector_offset[item], vector_offset[item + 1]):
                for s in range(size):
                    gathered[s] += outside[h] * binary[cell + s]
                cell += size
            for e in range(first, last):
                left, right = forest.edge_left[e], forest.edge_right[e]
                total = 0.0
                s = 0
                for j in range(m_left):
                    row = 0.0
                    for k in range(m_right):
                        row += gathered[s] * inside[vector_offset[right] + k]
                        s += 1
                    total += row * inside[vector_offset[left] + j]
                factor = edge_factor(forest, exponent, e, g)
                out[hyper_offset[a] + e - first] = total * factor


@njit(**KERNEL)
def subtree_sizes(node_offsets, parent, size):
    """Fill the number of nodes of each subtree; `size` holds ones on entry."""
    for t in range(len(node_offsets) - 1):
        first = node_offsets[t]
        for node in range(node_offsets[t + 1] - 1, first, -1):
            size[first + parent[node]] += size[node]
