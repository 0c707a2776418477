"""Common base of language models."""

from itertools import chain
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import CheckedStateMixin, Interval, StrOptions
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.language_model._counting import Events, check_corpus
from lpcfg_sk.treebank import check_sample_weight

#: Id of the unknown word in every vocabulary.
UNK = 0
#: Id of the end of a sentence, in sentence mode.
END = 1
_END_TOKEN = "</s>"
_START_TOKEN = "<s>"


class BaseLanguageModel(CheckedStateMixin, BaseEstimator):
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
        "vocabulary": [None, "array-like"],
    }

    _n_starts = 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _set_vocabulary(self, X, weights):
        """Choose the outcomes, each sentence by its weight."""
        counts = {}
        for sentence, weight in zip(X, weights.tolist(), strict=True):
            for word in sentence:
                counts[word] = counts.get(word, 0) + weight
        self._choose_outcomes(counts)

    def _choose_outcomes(self, counts):
        """Choose the outcomes, the commonest first."""
        special = self._special()
        if self.vocabulary is not None:
            words = dict.fromkeys(self.vocabulary)
            self._name_outcomes([*special, *(w for w in words if w not in special)])
            return
        kept = [
            word
            for word, count in counts.items()
            if count >= self.min_count and word != self.unk_token
        ]
        # The order of the text breaks ties, so the ids depend neither on hashing nor on
        # whether a sentence is repeated or weighted.
        kept.sort(key=lambda word: -counts[word])
        self._name_outcomes([*special, *kept])

    def _special(self):
        """Outcomes that are not words of the text."""
        if self.mode == "sentence":
            return [self.unk_token, _END_TOKEN]
        return [self.unk_token]

    def _name_outcomes(self, words):
        if wrong := [word for word in words if not isinstance(word, str)]:
            raise TypeError(f"the words of a vocabulary are strings, got {wrong[0]!r}")
        self.vocabulary_ = np.array(words, dtype=object)
        self._index = {word: i for i, word in enumerate(words)}

    def _encode(self, X):
        """Turn sentences into events."""
        lengths = np.fromiter(map(len, X), np.int64, len(X))
        get = self._index.get
        tokens = np.fromiter(
            (get(word, UNK) for word in chain.from_iterable(X)), np.int32, lengths.sum()
        )
        return self._events_of_ids(tokens, lengths, marks=(END, len(self._index)))

    def _events_of_ids(self, tokens, lengths, before=(), marks=(-3, -2)):
        """Turn ids into events.

        Parameters
        ----------
        tokens : ndarray of int32, shape (n_tokens,)
            Ids of the words.
        lengths : ndarray of int64, shape (n_sentences,)
            Numbers of tokens of the sentences.
        before : sequence of int, default=()
            Ids of the tokens before a stream, the nearest last.
        marks : tuple of int, default=(-3, -2)
            Ids of the end and of the start of a sentence.

        Returns
        -------
        Events
        """
        end, start = marks
        n_samples, nothing, first = len(lengths), -1, [len(tokens)]
        if self.mode == "sentence":
            # The end symbol of each sentence comes after its last token.
            tokens = np.insert(tokens, np.cumsum(lengths), np.int32(end))
            lengths = lengths + 1
            nothing, first = start, lengths
        position = np.arange(len(tokens)) - np.repeat(np.cumsum(first) - first, first)
        history = np.empty((len(tokens), self._order - 1), np.int32)
        for k in range(self._order - 1):
            history[:, k] = np.roll(tokens, k + 1)
            history[position <= k, k] = nothing
            history[position <= k - self._n_starts, k] = -1
            # The first tokens of a stream may follow those of an earlier chunk.
            for place in range(min(k + 1, len(tokens)) if len(before) else 0):
                if k - place < len(before):
                    history[place, k] = before[len(before) - 1 - (k - place)]
        sample = np.repeat(np.arange(n_samples, dtype=np.int32), lengths)
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

    def _check_tokens(self, X, first_row=0):
        """Reject the symbols that sentence mode adds itself."""
        if self.mode != "sentence":
            return
        for row, sentence in enumerate(X, start=first_row):
            for token in (_START_TOKEN, _END_TOKEN):
                if token in sentence:
                    raise ValueError(
                        f"sentence {row} contains {token!r}, which sentence mode adds "
                        "by itself: leave it out of X"
                    )

    def _events(self, X):
        """All events, and a mask of the scored ones."""
        check_is_fitted(self)
        # Parameters may have been set since the fit checked them.
        self._validate_params()
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
            Sum of the log probabilities of the scored tokens, whose number is given by
            :meth:`scored_tokens`; -inf where one of them has probability 0.
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
            warn_caller(
                f"{n_zero} of {len(log_prob)} scored tokens have probability 0, so the "
                "mean log probability is -inf; smooth the model (prior, "
                "unigram_weight), and see event_report for the other tokens",
                UserWarning,
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
            with anything unless ``n_zero`` is 0; whatever ``score_unk`` says,
            ``perplexity_with_unknown`` over all events, and
            ``perplexity_without_unknown`` over the known ones.

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
        table = self.token_scores(X)
        every = table["log10_prob"].to_numpy() * np.log(10)
        unknown = table["unknown"].to_numpy()
        scored = table["scored"].to_numpy()
        log_prob = every[scored]
        possible = log_prob[~np.isneginf(log_prob)]
        n_zero = len(log_prob) - len(possible)
        return pd.Series(
            {
                "n_events": len(scored),
                "n_unknown": unknown.sum(),
                "n_scored": len(log_prob),
                "n_zero": n_zero,
                "zero_fraction": n_zero / len(log_prob) if len(log_prob) else np.nan,
                "perplexity": _perplexity(log_prob),
                "perplexity_without_zeros": _perplexity(possible),
                "perplexity_with_unknown": _perplexity(every),
                "perplexity_without_unknown": _perplexity(every[~unknown]),
            },
            dtype=float,
        )

    def token_scores(self, X):
        """Logarithm to base 10 of the probability of each token.

        Parameters
        ----------
        X : list of list of str
            Sentences.

        Returns
        -------
        table : DataFrame
            One row per token, and in sentence mode per end of a sentence:
            ``sentence``, ``token`` as it is in X, ``log10_prob``, ``unknown``, and
            ``scored``, whether :meth:`score_samples` counts it.

        Examples
        --------
        >>> from lpcfg_sk.language_model import KneserNeyLM
        >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
        >>> KneserNeyLM().fit(X).token_scores([["the", "bird"]]).round(2)
           sentence token  log10_prob  unknown  scored
        0         0   the       -0.50    False    True
        1         0  bird       -2.64     True   False
        """
        X = check_corpus(X, estimator=self)
        events, scored = self._events(X)
        with np.errstate(divide="ignore"):
            log10 = np.log10(self._probabilities(events.history, events.outcome))
        end = [_END_TOKEN] if self.mode == "sentence" else []
        return pd.DataFrame(
            {
                "sentence": events.sample,
                "token": [str(t) for sentence in X for t in (*sentence, *end)],
                "log10_prob": log10,
                "unknown": events.outcome == UNK,
                "scored": scored,
            }
        )

    def sample(self, n=1, *, length=None, max_length=1000, random_state=None):
        """Draw sentences from the model.

        Parameters
        ----------
        n : int, default=1
            Number of sentences.
        length : int, default=None
            Number of tokens of each, which stream mode needs because nothing ends a
            sentence there; in sentence mode None lets the model end sentences.
        max_length : int, default=1000
            Longer sentences are cut off, and counted in one warning.
        random_state : int, RandomState instance or None, default=None
            Source of randomness. The first sentences of a larger sample are those of a
            smaller one.

        Returns
        -------
        sentences : list of list of str
            Unknown words are `unk_token`.

        Examples
        --------
        >>> from lpcfg_sk.language_model import KneserNeyLM
        >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
        >>> model = KneserNeyLM(3, mode="sentence").fit(X)
        >>> model.sample(2, random_state=0)
        [['the', 'dog', 'barks'], ['the', 'cat', 'purrs']]
        """
        check_is_fitted(self)
        if self.mode == "stream" and length is None:
            raise ValueError("nothing ends a sentence in stream mode; give a length")
        n_cut, sentences = 0, []
        seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            tokens, ended = [], False
            while not ended and len(tokens) < (
                max_length if length is None else length
            ):
                p = self._distribution(self._histories([tokens]))[0]
                if length is not None and self.mode == "sentence":
                    p[END] = 0.0
                outcome = rng.choice(len(p), p=p / p.sum())
                ended = self.mode == "sentence" and outcome == END
                if not ended:
                    tokens.append(str(self.vocabulary_[outcome]))
            n_cut += length is None and not ended
            sentences.append(tokens)
        if n_cut:
            warn_caller(
                f"{n_cut} of {n} sentences were cut off at max_length={max_length}",
                UserWarning,
            )
        return sentences

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
        return self._distribution(self._histories(X))

    def _histories(self, X):
        """Ids of the tokens before the next one, nearest first."""
        history = np.full((len(X), self._order - 1), -1, np.int32)
        for row, tokens in enumerate(X):
            if self.mode == "sentence":
                first = len(tokens)
                history[row, first : first + self._n_starts] = len(self._index)
            for k, token in enumerate(tokens[::-1][: self._order - 1]):
                history[row, k] = self._index.get(token, UNK)
        return history


def _perplexity(log_prob):
    return float(np.exp(-log_prob.mean())) if len(log_prob) else np.nan
