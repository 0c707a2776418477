"""EM on more trees than memory holds: chunks are planned once and kept in files."""

import os
from typing import NamedTuple

import numpy as np

from lpcfg_sk._parallel import cut_by_work
from lpcfg_sk._ragged import offsets
from lpcfg_sk.em._heldout import FEWEST, count_copies, merge_equal_trees
from lpcfg_sk.em._statistics import Chunk, ExpectedCounts, chunk_work, plan
from lpcfg_sk.em._task import Task
from lpcfg_sk.lpcfg._rule_counts import RuleInventory
from lpcfg_sk.lpcfg._rules import weighted_trees
from lpcfg_sk.treebank._sharded import map_shards

__all__ = ["ShardedTask"]

#: Most trees to hold out: more do not choose better, and they are kept in memory.
_MOST_HELD_OUT = 20_000


class StoredChunk(NamedTuple):
    """A chunk in a file, and which of the weights of its trees are meant."""

    path: str
    weight: str

    def load(self):
        """Read the chunk."""
        with np.load(self.path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in Chunk._fields if name != "weight"}
            return Chunk(**arrays, weight=stored[self.weight])


class ShardedTask(NamedTuple):
    """Training data of one fit in shards, and the runs of EM on them.

    It does for a :class:`ShardedTreebank` what :class:`Task` does for a treebank.

    Attributes
    ----------
    estimator : EMLPCFG
        Who trains.
    treebank : ShardedTreebank
        The trees.
    weights : list
        Weights of the trees of each shard.
    index : RuleInventory
        Their rules and counts, of the training part where trees are held out.
    coarse : LPCFG
        Their plain PCFG.
    folder : str
        Directory for temporary files.
    part : str
        Which weights of the stored trees are meant, "weight" or "training".
    stored : dict
        Paths of the chunks, by the numbers of states.
    """

    estimator: object
    treebank: object
    weights: list
    index: RuleInventory
    coarse: object
    folder: str
    part: str
    stored: dict

    n_states = Task.n_states
    run = Task.run
    from_model = Task.from_model

    @property
    def binarized(self):
        """Whether a TreeBinarizer made the trees."""
        return self.index.binarized

    @property
    def weight(self):
        """The weight of all trees, as of one."""
        return np.array([self.index.weight])

    def fit_learner(self, learner):
        """Fit another learner on the same trees."""
        weights = None
        if self.weights[0] is not None:
            weights = np.concatenate(self.weights)
        return learner.fit(self.treebank, sample_weight=weights)

    def counts(self, layout):
        """Return what computes expected counts under parameters in a layout."""
        key = layout.n_states.tobytes()
        if key not in self.stored:
            self.stored[key] = self._store(layout)
        chunks = [StoredChunk(path, self.part) for path in self.stored[key]]
        return ExpectedCounts.of_stored(layout, chunks)

    def hold_out(self, fraction, rng):
        """Split the trees of each shard; see :meth:`Task.hold_out`."""
        fraction = min(fraction, _MOST_HELD_OUT / max(self.index.n_trees, 1))
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.treebank.n_shards)
        estimator, inventory = self.estimator, self.index

        def split(treebank, weight, seed, number):
            index, weight = _distinct(treebank, weight, estimator, inventory)
            rng = np.random.RandomState(seed)
            copies, held = count_copies(weight, fraction, rng)
            path = os.path.join(self.folder, f"held-{number}.npy")
            np.save(path, held)
            kept = RuleInventory.of_index(index, weight - held, binarized=True)
            rows = np.flatnonzero(held > 0)
            return copies.sum(), kept, index.take(rows), held[rows]

        columns = (self.weights, seeds.tolist(), range(self.treebank.n_shards))
        trees = self.treebank.without_blocks()
        parts = map_shards(split, trees, *columns, n_jobs=estimator.n_jobs)
        copies, kept, indices, held = zip(*parts, strict=True)
        # All parts have the ids of the whole, so counts add up as they are.
        names = ("label_count", "rule_count", "lexical_count", "root_count", "weight")
        kept = inventory._replace(
            **{name: sum(getattr(part, name) for part in kept) for name in names}
        )
        if sum(copies) < FEWEST or kept.weight <= 0:
            return None
        self.stored.clear()
        training = self._replace(index=kept, part="training")
        validation = _Validation(_join(indices), np.concatenate(held))
        return training, validation

    def _store(self, layout):
        """Plan the chunks of all shards, each in a file of its own."""
        folder, number = self.folder, len(self.stored)
        estimator, inventory = self.estimator, self.index
        target = chunk_work(inventory.n_rules, layout)

        def store(treebank, weight, shard):
            index, weight = _distinct(treebank, weight, estimator, inventory)
            held = os.path.join(folder, f"held-{shard}.npy")
            training = weight - np.load(held) if os.path.exists(held) else weight
            paths = []
            for begin, end in cut_by_work(np.diff(index.node_offsets), target):
                chunk = plan(index, layout, weight, begin, end)
                path = os.path.join(folder, f"{number}-{shard}-{begin}.npz")
                np.savez(path, training=training[begin:end], **chunk._asdict())
                paths.append(path)
            return paths

        columns = (self.weights, range(self.treebank.n_shards))
        trees = self.treebank.without_blocks()
        parts = map_shards(store, trees, *columns, n_jobs=estimator.n_jobs)
        return [path for part in parts for path in part]


class _Validation(NamedTuple):
    """Held-out trees and their weights."""

    index: object
    weight: np.ndarray


def _distinct(treebank, weight, estimator, inventory):
    """The different trees of a shard, in the ids of all, and their weights."""
    if weight is not None and not weight.any():
        return inventory.index(treebank).take([]), np.zeros(0)
    treebank, weight = weighted_trees(treebank, weight, estimator)
    index = inventory.index(treebank)
    rows, weight = merge_equal_trees(index, weight)
    return index.take(rows), weight


def _join(indices):
    """Trees of several indices with the same rules."""
    columns = ("label", "size", "parent", "word", "rule", "entry", "top")
    joined = {
        name: np.concatenate([getattr(index, name) for index in indices])
        for name in columns
    }
    counts = np.concatenate([np.diff(index.node_offsets) for index in indices])
    return indices[0]._replace(**joined, node_offsets=offsets(counts))
