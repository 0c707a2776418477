"""Changes of basis, and automata of sums and products of functions."""

from itertools import chain, count
from numbers import Real

import numpy as np
from scipy.linalg import block_diag

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._tensors import CPTensor, DenseTensor, SparseTensor

#: Above this share of non-zeros a tensor is cheaper to keep dense.
_DENSE_SHARE = 0.1


class AlgebraOfFunctions:
    """Methods of tree automata that return other automata."""

    def conjugate(self, Q):
        """Change the basis of the states; f does not change.

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
        with one_blas_thread():
            try:
                inverse = np.linalg.inv(Q)
            except np.linalg.LinAlgError:
                raise ValueError(
                    "Q is singular; a basis change is invertible."
                ) from None
            tensors = [t.project(inverse.T, Q, Q) for t in self.tensors]
            omega = self.omega_matrix @ inverse.T
            return self._derived(Q.T @ self.alpha, tensors, omega)

    def reweight(self, gamma):
        """Weight trees by their size: t ↦ γ^size(t) f(t), size = inner nodes.

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
        # The states of the product are pairs of states.
        pairs, (omega1, omega2), names = _over_same_alphabet(self, other)
        tensors = [kronecker(a, b) for a, b in pairs]
        omega = (omega1[:, :, None] * omega2[:, None, :]).reshape(len(omega1), -1)
        return self._build(np.kron(self.alpha, other.alpha), tensors, omega, *names)

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
        Automata over the same kind of trees. A word or node label that one of them
        lacks has weight zero there, or the weight of its unknown word.
    literal : bool, default=False
        See `common_words`.

    Returns
    -------
    tuple
        alpha, tensors, omega, words, labels, unknown_word and states.
    """
    pairs, omegas, names = _over_same_alphabet(first, second, literal=literal)
    tensors = [direct_sum(a, b) for a, b in pairs]
    alpha = np.concatenate([first.alpha, second.alpha])
    return alpha, tensors, np.hstack(omegas), *names


def _over_same_alphabet(first, second, *, literal=False):
    """Weights of two automata over the union of their words and of their node labels.

    Returns
    -------
    pairs : list of tuple (tensor, tensor)
        One per label.
    omegas : list of two ndarray of float64, shape (n_words, n)
    names : tuple
        words, labels, unknown_word, and None for the names of the states.
    """
    words, omegas, unknown_word = common_words(first, second, literal=literal)
    labels, tensors = None, (first.tensors, second.tensors)
    if first.labels is not None:
        labels = tuple(sorted({*first.labels, *second.labels}))
        tensors = []
        for wta in (first, second):
            known = dict(zip(wta.labels, wta.tensors, strict=True))
            none = SparseTensor.zeros(wta.n_states)
            tensors.append([known.get(label, none) for label in labels])
    pairs = list(zip(*tensors, strict=True))
    return pairs, omegas, (words, labels, unknown_word, None)


def common_words(first, second, *, literal=False):
    """Words that either automaton names, with their weights in both.

    Parameters
    ----------
    first, second : WTA
        The automata.
    literal : bool, default=False
        Whether to treat the unknown word as a word like any other, as sums over all
        trees do.

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
    pairs = zip((first, second), unknown, strict=True)
    omegas = [_omega_of_words(wta, words, word) for wta, word in pairs]
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


def _omega_of_words(wta, words, unknown):
    if words == wta.words:
        return wta.omega_matrix
    place = {word: i for i, word in enumerate(wta.words)}
    other = place.get(unknown, -1)
    rows = np.array([place.get(word, other) for word in words])
    return np.vstack([wta.omega_matrix, np.zeros(wta.n_states)])[rows]


def direct_sum(first, second):
    """Direct sum, the tensor of two automata side by side.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
        Over n + n' states, block-diagonal in all three modes.
    """
    if first.kind == second.kind == "cp":
        factors = zip(first.factors, second.factors, strict=True)
        return CPTensor(*(block_diag(f, g) for f, g in factors))
    n = first.n + second.n
    *index, weight = first.entries()
    *other_index, other_weight = second.entries()
    index = [
        np.concatenate([a, b + np.int32(first.n)])
        for a, b in zip(index, other_index, strict=True)
    ]
    tensor = SparseTensor(*index, np.concatenate([weight, other_weight]), n)
    if tensor.weight.size > _DENSE_SHARE * n**3:
        return DenseTensor(tensor.to_dense())
    return tensor


def add_tensors(tensors):
    """Add tensors over the same states.

    Parameters
    ----------
    tensors : sequence of tensors
        At least one.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if len(tensors) == 1:
        return tensors[0]
    kinds = {t.kind for t in tensors}
    if kinds == {"cp"}:
        return CPTensor(
            *map(np.hstack, zip(*(t.factors for t in tensors), strict=True))
        )
    if kinds == {"sparse"}:
        parts = [(t.i, t.j, t.k, t.weight) for t in tensors]
        return SparseTensor(
            *(np.concatenate(column) for column in zip(*parts, strict=True)),
            tensors[0].n,
        )
    return DenseTensor(sum(t.to_dense() for t in tensors))


def kronecker(first, second):
    """Kronecker product, the tensor of the product of two functions.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    SparseTensor
        Over n · n' states.
    """
    *index, weight = first.entries()
    *other_index, other_weight = second.entries()
    joint = [
        np.add.outer(a.astype(np.int64) * second.n, b).ravel()
        for a, b in zip(index, other_index, strict=True)
    ]
    weight = np.multiply.outer(weight, other_weight).ravel()
    return SparseTensor(*joint, weight, first.n * second.n)
