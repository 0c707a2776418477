"""Agreement between the attributes of a fitted estimator.

Compiled loops trust the ids that they are given, so what comes from a file or a pickle
is checked before the first of them runs. Each class states what always holds of it:

* learners of L-PCFGs: a model and a plain PCFG over the same symbols, as many states as
  the model has; those of EM one vector of emissions for each lexical rule; those of the
  spectral method projections of the features that they were fitted with;
* `MarginEMPCFG`: one probability and one binomial per rule;
* transformers: names that are strings, and a positive count of each feature;
* language models: a vocabulary with the symbols of its mode, one row of probabilities
  per word, or tables of n-grams whose keys rise;
* all estimators: models of the expected class, and, once they are fitted, parameters
  that ``fit`` would accept.

The models themselves (`LPCFG`, `CFG`, `WTA`, symbol tables) are checked by their
constructors.
"""

from itertools import pairwise
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from lpcfg_sk._ragged import find_keys
from lpcfg_sk.automata import WTA
from lpcfg_sk.cfg import CFG
from lpcfg_sk.language_model import (
    AggregateMarkovLM,
    InterpolatedLM,
    KneserNeyLM,
    NGramTable,
)
from lpcfg_sk.lpcfg import LPCFG


def check_state(estimator):
    """Raise ValueError if attributes of an estimator do not belong together.

    Estimators out of files and pickles have been checked. After attributes were set by
    hand it says early what would be an error or nonsense later.

    Parameters
    ----------
    estimator : object
        An estimator, fitted or not, or a part of one.

    Raises
    ------
    ValueError
        If attributes do not fit each other, or parameters are not those of a fit.

    Examples
    --------
    >>> from lpcfg_sk import CFG, MarginEMPCFG
    >>> from lpcfg_sk.persistence import check_state
    >>> grammar = CFG.from_string("S -> 'a' S | 'b'")
    >>> model = MarginEMPCFG(grammar).fit([["a", "b"], ["b"], ["a", "a", "b"]])
    >>> check_state(model)
    >>> model.theta_ = model.theta_ * 3
    >>> check_state(model)
    Traceback (most recent call last):
    ValueError: the attributes of a MarginEMPCFG do not belong together: expected a
    probability between 0 and 1 for each rule
    """
    state = vars(estimator)
    for expected, holds in _EXPECTED.items():
        if not holds(state):
            raise ValueError(
                f"the attributes of a {type(estimator).__name__} do not belong "
                f"together: expected {expected}"
            )
    if isinstance(estimator, KneserNeyLM) and not _levels(estimator):
        raise ValueError("the tables of n-grams do not fit the vocabulary")
    if isinstance(estimator, InterpolatedLM) and not _members(estimator):
        raise ValueError(
            "the models of a mixture have one vocabulary, and weights that sum to one"
        )
    if isinstance(estimator, NGramTable) and not _is_table(estimator):
        raise ValueError("a table of n-grams holds rising keys and probabilities")
    fitted = any(n.endswith("_") and not n.startswith("_") for n in state)
    if fitted and isinstance(estimator, BaseEstimator):
        # Methods rely on parameters that a fit has checked.
        estimator._validate_params()


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
        and coarse.arrays.n_states.max(initial=1) == 1
        and not coarse.arrays.is_signed
        and type(state.get("binarized_")) is bool
    )


def _numbers_of_states(state):
    grammar, m = state.get("grammar_"), state.get("m_")
    if not isinstance(grammar, LPCFG) or m is None:
        return True
    return m == grammar.m


def _emissions(state):
    if "_emissions" not in state:
        return True
    word, label, values = state["_emissions"]
    grammar = state["grammar_"]
    return (
        _is_ids(word, len(grammar.words), increasing=False)
        and _is_ids(label, len(grammar.nonterminals), increasing=False)
        and len(word) == len(label)
        and _is_floats(values, (int(grammar.arrays.n_states[label].sum()),))
        and bool((values >= 0).all())
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
    # The unknown word comes first, the end of the sentence second.
    least = 1 + (state.get("mode") == "sentence")
    return (
        vocabulary.ndim == 1
        and len(vocabulary) >= least
        and all(isinstance(word, str) for word in vocabulary)
        and index == {w: i for i, w in enumerate(vocabulary)}
    )


def _states_of_words(state):
    # A pivot learner keeps estimates of this name by nonterminal; no loop reads them.
    if isinstance(state.get("r_", {}), dict):
        return True
    n, m = len(state["vocabulary_"]), state["m_"]
    contexts = n + (state["mode"] == "sentence") + 1
    return (
        _is_count(m)
        and m > 0
        and _is_distribution(state["r_"], (contexts, m), axis=1)
        and _is_distribution(state["s_"], (n, m), axis=0)
        and _is_distribution(state["pi_"], (m,), axis=0)
        and _is_distribution(state["unigram_"], (n,), axis=0)
        and state["r_"].dtype == state["s_"].dtype
    )


def _members(mixture):
    """Whether a mixture has one weight and the vocabulary for each of its models."""
    members = getattr(mixture, "estimators_", None)
    if members is None:
        return True
    words = mixture.vocabulary_
    return _is_distribution(mixture.weights_, (len(members),), axis=0) and all(
        isinstance(model, AggregateMarkovLM | KneserNeyLM)
        and model.mode == mixture.mode
        and np.array_equal(model.vocabulary_, words)
        for model in members
    )


def _levels(model):
    """Whether the tables of n-grams fit the vocabulary, and each other."""
    state = vars(model)
    if "_levels" not in state:
        return True
    levels, n = state["_levels"], len(state["vocabulary_"])
    if len(levels) != state["order"] or not all(
        isinstance(level, NGramTable) and _is_table(level) for level in levels
    ):
        return False
    # Outcomes and the start symbol can stand in a history.
    return (
        levels[0].history_keys.tolist() == [0]
        and all(_keys_end(level, n) <= len(level.history_keys) * n for level in levels)
        and all(bool((level.outcome == level.keys % n).all()) for level in levels)
        and all(
            longer.history_keys.max(initial=0) < len(shorter.history_keys) * (n + 1)
            for shorter, longer in pairwise(levels)
        )
        and all(
            level.discounts.any()
            or (_proba(levels[: i + 1], n, *np.divmod(level.keys, n)) >= -1e-6).all()
            for i, level in enumerate(levels)
        )
    )


def _proba(levels, n, history, outcome):
    """Probabilities of n-grams over n outcomes, by numbers of histories."""
    if not levels:
        return np.full(len(outcome), 1.0 / n)
    level = levels[-1]
    # The nearest words of a history are that of the shorter n-gram.
    shorter = level.history_keys[history] // (n + 1)
    proba = level.backoff[history] * _proba(levels[:-1], n, shorter, outcome)
    place = find_keys(level.keys, history * n + outcome)
    proba[place >= 0] += level.proba[place[place >= 0]]
    return proba


def _keys_end(level, n):
    return int(level.keys[-1]) + 1 if len(level.keys) else 0


def _is_table(level):
    n_keys, n_histories = len(level.keys), len(level.history_keys)
    bounds = level.offsets
    return (
        _is_ids(level.history_keys)
        and _is_ids(level.keys)
        and _is_ids(level.outcome, increasing=False)
        and _is_ids(bounds, increasing=False)
        and level.outcome.shape == (n_keys,)
        and bounds.shape == (n_histories + 1,)
        and (int(bounds[0]), int(bounds[-1])) == (0, n_keys)
        and bool((bounds[1:] >= bounds[:-1]).all())
        and _is_floats(level.discounts, (3,))
        and _are_shares(level, n_keys, n_histories)
    )


def _are_shares(level, n_keys, n_histories):
    """Whether n-grams and histories have the probabilities that the smoothing needs."""
    proba, backoff = level.proba, level.backoff
    if level.discounts.any():
        return _is_distribution(proba, (n_keys,)) and _is_distribution(
            backoff, (n_histories,)
        )
    # Without discounts a table comes from an ARPA file. Other smoothings than
    # Kneser-Ney can list an n-gram with less than its share of the shorter history,
    # and have weights above one.
    return (
        _is_floats(proba, (n_keys,))
        and _is_floats(backoff, (n_histories,))
        and bool((proba <= 1 + 1e-6).all() and (backoff >= 0).all())
    )


def _features(state):
    counts = state.get("counts_")
    if "n_features_out_" not in state or not isinstance(counts, np.ndarray):
        return True
    return (
        counts.ndim == 1
        and counts.dtype.kind in "if"
        and bool(np.isfinite(counts).all() and (counts > 0).all())
        and state["n_features_out_"] == len(counts)
        and _is_count(state["n_nodes_"])
    )


def _label_names(state):
    # Without a limit on rare memories there is no set of them.
    sets = state.get("preterminals_"), state.get("memories_")
    return all(
        isinstance(names, frozenset) and all(isinstance(name, str) for name in names)
        for names in sets
        if names is not None
    )


def _binomials(state):
    binomials, grammar = state.get("binomials_"), state.get("grammar_")
    if binomials is None:
        return True
    return sorted(binomials["rule"]) == sorted(str(rule) for rule in grammar.rules)


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
        _is_count(m)
        and m <= k
        and _is_floats(projection.singular_values, (k,))
        # What `transform` divides by.
        and bool((projection.singular_values[:m] > 0).all())
        and _is_count(state["n_inside_features_"])
        and all(
            _is_ids(columns) and _is_floats(weights, (len(columns), k))
            for columns, weights in sides
        )
        and bool((projection.inside < state["n_inside_features_"]).all())
        and bool((projection.outside < n_outside).all())
    )


def _is_count(value):
    return isinstance(value, Integral) and not isinstance(value, bool) and value >= 0


def _is_ids(array, end=None, *, increasing=True):
    """Whether an array holds ids, which increase and are below an end."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "i"
        and array.ndim == 1
        and bool((array >= 0).all())
        and (end is None or bool((array < end).all()))
        and (not increasing or bool((array[1:] > array[:-1]).all()))
    )


def _is_distribution(array, shape, axis=None):
    """Whether an array holds probabilities, which rounding may have disturbed.

    Those along an axis, if one is given, sum to one.
    """
    return (
        _is_floats(array, shape)
        and array.dtype.itemsize >= 4
        and bool(((array >= 0) & (array <= 1 + 1e-6)).all())
        and (
            axis is None
            or bool((np.abs(array.sum(axis=axis, dtype=float) - 1) < 1e-3).all())
        )
    )


def _is_floats(array, shape):
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
        and array.shape == shape
        and bool(np.isfinite(array).all())
    )


_EXPECTED = {
    "models of the expected classes": _kinds,
    "the same symbols in the model and the coarse model": _symbols,
    "a probability between 0 and 1 for each rule": _probabilities,
    "as many states as the model has": _numbers_of_states,
    "one vector of emissions for each lexical rule": _emissions,
    "ids of words in the order of the vocabulary": _word_ids,
    "one row of parameters for each word": _states_of_words,
    "a vocabulary that begins the table of words": _words,
    "a positive count of each feature": _features,
    "names of labels": _label_names,
    "one binomial for each rule": _binomials,
    "singular vectors of the features of each nonterminal": _projections,
}
