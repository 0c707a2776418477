import numpy as np

from lpcfg_sk._kernels._pivot_rules import rule_mixture
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import ragged_indices
from lpcfg_sk.lpcfg._maximization import Estimates

# Multiplications of one iteration in a chunk of rules.
_CHUNK_PRODUCTS = 2e7


def expected_counts(index, layout, states, weight, *, tol, max_iter, n_jobs=None):
    """Counts of all rules with latent states (step 2 of figure 1, and section 6.1).

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    layout : Layout
        Where counts lie.
    states : NodeStates
        What is known of the states of each node.
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
    binary, n_iter, converged = _binary_counts(
        index, layout, states, weight, tol, max_iter, n_jobs
    )
    lexical = np.zeros(layout.lex_offset[-1])
    root = np.zeros(layout.root_offset[-1])
    leaves = np.flatnonzero(index.entry >= 0)
    tops = index.node_offsets[:-1].astype(np.int64)
    for offset, where, nodes, total in (
        (layout.lex_offset, index.entry[leaves], leaves, lexical),
        (layout.root_offset, index.top, tops, root),
    ):
        posteriors = _posteriors(index, states, nodes) * weight[nodes, np.newaxis]
        length = states.n_states[index.label[nodes]]
        state = ragged_indices(np.zeros(len(nodes), np.int64), length)
        row = np.repeat(np.arange(len(nodes)), length)
        place = offset[where][row] + state
        total += np.bincount(place, posteriors[row, state], minlength=len(total))
    return Estimates(binary, lexical, root), n_iter, converged


def _posteriors(index, states, nodes):
    """p(h | inside tree, outside tree) of nodes."""
    width = states.inside.shape[1]
    prior = np.zeros((len(states.prior), width))
    for a, share in enumerate(states.prior):
        prior[a, : len(share)] = share
    joint = prior[index.label[nodes]] * states.inside[nodes] * states.outside[nodes]
    total = joint.sum(axis=1, keepdims=True)
    # features that contradict each other say nothing
    joint = np.where(total > 0, joint, prior[index.label[nodes]])
    return joint / joint.sum(axis=1, keepdims=True)


def _binary_counts(index, layout, states, weight, tol, max_iter, n_jobs):
    inner = np.flatnonzero(index.rule >= 0)
    nodes = inner[np.argsort(index.rule[inner], kind="stable")]
    bounds = np.searchsorted(index.rule[nodes], np.arange(index.n_rules + 1))
    left = nodes + 1
    right = left + index.size[left]

    def chunk(begin, end):
        return [one(r) for r in range(begin, end)]

    def one(r):
        at = slice(bounds[r], bounds[r + 1])
        m1, m2, m3 = layout.shapes[r]
        a, b, c = index.rule_parent[r], index.rule_left[r], index.rule_right[r]
        start = np.outer(
            states.prior[a], np.outer(states.prior[b], states.prior[c]).ravel()
        )
        t, n_iter, gap = rule_mixture(
            np.ascontiguousarray(states.outside[nodes[at], :m1]),
            np.ascontiguousarray(states.inside[left[at], :m2]),
            np.ascontiguousarray(states.inside[right[at], :m3]),
            weight[nodes[at]],
            start,
            tol,
            max_iter,
        )
        return t.ravel() * weight[nodes[at]].sum(), n_iter, gap

    work = layout.shapes.prod(axis=1) * (np.diff(bounds) + 1)
    chunks = cut_by_work(work, target=_CHUNK_PRODUCTS)
    found = [rule for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for rule in part]
    binary = np.concatenate([counts for counts, _, _ in found] or [np.zeros(0)])
    return (
        binary,
        max((n_iter for _, n_iter, _ in found), default=0),
        all(gap <= tol for _, _, gap in found),
    )
