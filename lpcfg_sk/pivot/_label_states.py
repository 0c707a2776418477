"""Step 1 of the pivot method for one nonterminal: its latent states from features."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lpcfg_sk._kernels._aggregate import SparseRows, posterior_rows
from lpcfg_sk._kernels._pivot import rule_mixture
from lpcfg_sk.pivot._decomposition import anchor_posteriors
from lpcfg_sk.pivot._simplex import simplex_least_squares

# A pivot is chosen from at least this many features per state, however rare they are.
_CANDIDATES_PER_STATE = 2
# Stands for 0 in logarithms: features may contradict each other.
_TINY = 1e-300
# A feature with at least this share of its weight in one state is a pivot of the state.
_PURE = 1.0 - 1e-9
# Least expected number of features of a state, relative to that of the largest.
_FEWEST = 1e-6
# Stopping rule of the least squares that match the states of the two sides.
_MATCHING = {"tol": 1e-14, "max_iter": 1000}


class PivotOptions(NamedTuple):
    """Settings of the decomposition; see :class:`PivotLPCFG`."""

    objective: str
    anchor_min_count: float
    prior: float
    tempering: float
    solver: str
    solver_tol: float
    solver_max_iter: int
    matching_max_iter: int
    tol: float

    def least_squares(self):
        """Return the keyword arguments of :func:`simplex_least_squares`."""
        return {
            "solver": self.solver,
            "tol": self.solver_tol,
            "max_iter": self.solver_max_iter,
        }


class LabelNodeData(NamedTuple):
    """Data about the nodes of one nonterminal.

    Attributes
    ----------
    features : pair of CSR matrix
        Indicators of the inside and outside features of each node.
    vectors : pair of ndarray of shape (n_nodes, m)
        Projections of the inside and of the outside features.
    weight : ndarray of shape (n_nodes,)
        Weights of the nodes.
    entry : ndarray of int, shape (n_nodes,)
        Entry of the lexicon at each node, -1 at inner nodes.
    is_root : ndarray of bool, shape (n_nodes,)
        Which nodes are roots of trees.
    """

    features: tuple
    vectors: tuple
    weight: np.ndarray
    entry: np.ndarray
    is_root: np.ndarray


class Side(NamedTuple):
    """The decomposition of section 5.2 for the features of one side.

    Attributes
    ----------
    posteriors : ndarray of shape (n_features, m)
        q(h | f), drawn towards the prior.
    exact_posteriors : ndarray of shape (n_features, m)
        q(h | f) as the least squares give them.
    counts : ndarray of shape (n_features,)
        Weight of the nodes with each feature.
    anchors : ndarray of int64, shape (m,)
        The pivot of each state.
    vertices : ndarray of shape (m, l)
        Points of the pivots.
    n_features : ndarray of shape (m,)
        Expected number of features of a tree in each state: the number of templates,
        unless some of them are silent for some trees.
    """

    posteriors: np.ndarray
    exact_posteriors: np.ndarray
    counts: np.ndarray
    anchors: np.ndarray
    vertices: np.ndarray
    n_features: np.ndarray

    def share(self):
        """Return the share of each state among the features of all nodes."""
        return self.counts @ self.posteriors / self.counts.sum()

    def ratios(self):
        """Return p(f | h) / p(f), with the features of each state normalised to 1."""
        return self.posteriors / self.share()

    def conditional(self, posteriors):
        """Return p(f | h), which sums to 1 for each template, as one row per state."""
        joint = (self.counts[:, np.newaxis] * posteriors).T
        return joint * (self.n_features / joint.sum(axis=1))[:, np.newaxis]

    def separability(self):
        """Return α of definition 2: the least p(f | h) of the best pivots of states."""
        exact = self.exact_posteriors
        pure = np.where(exact.T >= _PURE, self.conditional(exact), 0.0)
        return float(pure.max(axis=1).min())


class LabelStates(NamedTuple):
    """The latent states of one nonterminal, as the decomposition finds them.

    Attributes
    ----------
    prior : ndarray of shape (m,)
        p(h).
    anchors, outside_anchors : ndarray of int64, shape (m,)
        Pivots of each state among the features of the two sides.
    r, s : ndarray of shapes (m, n_inside) and (m, n_outside)
        p(f | h) and p(g | h).
    alpha, beta : float
        Separability of the inside and of the outside features.
    information : ndarray of shape (m,)
        The smaller values of the two sides, see :func:`information`.
    inside, outside : ndarray
        Product: likelihoods of the inside and outside tree of each node. Sum: those of
        each feature, normalised to 1 for each state.
    n_features : pair of ndarray of shape (m,), or None
        Sum: expected number of features of the two sides in each state.
    entries : ndarray of int64, or None
        Sum: entries of the lexicon.
    lexical, root : ndarray of shapes (n_entries, m) and (m,), or None
        Sum: counts of each entry, and of roots, in each state (section 6.1).
    """

    prior: np.ndarray
    anchors: np.ndarray
    outside_anchors: np.ndarray
    r: np.ndarray
    s: np.ndarray
    alpha: float
    beta: float
    information: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    n_features: tuple | None = None
    entries: np.ndarray | None = None
    lexical: np.ndarray | None = None
    root: np.ndarray | None = None


def label_states(data, m, options):
    """Decompose the features of the nodes of one nonterminal.

    Parameters
    ----------
    data : LabelNodeData
        The nodes.
    m : int
        Number of states wanted.
    options : PivotOptions
        Settings.

    Returns
    -------
    LabelStates

    Notes
    -----
    The mean of the other side's vectors over the nodes that have a feature is the point
    :math:`v_f` of section 5.2, and features of all templates lie in one hull (section
    6.2).  The states found on the two sides are matched as in figure 2: the joint
    weights of pairs (h, h') are those that make the features of the nodes most
    likely, starting from a least-squares solution.
    """
    below, above = data.features
    inside = _one_side(below, data.vectors[1], data.weight, m, options)
    outside = _one_side(above, data.vectors[0], data.weight, m, options)
    if options.objective == "sum":
        joint = _match_features(data, inside, outside, options)
    else:
        likelihoods = [
            _likelihoods(features, side, options.tempering)
            for features, side in ((below, inside), (above, outside))
        ]
        joint = _match_nodes(data, inside, outside, likelihoods, options)
    share = joint.sum(axis=1)
    kept = share > 0
    prior, t = share[kept], joint[kept] / share[kept, np.newaxis]
    r = inside.conditional(inside.posteriors)[kept]
    s = t @ outside.conditional(outside.posteriors)
    states = {
        "prior": prior,
        "anchors": inside.anchors[kept],
        "outside_anchors": outside.anchors[t.argmax(axis=1)],
        "r": r,
        "s": s,
        "alpha": inside.separability(),
        "beta": outside.separability(),
        "information": np.minimum(information(prior, r), information(prior, s)),
    }
    if options.objective == "product":
        below, above = likelihoods
        return LabelStates(**states, inside=below[:, kept], outside=above @ t.T)
    n_outside = t @ outside.n_features
    ratios = (outside.ratios() * outside.n_features) @ t.T / n_outside
    entries, lexical = _lexical_counts(data, inside, prior, kept, options)
    return LabelStates(
        **states,
        inside=np.ascontiguousarray(inside.ratios()[:, kept]),
        outside=np.ascontiguousarray(ratios),
        n_features=(inside.n_features[kept], n_outside),
        entries=entries,
        lexical=lexical,
        root=_root_counts(data, outside, joint[kept], options),
    )


def information(prior, conditional):
    r"""How well features tell the latent states apart (assumption 2).

    The eigenvalues of :math:`\sum_f p(f|h) p(f|h') \sqrt{π(h) π(h')} / p(f)`. This is
    the information about the weights of a mixture of the known distributions
    :math:`p(f|h)`, relative to observed states.  The first eigenvalue is 1.  All are 1
    where features tell the state; the last is 0 where different weights of the states
    give the same mixture, the second is 0 where all states have the same distribution.

    Parameters
    ----------
    prior : ndarray of shape (m,)
        π(h).
    conditional : ndarray of shape (m, n_features)
        p(f | h); rows may have any sum.

    Returns
    -------
    ndarray of shape (m,)
        Eigenvalues, decreasing, between 0 and 1.
    """
    scaled = conditional * (prior / conditional.sum(axis=1))[:, np.newaxis]
    total = scaled.sum(axis=0)
    scaled = scaled[:, total > 0] / np.sqrt(total[total > 0])
    scaled /= np.sqrt(prior)[:, np.newaxis]
    return np.clip(np.linalg.eigvalsh(scaled @ scaled.T)[::-1], 0.0, 1.0)


def _one_side(features, others, weight, m, options):
    """Posteriors q(h | f) of the features of one side, and the pivots."""
    counts = features.T @ weight
    points = _means(features, others, weight)
    least = options.anchor_min_count
    n_candidates = min(_CANDIDATES_PER_STATE * m, len(counts))
    least = min(least, np.partition(counts, -n_candidates)[-n_candidates])
    exact, anchors = anchor_posteriors(
        points, counts, m, min_count=least, **options.least_squares()
    )
    posteriors = exact
    if options.prior > 0:
        prior = counts @ exact / counts.sum()
        posteriors = counts[:, np.newaxis] * exact + options.prior * prior
        posteriors /= (counts + options.prior)[:, np.newaxis]
    n_active = np.diff(features.indptr)
    fewest, most = n_active.min(), n_active.max()
    n_features = np.full(len(anchors), float(most))
    if fewest < most:
        # The posterior of all nodes together is p(h), found like that of a feature.
        mean = weight @ others / weight.sum()
        share, _ = simplex_least_squares(
            mean[np.newaxis], points[anchors], **options.least_squares()
        )
        total = counts @ exact / weight.sum()
        np.divide(total, share[0], out=n_features, where=share[0] > 0)
        n_features = np.clip(n_features, max(fewest, _FEWEST * most), most)
    return Side(posteriors, exact, counts, anchors, points[anchors], n_features)


def _means(features, vectors, weight):
    """Mean vector of the nodes that have each feature."""
    sums = features.T @ (vectors * weight[:, np.newaxis])
    return sums / (features.T @ weight)[:, np.newaxis]


def _likelihoods(features, side, tempering):
    """p(features of a node | h), up to a factor, by a tempered product."""
    n_active = np.maximum(np.diff(features.indptr), 1)
    ratio = features @ np.log(np.maximum(side.ratios(), _TINY))
    ratio *= (n_active**-tempering)[:, np.newaxis]
    ratio -= ratio.max(axis=1, keepdims=True)
    return np.exp(ratio)


def _match_nodes(data, inside, outside, likelihoods, options):
    """Joint weights of the states of the two sides (step 3 of figure 2), over nodes."""
    # E[z | h'] by the outside features, whose mixture the pivots of the inside are
    counts, others = outside.counts, outside.exact_posteriors
    means = _means(data.features[1], data.vectors[1], data.weight)
    means = (others * counts[:, np.newaxis]).T @ means
    means /= (counts @ others)[:, np.newaxis]
    start, _ = simplex_least_squares(inside.vertices, means, **_MATCHING)
    start *= inside.share()[:, np.newaxis]
    independent = inside.share()[:, np.newaxis] * outside.share()
    one = np.ones((len(data.weight), 1))
    events = (*map(np.ascontiguousarray, likelihoods), one, data.weight)
    joint, _, gap = rule_mixture(*events, start, options.tol, 0)
    if gap <= options.tol:
        return joint
    # zeros are absorbing in EM
    start = 0.5 * start + 0.5 * independent
    return rule_mixture(*events, start, options.tol, options.matching_max_iter)[0]


def _match_features(data, inside, outside, options):
    r"""Joint weights of the states of the two sides, over pairs of features.

    Maximises eq. 3 for the weights u(h, h') of pairs of an inside and an outside
    feature, and turns them into those of nodes. The start is a least-squares solution:
    the mean of :math:`\sum_g q(h''|g)` over the nodes with the pivot of h is
    a mixture, with weights t(h' | h), of its means given h'.
    """
    below, above = data.features
    weighted = sparse.diags_array(data.weight) @ above
    pairs = sparse.csr_array(below.T @ weighted)
    exact = outside.exact_posteriors
    confusion = outside.conditional(exact) @ exact
    seen = (pairs[inside.anchors] @ exact) / inside.counts[inside.anchors, np.newaxis]
    start, _ = simplex_least_squares(seen, confusion, **_MATCHING)
    n_features = np.outer(inside.n_features, outside.n_features)
    share = inside.share() / inside.n_features
    start *= (share / share.sum())[:, np.newaxis] * n_features
    start /= start.sum()
    rows = SparseRows(pairs.indptr, pairs.indices, pairs.data)
    left, right = inside.ratios(), np.ascontiguousarray(outside.ratios())
    ratio = np.empty(pairs.nnz)
    sums = np.empty((len(left), right.shape[1]))

    def expect(u):
        _, impossible = posterior_rows(rows, left @ u, right, False, ratio, sums)
        gradient = left.T @ sums
        gap = np.inf if impossible > 0 else gradient.max() / pairs.data.sum() - 1.0
        return gradient, gap

    _, start_gap = expect(start)
    u, gap = start, start_gap
    if start_gap > options.tol:
        # zeros are absorbing in EM
        u = 0.5 * start + 0.5 * np.outer(inside.share(), outside.share())
        for _ in range(options.matching_max_iter):
            gradient, gap = expect(u)
            if gap <= options.tol:
                break
            u = u * gradient
            u /= u.sum()
        else:
            gap = expect(u)[1]
    joint = (start if start_gap <= gap else u) / n_features
    return joint / joint.sum()


def _lexical_counts(data, inside, prior, kept, options):
    """Entries of the lexicon, and their counts in each state (section 6.1).

    Each entry a → x is a feature of its own, whose posteriors are found as those of
    the others; it need not be one of the features.
    """
    leaves = np.flatnonzero(data.entry >= 0)
    if not len(leaves):
        return np.zeros(0, np.int64), np.zeros((0, len(prior)))
    entries, column = np.unique(data.entry[leaves], return_inverse=True)
    indicators = sparse.csr_array(
        (np.ones(len(leaves)), column, np.arange(len(leaves) + 1)),
        shape=(len(leaves), len(entries)),
    )
    weight = data.weight[leaves]
    counts = indicators.T @ weight
    points = _means(indicators, data.vectors[1][leaves], weight)
    posteriors, _ = simplex_least_squares(
        points, inside.vertices, **options.least_squares()
    )
    # Even without pseudo-counts, words whose states were all dropped need a posterior.
    strength = max(options.prior, _TINY)
    posteriors = posteriors[:, kept] * counts[:, np.newaxis] + strength * prior
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    return entries, posteriors * counts[:, np.newaxis]


def _root_counts(data, outside, joint, options):
    """Count of roots in each state, by their outside tree □ (section 6.1)."""
    weight = data.weight[data.is_root]
    if not len(weight):
        return np.zeros(len(joint))
    mean = weight @ data.vectors[0][data.is_root] / weight.sum()
    posterior, _ = simplex_least_squares(
        mean[np.newaxis], outside.vertices, **options.least_squares()
    )
    share = joint.sum(axis=0)
    ratio = np.divide(posterior[0], share, out=np.zeros(len(share)), where=share > 0)
    counts = joint @ ratio
    if not counts.sum() > 0:
        counts = joint.sum(axis=1)
    return counts * weight.sum() / counts.sum()
