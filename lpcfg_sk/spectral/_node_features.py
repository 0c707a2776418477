"""Features of the nodes of a corpus, by nonterminal, and samples of the nodes."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lpcfg_sk._parallel import Resident
from lpcfg_sk.treebank import RuleIndex, check_treebank, over_chunks

#: Names of the blocks of features φ and ψ.
SIDES = ("inside", "outside")


def node_weight(index, weight, drawn=None):
    """Return the weight of each node.

    Parameters
    ----------
    index : RuleIndex
        The trees.
    weight : ndarray of float64, shape (n_trees,)
        Weight of each tree.
    drawn : ndarray of int, shape (n_trees,), default=None
        The one node of each tree that carries its weight; all nodes where None.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
    """
    if drawn is None:
        return index.node_weight(weight)
    node_weight = np.zeros(index.n_nodes)
    node_weight[index.node_offsets[:-1] + drawn] = weight
    return node_weight


class LabelNodes(NamedTuple):
    """Features of the nodes of one nonterminal.

    Attributes
    ----------
    inside, outside : CSR matrix
        Features φ and ψ of nodes.
    rows : ndarray of int64
        Rows of the matrices that are nodes of the nonterminal.
    weight : ndarray of float64, shape (len(rows),)
        Weights of these nodes.
    """

    inside: sparse.csr_matrix
    outside: sparse.csr_matrix
    rows: np.ndarray
    weight: np.ndarray


class _ChunkFeatures(NamedTuple):
    """Features of the nodes of a chunk.

    Nonterminal a has the items ``bounds[a]:bounds[a + 1]`` of `rows`, which are rows
    of the matrices, and of `weight`.
    """

    inside: sparse.csr_matrix
    outside: sparse.csr_matrix
    rows: np.ndarray
    weight: np.ndarray
    bounds: np.ndarray

    @classmethod
    def build(cls, blocks, label, weight, n_labels):
        """Sort the nodes by nonterminal, without those of weight zero."""
        order = np.argsort(label, kind="stable")
        order = order[weight[order] > 0]
        bounds = np.searchsorted(label[order], np.arange(n_labels + 1))
        return cls(*blocks, order, weight[order], bounds)

    def sorted(self):
        """Move the features of each nonterminal together."""
        return self._replace(
            inside=self.inside[self.rows],
            outside=self.outside[self.rows],
            rows=np.arange(len(self.rows)),
        )


class NodeFeatures:
    """Features φ and ψ of the nodes of a corpus, found by nonterminal.

    Parameters
    ----------
    chunks : list
        Features of each chunk, as a :class:`Spool` keeps them.
    totals : tuple
        The attributes below, in their order.
    folder : str or None
        Directory of temporary files, None if features are in memory.

    Attributes
    ----------
    feature_counts : list of two ndarray of float64
        Weight of the nodes with each inside and each outside feature.
    weight : float
        Total weight of the nodes.
    label_count : ndarray of float64, shape (n_nonterminals,)
        Weight of the nodes of each nonterminal.
    n_nodes, n_entries : ndarray, shape (n_nonterminals,)
        Number of nodes, and of their features, of each nonterminal.
    """

    def __init__(self, chunks, totals, folder=None):
        self._chunks = chunks
        self.folder = folder
        *self.feature_counts, self.weight, self.label_count = totals[:4]
        self.n_nodes, self.n_entries = totals[4:]

    @classmethod
    def from_blocks(cls, inside, outside, label, weight, n_labels):
        """Make it from features in memory.

        Parameters
        ----------
        inside, outside : CSR matrix, shapes (n_nodes, d) and (n_nodes, d')
            Features φ and ψ.
        label : ndarray of int32, shape (n_nodes,)
            Nonterminal of each node.
        weight : ndarray of float64, shape (n_nodes,)
            Weight of each node.
        n_labels : int
            Number of nonterminals.

        Returns
        -------
        NodeFeatures
        """
        blocks = inside, outside
        chunk = _ChunkFeatures.build(blocks, label, weight, n_labels)
        return cls([Resident(chunk)], _totals(blocks, label, weight, chunk))

    @classmethod
    def from_corpus(cls, X, columns, rules, spool, *, estimator, n_jobs=None):
        """Collect the features of all chunks of a corpus.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Binary trees with inside and outside features.
        columns : tuple of ndarray or None
            Arguments of :func:`node_weight` with one item per tree.
        rules : RuleTable
            The rules of the corpus.
        spool : Spool
            Where to keep the features.
        estimator : estimator
            Name to use in error messages.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        NodeFeatures
        """
        n_labels = len(rules.nonterminals)

        def collect(treebank, *items):
            if not treebank.blocks.keys() >= set(SIDES):
                check_treebank(treebank, estimator=estimator, blocks=SIDES)
            index = RuleIndex.from_treebank(treebank, table=rules)
            weight = node_weight(index, *items)
            blocks = [treebank.blocks[side] for side in SIDES]
            chunk = _ChunkFeatures.build(blocks, index.label, weight, n_labels)
            totals = _totals(blocks, index.label, weight, chunk)
            return spool.keep(chunk.sorted() if spool.path else chunk), totals

        found = list(over_chunks(collect, X, *columns, n_jobs=n_jobs))
        chunks, totals = zip(*found, strict=True)
        totals = [sum(parts[1:], parts[0]) for parts in zip(*totals, strict=True)]
        return cls(list(chunks), totals, spool.path)

    def parts(self, label):
        """Yield the nodes of a nonterminal, those of each chunk together.

        Parameters
        ----------
        label : int
            The nonterminal.

        Yields
        ------
        nodes : LabelNodes
        """
        for kept in self._chunks:
            chunk = kept.load(mmap_mode="r")
            begin, end = chunk.bounds[label : label + 2]
            rows, weight = chunk.rows[begin:end], chunk.weight[begin:end]
            blocks = chunk.inside, chunk.outside
            if self.folder is not None:
                blocks = [block[begin:end] for block in blocks]
                rows = rows - begin
            yield LabelNodes(*blocks, rows, weight)

    def of_label(self, label):
        """Return all nodes of a nonterminal.

        Parameters
        ----------
        label : int
            The nonterminal.

        Returns
        -------
        LabelNodes
        """
        parts = list(self.parts(label))
        if len(parts) == 1:
            return parts[0]
        inside, outside, _, weight = zip(*parts, strict=True)
        weight = np.concatenate(weight)
        blocks = (sparse.vstack(side, format="csr") for side in (inside, outside))
        return LabelNodes(*blocks, np.arange(len(weight)), weight)


def _totals(blocks, label, weight, chunk):
    """Return the sums that :class:`NodeFeatures` adds up over chunks."""
    n_labels = len(chunk.bounds) - 1
    counts = [
        np.bincount(
            block.indices,
            weights=np.repeat(weight, np.diff(block.indptr)),
            minlength=block.shape[1],
        )
        for block in blocks
    ]
    entries = sum(np.diff(block.indptr) for block in blocks)
    return (
        *counts,
        weight.sum(),
        np.bincount(label, weights=weight, minlength=n_labels),
        np.diff(chunk.bounds),
        np.bincount(label, weights=entries, minlength=n_labels),
    )


def draw_samples(X, weight, *, nodes, split, random_state):
    """Choose the nodes of the decompositions (figure 8) and of the moments (figure 7).

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Trees.
    weight : ndarray of float64, shape (n_trees,), or None
        Weights of the trees.
    nodes : {"all", "one", "one-by-size"}
        All nodes, one node of each tree, or one node with the weight of all nodes of
        its tree.
    split : bool
        Whether the two samples are halves of the trees, chosen at random.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    first, second : tuple
        For either sample the weights of the trees and, unless `nodes` is "all", the
        node that was drawn: arguments of :func:`node_weight`.
    """
    drawn = ()
    if nodes != "all":
        drawn = (_draw_nodes(X, random_state),)
        weight = np.ones(len(X)) if weight is None else weight
    if nodes == "one-by-size":
        weight = weight * np.diff(X.node_offsets)
    if not split:
        return (weight, *drawn), (weight, *drawn)
    if len(X) < 2:
        raise ValueError("split_samples=True needs at least two trees")
    is_first = random_state.permutation(len(X)) < len(X) // 2
    weight = np.ones(len(X)) if weight is None else weight
    first, second = np.where(is_first, weight, 0.0), np.where(is_first, 0.0, weight)
    return (first, *drawn), (second, *drawn)


def _draw_nodes(X, random_state):
    """Draw one node of each tree."""
    if not hasattr(X, "node_offsets"):
        raise ValueError(
            'node_sampling="one" and "one-by-size" draw from all trees together; use '
            "X.load(), or all nodes"
        )
    drawn = random_state.randint(0, np.diff(X.node_offsets))
    if drawn.all():
        raise ValueError(
            "node_sampling drew no root node, so nothing is known of roots; "
            "use more trees, another random_state, or all nodes"
        )
    return drawn
