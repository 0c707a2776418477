"""Decomposition of a matrix of joint counts by pivots (section 5 of the paper)."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy import sparse

from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, validate_params
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.pivot._cca import CCA, SVD_SOLVERS, cca, check_counts
from lpcfg_sk.pivot._simplex import (
    SOLVERS,
    fast_anchor_words,
    likeliest_columns,
    match_states,
    simplex_least_squares,
)

_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
_CONSTRAINTS = {
    "kappa": _NOT_NEGATIVE,
    "solver": [StrOptions(SOLVERS)],
    "solver_tol": _NOT_NEGATIVE,
    "solver_max_iter": [Interval(Integral, 1, None, closed="left")],
    "projection": [CCA, None],
    "svd_solver": [StrOptions(SVD_SOLVERS)],
    "n_jobs": N_JOBS,
    "random_state": ["random_state"],
}


@dataclass(frozen=True)
class AnchorDecomposition:
    """Result of :func:`anchor_decomposition`.

    Attributes
    ----------
    pi : ndarray of shape (m,)
        π(h).
    r : ndarray of shape (d, m)
        r(f | h): each column is a distribution over rows of Q.
    posteriors : ndarray of shape (d, m)
        q(h | f); zeros for rows without counts.
    anchors : ndarray of int, shape (m,)
        The pivot f of each state.
    singular_values : ndarray of shape (m,)
        Canonical correlations of the projection.

    Examples
    --------
    >>> from lpcfg_sk.pivot import anchor_decomposition
    >>> result = anchor_decomposition([[0.3, 0.0], [0.0, 0.7]], 2)
    >>> sorted(result.pi.round(6).tolist())
    [0.3, 0.7]
    """

    pi: np.ndarray
    r: np.ndarray
    posteriors: np.ndarray
    anchors: np.ndarray
    singular_values: np.ndarray


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
        on the pivot ``column_anchors[h2]`` with weight ``t[h, h2]``. Empty with
        ``columns="likelihood"``.
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


@validate_params(
    {**_CONSTRAINTS, "min_count": _NOT_NEGATIVE}, prefer_skip_nested_validation=True
)
def anchor_decomposition(
    Q,
    m,
    *,
    kappa=0.0,
    min_count=0.0,
    solver="pairwise",
    solver_tol=1e-12,
    solver_max_iter=1000,
    projection=None,
    svd_solver="auto",
    n_jobs=None,
    random_state=None,
):
    r"""Find π and r of :math:`Q_{f,g} = \sum_h π(h) r(f|h) s(g|h)` by pivot rows.

    The algorithm of section 5.2 of Cohen and Collins (2014) for matrix decomposition
    problem 2.  When each state h has a pivot row f (``r(f|h)`` is positive, and zero
    for all other states), the columns ``s(·|h)`` are linearly independent, and Q is
    exact, then π and r are recovered exactly, up to the order of the states.
    Columns need no pivots.

    Parameters
    ----------
    Q : {ndarray, sparse matrix} of shape (d, d')
        Non-negative joint counts or probabilities.
    m : int
        Number of states.  Fewer come back where Q supports no more: with a lower
        rank, or with fewer than m eligible pivots.
    kappa : float, default=0.0
        Added to the row and column sums in the CCA, in the units of Q.
    min_count : float, default=0.0
        Least row sum of a pivot row.
    solver : {"pairwise", "frank-wolfe"}, default="pairwise"
        Simplex-constrained least squares, see :func:`simplex_least_squares`.
    solver_tol, solver_max_iter : float and int, default=1e-12 and 1000
        Its stopping rule for each row.
    projection : CCA, default=None
        Result of :func:`cca` on the same Q with at least m directions.
    svd_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        As in :func:`cca`.
    n_jobs : int, default=None
        Number of threads for the least squares.
    random_state : int, RandomState instance or None, default=None
        Starting vectors of the SVD.

    Returns
    -------
    AnchorDecomposition
        The model π, r, the posteriors q(h | f) and the pivots.

    See Also
    --------
    pivot_decomposition : Finds s, too, where columns have pivots.

    References
    ----------
    Cohen, S. B. and Collins, M. (2014). A provably correct learning algorithm for
    latent-variable PCFGs. ACL.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.pivot import anchor_decomposition
    >>> r = np.array([[0.5, 0.0], [0.0, 0.25], [0.5, 0.75]])
    >>> s = np.array([[0.2, 0.6], [0.8, 0.4]])
    >>> result = anchor_decomposition(r @ np.diag([0.3, 0.7]) @ s.T, 2)
    >>> result.anchors
    array([0, 1])
    >>> bool(np.allclose(result.r, r))
    True
    """
    Q, projection = _check_input(
        Q, m, projection, kappa=kappa, svd_solver=svd_solver, random_state=random_state
    )
    counts = Q.sum(axis=1)
    posteriors, anchors = anchor_posteriors(
        conditional_means(Q, counts, projection.right),
        counts,
        m,
        min_count=min_count,
        solver=solver,
        tol=solver_tol,
        max_iter=solver_max_iter,
        n_jobs=n_jobs,
    )
    pi, r = _invert(posteriors, counts)
    return AnchorDecomposition(pi, r, posteriors, anchors, projection.singular_values)


@validate_params(
    {
        **_CONSTRAINTS,
        "min_count": [*_NOT_NEGATIVE, tuple, list, np.ndarray],
        "tol": _NOT_NEGATIVE,
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "columns": [StrOptions({"pivots", "likelihood"})],
    },
    prefer_skip_nested_validation=True,
)
def pivot_decomposition(
    Q,
    m,
    *,
    columns="pivots",
    kappa=0.0,
    min_count=0.0,
    solver="pairwise",
    solver_tol=1e-12,
    solver_max_iter=1000,
    tol=1e-6,
    max_iter=2000,
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
    columns : {"pivots", "likelihood"}, default="pivots"
        How s is found: by pivot columns and the permutation of steps 2 and 3, or
        by the alternative in the remark of section 5.3, as the s that maximises
        :math:`\sum Q_{f,g} \log \sum_h r(h|f) s(g|h)`, which needs no pivot columns.
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
    tol : float, default=1e-6
        The permutation step (step 3), or the search for s, ends when more iterations
        could raise the mean log likelihood by no more than this.
    max_iter : int, default=2000
        Largest number of EM iterations of the permutation step; a
        :class:`~lpcfg_sk.exceptions.ConvergenceWarning` says if they were too few. 0
        returns the least-squares solution without iterations and without a warning.
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
    :math:`\sum_g \hat s(g|h')φ(g)`, with weights :math:`t(h'|h)`.  It is returned
    unchanged when its duality gap is below ``tol``, as with exact input, and smoothed
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
    Q, projection = _check_input(
        Q, m, projection, kappa=kappa, svd_solver=svd_solver, random_state=random_state
    )
    row_min, column_min = _check_min_count(min_count)
    solve = {
        "solver": solver,
        "tol": solver_tol,
        "max_iter": solver_max_iter,
        "n_jobs": n_jobs,
    }
    row_counts, column_counts = Q.sum(axis=1), Q.sum(axis=0)
    row_points = conditional_means(Q, row_counts, projection.right)
    row_posteriors, row_anchors = anchor_posteriors(
        row_points, row_counts, m, min_count=row_min, **solve
    )
    pi, r = _invert(row_posteriors, row_counts)
    if columns == "likelihood":
        # The pivot row of h is a sample of s(g|h).
        start = (Q[row_anchors] / row_counts[row_anchors, None]).toarray().T
        s, n_iter, gap = likeliest_columns(
            Q, row_posteriors, start, tol=tol, max_iter=max_iter
        )
        t, column_anchors = np.eye(len(pi)), np.zeros(0, dtype=np.int64)
    else:
        column_points = conditional_means(
            sparse.csr_array(Q.T), column_counts, projection.left
        )
        column_posteriors, column_anchors = anchor_posteriors(
            column_points, column_counts, m, min_count=column_min, **solve
        )
        _, s = _invert(column_posteriors, column_counts)
        start, _ = simplex_least_squares(
            row_points[row_anchors], s.T @ projection.right, **solve
        )
        t, n_iter, gap = match_states(
            Q, row_posteriors, s, start, tol=tol, max_iter=max_iter
        )
        s = s @ t.T
    if gap > tol and max_iter > 0:
        step = "permutation step" if columns == "pivots" else "search for s"
        warn_caller(
            f"the {step} did not converge in {max_iter} iterations: more "
            f"could raise the mean log likelihood by up to {gap:.1e}, above tol={tol}; "
            "raise max_iter or tol",
            ConvergenceWarning,
        )
    return PivotDecomposition(
        pi=pi,
        r=r,
        s=s,
        row_anchors=row_anchors,
        column_anchors=column_anchors,
        t=t,
        singular_values=projection.singular_values,
        n_iter=n_iter,
        gap=gap,
    )


def _check_input(Q, m, projection, *, kappa, svd_solver, random_state):
    """Return Q as CSR counts, and its projection onto m directions."""
    Q = check_counts(Q)
    if not isinstance(m, Integral) or m < 1:
        raise ValueError(f"m must be a positive integer, got {m!r}")
    if projection is None:
        projection = cca(
            Q, m, kappa=kappa, svd_solver=svd_solver, random_state=random_state
        )
        return Q, projection.truncate(m)
    n_directions = len(projection.singular_values)
    if n_directions < m:
        raise ValueError(
            f"projection has {n_directions} directions, and m={m} states need as many; "
            f"make it by cca(Q, {m}), or lower m"
        )
    shapes = np.shape(projection.left), np.shape(projection.right)
    expected = tuple((size, n_directions) for size in Q.shape)
    if shapes != expected:
        raise ValueError(
            f"projection is one of another matrix: its sides have shapes {shapes}, "
            f"those of Q would have {expected}"
        )
    if not all(np.isfinite(values).all() for values in projection):
        raise ValueError("projection must hold finite numbers; it has NaN or infinity")
    return Q, projection.truncate(m)


def _check_min_count(min_count):
    """Return the least sums of pivot rows and of pivot columns."""
    try:
        rows, columns = np.broadcast_to(np.asarray(min_count, dtype=float), (2,))
    except ValueError as error:
        raise ValueError(
            "min_count must be a number or a pair (for rows, for columns), got "
            f"{min_count!r}"
        ) from error
    if not (rows >= 0 and columns >= 0):
        raise ValueError(f"min_count must not be negative or NaN, got {min_count!r}")
    return rows, columns


def conditional_means(Q, row_counts, projection):
    """Points E[φ(g) | f]: the rows of Q, normalised, times the projection."""
    points = np.asarray(Q @ projection, dtype=np.float64)
    np.divide(points, row_counts[:, None], out=points, where=row_counts[:, None] > 0)
    return points


def _invert(posteriors, counts):
    """π(h) and p(f | h) from q(h | f) and p(f)."""
    joint = posteriors * counts[:, None]
    mass = joint.sum(axis=0)
    return mass / counts.sum(), joint / mass
