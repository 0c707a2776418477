"""Smoothing of the lexicon by signature classes."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import offsets, ragged_indices

#: Stands for every word, and every signature class, that training never saw.
UNKNOWN_WORD = "<UNK>"


class SmoothedLexicon(NamedTuple):
    """Lexical vectors after smoothing, with the layout of `GrammarArrays`.

    Attributes
    ----------
    words : tuple of str
        The words; `unknown_word` is the last where it is not a word of training.
    unknown_word : str or None
        The word that stands for unknown ones.
    word_offset, lex_label, lex_offset, lexical : ndarray
        As in :class:`GrammarArrays`.
    """

    words: tuple
    unknown_word: str | None
    word_offset: np.ndarray
    lex_label: np.ndarray
    lex_offset: np.ndarray
    lexical: np.ndarray


def smooth_lexicon(rules, n_states, vectors, *, alpha=1.0):
    r"""Mix the vectors of each word with those of its signature class.

    Parameters
    ----------
    rules : RuleCounts
        The lexical rules and how often they occur.
    n_states : ndarray of int, shape (n_nonterminals,)
        Number of latent states of each nonterminal.
    vectors : ndarray of float64
        One vector of length m_a for each lexical rule of `rules`, end to end, in
        units of counts: for a probabilistic model the expected number of times
        that state h of a emits x. Values may be negative (spectral models).
    alpha : float, default=1.0
        Strength, in tokens; 0 leaves everything as it is and knows no unknown
        word.

    Returns
    -------
    SmoothedLexicon
        Vectors in units of counts.

    Notes
    -----
    With c(x) the number of tokens of x, v(a, x) its vector and s its class,

    .. math:: v'(a, x) = \frac{c(x)}{c(x) + α}
              \Bigl(v(a, x) + α \frac{v(a, s)}{c(s)}\Bigr)

    which keeps the total of each word, :math:`Σ_{a,h} v'(a, x)_h = c(x)`. A class
    that never occurs has the open-class distribution: that of all tokens whose
    word is a class, or, without :class:`RareWords`, the mean over all words, each
    counted once. The unknown word has the open-class distribution and the weight
    of one token.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.lpcfg import smooth_lexicon
    >>> from lpcfg_sk.treebank import count_rules
    >>> rules = count_rules(Treebank(["(S (A x) (B y))"] * 3))
    >>> counts = rules.lexical_count
    >>> states = np.ones(len(rules.nonterminals), int)
    >>> bool(smooth_lexicon(rules, states, counts).lexical.sum() > counts.sum())
    True
    """
    m = np.asarray(n_states, dtype=np.int64)
    if alpha == 0:
        return SmoothedLexicon(
            words=rules.words,
            unknown_word=None,
            word_offset=rules.word_offset,
            lex_label=rules.lex_label,
            lex_offset=offsets(m[rules.lex_label]),
            lexical=np.asarray(vectors, dtype=np.float64),
        )
    vectors = np.asarray(vectors, dtype=np.float64)
    n_words, n_labels = len(rules.words), len(m)
    own_count = np.bincount(rules.lex_word, rules.lexical_count, minlength=n_words)
    own_word, own_label = rules.lex_word.astype(np.int64), rules.lex_label
    open_label, open_vectors = _open_class(rules, vectors, own_count, m)
    # Row n_words of the sources is the open class, in units of one token.
    source_label = np.append(own_label, open_label)
    source_begin = np.append(rules.word_offset, len(source_label))
    source_offset = offsets(m[source_label])
    source_values = np.append(vectors, open_vectors)
    source_count = np.append(own_count, 1.0)

    if rules.backoff is None:
        borrower = lender = np.zeros(0, dtype=np.int64)
    else:
        lender = rules.backoff.astype(np.int64)
        lender = np.where(source_count[lender] > 0, lender, n_words)
        borrower = np.flatnonzero(lender != np.arange(n_words))
        lender = lender[borrower]
    words = rules.words
    if UNKNOWN_WORD not in words:
        words = (*words, UNKNOWN_WORD)
        borrower = np.append(borrower, n_words)
        lender = np.append(lender, n_words)
    n_rows = len(words)
    # A word without tokens (a class never seen, the unknown word) is given one.
    count = np.append(own_count, 0.0)[:n_rows]
    borrows = np.zeros(n_rows, dtype=bool)
    borrows[borrower] = True
    keep = np.where(borrows, count / (count + alpha), 1.0)
    share = np.where(count > 0, keep * alpha, 1.0)[borrower] / source_count[lender]

    lent = np.diff(source_begin)[lender]
    lent_entry = ragged_indices(source_begin[lender], lent)
    lent_word = np.repeat(borrower, lent)
    own_keys = own_word * n_labels + own_label
    lent_keys = lent_word * n_labels + source_label[lent_entry]
    keys = np.union1d(own_keys, lent_keys)
    word, label = np.divmod(keys, n_labels)
    lex_offset = offsets(m[label])
    lexical = np.zeros(lex_offset[-1])
    to = ragged_indices(lex_offset[np.searchsorted(keys, own_keys)], m[own_label])
    lexical[to] += vectors * np.repeat(keep[own_word], m[own_label])
    length = m[source_label[lent_entry]]
    to = ragged_indices(lex_offset[np.searchsorted(keys, lent_keys)], length)
    values = source_values[ragged_indices(source_offset[lent_entry], length)]
    lexical[to] += values * np.repeat(np.repeat(share, lent), length)
    return SmoothedLexicon(
        words=words,
        unknown_word=UNKNOWN_WORD,
        word_offset=offsets(np.bincount(word, minlength=n_rows)),
        lex_label=label.astype(np.int32),
        lex_offset=lex_offset,
        lexical=lexical,
    )


def _open_class(rules, vectors, count, m):
    """Return the labels and the vectors of one rare token."""
    share = np.zeros(len(count))
    if rules.backoff is not None:
        share[rules.backoff] = 1.0
        share *= count > 0
    if not share.any():
        share[count > 0] = 1.0 / count[count > 0]
    share /= share @ count
    share = share[rules.lex_word]
    chosen = np.flatnonzero(share > 0)
    label, position = np.unique(rules.lex_label[chosen], return_inverse=True)
    offset = offsets(m[label])
    values = np.zeros(offset[-1])
    length = m[rules.lex_label[chosen]]
    begin = offsets(m[rules.lex_label])[chosen]
    np.add.at(
        values,
        ragged_indices(offset[position], length),
        vectors[ragged_indices(begin, length)] * np.repeat(share[chosen], length),
    )
    return label, values
