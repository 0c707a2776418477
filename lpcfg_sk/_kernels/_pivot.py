"""Convex problems of the pivot method: points of a simplex, and mixtures of a rule.

Points are found by least squares on the simplex, min 1/2 x'Gx - b'x, many right-hand
sides at once; the mixture weights of a rule's latent states (step 2) by EM, over one
product of likelihoods per event or over all combinations of features (section 6.2).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import KERNEL, REASSOC, held

# Events whose products of child vectors are in memory at a time.
_BLOCK = 64
# Features of right children whose products with t are in memory at a time.
_FEATURE_BLOCK = 128


@njit(**KERNEL, fastmath=REASSOC)
def _start(G, b, x, gradient):
    """Put all weight on the best vertex, and return it.

    Parameters
    ----------
    G : ndarray of float64, shape (m, m)
        Gram matrix of the vertices.
    b : ndarray of float64, shape (m,)
        Products of the point with the vertices.
    x, gradient : ndarray of float64, shape (m,)
        Overwritten by the weights and the gradient.
    """
    best = 0
    for i in range(1, len(b)):
        if 0.5 * G[i, i] - b[i] < 0.5 * G[best, best] - b[best]:
            best = i
    x[:] = 0.0
    x[best] = 1.0
    line = G[best]
    for i in range(len(b)):
        gradient[i] = line[i] - b[i]
    return best


@njit(**KERNEL, fastmath=REASSOC)
def frank_wolfe(G, B, tol, max_iter, out):
    """Frank-Wolfe with exact line search for each row of B, from the best vertex.

    Parameters
    ----------
    G : ndarray of float64, shape (m, m)
        Gram matrix of the vertices.
    B : ndarray of float64, shape (n, m)
        Products of each point with the vertices.
    tol : float
        Duality gap at which a point is done.
    max_iter : int
        Most steps per point.
    out : ndarray of float64, shape (n, m)
        Overwritten by the weights of the vertices.

    Returns
    -------
    gap : float
        Largest duality gap left.
    """
    m = G.shape[0]
    gradient = np.empty(m)
    worst = 0.0
    for row in range(B.shape[0]):
        b = B[row]
        x = out[row]
        _start(G, b, x, gradient)
        gap = np.inf
        for _ in range(max_iter):
            best = 0
            mean = 0.0
            curvature = 0.0
            for i in range(m):
                if gradient[i] < gradient[best]:
                    best = i
                mean += x[i] * gradient[i]
                curvature += x[i] * (gradient[i] + b[i])
            gap = mean - gradient[best]
            if gap <= tol:
                break
            # |e_best - x|^2 in the metric of G, from Gx = gradient + b
            curvature += G[best, best] - 2.0 * (gradient[best] + b[best])
            step = 1.0
            if curvature > gap:
                step = gap / curvature
            line = G[best]
            for i in range(m):
                x[i] *= 1.0 - step
                gradient[i] += step * (line[i] - b[i] - gradient[i])
            x[best] += step
        worst = max(worst, gap)
    return worst


@njit(**KERNEL, fastmath=REASSOC)
def pairwise(G, B, tol, max_iter, out):
    """Pairwise (SMO) steps with second-order choice of the pair for each row of B.

    One step moves weight between two vertices; the receiving one has the lowest
    gradient, the giving one promises the largest decrease.

    Parameters
    ----------
    G : ndarray of float64, shape (m, m)
        Gram matrix of the vertices.
    B : ndarray of float64, shape (n, m)
        Products of each point with the vertices.
    tol : float
        Duality gap at which a point is done.
    max_iter : int
        Most steps per point.
    out : ndarray of float64, shape (n, m)
        Overwritten by the weights of the vertices.

    Returns
    -------
    gap : float
        Largest duality gap left.
    """
    m = G.shape[0]
    gradient = np.empty(m)
    support = np.empty(m, np.int64)
    diagonal = np.diag(G).copy()
    floor = 1e-14 * np.max(diagonal)
    worst = 0.0
    for row in range(B.shape[0]):
        b = B[row]
        x = out[row]
        support[0] = _start(G, b, x, gradient)
        n_support = 1
        gap = np.inf
        for _ in range(max_iter):
            low = 0
            for i in range(1, m):
                if gradient[i] < gradient[low]:
                    low = i
            line = G[low]
            gap = 0.0
            gain = -1.0
            place = 0
            for k in range(n_support):
                j = support[k]
                difference = gradient[j] - gradient[low]
                gap += x[j] * difference
                if difference > 0.0:
                    curvature = max(diagonal[low] + diagonal[j] - 2.0 * line[j], floor)
                    step = min(difference / curvature, x[j])
                    decrease = step * (difference - 0.5 * step * curvature)
                    if decrease > gain:
                        gain = decrease
                        place = k
            if gap <= tol or gain <= 0.0:
                break
            high = support[place]
            difference = gradient[high] - gradient[low]
            curvature = max(diagonal[low] + diagonal[high] - 2.0 * line[high], floor)
            step = difference / curvature
            if x[low] == 0.0:
                support[n_support] = low
                n_support += 1
            if step >= x[high]:
                step = x[high]
                x[low] += step
                x[high] = 0.0
                n_support -= 1
                support[place] = support[n_support]
            else:
                x[low] += step
                x[high] -= step
            other = G[high]
            for i in range(m):
                gradient[i] += step * (line[i] - other[i])
        worst = max(worst, gap)
    return worst


@njit(**KERNEL, fastmath=REASSOC)
def rule_gradient(outside, left, right, weight, t, gradient):
    """Gradient of sum_n w_n log sum_h t[h1, h2, h3] s_n[h1] r_n[h2] r'_n[h3].

    Parameters
    ----------
    outside, left, right : ndarray of float64, shapes (n, m1), (n, m2) and (n, m3)
        Vectors s, r and r' of each event.
    weight : ndarray of float64, shape (n,)
        Weight w of each event.
    t : ndarray of float64, shape (m1, m2 * m3)
        Mixture weights.
    gradient : ndarray of float64, shape (m1, m2 * m3)
        Overwritten by the gradient.

    Returns
    -------
    value : float
        The sum over events of positive probability.
    mass : float
        Weight of these events.
    """
    n_events, m1 = outside.shape
    m2, m3 = left.shape[1], right.shape[1]
    products = np.empty((_BLOCK, m2 * m3))
    parts = np.empty((_BLOCK, m1))
    value = 0.0
    mass = 0.0
    gradient[:] = 0.0
    for begin in range(0, n_events, _BLOCK):
        size = min(_BLOCK, n_events - begin)
        for n in range(size):
            row = products[n]
            u, v = left[begin + n], right[begin + n]
            for j in range(m2):
                for k in range(m3):
                    row[j * m3 + k] = u[j] * v[k]
        np.dot(products[:size], t.T, parts[:size])
        for n in range(size):
            s, part = outside[begin + n], parts[n]
            total = 0.0
            for h in range(m1):
                total += s[h] * part[h]
            w = weight[begin + n]
            if total > 0.0:
                value += w * np.log(total)
                mass += w
                for h in range(m1):
                    part[h] = w * s[h] / total
            else:
                for h in range(m1):
                    part[h] = 0.0
        for n in range(size):
            part, row = parts[n], products[n]
            for h in range(m1):
                p = part[h]
                line = gradient[h]
                for j in range(m2 * m3):
                    line[j] += p * row[j]
    return value, mass


@njit(**KERNEL)
def _is_blocked(outside, left, right, weight, t):
    """Tell whether an event has probability 0 under t, but not under every t.

    Parameters
    ----------
    outside, left, right, weight : ndarray of float64
        Events, as in `rule_gradient`.
    t : ndarray of float64, shape (m1, m2 * m3)
        Mixture weights.
    """
    m1, m2, m3 = outside.shape[1], left.shape[1], right.shape[1]
    for n in range(weight.size):
        possible = False
        total = 0.0
        for h in range(m1):
            for j in range(m2):
                for k in range(m3):
                    product = outside[n, h] * left[n, j] * right[n, k]
                    possible = possible or product > 0.0
                    total += t[h, j * m3 + k] * product
        if possible and weight[n] > 0.0 and total <= 0.0:
            return True
    return False


@held
@njit(**KERNEL)
def rule_mixture(outside, left, right, weight, start, tol, max_iter):
    """Maximise the concave objective of `rule_gradient` over distributions t, by EM.

    Parameters
    ----------
    outside, left, right : ndarray of float64, shapes (n, m1), (n, m2) and (n, m3)
        Vectors of each event.
    weight : ndarray of float64, shape (n,)
        Weight of each event.
    start : ndarray of float64, shape (m1, m2 * m3)
        First guess of t.
    tol : float
        Stop when further iterations could raise the mean objective by at most this.
    max_iter : int
        Most iterations.

    Returns
    -------
    t : ndarray of float64, shape (m1, m2 * m3)
        Mixture weights.
    n_iter : int
        Number of iterations.
    gap : float
        What further iterations can add at most to the mean over the events that some t
        makes possible; infinite where one of them has probability 0. Zeros of `start`
        stay zeros, so only another start can help then.
    """
    t = start.copy()
    gradient = np.empty_like(t)
    total = weight.sum()
    n_iter = 0
    gap = np.inf
    while True:
        _, mass = rule_gradient(outside, left, right, weight, t, gradient)
        if mass <= 0.0:
            return t, n_iter, gap
        gap = gradient.max() / mass - 1.0
        # Rounding of the two sums must not look like an event of probability 0.
        if mass < total * (1.0 - 1e-12) and _is_blocked(
            outside, left, right, weight, t
        ):
            gap = np.inf
        if gap <= tol or n_iter == max_iter:
            return t, n_iter, gap
        t *= gradient
        t /= t.sum()
        n_iter += 1


class FeatureRows(NamedTuple):
    """Features of events, each with its likelihoods under the states.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_events + 1,)
        Where the features of each event begin in `indices`.
    indices : ndarray of int, shape (n_entries,)
        Row of `vectors` of each feature.
    vectors : ndarray of float64, shape (n_features, m)
        Likelihoods of each feature.
    """

    indptr: np.ndarray
    indices: np.ndarray
    vectors: np.ndarray


@njit(**KERNEL)
def _largest(vector):
    """Return the largest value of a vector."""
    value = vector[0]
    for h in range(1, vector.size):
        value = max(value, vector[h])
    return value


@njit(**KERNEL, fastmath=REASSOC)
def feature_gradient(outside, left, right, weight, t, gradient):
    """Gradient of sum_n w_n sum_ijk log sum_h t[h1, h2, h3] s_i[h1] r_j[h2] r'_k[h3].

    The inner sum is over all combinations of an outside feature i, a feature j of
    the left child and a feature k of the right child of event n. It factorises: K
    right features cost K m1 m2 m3, then each pair m1 m2, then each triple m1.

    Parameters
    ----------
    outside, left, right : FeatureRows
        Features of each event, with m1, m2 and m3 states.
    weight : ndarray of float64, shape (n_events,)
        Weight w of each event.
    t : ndarray of float64, shape (m1 * m2, m3)
        Mixture weights.
    gradient : ndarray of float64, shape (m1 * m2, m3)
        Overwritten by the gradient.

    Returns
    -------
    mass : float
        Weight of the combinations that have a positive probability.
    blocked : float
        Weight of those that have none, but would have with another t.
    """
    m1, m2, m3 = (
        outside.vectors.shape[1],
        left.vectors.shape[1],
        right.vectors.shape[1],
    )
    ends = right.indptr
    n_rows = _FEATURE_BLOCK
    for n in range(weight.size):
        n_rows = max(n_rows, ends[n + 1] - ends[n])
    block = np.empty((n_rows, m3))
    forward = np.empty((n_rows, m1 * m2))
    backward = np.empty((n_rows, m1 * m2))
    part = np.empty((m1 * m2, m3))
    y = np.empty(m1)
    z = np.empty(m1)
    mass = 0.0
    blocked = 0.0
    for h in range(m1 * m2):
        for h3 in range(m3):
            gradient[h, h3] = 0.0
    begin = 0
    while begin < weight.size:
        size = 0
        end = begin
        while end < weight.size and size + ends[end + 1] - ends[end] <= n_rows:
            for e in range(ends[end], ends[end + 1]):
                vector = right.vectors[right.indices[e]]
                row = block[size]
                for h in range(m3):
                    row[h] = vector[h]
                size += 1
            end += 1
        np.dot(block[:size], t.T, forward[:size])
        place = 0
        for n in range(begin, end):
            w = weight[n]
            for _ in range(ends[n], ends[n + 1]):
                ahead, back = forward[place], backward[place]
                for h in range(m1 * m2):
                    back[h] = 0.0
                for j in range(left.indptr[n], left.indptr[n + 1]):
                    r = left.vectors[left.indices[j]]
                    for h1 in range(m1):
                        total = 0.0
                        for h2 in range(m2):
                            total += ahead[h1 * m2 + h2] * r[h2]
                        y[h1] = total
                        z[h1] = 0.0
                    for i in range(outside.indptr[n], outside.indptr[n + 1]):
                        s = outside.vectors[outside.indices[i]]
                        total = 0.0
                        for h1 in range(m1):
                            total += s[h1] * y[h1]
                        if total > 0.0:
                            mass += w
                            share = w / total
                            for h1 in range(m1):
                                z[h1] += share * s[h1]
                        elif _largest(s) * _largest(r) * _largest(block[place]) > 0.0:
                            blocked += w
                    for h1 in range(m1):
                        factor = z[h1]
                        for h2 in range(m2):
                            back[h1 * m2 + h2] += factor * r[h2]
                place += 1
        np.dot(backward[:size].T, block[:size], part)
        for h in range(m1 * m2):
            for h3 in range(m3):
                gradient[h, h3] += part[h, h3]
        begin = end
    return mass, blocked
