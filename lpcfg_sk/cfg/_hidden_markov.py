"""Hidden Markov models as context-free grammars."""

import numpy as np
import pandas as pd

from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._rules import Rule


def hmm_to_cfg(initial, transition, emission, *, stop, words=None):
    """Write a hidden Markov model as a context-free grammar with probabilities.

    Parameters
    ----------
    initial : array-like of float, shape (n_states,)
        Probabilities of the first state.
    transition : array-like of float, shape (n_states, n_states)
        Probabilities of the next state; a row and its entry of `stop` sum to one.
    emission : array-like of float, shape (n_states, n_words)
        Probabilities of the words of each state.
    stop : array-like of float, shape (n_states,)
        Probability that a state is the last one.
    words : sequence of str, default=None
        The words; ``"0"``, ``"1"``, ... where None.

    Returns
    -------
    grammar : CFG
        Rules ``S -> Qi``, ``Qi -> Ei Qj | Ei`` and ``Ei -> 'word'``, one multinomial
        for each of the model's, so that the derivations of a sentence are its
        sequences of states (section 3 of Cohen and Smith, 2012).
    theta : Series of float
        Probabilities of the rules, in the order of ``grammar.rules``.

    Examples
    --------
    >>> from lpcfg_sk.cfg import entropy, hmm_to_cfg
    >>> grammar, theta = hmm_to_cfg(
    ...     [1.0, 0.0], [[0.5, 0.3], [0.2, 0.6]], [[0.9, 0.1], [0.4, 0.6]],
    ...     stop=[0.2, 0.2], words=["a", "b"])
    >>> print(grammar)
    S -> Q0 | Q1
    Q0 -> E0 Q0 | E0 Q1 | E0
    E0 -> 'a' | 'b'
    Q1 -> E1 Q0 | E1 Q1 | E1
    E1 -> 'a' | 'b'
    >>> round(entropy(grammar, theta), 4)
    7.3491
    """
    initial, transition, emission, stop = (
        np.asarray(x, dtype=float) for x in (initial, transition, emission, stop)
    )
    n, n_words = len(initial), emission.shape[-1]
    words = [str(i) for i in range(n_words)] if words is None else list(words)
    for name, values, shape in (
        ("initial", initial, (n,)),
        ("transition", transition, (n, n)),
        ("emission", emission, (n, len(words))),
        ("stop", stop, (n,)),
    ):
        if values.shape != shape or not (values >= 0).all():
            raise ValueError(
                f"{name} must have shape {shape} and no negative entries, got shape "
                f"{values.shape}"
            )
    for name, totals in (
        ("initial", initial.sum(keepdims=True)),
        ("transition and stop", transition.sum(axis=1) + stop),
        ("emission", emission.sum(axis=1)),
    ):
        if not np.allclose(totals, 1, rtol=0, atol=1e-8):
            raise ValueError(f"probabilities of {name} must sum to one, got {totals}")
    theta = {}
    for i in range(n):
        theta[Rule("S", (f"Q{i}",), (False,))] = initial[i]
    for i in range(n):
        for j in range(n):
            theta[Rule(f"Q{i}", (f"E{i}", f"Q{j}"), (False, False))] = transition[i, j]
        theta[Rule(f"Q{i}", (f"E{i}",), (False,))] = stop[i]
        for word, value in zip(words, emission[i], strict=True):
            theta[Rule(f"E{i}", (word,), (True,))] = value
    grammar = CFG(theta)
    values = [theta[rule] for rule in grammar.rules]
    return grammar, pd.Series(values, [str(r) for r in grammar.rules], name="theta")
