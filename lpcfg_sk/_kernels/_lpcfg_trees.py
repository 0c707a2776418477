"""Trees under an L-PCFG: values and posteriors of given ones, and trees drawn from it.

Inside and outside vectors (figures 2 and 4 of the paper) are divided by their largest
absolute value, and the logarithm of the divisor is kept, so nothing underflows and
negative values are safe.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import (
    HELPER,
    KERNEL,
    REASSOC,
    held,
    lengthened,
    longest,
    rescale,
    set_row,
)


class ParsedTrees(NamedTuple):
    """Binary trees with the rule of each node.

    Attributes
    ----------
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        Tree t has the nodes ``node_offsets[t]:node_offsets[t + 1]``, in preorder.
    size, label : ndarray of int32, shape (n_nodes,)
        Number of nodes of the subtree, and nonterminal.
    rule : ndarray of int32, shape (n_nodes,)
        Binary rule, at leaves the lexical entry; -1 where the grammar has none.
    top : ndarray of int32, shape (n_trees,)
        Root entry; -1 where the grammar has none.
    """

    node_offsets: np.ndarray
    size: np.ndarray
    label: np.ndarray
    rule: np.ndarray
    top: np.ndarray


class TreeModel(NamedTuple):
    """Parameters of an L-PCFG, as in ``GrammarArrays``.

    Attributes
    ----------
    n_states : ndarray of int32, shape (n_nonterminals,)
        Number of latent states.
    rule_offset, lex_offset, root_offset : ndarray of int64
        Offsets of the tensors, lexical vectors and root vectors.
    binary, lexical, root : ndarray of float64
        The parameters.
    """

    n_states: np.ndarray
    rule_offset: np.ndarray
    binary: np.ndarray
    lex_offset: np.ndarray
    lexical: np.ndarray
    root_offset: np.ndarray
    root: np.ndarray


@njit(**KERNEL, fastmath=REASSOC)
def contract(tensor, left, right, pairs, out):
    """Compute ``out[h] = Σ_jk tensor[h, j, k] left[j] right[k]``.

    Parameters
    ----------
    tensor : ndarray of float64, shape (m_a * m_b * m_c,)
        Tensor of a rule, row-major.
    left, right : ndarray of float64, shapes (m_b,) and (m_c,)
        Inside vectors of the children.
    pairs : ndarray of float64, shape (m_b * m_c,)
        Scratch.
    out : ndarray of float64, shape (m_a,)
        Inside vector of the parent; written.
    """
    n_right = len(right)
    for j in range(len(left)):
        row = pairs[j * n_right : (j + 1) * n_right]
        for k in range(n_right):
            row[k] = left[j] * right[k]
    n_pairs = len(left) * n_right
    for h in range(len(out)):
        row = tensor[h * n_pairs : (h + 1) * n_pairs]
        total = 0.0
        for p in range(n_pairs):
            total += row[p] * pairs[p]
        out[h] = total


@njit(**KERNEL, fastmath=REASSOC)
def contract_down(tensor, above, left, right, pairs, out_left, out_right):
    """Compute the outside vectors of both children.

    ``out_left[j] = Σ_hk above[h] tensor[h, j, k] right[k]``, and likewise for the
    right child.

    Parameters
    ----------
    tensor : ndarray of float64, shape (m_a * m_b * m_c,)
        Tensor of a rule, row-major.
    above : ndarray of float64, shape (m_a,)
        Outside vector of the parent.
    left, right : ndarray of float64, shapes (m_b,) and (m_c,)
        Inside vectors of the children.
    pairs : ndarray of float64, shape (m_b * m_c,)
        Scratch.
    out_left, out_right : ndarray of float64, shapes (m_b,) and (m_c,)
        Outside vectors of the children; written.
    """
    n_right = len(right)
    n_pairs = len(left) * n_right
    mixed = pairs[:n_pairs]
    mixed[:] = 0.0
    for h in range(len(above)):
        row = tensor[h * n_pairs : (h + 1) * n_pairs]
        factor = above[h]
        for p in range(n_pairs):
            mixed[p] += factor * row[p]
    out_right[:] = 0.0
    for j in range(len(left)):
        row = mixed[j * n_right : (j + 1) * n_right]
        factor = left[j]
        total = 0.0
        for k in range(n_right):
            total += row[k] * right[k]
            out_right[k] += factor * row[k]
        out_left[j] = total


@njit(**HELPER)
def _inside_tree(trees, t, model, pairs, inside):
    """Fill the inside vectors of tree t; return the sum of log scales."""
    lo, hi = trees.node_offsets[t], trees.node_offsets[t + 1]
    size, label, rule = trees.size[lo:hi], trees.label[lo:hi], trees.rule[lo:hi]
    n_states, rule_offset, binary = model.n_states, model.rule_offset, model.binary
    lex_offset, lexical = model.lex_offset, model.lexical
    if trees.top[t] < 0:
        return -np.inf
    log_scale = 0.0
    for i in range(len(size) - 1, -1, -1):
        r = rule[i]
        if r < 0:
            return -np.inf
        out = inside[i, : n_states[label[i]]]
        if size[i] == 1:
            for h in range(len(out)):
                out[h] = lexical[lex_offset[r] + h]
        else:
            l = i + 1
            c = l + size[l]
            contract(
                binary[rule_offset[r] : rule_offset[r + 1]],
                inside[l, : n_states[label[l]]],
                inside[c, : n_states[label[c]]],
                pairs,
                out,
            )
        scale = rescale(out)
        if scale == 0.0:
            return -np.inf
        log_scale += np.log(scale)
    return log_scale


@held
@njit(**KERNEL)
def tree_values(begin, end, trees, model):
    """Sign and log |value| of the trees begin..end-1 (figure 4).

    Parameters
    ----------
    begin, end : int
        Which trees.
    trees : ParsedTrees
        The trees.
    model : TreeModel
        The parameters.

    Returns
    -------
    signs, logs : ndarray of float64, shape (end - begin,)
        0 and -inf for a tree of value zero.
    """
    node_offsets, top = trees.node_offsets, trees.top
    root_offset, root = model.root_offset, model.root
    signs = np.zeros(end - begin)
    logs = np.full(end - begin, -np.inf)
    width = model.n_states.max()
    inside = np.empty((longest(node_offsets[begin : end + 1]), width))
    pairs = np.empty(width * width)
    for t in range(begin, end):
        log_scale = _inside_tree(trees, t, model, pairs, inside)
        if log_scale == -np.inf:
            continue
        weights = root[root_offset[top[t]] : root_offset[top[t] + 1]]
        value = 0.0
        for h in range(len(weights)):
            value += weights[h] * inside[0, h]
        if value != 0.0:
            signs[t - begin] = np.sign(value)
            logs[t - begin] = np.log(abs(value)) + log_scale
    return signs, logs


@held
@njit(**KERNEL)
def tree_posteriors(begin, end, trees, model):
    """Posterior of the latent states of each node of the trees begin..end-1.

    Parameters
    ----------
    begin, end : int
        Which trees.
    trees : ParsedTrees
        The trees.
    model : TreeModel
        The parameters.

    Returns
    -------
    ndarray of float64, shape (n_nodes, width)
        Row i is inside ∘ outside, divided by its sum (the tree's value, the same at
        each node); rows of trees of value zero are zero, and so are columns beyond
        the number of states.
    """
    node_offsets, size, label = trees.node_offsets, trees.size, trees.label
    rule, top, n_states = trees.rule, trees.top, model.n_states
    rule_offset, binary = model.rule_offset, model.binary
    root_offset, root = model.root_offset, model.root
    width = n_states.max()
    first = node_offsets[begin]
    posterior = np.zeros((node_offsets[end] - first, width))
    inside = np.empty((longest(node_offsets[begin : end + 1]), width))
    outside = np.empty_like(inside)
    pairs = np.empty(width * width)
    for t in range(begin, end):
        lo, hi = node_offsets[t], node_offsets[t + 1]
        log_scale = _inside_tree(trees, t, model, pairs, inside)
        if log_scale == -np.inf:
            continue
        weights = root[root_offset[top[t]] : root_offset[top[t] + 1]]
        for h in range(len(weights)):
            outside[0, h] = weights[h]
        for i in range(hi - lo):
            m = n_states[label[lo + i]]
            if size[lo + i] > 1:
                l = i + 1
                c = l + size[lo + l]
                n_left = n_states[label[lo + l]]
                n_right = n_states[label[lo + c]]
                r = rule[lo + i]
                contract_down(
                    binary[rule_offset[r] : rule_offset[r + 1]],
                    outside[i, :m],
                    inside[l, :n_left],
                    inside[c, :n_right],
                    pairs,
                    outside[l, :n_left],
                    outside[c, :n_right],
                )
                rescale(outside[l, :n_left])
                rescale(outside[c, :n_right])
            total = 0.0
            for h in range(m):
                total += inside[i, h] * outside[i, h]
            if total != 0.0:
                row = posterior[lo + i - first]
                for h in range(m):
                    row[h] = inside[i, h] * outside[i, h] / total
    return posterior


# Columns of drawn nodes.
_SIZE, _PARENT, _WORD = 2, 3, 4


class SamplingTables(NamedTuple):
    """What the states of a grammar may generate.

    Attributes
    ----------
    n_states : ndarray of int32, shape (n_nonterminals,)
        Number of latent states.
    state_offset : ndarray of int64, shape (n_nonterminals + 1,)
        State h of a is number ``state_offset[a] + h`` of all states.
    choice_offset : ndarray of int64
        State s may choose ``choice_offset[s]:choice_offset[s + 1]``.
    choice_total : ndarray of float64
        Cumulative probabilities of the choices of each state.
    choice : ndarray of int64
        A binary rule, or -1 - x for the word x.
    rule_left, rule_right : ndarray of int32
        Children of the binary rules.
    rule_offset, binary : ndarray
        Tensors of the binary rules.
    root_label : ndarray of int32
        Nonterminals at roots.
    root_cumulative : ndarray of float64
        Cumulative probabilities of the (label, state) pairs of roots.
    """

    n_states: np.ndarray
    state_offset: np.ndarray
    choice_offset: np.ndarray
    choice_total: np.ndarray
    choice: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    rule_offset: np.ndarray
    binary: np.ndarray
    root_label: np.ndarray
    root_cumulative: np.ndarray


@njit(**HELPER)
def _draw(cumulative, u):
    """Return the first position whose cumulative sum exceeds u times the total."""
    n = len(cumulative)
    target = u * cumulative[n - 1]
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] <= target:
            low = middle + 1
        else:
            high = middle
    # Rounding may lead past the end, or to a last choice of probability zero.
    i = min(low, n - 1)
    while i > 0 and cumulative[i] == cumulative[i - 1]:
        i -= 1
    return i


@held
@njit(**KERNEL)
def draw_trees(n, rng, max_nodes, tables):
    """Draw n trees, node by node in preorder.

    Parameters
    ----------
    n : int
        Number of trees.
    rng : Generator
        Source of randomness.
    max_nodes : int
        Largest number of nodes of a tree.
    tables : SamplingTables
        The grammar.

    Returns
    -------
    nodes : ndarray of int32, shape (n_nodes, 5)
        Label, state, size, parent and word of each node; the word is -1 at inner
        nodes.
    offsets : ndarray of int64, shape (n + 1,)
        Offsets of the trees; the last one is negative if a tree grew beyond
        `max_nodes`.
    """
    n_states, state_offset, choice = tables.n_states, tables.state_offset, tables.choice
    choice_offset, choice_total = tables.choice_offset, tables.choice_total
    rule_left, rule_right = tables.rule_left, tables.rule_right
    rule_offset, binary = tables.rule_offset, tables.binary
    root_label, root_cumulative = tables.root_label, tables.root_cumulative
    nodes = np.empty((1024, 5), dtype=np.int32)
    offsets = np.zeros(n + 1, dtype=np.int64)
    # Nodes to be drawn: label, state, parent.
    stack = np.empty((64, 3), dtype=np.int64)
    # Cumulative probabilities of the states of both children.
    sums = np.empty(64)
    total = 0
    for t in range(n):
        first = total
        pair = _draw(root_cumulative, rng.random())
        k = 0
        while pair >= n_states[root_label[k]]:
            pair -= n_states[root_label[k]]
            k += 1
        set_row(stack, 0, root_label[k], pair, -1)
        depth = 1
        while depth > 0:
            depth -= 1
            a, h, above = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            if total - first == max_nodes:
                offsets[n] = -1
                return nodes, offsets
            if total == len(nodes):
                nodes = lengthened(nodes, 2 * total)
            i = total
            total += 1
            set_row(nodes, i, a, h, 1)
            nodes[i, _PARENT], nodes[i, _WORD] = above, -1
            s = state_offset[a] + h
            begin, end = choice_offset[s], choice_offset[s + 1]
            c = choice[begin + _draw(choice_total[begin:end], rng.random())]
            if c < 0:
                nodes[i, _WORD] = -1 - c
                continue
            n_left = n_states[rule_left[c]]
            n_right = n_states[rule_right[c]]
            cell = rule_offset[c] + h * n_left * n_right
            if n_left * n_right > len(sums):
                sums = np.empty(n_left * n_right)
            mass = 0.0
            for p in range(n_left * n_right):
                mass += binary[cell + p]
                sums[p] = mass
            pair = _draw(sums[: n_left * n_right], rng.random())
            if depth + 2 > len(stack):
                stack = lengthened(stack, 2 * len(stack))
            set_row(stack, depth, rule_right[c], pair % n_right, i - first)
            set_row(stack, depth + 1, rule_left[c], pair // n_right, i - first)
            depth += 2
        for i in range(total - 1, first, -1):
            nodes[first + nodes[i, _PARENT], _SIZE] += nodes[i, _SIZE]
        offsets[t + 1] = total
    return nodes[:total], offsets
