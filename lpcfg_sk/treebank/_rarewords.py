"""Signature classes for rare and unknown words."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.treebank._sharded import over_chunks
from lpcfg_sk.treebank._signatures import UNK, coarser, english_signature
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._transformer import TreebankTransformerMixin, transforms_shards
from lpcfg_sk.treebank._validation import check_treebank


class RareWords(TreebankTransformerMixin, BaseEstimator):
    """Replace rare and unknown words by classes of their spelling.

    Only the words that models see are changed; the tokens stay as they are.

    Parameters
    ----------
    min_count : int, default=3
        Words seen fewer times than this in the training data become classes.
    signature : {"english", "none"} or callable, default="english"
        The class of a word: by capitals, digits, hyphen and ending; or one class
        for all; or what ``signature(token)`` returns, a str or a sequence of them
        from the finest to the coarsest.
    min_class_count : int, default=5
        A signature that fewer rare tokens of the training data have gives way to
        a coarser one.

    Attributes
    ----------
    words_ : SymbolTable
        The words that models will see, sorted, then the classes. ``words_.backoff``
        holds for every word the id of its class; a class is its own.
    vocabulary_ : dict of str to int
        The words that were kept, and their ids.
    classes_ : tuple of str
        The signature classes; the last resort ``"UNK"`` is always among them.
    counts_ : dict of str to int
        How often each token was seen.

    See Also
    --------
    TreeBinarizer : The step before, in a pipeline.

    Notes
    -----
    A class that no rare word of the training data belongs to gives way to a coarser
    one and finally to ``UNK``: every word of a transformed treebank is one that was
    fitted. The class of a word that is kept serves to smooth what is learned about
    it. A token that is spelled like a class is taken as rare.

    At the beginning of a sentence a capital tells little; there the English
    signature tells instead whether the word was seen in lower case.

    Examples
    --------
    >>> from lpcfg_sk import RareWords, Treebank
    >>> treebank = Treebank([["dogs", "bark"], ["dogs", "sleep"], ["dogs", "dream"]])
    >>> rare = RareWords(min_count=2, min_class_count=1).fit(treebank)
    >>> rare.words_.strings
    ('dogs', 'UNK', 'UNK-LC')
    >>> new = rare.transform([["cats", "dogs", "bark", "?"]])
    >>> [new.words[i] for i in new.word]
    ['UNK-LC', 'dogs', 'UNK-LC', 'UNK']
    >>> new.sentences()
    [['cats', 'dogs', 'bark', '?']]
    """

    _parameter_constraints = {
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "signature": [StrOptions({"english", "none"}), callable],
        "min_class_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, min_count=3, *, signature="english", min_class_count=5):
        self.min_count = min_count
        self.signature = signature
        self.min_class_count = min_class_count

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the vocabulary and the signature classes.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Training data.
        y : None
            Ignored.

        Returns
        -------
        self : RareWords
        """
        names, counts = self._count(X)
        total = counts.sum(axis=1)
        self.counts_ = {names[i]: int(total[i]) for i in np.flatnonzero(total).tolist()}

        self.classes_ = self._find_classes(names, counts, total)
        often = {names[i] for i in np.flatnonzero(total >= self.min_count).tolist()}
        kept = sorted(often.difference(self.classes_))
        self.vocabulary_ = {word: i for i, word in enumerate(kept)}
        ids = {s: len(kept) + i for i, s in enumerate(self.classes_)}
        often_first = np.flatnonzero(counts[:, 1] > counts[:, 0])
        first = {names[i] for i in often_first.tolist()}
        backoff = [self._class_of(word, word in first, ids) for word in kept]
        self.words_ = SymbolTable((*kept, *ids), [*backoff, *ids.values()])
        return self

    @transforms_shards
    def transform(self, X):
        """Replace rare and unknown words.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Any data.

        Returns
        -------
        treebank : Treebank
            The same trees and tokens; `word` and `words` are those fitted.
        """
        treebank = check_treebank(X, estimator=self, allow_empty=True)
        names = treebank.tokens.strings
        first_class = len(self.vocabulary_)
        ids = {s: first_class + i for i, s in enumerate(self.classes_)}
        forms, inverse = np.unique(_forms(treebank), return_inverse=True)
        words = np.empty(len(forms), dtype=np.int32)
        for i, form in enumerate(forms.tolist()):
            token = names[form >> 1]
            word = self.vocabulary_.get(token)
            if word is None:
                word = self._class_of(token, bool(form & 1), ids)
            words[i] = word
        return treebank.replace(word=words[inverse], words=self.words_)

    def _count(self, X):
        """Tokens, and how often each is seen within and at the start of sentences."""
        X = check_treebank(X, estimator=self, sharded=True)
        total = {}
        for names, counts in over_chunks(_token_counts, X):
            for i in np.flatnonzero(counts.any(axis=1)).tolist():
                total[names[i]] = total.get(names[i], 0) + counts[i]
        return tuple(total), np.array(list(total.values()))

    def _find_classes(self, names, counts, total):
        """Signatures of enough rare tokens; the others' tokens go to coarser ones."""
        # By the number of coarser signatures, so that the finest come first.
        levels = {}
        for i in np.flatnonzero((total > 0) & (total < self.min_count)).tolist():
            for initial in np.flatnonzero(counts[i]).tolist():
                rest = tuple(self._signatures(names[i], bool(initial)))
                level = levels.setdefault(len(rest), {})
                level[rest] = level.get(rest, 0) + int(counts[i, initial])
        classes = {UNK}
        for depth in range(max(levels, default=0), 0, -1):
            tokens = {}
            for rest, n in levels.get(depth, {}).items():
                tokens[rest[0]] = tokens.get(rest[0], 0) + n
            for rest, n in levels.get(depth, {}).items():
                if tokens[rest[0]] >= self.min_class_count:
                    classes.add(rest[0])
                elif depth > 1:
                    level = levels.setdefault(depth - 1, {})
                    level[rest[1:]] = level.get(rest[1:], 0) + n
        return tuple(sorted(classes))

    def _class_of(self, token, initial, ids):
        """Id of the finest fitted class of a token."""
        for signature in self._signatures(token, initial):
            if signature in ids:
                return ids[signature]
        return ids[UNK]

    def _signatures(self, token, initial):
        """Signatures of a token, from the finest to the coarsest."""
        if self.signature == "none":
            return (UNK,)
        if self.signature == "english":
            known = token.lower() in self.counts_
            return coarser(english_signature(token, initial=initial, known_lower=known))
        made = self.signature(token)
        made = (made,) if isinstance(made, str) else tuple(made)
        if not all(isinstance(s, str) for s in made):
            raise TypeError(
                f"signature({token!r}) returned {made!r}, expected a str or a sequence "
                "of str"
            )
        return made


def _token_counts(treebank):
    """Tokens of a treebank, and their counts within and at the start of sentences."""
    names = treebank.tokens.strings
    counts = np.bincount(_forms(treebank), minlength=2 * len(names))
    return names, counts.reshape(-1, 2)


def _forms(treebank):
    """Twice the token id, plus one at the beginning of a sentence."""
    forms = 2 * treebank.token.astype(np.int64)
    starts = treebank.token_offsets[:-1]
    forms[starts[starts < treebank.token_offsets[1:]]] += 1
    return forms
