"""Other bases, and automata of sums and products of functions."""

from itertools import chain, count
from numbers import Real

import numpy as np

from lpcfg_sk.automata._tensors import SparseTensor, direct_sum, hadamard

__all__ = ["AlgebraOfFunctions", "common_words", "sum_parts"]


class AlgebraOfFunctions:
    """The part of a tree automaton that makes others of it."""

    def conjugate(self, Q):
        """Change the basis of the states; f stays as it is.

        Parameters
        ----------
        Q : array-like of float, shape (n, n)
            An invertible matrix.

        Returns
        -------
        WTA
            ⟨Qᵀα, T(Q⁻ᵀ, Q, Q), {Q⁻¹ω_σ}⟩.
        """
        Q = np.asarray(Q, dtype=np.float64)
        if Q.shape != (self.n_states,) * 2 or not np.isfinite(Q).all():
            raise ValueError(
                f"Q should be a finite matrix of shape {(self.n_states,) * 2}, got "
                f"shape {Q.shape}."
            )
        try:
            inverse = np.linalg.inv(Q)
        except np.linalg.LinAlgError:
            raise ValueError("Q is singular; a basis change is invertible.") from None
        tensors = [t.project(inverse.T, Q, Q) for t in self.tensors]
        return self._derived(Q.T @ self.alpha, tensors, self.omega_matrix @ inverse.T)

    def reweight(self, gamma):
        """Weigh trees by their size: t ↦ γ^size(t) f(t), size = inner nodes.

        Parameters
        ----------
        gamma : float
            The factor for each inner node.

        Returns
        -------
        WTA
        """
        if gamma == 1:
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            tensors = [t.scaled(gamma) for t in self.tensors]
        for part in (part for t in tensors for part in t.arrays().values()):
            _check_finite(part, f"Transition weights times gamma={gamma}")
        return self._derived(self.alpha, tensors, self.omega_matrix, self.states)

    def __add__(self, other):
        if not isinstance(other, AlgebraOfFunctions):
            return NotImplemented
        self._check_same_trees(other)
        return self._build(*sum_parts(self, other))

    def __mul__(self, other):
        if isinstance(other, Real):
            with np.errstate(over="ignore", invalid="ignore"):
                alpha = self.alpha * other
            _check_finite(alpha, f"Initial weights alpha times {other}")
            return self._derived(alpha, self.tensors, self.omega_matrix, self.states)
        if not isinstance(other, AlgebraOfFunctions):
            return NotImplemented
        self._check_same_trees(other)
        return self._build(*_product_parts(self, other))

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        if not isinstance(other, AlgebraOfFunctions):
            return NotImplemented
        return self + -other

    def __truediv__(self, other):
        if not isinstance(other, Real):
            return NotImplemented
        return self * (1 / other)


def _check_finite(weights, name):
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} should be finite numbers; some are not.")


def sum_parts(first, second, *, literal=False):
    """Parts of the automaton of f + g: both automata side by side.

    Parameters
    ----------
    first, second : WTA
        Automata over the same kind of trees; a word or a node label that one of
        them does not know has weight zero there, or that of its unknown word.
    literal : bool, default=False
        See `common_words`.

    Returns
    -------
    tuple
        alpha, tensors, omega, words, labels, unknown_word and states.
    """
    words, omegas, unknown_word = common_words(first, second, literal=literal)
    labels = _labels(first, second)
    pairs = zip(_tensors(first, labels), _tensors(second, labels), strict=True)
    return (
        np.concatenate([first.alpha, second.alpha]),
        [direct_sum(a, b) for a, b in pairs],
        np.hstack(omegas),
        words,
        labels,
        unknown_word,
        None,
    )


def _product_parts(first, second):
    """Parts of the automaton of f · g, whose states are pairs of states.

    Parameters
    ----------
    first, second : WTA
        Automata over the same kind of trees; as in `sum_parts`.

    Returns
    -------
    tuple
        alpha, tensors, omega, words, labels, unknown_word and states.
    """
    words, omegas, unknown_word = common_words(first, second)
    labels = _labels(first, second)
    pairs = zip(_tensors(first, labels), _tensors(second, labels), strict=True)
    omega = omegas[0][:, :, None] * omegas[1][:, None, :]
    return (
        np.kron(first.alpha, second.alpha),
        [hadamard(a, b) for a, b in pairs],
        omega.reshape(len(words), -1),
        words,
        labels,
        unknown_word,
        None,
    )


def common_words(first, second, *, literal=False):
    """Words that either automaton names, with their weights in both.

    Parameters
    ----------
    first, second : WTA
        The automata.
    literal : bool, default=False
        Whether the unknown word is a word like any other, as it is for sums over all
        trees.

    Returns
    -------
    words : tuple of str
    omegas : list of two ndarray of float64, shape (n_words, n)
        Terminal weights; those of the unknown word, or zero, for a word that an
        automaton does not name.
    unknown_word : str or None
        The word that is unknown to both; None where neither has an unknown word.
    """
    unknown = [None if literal else wta.unknown_word for wta in (first, second)]
    named, unknown_word = {*first.words, *second.words}, None
    if any(word is not None for word in unknown):
        unknown_word = _unknown_to_both(first, second)
        named.add(unknown_word)
    words = tuple(sorted(named))
    omegas = [_omega(first, words, unknown[0]), _omega(second, words, unknown[1])]
    return words, omegas, unknown_word


def _unknown_to_both(first, second):
    """A word that neither automaton names, except as its unknown word."""

    def suits(word):
        return all(
            word not in wta.words or word == wta.unknown_word for wta in (first, second)
        )

    names = filter(None, (first.unknown_word, second.unknown_word))
    fresh = ("<unknown>" + "'" * primes for primes in count())
    return next(filter(suits, chain(names, fresh)))


def _labels(first, second):
    if first.labels is None:
        return None
    return tuple(sorted({*first.labels, *second.labels}))


def _omega(wta, words, unknown):
    if words == wta.words:
        return wta.omega_matrix
    place = {word: i for i, word in enumerate(wta.words)}
    other = place.get(unknown, -1)
    rows = np.array([place.get(word, other) for word in words])
    return np.vstack([wta.omega_matrix, np.zeros(wta.n_states)])[rows]


def _tensors(wta, labels):
    if labels is None:
        return wta.tensors
    empty = np.zeros(0, dtype=np.int32)
    none = SparseTensor(empty, empty, empty, np.zeros(0), wta.n_states)
    known = dict(zip(wta.labels, wta.tensors, strict=True))
    return [known.get(label, none) for label in labels]
