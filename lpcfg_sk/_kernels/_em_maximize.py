"""The M-step: expected counts to parameters, in place."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def complete_counts(
    shapes, rule_offset, state_offset, rule_parent, binary, smoothing, counts, totals
):
    """Multiply by the parameters, smooth, and add up the counts of each state.

    The counts of each rule become a mix of themselves and of the product of their
    three marginals, which leaves the marginals as they are. `counts` is changed in
    place; the counts of state h of a are added to ``totals[state_offset[a] + h]``.
    """
    width = shapes.max() if len(shapes) else 0
    by_left = np.empty(width)
    by_right = np.empty(width)
    for r in range(len(rule_parent)):
        m, n_left, n_right = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        n_pairs = n_left * n_right
        values = counts[rule_offset[r] : rule_offset[r + 1]]
        tensor = binary[rule_offset[r] : rule_offset[r + 1]]
        for p in range(m * n_pairs):
            values[p] *= tensor[p]
        state = totals[state_offset[rule_parent[r]] :]
        cube = values.reshape((m, n_left, n_right))
        by_left[:] = 0.0
        by_right[:] = 0.0
        total = 0.0
        for h in range(m):
            of_state = 0.0
            for j in range(n_left):
                of_row = 0.0
                for k in range(n_right):
                    of_row += cube[h, j, k]
                    by_right[k] += cube[h, j, k]
                by_left[j] += of_row
                of_state += of_row
            state[h] += of_state
            total += of_state
        if smoothing == 0.0 or total == 0.0:
            continue
        for h in range(m):
            of_state = 0.0
            for j in range(n_left):
                for k in range(n_right):
                    of_state += cube[h, j, k]
            for j in range(n_left):
                product = smoothing * of_state * by_left[j] / (total * total)
                for k in range(n_right):
                    cube[h, j, k] = (1.0 - smoothing) * cube[
                        h, j, k
                    ] + product * by_right[k]


@njit(nogil=True, cache=True)
def divide_rows(shapes, rule_offset, state_offset, rule_parent, totals, values):
    """Divide the row of each state by its total, in place; 0/0 stays 0."""
    for r in range(len(rule_parent)):
        m = shapes[r, 0]
        n_pairs = shapes[r, 1] * shapes[r, 2]
        state = totals[state_offset[rule_parent[r]] :]
        for h in range(m):
            if state[h] > 0.0:
                begin = rule_offset[r] + h * n_pairs
                row = values[begin : begin + n_pairs]
                inverse = 1.0 / state[h]
                for p in range(n_pairs):
                    row[p] *= inverse
