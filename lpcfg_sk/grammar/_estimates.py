"""From counts to a probabilistic grammar."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._em_maximize import complete_counts, divide_rows
from lpcfg_sk.grammar._arrays import GrammarArrays, offsets
from lpcfg_sk.grammar._lexicon import smooth_lexicon
from lpcfg_sk.grammar._lpcfg import LPCFG

__all__ = ["Layout", "coarse_pcfg", "grammar_of_counts"]


class Layout(NamedTuple):
    """Where the parameters of a grammar over the rules of an index lie.

    Attributes
    ----------
    n_states : ndarray of int64, shape (n_nonterminals,)
        Number of latent states.
    shapes : ndarray of int64, shape (n_rules, 3)
        Numbers of states (m_a, m_b, m_c) of each rule.
    rule_offset, lex_offset, root_offset, state_offset : ndarray of int64
        Offsets of the tensors, the lexical vectors, the root vectors, and of the
        states of each nonterminal among all states.
    """

    n_states: np.ndarray
    shapes: np.ndarray
    rule_offset: np.ndarray
    lex_offset: np.ndarray
    root_offset: np.ndarray
    state_offset: np.ndarray

    @classmethod
    def build(cls, index, n_states):
        """Lay out the rules of `index` with the given numbers of states."""
        m = np.asarray(n_states, dtype=np.int64)
        parts = (index.rule_parent, index.rule_left, index.rule_right)
        shapes = np.ascontiguousarray(np.stack([m[part] for part in parts], axis=1))
        return cls(
            n_states=m,
            shapes=shapes,
            rule_offset=offsets(shapes.prod(axis=1)),
            lex_offset=offsets(m[index.lex_label]),
            root_offset=offsets(m[index.root_label]),
            state_offset=offsets(m),
        )

    def state_of_entries(self, labels):
        """Return the state of each value of vectors of the given nonterminals."""
        m = self.n_states[labels]
        ends = np.cumsum(m)
        shift = np.repeat(self.state_offset[labels] - (ends - m), m)
        return np.arange(len(shift)) + shift


def grammar_of_counts(index, layout, counts, *, weight=None, alpha=1.0, smoothing=0.0):
    """Make a probabilistic grammar of (expected) counts.

    Parameters
    ----------
    index : RuleIndex
        The rules.
    layout : Layout
        Where their counts lie.
    counts : tuple of ndarray (binary, lexical, root)
        Counts of rules with states; `binary` is overwritten by the parameters.
    weight : ndarray of float64, default=None
        Weights of the trees, for the lexicon.
    alpha : float, default=1.0
        Strength of the lexicon's smoothing, see :func:`smooth_lexicon`.
    smoothing : float, default=0.0
        Part of each rule's counts that is replaced by the product of their
        marginals.

    Returns
    -------
    LPCFG
    """
    binary, lexical, root = counts
    lexicon = smooth_lexicon(
        index, layout.n_states, lexical, weight=weight, alpha=alpha
    )
    states = layout.state_of_entries(lexicon.lex_label)
    totals = np.bincount(
        states, weights=lexicon.lexical, minlength=layout.state_offset[-1]
    )
    ones = np.ones_like(binary)
    where = (layout.shapes, layout.rule_offset, layout.state_offset, index.rule_parent)
    complete_counts(*where, ones, smoothing, binary, totals)
    divide_rows(*where, totals, binary)
    arrays = GrammarArrays(
        n_states=layout.n_states.astype(np.int32),
        rule_parent=index.rule_parent,
        rule_left=index.rule_left,
        rule_right=index.rule_right,
        rule_offset=layout.rule_offset,
        binary=binary,
        word_offset=lexicon.word_offset,
        lex_label=lexicon.lex_label,
        lex_offset=lexicon.lex_offset,
        lexical=divide(lexicon.lexical, totals[states]),
        root_label=index.root_label,
        root_offset=layout.root_offset,
        root=divide(root, root.sum()),
    )
    return LPCFG.from_arrays(
        index.nonterminals, lexicon.words, arrays, unknown_word=lexicon.unknown_word
    )


def coarse_pcfg(index, *, weight=None, alpha=1.0):
    """Make the plain PCFG of a treebank: relative frequencies, smoothed lexicon.

    Parameters
    ----------
    index : RuleIndex
        The rules and where they occur.
    weight : ndarray of float64, shape (n_trees,), default=None
        Weights of the trees.
    alpha : float, default=1.0
        Strength of the lexicon's smoothing, see :func:`smooth_lexicon`.

    Returns
    -------
    LPCFG
        With one state a nonterminal.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.grammar import RuleIndex, coarse_pcfg
    >>> trees = Treebank(["(S (A x) (A y))", "(S (A x) (S (A x) (A x)))"])
    >>> grammar = coarse_pcfg(RuleIndex.from_treebank(trees), alpha=0)
    >>> grammar.lexical["A", "x"], grammar.binary["S", "A", "A"].ravel().round(3)
    (array([0.8]), array([0.667]))
    """
    layout = Layout.build(index, np.ones(len(index.nonterminals), dtype=np.int64))
    counts = (
        index.rule_counts(weight),
        index.lexical_counts(weight),
        index.root_counts(weight),
    )
    return grammar_of_counts(index, layout, counts, weight=weight, alpha=alpha)


def divide(numerator, denominator):
    """Return the quotient, 0 where the denominator is 0."""
    out = np.zeros_like(numerator, dtype=np.float64)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)
