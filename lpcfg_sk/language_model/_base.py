"""Sentences as events of words given earlier words, and the models' common base."""

import warnings
from collections.abc import Iterable, Sequence
from itertools import chain
from numbers import Integral
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import Interval, StrOptions
from lpcfg_sk.treebank import check_sample_weight

#: Id of the unknown word in every vocabulary.
UNK = 0
#: Id of the end of a sentence, in sentence mode.
END = 1
_END_TOKEN = "</s>"
_START_TOKEN = "<s>"


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


def check_corpus(X, *, estimator):
    """Return X as a list of token lists, or raise an error that says what is wrong.

    Parameters
    ----------
    X : iterable of sequence of str
        Sentences, each a sequence of tokens.
    estimator : estimator
        The caller, named in messages.

    Returns
    -------
    list of sequence of str
    """
    name = type(estimator).__name__
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise TypeError(
            f"{name} takes a list of token lists, got {type(X).__name__}; split text "
            "into tokens first, e.g. [line.split() for line in text.splitlines()]"
        )
    X = list(X)
    if not X:
        raise ValueError(f"{name} takes a list of token lists, got an empty list")
    for row, sentence in enumerate(X):
        if isinstance(sentence, str | bytes):
            raise TypeError(
                f"{name} takes a list of token lists, but X[{row}] is one string; "
                "split it into tokens, e.g. [line.split() for line in X]"
            )
        if not isinstance(sentence, Sequence | np.ndarray):
            raise TypeError(
                f"{name} takes a list of token lists, but X[{row}] is of type "
                f"{type(sentence).__name__}"
            )
        for place, token in enumerate(sentence):
            if not isinstance(token, str):
                raise TypeError(
                    f"tokens are strings, but X[{row}][{place}] is {token!r} of type "
                    f"{type(token).__name__}; convert it, e.g. by str"
                )
    return X


class BaseLanguageModel(BaseEstimator):
    """Common base of models of words given earlier words.

    A subclass has ``_order``, the length of its n-grams, and ``_n_starts``, the number
    of start symbols before a sentence; it implements ``fit``,
    ``_probabilities(history, outcome)`` and ``_distribution(history)``.
    """

    _parameter_constraints: dict = {
        "mode": [StrOptions({"stream", "sentence"})],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "score_unk": ["boolean"],
        "unk_token": [str],
    }

    _n_starts = 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _set_vocabulary(self, X, weights):
        """Choose the outcomes, the commonest first, each sentence by its weight."""
        counts = {}
        for sentence, weight in zip(X, weights.tolist(), strict=True):
            for word in sentence:
                counts[word] = counts.get(word, 0) + weight
        counts.pop(self.unk_token, None)
        kept = [word for word, count in counts.items() if count >= self.min_count]
        # The order of the text breaks ties, so the ids depend neither on hashing nor on
        # whether a sentence is repeated or weighted.
        kept.sort(key=lambda word: -counts[word])
        self._name_outcomes([*self._special(), *kept])

    def _special(self):
        """Outcomes that are no words of the text."""
        if self.mode == "sentence":
            return [self.unk_token, _END_TOKEN]
        return [self.unk_token]

    def _name_outcomes(self, words):
        self.vocabulary_ = np.array(words, dtype=object)
        self._index = {word: i for i, word in enumerate(words)}

    def _encode(self, X):
        """Turn sentences into events."""
        lengths = np.fromiter(map(len, X), np.int64, len(X))
        get = self._index.get
        tokens = np.fromiter(
            (get(word, UNK) for word in chain.from_iterable(X)), np.int32, lengths.sum()
        )
        before, first = -1, [len(tokens)]
        if self.mode == "sentence":
            # The end symbol of each sentence comes after its last token.
            tokens = np.insert(tokens, np.cumsum(lengths), np.int32(END))
            lengths = lengths + 1
            before, first = len(self._index), lengths
        position = np.arange(len(tokens)) - np.repeat(np.cumsum(first) - first, first)
        history = np.empty((len(tokens), self._order - 1), np.int32)
        for k in range(self._order - 1):
            history[:, k] = np.roll(tokens, k + 1)
            history[position <= k, k] = before
            history[position <= k - self._n_starts, k] = -1
        sample = np.repeat(np.arange(len(X), dtype=np.int32), lengths)
        return Events(tokens, history, sample)

    def _check_training_data(self, X, sample_weight):
        """Sentences of positive weight, and their weights."""
        X = check_corpus(X, estimator=self)
        weights = check_sample_weight(sample_weight, X)
        X = [X[row] for row in np.flatnonzero(weights)]
        self._check_tokens(X)
        if not any(map(len, X)):
            raise ValueError(
                "X has no tokens: all its sentences are empty, or of weight 0"
            )
        return X, weights[weights > 0]

    def _check_tokens(self, X):
        """Refuse the symbols that sentence mode adds by itself."""
        if self.mode != "sentence":
            return
        for row, sentence in enumerate(X):
            for token in (_START_TOKEN, _END_TOKEN):
                if token in sentence:
                    raise ValueError(
                        f"sentence {row} contains {token!r}, which sentence mode adds "
                        "by itself: leave it out of X"
                    )

    def _events(self, X):
        """All events, and a mask of the scored ones."""
        check_is_fitted(self)
        self._check_tokens(X)
        events = self._encode(X)
        if self.score_unk:
            return events, np.ones(len(events.outcome), dtype=bool)
        return events, events.outcome != UNK

    def _log_prob(self, X):
        """Log probability of each scored event, the mask of these, and all events."""
        events, scored = self._events(X)
        with np.errstate(divide="ignore"):
            log_prob = np.log(
                self._probabilities(events.history[scored], events.outcome[scored])
            )
        return log_prob, scored, events

    def score_samples(self, X):
        """Log probability of each sentence.

        Parameters
        ----------
        X : list of list of str
            Sentences.

        Returns
        -------
        log_prob : ndarray of shape (n_sentences,)
            Sum of the log probabilities of the scored tokens, how many
            :meth:`scored_tokens` says; -inf where one of them has probability 0.
        """
        X = check_corpus(X, estimator=self)
        log_prob, scored, events = self._log_prob(X)
        sums = np.bincount(events.sample[scored], weights=log_prob, minlength=len(X))
        # Without a scored token bincount ignores the type of the weights.
        return sums.astype(np.float64, copy=False)

    def scored_tokens(self, X):
        """Count what :meth:`score_samples` sums in each sentence.

        Parameters
        ----------
        X : list of list of str
            Sentences.

        Returns
        -------
        n_tokens : ndarray of int, shape (n_sentences,)
            Tokens, without unknown words unless ``score_unk``, and in sentence mode
            the end of the sentence.

        Examples
        --------
        >>> from lpcfg_sk.language_model import KneserNeyLM
        >>> model = KneserNeyLM(min_count=1).fit([["a", "b", "a"], ["b", "a"]])
        >>> model.scored_tokens([["a", "b", "c"], ["c"]])
        array([2, 0])
        """
        X = check_corpus(X, estimator=self)
        events, scored = self._events(X)
        return np.bincount(events.sample[scored], minlength=len(X))

    def score(self, X, y=None, *, sample_weight=None):
        """Mean log probability of a scored token.

        Parameters
        ----------
        X : list of list of str
            Sentences.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_sentences,), default=None
            Weights of the sentences.

        Returns
        -------
        score : float
            Natural logarithm; -inf when a scored token has probability 0, which is
            counted in a warning.
        """
        X = check_corpus(X, estimator=self)
        log_prob, scored, events = self._log_prob(X)
        weights = check_sample_weight(sample_weight, X)[events.sample[scored]]
        log_prob, weights = log_prob[weights > 0], weights[weights > 0]
        if not len(log_prob):
            raise ValueError(
                "X has no token to score: all are unknown words, or of weight 0; "
                "score_unk=True counts unknown words"
            )
        n_zero = int(np.isneginf(log_prob).sum())
        if n_zero:
            warnings.warn(
                f"{n_zero} of {len(log_prob)} scored tokens have probability 0, so the "
                "mean log probability is -inf; smooth the model (prior, "
                "unigram_weight), and see event_report for the other tokens",
                UserWarning,
                stacklevel=2,
            )
        return float(np.average(log_prob, weights=weights))

    def perplexity(self, X):
        """Perplexity per scored token, ``exp(-score(X))``.

        Parameters
        ----------
        X : list of list of str
            Sentences.

        Returns
        -------
        perplexity : float
            Infinite when a scored token has probability 0.
        """
        return float(np.exp(-self.score(X)))

    def event_report(self, X):
        """What a perplexity counts and what it leaves out.

        Parameters
        ----------
        X : list of list of str
            Sentences.

        Returns
        -------
        report : Series
            ``n_events`` (tokens, and ends of sentences in sentence mode),
            ``n_unknown`` of them unknown words, ``n_scored`` (all, or all but the
            unknown), ``n_zero`` of these with probability 0, ``zero_fraction``,
            ``perplexity`` and ``perplexity_without_zeros``, which is not comparable
            with anything unless ``n_zero`` is 0.

        Examples
        --------
        >>> from lpcfg_sk.language_model import KneserNeyLM
        >>> model = KneserNeyLM(min_count=1).fit([["a", "b", "a"], ["b", "a"]])
        >>> model.event_report([["a", "b", "c"]])[["n_events", "n_unknown"]]
        n_events     3.0
        n_unknown    1.0
        dtype: float64
        """
        X = check_corpus(X, estimator=self)
        log_prob, scored, events = self._log_prob(X)
        possible = log_prob[~np.isneginf(log_prob)]
        n_zero = len(log_prob) - len(possible)
        return pd.Series(
            {
                "n_events": len(scored),
                "n_unknown": (events.outcome == UNK).sum(),
                "n_scored": len(log_prob),
                "n_zero": n_zero,
                "zero_fraction": n_zero / len(log_prob) if len(log_prob) else np.nan,
                "perplexity": _perplexity(log_prob),
                "perplexity_without_zeros": _perplexity(possible),
            },
            dtype=float,
        )

    def predict_proba(self, X):
        """Distribution of the next token after each history.

        Parameters
        ----------
        X : list of list of str
            Histories; an empty one stands for the start of a sentence in sentence
            mode, and for no context in stream mode.

        Returns
        -------
        proba : ndarray of shape (n_histories, n_outcomes)
            Columns follow ``vocabulary_``; rows sum to 1.
        """
        check_is_fitted(self)
        X = check_corpus(X, estimator=self)
        self._check_tokens(X)
        history = np.full((len(X), self._order - 1), -1, np.int32)
        for row, tokens in enumerate(X):
            if self.mode == "sentence":
                first = len(tokens)
                history[row, first : first + self._n_starts] = len(self._index)
            for k, token in enumerate(tokens[::-1][: self._order - 1]):
                history[row, k] = self._index.get(token, UNK)
        return self._distribution(history)


def _perplexity(log_prob):
    return float(np.exp(-log_prob.mean())) if len(log_prob) else np.nan
