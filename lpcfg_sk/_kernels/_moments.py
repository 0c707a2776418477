"""Projection of node features and the moments of projected nodes."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import HELPER, KERNEL, held

#: Nodes whose products are collected for one matrix product.
_BLOCK = 256


class RuleNodes(NamedTuple):
    """The nodes of binary rules.

    Attributes
    ----------
    order : ndarray of int64
        Nodes sorted by rule.
    rule_start : ndarray of int64, shape (n_rules + 1,)
        Rule r has the nodes ``order[rule_start[r]:rule_start[r + 1]]``.
    left, right : ndarray of int64, shape (n_nodes,)
        Children of each node.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    """

    order: np.ndarray
    rule_start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    weight: np.ndarray


class RuleSums(NamedTuple):
    """Sums over the nodes of each rule, rule after rule.

    Attributes
    ----------
    first : ndarray of float64
        Σ wz, Σ wy, Σ wy'.
    second : ndarray of float64
        Σ wzyᵀ, Σ wzy'ᵀ, Σ wyy'ᵀ.
    third : ndarray of float64
        Σ wz⊗y⊗y'.
    """

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


class RuleMeans(NamedTuple):
    """Mean vectors of the three nonterminals of each rule.

    Attributes
    ----------
    parent, left, right : ndarray of float64, shape (n_rules, m)
        Of z at the parent, of y at its children.
    """

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray


@held
@njit(**KERNEL)
def active_columns(indptr, indices, rows, n_columns):
    """Columns with an entry in the given rows of a CSR matrix.

    Parameters
    ----------
    indptr, indices : ndarray of int
        The matrix.
    rows : ndarray of int64
        The rows.
    n_columns : int
        Number of columns of the matrix.

    Returns
    -------
    columns : ndarray of int64
        The columns, increasing.
    """
    seen = np.zeros(n_columns, dtype=np.bool_)
    n_seen = 0
    for i in rows:
        for e in range(indptr[i], indptr[i + 1]):
            if not seen[indices[e]]:
                seen[indices[e]] = True
                n_seen += 1
    columns = np.empty(n_seen, dtype=np.int64)
    n_written = 0
    for j in range(n_columns):
        if seen[j]:
            columns[n_written] = j
            n_written += 1
    return columns


@held
@njit(**KERNEL)
def local_rows(indptr, indices, data, rows, number):
    """Rows of a CSR matrix with columns renumbered.

    Parameters
    ----------
    indptr, indices, data : ndarray
        The matrix.
    rows : ndarray of int64
        The rows.
    number : ndarray of int32, shape (n_columns,)
        New number of each column, -1 for columns to leave out.

    Returns
    -------
    local_indptr, local_indices, local_data : ndarray
    """
    n_entries = 0
    for i in rows:
        n_entries += indptr[i + 1] - indptr[i]
    local_indptr = np.zeros(len(rows) + 1, dtype=np.int32)
    local_indices = np.empty(n_entries, dtype=np.int32)
    local_data = np.empty(n_entries, dtype=np.float64)
    n_written = 0
    for r in range(len(rows)):
        i = rows[r]
        for e in range(indptr[i], indptr[i + 1]):
            j = number[indices[e]]
            if j >= 0:
                local_indices[n_written] = j
                local_data[n_written] = data[e]
                n_written += 1
        local_indptr[r + 1] = n_written
    return local_indptr, local_indices[:n_written], local_data[:n_written]


@njit(**KERNEL)
def project_rows(indptr, indices, data, rows, number, weights, out):
    """Multiply rows of a CSR matrix with a dense matrix, into rows of `out`.

    Parameters
    ----------
    indptr, indices, data : ndarray
        The matrix.
    rows : ndarray of int64
        The rows.
    number : ndarray of int32, shape (n_columns,)
        Row of `weights` for each column, -1 for columns to leave out.
    weights : ndarray of float64, shape (n_numbers, m)
        The dense factor.
    out : ndarray of float64, shape (n_rows, at least m)
        Row ``rows[r]`` is overwritten in its first m columns.
    """
    m = weights.shape[1]
    for i in rows:
        target = out[i]
        for h in range(m):
            target[h] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = number[indices[e]]
            if j >= 0:
                x = data[e]
                row = weights[j]
                for h in range(m):
                    target[h] += x * row[h]


@njit(**HELPER)
def _add_dot(left, right, buffer, out):
    """Add left @ right to `out`; `buffer` has room for the product."""
    n_rows, n_columns = out.shape
    product = buffer[: n_rows * n_columns].reshape(n_rows, n_columns)
    np.dot(left, right, product)
    for i in range(n_rows):
        for j in range(n_columns):
            out[i, j] += product[i, j]


@njit(**KERNEL)
def rule_sums(begin, end, nodes, inside, outside, shapes, sums):
    """Sums of products of projected vectors over the nodes of each rule.

    Rule r, with m_a, m_b, m_c states, sums over its nodes i, with children j and
    k, weights w_i, vectors z = ``outside[i]``, y = ``inside[j]``, y' =
    ``inside[k]``.

    Parameters
    ----------
    begin, end : int
        The rules to do.
    nodes : RuleNodes
        The nodes of all rules.
    inside, outside : ndarray of float64, shape (n_nodes, m)
        Projected vectors.
    shapes : ndarray of int64, shape (n_rules, 3)
        Numbers of states (m_a, m_b, m_c) of all rules.
    sums : RuleSums
        Output for the rules to do. Its `first` and `second` start at zero.
    """
    order, rule_start, left, right, weight = nodes
    first, second, third = sums
    widest_a, widest_b, widest_c, widest = 1, 1, 1, 1
    for r in range(begin, end):
        widest_a = max(widest_a, shapes[r, 0])
        widest_b = max(widest_b, shapes[r, 1])
        widest_c = max(widest_c, shapes[r, 2])
        widest = max(widest, shapes[r, 1] * shapes[r, 2])
    z_buffer = np.empty(_BLOCK * widest_a)
    u_buffer = np.empty(_BLOCK * widest_b)
    y_buffer = np.empty(_BLOCK * widest_b)
    x_buffer = np.empty(_BLOCK * widest_c)
    pair_buffer = np.empty(_BLOCK * widest)
    product_buffer = np.empty(widest_a * widest)
    at1, at2, at3 = 0, 0, 0
    for r in range(begin, end):
        ma, mb, mc = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        sum_z = first[at1 : at1 + ma]
        sum_y = first[at1 + ma : at1 + ma + mb]
        sum_x = first[at1 + ma + mb : at1 + ma + mb + mc]
        at1 += ma + mb + mc
        sum_zy = second[at2 : at2 + ma * mb].reshape(ma, mb)
        at2 += ma * mb
        sum_zx = second[at2 : at2 + ma * mc].reshape(ma, mc)
        at2 += ma * mc
        sum_yx = second[at2 : at2 + mb * mc].reshape(mb, mc)
        at2 += mb * mc
        sum_zyx = third[at3 : at3 + ma * mb * mc].reshape(ma, mb * mc)
        if rule_start[r] == rule_start[r + 1]:
            for i in range(at3, at3 + ma * mb * mc):
                third[i] = 0.0
        at3 += ma * mb * mc
        for low in range(rule_start[r], rule_start[r + 1], _BLOCK):
            n = min(_BLOCK, rule_start[r + 1] - low)
            # Left factors are stored transposed, so that products are of contiguous
            # arrays.
            z = z_buffer[: ma * n].reshape(ma, n)
            u = u_buffer[: mb * n].reshape(mb, n)
            y = y_buffer[: n * mb].reshape(n, mb)
            x = x_buffer[: n * mc].reshape(n, mc)
            pair = pair_buffer[: n * mb * mc].reshape(n, mb * mc)
            for s in range(n):
                i = order[low + s]
                w = weight[i]
                zi, yi, xi = outside[i], inside[left[i]], inside[right[i]]
                for h in range(ma):
                    z[h, s] = w * zi[h]
                    sum_z[h] += w * zi[h]
                for h in range(mb):
                    y[s, h] = yi[h]
                    u[h, s] = w * yi[h]
                    sum_y[h] += w * yi[h]
                for h in range(mc):
                    x[s, h] = xi[h]
                    sum_x[h] += w * xi[h]
                row = pair[s]
                for j in range(mb):
                    for k in range(mc):
                        row[j * mc + k] = yi[j] * xi[k]
            if low == rule_start[r]:
                np.dot(z, pair, sum_zyx)
            else:
                _add_dot(z, pair, product_buffer, sum_zyx)
            _add_dot(z, y, product_buffer, sum_zy)
            _add_dot(z, x, product_buffer, sum_zx)
            _add_dot(u, x, product_buffer, sum_yx)


@njit(**KERNEL)
def leaf_sums(entry, weight, outside, lex_label, n_states, lex_offset, out):
    """Sum the outside vectors over the leaves of each lexical rule.

    Parameters
    ----------
    entry : ndarray of int32
        Lexical rule of each node, -1 for nodes that are not leaves.
    weight : ndarray of float64
        Weight of each node.
    outside : ndarray of float64, shape (n_nodes, m)
        Projected vectors.
    lex_label : ndarray of int32
        Nonterminal of each lexical rule.
    n_states : ndarray of int64
        Number of states of each nonterminal.
    lex_offset : ndarray of int64
        Place of each lexical rule's vector in `out`.
    out : ndarray of float64
        Output; starts at zero.
    """
    for i in range(len(entry)):
        e = entry[i]
        if e >= 0:
            target = out[lex_offset[e] : lex_offset[e + 1]]
            row = outside[i]
            for h in range(n_states[lex_label[e]]):
                target[h] += weight[i] * row[h]


@njit(**KERNEL)
def smooth_rules(count, strength, shapes, means, sums, divisor):
    """Turn sums over the nodes of rules into smoothed tensors, in place.

    With n = ``count[r]``, λ = √n / (strength + √n) and means E of the sums,
    E ← λE + (1−λ)(λK₂ + (1−λ)(λL_rule + (1−λ)L_nonterminal)), then
    ``third = n E / divisor``.

    Parameters
    ----------
    count : ndarray of float64, shape (n_rules,)
        Number of nodes of each rule.
    strength : float
        The constant C; 0 means no smoothing.
    shapes : ndarray of int64, shape (n_rules, 3)
        Numbers of states (m_a, m_b, m_c) of each rule.
    means : RuleMeans
        Mean vectors of the three nonterminals.
    sums : RuleSums
        As :func:`rule_sums` leaves them; `third` is overwritten.
    divisor : ndarray of float64, shape (n_rules,)
        Number of nodes of each rule's parent nonterminal.
    """
    first, second, third = sums
    parent_mean, left_mean, right_mean = means
    at1, at2, at3 = 0, 0, 0
    for r in range(len(count)):
        ma, mb, mc = shapes[r, 0], shapes[r, 1], shapes[r, 2]
        z = first[at1 : at1 + ma]
        y = first[at1 + ma : at1 + ma + mb]
        x = first[at1 + ma + mb : at1 + ma + mb + mc]
        at1 += ma + mb + mc
        zy = second[at2 : at2 + ma * mb]
        at2 += ma * mb
        zx = second[at2 : at2 + ma * mc]
        at2 += ma * mc
        yx = second[at2 : at2 + mb * mc]
        at2 += mb * mc
        tensor = third[at3 : at3 + ma * mb * mc]
        at3 += ma * mb * mc
        n = count[r]
        if n <= 0.0:
            for i in range(len(tensor)):
                tensor[i] = 0.0
            continue
        own = np.sqrt(n) / (strength + np.sqrt(n))
        per_node = 1.0 / n
        pair_share = (1.0 - own) * own / 3.0 * per_node * per_node
        rule_share = (1.0 - own) ** 2 * own * per_node**3
        label_share = (1.0 - own) ** 3
        za, yb, xc = parent_mean[r], left_mean[r], right_mean[r]
        scale = n / divisor[r]
        for h in range(ma):
            for j in range(mb):
                row = tensor[(h * mb + j) * mc : (h * mb + j + 1) * mc]
                row_zx = zx[h * mc : (h + 1) * mc]
                row_yx = yx[j * mc : (j + 1) * mc]
                with_x = pair_share * zy[h * mb + j] + rule_share * z[h] * y[j]
                with_xc = label_share * za[h] * yb[j]
                with_zx = pair_share * y[j]
                with_yx = pair_share * z[h]
                for k in range(mc):
                    row[k] = scale * (
                        own * per_node * row[k]
                        + with_x * x[k]
                        + with_zx * row_zx[k]
                        + with_yx * row_yx[k]
                        + with_xc * xc[k]
                    )
