"""Outside values of the pruning PCFG, and the items that are worth keeping."""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._coarse_tables import places
from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _pass_down(x, weights, b, inside, right, outside):
    """Add x times a row of weights; return the product of weights and inside row."""
    total = np.float32(0.0)
    for c in range(weights.shape[1]):
        total += weights[b, c] * inside[right, c]
        outside[right, c] += x * weights[b, c]
    return total


@njit(nogil=True, cache=True)
def coarse_outside(
    n,
    tables,
    first,
    last,
    leaf,
    boolean,
    floor,
    root,
    exponent,
    alive,
    offset,
    label,
    value,
    left_offset,
    left_item,
    rights,
    beta,
    leaf_mass,
):
    """Fill the outside values of all items from those of the `root` labels.

    `leaf_mass` takes the marginals of the lexical values. Items with a marginal of at
    most `floor` hand nothing down, which spares most of the work; spans without any
    other are no longer `alive`.
    """
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    n_spans = n * (n + 1) // 2
    left_place = places(tables.left_label, n_wide)
    right_place = places(tables.right_label, n_wide)
    beta_rights = np.zeros(rights.shape, dtype=np.float32)
    above = np.zeros(n_wide)
    weights = np.zeros((n_left, rights.shape[1]), dtype=np.float32)
    active = np.zeros(n_left, dtype=np.bool_)
    if n > 1:
        for t in range(offset[n_spans - 1], offset[n_spans]):
            beta[t] = root[label[t]]
    span = n_spans
    for width in range(n, 1, -1):
        for i in range(n - width, -1, -1):
            span -= 1
            j = i + width
            if not alive[span]:
                continue
            alive[span] = False
            for t in range(offset[span], offset[span + 1]):
                a = label[t]
                if right_place[a] >= 0:
                    beta[t] += beta_rights[span, right_place[a]]
                if boolean and beta[t] > 0.0:
                    beta[t] = 1.0
                if value[t] * beta[t] <= floor:
                    continue
                alive[span] = True
                above[a] = beta[t]
                if width > 3:
                    for q in range(tables.up_offset[a], tables.up_offset[a + 1]):
                        b = tables.up_left[q]
                        active[b] = True
                        weights[b, tables.up_child[q]] += beta[t] * tables.up_prob[q]
            if not alive[span]:
                continue
            if width == 2:
                factor = power_of_two(exponent[i] + exponent[i + 1] - exponent[span])
                for b in range(leaf.shape[1]):
                    x = factor * leaf[i, b]
                    if x == 0.0:
                        continue
                    for q in range(tables.pp_offset[b], tables.pp_offset[b + 1]):
                        y = x * above[tables.pp_parent[q]] * tables.pp_prob[q]
                        y *= leaf[i + 1, tables.pp_child[q]]
                        leaf_mass[i, b] += y
                        leaf_mass[i + 1, tables.pp_child[q]] += y
            else:
                rest = span_index(i + 1, j, n)
                if alive[i] and alive[rest]:
                    factor = power_of_two(exponent[i] + exponent[rest] - exponent[span])
                    begin, to, tag, weight = first
                    for t in range(offset[rest], offset[rest + 1]):
                        for q in range(begin[i, label[t]], begin[i, label[t] + 1]):
                            if above[to[q]] > 0.0:
                                x = factor * above[to[q]] * weight[q]
                                beta[t] += x
                                leaf_mass[i, tag[q]] += x * value[t]
                rest = span_index(i, j - 1, n)
                if alive[j - 1] and alive[rest]:
                    factor = power_of_two(
                        exponent[j - 1] + exponent[rest] - exponent[span]
                    )
                    begin, to, tag, weight = last
                    for t in range(offset[rest], offset[rest + 1]):
                        for q in range(
                            begin[j - 1, label[t]], begin[j - 1, label[t] + 1]
                        ):
                            if above[to[q]] > 0.0:
                                x = factor * above[to[q]] * weight[q]
                                beta[t] += x
                                leaf_mass[j - 1, tag[q]] += x * value[t]
                for k in range(i + 2, j - 1):
                    left, right = span_index(i, k, n), span_index(k, j, n)
                    if not (alive[left] and alive[right]):
                        continue
                    factor = power_of_two(
                        exponent[left] + exponent[right] - exponent[span]
                    )
                    for t in range(left_offset[left], left_offset[left + 1]):
                        item = left_item[t]
                        b = left_place[label[item]]
                        if active[b]:
                            x = np.float32(factor * value[item])
                            beta[item] += factor * _pass_down(
                                x, weights, b, rights, right, beta_rights
                            )
                for b in range(n_left):
                    if active[b]:
                        active[b] = False
                        for c in range(rights.shape[1]):
                            weights[b, c] = 0.0
            for t in range(offset[span], offset[span + 1]):
                above[label[t]] = 0.0


@njit(nogil=True, cache=True)
def live_items(
    n,
    tables,
    leaf,
    leaf_mass,
    alive,
    offset,
    label,
    value,
    beta,
    threshold,
    live_offset,
):
    """Return the labels of each span with a marginal of at least `threshold`.

    Fills the `live_offset` of each span; returns nonterminals, inside and outside
    values.
    """
    n_spans = n * (n + 1) // 2
    places = len(beta) + leaf.size
    live = np.empty(places, dtype=np.int32)
    inside = np.empty(places)
    outside = np.empty(places)
    count = 0
    for span in range(n_spans):
        live_offset[span] = count
        if span < n:
            for a in range(leaf.shape[1]):
                mass = leaf_mass[span, a]
                if mass >= threshold and mass > 0.0:
                    live[count] = a
                    inside[count] = leaf[span, a]
                    outside[count] = mass / leaf[span, a]
                    count += 1
        elif alive[span]:
            for t in range(offset[span], offset[span + 1]):
                mass = value[t] * beta[t]
                if mass >= threshold and mass > 0.0:
                    live[count] = tables.wide_label[label[t]]
                    inside[count] = value[t]
                    outside[count] = beta[t]
                    count += 1
    live_offset[n_spans] = count
    return live[:count], inside[:count], outside[:count]
