"""Decomposition of a matrix of joint counts by pivots (figure 2 of the paper)."""

from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._aggregate import SparseRows, posterior_rows
from lpcfg_sk._svd import leading_triplets
from lpcfg_sk.pivot._simplex import fast_anchor_words, simplex_least_squares

# Below this size LAPACK is both faster and exact to the last digits.
_DENSE_SIZE = 400
# Directions times size up to which ARPACK is the faster of the iterative solvers.
_ARPACK_SIZE = 200_000


class CCA(NamedTuple):
    """Projections found by canonical correlation analysis of a co-occurrence matrix.

    Attributes
    ----------
    singular_values : ndarray of shape (n_components,)
        Canonical correlations, in decreasing order (shrunk when ``kappa > 0``).
    left : ndarray of shape (d, n_components)
        Representation of each row symbol.
    right : ndarray of shape (d', n_components)
        Representation φ(g) of each column symbol.

    Examples
    --------
    >>> from lpcfg_sk.pivot import cca
    >>> result = cca([[0.5, 0.1], [0.1, 0.5]], 2)
    >>> result.truncate(1).left.shape
    (2, 1)
    """

    singular_values: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def truncate(self, n_components):
        """Take the leading directions: one SVD serves all smaller sizes.

        Parameters
        ----------
        n_components : int
            How many.

        Returns
        -------
        CCA
            The same analysis with fewer columns.
        """
        return CCA(
            self.singular_values[:n_components],
            self.left[:, :n_components],
            self.right[:, :n_components],
        )


def cca(Q, n_components, *, kappa=0.0, svd_solver="auto", random_state=None):
    r"""Canonical correlation analysis of one-hot variables from their joint counts.

    The rank-``n_components`` SVD of :math:`(D_1+κ)^{-1/2} Q (D_2+κ)^{-1/2}`, where
    :math:`D_1` and :math:`D_2` hold the row and column sums of Q.

    Parameters
    ----------
    Q : {ndarray, sparse matrix} of shape (d, d')
        Non-negative co-occurrence counts or probabilities.
    n_components : int
        Number of directions wanted; fewer are returned when the rank is lower.
    kappa : float, default=0.0
        Added to the row and column sums, in the units of Q.  Without it every tiny
        component of the co-occurrence graph has a correlation close to 1.
    svd_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "auto" takes LAPACK for small matrices, ARPACK for few directions of larger
        ones, else randomized subspace iteration in single precision.
    random_state : int, RandomState instance or None, default=None
        Starting vectors of the iterative solvers.

    Returns
    -------
    CCA
        Singular values and the two scaled bases.

    Examples
    --------
    >>> from lpcfg_sk.pivot import cca
    >>> cca([[0.5, 0.0], [0.0, 0.5]], 2).singular_values
    array([1., 1.])
    """
    Q = sparse.csr_array(Q, dtype=np.float64)
    left_scale = _inverse_root(Q.sum(axis=1) + kappa)
    right_scale = _inverse_root(Q.sum(axis=0) + kappa)
    scaled = sparse.csr_array(
        sparse.diags_array(left_scale) @ Q @ sparse.diags_array(right_scale)
    )
    size = min(Q.shape)
    k = min(n_components, size)
    if svd_solver == "auto":
        if size <= max(_DENSE_SIZE, k + 1):
            svd_solver = "dense"
        else:
            svd_solver = "arpack" if k * size <= _ARPACK_SIZE else "randomized"
    elif svd_solver == "arpack" and k >= size:
        svd_solver = "dense"
    random_state = check_random_state(random_state)
    if svd_solver == "dense":
        U, S, Vt = leading_triplets(scaled.toarray(), k, "dense")
    elif svd_solver == "arpack":
        start = random_state.standard_normal(size)
        U, S, Vt = leading_triplets(scaled, k, "arpack", start=start)
    else:
        U, S, Vt = leading_triplets(
            scaled.astype(np.float32),
            k,
            "randomized",
            random_state=random_state,
            n_oversamples=max(32, k // 4),
            n_iter=4,
            power_iteration_normalizer="LU",
        )
    U, S, V = U[:, :k], S[:k], Vt[:k].T
    rank = int(np.sum(S > S[:1] * size * np.finfo(U.dtype).eps))
    return CCA(
        S[:rank],
        U[:, :rank] * left_scale[:, np.newaxis],
        V[:, :rank] * right_scale[:, np.newaxis],
    )


def _inverse_root(degrees):
    scale = np.zeros_like(degrees)
    np.divide(1.0, np.sqrt(degrees), out=scale, where=degrees > 0)
    return scale


@dataclass(frozen=True)
class PivotDecomposition:
    """Result of :func:`pivot_decomposition`.

    Attributes
    ----------
    pi : ndarray of shape (m,)
        π(h).
    r : ndarray of shape (d, m)
        r(f | h): each column is a distribution over rows of Q.
    s : ndarray of shape (d', m)
        s(g | h): each column is a distribution over columns of Q.
    row_anchors : ndarray of int, shape (m,)
        The pivot f of each state.
    column_anchors : ndarray of int, shape (m,)
        The pivots g in the order of their own discovery: state h of the result draws
        on the pivot ``column_anchors[h2]`` with weight ``t[h, h2]``.
    t : ndarray of shape (m, m)
        t(h' | h), which maps the states found on the rows to those of the columns.
    singular_values : ndarray of shape (m,)
        Canonical correlations of the projection.
    n_iter : int
        EM iterations of the permutation step.
    gap : float
        Bound on what more iterations could add to the mean log likelihood (eq. 3),
        plus the fraction of events that have probability 0.

    Examples
    --------
    >>> from lpcfg_sk.pivot import pivot_decomposition
    >>> result = pivot_decomposition([[0.3, 0.0], [0.0, 0.7]], 2)
    >>> sorted(result.pi.round(6).tolist())
    [0.3, 0.7]
    """

    pi: np.ndarray
    r: np.ndarray
    s: np.ndarray
    row_anchors: np.ndarray
    column_anchors: np.ndarray
    t: np.ndarray
    singular_values: np.ndarray
    n_iter: int
    gap: float


def anchor_posteriors(points, counts, m, *, min_count=0.0, **least_squares):
    r"""Posterior probabilities q(h | f) from points :math:`v_f = E[φ(g) | f]`.

    Steps 3 and 4 of section 5.2: the anchors are vertices of the hull, and each point
    is a convex combination of them with weights q(h | f).

    Parameters
    ----------
    points : ndarray of shape (d, l)
        The points :math:`v_f`.
    counts : ndarray of shape (d,)
        How often each f was seen; rows of count 0 get posteriors 0.
    m : int
        Number of states.
    min_count : float, default=0.0
        Least count of an anchor.
    **least_squares
        Keyword arguments of :func:`simplex_least_squares`.

    Returns
    -------
    posteriors : ndarray of shape (d, m)
        q(h | f).
    anchors : ndarray of int
        The pivot of each state; fewer than m where the points span no more.
    """
    seen = np.flatnonzero(counts > 0)
    eligible = seen[counts[seen] >= min_count]
    if not len(eligible):
        eligible = seen[counts[seen] == counts[seen].max()]
    anchors = fast_anchor_words(points, m, candidates=eligible)
    posteriors = np.zeros((len(points), len(anchors)))
    posteriors[seen], _ = simplex_least_squares(
        points[seen], points[anchors], **least_squares
    )
    return posteriors, anchors


def pivot_decomposition(
    Q,
    m,
    *,
    kappa=0.0,
    min_count=0.0,
    solver="pairwise",
    solver_tol=1e-12,
    solver_max_iter=1000,
    tol=1e-9,
    max_iter=100,
    projection=None,
    svd_solver="auto",
    n_jobs=None,
    random_state=None,
):
    r"""Decompose :math:`Q_{f,g} = \sum_h π(h) r(f|h) s(g|h)` by pivot features.

    The algorithm of figure 2 of Cohen and Collins (2014) for matrix decomposition
    problem 1.  When each state h has a pivot row f (r(f|h) > 0 and r(f|h') = 0 for
    all other h') and a pivot column g, and Q is exact, π, r and s are recovered
    exactly, up to the order of the states.

    Parameters
    ----------
    Q : {ndarray, sparse matrix} of shape (d, d')
        Non-negative joint counts or probabilities; sparse ones are never made dense
        unless they are small.
    m : int
        Number of states.  Fewer come back where Q supports no more: with a lower
        rank, or with fewer than m eligible pivots.
    kappa : float, default=0.0
        Added to the row and column sums in the CCA, in the units of Q; 5 to 50 is
        right for counts of real data.
    min_count : float or pair of float, default=0.0
        Least row sum of a pivot row and least column sum of a pivot column.  Needed
        for real data: rare symbols lie outside the hull by chance.
    solver : {"pairwise", "frank-wolfe"}, default="pairwise"
        Simplex-constrained least squares, see :func:`simplex_least_squares`.
    solver_tol, solver_max_iter : float and int, default=1e-12 and 1000
        Its stopping rule for each row.
    tol : float, default=1e-9
        The permutation step (step 3) ends when more iterations could raise the mean
        log likelihood by no more than this.
    max_iter : int, default=100
        Largest number of EM iterations of the permutation step.
    projection : CCA, default=None
        Result of :func:`cca` on the same Q with at least m directions, to share one
        SVD between several m.
    svd_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        As in :func:`cca`.
    n_jobs : int, default=None
        Number of threads for the least squares.
    random_state : int, RandomState instance or None, default=None
        Starting vectors of the SVD.

    Returns
    -------
    PivotDecomposition
        The model π, r, s, the pivots, and how step 3 ended.

    Notes
    -----
    Step 3 is concave and any positive start will do; EM's linear convergence to the
    zeros of t is slow, however.  The start is therefore the least-squares solution:
    the pivot row of h is a convex combination of the means
    :math:`\sum_g \hat s(g|h')φ(g)`, with weights :math:`t(h'|h)`.  It is returned as
    it is when its duality gap is below ``tol``, as with exact input, and smoothed
    before EM otherwise.

    References
    ----------
    Cohen, S. B. and Collins, M. (2014). A provably correct learning algorithm for
    latent-variable PCFGs. ACL.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.pivot import pivot_decomposition
    >>> r = np.array([[0.5, 0.0], [0.0, 0.25], [0.5, 0.75]])
    >>> s = np.array([[0.2, 0.0], [0.0, 0.4], [0.8, 0.6]])
    >>> result = pivot_decomposition(r @ np.diag([0.3, 0.7]) @ s.T, 2)
    >>> result.row_anchors
    array([0, 1])
    >>> result.pi.round(6)
    array([0.3, 0.7])
    >>> bool(np.allclose(result.s, s))
    True
    """
    Q = _check_counts(Q)
    if not isinstance(m, Integral) or m < 1:
        raise ValueError(f"m must be a positive integer, got {m!r}")
    row_min, column_min = np.broadcast_to(np.asarray(min_count, dtype=float), (2,))
    if projection is None:
        projection = cca(
            Q, m, kappa=kappa, svd_solver=svd_solver, random_state=random_state
        )
    projection = projection.truncate(m)
    solve = {
        "solver": solver,
        "tol": solver_tol,
        "max_iter": solver_max_iter,
        "n_jobs": n_jobs,
    }
    row_counts, column_counts = Q.sum(axis=1), Q.sum(axis=0)
    row_points = conditional_means(Q, row_counts, projection.right)
    column_points = conditional_means(
        sparse.csr_array(Q.T), column_counts, projection.left
    )
    row_posteriors, row_anchors = anchor_posteriors(
        row_points, row_counts, m, min_count=row_min, **solve
    )
    column_posteriors, column_anchors = anchor_posteriors(
        column_points, column_counts, m, min_count=column_min, **solve
    )
    pi, r = _invert(row_posteriors, row_counts)
    _, s = _invert(column_posteriors, column_counts)
    start, _ = simplex_least_squares(
        row_points[row_anchors], s.T @ projection.right, **solve
    )
    t, n_iter, gap = match_states(
        Q, row_posteriors, s, start, tol=tol, max_iter=max_iter
    )
    return PivotDecomposition(
        pi=pi,
        r=r,
        s=s @ t.T,
        row_anchors=row_anchors,
        column_anchors=column_anchors,
        t=t,
        singular_values=projection.singular_values,
        n_iter=n_iter,
        gap=gap,
    )


def conditional_means(Q, row_counts, projection):
    """Points E[φ(g) | f]: the rows of Q, normalised, times the projection."""
    points = np.asarray(Q @ projection, dtype=np.float64)
    np.divide(points, row_counts[:, None], out=points, where=row_counts[:, None] > 0)
    return points


def match_states(Q, posteriors, s, start, *, tol, max_iter):
    r"""Step 3 of figure 2: t(h'|h) that maximises eq. 3, by EM.

    Parameters
    ----------
    Q : csr_array of shape (d, d')
        Joint counts.
    posteriors : ndarray of shape (d, m)
        r(h | f).
    s : ndarray of shape (d', m')
        s(g | h').
    start : ndarray of shape (m, m')
        First guess of t.
    tol, max_iter : float and int
        As in :func:`pivot_decomposition`.

    Returns
    -------
    t : ndarray of shape (m, m')
        Rows sum to 1.
    n_iter : int
        Iterations done.
    gap : float
        Duality gap of the mean log likelihood at t, plus the fraction of events of
        probability 0 (rounding leaves some in exact input).
    """
    s = np.ascontiguousarray(s)
    ratio = np.empty(Q.nnz)
    weighted = np.empty((Q.shape[0], s.shape[1]))
    total = Q.sum()
    row_counts = np.repeat(Q.sum(axis=1), np.diff(Q.indptr))
    # no model of the columns given the row beats their relative frequencies
    ceiling = (Q.data * np.log(Q.data / row_counts)).sum()

    rows = SparseRows(Q.indptr, Q.indices, Q.data)

    def expect(t):
        log_likelihood, impossible = posterior_rows(
            rows, posteriors @ t, s, False, ratio, weighted
        )
        gradient = posteriors.T @ weighted
        counts = (t * gradient).sum(axis=1)
        # t is optimal when no entry of a row has a gradient above the row's count
        gap = np.maximum(gradient.max(axis=1) - counts, 0.0).sum()
        gap = min(gap, abs(ceiling - log_likelihood))
        return gradient, (gap + impossible) / total

    t = start
    gradient, gap = expect(t)
    n_iter = 0
    if gap > tol and max_iter > 0:
        # zeros are absorbing in EM
        t = 0.99 * start + 0.01 / start.shape[1]
        gradient, gap = expect(t)
        while gap > tol and n_iter < max_iter:
            counts = t * gradient
            norm = counts.sum(axis=1, keepdims=True)
            t = np.divide(counts, norm, out=t.copy(), where=norm > 0)
            n_iter += 1
            gradient, gap = expect(t)
    return t, n_iter, float(gap)


def _invert(posteriors, counts):
    """π(h) and p(f | h) from q(h | f) and p(f)."""
    joint = posteriors * counts[:, None]
    mass = joint.sum(axis=0)
    return mass / counts.sum(), joint / mass


def _check_counts(Q):
    if not sparse.issparse(Q):
        Q = np.asarray(Q)
    if Q.ndim != 2 or not np.issubdtype(Q.dtype, np.number):
        raise ValueError(
            f"Q must be a matrix of joint counts, got shape {Q.shape}, dtype {Q.dtype}"
        )
    Q = sparse.csr_array(Q, dtype=np.float64)
    Q.sum_duplicates()
    Q.eliminate_zeros()
    if not np.isfinite(Q.data).all() or (Q.data < 0).any():
        raise ValueError("Q must hold finite non-negative counts; it has others")
    if not Q.nnz:
        raise ValueError("Q has no events: all its entries are zero")
    return Q
