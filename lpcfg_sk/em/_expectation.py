"""The E-step: expected counts of rules, summed over chunks of trees."""

from collections import deque
from functools import partial

import numpy as np

from lpcfg_sk._kernels._em import expected_counts
from lpcfg_sk._kernels._em_batches import Batches, schedule
from lpcfg_sk._parallel import CHUNK_WORK, cut_by_work, map_chunks
from lpcfg_sk.lpcfg import Estimates

__all__ = ["ExpectedCounts"]

#: A chunk has at least this many nodes for each rule, and at least one for so many
#: parameters: its counts are as large as the parameters, and adding them up must
#: stay cheap beside computing them.
_NODES_PER_RULE = 32
_PARAMETERS_PER_NODE = 300
#: Most counts to keep for the next chunk; other processes send new ones each time.
_SPARES = 8


class ExpectedCounts:
    """Expected counts of the rules in a treebank under given parameters.

    Parameters
    ----------
    trees : TrainingTrees
        The trees.
    layout : Layout
        Where parameters and counts lie.
    n_jobs : int, default=None
        As in joblib.
    """

    def __init__(self, trees, layout, *, n_jobs=None):
        self.layout = layout
        self.n_jobs = n_jobs
        spool = trees.spool
        n_nodes = max(
            CHUNK_WORK,
            _NODES_PER_RULE * trees.rules.n_rules,
            layout.rule_offset[-1] // _PARAMETERS_PER_NODE,
        )

        def plan(index, weight, _):
            rows = cut_by_work(np.diff(index.node_offsets), n_nodes)
            return [spool.keep(_batches(index, layout, weight, *r)) for r in rows]

        self.chunks = [(kept,) for part in trees.map(plan) for kept in part]
        # Counts can be larger than any cache; touching fresh memory for them in
        # each iteration would take longer than computing them.
        self.spare = deque(maxlen=_SPARES)

    def __getstate__(self):
        # A worker is given its chunk with the call.
        spare = deque(maxlen=_SPARES)
        return {"layout": self.layout, "n_jobs": None, "chunks": [], "spare": spare}

    def __call__(self, parameters):
        """Add up the expected counts of all trees.

        Parameters
        ----------
        parameters : Estimates
            The current parameters.

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
            count, self.chunks, n_jobs=self.n_jobs
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

    def _count(self, parameters, batches):
        try:
            counts = self.spare.pop()
        except IndexError:
            counts = Estimates(*(np.empty_like(p) for p in parameters))
        log_likelihood, lost = expected_counts(batches, self.layout, parameters, counts)
        return counts, log_likelihood, lost


def _batches(index, layout, weight, begin, end):
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
    position = np.empty(len(size), dtype=np.int64)
    position[order] = np.arange(len(order))
    left, right = position[left], position[right]
    rule = rule[order[: len(left)]]
    by_rule = np.argsort(rule, kind="stable")
    tree = np.repeat(np.arange(end - begin), np.diff(node_offsets))
    return Batches(
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
        root_node=position[roots],
        top=index.top[begin:end],
    )
