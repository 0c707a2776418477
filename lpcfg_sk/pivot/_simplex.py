"""Vertices of a convex hull, convex combinations, and states of columns by EM."""

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from lpcfg_sk._kernels._aggregate import SparseRows, posterior_rows
from lpcfg_sk._kernels._pivot import frank_wolfe, pairwise
from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, validate_params

#: Names of the solvers of the least squares.
SOLVERS = {"pairwise", "frank-wolfe"}

# Rows solved by one task.
_CHUNK_ROWS = 2048


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

    return _climb(expect, start, 0.01 / start.shape[1], 1, tol, max_iter)


def likeliest_columns(Q, posteriors, start, *, tol, max_iter):
    r"""Maximise :math:`\sum Q_{fg} \log \sum_h r(h|f) s(g|h)` over s by EM.

    The alternative to steps 2 and 3 of figure 2 in the remark of section 5.3.

    Parameters
    ----------
    Q : csr_array of shape (d, d')
        Joint counts.
    posteriors : ndarray of shape (d, m)
        r(h | f).
    start : ndarray of shape (d', m)
        First guess of s; columns sum to 1.
    tol, max_iter : float and int
        As in :func:`pivot_decomposition`.

    Returns
    -------
    s : ndarray of shape (d', m)
        Columns sum to 1.
    n_iter : int
        Iterations done.
    gap : float
        As in :func:`match_states`.
    """
    posteriors = np.ascontiguousarray(posteriors)
    ratio, unused = np.empty(Q.nnz), np.empty(posteriors.shape)
    total = Q.sum()
    rows = SparseRows(Q.indptr, Q.indices, Q.data)
    shares = sparse.csr_array((ratio, Q.indices, Q.indptr), shape=Q.shape)

    def expect(s):
        _, impossible = posterior_rows(rows, posteriors, s, False, ratio, unused)
        gradient = shares.T @ posteriors
        counts = (s * gradient).sum(axis=0)
        # s is optimal when no entry of a column has a gradient above its count
        gap = np.maximum(gradient.max(axis=0) - counts, 0.0).sum()
        return gradient, (gap + impossible) / total

    share = 0.01 * (Q.sum(axis=0) / total)[:, None]
    return _climb(expect, np.ascontiguousarray(start), share, 0, tol, max_iter)


def _climb(expect, start, share, axis, tol, max_iter):
    """Raise a likelihood by EM until its duality gap is at most `tol`.

    Parameters
    ----------
    expect : callable
        Returns the gradient and the duality gap at given distributions.
    start : ndarray of float64
        Distributions along an axis; returned unchanged if their gap is small.
    share : float or ndarray
        Added to 0.99 times the start, whose zeros EM could not leave.
    axis, tol, max_iter : int, float and int
        Axis of the distributions, and when to stop.

    Returns
    -------
    distributions : ndarray of float64
    n_iter : int
    gap : float
    """
    x, n_iter = start, 0
    gradient, gap = expect(x)
    if gap > tol and max_iter > 0:
        x = 0.99 * start + share
        gradient, gap = expect(x)
        while gap > tol and n_iter < max_iter:
            counts = x * gradient
            norm = counts.sum(axis=axis, keepdims=True)
            x = np.divide(counts, norm, out=x.copy(), where=norm > 0)
            n_iter += 1
            gradient, gap = expect(x)
    return x, n_iter, float(gap)


def fast_anchor_words(points, m, *, candidates=None, tol=1e-10):
    """Vertices of the convex hull of points, by FastAnchorWords.

    Greedily picks the point farthest from the affine span of those picked before,
    starting with the one farthest from the origin (Arora et al., 2013, algorithm 4
    without its second pass).

    Parameters
    ----------
    points : ndarray of shape (n, l)
        One point per row.
    m : int
        Number of vertices wanted.
    candidates : ndarray of int or bool, default=None
        Rows that may be picked; all by default.  Points estimated from few events lie
        outside the hull by chance, so rare ones should be left out.
    tol : float, default=1e-10
        Stop early when the farthest point is nearer than ``tol`` times the first
        distance: the points span fewer than m vertices.

    Returns
    -------
    ndarray of int
        Rows of the vertices in the order of picking, at most m.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.pivot import fast_anchor_words
    >>> square = np.array([[0.0, 0], [0.5, 0.5], [2, 0], [0, 1]])
    >>> fast_anchor_words(square, 3)
    array([2, 3, 0])
    """
    if candidates is None:
        candidates = np.arange(len(points))
    else:
        candidates = np.arange(len(points))[candidates]
    residual = np.array(points[candidates], dtype=np.float64, order="C")
    if not np.isfinite(residual).all():
        raise ValueError("points must hold finite numbers; they have NaN or infinity")
    if not len(residual) or m < 1:
        return candidates[:0]
    distances = np.einsum("ij,ij->i", residual, residual)
    picked = [int(np.argmax(distances))]
    residual -= residual[picked[0]].copy()
    scale = distances[picked[0]]
    while len(picked) < m:
        distances = np.einsum("ij,ij->i", residual, residual)
        # picked points have a residual of rounding errors only
        distances[picked] = 0.0
        best = int(np.argmax(distances))
        if distances[best] <= tol * tol * scale:
            break
        picked.append(best)
        direction = residual[best] / np.sqrt(distances[best])
        residual -= np.outer(residual @ direction, direction)
    return candidates[picked]


@validate_params(
    {
        "solver": [StrOptions(SOLVERS)],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
    },
    prefer_skip_nested_validation=True,
)
def simplex_least_squares(
    points, vertices, *, solver="pairwise", tol=1e-9, max_iter=100, n_jobs=None
):
    r"""Convex combinations of vertices that come nearest to given points.

    Solves :math:`\min_γ \|\sum_h γ_h w_h - v\|^2` subject to :math:`γ_h ≥ 0` and
    :math:`\sum_h γ_h = 1` for each point v (section 5.2, step 4, of Cohen and
    Collins, 2014).

    Parameters
    ----------
    points : ndarray of shape (n, l)
        The points v, one per row.
    vertices : ndarray of shape (m, l)
        The vertices w.
    solver : {"pairwise", "frank-wolfe"}, default="pairwise"
        "pairwise" moves weight between two vertices at a time and converges linearly;
        "frank-wolfe" is the paper's choice, and only sublinear.
    tol : float, default=1e-9
        Duality gap at which a point is done, relative to the mean squared norm of the
        vertices.
    max_iter : int, default=100
        Largest number of steps per point.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    weights : ndarray of shape (n, m)
        The weights γ, one row per point.
    gap : float
        Largest relative duality gap left.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.pivot import simplex_least_squares
    >>> triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> weights, gap = simplex_least_squares(np.array([[0.2, 0.5]]), triangle)
    >>> weights.round(6)
    array([[0.3, 0.2, 0.5]])
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    vertices = np.ascontiguousarray(vertices, dtype=np.float64)
    for name, array in (("points", points), ("vertices", vertices)):
        if array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be a matrix of finite numbers, one row per point; got "
                f"shape {array.shape}, or NaN or infinity in it"
            )
    m = len(vertices)
    kernel = pairwise if solver == "pairwise" else frank_wolfe
    # Weights sum to one, so the origin is arbitrary; the mean vertex loses few digits.
    origin = vertices.mean(axis=0)
    vertices = vertices - origin
    gram = vertices @ vertices.T
    scale = np.trace(gram) / m
    if not scale > 0:
        scale = 1.0
    gram /= scale

    def solve(begin, end):
        products = (points[begin:end] - origin) @ vertices.T
        products /= scale
        weights = np.empty((end - begin, m))
        gap = kernel(gram, products, tol, max_iter, weights)
        return weights, gap

    chunks = [
        (begin, min(begin + _CHUNK_ROWS, len(points)))
        for begin in range(0, len(points), _CHUNK_ROWS)
    ]
    weights = np.empty((len(points), m))
    worst = 0.0
    solved = map_chunks(solve, chunks, n_jobs=n_jobs)
    for (begin, end), (part, gap) in zip(chunks, solved, strict=True):
        weights[begin:end] = part
        worst = max(worst, gap)
    return weights, worst
