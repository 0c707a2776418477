from typing import NamedTuple

import numpy as np
from scipy import sparse

from lpcfg_sk._kernels._moments import active_columns, local_rows
from lpcfg_sk._kernels._pivot_rules import rule_mixture
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk.pivot._decomposition import anchor_posteriors
from lpcfg_sk.pivot._simplex import simplex_least_squares

# A pivot is chosen from this many features a state at least, however rare they are.
_CANDIDATES_PER_STATE = 2
# Stands for 0 in logarithms: features may contradict each other.
_TINY = 1e-300


class PivotOptions(NamedTuple):
    """Settings of the decomposition; see :class:`PivotLPCFG`."""

    anchor_min_count: float
    prior: float
    tempering: float
    solver: str
    matching_max_iter: int
    tol: float


class NodeStates(NamedTuple):
    """What the decompositions say of the latent states of nodes.

    Attributes
    ----------
    n_states : ndarray of int64, shape (N,)
        Number of states found for each nonterminal.
    prior : list of ndarray
        p(h | a), one vector a nonterminal.
    inside, outside : ndarray of float64, shape (n_nodes, max(n_states))
        For each node p(inside tree | h, a) and p(outside tree | h, a), up to a
        factor; zeros after the states of its nonterminal.
    anchors : list of ndarray of int64
        Column of the inside features that is the pivot of each state.
    """

    n_states: np.ndarray
    prior: list
    inside: np.ndarray
    outside: np.ndarray
    anchors: list


def node_states(treebank, index, weight, m, inside, outside, options, *, n_jobs=None):
    """Decompose the features of all nonterminals (step 1 of figure 1).

    Parameters
    ----------
    treebank : Treebank
        Trees with the blocks "inside" and "outside".
    index : RuleIndex
        Their rules.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node.
    m : ndarray of int64, shape (N,)
        Number of states wanted for each nonterminal.
    inside, outside : ndarray of float64, shape (n_nodes, max(m))
        Projections of the features of each node by CCA.
    options : PivotOptions
        Settings.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    NodeStates
    """
    blocks = treebank.blocks["inside"], treebank.blocks["outside"]
    order = np.argsort(index.label, kind="stable")
    bounds = np.searchsorted(index.label[order], np.arange(len(m) + 1))

    def chunk(begin, end):
        return [one(a) for a in range(begin, end)]

    def one(a):
        rows, k = order[bounds[a] : bounds[a + 1]], m[a]
        if k == 1:
            ones = np.ones((len(rows), 1))
            return np.ones(1), ones, ones, np.zeros(0, np.int64)
        return label_states(
            [_local(block, rows) for block in blocks],
            [inside[rows, :k], outside[rows, :k]],
            weight[rows],
            k,
            options,
        )

    n_states = np.ones(len(m), dtype=np.int64)
    likelihoods = np.zeros_like(inside), np.zeros_like(outside)
    prior, anchors = [], []
    chunks = cut_by_work(np.diff(bounds) + 1)
    found = (s for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for s in part)
    for a, (share, below, above, pivots) in enumerate(found):
        rows = order[bounds[a] : bounds[a + 1]]
        n_states[a] = len(share)
        prior.append(share)
        anchors.append(pivots)
        likelihoods[0][rows, : len(share)] = below
        likelihoods[1][rows, : len(share)] = above
    width = n_states.max(initial=1)
    return NodeStates(
        n_states,
        prior,
        np.ascontiguousarray(likelihoods[0][:, :width]),
        np.ascontiguousarray(likelihoods[1][:, :width]),
        anchors,
    )


def label_states(features, vectors, weight, m, options):
    """Decompose the features of the nodes of one nonterminal.

    Parameters
    ----------
    features : pair of (ndarray, csr_matrix)
        Inside and outside features: columns that occur, and the nodes over them.
    vectors : pair of ndarray of shape (n_nodes, m)
        Projections of the inside and of the outside features.
    weight : ndarray of shape (n_nodes,)
        Weights of the nodes.
    m : int
        Number of states wanted.
    options : PivotOptions
        Settings.

    Returns
    -------
    prior : ndarray of shape (m',)
        p(h).
    inside, outside : ndarray of shape (n_nodes, m')
        Likelihoods of the inside and outside tree of each node.
    anchors : ndarray of int64, shape (m',)
        Columns of the pivots.

    Notes
    -----
    The mean of the other side's vectors over the nodes that have a feature is the point
    :math:`v_f` of section 5.2, and features of all templates lie in one hull (section
    6.2).  The states found on the two sides are matched as in figure 2, over nodes: the
    joint weights of pairs (h, h') are those that make the features of the nodes most
    likely, starting from the least-squares solution.
    """
    (columns, below), (_, above) = features
    posteriors, anchors, points = _one_side(below, vectors[1], weight, m, options)
    prior, inside = _likelihoods(below, posteriors, weight, options)
    others, _, _ = _one_side(above, vectors[0], weight, m, options)
    other_prior, outside = _likelihoods(above, others, weight, options)
    # E[z | h'] by the outside features, whose mixture the pivots of the inside are
    counts = above.T @ weight
    means = (others * counts[:, np.newaxis]).T @ _means(above, vectors[1], weight)
    means /= (counts @ others)[:, np.newaxis]
    start, _ = simplex_least_squares(points, means, tol=1e-14, max_iter=1000)
    joint = _match(
        inside,
        outside,
        weight,
        prior[:, np.newaxis] * start,
        prior,
        other_prior,
        options,
    )
    share = joint.sum(axis=1)
    kept = share > 0
    t = joint[kept] / share[kept, np.newaxis]
    return share[kept], inside[:, kept], outside @ t.T, columns[anchors[kept]]


def _match(inside, outside, weight, start, prior, other_prior, options):
    """Joint weights of the states of the two sides (step 3 of figure 2)."""
    one = np.ones((len(weight), 1))
    inside, outside = np.ascontiguousarray(inside), np.ascontiguousarray(outside)
    joint, _, gap = rule_mixture(inside, outside, one, weight, start, options.tol, 0)
    if gap <= options.tol:
        return joint
    # zeros are absorbing in EM
    start = 0.5 * start + 0.5 * prior[:, np.newaxis] * other_prior
    joint, _, _ = rule_mixture(
        inside, outside, one, weight, start, options.tol, options.matching_max_iter
    )
    return joint


def _one_side(features, others, weight, m, options):
    """Posteriors q(h | f) of the features of one side, and the pivots."""
    counts = features.T @ weight
    points = _means(features, others, weight)
    least = options.anchor_min_count
    n_candidates = min(_CANDIDATES_PER_STATE * m, len(counts))
    least = min(least, np.partition(counts, -n_candidates)[-n_candidates])
    # real data deserve no more than a hundred steps a feature, exact moments do
    posteriors, anchors = anchor_posteriors(
        points,
        counts,
        m,
        min_count=least,
        solver=options.solver,
        tol=min(options.tol, 1e-8),
        max_iter=100 if options.tol >= 1e-8 else 10000,
    )
    return posteriors, anchors, points[anchors]


def _means(features, vectors, weight):
    """Mean vector of the nodes that have each feature."""
    sums = features.T @ (vectors * weight[:, np.newaxis])
    return sums / (features.T @ weight)[:, np.newaxis]


def _likelihoods(features, posteriors, weight, options):
    """p(features of a node | h), up to a factor, by a tempered product."""
    counts = features.T @ weight
    prior = counts @ posteriors / counts.sum()
    if options.prior > 0:
        posteriors = counts[:, np.newaxis] * posteriors + options.prior * prior
        posteriors /= (counts + options.prior)[:, np.newaxis]
        prior = counts @ posteriors / counts.sum()
    n_active = np.maximum(np.diff(features.indptr), 1)
    ratio = features @ np.log(np.maximum(posteriors / prior, _TINY))
    ratio *= (n_active**-options.tempering)[:, np.newaxis]
    ratio -= ratio.max(axis=1, keepdims=True)
    return prior, np.exp(ratio)


def _local(block, rows):
    """The columns that occur in some rows, and these rows over them, as indicators."""
    columns = active_columns(block.indptr, block.indices, rows, block.shape[1])
    number = np.full(block.shape[1], -1, dtype=np.int32)
    number[columns] = np.arange(len(columns), dtype=np.int32)
    indptr, indices, data = local_rows(
        block.indptr, block.indices, block.data, rows, number
    )
    local = sparse.csr_matrix(
        (np.ones_like(data), indices, indptr), shape=(len(rows), len(columns))
    )
    return columns, local
