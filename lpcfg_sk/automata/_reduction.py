"""Useful states, changes of basis, and the exact reduction to the smallest size."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from lpcfg_sk._kernels._wta_charts import rescale_rows
from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._tensors import DenseTensor, SparseTensor

#: Directions this far below others, in units of each state, are rounding errors. On
#: treebank grammars the smallest true directions are about 1e-5, the largest rounding
#: errors 1e-10.
_SPAN_TOL = 1e-9
#: Sums this far below the sum of their absolute terms are rounding errors.
_ROUNDING = 1e-13
#: Shares of one state in another below this are rounding errors.
_SHARE_TOL = 1e-12
#: Number of random vectors beyond those that could be independent.
_SPARE = 16


def useful_states(wta):
    """Find the states that some tree reaches and some context observes.

    Only the pattern of non-zero weights counts.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    ndarray of int64
    """
    words = (wta.omega_matrix != 0).any(axis=0)
    productive = _closure(words, [t.above for t in wta.tensors])
    steps = [partial(t.beneath, below=productive) for t in wta.tensors]
    return np.flatnonzero(_closure((wta.alpha != 0) & productive, steps))


def _closure(mask, steps):
    """Apply all steps to a mask of states and join the results until nothing is new."""
    while True:
        larger = np.logical_or.reduce([mask, *(step(mask) for step in steps)])
        if larger.sum() == mask.sum():
            return mask
        mask = larger


def restrict(wta, states):
    """Take the weights of an automaton over some of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.
    states : ndarray of int64
        The states to keep, in order.

    Returns
    -------
    alpha : ndarray of float64
    tensors : list of tensors
    omega : ndarray of float64
    """
    tensors = wta.tensors
    if len(states) < wta.n_states:
        tensors = [t.restricted(states) for t in tensors]
    return wta.alpha[states], tensors, np.ascontiguousarray(wta.omega_matrix[:, states])


def change_basis(wta, states, basis, dual):
    """Make the automaton ⟨Bᵀα, T(D, B, B), {Dᵀω_σ}⟩ over some of the states.

    Parameters
    ----------
    wta : WTA
        The automaton.
    states : ndarray of int64, shape (n,)
        The states to use.
    basis, dual : ndarray of float64, shape (n, rank)
        The matrices B and D.

    Returns
    -------
    WTA
    """
    alpha, tensors, omega = restrict(wta, states)
    tensors = [t.project(dual, basis, basis) for t in tensors]
    tensors = [
        DenseTensor(t.to_dense()) if t.kind == "cp" and 3 * t.rank > t.n**2 else t
        for t in tensors
    ]
    return wta._derived(basis.T @ alpha, tensors, omega @ dual)


def zero_automaton(wta):
    """Make the automaton of the zero function, over the alphabet of another one."""
    tensors = [SparseTensor.zeros(1) for _ in wta.tensors]
    return wta._derived(np.zeros(1), tensors, np.zeros((len(wta.words), 1)))


def reduce_exactly(wta):
    """Find the smallest automaton of the same function, in terms of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    WTA
        The given one if it is minimal.
    """
    small = reduction(wta.alpha, wta.tensors, wta.omega_matrix)
    if small.rank == 0:
        return zero_automaton(wta)
    if small.rank == wta.n_states:
        return wta
    with one_blas_thread():
        return change_basis(wta, np.arange(wta.n_states), small.basis, small.dual)


class Reduction(NamedTuple):
    """Bases for `change_basis` to the smallest automaton of the same function.

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
    """A space of vectors, each of which is determined by some of its entries.

    Parameters
    ----------
    basis : ndarray of float64, shape (rank, n)
        Vectors of length 1 that span the space.
    states : ndarray of int64, shape (rank,)
        Positions of the entries, increasing.
    weights : ndarray of float64, shape (n, rank)
        ``weights @ v[states]`` is v for each v of the space.
    """

    basis: np.ndarray
    states: np.ndarray
    weights: np.ndarray


def reduction(alpha, tensors, omega):
    """Find bases of the smallest automaton of the same function.

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
    This is the minimisation of Kiefer, Marusic and Worrell (2015): the span of all
    ω(t), then the span of all α(c) on it. A span is closed under T as soon as T maps
    random pairs of its vectors back into it, so T is applied to as many pairs as
    directions may be missing, and a few more, instead of all pairs.

    The basis consists of states of the automaton, and the other states are written in
    terms of them. States thus keep their sizes, which in grammars differ by twenty
    orders of magnitude, and ranks need no Gram matrices, which would square small
    numbers.
    """
    with one_blas_thread():
        return _reduction(alpha, tensors, omega)


def _reduction(alpha, tensors, omega):
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
    permuted = [t.permuted(axes) for t in tensors for axes in ((1, 0, 2), (2, 0, 1))]

    def contexts(basis):
        above = np.zeros((len(reached.states) - len(basis) + _SPARE, n))
        above[:, reached.states] = draw(basis, len(above))
        beside = draw(reached.basis, len(above))
        return [_products(t, above, beside, reached) for t in permuted]

    observed = _closed_span(_on_span(alpha[None, :], np.abs(alpha), reached), contexts)
    dual = np.zeros((n, len(observed.states)))
    dual[reached.states] = observed.weights
    return Reduction(reached.weights[:, observed.states], dual)


def _products(tensor, left, right, span=None):
    """Rows T(I, left, right) as functionals of a span, without rounding errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = tensor.apply(left, right)
        terms = tensor.absolute().apply(np.abs(left), np.abs(right))
    if not np.isfinite(terms).all():
        # The weights are near overflow; rows may be scaled, because only their
        # directions matter.
        return _products(tensor, left * 2.0**-500, right * 2.0**-500, span)
    return _on_span(rows, terms, span)


def _on_span(rows, terms, span):
    """Functionals of a span, set to zero where small relative to their terms."""
    if span is not None:
        rows, terms = rows @ span.weights, terms @ np.abs(span.weights)
    return np.where(np.abs(rows) > _ROUNDING * terms, rows, 0.0)


def _closed_span(rows, step):
    """Smallest span that holds some vectors and is closed under a step."""
    n = rows.shape[1]
    basis = np.zeros((0, n))
    while True:
        rows = _unit_rows(rows)
        scale = np.linalg.norm(np.concatenate([basis, rows]), axis=0)
        scale[scale == 0] = 1.0
        if len(rows) > 0:
            rows = _orthogonal_complement(basis / scale, rows / scale)
        if len(rows) == 0 and len(basis) == 0:
            return _Span(basis, np.zeros(0, dtype=np.int64), np.zeros((n, 0)))
        if len(rows) == 0:
            return _Span(basis, *_interpolation(basis / scale, scale))
        # Earlier vectors are not changed: they have the smallest rounding errors.
        basis = np.concatenate([basis, _unit_rows(rows * scale)])
        rows = np.concatenate(step(basis))


def _orthogonal_complement(basis, rows):
    """Independent vectors that span the parts of rows orthogonal to a basis."""
    span = np.linalg.qr(basis.T)[0]
    for _ in range(2):  # twice is enough to be orthogonal to working precision
        rows = rows - (rows @ span) @ span.T
    factor, order = qr(rows, mode="r", pivoting=True)
    rank = (np.abs(np.diagonal(factor)) > _SPAN_TOL).sum()
    new = np.empty((rank, rows.shape[1]))
    new[:, order] = factor[:rank]
    # Later steps could otherwise take a rounding error for a state's only weight.
    new[np.abs(new) <= _ROUNDING] = 0.0
    return new


def _interpolation(basis, scale):
    """Find the `states` and `weights` of a `_Span`."""
    rank = len(basis)
    factor, order = qr(basis, mode="r", pivoting=True)
    shares = solve_triangular(factor[:, :rank], factor)
    shares[:, :rank] = np.eye(rank)
    shares[np.abs(shares) <= _SHARE_TOL] = 0.0
    weights = np.empty((len(order), rank))
    weights[order] = shares.T * scale[order, None] / scale[order[:rank]]
    columns = np.argsort(order[:rank])
    return order[:rank][columns].astype(np.int64), weights[:, columns]


def _unit_rows(rows):
    """Scale the rows that are not zero to length 1."""
    rows = np.array(rows, dtype=np.float64)
    rescale_rows(rows, np.zeros(len(rows)))
    norms = np.linalg.norm(rows, axis=1)
    return rows[norms > 0] / norms[norms > 0, None]
