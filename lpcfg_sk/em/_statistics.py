"""The E-step: sums over chunks of trees of expected counts."""

from collections import deque
from functools import partial
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._em import expected_counts, schedule
from lpcfg_sk._parallel import CHUNK_WORK, Resident, cut_by_work, map_chunks
from lpcfg_sk.lpcfg._maximization import Estimates

__all__ = ["Chunk", "ExpectedCounts", "chunk_work", "plan"]

#: A chunk has at least this many nodes for each rule, and at least one for so many
#: parameters: its counts are as large as the parameters, and adding them up must
#: stay cheap beside computing them.
_NODES_PER_RULE = 32
_PARAMETERS_PER_NODE = 300
#: Most counts to keep for the next chunk; other processes send new ones each time.
_SPARES = 8


class Chunk(NamedTuple):
    """Trees of one chunk, their nodes numbered in the order of computation."""

    tree: np.ndarray
    weight: np.ndarray
    n_states: np.ndarray
    left: np.ndarray
    right: np.ndarray
    bounds: np.ndarray
    batch_rule: np.ndarray
    triples: np.ndarray
    rule_bounds: np.ndarray
    leaf_entry: np.ndarray
    root_node: np.ndarray
    top: np.ndarray


class ExpectedCounts:
    """Expected counts of the rules in a treebank under given parameters.

    Parameters
    ----------
    index : RuleIndex
        The trees.
    layout : Layout
        Where parameters and counts lie.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    """

    def __init__(self, index, layout, weight):
        rows = cut_by_work(
            np.diff(index.node_offsets), chunk_work(index.n_rules, layout)
        )
        chunks = [(Resident(plan(index, layout, weight, *part)),) for part in rows]
        self._adopt(layout, chunks)

    def _adopt(self, layout, chunks):
        self.layout = layout
        self.chunks = chunks
        # Counts can be larger than any cache; touching fresh memory for them in
        # each iteration would take longer than computing them.
        self.spare = deque(maxlen=_SPARES)

    @classmethod
    def of_stored(cls, layout, chunks):
        """Count trees that are elsewhere.

        Parameters
        ----------
        layout : Layout
            Where parameters and counts lie.
        chunks : list
            Objects whose ``load()`` returns a :class:`Chunk`.

        Returns
        -------
        ExpectedCounts
        """
        made = cls.__new__(cls)
        made._adopt(layout, [(chunk,) for chunk in chunks])
        return made

    def __getstate__(self):
        # A worker is given its chunk with the call.
        return {"layout": self.layout, "chunks": [], "spare": deque(maxlen=_SPARES)}

    def __call__(self, parameters, *, n_jobs=None):
        """Add up the expected counts of all trees.

        Parameters
        ----------
        parameters : Estimates
            The current parameters.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        counts : Estimates
            Expected counts; those of binary rules are still to be multiplied by
            the parameters.
        log_likelihood : float
            Weighted sum of the log probabilities of the trees.
        lost : float
            Weight of the trees of probability zero, left out of both.
        """
        total = None
        count = partial(self._count, parameters)
        for counts, log_likelihood, lost in map_chunks(
            count, self.chunks, n_jobs=n_jobs
        ):
            if total is None:
                total = [counts, log_likelihood, lost]
                continue
            for sums, part in zip(total[0], counts, strict=True):
                sums += part
            total[1] += log_likelihood
            total[2] += lost
            self.recycle(counts)
        return tuple(total)

    def recycle(self, parameters):
        """Take back arrays that are no longer needed."""
        self.spare.append(parameters)

    def _count(self, parameters, chunk):
        try:
            counts = self.spare.pop()
        except IndexError:
            counts = Estimates(*(np.empty_like(p) for p in parameters))
        layout = self.layout
        if not isinstance(chunk, Chunk):
            chunk = chunk.load()
        log_likelihood, lost = expected_counts(
            *chunk,
            layout.shapes,
            layout.rule_offset,
            parameters.binary,
            layout.lex_offset,
            parameters.lexical,
            layout.root_offset,
            parameters.root,
            *counts,
        )
        return counts, log_likelihood, lost


def chunk_work(n_rules, layout):
    """Return the number of nodes of a chunk."""
    return max(
        CHUNK_WORK,
        _NODES_PER_RULE * n_rules,
        layout.rule_offset[-1] // _PARAMETERS_PER_NODE,
    )


def plan(index, layout, weight, begin, end):
    """Number the nodes of some trees in the order of computation."""
    node_offsets = index.node_offsets[begin : end + 1]
    nodes = slice(node_offsets[0], node_offsets[-1])
    node_offsets = node_offsets - node_offsets[0]
    size, rule = index.size[nodes], index.rule[nodes]
    order, bounds = schedule(
        node_offsets, size, index.parent[nodes], rule, index.n_rules
    )
    left = order + 1
    right = left + size[left]
    children = np.stack([left, right], axis=1).ravel()
    roots = node_offsets[:-1]
    leaves = np.concatenate([children[size[children] == 1], roots[size[roots] == 1]])
    order = np.concatenate([order, leaves])
    number = np.empty(len(size), dtype=np.int64)
    number[order] = np.arange(len(order))
    left, right = number[left], number[right]
    rule = rule[order[: len(left)]]
    by_rule = np.argsort(rule, kind="stable")
    tree = np.repeat(np.arange(end - begin), np.diff(node_offsets))
    return Chunk(
        tree=tree[order],
        weight=weight[begin:end],
        n_states=layout.n_states[index.label[nodes]][order],
        left=left,
        right=right,
        bounds=bounds,
        batch_rule=rule[bounds[:-1]],
        triples=np.stack([by_rule, left[by_rule], right[by_rule]]),
        rule_bounds=np.searchsorted(rule[by_rule], np.arange(index.n_rules + 1)),
        leaf_entry=index.entry[nodes][leaves],
        root_node=number[roots],
        top=index.top[begin:end],
    )
