from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._moments import leaf_sums, rule_sums, smooth_rules
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk.lpcfg import LPCFG, GrammarArrays, smooth_lexicon

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
        Σ y over the roots, one vector a root entry.
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


def accumulate_moments(index, inside, outside, weight, n_states, *, n_jobs=None):
    """Sum the moments of the nodes of a treebank (figure 7, step 2).

    Parameters
    ----------
    index : RuleIndex
        The treebank.
    inside, outside : ndarray of float64, shape (n_nodes, max(n_states))
        y and z of each node, z already times (Σ^a)⁻¹.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    n_states : ndarray of int64, shape (N,)
        Number of states of each nonterminal.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    moments : SpectralMoments
    """
    n_labels, m = len(index.nonterminals), np.asarray(n_states, dtype=np.int64)
    label_count = np.bincount(index.label, weights=weight, minlength=n_labels)
    leaf, inner = np.flatnonzero(index.entry >= 0), np.flatnonzero(index.rule >= 0)
    lex_offset = offsets(m[index.lex_label])
    entry_first = np.zeros(lex_offset[-1])
    leaf_sums(index.entry, weight, outside, index.lex_label, m, lex_offset, entry_first)
    top = index.node_offsets[:-1]
    root_offset = offsets(m[index.root_label])
    root_first = np.zeros(root_offset[-1])
    for k, a in enumerate(index.root_label):
        rows = top[index.top == k]
        root_first[root_offset[k] : root_offset[k + 1]] = (
            weight[rows] @ inside[rows, : m[a]]
        )
    first, second, third = _rule_moments(index, inside, outside, weight, m, n_jobs)
    return SpectralMoments(
        n_states=m,
        label_count=label_count,
        rule_count=np.bincount(
            index.rule[inner], weights=weight[inner], minlength=index.n_rules
        ),
        entry_count=np.bincount(
            index.entry[leaf], weights=weight[leaf], minlength=len(index.lex_label)
        ),
        root_count=weight[top].sum(),
        label_first=np.stack(
            [
                _sum_by_label(index.label, weight, vectors, n_labels)
                for vectors in (outside, inside)
            ]
        ),
        rule_first=first,
        rule_second=second,
        rule_third=third,
        entry_first=entry_first,
        root_first=root_first,
    )


def solve(
    index, moments, *, smoothing=None, lexical_smoothing=None, alpha=0.0, weight=None
):
    """Parameters of the grammar from the moments (figure 7, step 3).

    Parameters
    ----------
    index : RuleIndex
        The rules.
    moments : SpectralMoments
        Exact or empirical sums; `rule_third` is overwritten.
    smoothing : float, default=None
        The constant C of the interpolation of binary rules.
    lexical_smoothing : float, default=None
        The constant C of the interpolation of lexical rules.
    alpha : float, default=0.0
        Strength of the signature classes in the lexicon.
    weight : ndarray of float64, shape (n_trees,), default=None
        Weights of the trees, for the counts of words.

    Returns
    -------
    grammar : LPCFG
    """
    m = moments.n_states
    known = np.maximum(moments.label_count, np.finfo(float).tiny)
    means = moments.label_first / known[None, :, None]
    parent, left, right = index.rule_parent, index.rule_left, index.rule_right
    smooth_rules(
        moments.rule_count,
        0.0 if smoothing is None else float(smoothing),
        m[parent],
        m[left],
        m[right],
        means[0][parent],
        means[1][left],
        means[1][right],
        moments.rule_first,
        moments.rule_second,
        moments.rule_third,
        known[parent],
    )
    vectors = _lexical_vectors(index, moments, means[0], lexical_smoothing)
    lexicon = smooth_lexicon(index, m, vectors, weight=weight, alpha=alpha)
    label = lexicon.lex_label
    lexical = lexicon.lexical / np.repeat(known[label], m[label])
    arrays = GrammarArrays(
        n_states=m,
        rule_parent=parent,
        rule_left=left,
        rule_right=right,
        rule_offset=offsets(m[parent] * m[left] * m[right]),
        binary=moments.rule_third,
        word_offset=lexicon.word_offset,
        lex_label=label,
        lex_offset=lexicon.lex_offset,
        lexical=lexical,
        root_label=index.root_label,
        root_offset=offsets(m[index.root_label]),
        root=moments.root_first / moments.root_count,
    )
    return LPCFG.from_arrays(
        index.nonterminals, lexicon.words, arrays, unknown_word=lexicon.unknown_word
    )


def _lexical_vectors(index, moments, mean, strength):
    """Sums of z by lexical rule, drawn towards the mean of the nonterminal."""
    if strength is None:
        return moments.entry_first
    label, count = index.lex_label, moments.entry_count
    length = moments.n_states[label]
    root = np.sqrt(count)
    own = root / (strength + root)
    state = np.arange(len(moments.entry_first)) - np.repeat(
        offsets(length)[:-1], length
    )
    towards = mean[np.repeat(label, length), state]
    return np.repeat(own, length) * moments.entry_first + towards * np.repeat(
        (1.0 - own) * count, length
    )


def _rule_moments(index, inside, outside, weight, m, n_jobs):
    inner = np.flatnonzero(index.rule >= 0)
    order = inner[np.argsort(index.rule[inner], kind="stable")]
    count = np.bincount(index.rule[inner], minlength=index.n_rules)
    rule_start = offsets(count)
    left = np.arange(1, index.n_nodes + 1, dtype=np.int64)
    right = left.copy()
    right[inner] += index.size[left[inner]]
    ma, mb, mc = m[index.rule_parent], m[index.rule_left], m[index.rule_right]
    sizes = (ma + mb + mc, ma * mb + ma * mc + mb * mc, ma * mb * mc)
    places = [offsets(size) for size in sizes]
    sums = [np.empty(place[-1]) for place in places]

    # Each chunk owns its rules, so nothing has to be added up between chunks, and
    # memory is that of the parameters.
    def chunk(begin, end):
        parts = [np.zeros(p[end] - p[begin]) for p in places[:2]]
        parts.append(np.empty(places[2][end] - places[2][begin]))
        rule_sums(
            begin,
            end,
            order,
            rule_start,
            left,
            right,
            weight,
            inside,
            outside,
            ma,
            mb,
            mc,
            *parts,
        )
        return begin, end, parts

    # The constant keeps the tensors of a chunk small enough to be recycled.
    chunks = cut_by_work(sizes[2] * (count + 20), target=_CHUNK_PRODUCTS)
    for begin, end, parts in map_chunks(chunk, chunks, n_jobs=n_jobs):
        for total, place, part in zip(sums, places, parts, strict=True):
            total[place[begin] : place[end]] = part
    return sums


def _sum_by_label(label, weight, vectors, n_labels):
    return np.stack(
        [
            np.bincount(label, weights=weight * column, minlength=n_labels)
            for column in vectors.T
        ],
        axis=1,
    )
