"""Expected counts of rules over the forest of a sentence."""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_inside import child_sizes, edge_factor
from lpcfg_sk._kernels._shared import HELPER, REASSOC


@njit(**HELPER, fastmath=REASSOC)
def _add_scaled_outer(total, left, right, factor):
    """Add factor · left ⊗ right, row-major."""
    m = len(right)
    for j in range(len(left)):
        x = factor * left[j]
        row = total[j * m : (j + 1) * m]
        for k in range(m):
            row[k] += x * right[k]


@njit(nogil=True, cache=True)
def add_rule_counts(forest, tensors, alpha, beta, factor, counts):
    """Add β ⊗ Σ α_left ⊗ α_right of every application of a rule.

    Times the tensor of the rule, this is the expected count of the rule with its latent
    states: the posterior probability of its applications, summed over spans and split
    points.

    Parameters
    ----------
    forest : Forest
        Items of the sentence and their derivations.
    tensors : Tensors
        Rules of the model.
    alpha : ItemVectors
        Inside vectors.
    beta : ndarray of float64, as long as ``alpha.values``
        Outside vectors.
    factor : float
        Weight of the sentence over its value, in the scale of the vectors.
    counts : ndarray of float64, as long as ``tensors.binary``
        Added to.
    """
    offset, inside = alpha.offset, alpha.values
    scratch = np.empty(tensors.largest)
    for g in range(len(forest.edge_offset) - 1):
        m_left, m_right = child_sizes(forest, g, offset)
        pairs = scratch[: m_left * m_right]
        pairs[:] = 0.0
        for e in range(forest.edge_offset[g], forest.edge_offset[g + 1]):
            left, right = forest.edge_left[e], forest.edge_right[e]
            _add_scaled_outer(
                pairs,
                inside[offset[left] : offset[left + 1]],
                inside[offset[right] : offset[right + 1]],
                edge_factor(forest, alpha.exponent, e, g),
            )
        for a in range(forest.app_offset[g], forest.app_offset[g + 1]):
            begin = tensors.rule_offset[forest.app_rule[a]]
            if begin < 0:
                continue
            item = forest.app_parent[a]
            above = beta[offset[item] : offset[item + 1]]
            own = counts[begin : begin + len(above) * len(pairs)]
            _add_scaled_outer(own, above, pairs, factor)
