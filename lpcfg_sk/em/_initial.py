"""Where EM starts."""

import numpy as np

from lpcfg_sk._ragged import find_keys, ragged_indices
from lpcfg_sk.lpcfg._grammar_arrays import lexical_keys, rule_keys
from lpcfg_sk.lpcfg._maximization import Estimates, maximize

__all__ = ["from_grammar", "perturbed"]

#: Largest factor by which the perturbation changes a parameter, up or down.
_NOISE = 3.0


def perturbed(index, layout, weight, rng):
    """Split the counts of a treebank evenly over states, and disturb them.

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    layout : Layout
        Where parameters lie.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    rng : RandomState
        Source of the noise.

    Returns
    -------
    Estimates
        Probabilities; each is a relative frequency, divided evenly over the
        states of the children, times a random factor between 1/3 and 3 (even on
        the log scale), normalised (Matsuzaki, Miyao and Tsujii, 2005).
    """
    counts = even_counts(index, layout, weight)
    for values in counts:
        values *= np.exp(rng.uniform(-1.0, 1.0, len(values)) * np.log(_NOISE))
    maximize(index, layout, counts)
    return counts


def even_counts(index, layout, weight):
    """Return the counts of a treebank, divided evenly over the states."""
    m = layout.n_states
    cells = np.diff(layout.rule_offset)
    return Estimates(
        np.repeat(index.rule_counts(weight) / cells, cells),
        np.repeat(
            index.lexical_counts(weight) / m[index.lex_label], m[index.lex_label]
        ),
        np.repeat(index.root_counts(weight) / m[index.root_label], m[index.root_label]),
    )


def from_grammar(index, layout, weight, grammar, uniform):
    """Take the parameters of a grammar, mixed with a little of everything.

    Zeros stay zeros in EM; the mix gives each rule of the trees a chance.

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    layout : Layout
        Where parameters lie; its numbers of states are those of `grammar`, or 1
        for nonterminals that it does not have.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    grammar : LPCFG
        Probabilistic grammar.
    uniform : float
        Part of the counts, divided evenly over states, in the mix.

    Returns
    -------
    Estimates
    """
    even = even_counts(index, layout, weight)
    maximize(index, layout, even)
    a = grammar.arrays
    label = np.array([grammar._labels.index(s) for s in index.nonterminals])
    word = np.array([grammar._words.index(s) for s in index.words])
    n = np.int64(len(grammar.nonterminals))
    b, c = label[index.rule_left], label[index.rule_right]
    parent = label[index.rule_parent]
    rule = np.where(
        (parent >= 0) & (b >= 0) & (c >= 0),
        find_keys(rule_keys(a), (parent * n + b) * n + c),
        -1,
    )
    x, of = word[index.lex_word], label[index.lex_label]
    entry = np.where((x >= 0) & (of >= 0), find_keys(lexical_keys(a), x * n + of), -1)
    top = find_keys(a.root_label, label[index.root_label])
    pieces = (
        (layout.rule_offset, rule, a.rule_offset, a.binary),
        (layout.lex_offset, entry, a.lex_offset, a.lexical),
        (layout.root_offset, top, a.root_offset, a.root),
    )
    for values, piece in zip(even, pieces, strict=True):
        _mix(values, uniform, *piece)
    maximize(index, layout, even)
    return even


def _mix(values, uniform, offset, found, source_offset, source):
    """Mix pieces of `source` into `values`, which keep part `uniform`."""
    known = np.flatnonzero(found >= 0)
    length = np.diff(offset)[known]
    to = ragged_indices(offset[known], length)
    taken = source[ragged_indices(source_offset[found[known]], length)]
    values[to] = uniform * values[to] + (1.0 - uniform) * taken
