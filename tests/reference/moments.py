"""Projections and moments by sums over single nodes."""

import numpy as np


def active_columns(indptr, indices, rows, n_columns):
    return sorted({j for i in rows for j in indices[indptr[i] : indptr[i + 1]]})


def project_rows(matrix, rows, number, weights, out):
    dense = matrix.toarray()
    out = out.copy()
    for i in rows:
        total = np.zeros(weights.shape[1])
        for j, value in enumerate(dense[i]):
            if number[j] >= 0:
                total = total + value * weights[number[j]]
        out[i, : weights.shape[1]] = total
    return out


def rule_sums(rule, left, right, weight, inside, outside, shapes):
    """Sums for each rule as a list of (first, second, third) flat arrays."""
    sums = []
    for r, (ma, mb, mc) in enumerate(shapes):
        z = y = x = zy = zx = yx = zyx = 0.0
        for i in np.flatnonzero(rule == r):
            w = weight[i]
            zi = outside[i, :ma]
            yi, xi = inside[left[i], :mb], inside[right[i], :mc]
            z, y, x = z + w * zi, y + w * yi, x + w * xi
            zy = zy + w * np.outer(zi, yi)
            zx = zx + w * np.outer(zi, xi)
            yx = yx + w * np.outer(yi, xi)
            zyx = zyx + w * np.einsum("i,j,k->ijk", zi, yi, xi)
        sums.append(
            (
                np.concatenate([z, y, x]),
                np.concatenate([zy.ravel(), zx.ravel(), yx.ravel()]),
                np.ravel(zyx),
            )
        )
    return sums


def smooth_rule(sums, shape, count, strength, means, divisor):
    """The tensor of one rule by the formula of the class docstring."""
    ma, mb, mc = shape
    first, second, third = (s / count for s in sums)
    z, y, x = np.split(first, [ma, ma + mb])
    zy, zx, yx = np.split(second, [ma * mb, ma * mb + ma * mc])
    zy, zx, yx = zy.reshape(ma, mb), zx.reshape(ma, mc), yx.reshape(mb, mc)
    pairs = (
        np.einsum("ij,k->ijk", zy, x)
        + np.einsum("ik,j->ijk", zx, y)
        + np.einsum("jk,i->ijk", yx, z)
    ) / 3
    by_rule = np.einsum("i,j,k->ijk", z, y, x)
    by_label = np.einsum("i,j,k->ijk", means[0][:ma], means[1][:mb], means[2][:mc])
    own = np.sqrt(count) / (strength + np.sqrt(count))
    low = own * by_rule + (1 - own) * by_label
    smooth = own * third.reshape(shape) + (1 - own) * (own * pairs + (1 - own) * low)
    return smooth * count / divisor


def leaf_sums(entry, weight, outside, lex_label, n_states):
    sums = [np.zeros(n_states[a]) for a in lex_label]
    for i, e in enumerate(entry):
        if e >= 0:
            sums[e] = sums[e] + weight[i] * outside[i, : n_states[lex_label[e]]]
    return np.concatenate(sums)
