"""Automata of grammars, of arrays and of saved data, and back.

The automaton of a grammar is that of section 5.1 of Rabusseau, Balle and Cohen (2016).
"""

import numpy as np

from lpcfg_sk._ragged import offsets
from lpcfg_sk.automata._algebra import add_tensors
from lpcfg_sk.automata._tensors import CPTensor, DenseTensor, SparseTensor
from lpcfg_sk.lpcfg import LPCFG

#: Names of the arrays of each kind of tensor but the dense one in a saved file.
_FACTORS = {"sparse": ("i", "j", "k", "weight"), "cp": ("a", "b", "c")}


def automaton_of_grammar(grammar):
    """Take the weights of the automaton over (nonterminal, latent state) pairs.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar, also one with signed parameters.

    Returns
    -------
    alpha : ndarray of float64, shape (n,)
    tensor : SparseTensor
    omega : ndarray of float64, shape (n_words, n)
    states : tuple of str
        The nonterminal, followed by ``#h`` where it has more than one state.
    """
    a = grammar.arrays
    first = offsets(a.n_states)
    n = int(first[-1])

    alpha = np.zeros(n)
    alpha[a.states(a.root_label)] = a.root

    rule, *states = a.binary_states()
    labels = a.rule_parent, a.rule_left, a.rule_right
    live = a.binary != 0
    index = [
        (first[label[rule]] + state)[live]
        for label, state in zip(labels, states, strict=True)
    ]
    tensor = SparseTensor(*index, a.binary[live], n)

    omega = np.zeros((len(grammar.words), n))
    word = np.repeat(a.lex_word, np.diff(a.lex_offset))
    omega[word, a.states(a.lex_label)] = a.lexical

    states = []
    for name, count in grammar.m.items():
        states += [name] if count == 1 else [f"{name}#{h}" for h in range(count)]
    return alpha, tensor, omega, tuple(states)


def grammar_of_automaton(wta):
    """Build the weighted grammar with one nonterminal per state.

    Parameters
    ----------
    wta : WTA
        The automaton; node labels are summed out.

    Returns
    -------
    LPCFG
        One latent state per nonterminal; weights of zero are left out.
    """
    states = _distinct(wta.states or [f"q{i}" for i in range(wta.n_states)])
    alpha, omega, words = wta.alpha, wta.omega_matrix, wta.words
    i, j, k, weight = add_tensors(wta.tensors).entries()
    binary = {
        (states[a], states[b], states[c]): np.full((1, 1, 1), w)
        for a, b, c, w in zip(i, j, k, weight, strict=True)
    }
    word, state = np.nonzero(omega)
    lexical = {
        (states[a], words[x]): omega[x, a : a + 1]
        for x, a in zip(word, state, strict=True)
    }
    root = {states[a]: alpha[a : a + 1] for a in np.flatnonzero(alpha)}
    unknown_word = wta.unknown_word
    if unknown_word is not None and not omega[words.index(unknown_word)].any():
        unknown_word = None
    return LPCFG.from_parameters(binary, lexical, root, unknown_word=unknown_word)


def _distinct(names):
    """Add primes to names that an earlier state has."""
    seen = {}
    for name in names:
        while name in seen:
            name += "'"
        seen[name] = None
    return list(seen)


def as_tensor(value, n):
    """Read a transition tensor in any of its three forms.

    Parameters
    ----------
    value : array-like of shape (n, n, n), tuple or tensor
        A dense array; coordinates ``((i, j, k), weight)`` or
        ``(i, j, k, weight)``; CP factors ``(A, B, C)``, three n × R arrays.
    n : int
        Number of states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if isinstance(value, DenseTensor | SparseTensor | CPTensor):
        tensor = value
    elif isinstance(value, tuple) and len(value) in (2, 4):
        tensor = _from_coordinates(value, n)
    elif isinstance(value, tuple) and len(value) == 3 and _are_factors(value, n):
        tensor = CPTensor(*(np.array(factor, dtype=np.float64) for factor in value))
    else:
        array = _dense_array(value)
        if array.shape != (n, n, n):
            raise ValueError(
                f"T should have shape {(n, n, n)} to match the {n} initial weights "
                f"in alpha, or be coordinates (i, j, k, weight), or three CP factors "
                f"of shape ({n}, R); got shape {array.shape}."
            )
        tensor = DenseTensor(array)
    if tensor.n != n:
        raise ValueError(
            f"T is over {tensor.n} states, but alpha has {n} initial weights."
        )
    for name, array in tensor.arrays().items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"T holds nan or infinity (in {name!r}).")
    return tensor


def _dense_array(value):
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "T should be an n × n × n array, coordinates (i, j, k, weight), or three "
            f"CP factors of one shape (n, R); it cannot be read as numbers: {error}."
        ) from None


def _are_factors(value, n):
    shapes = [np.shape(f) for f in value]
    return all(len(s) == 2 and s[0] == n for s in shapes) and len(set(shapes)) == 1


def _from_coordinates(value, n):
    if len(value) == 2 and len(value[0]) == 3:
        (i, j, k), weight = value
    elif len(value) == 4:
        i, j, k, weight = value
    else:
        raise ValueError(
            "T is a pair, but not one of coordinates ((i, j, k), weight); give a dense "
            "T as an array."
        )
    index = [np.asarray(a) for a in (i, j, k)]
    weight = np.asarray(weight, dtype=np.float64)
    if any(a.ndim != 1 or a.shape != weight.shape for a in index):
        raise ValueError(
            "Sparse coordinates of T should be four arrays of one length, (i, j, k, "
            f"weight); got shapes {[a.shape for a in index]} and {weight.shape}."
        )
    for name, a in zip("ijk", index, strict=True):
        if a.size and (a.dtype.kind not in "iu" or a.min() < 0 or a.max() >= n):
            raise ValueError(
                f"Coordinate {name} of T should hold integers from 0 to {n - 1}."
            )
    return SparseTensor(*index, weight, n)


def automaton_data(wta):
    """Take an automaton apart into plain data and arrays.

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
    for t, tensor in enumerate(wta.tensors):
        for name, array in tensor.arrays().items():
            arrays[f"T{t}_{name}"] = array
    meta = {
        "words": list(wta.words),
        "labels": None if wta.labels is None else list(wta.labels),
        "kinds": [t.kind for t in wta.tensors],
        "unknown_word": wta.unknown_word,
        "states": None if wta.states is None else list(wta.states),
    }
    return meta, arrays


def automaton_parts(meta, arrays):
    """Check untrusted data in the form of `automaton_data`.

    Parameters
    ----------
    meta : dict
        Names.
    arrays : dict of str to ndarray
        Weights.

    Returns
    -------
    tuple
        Initial weights, tensors, terminal weights, words, labels, unknown word, and
        names of the states.

    Raises
    ------
    ValueError
        If the data does not describe an automaton.
    """
    try:
        return _checked_parts(meta, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"the data does not describe an automaton: {error}") from error


def _checked_parts(meta, arrays):
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
    for t, kind in enumerate(meta["kinds"]):
        names = _FACTORS.get(kind, ("dense",))
        factors = tuple(arrays[f"T{t}_{name}"] for name in names)
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
