"""Trees drawn from a probabilistic grammar."""

from typing import NamedTuple

import numpy as np
from numba import njit


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


@njit(nogil=True, cache=True)
def _draw(cumulative, u):
    """Return the first position whose cumulative sum exceeds u times the total."""
    n = len(cumulative)
    i = np.searchsorted(cumulative, u * cumulative[n - 1], side="right")
    # Rounding may lead past the end, or to a last choice of probability zero.
    i = min(i, n - 1)
    while i > 0 and cumulative[i] == cumulative[i - 1]:
        i -= 1
    return i


@njit(nogil=True, cache=True)
def _grown(array, length):
    """Return the array with twice the room."""
    out = np.empty(2 * len(array), dtype=array.dtype)
    out[:length] = array[:length]
    return out


@njit(nogil=True, cache=True)
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
    label, state, size, parent, word : ndarray of int32, shape (n_nodes,)
        Columns of the nodes; the word is -1 at inner nodes.
    offsets : ndarray of int64, shape (n + 1,)
        Offsets of the trees; the last one is negative if a tree grew beyond
        `max_nodes`.
    """
    n_states, state_offset, choice = tables.n_states, tables.state_offset, tables.choice
    choice_offset, choice_total = tables.choice_offset, tables.choice_total
    rule_left, rule_right = tables.rule_left, tables.rule_right
    rule_offset, binary = tables.rule_offset, tables.binary
    root_label, root_cumulative = tables.root_label, tables.root_cumulative
    room = 1024
    label = np.empty(room, dtype=np.int32)
    state = np.empty(room, dtype=np.int32)
    size = np.empty(room, dtype=np.int32)
    parent = np.empty(room, dtype=np.int32)
    word = np.empty(room, dtype=np.int32)
    offsets = np.zeros(n + 1, dtype=np.int64)
    # Nodes to be drawn: label, state, parent.
    stack = np.empty((64, 3), dtype=np.int64)
    total = 0
    for t in range(n):
        first = total
        pair = _draw(root_cumulative, rng.random())
        k = 0
        while pair >= n_states[root_label[k]]:
            pair -= n_states[root_label[k]]
            k += 1
        stack[0, 0] = root_label[k]
        stack[0, 1] = pair
        stack[0, 2] = -1
        depth = 1
        while depth > 0:
            depth -= 1
            a, h, above = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            if total - first == max_nodes:
                offsets[n] = -1
                return label, state, size, parent, word, offsets
            if total == len(label):
                label = _grown(label, total)
                state = _grown(state, total)
                size = _grown(size, total)
                parent = _grown(parent, total)
                word = _grown(word, total)
            i = total
            total += 1
            label[i] = a
            state[i] = h
            size[i] = 1
            parent[i] = above
            word[i] = -1
            s = state_offset[a] + h
            begin, end = choice_offset[s], choice_offset[s + 1]
            c = choice[begin + _draw(choice_total[begin:end], rng.random())]
            if c < 0:
                word[i] = -1 - c
                continue
            n_left = n_states[rule_left[c]]
            n_right = n_states[rule_right[c]]
            at = rule_offset[c] + h * n_left * n_right
            pair = _draw(np.cumsum(binary[at : at + n_left * n_right]), rng.random())
            if depth + 2 > len(stack):
                wider = np.empty((2 * len(stack), 3), dtype=np.int64)
                wider[:depth] = stack[:depth]
                stack = wider
            stack[depth, 0] = rule_right[c]
            stack[depth, 1] = pair % n_right
            stack[depth, 2] = i - first
            stack[depth + 1, 0] = rule_left[c]
            stack[depth + 1, 1] = pair // n_right
            stack[depth + 1, 2] = i - first
            depth += 2
        for i in range(total - 1, first, -1):
            size[first + parent[i]] += size[i]
        offsets[t + 1] = total
    return (
        label[:total],
        state[:total],
        size[:total],
        parent[:total],
        word[:total],
        offsets,
    )
