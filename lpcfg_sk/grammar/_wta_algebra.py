"""Automata of sums and products of two functions."""

import numpy as np

from lpcfg_sk.grammar._tensors import SparseTensor, direct_sum, hadamard

__all__ = ["product_parts", "sum_parts"]


def sum_parts(first, second):
    """Parts of the automaton of f + g: both automata side by side.

    Parameters
    ----------
    first, second : WTA
        Automata over the same kind of trees; a word or a node label that one of
        them does not know has weight zero there.

    Returns
    -------
    tuple
        alpha, tensors, omega, words, labels, unknown_word and states. The word for
        unknown ones is kept where both have the same.
    """
    words = tuple(sorted({*first.words, *second.words}))
    labels = _labels(first, second)
    pairs = zip(_tensors(first, labels), _tensors(second, labels), strict=True)
    same = first.unknown_word == second.unknown_word
    return (
        np.concatenate([first.alpha, second.alpha]),
        [direct_sum(a, b) for a, b in pairs],
        np.hstack([_omega(first, words), _omega(second, words)]),
        words,
        labels,
        first.unknown_word if same else None,
        None,
    )


def product_parts(first, second):
    """Parts of the automaton of f · g, whose states are pairs of states.

    Parameters
    ----------
    first, second : WTA
        Automata over the same kind of trees.

    Returns
    -------
    tuple
        alpha, tensors, omega, words, labels, unknown_word and states.
    """
    words = tuple(sorted({*first.words} & {*second.words}))
    if not words:
        raise ValueError("The automata share no word; their product is zero.")
    labels = _labels(first, second)
    pairs = zip(_tensors(first, labels), _tensors(second, labels), strict=True)
    omega = _omega(first, words)[:, :, None] * _omega(second, words)[:, None, :]
    return (
        np.kron(first.alpha, second.alpha),
        [hadamard(a, b) for a, b in pairs],
        omega.reshape(len(words), -1),
        words,
        labels,
        None,
        None,
    )


def _labels(first, second):
    if first.labels is None:
        return None
    return tuple(sorted({*first.labels, *second.labels}))


def _omega(wta, words):
    place = {word: i for i, word in enumerate(wta.words)}
    rows = np.array([place.get(word, -1) for word in words])
    return np.vstack([wta.omega_matrix, np.zeros(wta.n_states)])[rows]


def _tensors(wta, labels):
    if labels is None:
        return wta.tensors
    empty = np.zeros(0, dtype=np.int32)
    none = SparseTensor(empty, empty, empty, np.zeros(0), wta.n_states)
    known = dict(zip(wta.labels, wta.tensors, strict=True))
    return [known.get(label, none) for label in labels]
