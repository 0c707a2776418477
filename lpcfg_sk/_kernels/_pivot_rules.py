"""Step 2 of the pivot method: mixture weights of a rule's latent states."""

import numpy as np
from numba import njit

from lpcfg_sk._kernels._math import REASSOC

__all__ = ["rule_gradient", "rule_mixture"]

# Events whose products of child vectors are held at once.
_BLOCK = 64


@njit(nogil=True, cache=True, fastmath=REASSOC)
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


@njit(nogil=True, cache=True)
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
        Ends when further iterations can add no more to the mean of the objective.
    max_iter : int
        Most iterations.

    Returns
    -------
    t : ndarray of float64, shape (m1, m2 * m3)
        Mixture weights.
    n_iter : int
        Number of iterations.
    gap : float
        What further iterations can add at most.
    """
    t = start.copy()
    gradient = np.empty_like(t)
    n_iter = 0
    gap = np.inf
    while True:
        _, mass = rule_gradient(outside, left, right, weight, t, gradient)
        if mass <= 0.0:
            return t, n_iter, gap
        gap = gradient.max() / mass - 1.0
        if gap <= tol or n_iter == max_iter:
            return t, n_iter, gap
        total = 0.0
        for h in range(t.shape[0]):
            for j in range(t.shape[1]):
                t[h, j] *= gradient[h, j]
                total += t[h, j]
        for h in range(t.shape[0]):
            for j in range(t.shape[1]):
                t[h, j] /= total
        n_iter += 1
