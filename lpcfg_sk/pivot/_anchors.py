import numpy as np


def fast_anchor_words(points, m, *, candidates=None, tol=1e-10):
    """Vertices of the convex hull of points, by FastAnchorWords.

    Greedily picks the point farthest from the affine span of those picked before,
    starting with the one farthest from the origin (Arora et al., 2013, algorithm 4
    without its second pass).

    Parameters
    ----------
    points : ndarray of shape (n, l)
        One point a row.
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
