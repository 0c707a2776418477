"""Mixture of a rule's latent states over all combinations of features (section 6.2)."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import KERNEL, REASSOC

# Features of right children whose products with t are in memory at a time.
_BLOCK = 128


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
    n_rows = _BLOCK
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
