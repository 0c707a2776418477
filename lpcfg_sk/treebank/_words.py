"""Words that models see: signature classes of rare words, or tags of all words."""

from collections import Counter, defaultdict
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.treebank._punctuation import with_known_marks
from lpcfg_sk.treebank._sharded import over_chunks
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._validation import (
    TreebankTransformerMixin,
    check_treebank,
    transforms_shards,
)

#: The class of words about which nothing is known.
UNK = "UNK"

# Endings that tell the part of speech; if several fit, the longest counts.
_ENDINGS = frozenset(
    {"able", "ible", "ment", "ness", "less", "ing", "ion", "ity", "ent", "ant", "ive"}
    | {"ous", "ful", "est", "ist", "ism", "ize", "ate", "ed", "er", "or", "ly", "al"}
    | {"ic", "an", "y"}
)


class RareWords(TreebankTransformerMixin, BaseEstimator):
    """Replace rare and unknown words by classes of their spelling.

    Only the words that models see are changed; the tokens stay as they are.

    Parameters
    ----------
    min_count : int, default=3
        Words seen fewer times than this in the training data become classes.
    signature : {"english", "none"} or callable, default="english"
        How to classify words: by capitals, digits, hyphen and ending; all in one
        class; or by ``signature(token)``, which returns a str, or a sequence of str
        from the finest to the coarsest.
    min_class_count : int, default=5
        A signature that fewer rare tokens of the training data have is replaced by
        a coarser one.

    Attributes
    ----------
    words_ : SymbolTable
        The words that models will see, sorted, then the classes. ``words_.backoff``
        holds the id of the class of every word; a class is its own class.
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
    A class without rare words in the training data is replaced by a coarser one, and
    finally by ``UNK``, so that every word of a transformed treebank is in ``words_``.
    Models use the class of a word that is kept for smoothing. A token that is spelled
    like a class is treated as rare.

    Punctuation that training never saw is read as an equivalent mark that it did see:
    ``"``, ``“`` and ``”`` as the quotes of the Penn Treebank, ``(`` as ``-LRB-``, ``—``
    as ``--``, and the other way round.

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
        self.words_ = SymbolTable((*kept, *self.classes_))
        often_first = np.flatnonzero(counts[:, 1] > counts[:, 0])
        first = {names[i] for i in often_first.tolist()}
        backoff = [self._class_of(word, word in first) for word in kept]
        backoff += range(len(kept), len(self.words_))
        self.words_ = SymbolTable(self.words_, backoff)
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
            The same trees and tokens; its words are in ``words_``.
        """
        treebank = check_treebank(X, estimator=self, allow_empty=True)
        seen = with_known_marks(treebank, self.counts_, self.vocabulary_)
        names = seen.tokens.strings
        forms, inverse = np.unique(_forms(seen), return_inverse=True)
        words = np.empty(len(forms), dtype=np.int32)
        for i, form in enumerate(forms.tolist()):
            token = names[form >> 1]
            word = self.vocabulary_.get(token)
            if word is None:
                word = self._class_of(token, bool(form & 1))
            words[i] = word
        return treebank.replace(word=words[inverse], words=self.words_)

    def _count(self, X):
        """Return all tokens, and their counts within and at the start of sentences."""
        X = check_treebank(X, estimator=self, sharded=True)
        total = {}
        for names, counts in over_chunks(_token_counts, X):
            for i in np.flatnonzero(counts.any(axis=1)).tolist():
                total[names[i]] = total.get(names[i], 0) + counts[i]
        return tuple(total), np.array(list(total.values()))

    def _find_classes(self, names, counts, total):
        """Return the signatures of at least `min_class_count` rare tokens.

        Tokens of the other signatures are counted for coarser ones.
        """
        # Counts by the number of coarser signatures, so that the finest come first.
        levels = defaultdict(Counter)
        for i in np.flatnonzero((total > 0) & (total < self.min_count)).tolist():
            for initial in np.flatnonzero(counts[i]).tolist():
                rest = tuple(self._signatures(names[i], bool(initial)))
                levels[len(rest)][rest] += int(counts[i, initial])
        classes = {UNK}
        for depth in range(max(levels, default=0), 0, -1):
            tokens = Counter()
            for rest, n in levels[depth].items():
                tokens[rest[0]] += n
            for rest, n in levels[depth].items():
                if tokens[rest[0]] >= self.min_class_count:
                    classes.add(rest[0])
                elif depth > 1:
                    levels[depth - 1][rest[1:]] += n
        return tuple(sorted(classes))

    def _class_of(self, token, initial):
        """Return the id of the finest fitted class of a token."""
        for signature in self._signatures(token, initial):
            word = self.words_.index(signature)
            # A signature may be spelled like a word, which comes before the classes.
            if word >= len(self.vocabulary_):
                return word
        return self.words_.index(UNK)

    def _signatures(self, token, initial):
        """Return the signatures of a token, from the finest to the coarsest."""
        if self.signature == "none":
            return (UNK,)
        if self.signature == "english":
            known = token.lower() in self.counts_
            return coarser(english_signature(token, initial=initial, known_lower=known))
        signatures = self.signature(token)
        signatures = (signatures,) if isinstance(signatures, str) else tuple(signatures)
        if not all(isinstance(signature, str) for signature in signatures):
            raise TypeError(
                f"signature({token!r}) returned {signatures!r}, expected a str or a "
                "sequence of str"
            )
        return signatures


def _token_counts(treebank):
    """Return the tokens of a treebank, and their counts as `RareWords._count` does."""
    names = treebank.tokens.strings
    counts = np.bincount(_forms(treebank), minlength=2 * len(names))
    return names, counts.reshape(-1, 2)


def _forms(treebank):
    """Return twice each token id, plus one at the beginning of a sentence."""
    forms = 2 * treebank.token.astype(np.int64)
    starts = treebank.token_offsets[:-1]
    forms[starts[starts < treebank.token_offsets[1:]]] += 1
    return forms


def english_signature(word, *, initial=False, known_lower=False):
    """Return the signature of an English word, as in the Berkeley parser.

    Parameters
    ----------
    word : str
        The word in its original spelling.
    initial : bool, default=False
        Whether it is the first word of its sentence, where a capital tells little.
    known_lower : bool, default=False
        Whether the word was seen in lower case.

    Returns
    -------
    signature : str
        ``UNK`` and the parts that apply: capitals, digits, hyphen, ending.

    Examples
    --------
    >>> from lpcfg_sk.treebank._words import english_signature
    >>> english_signature("unscrupulously"), english_signature("Smith")
    ('UNK-LC-ly', 'UNK-CAP')
    >>> english_signature("Honestly", initial=True, known_lower=True)
    'UNK-INIT-KNOWN-ly'
    >>> english_signature("12.5"), english_signature("mid-1990s")
    ('UNK-NUM', 'UNK-LC-NUM-DASH-s')
    """
    parts = [UNK]
    capitals = sum(c.isupper() for c in word)
    if word[:1].isupper():
        if initial and capitals == 1:
            parts.append("INIT")
            if known_lower:
                parts.append("KNOWN")
        elif capitals > 1 and not any(c.islower() for c in word):
            parts.append("CAPS")
        else:
            parts.append("CAP")
    elif capitals:
        parts.append("CAP")
    elif any(c.isalpha() for c in word):
        parts.append("LC")
    digit = any(c.isdigit() for c in word)
    dash = "-" in word[1:]
    if digit:
        parts.append("NUM")
    if dash:
        parts.append("DASH")
    lower = word.lower()
    if len(word) >= 3 and lower[-1] == "s" and lower[-2] not in "siu'":
        parts.append("s")
    elif len(word) >= 5 and not (digit and capitals):
        ending = next((e for n in (4, 3, 2, 1) if (e := lower[-n:]) in _ENDINGS), None)
        if ending is not None:
            parts.append(ending)
    return "-".join(parts)


def coarser(signature):
    """Yield a signature and all coarser ones, each with one part less.

    Parameters
    ----------
    signature : str
        The finest signature.

    Yields
    ------
    signature : str
        The last one is ``UNK``.

    Examples
    --------
    >>> from lpcfg_sk.treebank._words import coarser
    >>> list(coarser("UNK-LC-ly"))
    ['UNK-LC-ly', 'UNK-LC', 'UNK']
    """
    parts = signature.split("-")
    for n in range(len(parts), 0, -1):
        yield "-".join(parts[:n])


def delexicalize(treebank):
    """Replace every word by its part-of-speech tag.

    Parameters
    ----------
    treebank : Treebank
        Trees, whose pre-terminals are the tags, and sentences with given tags. They
        must not be binarised, because pre-terminals then are chains of labels.

    Returns
    -------
    treebank : Treebank
        The same trees, with tags as tokens and words, and without node features.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import delexicalize
    >>> tags = delexicalize(Treebank(["(S (NP (DT the) (NN dog)) (VBZ barks))"]))
    >>> tags.sentences()
    [['DT', 'NN', 'VBZ']]
    >>> print(tags[0])
    (S (NP (DT DT) (NN NN)) (VBZ VBZ))
    """
    treebank = check_treebank(treebank, estimator="delexicalize", allow_empty=True)
    if treebank.binarized:
        raise ValueError(
            "delexicalize takes trees before binarisation, whose pre-terminals are "
            "tags; call it before TreeBinarizer, or on its inverse_transform"
        )
    in_tree = np.repeat(treebank.is_parsed, treebank.lengths)
    tag = np.array(treebank.tag)
    tag[in_tree] = treebank.label[treebank.size == 1]
    missing = np.flatnonzero(tag < 0)
    if len(missing):
        token = missing[0]
        row = int(np.searchsorted(treebank.token_offsets, token, side="right")) - 1
        word = treebank.tokens[treebank.token[token]]
        if in_tree[token]:
            raise ValueError(
                f"the word {word!r} of tree {row} has siblings and no pre-terminal of "
                "its own, so it has no tag; give each word a pre-terminal"
            )
        raise ValueError(
            f"the word {word!r} of row {row}, which has no tree, has no tag either; "
            "leave such rows out, or tag them"
        )
    used, ids = np.unique(tag, return_inverse=True)
    tags = SymbolTable(treebank.labels[i] for i in used)
    return treebank.replace(
        token=ids.astype(np.int32),
        word=ids.astype(np.int32),
        tokens=tags,
        words=tags,
        blocks={},
        block_names={},
    )
