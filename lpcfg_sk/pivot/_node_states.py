"""The pivot method: latent states of all nodes, then counts of rules with them."""

import os
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._pivot import FeatureRows, feature_gradient, rule_mixture
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.lpcfg import Estimates
from lpcfg_sk.pivot._label_states import LabelNodeData, LabelStates, label_states
from lpcfg_sk.spectral import SIDES, project_label

# Multiplications of one iteration in a chunk of rules.
_CHUNK_PRODUCTS = 2e7
# Leaves whose posteriors are in memory at a time.
_BLOCK_LEAVES = 2**20


class FeatureTable(NamedTuple):
    """Features of all nodes on one side, and their likelihoods under the states.

    Attributes
    ----------
    row : ndarray of int64, shape (n_nodes,)
        Row of each node; those of a nonterminal are together.
    indptr : ndarray of int64, shape (n_nodes + 1,)
        Where the features of each row begin in `indices`.
    indices : ndarray of int32, shape (n_entries,)
        Features as rows of the vectors of the node's nonterminal.
    vectors : list of ndarray of shape (n_features, m)
        Likelihoods of the features of each nonterminal, normalised to 1 for each state.
    n_features : list of ndarray of shape (m,)
        Expected number of features of a node in each state.
    """

    row: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    vectors: list
    n_features: list


class NodeStates(NamedTuple):
    """The latent states of nodes, as the decompositions find them.

    Attributes
    ----------
    n_states : ndarray of int64, shape (N,)
        Number of states found for each nonterminal.
    prior : list of ndarray
        p(h | a), one vector per nonterminal.
    inside, outside : ndarray of float64, shape (n_nodes, max(n_states)), or \
            FeatureTable
        Product: for each node p(inside tree | h, a) and p(outside tree | h, a), up to a
        factor; zeros after the states of its nonterminal. Sum: their features.
    labels : list of LabelStates
        The decompositions, without the parts in `inside` and `outside`; `anchors`,
        `outside_anchors` and the columns of `r` and `s` are those of `columns`.
    columns : list of pairs of ndarray of int64
        Columns of the inside and outside features that occur with each nonterminal.
    """

    n_states: np.ndarray
    prior: list
    inside: np.ndarray | FeatureTable
    outside: np.ndarray | FeatureTable
    labels: list
    columns: list


def node_states(nodes, index, projections, m, options, *, n_jobs=None):
    """Decompose the features of all nonterminals (step 1 of figure 1).

    Parameters
    ----------
    nodes : NodeFeatures
        Features of the nodes.
    index : RuleIndex
        Rules and entries at the nodes.
    projections : list of Projection
        Projections of the features by CCA, one per nonterminal.
    m : ndarray of int64, shape (N,)
        Number of states wanted for each nonterminal.
    options : PivotOptions
        Settings.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    NodeStates
        Likelihoods and features are in files where those of `nodes` are.
    """
    order = np.argsort(index.label, kind="stable")
    bounds = np.searchsorted(index.label[order], np.arange(len(m) + 1))
    is_root = np.zeros(len(order), dtype=bool)
    is_root[index.node_offsets[:-1]] = True

    def chunk(begin, end):
        return [one(a) for a in range(begin, end)]

    def one(a):
        label_nodes = nodes.of_label(a)
        rows = order[bounds[a] : bounds[a + 1]]
        if m[a] == 1:
            return _one_state(label_nodes, index.entry[rows], is_root[rows], options)
        features, vectors = project_label(label_nodes, projections[a], m[a])
        for block in features:
            block.data[:] = 1.0
        data = LabelNodeData(
            features, vectors, label_nodes.weight, index.entry[rows], is_root[rows]
        )
        columns = projections[a].inside, projections[a].outside
        return label_states(data, m[a], options), columns, _rows(features, options)

    chunks = cut_by_work(nodes.n_nodes + 1)
    results = (s for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for s in part)
    collect = _collect_tables if options.objective == "sum" else _collect_likelihoods
    return collect(results, order, bounds, m, nodes.folder)


def _one_state(nodes, entry, is_root, options):
    """Decompose a nonterminal with one state, which needs no features."""
    blocks = nodes.inside, nodes.outside
    columns, shares = [], []
    for block in blocks:
        block = block[nodes.rows]
        weight = np.repeat(nodes.weight, np.diff(block.indptr))
        counts = np.bincount(block.indices, weight, minlength=block.shape[1])
        columns.append(np.flatnonzero(counts))
        shares.append(counts[columns[-1]][np.newaxis] / nodes.weight.sum())
    alpha, beta = (float(share.max(initial=0.0)) for share in shares)
    nothing, one = np.zeros(0, np.int64), np.ones(1)
    states = LabelStates(
        one, nothing, nothing, *shares, alpha, beta, one, one[np.newaxis], one[None]
    )
    if options.objective == "product":
        return states, columns, None
    entries, column = np.unique(entry, return_inverse=True)
    counts = np.bincount(column, nodes.weight)
    states = states._replace(
        n_features=(one, one),
        entries=entries[entries >= 0],
        lexical=counts[entries >= 0][:, np.newaxis],
        root=np.array([nodes.weight[is_root].sum()]),
    )
    # With one state, features carry no information: one for all nodes will do.
    row = np.ones(len(entry), np.int64), np.zeros(len(entry), np.int32)
    return states, columns, (row, row)


def _rows(features, options):
    """Return the numbers of features of nodes, and the features, of the two sides."""
    if options.objective == "product":
        return None
    return [(np.diff(block.indptr), block.indices) for block in features]


def _collect_likelihoods(results, order, bounds, m, folder):
    """Put the likelihoods of the nodes of all nonterminals into two arrays."""
    inside, outside = (_zeros((len(order), m.max()), folder, side) for side in SIDES)
    labels, columns = [], []
    for a, (states, used, _) in enumerate(results):
        rows = order[bounds[a] : bounds[a + 1]]
        inside[rows, : len(states.prior)] = states.inside
        outside[rows, : len(states.prior)] = states.outside
        labels.append(states._replace(inside=None, outside=None))
        columns.append(used)
    prior = [states.prior for states in labels]
    n_states = np.array([len(share) for share in prior], dtype=np.int64)
    width = n_states.max(initial=1)
    return NodeStates(
        n_states, prior, inside[:, :width], outside[:, :width], labels, columns
    )


def _collect_tables(results, order, bounds, m, folder):
    """Put the features of the nodes of all nonterminals into two tables."""
    labels, columns = [], []
    lengths, indices = ([], []), (_Column(folder, SIDES[0]), _Column(folder, SIDES[1]))
    vectors = [], []
    for states, used, rows in results:
        for side, (length, feature) in enumerate(rows):
            lengths[side].append(length)
            indices[side].append(feature)
        vectors[0].append(states.inside)
        vectors[1].append(states.outside)
        labels.append(states._replace(inside=None, outside=None))
        columns.append(used)
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    tables = [
        FeatureTable(
            row,
            offsets(np.concatenate(lengths[side])),
            indices[side].finish(),
            vectors[side],
            [states.n_features[side] for states in labels],
        )
        for side in range(2)
    ]
    prior = [states.prior for states in labels]
    n_states = np.array([len(share) for share in prior], dtype=np.int64)
    return NodeStates(n_states, prior, *tables, labels, columns)


class _Column:
    """A column that is written piece by piece, to a file if there is a folder."""

    def __init__(self, folder, name):
        self._parts = []
        self._path = folder and os.path.join(folder, f"{name}-columns.bin")

    def append(self, part):
        part = part.astype(np.int32, copy=False)
        if self._path is None:
            self._parts.append(part)
            return
        with open(self._path, "ab") as file:
            part.tofile(file)

    def finish(self):
        if self._path is None:
            return np.concatenate(self._parts)
        return np.memmap(self._path, np.int32, "r")


def _zeros(shape, folder, name):
    """Return an array of zeros, in a file if there is a folder."""
    if folder is None:
        return np.zeros(shape)
    path = os.path.join(folder, f"{name}-states.npy")
    return np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=shape)


def latent_rule_counts(
    index, layout, states, weight, *, objective, tol, max_iter, n_jobs=None
):
    """Counts of all rules with latent states (step 2 of figure 1, and section 6.1).

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    layout : Layout
        Where counts lie.
    states : NodeStates
        The states of the nodes.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    objective : {"sum", "product"}
        How a node's features make up its likelihood.
    tol : float
        A rule's iterations end when more of them could raise its mean log likelihood
        by at most this.
    max_iter : int
        Most iterations of a rule.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    counts : Estimates
        Expected counts, to be normalised (step 3).
    n_iter : int
        Largest number of iterations of a rule.
    converged : bool
        Whether all rules ended by `tol`.
    """
    inner = np.flatnonzero(index.rule >= 0)
    nodes = inner[np.argsort(index.rule[inner], kind="stable")]
    bounds = np.searchsorted(index.rule[nodes], np.arange(index.n_rules + 1))
    maximise = _sum_mixture if objective == "sum" else _product_mixture

    def chunk(begin, end):
        return [one(r) for r in range(begin, end)]

    def one(r):
        parent = nodes[bounds[r] : bounds[r + 1]]
        labels = index.rule_parent[r], index.rule_left[r], index.rule_right[r]
        left = parent + 1
        family = parent, left, left + index.size[left]
        t, n_iter, gap = maximise(states, labels, family, weight[parent], tol, max_iter)
        return t.ravel() * weight[parent].sum(), n_iter, gap <= tol

    work = layout.shapes.prod(axis=1) * (np.diff(bounds) + 1)
    chunks = cut_by_work(work, target=_CHUNK_PRODUCTS)
    results = [
        rule for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for rule in part
    ]
    counts = Estimates(
        np.concatenate([binary for binary, _, _ in results] or [np.zeros(0)]),
        np.zeros(layout.lex_offset[-1]),
        np.zeros(layout.root_offset[-1]),
    )
    if objective == "sum":
        _add_decomposed(index, layout, states, counts)
    else:
        _add_posteriors(index, layout, states, weight, counts)
    n_iter = max((n_iter for _, n_iter, _ in results), default=0)
    return counts, n_iter, all(converged for _, _, converged in results)


def _product_mixture(states, labels, family, weight, tol, max_iter):
    """t(h1, h2, h3 | a → b c) from likelihoods of whole trees."""
    a, b, c = labels
    parent, left, right = family
    m1, m2, m3 = states.n_states[[a, b, c]]
    start = np.outer(
        states.prior[a], np.outer(states.prior[b], states.prior[c]).ravel()
    )
    return rule_mixture(
        np.ascontiguousarray(states.outside[parent, :m1]),
        np.ascontiguousarray(states.inside[left, :m2]),
        np.ascontiguousarray(states.inside[right, :m3]),
        weight,
        start,
        tol,
        max_iter,
    )


def _sum_mixture(states, labels, family, weight, tol, max_iter):
    """t(h1, h2, h3 | a → b c) from all combinations of features (section 6.2).

    EM finds the weights of combinations of features; those of nodes follow by division
    by the expected number of combinations in each state, which is the same for all
    states unless templates are silent for some trees.
    """
    a, b, c = labels
    m1, m2, m3 = states.n_states[[a, b, c]]
    outside = _feature_rows(states.outside, a, family[0])
    left = _feature_rows(states.inside, b, family[1])
    right = _feature_rows(states.inside, c, family[2])
    shape, axes = (m1, m2, m3), (0, 1, 2)
    # The kernel does most work per feature of the last child, so that child should
    # have the fewer features.
    if left.indptr[-1] < right.indptr[-1]:
        left, right, axes = right, left, (0, 2, 1)
    n_features = _outer(
        states.outside.n_features[a],
        states.inside.n_features[b],
        states.inside.n_features[c],
    )
    t = _outer(states.prior[a], states.prior[b], states.prior[c]) * n_features
    t = t.transpose(axes).reshape(m1 * left.vectors.shape[1], -1)
    t /= t.sum()
    gradient = np.empty_like(t)
    n_iter, gap = 0, np.inf
    while True:
        mass, blocked = feature_gradient(outside, left, right, weight, t, gradient)
        if mass <= 0.0:
            break
        gap = np.inf if blocked > 0.0 else gradient.max() / mass - 1.0
        if gap <= tol or n_iter == max_iter:
            break
        t *= gradient
        t /= t.sum()
        n_iter += 1
    t = t.reshape([shape[k] for k in axes]).transpose(axes) / n_features
    return t / t.sum(), n_iter, gap


def _outer(a, b, c):
    return a[:, np.newaxis, np.newaxis] * b[:, np.newaxis] * c


def _feature_rows(table, label, nodes):
    """Return the features of some nodes of a nonterminal."""
    rows = table.row[nodes]
    starts = table.indptr[rows]
    lengths = table.indptr[rows + 1] - starts
    indices = np.asarray(table.indices[ragged_indices(starts, lengths)])
    return FeatureRows(offsets(lengths), indices, table.vectors[label])


def _add_decomposed(index, layout, states, counts):
    """Add the counts of words and roots that the decompositions give, in place."""
    for label in states.labels:
        state = np.arange(len(label.prior))
        place = layout.lex_offset[label.entries][:, np.newaxis] + state
        counts.lexical[place] += label.lexical
    for top, a in enumerate(index.root_label):
        begin, end = layout.root_offset[top : top + 2]
        counts.root[begin:end] += states.labels[a].root


def _add_posteriors(index, layout, states, weight, counts):
    """Add the posteriors of leaves and roots given their two trees, in place."""
    leaves = np.flatnonzero(index.entry >= 0)
    for begin in range(0, len(leaves), _BLOCK_LEAVES):
        some = leaves[begin : begin + _BLOCK_LEAVES]
        posteriors = _posteriors(index, states, some, weight)
        _add_states(posteriors, layout.lex_offset, index.entry[some], counts.lexical)
    roots = index.node_offsets[:-1].astype(np.int64)
    posteriors = _posteriors(index, states, roots, weight)
    _add_states(posteriors, layout.root_offset, index.top, counts.root)


def _posteriors(index, states, nodes, weight):
    """Return p(h | inside tree, outside tree) of nodes, times their weights."""
    label = index.label[nodes]
    prior = np.zeros((len(states.prior), states.inside.shape[1]))
    for a, share in enumerate(states.prior):
        prior[a, : len(share)] = share
    joint = prior[label] * states.inside[nodes] * states.outside[nodes]
    total = joint.sum(axis=1, keepdims=True)
    # Features that contradict each other carry no information.
    joint = np.where(total > 0, joint, prior[label])
    posteriors = joint / joint.sum(axis=1, keepdims=True)
    return posteriors * weight[nodes, np.newaxis]


def _add_states(posteriors, offset, entry, total):
    """Add the posteriors of nodes to the vectors of their entries in `total`."""
    length = np.diff(offset)[entry]
    state = ragged_indices(np.zeros(len(entry), np.int64), length)
    row = np.repeat(np.arange(len(entry)), length)
    place = offset[entry][row] + state
    total += np.bincount(place, posteriors[row, state], minlength=len(total))
