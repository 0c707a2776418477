"""Words that models see: signature classes of rare words, or tags of all words."""

from collections import Counter
from itertools import pairwise
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.treebank._labels import decode_label
from lpcfg_sk.treebank._sharded import over_chunks
from lpcfg_sk.treebank._spelling import (
    CLASS_STRENGTH,
    UNK,
    coarser,
    english_signature,
    spelling_classes,
    with_known_marks,
)
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._validation import (
    TreebankTransformerMixin,
    check_treebank,
    transforms_shards,
)

# Words and tags that a row of `RareWords.classes_frame` shows.
_N_EXAMPLES = 5
_N_TAGS = 3


class RareWords(TreebankTransformerMixin, BaseEstimator):
    """Classes of words by their spelling, for rare and unknown words.

    Only the words that models see are changed; the tokens are kept.

    Parameters
    ----------
    min_count : int, default=1
        Words seen fewer times than this in the training data are replaced by their
        classes. With 1 only unknown words are; models smooth rare words by their
        classes.
    signature : {"suffix", "english", "none"} or callable, default="suffix"
        How to classify words: by script, case, digits, hyphen and the endings and
        beginnings that the training data have, in any language; by capitals, digits,
        hyphen and a list of English endings, as in the Berkeley parser; all in one
        class; or by ``signature(token)``, which returns a str, or a sequence of str
        from the finest to the coarsest.
    min_class_count : int, default=3
        A class with fewer words than this in the training data is replaced by a
        coarser one.

    Attributes
    ----------
    words_ : SymbolTable
        The words that models will see, sorted, then the classes. ``words_.backoff``
        holds the id of the class of every word, and of the next coarser class of
        every class; ``"UNK"`` is its own.
    vocabulary_ : dict of str to int
        The words that were kept, and their ids.
    classes_ : tuple of str
        The signature classes; the last resort ``"UNK"`` is always among them.
    counts_ : dict of str to int
        How often each token was seen.
    class_words_ : dict of str to dict
        What `classes_frame` shows of each class.

    See Also
    --------
    TreeBinarizer : The step before, in a pipeline.
    lpcfg_sk.lpcfg.smooth_lexicon : How models use classes.

    Notes
    -----
    The classes of *Undoing* are, from the finest to the coarsest, its endings of four
    to one letters, ``UNK-latin-capital-*oing`` to ``UNK-latin-capital-*g``; where no
    class has such an ending its first letter, ``UNK-latin-capital-u*``; its shape
    ``UNK-latin-capital`` and script ``UNK-latin``; and ``UNK``. Numbers, punctuation
    and symbols have classes of their own. A word has the finest class that at least
    `min_class_count` words have, so that every word of a transformed treebank is in
    ``words_``. A token that is spelled like a class is treated as unknown.

    Punctuation that training never saw is read as an equivalent mark that it did see:
    ``"``, ``“`` and ``”`` as the quotes of the Penn Treebank, ``(`` as ``-LRB-``, ``—``
    as ``--``, and the other way round.

    At the beginning of a sentence a capital tells little. There the case is ``first``,
    and an unknown word that is known in lower case is taken for that word. The English
    signature tells whether the word was seen in lower case.

    References
    ----------
    T. Brants (2000). TnT: a statistical part-of-speech tagger. ANLP.

    Examples
    --------
    >>> from lpcfg_sk import RareWords, Treebank
    >>> treebank = Treebank([["dogs", "bark"], ["cats", "sleep"], ["birds", "dream"]])
    >>> rare = RareWords().fit(treebank)
    >>> rare.classes_
    ('UNK', 'UNK-latin', 'UNK-latin-lower', 'UNK-latin-lower-*s')
    >>> new = rare.transform([["horses", "dream", "here", "?"]])
    >>> [new.words[i] for i in new.word]
    ['UNK-latin-lower-*s', 'dream', 'UNK-latin-lower', 'UNK']
    >>> new.sentences()
    [['horses', 'dream', 'here', '?']]
    """

    _parameter_constraints = {
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "signature": [StrOptions({"suffix", "english", "none"}), callable],
        "min_class_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, min_count=1, *, signature="suffix", min_class_count=3):
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
        counts, tags = self._count(X)
        self.counts_ = {word: int(n.sum()) for word, n in counts.items()}
        chains = {
            word: self._chains(word, bool(counts[word][1] > counts[word][0]))
            for word in sorted(counts)
        }
        self.classes_ = self._find_classes(chains.values())
        often = (word for word, n in self.counts_.items() if n >= self.min_count)
        kept = sorted(set(often).difference(self.classes_))
        self.vocabulary_ = {word: i for i, word in enumerate(kept)}
        self.words_ = SymbolTable((*kept, *self.classes_))
        parents = self._coarser_classes(chains.values())
        backoff = [self._find(chains[word]) for word in kept]
        backoff += [self.words_.index(parents[name]) for name in self.classes_]
        self.words_ = SymbolTable(self.words_, backoff)
        self.class_words_ = self._describe(chains, tags)
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
            words[i] = self._word_of(names[form >> 1], bool(form & 1))
        return treebank.replace(word=words[inverse], words=self.words_)

    def classes_frame(self):
        """Describe the classes in a table.

        Returns
        -------
        frame : DataFrame
            One row per class, indexed by its name, with the columns

            examples
                its most frequent words, those of finer classes included;
            n_words, n_tokens
                how many different words and how many tokens of the training data have
                this class or a finer one;
            tags
                the most likely part-of-speech tags, with their probabilities, each
                word counted once, as models smooth them; empty without trees;
            coarser
                the next coarser class, empty for ``"UNK"``.

        Examples
        --------
        >>> from lpcfg_sk import RareWords, Treebank
        >>> trees = Treebank(["(S (N dogs) (V run))", "(S (N cats) (V nap))"])
        >>> frame = RareWords(min_class_count=2).fit(trees).classes_frame()
        >>> frame.loc["UNK-latin-lower-*s", ["examples", "tags"]].tolist()
        ['cats dogs', 'N 0.62, V 0.38']
        """
        check_is_fitted(self)
        if not hasattr(self, "class_words_"):
            raise ValueError(
                "these RareWords come from a file of an earlier version, which does "
                "not describe classes; fit them again"
            )
        index, parents = self.words_.index, self.words_.backoff
        probabilities = {}

        def proba(name):
            """P(tag | class), after that of the coarser class."""
            own = self.class_words_[name]["tags"]
            parent = self.words_[parents[index(name)]]
            strength = 0.0 if parent == name else CLASS_STRENGTH
            total = (sum(own.values()) + strength) or 1.0
            above = probabilities.get(parent, {})
            return {
                tag: (own.get(tag, 0.0) + strength * above.get(tag, 0.0)) / total
                for tag in {**above, **own}
            }

        # Classes with longer ways to UNK come after the coarser ones.
        for name in sorted(self.classes_, key=lambda name: len(self._path(name))):
            probabilities[name] = proba(name)
        rows = []
        for name in self.classes_:
            best = sorted(probabilities[name].items(), key=lambda item: -item[1])
            parent = self.words_[parents[index(name)]]
            rows.append(
                {
                    "class": name,
                    "examples": " ".join(self.class_words_[name]["examples"]),
                    "n_words": self.class_words_[name]["n_words"],
                    "n_tokens": self.class_words_[name]["n_tokens"],
                    "tags": ", ".join(f"{tag} {p:.2f}" for tag, p in best[:_N_TAGS]),
                    "coarser": "" if parent == name else parent,
                }
            )
        return pd.DataFrame(rows).set_index("class")

    # -- learning the classes ------------------------------------------------------

    def _count(self, X):
        """Count tokens, within and at the start of sentences, and their tags."""
        X = check_treebank(X, estimator=self, sharded=True)
        counts, tags = {}, {}
        for chunk, chunk_tags in over_chunks(_token_counts, X):
            for token, n in chunk.items():
                counts[token] = counts.get(token, 0) + n
            for (token, tag), n in chunk_tags.items():
                of_token = tags.setdefault(token, Counter())
                of_token[tag] += n
        return counts, tags

    def _find_classes(self, chains):
        """Return the classes that at least `min_class_count` words have.

        Words that have a class by their ending do not count for beginnings.
        """
        n_words = Counter()
        for endings, _, shapes in chains:
            n_words.update({*endings, *shapes})
        classes = {name for name, n in n_words.items() if n >= self.min_class_count}
        n_words = Counter(
            name
            for endings, beginnings, _ in chains
            if classes.isdisjoint(endings)
            for name in beginnings
        )
        classes.update(n for n, k in n_words.items() if k >= self.min_class_count)
        return tuple(sorted({UNK, *classes}))

    def _coarser_classes(self, chains):
        """Return the next coarser class of each class."""
        classes = set(self.classes_)
        parent = {UNK: UNK}
        for endings, beginnings, shapes in chains:
            for path in ((*endings, *shapes), (*beginnings, *shapes)):
                path = [name for name in path if name in classes and name != UNK]
                for fine, coarse in pairwise([*path, UNK]):
                    # A user's function may name two classes in either order.
                    above = coarse
                    while above in parent and above not in (UNK, fine):
                        above = parent[above]
                    parent.setdefault(fine, UNK if above == fine else coarse)
        return parent

    def _describe(self, chains, tags):
        """Collect the words of each class, those of finer classes included."""
        words = {name: [] for name in self.classes_}
        for word, chain in chains.items():
            for name in self._path(self.words_[self._find(chain)]):
                words[name].append(word)
        found = {}
        for name, members in words.items():
            shares = Counter()
            for word in members:
                total = sum(tags.get(word, {}).values())
                for tag, n in tags.get(word, {}).items():
                    shares[tag] += n / total
            often = sorted(members, key=lambda word: -self.counts_[word])
            found[name] = {
                "n_words": len(members),
                "n_tokens": sum(self.counts_[word] for word in members),
                "examples": often[:_N_EXAMPLES],
                "tags": dict(shares),
            }
        return found

    def _path(self, name):
        """Return a class and all coarser ones."""
        words = self.words_
        path = [words.index(name)]
        while words.backoff[path[-1]] != path[-1]:
            path.append(words.backoff[path[-1]])
        return [words[i] for i in path]

    # -- finding the class of a word -----------------------------------------------

    def _word_of(self, token, initial):
        """Return the id of the word that models see."""
        word = self.vocabulary_.get(token)
        if word is None and initial and self.signature == "suffix":
            lower = token.lower()
            word = self.vocabulary_.get(lower) if token[1:] == lower[1:] else None
        return self._find(self._chains(token, initial)) if word is None else word

    def _find(self, chains):
        """Return the id of the finest fitted class."""
        for chain in chains:
            for signature in chain:
                word = self.words_.index(signature)
                # A class may be spelled like a word, which comes before the classes.
                if word >= len(self.vocabulary_):
                    return word
        return self.words_.index(UNK)

    def _chains(self, token, initial):
        """Return endings, beginnings and other classes, the finest first."""
        if self.signature == "suffix":
            return spelling_classes(token, initial=initial)
        if self.signature == "none":
            return (), (), (UNK,)
        if self.signature == "english":
            known = token.lower() in self.counts_
            signature = english_signature(token, initial=initial, known_lower=known)
            return (), (), tuple(coarser(signature))
        found = self.signature(token)
        names = (found,) if isinstance(found, str) else found
        try:
            names = tuple(names)
        except TypeError:
            names = (None,)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"signature({token!r}) returned {found!r}, expected a str or a "
                "sequence of str"
            )
        return (), (), names


def _token_counts(treebank):
    """Return counts of tokens as `RareWords._count` does, and of their tags."""
    names = treebank.tokens.strings
    counts = np.bincount(_forms(treebank), minlength=2 * len(names)).reshape(-1, 2)
    used = np.flatnonzero(counts.any(axis=1)).tolist()
    in_tree = np.repeat(treebank.is_parsed, treebank.lengths)
    n_labels = len(treebank.labels)
    label = treebank.label[treebank.size == 1].astype(np.int64)
    pairs = treebank.token[in_tree] * np.int64(n_labels) + label
    tags = Counter()
    for pair, n in zip(*np.unique(pairs, return_counts=True), strict=True):
        token, label = divmod(int(pair), n_labels)
        tag = treebank.labels[label]
        if treebank.binarized:
            tag = "".join(decode_label(tag).chain[-1:])
        tags[names[token], tag] += int(n)
    return {names[i]: counts[i] for i in used}, tags


def _forms(treebank):
    """Return twice each token id, plus one at the beginning of a sentence."""
    forms = 2 * treebank.token.astype(np.int64)
    starts = treebank.token_offsets[:-1]
    forms[starts[starts < treebank.token_offsets[1:]]] += 1
    return forms


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
