"""Inside values of the pruning PCFG."""

import math

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import power_of_two, span_index
from lpcfg_sk._kernels._coarse_tables import places

# Smaller products would leave the range of single precision.
_TINY = 1e-30


@njit(nogil=True, cache=True)
def coarse_inside(
    n,
    tables,
    first,
    last,
    leaf,
    boolean,
    beam,
    exponent,
    alive,
    offset,
    label,
    value,
    left_offset,
    left_item,
    rights,
):
    """Fill the inside values of all spans of two and more words.

    Span s has the items ``offset[s]:offset[s + 1]``, wide labels with their values;
    ``left_item[left_offset[s]:left_offset[s + 1]]`` are those that can be left children
    of i i rules, and a row of `rights` holds the values of right ones. Labels whose
    value times prior is below `beam` times the largest one of the span are left out.
    With `boolean` all values are 1 and only say what can be derived. Returns the number
    of items.
    """
    n_wide, n_left = len(tables.wide_label), len(tables.left_label)
    left_place = places(tables.left_label, n_wide)
    right_place = places(tables.right_label, n_wide)
    row = np.zeros(n_wide)
    some = np.empty(n_wide, dtype=np.int32)
    sums = np.zeros((n_left, rights.shape[1]), dtype=np.float32)
    touched = np.zeros(n_left, dtype=np.bool_)
    left_child = np.empty(len(left_item), dtype=np.int32)
    left_value = np.empty(len(left_item))
    count = 0
    n_lefts = 0
    for i in range(n + 1):
        offset[i] = 0
        left_offset[i] = 0
    span = n - 1
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            span += 1
            j = i + width
            reference = -(1 << 30)
            for k in range(i + 1, j):
                left, right = span_index(i, k, n), span_index(k, j, n)
                if alive[left] and alive[right]:
                    reference = max(reference, exponent[left] + exponent[right])
            if reference == -(1 << 30):
                offset[span + 1] = count
                left_offset[span + 1] = n_lefts
                continue
            if width == 2:
                for b in range(leaf.shape[1]):
                    x = leaf[i, b]
                    if x > 0.0:
                        for q in range(tables.pp_offset[b], tables.pp_offset[b + 1]):
                            row[tables.pp_parent[q]] += (
                                x * tables.pp_prob[q] * leaf[i + 1, tables.pp_child[q]]
                            )
            else:
                rest = span_index(i + 1, j, n)
                if alive[i] and alive[rest]:
                    factor = power_of_two(exponent[i] + exponent[rest] - reference)
                    begin, to, _, weight = first
                    for t in range(offset[rest], offset[rest + 1]):
                        x = factor * value[t]
                        for q in range(begin[i, label[t]], begin[i, label[t] + 1]):
                            row[to[q]] += x * weight[q]
                rest = span_index(i, j - 1, n)
                if alive[j - 1] and alive[rest]:
                    factor = power_of_two(exponent[j - 1] + exponent[rest] - reference)
                    begin, to, _, weight = last
                    for t in range(offset[rest], offset[rest + 1]):
                        x = factor * value[t]
                        for q in range(
                            begin[j - 1, label[t]], begin[j - 1, label[t] + 1]
                        ):
                            row[to[q]] += x * weight[q]
                for k in range(i + 2, j - 1):
                    left, right = span_index(i, k, n), span_index(k, j, n)
                    if not (alive[left] and alive[right]):
                        continue
                    factor = power_of_two(exponent[left] + exponent[right] - reference)
                    for t in range(left_offset[left], left_offset[left + 1]):
                        x = np.float32(factor * left_value[t])
                        if x > _TINY:
                            b = left_child[t]
                            touched[b] = True
                            for c in range(rights.shape[1]):
                                sums[b, c] += x * rights[right, c]
                for b in range(n_left):
                    if touched[b]:
                        touched[b] = False
                        for q in range(tables.ii_offset[b], tables.ii_offset[b + 1]):
                            row[tables.ii_parent[q]] += (
                                tables.ii_prob[q] * sums[b, tables.ii_child[q]]
                            )
                        for c in range(rights.shape[1]):
                            sums[b, c] = 0.0
            n_some = 0
            largest = 0.0
            likeliest = 0.0
            for a in range(n_wide):
                if row[a] > 0.0:
                    some[n_some] = a
                    n_some += 1
                    largest = max(largest, row[a])
                    likeliest = max(likeliest, row[a] * tables.prior[a])
            if n_some > 0:
                alive[span] = True
                shift = 0 if boolean else math.frexp(largest)[1]
                factor = power_of_two(-shift)
                exponent[span] = 0 if boolean else reference + shift
                for c in range(rights.shape[1]):
                    rights[span, c] = 0.0
                for t in range(n_some):
                    a = some[t]
                    x = row[a]
                    row[a] = 0.0
                    if x * tables.prior[a] < beam * likeliest:
                        continue
                    x = 1.0 if boolean else x * factor
                    label[count] = a
                    value[count] = x
                    if right_place[a] >= 0:
                        rights[span, right_place[a]] = x
                    if left_place[a] >= 0:
                        left_item[n_lefts] = count
                        left_child[n_lefts] = left_place[a]
                        left_value[n_lefts] = x
                        n_lefts += 1
                    count += 1
            offset[span + 1] = count
            left_offset[span + 1] = n_lefts
    return count
