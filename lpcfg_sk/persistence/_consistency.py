"""Agreement between the attributes of a fitted estimator.

Compiled loops trust the ids that they are given, so what comes from a file is checked
before the first of them runs.
"""

import numpy as np

from lpcfg_sk.automata import WTA
from lpcfg_sk.cfg import CFG
from lpcfg_sk.lpcfg import LPCFG


def check_estimator(estimator):
    """Raise ValueError if attributes of an estimator do not belong together.

    Parameters
    ----------
    estimator : object
        An estimator, fitted or not, or a part of one.
    """
    state = vars(estimator)
    for expected, holds in _EXPECTED.items():
        if not holds(state):
            raise ValueError(
                f"the attributes of a {type(estimator).__name__} do not belong "
                f"together: expected {expected}"
            )


_KINDS = {"grammar_": CFG | LPCFG, "coarse_": LPCFG, "wta_": WTA, "original_": WTA}


def _kinds(state):
    return all(isinstance(state.get(k), kind | None) for k, kind in _KINDS.items())


def _symbols(state):
    grammar, coarse = state.get("grammar_"), state.get("coarse_")
    if grammar is None or coarse is None:
        return True
    return (
        isinstance(grammar, LPCFG)
        and grammar.nonterminals == coarse.nonterminals
        and grammar.words == coarse.words
    )


def _probabilities(state):
    theta, grammar = state.get("theta_"), state.get("grammar_")
    if theta is None:
        return True
    values = theta.to_numpy()
    return (
        isinstance(grammar, CFG)
        and _is_floats(values, (len(grammar.rules),))
        and bool(((values >= 0) & (values <= 1)).all())
    )


def _word_ids(state):
    index, vocabulary = state.get("_index"), state.get("vocabulary_")
    if index is None:
        return True
    return vocabulary.ndim == 1 and index == {w: i for i, w in enumerate(vocabulary)}


def _states_of_words(state):
    # A pivot learner keeps estimates of this name by nonterminal; no loop reads them.
    if isinstance(state.get("r_", {}), dict):
        return True
    n, m = len(state["vocabulary_"]), state["m_"]
    contexts = n + (state["mode"] == "sentence") + 1
    return (
        _is_floats(state["r_"], (contexts, m))
        and _is_floats(state["s_"], (n, m))
        and _is_floats(state["pi_"], (m,))
        and _is_floats(state["unigram_"], (n,))
    )


def _words(state):
    table, vocabulary = state.get("words_"), state.get("vocabulary_")
    if table is None or vocabulary is None:
        return True
    kept = {word: i for i, word in enumerate(table.strings[: len(vocabulary)])}
    return (
        vocabulary == kept
        and tuple(state["classes_"]) == table.strings[len(vocabulary) :]
    )


def _projections(state):
    projections = state.get("projections_")
    if projections is None:
        return True
    names = set(state["grammar_"].nonterminals)
    return projections.keys() == names == state["m_"].keys() and all(
        _is_projection(p, state["m_"][name], state) for name, p in projections.items()
    )


def _is_projection(projection, m, state):
    # Earlier versions did not store the number of outside features.
    n_outside = state.get("n_outside_features_", np.inf)
    sides = (projection.inside, projection.U), (projection.outside, projection.V)
    k = len(projection.singular_values)
    return (
        m <= k
        and all(
            _is_ids(columns) and _is_floats(weights, (len(columns), k))
            for columns, weights in sides
        )
        and bool((projection.inside < state["n_inside_features_"]).all())
        and bool((projection.outside < n_outside).all())
    )


def _is_ids(array):
    """Whether an array holds increasing numbers of columns."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "i"
        and array.ndim == 1
        and bool((array >= 0).all())
        and bool((array[1:] > array[:-1]).all())
    )


def _is_floats(array, shape):
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
        and array.shape == shape
        and bool(np.isfinite(array).all())
    )


_EXPECTED = {
    "models of the classes that their names say": _kinds,
    "the same symbols in the model and the coarse model": _symbols,
    "a probability between 0 and 1 for each rule": _probabilities,
    "ids of words in the order of the vocabulary": _word_ids,
    "one row of parameters for each word": _states_of_words,
    "a vocabulary that begins the table of words": _words,
    "singular vectors of the features of each nonterminal": _projections,
}
