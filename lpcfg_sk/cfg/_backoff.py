"""Rules for words under the tags of their signature classes."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._derivations import rules_of_trees
from lpcfg_sk.cfg._rules import Rule
from lpcfg_sk.lpcfg import smooth_lexicon
from lpcfg_sk.treebank import over_chunks


class _LexicalCounts(NamedTuple):
    """Counts of the rules A → x, as :func:`smooth_lexicon` reads them.

    Attributes
    ----------
    words : tuple of str
        The words that models see.
    backoff : ndarray of int32, shape (n_words,)
        Signature class of each word.
    word_offset : ndarray of int64, shape (n_words + 1,)
        First rule of each word.
    lex_word, lex_label : ndarray of int64, shape (n_rules,)
        Word and nonterminal of each rule.
    lexical_count : ndarray of float64, shape (n_rules,)
        Weight of its uses.
    nonterminals : tuple of str
        The nonterminals.
    binarized : bool
        Whether they are labels of a :class:`TreeBinarizer`.
    """

    words: tuple
    backoff: np.ndarray
    word_offset: np.ndarray
    lex_word: np.ndarray
    lex_label: np.ndarray
    lexical_count: np.ndarray
    nonterminals: tuple
    binarized: bool


def word_classes(X):
    """Return the words of a treebank if they have signature classes, else None."""
    words = next(iter(X.chunks())).words
    return None if words.backoff is None else words


def grammar_with_backoff(X, weights, *, alpha):
    """Read off the rules of trees, with rules for words under the tags of their class.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Trees whose words have signature classes (see :class:`RareWords`).
    weights : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    alpha : float
        Strength of the smoothing, in tokens.

    Returns
    -------
    grammar : CFG
        The rules of the trees and, after those of each nonterminal, its new ones.
    tree_counts : ndarray of float64, shape (n_rules,)
        Weights of the rules; those of rules A → x are smoothed by
        :func:`~lpcfg_sk.lpcfg.smooth_lexicon`.
    """
    grammar = CFG.from_treebank(X)
    words, n_rules = word_classes(X), len(grammar.rules)

    def count(treebank, weights):
        row, rule, _ = rules_of_trees(grammar, treebank)
        return np.bincount(rule, weights=weights[row], minlength=n_rules)

    counts = sum(over_chunks(count, X, weights))
    label_of = {name: i for i, name in enumerate(grammar.nonterminals)}
    lexical = [
        (words.index(rule.rhs[0]), label_of[rule.lhs], counts[i])
        for i, rule in enumerate(grammar.rules)
        if rule.terminal == (True,)
    ]
    lex_word, lex_label, lexical_count = (
        np.array(column) for column in zip(*sorted(lexical), strict=True)
    )
    smoothed = smooth_lexicon(
        _LexicalCounts(
            words.strings,
            words.backoff,
            offsets(np.bincount(lex_word, minlength=len(words))),
            lex_word,
            lex_label,
            lexical_count,
            grammar.nonterminals,
            next(iter(X.chunks())).binarized,
        ),
        np.ones(len(label_of), dtype=np.int64),
        lexical_count,
        alpha=alpha,
    )
    smoothed_counts = {
        rule: counts[i]
        for i, rule in enumerate(grammar.rules)
        if rule.terminal != (True,)
    }
    entry_word = np.repeat(
        np.arange(len(smoothed.words)), np.diff(smoothed.word_offset)
    )
    for word, label, value in zip(
        entry_word.tolist(), smoothed.lex_label.tolist(), smoothed.lexical, strict=True
    ):
        # Every word behind RareWords is in its table: none is unknown.
        if word < len(words):
            rule = Rule(grammar.nonterminals[label], (words[word],), (True,))
            smoothed_counts[rule] = value
    extended = CFG(
        dict.fromkeys((*grammar.rules, *smoothed_counts)),
        grammar.start,
        unary_cycles=grammar.unary_cycles,
        implicit_start=grammar.implicit_start,
    )
    return extended, np.array([smoothed_counts.get(r, 0.0) for r in extended.rules])
