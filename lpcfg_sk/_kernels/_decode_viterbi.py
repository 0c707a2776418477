"""The best derivation with latent states, and posteriors of rule applications."""

import math

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two


@njit(nogil=True, cache=True)
def _factor(forest, exponent, edge, reference):
    """Return the scale of an edge against that of its span."""
    return power_of_two(
        exponent[forest.item_span[forest.edge_left[edge]]]
        + exponent[forest.item_span[forest.edge_right[edge]]]
        - reference,
    )


@njit(nogil=True, cache=True)
def viterbi(forest, n, vector_offset, rule_offset, binary, largest, vectors, exponent):
    """Fill the probability of the best derivation of each item and state.

    `vectors` holds those of the leaves on entry, zeros elsewhere; all parameters must
    be non-negative. Scaled like inside vectors.
    """
    top = np.empty(largest)
    next_span = n
    for width in range(2, n + 1):
        spans = range(next_span, next_span + n - width + 1)
        next_span = spans.stop
        first, last = forest.level_offset[width], forest.level_offset[width + 1]
        for span in spans:
            exponent[span] = -(1 << 30)
        for g in range(first, last):
            reference = exponent[forest.group_span[g]]
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                reference = max(
                    reference,
                    exponent[forest.item_span[forest.edge_left[e]]]
                    + exponent[forest.item_span[forest.edge_right[e]]],
                )
            exponent[forest.group_span[g]] = reference
        for g in range(first, last):
            top[:] = 0.0
            size = 0
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                factor = _factor(forest, exponent, e, exponent[forest.group_span[g]])
                size = 0
                for j in range(vector_offset[left], vector_offset[left + 1]):
                    x = factor * vectors[j]
                    for k in range(vector_offset[right], vector_offset[right + 1]):
                        top[size] = max(top[size], x * vectors[k])
                        size += 1
            for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
                at = rule_offset[forest.app_rule[a]]
                if at < 0:
                    continue
                item = forest.app_parent[a]
                for h in range(vector_offset[item], vector_offset[item + 1]):
                    best = vectors[h]
                    for s in range(size):
                        best = max(best, binary[at + s] * top[s])
                    vectors[h] = best
                    at += size
        for span in spans:
            begin = vector_offset[forest.item_offset[span]]
            end = vector_offset[forest.item_offset[span + 1]]
            largest_value = 0.0
            for s in range(begin, end):
                largest_value = max(largest_value, vectors[s])
            if largest_value > 0.0:
                shift = math.frexp(largest_value)[1]
                for s in range(begin, end):
                    vectors[s] = math.ldexp(vectors[s], -shift)
                exponent[span] += shift
            else:
                exponent[span] = 0


@njit(nogil=True, cache=True)
def follow_viterbi(
    forest,
    app_group,
    item_app_offset,
    item_app,
    vector_offset,
    rule_offset,
    binary,
    vectors,
    exponent,
    root,
    root_state,
    items,
    states,
    parent,
):
    """Fill items, states and parents of the best derivation of a root, in preorder."""
    stack = np.empty((len(items) + 1, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = root, root_state, -1
    height = 1
    count = 0
    while height > 0:
        height -= 1
        item, state = stack[height, 0], stack[height, 1]
        items[count] = item
        states[count] = state
        parent[count] = stack[height, 2]
        best = -1.0
        best_edge = best_left = best_right = -1
        for q in range(item_app_offset[item], item_app_offset[item + 1]):
            a = item_app[q]
            if rule_offset[forest.app_rule[a]] < 0:
                continue
            g = app_group[a]
            for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
                left, right = forest.edge_left[e], forest.edge_right[e]
                m_left = vector_offset[left + 1] - vector_offset[left]
                m_right = vector_offset[right + 1] - vector_offset[right]
                factor = _factor(forest, exponent, e, exponent[forest.group_span[g]])
                at = rule_offset[forest.app_rule[a]] + state * m_left * m_right
                for j in range(m_left):
                    x = factor * vectors[vector_offset[left] + j]
                    for k in range(m_right):
                        value = x * vectors[vector_offset[right] + k] * binary[at]
                        at += 1
                        if value > best:
                            best = value
                            best_edge, best_left, best_right = e, j, k
        if best_edge >= 0:
            stack[height, 0] = forest.edge_right[best_edge]
            stack[height, 1] = best_right
            stack[height, 2] = count
            stack[height + 1, 0] = forest.edge_left[best_edge]
            stack[height + 1, 1] = best_left
            stack[height + 1, 2] = count
            height += 2
        count += 1


@njit(nogil=True, cache=True)
def rule_marginals(
    forest,
    vector_offset,
    rule_offset,
    binary,
    largest,
    inside,
    outside,
    exponent,
    hyper_offset,
    out,
):
    """Fill μ(a → b c, i, k, j) of each edge of each rule application.

    In the scale of the sentence's total; those of application x are
    ``out[hyper_offset[x]:hyper_offset[x + 1]]``.
    """
    gathered = np.empty(largest)
    for g in range(len(forest.group_span)):
        first, last = forest.edge_offset[g], forest.edge_offset[g + 1]
        left, right = forest.edge_left[first], forest.edge_right[first]
        m_left = vector_offset[left + 1] - vector_offset[left]
        m_right = vector_offset[right + 1] - vector_offset[right]
        size = m_left * m_right
        for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
            at = rule_offset[forest.app_rule[a]]
            if at < 0:
                out[hyper_offset[a] : hyper_offset[a + 1]] = 0.0
                continue
            gathered[:size] = 0.0
            item = forest.app_parent[a]
            for h in range(vector_offset[item], vector_offset[item + 1]):
                for s in range(size):
                    gathered[s] += outside[h] * binary[at + s]
                at += size
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
                out[hyper_offset[a] + e - first] = total * _factor(
                    forest, exponent, e, exponent[forest.group_span[g]]
                )
