"""Automata as plain data and arrays, and back."""

import numpy as np

from lpcfg_sk.automata._tensors import as_tensor

__all__ = ["automaton_data", "automaton_parts"]

_FACTORS = {"sparse": ("i", "j", "k", "weight"), "cp": ("a", "b", "c")}


def automaton_data(wta):
    """Take an automaton apart.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    meta : dict
        Names, as JSON data.
    arrays : dict of str to ndarray
        Weights.
    """
    arrays = {"alpha": wta.alpha, "omega": wta.omega_matrix}
    for number, tensor in enumerate(wta.tensors):
        for name, array in tensor.arrays().items():
            arrays[f"T{number}_{name}"] = array
    meta = {
        "words": list(wta.words),
        "labels": None if wta.labels is None else list(wta.labels),
        "kinds": [t.kind for t in wta.tensors],
        "unknown_word": wta.unknown_word,
        "states": None if wta.states is None else list(wta.states),
    }
    return meta, arrays


def automaton_parts(meta, arrays):
    """Check what `automaton_data` made, which may come from anywhere.

    Parameters
    ----------
    meta : dict
        Names.
    arrays : dict of str to ndarray
        Weights.

    Returns
    -------
    parts : tuple
        Initial weights, tensors, terminal weights, words, labels, unknown word, and
        names of the states.

    Raises
    ------
    ValueError
        If the data does not describe an automaton.
    """
    try:
        return _parts(meta, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"the data does not describe an automaton: {error}") from error


def _parts(meta, arrays):
    alpha, omega = (_finite(arrays[name], name) for name in ("alpha", "omega"))
    words, labels, states = _names(meta, "words"), None, None
    if meta["labels"] is not None:
        labels = _names(meta, "labels")
    if meta["states"] is not None:
        states = _names(meta, "states")
    n = alpha.size
    if alpha.ndim != 1 or omega.shape != (len(words), n):
        raise ValueError(
            f"alpha of shape {alpha.shape} and omega of shape {omega.shape} do not "
            f"belong to an automaton over {len(words)} words"
        )
    tensors = []
    for number, kind in enumerate(meta["kinds"]):
        names = _FACTORS.get(kind, ("dense",))
        factors = tuple(arrays[f"T{number}_{name}"] for name in names)
        tensors.append(as_tensor(factors if kind in _FACTORS else factors[0], n))
    if len(tensors) != (1 if labels is None else len(labels)):
        raise ValueError(f"{len(tensors)} tensors were found for the labels {labels}")
    unknown = meta["unknown_word"]
    if unknown is not None and unknown not in words:
        raise ValueError(f"the unknown word {unknown!r} is not a word")
    if states is not None and len(states) != n:
        raise ValueError(f"{len(states)} names were found for {n} states")
    return alpha, tensors, omega, words, labels, unknown, states


def _names(meta, key):
    names = tuple(meta[key])
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"the {key} of an automaton are strings")
    if key != "states" and len(set(names)) < len(names):
        raise ValueError(f"the {key} of an automaton differ from each other")
    return names


def _finite(array, name):
    array = np.asarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds nan or infinity")
    return array
