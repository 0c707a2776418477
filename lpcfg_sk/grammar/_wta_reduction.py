"""Exact reduction of small automata by bases of their state vectors."""

import numpy as np

__all__ = ["observed_basis", "reached_basis", "reduced_parts"]

#: Products of unit vectors this far below the size of T are rounding errors.
_ZERO_TOL = 1e-14
#: A unit vector this close to the span of others belongs to it.
_SPAN_TOL = 1e-9


def reduced_parts(alpha, tensors, omega):
    """Restrict an automaton to the vectors that trees reach and contexts observe.

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
    alpha, tensors, omega
        Of an automaton of the same function; None where it is zero.

    Notes
    -----
    The minimisation of Kiefer, Marusic and Worrell (2015): a basis of the span of
    all ω(t), then one of the span of all α(c). It needs no convergence, but applies
    T to all pairs of basis vectors, which is for small automata only.
    """
    for find in (reached_basis, observed_basis):
        basis = find(alpha, tensors, omega)
        if basis.shape[1] == 0:
            return None
        if basis.shape[1] < len(alpha):
            alpha = basis.T @ alpha
            omega = omega @ basis
            tensors = [t.project(basis, basis, basis) for t in tensors]
    return alpha, tensors, omega


def reached_basis(alpha, tensors, omega):
    """Orthonormal basis of the span of ω(t) over all trees t.

    Parameters
    ----------
    alpha, tensors, omega
        As in `reduced_parts`.

    Returns
    -------
    ndarray of float64, shape (n, rank)
    """
    basis = _extend(np.zeros((len(alpha), 0)), omega, 0.0)
    floors = [_ZERO_TOL * np.linalg.norm(t.to_dense()) for t in tensors]
    done = 0
    while done < basis.shape[1]:
        rows = basis.T
        new, old = rows[done:], rows
        left = np.concatenate(
            [np.repeat(new, len(old), 0), np.tile(old, (len(new), 1))]
        )
        right = np.concatenate(
            [np.tile(old, (len(new), 1)), np.repeat(new, len(old), 0)]
        )
        done = basis.shape[1]
        for tensor, floor in zip(tensors, floors, strict=True):
            basis = _extend(basis, tensor.apply(left, right), floor)
    return basis


def observed_basis(alpha, tensors, omega):
    """Orthonormal basis of the span of α(c), where all vectors are reached.

    Parameters
    ----------
    alpha, tensors, omega
        As in `reduced_parts`, with states that span only vectors ω(t).

    Returns
    -------
    ndarray of float64, shape (n, rank)
    """
    n = len(alpha)
    basis = _extend(np.zeros((n, 0)), alpha[None, :], 0.0)
    done = 0
    arrays = [t.to_dense() for t in tensors]
    while done < basis.shape[1]:
        new = basis[:, done:]
        done = basis.shape[1]
        for array in arrays:
            floor = _ZERO_TOL * np.linalg.norm(array)
            through = np.einsum("ijk,im->mjk", array, new)
            basis = _extend(basis, through.reshape(-1, n), floor)
            basis = _extend(basis, through.transpose(0, 2, 1).reshape(-1, n), floor)
    return basis


def _extend(basis, rows, floor):
    """Add to an orthonormal basis what vectors above a size have outside its span."""
    n = basis.shape[0]
    norms = np.linalg.norm(rows, axis=1)
    rows = rows[norms > floor] / norms[norms > floor, None]
    rest = rows - (rows @ basis) @ basis.T
    while len(rest) and basis.shape[1] < n:
        norms = np.linalg.norm(rest, axis=1)
        best = int(np.argmax(norms))
        if norms[best] <= _SPAN_TOL:
            break
        vector = rest[best] / norms[best]
        # Twice is enough to be orthogonal to working precision.
        vector -= basis @ (basis.T @ vector)
        vector /= np.linalg.norm(vector)
        basis = np.column_stack([basis, vector])
        rest = rest[norms > _SPAN_TOL]
        rest = rest - np.outer(rest @ vector, vector)
    return basis
