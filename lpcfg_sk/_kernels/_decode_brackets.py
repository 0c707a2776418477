"""Marginals of brackets over original labels, and the tree of the best brackets."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._chart_spans import best_splits, span_count, span_index
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held, set_row


class BracketChains(NamedTuple):
    """The brackets that each nonterminal stands for.

    Attributes
    ----------
    n_brackets : int
        Number of distinct brackets.
    wide_offset, wide_bracket : ndarray of int64 and of int32
        Over several words nonterminal a stands for the brackets
        ``wide_bracket[wide_offset[a]:wide_offset[a + 1]]``, from the top down.
    leaf_offset, leaf_bracket : ndarray of int64 and of int32
        The same over one word, without the tag.
    """

    n_brackets: int
    wide_offset: np.ndarray
    wide_bracket: np.ndarray
    leaf_offset: np.ndarray
    leaf_bracket: np.ndarray


class Brackets(NamedTuple):
    """Weights of the brackets of sentences.

    Attributes
    ----------
    n_words : ndarray of int64, shape (n_rows,)
        Number of words of each sentence.
    row_span : ndarray of int64, shape (n_rows + 1,)
        Sentence r has the spans ``row_span[r]:row_span[r + 1]``.
    offset : ndarray of int64, shape (n_spans + 1,)
        Span s has the brackets ``offset[s]:offset[s + 1]``.
    bracket : ndarray of int32
        Which bracket.
    weight : ndarray of float64
        Marginal P(X, i, j).
    depth : ndarray of float64
        Mean depth within the unary chains that hold the bracket.
    tag_weight : ndarray of float64, shape (n_tokens, n_tags)
        Marginals of the tags of each word.
    """

    n_words: np.ndarray
    row_span: np.ndarray
    offset: np.ndarray
    bracket: np.ndarray
    weight: np.ndarray
    depth: np.ndarray
    tag_weight: np.ndarray


@held
@njit(**KERNEL)
def collect_brackets(is_word, item_offset, item_label, weight, chains, offset):
    """Add up the weights of items that stand for the same bracket.

    Parameters
    ----------
    is_word : ndarray of bool, shape (n_spans,)
        Which spans are single words.
    item_offset : ndarray of int64, shape (n_spans + 1,)
        Span s has the items ``item_offset[s]:item_offset[s + 1]``.
    item_label : ndarray of int32, shape (n_items,)
        Nonterminal of each item.
    weight : ndarray of float64, shape (n_items,)
        Weight of each item.
    chains : BracketChains
        Brackets of each nonterminal.
    offset : ndarray of int64, shape (n_spans + 1,)
        Filled: span s has the brackets ``offset[s]:offset[s + 1]``.

    Returns
    -------
    bracket, weight, depth : ndarray
        As in :class:`Brackets`.
    """
    leaf_offset, wide_offset = chains.leaf_offset, chains.wide_offset
    n_brackets = chains.n_brackets
    n_spans = len(is_word)
    total = np.zeros(n_brackets)
    depth = np.zeros(n_brackets)
    seen = np.zeros(n_brackets, dtype=np.int64)
    places = 0
    for span in range(n_spans):
        chain_offset = leaf_offset if is_word[span] else wide_offset
        for item in range(item_offset[span], item_offset[span + 1]):
            a = item_label[item]
            places += chain_offset[a + 1] - chain_offset[a]
    bracket = np.empty(places, dtype=np.int32)
    value = np.empty(places)
    order = np.empty(places)
    count = 0
    for span in range(n_spans):
        offset[span] = count
        chain_offset = leaf_offset if is_word[span] else wide_offset
        chain = chains.leaf_bracket if is_word[span] else chains.wide_bracket
        for item in range(item_offset[span], item_offset[span + 1]):
            first = chain_offset[item_label[item]]
            for q in range(first, chain_offset[item_label[item] + 1]):
                x = chain[q]
                if seen[x] != span + 1:
                    seen[x] = span + 1
                    total[x] = 0.0
                    depth[x] = 0.0
                    bracket[count] = x
                    count += 1
                total[x] += weight[item]
                depth[x] += weight[item] * (q - first)
        for q in range(offset[span], count):
            x = bracket[q]
            value[q] = total[x]
            order[q] = depth[x] / total[x] if total[x] > 0.0 else math.inf
    offset[n_spans] = count
    return bracket[:count].copy(), value[:count].copy(), order[:count].copy()


@njit(**KERNEL)
def bracket_trees(brackets, penalty, tag, nodes, node_offsets):
    """Build the tree of each sentence, see :func:`bracket_tree`.

    Parameters
    ----------
    brackets : Brackets
        Weights of the brackets.
    penalty : float
        Subtracted from each weight.
    tag : ndarray of int32, shape (n_tokens,)
        Label of each word.
    nodes : ndarray of int32, shape (n_places, 5)
        Filled with the trees, one after the other.
    node_offsets : ndarray of int64, shape (n_rows + 1,)
        Filled: tree r has the nodes ``node_offsets[r]:node_offsets[r + 1]``.
    """
    token = 0
    node_offsets[0] = 0
    for row in range(len(brackets.n_words)):
        n = brackets.n_words[row]
        first = node_offsets[row]
        tags = tag[token : token + n]
        count = bracket_tree(brackets, row, penalty, tags, nodes[first:])
        node_offsets[row + 1] = first + count
        token += n


@njit(**HELPER)
def bracket_tree(brackets, row, penalty, tag, nodes):
    """Build the tree that maximises the sum of ``weight - penalty`` over its brackets.

    Spans of a tree do not cross; there is no other constraint. A sentence of several
    words gets at least one bracket over all of them (the first of all where none is
    known), and every word its `tag`.

    Parameters
    ----------
    brackets : Brackets
        Weights of the brackets.
    row : int
        Which sentence.
    penalty : float
        Subtracted from each weight.
    tag : ndarray of int32, shape (n,)
        Label of each word.
    nodes : ndarray of int32, shape (n_places, 5)
        The columns label, parent, start and stop are filled in preorder; the fifth is
        for work.

    Returns
    -------
    int
        Number of nodes.
    """
    n, bracket = brackets.n_words[row], brackets.bracket
    value, depth = brackets.weight, brackets.depth
    n_spans = span_count(n)
    base = brackets.row_span[row]
    offset = brackets.offset[base : base + n_spans + 1]
    gain = np.zeros(n_spans)
    for span in range(n_spans):
        for q in range(offset[span], offset[span + 1]):
            gain[span] += max(value[q] - penalty, 0.0)
    split = best_splits(n, gain)
    stack = np.empty((n + 1, 3), dtype=np.int32)
    set_row(stack, 0, 0, n, -1)
    height = 1
    count = 0
    while height > 0:
        height -= 1
        i, j, parent = stack[height]
        span = span_index(i, j, n)
        first = count
        for q in range(offset[span], offset[span + 1]):
            if value[q] <= penalty:
                continue
            node = count
            while node > first and depth[nodes[node - 1, 4]] > depth[q]:
                nodes[node, 4] = nodes[node - 1, 4]
                node -= 1
            nodes[node, 4] = q
            count += 1
        if count == first and parent < 0 and n > 1:
            best = -1
            for q in range(offset[span], offset[span + 1]):
                if best < 0 or value[q] > value[best]:
                    best = q
            nodes[count, 4] = best
            count += 1
        if j - i == 1:
            nodes[count, 4] = -2
            count += 1
        for node in range(first, count):
            q = nodes[node, 4]
            label = bracket[q] if q >= 0 else (0 if q == -1 else tag[i])
            set_row(nodes, node, label, parent, i)
            nodes[node, 3] = j
            parent = node
        if j - i > 1:
            k = split[span]
            set_row(stack, height, k, j, parent)
            set_row(stack, height + 1, i, k, parent)
            height += 2
    return count
