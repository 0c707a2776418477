"""Step 1 of the pivot method: latent states of the nodes of all nonterminals."""

import os
from typing import NamedTuple

import numpy as np

from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk.pivot._label_states import LabelNodeData, LabelStates, label_states
from lpcfg_sk.spectral import SIDES, project_label


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
    """What the decompositions tell about the latent states of nodes.

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
        The decompositions, without what is in `inside` and `outside`; `anchors`,
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
    """Decompose a nonterminal with one state: everything is known."""
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
    # One feature for all of them: it tells as much as theirs.
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
