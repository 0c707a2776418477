"""Spectral statistics of shards: features by nonterminal in files, moments added."""

import os
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy import sparse

from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk.lpcfg._rules import weighted_trees
from lpcfg_sk.spectral._decomposition import (
    decompose_label,
    feature_scale,
    project,
)
from lpcfg_sk.spectral._moments import accumulate_moments, add_moments
from lpcfg_sk.spectral._streamed import decompose_large
from lpcfg_sk.treebank import check_treebank
from lpcfg_sk.treebank._sharded import map_shards

__all__ = ["ShardedFeatures"]

_SIDES = ("inside", "outside")
#: Features of a nonterminal that are decomposed in memory; more are read from files
#: once for each product with them.
_MOST_ENTRIES = 2**22


class _Stored(NamedTuple):
    """Features of the nodes of a shard, sorted by nonterminal, in files."""

    folder: str
    shard: int

    def path(self, name):
        """Where an array lies."""
        return os.path.join(self.folder, f"{self.shard}-{name}.npy")

    def save(self, index, blocks, weight):
        """Write the features, and the weights of the nodes."""
        order = np.argsort(index.label, kind="stable")
        order = order[weight[order] > 0]
        n_labels = len(index.nonterminals)
        bounds = np.searchsorted(index.label[order], np.arange(n_labels + 1))
        np.save(self.path("bounds"), bounds)
        np.save(self.path("weight"), weight[order])
        for side, block in blocks.items():
            block = block[order]
            for part in ("data", "indices"):
                np.save(self.path(f"{side}-{part}"), getattr(block, part))
            np.save(self.path(f"{side}-indptr"), block.indptr.astype(np.int64))

    def load(self, a, n_features):
        """Read the features and weights of the nodes of one nonterminal."""
        begin, end = np.load(self.path("bounds"), mmap_mode="r")[a : a + 2]
        weight = np.array(np.load(self.path("weight"), mmap_mode="r")[begin:end])
        blocks = []
        for side, n_columns in zip(_SIDES, n_features, strict=True):
            indptr = np.load(self.path(f"{side}-indptr"), mmap_mode="r")
            indptr = np.array(indptr[begin : end + 1])
            entries = slice(indptr[0], indptr[-1])
            data, indices = (
                np.array(np.load(self.path(f"{side}-{part}"), mmap_mode="r")[entries])
                for part in ("data", "indices")
            )
            blocks.append(
                sparse.csr_matrix(
                    (data, indices, indptr - indptr[0]),
                    shape=(end - begin, n_columns),
                )
            )
        return (*blocks, weight)


class ShardedFeatures:
    """The features of all nodes of a sharded treebank.

    Parameters
    ----------
    X : ShardedTreebank
        Binary trees with inside and outside features.
    weights : list
        Weights of the trees of each shard.
    inventory : RuleInventory
        The rules of all shards.
    estimator : SpectralLPCFG
        Who learns.
    folder : str
        Directory for temporary files.

    Attributes
    ----------
    n_features : ndarray of int64, shape (2,)
        Number of inside and of outside features.
    """

    def __init__(self, X, weights, inventory, estimator, folder):
        self.X = X
        self.weights = weights
        self.inventory = inventory
        self.estimator = estimator
        self.n_jobs = estimator.n_jobs
        self._parts = [_Stored(folder, shard) for shard in range(X.n_shards)]
        found = [
            part
            for part in map_shards(
                _store_shard(inventory, estimator),
                X,
                weights,
                self._parts,
                n_jobs=self.n_jobs,
            )
        ]
        self._parts = [p for p, f in zip(self._parts, found, strict=True) if f]
        found = [f for f in found if f]
        self.n_features = np.array([len(count) for count in found[0][0]])
        self._counts = [sum(f[0][side] for f in found) for side in range(2)]
        self._n_nodes = sum(f[1] for f in found)
        self._n_entries = sum(f[2] for f in found)

    def decompose(self, n_vectors, *, scaling, solver, seed):
        """Singular value decomposition of every Ω^a.

        Parameters
        ----------
        n_vectors : ndarray of int64, shape (n_nonterminals,)
            Number of singular vectors wanted for each nonterminal.
        scaling, solver, seed
            See :func:`decompose`.

        Returns
        -------
        projections : list of Projection
        """
        total = self.inventory.label_count.sum()
        scales = [feature_scale(count, total, scaling) for count in self._counts]
        parts, n_features = self._parts, self.n_features
        n_entries = self._n_entries

        def chunk(begin, end):
            return [one(a) for a in range(begin, end)]

        def one(a):
            if n_entries[a] > _MOST_ENTRIES and solver == "arpack":
                return decompose_large(parts, a, n_features, n_vectors[a], scales)
            loaded = [part.load(a, n_features) for part in parts]
            inside, outside = (
                sparse.vstack([part[side] for part in loaded], format="csr")
                for side in range(2)
            )
            weight = np.concatenate([part[2] for part in loaded])
            rows = np.arange(len(weight))
            return decompose_label(
                inside, outside, rows, weight, n_vectors[a], scales, solver, seed
            )

        chunks = cut_by_work(self._n_nodes + 1)
        found = map_chunks(chunk, chunks, n_jobs=self.n_jobs)
        return [projection for part in found for projection in part]

    def moments(self, projections, m):
        """Add up the moments of all shards.

        Parameters
        ----------
        projections : list of Projection
            One for each nonterminal.
        m : ndarray of int64, shape (n_nonterminals,)
            Number of states of each nonterminal.

        Returns
        -------
        moments : SpectralMoments
        """
        inventory, estimator = self.inventory, self.estimator

        def shard_moments(treebank, weight):
            if weight is not None and not weight.any():
                return None
            treebank, weight = weighted_trees(treebank, weight, estimator)
            index = inventory.index(treebank)
            vectors = [
                project(treebank.blocks[side], index.label, projections, side, m)
                for side in _SIDES
            ]
            return accumulate_moments(index, *vectors, index.node_weight(weight), m)

        parts = map_shards(shard_moments, self.X, self.weights, n_jobs=self.n_jobs)
        return reduce(add_moments, (part for part in parts if part is not None))


def _store_shard(inventory, estimator):
    """Return a function that writes the features of a shard, and counts them."""

    def store(treebank, weight, stored):
        if weight is not None and not weight.any():
            return None
        treebank, weight = weighted_trees(treebank, weight, estimator)
        check_treebank(treebank, estimator=estimator, blocks=_SIDES)
        index = inventory.index(treebank)
        weight = index.node_weight(weight)
        blocks = {side: treebank.blocks[side] for side in _SIDES}
        stored.save(index, blocks, weight)
        n_labels = len(inventory.nonterminals)
        entries = sum(np.diff(block.indptr) for block in blocks.values())
        return (
            [_feature_counts(block, weight) for block in blocks.values()],
            np.bincount(index.label, minlength=n_labels),
            np.bincount(index.label, weights=entries, minlength=n_labels),
        )

    return store


def _feature_counts(block, weight):
    entry_weight = np.repeat(weight, np.diff(block.indptr))
    return np.bincount(block.indices, weights=entry_weight, minlength=block.shape[1])
