"""EM over given trees: expected counts of rules in batches, and the M-step.

Nodes with the same rule whose children are done are computed together: each
contraction of such a batch is one matrix product. Nodes are renumbered in the order of
computation, so a batch writes to consecutive rows.
"""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._em_batches import add_product, multiply_rows
from lpcfg_sk._kernels._shared import HELPER, KERNEL, REASSOC, rescale

#: Values of the largest matrix of a batch, which should fit in the second-level cache.
_SLAB = 16384
#: Largest number of nodes that are computed together.
_NODES = 64


@njit(**HELPER)
def _gather(rows, ids, n_columns, out):
    """Copy some rows; short loops let the processor fetch many at a time."""
    for b in range(len(ids)):
        for h in range(n_columns):
            out[b, h] = rows[ids[b], h]


@njit(**HELPER)
def _pairs(x, y, n, n_left, n_right, out):
    """Write the outer products of the rows of `x` and `y`, one row each."""
    for b in range(n):
        for j in range(n_left):
            factor = x[b, j]
            for k in range(n_right):
                out[b, j, k] = factor * y[b, k]


@njit(**HELPER, fastmath=REASSOC)
def _split_down(mixed, x, y, n_left, n_right, out_left, out_right):
    """Multiply a flat matrix by the sibling's inside vector, from both sides.

    Parameters
    ----------
    mixed : ndarray of float64
        The matrix, with `n_left` rows of length `n_right`.
    x, y : ndarray of float64
        Inside vectors of the left and the right child.
    n_left, n_right : int
        Numbers of states of the children.
    out_left, out_right : ndarray of float64
        Outside vectors of the children; written.
    """
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


@njit(**HELPER)
def _step(n_pairs):
    """Return how many nodes of a batch are computed at once."""
    return min(max(_SLAB // n_pairs, 1), _NODES)


@njit(**HELPER)
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


@njit(**HELPER)
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


@njit(**HELPER)
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


@njit(**KERNEL)
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
        for h in range(n_states[i]):
            row[h] = lexical[lex_offset[e] + h]
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
        own_counts = root_counts[root_offset[top[t]] : root_offset[top[t] + 1]]
        for h in range(len(vector)):
            outside[root_node[t], h] = vector[h]
            own_counts[h] += weight[t] / value * vector[h] * row[h]

    outside_pass(batches, layout, parameters.binary, inside, outside)
    # Weight of the tree over its value, in the scale of each node's vectors.
    factor = np.zeros(n_nodes)
    for i in range(n_nodes):
        total = 0.0
        for h in range(n_states[i]):
            total += inside[i, h] * outside[i, h]
        if total != 0.0:
            factor[i] = weight[tree[i]] / (total * scale[i])
    for i in range(n_inner, n_nodes):
        e = leaf_entry[i - n_inner]
        own_counts = lexical_counts[lex_offset[e] : lex_offset[e + 1]]
        for h in range(n_states[i]):
            own_counts[h] += factor[i] * scale[i] * inside[i, h] * outside[i, h]
    count_pass(batches, layout, factor, inside, outside, counts.binary)
    return log_value, lost


@njit(**KERNEL)
def complete_counts(layout, binary, counts, totals):
    """Multiply by the parameters (if any) and add up the counts of each state.

    Parameters
    ----------
    layout : Layout
        Where counts and parameters lie.
    binary : ndarray of float64
        Parameters of the binary rules; of length 0 to multiply by nothing.
    counts : ndarray of float64
        Counts of the binary rules; changed in place.
    totals : ndarray of float64
        The counts of state h of a are added to ``totals[state_offset[a] + h]``.
    """
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    for r in range(len(rule_parent)):
        # Loops from 0, whose places cannot be negative, compile to vector instructions.
        values = counts[rule_offset[r] : rule_offset[r + 1]]
        if len(binary):
            tensor = binary[rule_offset[r] : rule_offset[r + 1]]
            for i in range(len(values)):
                values[i] *= tensor[i]
        n_pairs = shapes[r, 1] * shapes[r, 2]
        state = totals[state_offset[rule_parent[r]] :]
        for h in range(shapes[r, 0]):
            row = values[h * n_pairs : (h + 1) * n_pairs]
            total = 0.0
            for i in range(len(row)):
                total += row[i]
            state[h] += total


def normalize_rules(layout, totals, smoothing, pooling, rare, counts):
    """Smooth the counts of each rule, and divide by those of its states, in place.

    The counts c of a rule become (1 - s) c + s · |c| w ⊗ u ⊗ v, where w, u, v are the
    relative marginals of c over the states of parent and children, mixed with part
    `pooling` of what is general for the nonterminal (its `totals`). Rare rules are
    smoothed more, s = smoothing (|c| + rare) / (|c| + smoothing · rare). Then the
    counts of the parents' states are scaled to what they were. 0/0 is 0.

    Parameters
    ----------
    layout : Layout
        Where the counts lie.
    totals : ndarray of float64
        Counts of the states.
    smoothing, pooling, rare : float
        See above.
    counts : ndarray of float64
        Counts of the binary rules; changed in place.
    """
    # Two kernels, so that without smoothing the larger one need not be compiled.
    if smoothing > 0.0:
        _smooth_rules(layout, totals, smoothing, pooling, rare, counts)
    else:
        _scale_rows(layout, totals, counts)


@njit(**KERNEL)
def _scale_rows(layout, totals, values):
    """Multiply the row of each state by the reciprocal of its total, in place."""
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    for r in range(len(rule_parent)):
        n_pairs = shapes[r, 1] * shapes[r, 2]
        first = state_offset[rule_parent[r]]
        for h in range(shapes[r, 0]):
            if totals[first + h] > 0.0:
                keep = 1.0 / totals[first + h]
                begin = rule_offset[r] + h * n_pairs
                row = values[begin : begin + n_pairs]
                for i in range(n_pairs):
                    row[i] *= keep


@njit(**KERNEL)
def _smooth_rules(layout, totals, smoothing, pooling, rare, counts):
    """Smooth and divide the counts; arguments as in :func:`normalize_rules`."""
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    before = np.zeros(len(totals))
    after = np.zeros(len(totals))
    rule_left, rule_right = layout.rule_left, layout.rule_right
    width = 0
    for r in range(len(shapes)):
        width = max(width, shapes[r, 0], shapes[r, 1], shapes[r, 2])
    by_state = np.empty(width)
    by_left = np.empty(width)
    by_right = np.empty(width)
    first = 0
    for r in range(len(rule_parent)):
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        values = counts[rule_offset[r] : rule_offset[r + 1]]
        cube = values.reshape((m, n_left, n_right))
        a, b, c = rule_parent[r], rule_left[r], rule_right[r]
        state = totals[state_offset[a] : state_offset[a + 1]]
        total = 0.0
        for j in range(n_left):
            by_left[j] = 0.0
        for k in range(n_right):
            by_right[k] = 0.0
        for h in range(m):
            by_state[h] = 0.0
            for j in range(n_left):
                of_row = 0.0
                for k in range(n_right):
                    of_row += cube[h, j, k]
                    by_right[k] += cube[h, j, k]
                by_left[j] += of_row
                by_state[h] += of_row
            total += by_state[h]
        part = smoothing
        if total > 0.0:
            part *= (total + rare) / (total + smoothing * rare)
            begin = state_offset[a]
            for h in range(m):
                before[begin + h] += by_state[h]
                after[begin + h] += (1.0 - part) * by_state[h]
            of_left = totals[state_offset[b] : state_offset[b + 1]]
            of_right = totals[state_offset[c] : state_offset[c + 1]]
            _pool(by_state[:m], state, total, pooling)
            _pool(by_left[:n_left], of_left, total, pooling)
            _pool(by_right[:n_right], of_right, total, pooling)
        for h in range(m):
            if state[h] <= 0.0:
                continue
            keep = 1.0 / state[h]
            if total == 0.0:
                for i in range(h * n_left * n_right, (h + 1) * n_left * n_right):
                    values[i] *= keep
                continue
            after[begin + h] += part * total * by_state[h]
            weight = part * total * (by_state[h] / state[h])
            keep *= 1.0 - part
            for j in range(n_left):
                product = weight * by_left[j]
                for k in range(n_right):
                    cube[h, j, k] = keep * cube[h, j, k] + product * by_right[k]
        if r + 1 == len(rule_parent) or rule_parent[r + 1] != a:
            # The rules of a come one after the other and may still be in the cache.
            for h in range(state_offset[a], state_offset[a + 1]):
                after[h] = after[h] / before[h] if before[h] > 0.0 else np.inf
            divide_rows(layout, first, r + 1, after, counts)
            first = r + 1


@njit(**HELPER)
def _pool(marginal, general, total, pooling):
    """Divide by the total, and mix with the general distribution, in place."""
    whole = 0.0
    for h in range(len(general)):
        whole += general[h]
    for h in range(len(marginal)):
        marginal[h] = (1.0 - pooling) * (marginal[h] / total) + pooling * (
            general[h] / whole
        )


@njit(**KERNEL, error_model="numpy")
def divide_rows(layout, first, last, totals, values):
    """Divide the row of each state by its total, in place; 0/0 stays 0.

    Parameters
    ----------
    layout : Layout
        Where the values lie.
    first, last : int
        The rules are ``first:last``.
    totals : ndarray of float64
        Total of each state.
    values : ndarray of float64
        Values of the binary rules; changed in place.
    """
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    for r in range(first, last):
        n_pairs = shapes[r, 1] * shapes[r, 2]
        state = totals[state_offset[rule_parent[r]] :]
        for h in range(shapes[r, 0]):
            if state[h] > 0.0:
                begin = rule_offset[r] + h * n_pairs
                row, total = values[begin : begin + n_pairs], state[h]
                for i in range(n_pairs):
                    row[i] /= total
