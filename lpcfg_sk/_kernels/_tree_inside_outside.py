"""Inside and outside vectors of given trees (figures 2 and 4 of the paper).

Each vector is divided by its largest absolute value, and the logarithm of the
divisor is kept, so nothing underflows and negative values are safe.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC


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


@njit(nogil=True, cache=True, fastmath=REASSOC)
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


@njit(nogil=True, cache=True, fastmath=REASSOC)
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


@njit(nogil=True, cache=True)
def rescale(vector):
    """Divide a vector by its largest absolute value and return that value."""
    largest = 0.0
    for h in range(len(vector)):
        largest = max(largest, abs(vector[h]))
    if largest > 0.0:
        for h in range(len(vector)):
            vector[h] /= largest
    return largest


@njit(nogil=True, cache=True)
def _inside_tree(trees, t, model, pairs, inside):
    """Fill the inside vectors of tree t; return the sum of log scales."""
    lo, hi = trees.node_offsets[t], trees.node_offsets[t + 1]
    size, label, rule = trees.size[lo:hi], trees.label[lo:hi], trees.rule[lo:hi]
    n_states, rule_offset, binary = model.n_states, model.rule_offset, model.binary
    lex_offset, lexical = model.lex_offset, model.lexical
    log_scale = 0.0
    for i in range(len(size) - 1, -1, -1):
        r = rule[i]
        if r < 0:
            return -np.inf
        out = inside[i, : n_states[label[i]]]
        if size[i] == 1:
            out[:] = lexical[lex_offset[r] : lex_offset[r + 1]]
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


@njit(nogil=True, cache=True)
def _longest(node_offsets, begin, end):
    """Return the number of nodes of the largest of the trees begin..end-1."""
    longest = 0
    for t in range(begin, end):
        longest = max(longest, node_offsets[t + 1] - node_offsets[t])
    return longest


@njit(nogil=True, cache=True)
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
    inside = np.empty((_longest(node_offsets, begin, end), width))
    pairs = np.empty(width * width)
    for t in range(begin, end):
        if top[t] < 0:
            continue
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


@njit(nogil=True, cache=True)
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
    longest = _longest(node_offsets, begin, end)
    inside = np.empty((longest, width))
    outside = np.empty((longest, width))
    pairs = np.empty(width * width)
    for t in range(begin, end):
        if top[t] < 0:
            continue
        lo, hi = node_offsets[t], node_offsets[t + 1]
        log_scale = _inside_tree(trees, t, model, pairs, inside)
        if log_scale == -np.inf:
            continue
        weights = root[root_offset[top[t]] : root_offset[top[t] + 1]]
        outside[0, : len(weights)] = weights
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
