"""Steps 1 and 2 of the pivot method: latent states of nodes, and counts of rules."""

import os
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._pivot import rule_mixture
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import ragged_indices
from lpcfg_sk.lpcfg import Estimates
from lpcfg_sk.pivot._decomposition import anchor_posteriors
from lpcfg_sk.pivot._simplex import simplex_least_squares
from lpcfg_sk.spectral import project_label

# Multiplications of one iteration in a chunk of rules.
_CHUNK_PRODUCTS = 2e7
# Leaves whose posteriors are held at once.
_BLOCK_LEAVES = 2**20
# A pivot is chosen from at least this many features per state, however rare they are.
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
    """What the decompositions tell about the latent states of nodes.

    Attributes
    ----------
    n_states : ndarray of int64, shape (N,)
        Number of states found for each nonterminal.
    prior : list of ndarray
        p(h | a), one vector per nonterminal.
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


def node_states(nodes, label, projections, m, options, *, n_jobs=None):
    """Decompose the features of all nonterminals (step 1 of figure 1).

    Parameters
    ----------
    nodes : NodeFeatures
        Features of the nodes.
    label : ndarray of int32, shape (n_nodes,)
        Nonterminal of each node.
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
        Likelihoods are in files where features are.
    """

    def chunk(begin, end):
        return [one(a) for a in range(begin, end)]

    def one(a):
        if m[a] == 1:
            ones = np.ones((nodes.n_nodes[a], 1))
            return np.ones(1), ones, ones, np.zeros(0, np.int64)
        label_nodes = nodes.of_label(a)
        features, vectors = project_label(label_nodes, projections[a], m[a])
        for block in features:
            block.data[:] = 1.0
        *states, anchors = label_states(
            features, vectors, label_nodes.weight, m[a], options
        )
        return *states, projections[a].inside[anchors]

    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(len(m) + 1))
    inside, outside = (
        _zeros((len(label), m.max()), nodes.folder, name)
        for name in ("inside", "outside")
    )
    prior, anchors = [], []
    chunks = cut_by_work(nodes.n_nodes + 1)
    results = (s for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for s in part)
    for a, (share, below, above, pivots) in enumerate(results):
        rows = order[bounds[a] : bounds[a + 1]]
        prior.append(share)
        anchors.append(pivots)
        inside[rows, : len(share)] = below
        outside[rows, : len(share)] = above
    n_states = np.array([len(share) for share in prior], dtype=np.int64)
    width = n_states.max(initial=1)
    return NodeStates(n_states, prior, inside[:, :width], outside[:, :width], anchors)


def _zeros(shape, folder, name):
    """Return an array of zeros, in a file if there is a folder."""
    if folder is None:
        return np.zeros(shape)
    path = os.path.join(folder, f"{name}-states.npy")
    return np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=shape)


def label_states(features, vectors, weight, m, options):
    """Decompose the features of the nodes of one nonterminal.

    Parameters
    ----------
    features : pair of CSR matrix
        Indicators of the inside and outside features of each node.
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
        Columns of the pivots among the inside features.

    Notes
    -----
    The mean of the other side's vectors over the nodes that have a feature is the point
    :math:`v_f` of section 5.2, and features of all templates lie in one hull (section
    6.2).  The states found on the two sides are matched as in figure 2, over nodes: the
    joint weights of pairs (h, h') are those that make the features of the nodes most
    likely, starting from the least-squares solution.
    """
    below, above = features
    posteriors, anchors, points = _one_side(below, vectors[1], weight, m, options)
    prior, inside = _likelihoods(below, posteriors, weight, options)
    others, _, _ = _one_side(above, vectors[0], weight, m, options)
    other_prior, outside = _likelihoods(above, others, weight, options)
    # E[z | h'] by the outside features, whose mixture the pivots of the inside are
    counts = above.T @ weight
    means = (others * counts[:, np.newaxis]).T @ _means(above, vectors[1], weight)
    means /= (counts @ others)[:, np.newaxis]
    start, _ = simplex_least_squares(points, means, tol=1e-14, max_iter=1000)
    start *= prior[:, np.newaxis]
    independent = prior[:, np.newaxis] * other_prior
    joint = _match(inside, outside, weight, start, independent, options)
    share = joint.sum(axis=1)
    kept = share > 0
    t = joint[kept] / share[kept, np.newaxis]
    return share[kept], inside[:, kept], outside @ t.T, anchors[kept]


def _match(inside, outside, weight, start, independent, options):
    """Joint weights of the states of the two sides (step 3 of figure 2)."""
    one = np.ones((len(weight), 1))
    inside, outside = np.ascontiguousarray(inside), np.ascontiguousarray(outside)
    joint, _, gap = rule_mixture(inside, outside, one, weight, start, options.tol, 0)
    if gap <= options.tol:
        return joint
    # zeros are absorbing in EM
    start = 0.5 * start + 0.5 * independent
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
    # real data deserve no more than a hundred steps per feature, exact moments do
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
