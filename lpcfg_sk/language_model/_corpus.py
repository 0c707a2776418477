"""Sentences, and the events of words given earlier words that they are."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


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
                f"{type(sentence).__name__}"
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
