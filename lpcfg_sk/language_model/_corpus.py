from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

#: Id of the unknown word in every vocabulary.
UNK = 0
#: Id of the end of a sentence, in sentence mode.
END = 1


class Events(NamedTuple):
    """Tokens to predict, each with the tokens before it.

    Attributes
    ----------
    outcome : ndarray of int32, shape (n_events,)
        Id of the token.
    history : ndarray of int32, shape (n_events, order - 1)
        Ids of the tokens before it, nearest first.  Before the start of a sentence
        it is the start symbol (id ``n_outcomes``); before the start of a stream there
        is nothing (-1).
    sample : ndarray of int32, shape (n_events,)
        Row of X that the token belongs to.
    """

    outcome: np.ndarray
    history: np.ndarray
    sample: np.ndarray


def check_corpus(X, *, estimator):
    """Take X as a list of token lists, or say what is wrong with it.

    Parameters
    ----------
    X : iterable of sequence of str
        Sentences, each a sequence of tokens.
    estimator : estimator
        Who asks, for the messages.

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


def build_vocabulary(X, weights, *, min_count, unk_token, end_token):
    """Outcomes of a language model, the commonest first.

    Parameters
    ----------
    X : list of sequence of str
        Training sentences.
    weights : sequence of float, shape (n_sentences,)
        How often each sentence counts.
    min_count : int
        Words seen less often are not kept.
    unk_token : str
        Name of the unknown word, always the first outcome.
    end_token : str or None
        Name of the end of a sentence, the second outcome, in sentence mode.

    Returns
    -------
    list of str
    """
    counts = {}
    for sentence, weight in zip(X, np.asarray(weights).tolist(), strict=True):
        for word in sentence:
            counts[word] = counts.get(word, 0) + weight
    special = [unk_token] if end_token is None else [unk_token, end_token]
    if end_token in counts:
        raise ValueError(
            f"the tokens contain {end_token!r}, which sentence mode adds by itself: "
            "leave it out of X"
        )
    counts.pop(unk_token, None)
    kept = [word for word, count in counts.items() if count >= min_count]
    # order of the text breaks ties, so the ids depend on neither hashing nor on
    # whether a sentence is repeated or weighted
    kept.sort(key=lambda word: -counts[word])
    return special + kept


def encode(X, index, *, order, sentence_mode):
    """Turn sentences into events.

    Parameters
    ----------
    X : list of sequence of str
        Sentences.
    index : dict of str to int
        Ids of the outcomes.
    order : int
        Length of the n-grams.
    sentence_mode : bool
        Whether sentences stand alone between boundaries, or follow one another in one
        stream.

    Returns
    -------
    Events
    """
    lengths = np.fromiter(map(len, X), np.int64, len(X))
    get = index.get
    tokens = np.fromiter(
        (get(word, UNK) for word in chain.from_iterable(X)), np.int32, lengths.sum()
    )
    if sentence_mode:
        # the end symbol of each sentence comes after its last token
        tokens = np.insert(tokens, np.cumsum(lengths), np.int32(END))
        lengths = lengths + 1
    before, first = (len(index), lengths) if sentence_mode else (-1, [len(tokens)])
    position = np.arange(len(tokens)) - np.repeat(np.cumsum(first) - first, first)
    history = np.empty((len(tokens), order - 1), np.int32)
    for k in range(order - 1):
        history[:, k] = np.roll(tokens, k + 1)
        history[position <= k, k] = before
    sample = np.repeat(np.arange(len(X), dtype=np.int32), lengths)
    return Events(tokens, history, sample)
