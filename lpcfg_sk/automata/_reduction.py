"""Exact reduction of automata to what trees reach and contexts observe."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from lpcfg_sk._kernels._wta import rescale_rows

__all__ = ["Reduction", "reduction"]

#: Directions this far below others, in units of each state, are rounding errors. On
#: treebank grammars the smallest true ones are about 1e-5, the largest false 1e-10.
_SPAN_TOL = 1e-9
#: Sums this far below the sum of their absolute terms are rounding errors.
_ROUNDING = 1e-13
#: Shares of one state in another that are rounding errors.
_SHARE_TOL = 1e-12
#: Random vectors beyond as many as could be independent.
_SPARE = 16


class Reduction(NamedTuple):
    """Bases that make the smallest automaton of the same function.

    It is ⟨Bᵀα, T(D, B, B), {Dᵀω_σ}⟩ with the basis B and the dual D.

    Parameters
    ----------
    basis, dual : ndarray of float64, shape (n, rank)
        ``dual.T @ basis`` is the identity.
    """

    basis: np.ndarray
    dual: np.ndarray

    @property
    def rank(self):
        """Number of states of the smallest automaton."""
        return self.basis.shape[1]


class _Span(NamedTuple):
    """A space of vectors that some of their entries determine.

    Parameters
    ----------
    basis : ndarray of float64, shape (rank, n)
        Vectors of length 1 that span it.
    states : ndarray of int64, shape (rank,)
        The entries, increasing.
    weights : ndarray of float64, shape (n, rank)
        ``weights @ v[states]`` is v for each v of the space.
    """

    basis: np.ndarray
    states: np.ndarray
    weights: np.ndarray


def reduction(alpha, tensors, omega):
    """Find the smallest automaton of the same function.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensors : sequence of tensors
        Transition tensors.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.

    Returns
    -------
    Reduction
        Of rank 0 for the zero function.

    Notes
    -----
    The minimisation of Kiefer, Marusic and Worrell (2015): the span of all ω(t), then
    the span of all α(c) on it. A span is closed under T as soon as T takes random
    pairs of its vectors back into it, so T is applied to as many pairs as there may
    be directions missing, and a few more, in place of all pairs.

    The bases are states of the automaton, and others in terms of those. So states keep
    their sizes, which for grammars are twenty orders of magnitude apart, and ranks
    need no Gram matrices, which would square what is small.
    """
    n = len(alpha)
    rng = np.random.default_rng(0)

    def draw(basis, count):
        return rng.standard_normal((count, len(basis))) @ basis

    def trees(basis):
        count = n - len(basis) + _SPARE
        return [_products(t, draw(basis, count), draw(basis, count)) for t in tensors]

    reached = _closed_span(omega, trees)
    if len(reached.states) == 0:
        return Reduction(np.zeros((n, 0)), np.zeros((n, 0)))
    turned = [t.permuted(axes) for t in tensors for axes in ((1, 0, 2), (2, 0, 1))]

    def contexts(basis):
        above = np.zeros((len(reached.states) - len(basis) + _SPARE, n))
        above[:, reached.states] = draw(basis, len(above))
        beside = draw(reached.basis, len(above))
        return [_products(t, above, beside, reached) for t in turned]

    observed = _closed_span(_times(alpha[None, :], np.abs(alpha), reached), contexts)
    dual = np.zeros((n, len(observed.states)))
    dual[reached.states] = observed.weights
    return Reduction(reached.weights[:, observed.states], dual)


def _products(tensor, left, right, span=None):
    """Rows T(I, left, right), as they act on a span, without rounding errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = tensor.apply(left, right)
        terms = tensor.absolute().apply(np.abs(left), np.abs(right))
    if not np.isfinite(terms).all():
        # Weights near the largest number; the sizes of rows do not matter.
        return _products(tensor, left * 2.0**-500, right * 2.0**-500, span)
    return _times(rows, terms, span)


def _times(rows, terms, span):
    """Functionals of a span, zero where small beside the terms that they sum."""
    if span is not None:
        rows, terms = rows @ span.weights, terms @ np.abs(span.weights)
    return np.where(np.abs(rows) > _ROUNDING * terms, rows, 0.0)


def _closed_span(rows, step):
    """Span of vectors and of all that a step makes of them, again and again."""
    n = rows.shape[1]
    basis = np.zeros((0, n))
    while True:
        rows = _unit(rows)
        scale = np.linalg.norm(np.concatenate([basis, rows]), axis=0)
        scale[scale == 0] = 1.0
        if len(rows) > 0:
            rows = _outside(basis / scale, rows / scale)
        if len(rows) == 0 and len(basis) == 0:
            return _Span(basis, np.zeros(0, dtype=np.int64), np.zeros((n, 0)))
        if len(rows) == 0:
            return _Span(basis, *_interpolation(basis / scale, scale))
        # What was found first stays as it is: rounding errors grow from step to step.
        basis = np.concatenate([basis, _unit(rows * scale)])
        rows = np.concatenate(step(basis))


def _outside(basis, rows):
    """Independent vectors of what rows have outside the span of a basis."""
    span = np.linalg.qr(basis.T)[0]
    for _ in range(2):  # twice is enough to be orthogonal to working precision
        rows = rows - (rows @ span) @ span.T
    factor, order = qr(rows, mode="r", pivoting=True)
    found = np.abs(np.diagonal(factor)) > _SPAN_TOL
    new = np.empty((found.sum(), rows.shape[1]))
    new[:, order] = factor[: found.sum()]
    # Further steps would take a rounding error for a state's only weight.
    new[np.abs(new) <= _ROUNDING] = 0.0
    return new


def _interpolation(basis, scale):
    """States whose entries determine a vector of a span, and how."""
    rank = len(basis)
    factor, order = qr(basis, mode="r", pivoting=True)
    shares = solve_triangular(factor[:, :rank], factor)
    shares[:, :rank] = np.eye(rank)
    shares[np.abs(shares) <= _SHARE_TOL] = 0.0
    weights = np.empty((len(order), rank))
    weights[order] = shares.T * scale[order, None] / scale[order[:rank]]
    columns = np.argsort(order[:rank])
    return order[:rank][columns].astype(np.int64), weights[:, columns]


def _unit(rows):
    """Rows that are not zero, of length 1."""
    rows = np.array(rows, dtype=np.float64)
    rescale_rows(rows, np.zeros(len(rows)))
    norms = np.linalg.norm(rows, axis=1)
    return rows[norms > 0] / norms[norms > 0, None]
