"""Step 2 of the pivot method: counts of rules with latent states (figure 1)."""

import numpy as np

from lpcfg_sk._kernels._pivot import rule_mixture
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import ragged_indices
from lpcfg_sk.lpcfg import Estimates

__all__ = ["latent_rule_counts"]

# Multiplications of one iteration in a chunk of rules.
_CHUNK_PRODUCTS = 2e7
# Leaves whose posteriors are held at once.
_BLOCK_LEAVES = 2**20


def latent_rule_counts(index, layout, states, weight, *, tol, max_iter, n_jobs=None):
    """Counts of all rules with latent states (step 2 of figure 1, and section 6.1).

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    layout : Layout
        Where counts lie.
    states : NodeStates
        What is known about the states of each node.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    tol : float
        A rule's iterations end when more of them can add no more to its mean log
        likelihood.
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

    def chunk(begin, end):
        return [one(r) for r in range(begin, end)]

    def one(r):
        parent = nodes[bounds[r] : bounds[r + 1]]
        left = parent + 1
        right = left + index.size[left]
        m1, m2, m3 = layout.shapes[r]
        a, b, c = index.rule_parent[r], index.rule_left[r], index.rule_right[r]
        start = np.outer(
            states.prior[a], np.outer(states.prior[b], states.prior[c]).ravel()
        )
        t, n_iter, gap = rule_mixture(
            np.ascontiguousarray(states.outside[parent, :m1]),
            np.ascontiguousarray(states.inside[left, :m2]),
            np.ascontiguousarray(states.inside[right, :m3]),
            weight[parent],
            start,
            tol,
            max_iter,
        )
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
    leaves = np.flatnonzero(index.entry >= 0)
    for begin in range(0, len(leaves), _BLOCK_LEAVES):
        some = leaves[begin : begin + _BLOCK_LEAVES]
        posteriors = _posteriors(index, states, some, weight)
        _add_states(posteriors, layout.lex_offset, index.entry[some], counts.lexical)
    roots = index.node_offsets[:-1].astype(np.int64)
    posteriors = _posteriors(index, states, roots, weight)
    _add_states(posteriors, layout.root_offset, index.top, counts.root)
    n_iter = max((n_iter for _, n_iter, _ in results), default=0)
    return counts, n_iter, all(converged for _, _, converged in results)


def _posteriors(index, states, nodes, weight):
    """Return p(h | inside tree, outside tree) of nodes, times their weights."""
    label = index.label[nodes]
    prior = np.zeros((len(states.prior), states.inside.shape[1]))
    for a, share in enumerate(states.prior):
        prior[a, : len(share)] = share
    joint = prior[label] * states.inside[nodes] * states.outside[nodes]
    total = joint.sum(axis=1, keepdims=True)
    # Features that contradict each other tell nothing.
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
