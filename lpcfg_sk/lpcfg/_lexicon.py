"""Smoothing of the lexicon by signature classes."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import find_keys, offsets, ragged_indices
from lpcfg_sk.treebank import CLASS_STRENGTH, decode_label

#: Stands for every word, and every signature class, that training never saw.
UNKNOWN_WORD = "<UNK>"

# Share of a word's tokens below which a borrowed label is left out, which makes parsing
# two or three times as fast; chosen on training trees.
_NEGLIGIBLE = 3e-4

# How many words of a tag a class borrows from the next coarser class, to divide the tag
# into labels and states; chosen on training trees.
_LABEL_STRENGTH = 100.0

# The same for a word and its own tokens of a tag, in units of `alpha`; chosen on
# training trees.
_SPREAD_STRENGTH = 4.0


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
        Strength, in tokens; 0 changes nothing and leaves unknown words
        impossible.

    Returns
    -------
    SmoothedLexicon
        Vectors in units of counts.

    Notes
    -----
    Classes form a tree: every word has a class, every class a coarser one, up to that
    of all words. Let c(x) be the number of tokens of x, v(a, x) its vector, and n(s)
    the number of words in class s or in finer ones, where each word counts once, plus
    the tokens of rare words that :class:`RareWords` replaced by the class itself. A
    class is smoothed by the coarser class s' as in TnT (Brants 2000, section 2.3):
    first its part-of-speech tags t, then the labels of each tag, because in a binarised
    tree NP+NN and NN are labels of the same tag,

    .. math::
        P(t | s) &= \frac{n(t, s) + β P(t | s')}{n(s) + β}, \quad
        n(t, s) = \sum_{x ∈ s} \frac{c(t, x)}{c(x)} \\
        P(a | t, s) &= \frac{Σ_{x ∈ s} v(a, x) / c(x) + γ P(a | t, s')}{n(t, s) + γ}

    with β = 6 and γ = 100 words, and both 0 for the class of all words. Endings tell
    tags; which chain of labels stands above a tag they hardly tell. The same formulas
    hold for vectors over the states of a, and P(a | s) is P(t | s) P(a | t, s). A word
    of class s has

    .. math:: v'(a, x) = \frac{c(x)}{c(x) + α} \bigl(u(a, x) + α P(a | s)\bigr),
              \quad u(a, x) = \frac{c(x) v(a, x) + 4α\, c(t, x) P(a | t, s)}{c(x) + 4α}

    where u spreads the tokens c(t, x) of each tag t over its labels. The total of each
    word is kept, :math:`Σ_{a,h} v'(a, x)_h = c(x)`, also where labels are left out that
    the word never had and whose share would be below 0.0003.

    A class without tokens of its own has the weight (n(s) + 1) / (n + 1), with n the
    number of all words, that is at most one token. The unknown word has the
    distribution of the class of all words and the weight of one token. Without
    :class:`RareWords` words are not smoothed.

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
    vectors = np.asarray(vectors, dtype=np.float64)
    if alpha == 0:
        return SmoothedLexicon(
            words=rules.words,
            unknown_word=None,
            word_offset=rules.word_offset,
            lex_label=rules.lex_label,
            lex_offset=offsets(m[rules.lex_label]),
            lexical=vectors,
        )
    words = rules.words
    if UNKNOWN_WORD not in words:
        words = (*words, UNKNOWN_WORD)
    tree = _ClassTree.of_words(rules.backoff, len(rules.words), len(words))
    row = rules.lex_word.astype(np.int64)
    own = _Table(row, rules.lex_label, rules.lexical_count, vectors, m)
    count = np.bincount(own.row, own.count, minlength=len(tree.parent))
    members = _members(own, count, tree)
    size = np.bincount(members.row, members.count, minlength=len(tree.parent))
    tag = _tags(rules)
    classes = _smoothed_classes(members, size, tree, tag)

    weight = np.where(tree.is_class, (size + 1.0) / (size[-1] + 1.0), 1.0)
    total = np.where(count > 0, count, weight)
    strength = 0.0 if rules.backoff is None else alpha
    is_word = ~tree.is_class & (count > 0)
    kept = np.where(is_word, count / (total + strength), 0.0)
    if rules.backoff is not None:
        strength *= _SPREAD_STRENGTH
        spread = np.where(is_word, strength / (total + strength), 0.0)
        own = _spread(own, spread, tree, classes, tag)
    mine = own.scale(kept[own.row])
    borrower = np.flatnonzero(kept[:-1] < 1.0)
    lent = (total * (1.0 - kept))[borrower]
    lent = classes.lend(borrower, tree.lender[borrower], lent)
    lent = lent.keep(lent.count >= _NEGLIGIBLE * total[lent.row])
    lexicon = _sum([mine, lent])
    left = np.bincount(lexicon.row, lexicon.count, minlength=len(words))
    scale = np.divide(total[:-1], left, out=np.ones(len(words)), where=left > 0)
    scale = np.repeat(scale[lexicon.row], m[lexicon.label])
    return SmoothedLexicon(
        words=words,
        unknown_word=UNKNOWN_WORD,
        word_offset=offsets(np.bincount(lexicon.row, minlength=len(words))),
        lex_label=lexicon.label.astype(np.int32),
        lex_offset=offsets(m[lexicon.label]),
        lexical=lexicon.values * scale,
    )


class _ClassTree(NamedTuple):
    """Words and classes, and after them a row for the class of all words.

    Attributes
    ----------
    parent : ndarray of int64, shape (n_rows + 1,)
        The class of each word, and the coarser class of each class.
    is_class : ndarray of bool, shape (n_rows + 1,)
        Whether it is a class.
    """

    parent: np.ndarray
    is_class: np.ndarray

    @classmethod
    def of_words(cls, backoff, n_words, n_rows):
        """Make the tree of the words of `rules`, and perhaps the unknown word."""
        parent = np.full(n_rows + 1, n_rows)
        is_class = np.zeros(n_rows + 1, dtype=bool)
        if backoff is not None:
            is_root = backoff == np.arange(n_words)
            parent[:n_words] = np.where(is_root, n_rows, backoff)
            is_class[:n_words] = is_root
        is_class[parent] = True
        return cls(parent, is_class)

    @property
    def all_words(self):
        """The row of the class of all words."""
        return len(self.parent) - 1

    @property
    def lender(self):
        """The class that smooths each row; a class stands for itself."""
        return np.where(self.is_class, np.arange(len(self.parent)), self.parent)


class _Table(NamedTuple):
    """Vectors of rows, which are words or classes, under labels.

    Attributes
    ----------
    row, label : ndarray of int, shape (n_entries,)
        Sorted by (row, label) in a sum of tables.
    count : ndarray of float64, shape (n_entries,)
        Number of tokens.
    values : ndarray of float64
        The vectors, end to end.
    m : ndarray of int64, shape (n_nonterminals,)
        Number of states of each label.
    """

    row: np.ndarray
    label: np.ndarray
    count: np.ndarray
    values: np.ndarray
    m: np.ndarray

    def take(self, entry, row, factor):
        """Copy entries into other rows, times a factor."""
        label = self.label[entry]
        length = self.m[label]
        position = ragged_indices(offsets(self.m[self.label])[entry], length)
        values = self.values[position] * np.repeat(factor, length)
        return _Table(row, label, self.count[entry] * factor, values, self.m)

    def scale(self, factor):
        """Multiply each entry by a factor."""
        return self.take(np.arange(len(self.row)), self.row, factor)

    def keep(self, mask):
        """Return the entries where a mask is true."""
        entry = np.flatnonzero(mask)
        return self.take(entry, self.row[entry], np.ones(len(entry)))

    def lend(self, borrower, lender, factor):
        """Copy whole rows of a sorted table into other rows, times a factor."""
        begin = np.searchsorted(self.row, lender)
        length = np.searchsorted(self.row, lender, side="right") - begin
        entry = ragged_indices(begin, length)
        return self.take(entry, np.repeat(borrower, length), np.repeat(factor, length))


def _sum(tables):
    """Add tables."""
    m = tables[0].m
    keys = np.concatenate([t.row * len(m) + t.label for t in tables])
    keys, place = np.unique(keys, return_inverse=True)
    row, label = np.divmod(keys, len(m))
    count = np.bincount(place, np.concatenate([t.count for t in tables]), len(keys))
    begin = offsets(m[label])
    position = ragged_indices(begin[place], m[label[place]])
    values = np.concatenate([t.values for t in tables])
    return _Table(row, label, count, np.bincount(position, values, begin[-1]), m)


def _members(own, count, tree):
    """Add up the words of each class and of all finer ones."""
    once = np.divide(1.0, count, out=np.zeros(len(count)), where=count > 0)
    unit = np.where(tree.is_class, 1.0, once)[own.row]
    entry, node = np.arange(len(own.row)), tree.lender[own.row]
    parts = []
    while len(entry):
        parts.append(own.take(entry, node, unit[entry]))
        below = node != tree.all_words
        entry, node = entry[below], tree.parent[node[below]]
    return _sum(parts)


def _smoothed_classes(members, size, tree, tag):
    """Return P(a | s) of all classes, without negligible labels."""
    n_tags = len(tag)
    classes = np.flatnonzero(tree.is_class[:-1])
    row = np.array([tree.all_words])
    smoothed = members.lend(row, row, 1.0 / np.maximum(size[row], 1.0))
    parts = [smoothed]
    # From the coarsest classes down to the finest.
    while len(row := classes[np.isin(tree.parent[classes], row)]):
        ones = np.ones(len(row))
        own = members.lend(row, row, ones)
        above = smoothed.lend(row, tree.parent[row], ones)
        # The words of a class are among those of the coarser one, with their tags.
        pairs, place = np.unique(
            above.row * n_tags + tag[above.label], return_inverse=True
        )
        own_place = find_keys(pairs, own.row * n_tags + tag[own.label])
        count = np.bincount(own_place, own.count, len(pairs))
        proba = np.bincount(place, above.count)
        share = (count + CLASS_STRENGTH * proba) / (
            size[pairs // n_tags] + CLASS_STRENGTH
        )
        share /= count + _LABEL_STRENGTH
        # Words whose trees all have the weight zero lend nothing.
        lent = np.divide(
            _LABEL_STRENGTH * share, proba, out=np.zeros_like(proba), where=proba > 0
        )
        smoothed = _sum([own.scale(share[own_place]), above.scale(lent[place])])
        parts.append(smoothed)
    classes = _sum(parts)
    classes = classes.keep(classes.count >= _NEGLIGIBLE)
    left = np.bincount(classes.row, classes.count, minlength=len(size))
    return classes.scale(1.0 / left[classes.row])


def _spread(own, share, tree, classes, tag):
    """Spread a share of the tokens of each tag of a word over labels of the tag."""
    n_tags = len(tag)
    pairs, place = np.unique(own.row * n_tags + tag[own.label], return_inverse=True)
    tokens = np.bincount(place, own.count)
    of_classes, group = np.unique(
        classes.row * n_tags + tag[classes.label], return_inverse=True
    )
    word, word_tag = np.divmod(pairs, n_tags)
    found = find_keys(of_classes, tree.lender[word] * n_tags + word_tag)
    # The tag may be so rare in the class that it was left out.
    factor = np.where(found >= 0, share[word], 0.0)
    old = own.scale(1.0 - factor[place])
    some = np.flatnonzero(factor * tokens > 0)
    found, mass = found[some], np.bincount(group, classes.count)
    begin = offsets(np.bincount(group))
    length = np.diff(begin)[found]
    entry = np.argsort(group, kind="stable")[ragged_indices(begin[found], length)]
    factor = (factor * tokens)[some] / mass[found]
    new = classes.take(entry, np.repeat(word[some], length), np.repeat(factor, length))
    return _sum([old, new])


def _tags(rules):
    """Number the tags of labels; each label of plain trees is a tag of its own."""
    if not rules.binarized:
        return np.arange(len(rules.nonterminals))
    names = [decode_label(label).chain[-1:] for label in rules.nonterminals]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names])
