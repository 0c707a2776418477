"""Grammars as tree automata and back (section 5.1 of Rabusseau et al., 2016)."""

import numpy as np

from lpcfg_sk._ragged import ragged_indices
from lpcfg_sk.automata._tensors import SparseTensor

__all__ = ["automaton_of_grammar", "grammar_of_automaton"]


def automaton_of_grammar(grammar):
    """Parts of the automaton whose states are (nonterminal, latent state) pairs.

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
    m = a.n_states.astype(np.int64)
    first = np.concatenate([[0], np.cumsum(m)])
    n = int(first[-1])

    alpha = np.zeros(n)
    alpha[ragged_indices(first[a.root_label], m[a.root_label])] = a.root

    rule = np.repeat(np.arange(len(a.rule_parent)), np.diff(a.rule_offset))
    within = np.arange(len(a.binary)) - a.rule_offset[rule]
    m_left, m_right = m[a.rule_left[rule]], m[a.rule_right[rule]]
    i = first[a.rule_parent[rule]] + within // (m_left * m_right)
    j = first[a.rule_left[rule]] + within // m_right % m_left
    k = first[a.rule_right[rule]] + within % m_right
    live = a.binary != 0
    tensor = SparseTensor(i[live], j[live], k[live], a.binary[live], n)

    omega = np.zeros((len(grammar.words), n))
    entry = np.repeat(np.arange(len(a.lex_label)), np.diff(a.lex_offset))
    word = np.repeat(np.arange(len(grammar.words)), np.diff(a.word_offset))
    state = first[a.lex_label[entry]] + np.arange(len(entry)) - a.lex_offset[entry]
    omega[word[entry], state] = a.lexical

    states = []
    for name, count in zip(grammar.nonterminals, m.tolist(), strict=True):
        states += [name] if count == 1 else [f"{name}#{h}" for h in range(count)]
    return alpha, tensor, omega, tuple(states)


def grammar_of_automaton(alpha, tensor, omega, words, states, unknown_word):
    """Build the weighted grammar with one nonterminal a state.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensor : DenseTensor, SparseTensor or CPTensor
        Transition weights.
    omega : ndarray of float64, shape (n_words, n)
        Terminal weights.
    words, states : sequence of str
        Names.
    unknown_word : str or None
        The word that stands for unknown ones.

    Returns
    -------
    LPCFG
        One latent state a nonterminal; weights of zero are left out.
    """
    from lpcfg_sk.lpcfg._lpcfg import LPCFG

    states = _distinct(states)
    i, j, k, weight = tensor.entries()
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
    if unknown_word is not None and not omega[words.index(unknown_word)].any():
        unknown_word = None
    return LPCFG.from_parameters(binary, lexical, root, unknown_word=unknown_word)


def _distinct(names):
    """The names, with primes on those that an earlier state has."""
    seen = {}
    for name in names:
        while name in seen:
            name += "'"
        seen[name] = None
    return list(seen)
