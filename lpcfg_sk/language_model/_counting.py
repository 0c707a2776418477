"""Sentences as events, and counts of n-grams in memory for the distinct ones."""

import gzip
from collections.abc import Iterable, Sequence, Sized
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

#: Tokens that are processed together, up to the end of a sentence.
_CHUNK_TOKENS = 250_000
#: Characters of a text without lines that are read together.
_BLOCK = 2**20


class Events(NamedTuple):
    """Tokens to predict, each with the tokens before it.

    Attributes
    ----------
    outcome : ndarray of int32, shape (n_events,)
        Id of the token.
    history : ndarray of int32, shape (n_events, order - 1)
        Ids of the tokens before it, nearest first.  Before the first token of a
        sentence comes the start symbol (id ``n_outcomes``), once or as often as the
        order asks for; before the start of a stream there is nothing (-1).
    sample : ndarray of int32, shape (n_events,)
        Row of X that the token belongs to.
    """

    outcome: np.ndarray
    history: np.ndarray
    sample: np.ndarray


def check_corpus(X, *, estimator, first_row=0):
    """Return X as a list of token lists, or raise an error that says what is wrong.

    Parameters
    ----------
    X : iterable of sequence of str
        Sentences, each a sequence of tokens.
    estimator : estimator
        The caller, named in messages.
    first_row : int, default=0
        Number of the first row in messages.

    Returns
    -------
    list of sequence of str
    """
    name = type(estimator).__name__
    X = list(check_iterable(X, estimator=estimator))
    if not X:
        raise ValueError(f"{name} takes a list of token lists, got an empty list")
    for row, sentence in enumerate(X, start=first_row):
        if isinstance(sentence, str | bytes):
            raise TypeError(
                f"{name} takes a list of token lists, but X[{row}] is one string; "
                "split it into tokens, e.g. [line.split() for line in X]"
            )
        if not isinstance(sentence, Sequence | np.ndarray):
            raise TypeError(
                f"{name} takes a list of token lists, but X[{row}] is of type "
                f"{type(sentence).__name__}; the sentences of a treebank are "
                "treebank.sentences()"
            )
        for place, token in enumerate(sentence):
            if not isinstance(token, str):
                raise TypeError(
                    f"tokens are strings, but X[{row}][{place}] is {token!r} of type "
                    f"{type(token).__name__}; convert it, e.g. by str"
                )
    return X


def check_iterable(X, *, estimator):
    """Return X if sentences can be read from it, or raise an error."""
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise TypeError(
            f"{type(estimator).__name__} takes a list of token lists, got "
            f"{type(X).__name__}; split text into tokens first, e.g. "
            "[line.split() for line in text.splitlines()]"
        )
    return X


class SentenceFile:
    r"""Sentences of a text file, one per line, read anew in each pass.

    Parameters
    ----------
    path : str, path-like or open text file
        A text file; ``.gz`` is read too. An open file is read once.
    encoding : str, default="utf-8"
        Its encoding.
    lines : bool, default=True
        Whether a line is a sentence. Where False, the text comes in pieces of about a
        megabyte that ignore its lines, so that a line may be larger than memory: for
        models with ``mode="stream"``.

    Examples
    --------
    >>> import tempfile
    >>> from lpcfg_sk.language_model import KneserNeyLM, SentenceFile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("the dog barks\nthe cat purrs\n" * 20)
    ...     file.flush()
    ...     model = KneserNeyLM(3).fit(SentenceFile(file.name))
    >>> len(model.vocabulary_)
    6
    """

    def __init__(self, path, *, encoding="utf-8", lines=True):
        self.path = path
        self.encoding = encoding
        self.lines = lines

    def __iter__(self):
        """Yield the tokens of each line or piece, split at white space."""
        with self._open() as text:
            if self.lines:
                yield from map(str.split, text)
                return
            rest = ""
            while block := text.read(_BLOCK):
                block = rest + block
                tokens = block.split()
                # The last token may go on in the next block.
                rest = "" if block[-1].isspace() else tokens.pop()
                yield tokens
            yield rest.split()

    def _open(self):
        if hasattr(self.path, "read"):
            return nullcontext(self.path)
        opened = gzip.open if str(self.path).endswith(".gz") else open
        return opened(self.path, "rt", encoding=self.encoding)


def count_ngrams(model, X, weights=None):
    """Choose the vocabulary of a model from a text, and count the text's n-grams.

    Parameters
    ----------
    model : BaseLanguageModel
        Its vocabulary is set.
    X : iterable of sequence of str
        Sentences, read once.
    weights : ndarray of float, default=None
        Weights of the sentences.

    Returns
    -------
    events : Events
        Each distinct one once.
    counts : ndarray of float64, shape (n_events,)
        How often it was seen.
    """
    counter = NGramCounter(model)
    counter.add(check_iterable(X, estimator=model), weights)
    if not counter.word_counts:
        raise ValueError(
            "X has no tokens: it has no sentences, or all are empty or of weight 0"
        )
    model._choose_outcomes(counter.word_counts)
    return counter.events()


class NGramCounter:
    """Counts of the longest n-grams of a text, over all words of the text.

    Parameters
    ----------
    model : BaseLanguageModel
        Its ``mode``, order, start symbols and unknown word.

    Attributes
    ----------
    word_counts : dict of str to float
        How often each word was seen, in the order of the text.
    n_sentences : int
        Number of sentences so far.
    """

    def __init__(self, model):
        self._model = model
        self._ids = {}
        self.word_counts = {}
        self.n_sentences = 0
        self._rows = np.zeros((0, model._order), np.int32)
        self._counts = np.zeros(0)
        self._pending = []
        # Tokens of a stream before the next chunk, nearest last.
        self._before = np.zeros(0, np.int32)

    def add(self, X, weights=None):
        """Count the n-grams of all sentences.

        Parameters
        ----------
        X : iterable of sequence of str
            Sentences.
        weights : ndarray of float, default=None
            Weights of the sentences; those of weight 0 are left out.
        """
        for chunk in _chunks(X):
            first = self.n_sentences
            check_corpus(chunk, estimator=self._model, first_row=first)
            self.n_sentences += len(chunk)
            weight = np.ones(len(chunk))
            if weights is not None:
                weight = weights[first : self.n_sentences]
                chunk = [chunk[i] for i in np.flatnonzero(weight)]
                weight = weight[weight > 0]
            self._model._check_tokens(chunk, first_row=first)
            self._add_chunk(chunk, weight)

    def _add_chunk(self, chunk, weight):
        ids, counts = self._ids, self.word_counts
        lengths = np.fromiter(map(len, chunk), np.int64, len(chunk))
        tokens = np.empty(lengths.sum(), np.int32)
        place = 0
        for sentence, w in zip(chunk, weight.tolist(), strict=True):
            for word in sentence:
                tokens[place] = ids.setdefault(word, len(ids))
                counts[word] = counts.get(word, 0) + w
                place += 1
        events = self._model._events_of_ids(tokens, lengths, self._before)
        if self._model.mode == "stream":
            joined = np.concatenate([self._before, tokens])
            self._before = joined[max(0, len(joined) - self._model._order + 1) :]
        rows = np.column_stack([events.outcome, events.history])
        self._pending.append(_distinct(rows, weight[events.sample]))
        # Merging only when pending rows outnumber merged ones keeps the work linear.
        if sum(len(r) for r, _ in self._pending) > len(self._rows):
            self._merge()

    def _merge(self):
        parts = [(self._rows, self._counts), *self._pending]
        rows, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._rows, self._counts = _distinct(rows, counts)
        self._pending = []

    def events(self):
        """Return each distinct event once, over the model's vocabulary.

        Returns
        -------
        events : Events
            ``sample`` numbers the events.
        weights : ndarray of float64, shape (n_events,)
            Their counts.
        """
        self._merge()
        index, n_outcomes = self._model._index, len(self._model._index)
        # The marks -3, -2 and -1 are the end, the start and nothing.
        table = [index.get(word, 0) for word in self._ids] + [1, n_outcomes, -1]
        rows, counts = _distinct(np.array(table, np.int32)[self._rows], self._counts)
        sample = np.arange(len(rows), dtype=np.int32)
        return Events(rows[:, 0].copy(), rows[:, 1:].copy(), sample), counts


def _chunks(X):
    """Cut sentences into lists of about as many tokens."""
    chunk, size = [], 0
    for sentence in X:
        chunk.append(sentence)
        # Checks come later; empty sentences take memory, too.
        size += 1 + (len(sentence) if isinstance(sentence, Sized) else 0)
        if size >= _CHUNK_TOKENS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _distinct(rows, counts):
    """Return distinct rows and the sums of their counts."""
    order = _order(rows)
    rows, counts = rows[order], counts[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    return rows[first], np.add.reduceat(counts, first) if len(first) else counts


def _order(rows):
    """Order that brings equal rows together."""
    # Marks go down to -3.
    base = int(rows.max(initial=0)) + 4
    if base ** rows.shape[1] >= 2**63:
        return np.lexsort(rows.T)
    # One sort of whole rows is faster than one of each column.
    key = np.zeros(len(rows), np.int64)
    for column in rows.T:
        key = key * base + (column + 3)
    return np.argsort(key)
