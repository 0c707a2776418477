"""Moments of projected nodes, and the grammar that they give (figure 7)."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._moments import (
    RuleMeans,
    RuleNodes,
    RuleSums,
    leaf_sums,
    rule_sums,
    smooth_rules,
)
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.lpcfg import Layout, grammar_of_lexicon, smooth_lexicon
from lpcfg_sk.spectral._decomposition import project
from lpcfg_sk.spectral._node_features import SIDES, node_weight
from lpcfg_sk.treebank import RuleIndex, over_chunks

#: Multiplications in a chunk of rules.
_CHUNK_PRODUCTS = 4e7


class SpectralMoments(NamedTuple):
    """Sums of the projected nodes of a treebank.

    z is the outside vector of a node times (Σ^a)⁻¹, y its inside vector. All
    fields are sums, not means, so the moments of two treebanks (under the same
    projections and rules) add.

    Attributes
    ----------
    n_states : ndarray of int64, shape (N,)
        Number of states of each nonterminal.
    label_count, rule_count, entry_count : ndarray of float64
        Weight of the nodes of each nonterminal, binary and lexical rule.
    root_count : float
        Weight of the roots.
    label_first : ndarray of float64, shape (2, N, max(m))
        Σ z and Σ y over the nodes of each nonterminal.
    rule_first, rule_second, rule_third : ndarray of float64
        Sums over the nodes of each binary rule, rule after rule: of z, y, y'; of
        zyᵀ, zy'ᵀ, yy'ᵀ; of z⊗y⊗y'.
    entry_first : ndarray of float64
        Σ z over the nodes of each lexical rule.
    root_first : ndarray of float64
        Σ y over the roots, one vector per root entry.
    """

    n_states: np.ndarray
    label_count: np.ndarray
    rule_count: np.ndarray
    entry_count: np.ndarray
    root_count: float
    label_first: np.ndarray
    rule_first: np.ndarray
    rule_second: np.ndarray
    rule_third: np.ndarray
    entry_first: np.ndarray
    root_first: np.ndarray


def add_moments(one, two):
    """Add the moments of two treebanks that share rules and projections.

    Parameters
    ----------
    one, two : SpectralMoments
        Moments with the same `n_states`.

    Returns
    -------
    total : SpectralMoments
    """
    if not np.array_equal(one.n_states, two.n_states):
        raise ValueError("moments with different numbers of states do not add")
    sums = (a + b for a, b in zip(one[1:], two[1:], strict=True))
    return SpectralMoments(one.n_states, *sums)


def corpus_moments(X, columns, rules, projections, n_states, *, ridge=0.0, n_jobs=None):
    """Sum the moments of all nodes of a corpus (figure 7, step 2).

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Binary trees with inside and outside features.
    columns : tuple of ndarray or None
        Arguments of :func:`node_weight` with one item per tree.
    rules : RuleTable
        The rules of the corpus.
    projections : list of Projection
        One per nonterminal.
    n_states : ndarray of int64, shape (N,)
        Number of states of each nonterminal.
    ridge : float, default=0.0
        Regularisation of (Σ^a)⁻¹, see :func:`project`.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    moments : SpectralMoments
    """
    # Chunks run in parallel; if there is only one, its rules do.
    n_rule_jobs = n_jobs if len(X.chunk_offsets) == 2 else None

    def moments(treebank, *items):
        nodes = projected_nodes(treebank, items, rules, projections, n_states, ridge)
        return accumulate_moments(*nodes, n_states, n_jobs=n_rule_jobs)

    return reduce(add_moments, over_chunks(moments, X, *columns, n_jobs=n_jobs))


def projected_nodes(treebank, items, rules, projections, n_states, ridge):
    """Project the features of all nodes of a treebank (figure 7, step 1).

    Parameters
    ----------
    treebank : Treebank
        Binary trees with inside and outside features.
    items : tuple of ndarray
        Arguments of :func:`node_weight`.
    rules, projections, n_states, ridge
        As in :func:`corpus_moments`.

    Returns
    -------
    index, inside, outside, weight
        Arguments of :func:`accumulate_moments`.
    """
    index = RuleIndex.from_treebank(treebank, table=rules)
    vectors = (
        project(
            treebank.blocks[side], index.label, projections, side, n_states, ridge=ridge
        )
        for side in SIDES
    )
    return index, *vectors, node_weight(index, *items)


def accumulate_moments(
    index, inside, outside, weight, n_states, *, chosen=None, n_jobs=None
):
    """Sum the moments of the nodes of a treebank.

    Parameters
    ----------
    index : RuleIndex
        The treebank.
    inside, outside : ndarray of float64, shape (n_nodes, at least max(n_states))
        y and z of each node, z already times (Σ^a)⁻¹.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    n_states : ndarray of int64, shape (N,)
        Number of states of each nonterminal; what the vectors hold beyond them is
        not used.
    chosen : ndarray of int64, default=None
        Binary rules whose moments are wanted; all of them where None.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    moments : SpectralMoments
    """
    layout = Layout.build(index, n_states)
    m, lex_offset = layout.n_states, layout.lex_offset
    leaf, inner = np.flatnonzero(index.entry >= 0), np.flatnonzero(index.rule >= 0)
    entry_first = np.zeros(lex_offset[-1])
    leaf_sums(index.entry, weight, outside, index.lex_label, m, lex_offset, entry_first)
    roots = index.node_offsets[:-1]
    root_first = [
        weight[rows] @ inside[rows, : m[a]]
        for rows, a in (
            (roots[index.top == k], a) for k, a in enumerate(index.root_label)
        )
    ]
    if chosen is None:
        chosen = np.arange(index.n_rules)
    sums = _rule_sums(
        index, inside, outside, weight, chosen, layout.shapes[chosen], n_jobs
    )
    return SpectralMoments(
        n_states=m,
        label_count=np.bincount(index.label, weights=weight, minlength=len(m)),
        rule_count=np.bincount(
            index.rule[inner], weights=weight[inner], minlength=index.n_rules
        ),
        entry_count=np.bincount(
            index.entry[leaf], weights=weight[leaf], minlength=len(index.lex_label)
        ),
        root_count=weight[roots].sum(),
        label_first=np.stack(
            [
                _sum_by_label(index.label, weight, vectors, len(m))
                for vectors in (outside, inside)
            ]
        ),
        rule_first=sums.first,
        rule_second=sums.second,
        rule_third=sums.third,
        entry_first=entry_first,
        root_first=np.concatenate(root_first),
    )


def _rule_sums(index, inside, outside, weight, chosen, shapes, n_jobs):
    inner = np.flatnonzero(index.rule >= 0)
    order = inner[np.argsort(index.rule[inner], kind="stable")]
    count = np.bincount(index.rule[inner], minlength=index.n_rules)
    order = order[ragged_indices(offsets(count)[chosen], count[chosen])]
    count = count[chosen]
    left = np.arange(1, index.n_nodes + 1, dtype=np.int64)
    right = left.copy()
    right[inner] += index.size[left[inner]]
    nodes = RuleNodes(order, offsets(count), left, right, weight)
    ma, mb, mc = shapes.T
    sizes = (ma + mb + mc, ma * mb + ma * mc + mb * mc, ma * mb * mc)
    places = [offsets(size) for size in sizes]
    totals = RuleSums(*(np.empty(place[-1]) for place in places))

    # Each chunk has rules of its own, so that nothing is added up between chunks and
    # only the parameters take memory.
    def chunk(begin, end):
        first, second, third = (place[end] - place[begin] for place in places)
        sums = RuleSums(np.zeros(first), np.zeros(second), np.empty(third))
        rule_sums(begin, end, nodes, inside, outside, shapes, sums)
        return begin, end, sums

    # The constant keeps the tensors of a chunk small enough to be recycled.
    chunks = cut_by_work(sizes[2] * (count + 20), target=_CHUNK_PRODUCTS)
    for begin, end, sums in map_chunks(chunk, chunks, n_jobs=n_jobs):
        for total, place, part in zip(totals, places, sums, strict=True):
            total[place[begin] : place[end]] = part
    return totals


def _sum_by_label(label, weight, vectors, n_labels):
    return np.stack(
        [
            np.bincount(label, weights=weight * column, minlength=n_labels)
            for column in vectors.T
        ],
        axis=1,
    )


def solve(
    rules,
    moments,
    *,
    smoothing=None,
    lexical_smoothing=None,
    alpha=0.0,
    chosen=None,
    known=None,
):
    """Parameters of the grammar from the moments (figure 7, step 3).

    Parameters
    ----------
    rules : RuleCounts
        The rules; without smoothing of the lexicon a RuleTable will do.
    moments : SpectralMoments
        Exact or empirical sums; `rule_third` is overwritten.
    smoothing : float, default=None
        The constant C of the interpolation of binary rules.
    lexical_smoothing : float, default=None
        The constant C of the interpolation of lexical rules.
    alpha : float, default=0.0
        Strength of the signature classes in the lexicon.
    chosen : ndarray of int64, default=None
        Binary rules that `moments` holds, all of them where None.
    known : LPCFG, default=None
        Grammar of the same rules and projections, from which the other rules take
        their tensors.

    Returns
    -------
    grammar : LPCFG
    """
    m = moments.n_states
    layout = Layout.build(rules, m)
    rule = np.arange(rules.n_rules) if chosen is None else chosen
    parent, left, right = (
        part[rule] for part in (rules.rule_parent, rules.rule_left, rules.rule_right)
    )
    count = np.maximum(moments.label_count, np.finfo(float).tiny)
    outside_mean, inside_mean = moments.label_first / count[None, :, None]
    smooth_rules(
        moments.rule_count[rule],
        0.0 if smoothing is None else float(smoothing),
        layout.shapes[rule],
        RuleMeans(outside_mean[parent], inside_mean[left], inside_mean[right]),
        RuleSums(moments.rule_first, moments.rule_second, moments.rule_third),
        count[parent],
    )
    binary = moments.rule_third
    if chosen is not None:
        binary = _replace_tensors(known.arrays, layout.rule_offset, chosen, binary)
    vectors = _lexical_vectors(rules, moments, outside_mean, lexical_smoothing)
    lexicon = smooth_lexicon(rules, m, vectors, alpha=alpha)
    label = lexicon.lex_label
    lexical = lexicon.lexical / np.repeat(count[label], m[label])
    return grammar_of_lexicon(
        rules,
        layout,
        lexicon._replace(lexical=lexical),
        binary,
        moments.root_first / moments.root_count,
    )


def _replace_tensors(arrays, rule_offset, chosen, tensors):
    """Tensors of all rules: new ones of the chosen rules, the others as they were."""
    size = np.diff(rule_offset)
    binary = np.empty(rule_offset[-1])
    binary[ragged_indices(rule_offset[chosen], size[chosen])] = tensors
    kept = np.delete(np.arange(len(size)), chosen)
    binary[ragged_indices(rule_offset[kept], size[kept])] = arrays.binary[
        ragged_indices(arrays.rule_offset[kept], size[kept])
    ]
    return binary


def _lexical_vectors(rules, moments, mean, strength):
    """Sums of z by lexical rule, drawn towards the mean of the nonterminal."""
    if strength is None:
        return moments.entry_first
    label, count = rules.lex_label, moments.entry_count
    length = moments.n_states[label]
    root = np.sqrt(count)
    own = root / (strength + root)
    state = ragged_indices(np.zeros(len(length), np.int64), length)
    towards = mean[np.repeat(label, length), state]
    return np.repeat(own, length) * moments.entry_first + towards * np.repeat(
        (1.0 - own) * count, length
    )
