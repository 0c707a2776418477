"""Expected counts of rules in given trees, batched by rule.

Nodes that carry the same rule and wait for nothing are computed together: the
contractions of a batch are one matrix product each. Nodes are renumbered in the
order of computation, so a batch writes to consecutive rows.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC
from lpcfg_sk._kernels._products import add_product, multiply_rows
from lpcfg_sk._kernels._tree_inside_outside import rescale

#: Values of the largest matrix of a batch, which should stay in the second cache.
_SLAB = 16384
#: Largest number of nodes that are computed at once.
_NODES = 64


class Batches(NamedTuple):
    """Trees of a chunk, their nodes numbered in the order of computation.

    Inner nodes come first, in batches of one rule each, then the leaves.

    Attributes
    ----------
    tree : ndarray of int64, shape (n_nodes,)
        Tree of each node.
    weight : ndarray of float64, shape (n_trees,)
        Weight of each tree.
    n_states : ndarray of int64, shape (n_nodes,)
        Number of states of each node.
    left, right : ndarray of int64, shape (n_inner,)
        Children of the inner nodes.
    bounds : ndarray of int64, shape (n_batches + 1,)
        Batch g has the nodes ``bounds[g]:bounds[g + 1]``.
    batch_rule : ndarray of int32, shape (n_batches,)
        Rule of each batch.
    triples : ndarray of int64, shape (3, n_inner)
        Inner nodes sorted by rule, with their left and right children.
    rule_bounds : ndarray of int64, shape (n_rules + 1,)
        Rule r has the columns ``rule_bounds[r]:rule_bounds[r + 1]`` of `triples`.
    leaf_entry : ndarray of int32, shape (n_leaves,)
        Lexical rule of each leaf.
    root_node : ndarray of int64, shape (n_trees,)
        Root of each tree.
    top : ndarray of int32, shape (n_trees,)
        Root entry of each tree.
    """

    tree: np.ndarray
    weight: np.ndarray
    n_states: np.ndarray
    left: np.ndarray
    right: np.ndarray
    bounds: np.ndarray
    batch_rule: np.ndarray
    triples: np.ndarray
    rule_bounds: np.ndarray
    leaf_entry: np.ndarray
    root_node: np.ndarray
    top: np.ndarray


@njit(nogil=True, cache=True)
def schedule(node_offsets, size, parent, rule, n_rules):
    """Order the nodes of a chunk bottom-up, in batches of one rule.

    The next batch is of the rule with the largest part of its remaining nodes
    ready (children done): rare rules wait until most of their nodes can go
    together, which gives 40% fewer batches than going by height.

    Parameters
    ----------
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        Tree t has the nodes ``node_offsets[t]:node_offsets[t + 1]``.
    size, parent, rule : ndarray of int32, shape (n_nodes,)
        Subtree size, parent within the tree, and rule of each node.
    n_rules : int
        Number of rules.

    Returns
    -------
    order : ndarray of int64, shape (n_inner,)
        The inner nodes.
    bounds : ndarray of int64, shape (n_batches + 1,)
        Bounds of the batches among them.
    """
    n = len(size)
    waiting = np.zeros(n, dtype=np.int8)
    above = np.full(n, -1, dtype=np.int64)
    following = np.full(n, -1, dtype=np.int64)
    first = np.full(n_rules, -1, dtype=np.int64)
    ready = np.zeros(n_rules, dtype=np.int64)
    remaining = np.zeros(n_rules, dtype=np.int64)
    n_inner = 0
    for t in range(len(node_offsets) - 1):
        for i in range(node_offsets[t], node_offsets[t + 1]):
            if parent[i] >= 0:
                above[i] = node_offsets[t] + parent[i]
            if size[i] == 1:
                continue
            n_inner += 1
            r = rule[i]
            remaining[r] += 1
            left = i + 1
            right = left + size[left]
            waiting[i] = int(size[left] > 1) + int(size[right] > 1)
            if waiting[i] == 0:
                following[i] = first[r]
                first[r] = i
                ready[r] += 1
    order = np.empty(n_inner, dtype=np.int64)
    bounds = np.zeros(n_inner + 1, dtype=np.int64)
    n_batches = 0
    done = 0
    while done < n_inner:
        best = -1
        best_part = 0.0
        for r in range(n_rules):
            if ready[r] > best_part * remaining[r]:
                best_part = ready[r] / remaining[r]
                best = r
        i = first[best]
        first[best] = -1
        remaining[best] -= ready[best]
        ready[best] = 0
        while i >= 0:
            order[done] = i
            done += 1
            p = above[i]
            if p >= 0:
                waiting[p] -= 1
                if waiting[p] == 0:
                    r = rule[p]
                    following[p] = first[r]
                    first[r] = p
                    ready[r] += 1
            i = following[i]
        n_batches += 1
        bounds[n_batches] = done
    return order, bounds[: n_batches + 1].copy()


@njit(nogil=True, cache=True)
def _gather(rows, ids, n_columns, out):
    """Copy some rows; short loops let the processor fetch many at a time."""
    for b in range(len(ids)):
        for h in range(n_columns):
            out[b, h] = rows[ids[b], h]


@njit(nogil=True, cache=True)
def _pairs(x, y, n, n_left, n_right, out):
    """Write the outer products of the rows of `x` and `y`, one row each."""
    for b in range(n):
        for j in range(n_left):
            factor = x[b, j]
            for k in range(n_right):
                out[b, j, k] = factor * y[b, k]


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _split_down(mixed, x, y, n_left, n_right, out_left, out_right):
    """Multiply a flat matrix by the sibling's inside vector, from both sides."""
    for k in range(n_right):
        out_right[k] = 0.0
    j = 0
    while j + 4 <= n_left:
        row0 = mixed[j * n_right : (j + 1) * n_right]
        row1 = mixed[(j + 1) * n_right : (j + 2) * n_right]
        row2 = mixed[(j + 2) * n_right : (j + 3) * n_right]
        row3 = mixed[(j + 3) * n_right : (j + 4) * n_right]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        s0 = s1 = s2 = s3 = 0.0
        for k in range(n_right):
            s0 += row0[k] * y[k]
            s1 += row1[k] * y[k]
            s2 += row2[k] * y[k]
            s3 += row3[k] * y[k]
            out_right[k] += x0 * row0[k] + x1 * row1[k] + x2 * row2[k] + x3 * row3[k]
        out_left[j], out_left[j + 1], out_left[j + 2], out_left[j + 3] = s0, s1, s2, s3
        j += 4
    while j < n_left:
        row0 = mixed[j * n_right : (j + 1) * n_right]
        x0 = x[j]
        s0 = 0.0
        for k in range(n_right):
            s0 += row0[k] * y[k]
            out_right[k] += x0 * row0[k]
        out_left[j] = s0
        j += 1


@njit(nogil=True, cache=True)
def _step(n_pairs):
    """Return how many nodes of a batch are computed at once."""
    return min(max(_SLAB // n_pairs, 1), _NODES)


@njit(nogil=True, cache=True)
def inside_pass(batches, layout, binary, inside, scale):
    """Inside vectors of all inner nodes (the recursion of figure 4).

    Parameters
    ----------
    batches : Batches
        The trees.
    layout : Layout
        Where the tensors lie.
    binary : ndarray of float64
        Parameters of the binary rules.
    inside : ndarray of float64, shape (n_nodes, width)
        Inside vectors, scaled; those of leaves are given, the others are written.
    scale : ndarray of float64, shape (n_nodes,)
        Largest value of each vector before it was scaled; written.
    """
    left, right, bounds = batches.left, batches.right, batches.bounds
    batch_rule, shapes = batches.batch_rule, layout.shapes
    rule_offset = layout.rule_offset
    width = inside.shape[1]
    scratch = np.empty(max(_SLAB, width * width))
    x = np.empty((_NODES, width))
    y = np.empty((_NODES, width))
    for g in range(len(batch_rule)):
        r = batch_rule[g]
        tensor = binary[rule_offset[r] : rule_offset[r + 1]]
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        n_pairs = n_left * n_right
        step = _step(n_pairs)
        for begin in range(bounds[g], bounds[g + 1], step):
            end = min(begin + step, bounds[g + 1])
            n = end - begin
            _gather(inside, left[begin:end], n_left, x)
            _gather(inside, right[begin:end], n_right, y)
            pairs = scratch[: n * n_pairs]
            _pairs(x, y, n, n_left, n_right, pairs.reshape((n, n_left, n_right)))
            multiply_rows(pairs, tensor, n, m, n_pairs, inside[begin:end])
            for i in range(begin, end):
                scale[i] = rescale(inside[i, :m])


@njit(nogil=True, cache=True)
def outside_pass(batches, layout, binary, inside, outside):
    """Outside vectors of all nodes below the roots, whose own are given.

    Parameters
    ----------
    batches : Batches
        The trees.
    layout : Layout
        Where the tensors lie.
    binary : ndarray of float64
        Parameters of the binary rules.
    inside : ndarray of float64, shape (n_nodes, width)
        Inside vectors of :func:`inside_pass`.
    outside : ndarray of float64, shape (n_nodes, width)
        Outside vectors; those of roots are given, the others are written.
    """
    left, right, bounds = batches.left, batches.right, batches.bounds
    batch_rule, shapes = batches.batch_rule, layout.shapes
    rule_offset = layout.rule_offset
    width = inside.shape[1]
    scratch = np.empty(max(_SLAB, width * width))
    x = np.empty((_NODES, width))
    y = np.empty((_NODES, width))
    for g in range(len(batch_rule) - 1, -1, -1):
        r = batch_rule[g]
        tensor = binary[rule_offset[r] : rule_offset[r + 1]]
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        n_pairs = n_left * n_right
        step = _step(n_pairs)
        for begin in range(bounds[g], bounds[g + 1], step):
            end = min(begin + step, bounds[g + 1])
            n = end - begin
            _gather(inside, left[begin:end], n_left, x)
            _gather(inside, right[begin:end], n_right, y)
            for i in range(begin, end):
                rescale(outside[i, :m])
            mixed = scratch[: n * n_pairs]
            mixed[:] = 0.0
            add_product(outside[begin:end], tensor, n, m, n_pairs, mixed)
            for b in range(n):
                _split_down(
                    mixed[b * n_pairs : (b + 1) * n_pairs],
                    x[b],
                    y[b],
                    n_left,
                    n_right,
                    outside[left[begin + b]],
                    outside[right[begin + b]],
                )


@njit(nogil=True, cache=True)
def count_pass(batches, layout, factor, inside, outside, out):
    """Write the sum of outside ⊗ inside ⊗ inside over the nodes of each rule.

    Counts can be larger than any cache: those of a rule are zeroed just before they
    are added to, so that memory is touched once.

    Parameters
    ----------
    batches : Batches
        The trees.
    layout : Layout
        Where the counts lie.
    factor : ndarray of float64, shape (n_nodes,)
        How often each node counts.
    inside, outside : ndarray of float64, shape (n_nodes, width)
        Vectors of the nodes.
    out : ndarray of float64
        Counts of the binary rules; written.
    """
    triples, rule_bounds = batches.triples, batches.rule_bounds
    shapes, rule_offset = layout.shapes, layout.rule_offset
    width = inside.shape[1]
    scratch = np.empty(max(_SLAB, width * width))
    x = np.empty((_NODES, width))
    y = np.empty((_NODES, width))
    weights = np.empty((width, _NODES))
    for r in range(len(rule_bounds) - 1):
        target = out[rule_offset[r] : rule_offset[r + 1]]
        target[:] = 0.0
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        n_pairs = n_left * n_right
        step = _step(n_pairs)
        for begin in range(rule_bounds[r], rule_bounds[r + 1], step):
            end = min(begin + step, rule_bounds[r + 1])
            n = end - begin
            nodes = triples[0, begin:end]
            _gather(inside, triples[1, begin:end], n_left, x)
            _gather(inside, triples[2, begin:end], n_right, y)
            pairs = scratch[: n * n_pairs]
            _pairs(x, y, n, n_left, n_right, pairs.reshape((n, n_left, n_right)))
            for b in range(n):
                for h in range(m):
                    weights[h, b] = factor[nodes[b]] * outside[nodes[b], h]
            add_product(weights, pairs, m, n, n_pairs, target)


@njit(nogil=True, cache=True)
def expected_counts(batches, layout, parameters, counts):
    """Expected counts of all rules in the trees of a chunk.

    Parameters
    ----------
    batches : Batches
        The trees.
    layout : Layout
        Where parameters and counts lie.
    parameters : Estimates
        The parameters.
    counts : Estimates
        Expected counts; written. Those of binary rules are still to be multiplied
        by the parameters.

    Returns
    -------
    log_value : float
        Weighted sum of the logarithms of the trees' values.
    lost : float
        Weight of the trees of value zero, which are left out.
    """
    tree, weight, n_states = batches.tree, batches.weight, batches.n_states
    leaf_entry, root_node, top = batches.leaf_entry, batches.root_node, batches.top
    lex_offset, root_offset = layout.lex_offset, layout.root_offset
    root, root_counts = parameters.root, counts.root
    lexical, lexical_counts = parameters.lexical, counts.lexical
    n_inner, n_nodes, width = len(batches.left), len(tree), n_states.max()
    inside = np.empty((n_nodes, width))
    outside = np.zeros((n_nodes, width))
    scale = np.empty(n_nodes)
    for i in range(n_inner, n_nodes):
        e = leaf_entry[i - n_inner]
        row = inside[i, : n_states[i]]
        row[:] = lexical[lex_offset[e] : lex_offset[e + 1]]
        scale[i] = rescale(row)
    inside_pass(batches, layout, parameters.binary, inside, scale)

    lexical_counts[:] = 0.0
    root_counts[:] = 0.0
    logs = np.zeros(len(weight))
    for i in range(n_nodes):
        logs[tree[i]] += np.log(scale[i]) if scale[i] > 0.0 else -np.inf
    log_value = 0.0
    lost = 0.0
    for t in range(len(weight)):
        vector = root[root_offset[top[t]] : root_offset[top[t] + 1]]
        row = inside[root_node[t]]
        value = 0.0
        for h in range(len(vector)):
            value += vector[h] * row[h]
        if value <= 0.0 or logs[t] == -np.inf:
            lost += weight[t]
            continue
        log_value += weight[t] * (logs[t] + np.log(value))
        outside[root_node[t], : len(vector)] = vector
        at = root_counts[root_offset[top[t]] : root_offset[top[t] + 1]]
        for h in range(len(vector)):
            at[h] += weight[t] / value * vector[h] * row[h]

    outside_pass(batches, layout, parameters.binary, inside, outside)
    # What is left of the tree's value at a node, after all the rescaling.
    factor = np.zeros(n_nodes)
    for i in range(n_nodes):
        total = 0.0
        for h in range(n_states[i]):
            total += inside[i, h] * outside[i, h]
        if total != 0.0:
            factor[i] = weight[tree[i]] / (total * scale[i])
    for i in range(n_inner, n_nodes):
        e = leaf_entry[i - n_inner]
        at = lexical_counts[lex_offset[e] : lex_offset[e + 1]]
        for h in range(n_states[i]):
            at[h] += factor[i] * scale[i] * inside[i, h] * outside[i, h]
    count_pass(batches, layout, factor, inside, outside, counts.binary)
    return log_value, lost
