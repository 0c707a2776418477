"""Columns of trees to bracketed text."""

from typing import NamedTuple

import numpy as np
from numba import njit

_SPACE = 32
_OPEN = 40
_CLOSE = 41
_NEWLINE = 10


class Strings(NamedTuple):
    """Byte strings, one after the other.

    Attributes
    ----------
    pool : uint8 array
        All bytes.
    ends : int64 array, shape (n_strings + 1,)
        String ``i`` is ``pool[ends[i]:ends[i + 1]]``.
    """

    pool: np.ndarray
    ends: np.ndarray


@njit(nogil=True, cache=True)
def bracket_length(columns, labels, tokens, first, last):
    """Count the bytes of some trees.

    Every labelled node takes two brackets and its label, every node but a root has a
    space before it, a pre-terminal has another one before its word, and every tree
    ends with a line end.

    Parameters
    ----------
    columns : Columns
        Trees.
    labels, tokens : Strings
        What their ids stand for.
    first, last : int
        The trees to write are ``first:last``.

    Returns
    -------
    length : int
    """
    label, size, token = columns.label, columns.size, columns.token
    label_ends, token_ends = labels.ends, tokens.ends
    length = 0
    for i in range(columns.node_offsets[first], columns.node_offsets[last]):
        if label[i] >= 0:
            length += 3 + label_ends[label[i] + 1] - label_ends[label[i]]
            if size[i] == 1:
                length += 1
        else:
            length += 1
    for k in range(columns.token_offsets[first], columns.token_offsets[last]):
        length += token_ends[token[k] + 1] - token_ends[token[k]]
    return length


@njit(nogil=True, cache=True)
def _copy(strings, symbol, text, position):
    """Copy a string to a position of the text; return where it ends.

    Parameters
    ----------
    strings : Strings
        Where from.
    symbol : int
        Which string.
    text : uint8 array
        Written to.
    position : int
        Where to.

    Returns
    -------
    position : int
    """
    pool, ends = strings
    for i in range(ends[symbol], ends[symbol + 1]):
        text[position] = pool[i]
        position += 1
    return position


@njit(nogil=True, cache=True)
def write_brackets(columns, labels, tokens, first, last, text):
    """Write trees in brackets, one per line.

    Parameters
    ----------
    columns : Columns
        Trees.
    labels, tokens : Strings
        What their ids stand for.
    first, last : int
        The trees to write are ``first:last``.
    text : uint8 array
        Output.

    Returns
    -------
    position : int
        Number of bytes written.
    """
    label, size, parent, _, _, node_offsets, token, token_offsets = columns
    position = 0
    for t in range(first, last):
        base = node_offsets[t]
        n_nodes = node_offsets[t + 1] - base
        word = token_offsets[t]
        for i in range(n_nodes):
            node = base + i
            if i > 0:
                text[position] = _SPACE
                position += 1
            if label[node] >= 0:
                text[position] = _OPEN
                position = _copy(labels, label[node], text, position + 1)
            if size[node] > 1:
                continue
            if label[node] >= 0:
                text[position] = _SPACE
                position += 1
            position = _copy(tokens, token[word], text, position)
            word += 1
            if label[node] >= 0:
                text[position] = _CLOSE
                position += 1
            up = parent[node]
            while up >= 0 and up + size[base + up] == i + 1:
                text[position] = _CLOSE
                position += 1
                up = parent[base + up]
        text[position] = _NEWLINE
        position += 1
    return position
