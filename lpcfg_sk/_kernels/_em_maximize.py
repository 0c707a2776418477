"""The M-step: expected counts to parameters, in place."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
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
        begin = rule_offset[r]
        if len(binary):
            tensor = binary[begin : rule_offset[r + 1]]
            values = counts[begin : rule_offset[r + 1]]
            for p in range(len(values)):
                values[p] *= tensor[p]
        n_pairs = shapes[r, 1] * shapes[r, 2]
        state = totals[state_offset[rule_parent[r]] :]
        for h in range(shapes[r, 0]):
            state[h] += counts[begin + h * n_pairs : begin + (h + 1) * n_pairs].sum()


@njit(nogil=True, cache=True)
def normalize_rules(layout, totals, smoothing, pooling, counts):
    """Smooth the counts of each rule, and divide by those of its states, in place.

    The counts c of a rule become (1 - smoothing) c + smoothing · |c| w ⊗ u ⊗ v, where
    w, u, v are the relative marginals of c over the states of parent and children,
    mixed with part `pooling` of what is general for the nonterminal (its `totals`).
    The counts of the parents' states are as before. 0/0 is 0.

    Parameters
    ----------
    layout : Layout
        Where the counts lie.
    totals : ndarray of float64
        Counts of the states.
    smoothing, pooling : float
        See above.
    counts : ndarray of float64
        Counts of the binary rules; changed in place.
    """
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    rule_left, rule_right = layout.rule_left, layout.rule_right
    width = shapes.max() if len(shapes) else 0
    by_state = np.empty(width)
    by_left = np.empty(width)
    by_right = np.empty(width)
    for r in range(len(rule_parent)):
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        values = counts[rule_offset[r] : rule_offset[r + 1]]
        cube = values.reshape((m, n_left, n_right))
        a, b, c = rule_parent[r], rule_left[r], rule_right[r]
        state = totals[state_offset[a] : state_offset[a + 1]]
        total = 0.0
        if smoothing > 0.0:
            by_state[:] = 0.0
            by_left[:] = 0.0
            by_right[:] = 0.0
            for h in range(m):
                for j in range(n_left):
                    of_row = 0.0
                    for k in range(n_right):
                        of_row += cube[h, j, k]
                        by_right[k] += cube[h, j, k]
                    by_left[j] += of_row
                    by_state[h] += of_row
                total += by_state[h]
        if total > 0.0:
            _pool(by_state[:m], state, total, pooling)
            _pool(
                by_left[:n_left],
                totals[state_offset[b] : state_offset[b + 1]],
                total,
                pooling,
            )
            _pool(
                by_right[:n_right],
                totals[state_offset[c] : state_offset[c + 1]],
                total,
                pooling,
            )
        for h in range(m):
            if state[h] <= 0.0:
                continue
            keep = 1.0 / state[h]
            if total == 0.0:
                for j in range(n_left):
                    for k in range(n_right):
                        cube[h, j, k] *= keep
                continue
            weight = smoothing * total * (by_state[h] / state[h])
            keep *= 1.0 - smoothing
            for j in range(n_left):
                product = weight * by_left[j]
                for k in range(n_right):
                    cube[h, j, k] = keep * cube[h, j, k] + product * by_right[k]


@njit(nogil=True, cache=True)
def _pool(marginal, general, total, pooling):
    """Divide by the total, and mix with the general distribution, in place."""
    whole = general.sum()
    for h in range(len(marginal)):
        marginal[h] = (1.0 - pooling) * (marginal[h] / total) + pooling * (
            general[h] / whole
        )


@njit(nogil=True, cache=True)
def divide_rows(layout, totals, values):
    """Divide the row of each state by its total, in place; 0/0 stays 0."""
    shapes, rule_offset = layout.shapes, layout.rule_offset
    state_offset, rule_parent = layout.state_offset, layout.rule_parent
    for r in range(len(rule_parent)):
        n_pairs = shapes[r, 1] * shapes[r, 2]
        state = totals[state_offset[rule_parent[r]] :]
        for h in range(shapes[r, 0]):
            if state[h] > 0.0:
                begin = rule_offset[r] + h * n_pairs
                values[begin : begin + n_pairs] /= state[h]
