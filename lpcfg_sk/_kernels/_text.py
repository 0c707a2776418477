"""Byte strings: their ids, the bytes that scanners distinguish, and trees as text."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import HELPER, KERNEL

_MERSENNE = 2**31 - 1


class Symbols(NamedTuple):
    """Interned byte strings: an open-addressing table over a pool of bytes."""

    slots: np.ndarray  # int32, a power of two long; -1 is free
    hashes: np.ndarray  # int64, one per symbol
    ends: np.ndarray  # int64; pool[ends[i]:ends[i + 1]] is symbol i and a line end
    pool: np.ndarray  # uint8
    count: np.ndarray  # int64[1]


@njit(**HELPER)
def is_space(byte):
    """Return whether a byte is ASCII white space."""
    return byte == 32 or 9 <= byte <= 13


@njit(**HELPER)
def hash_step(key, byte, multiplier):
    """Add a byte to a polynomial hash modulo 2^31 - 1.

    The hash is universal, because the multiplier is secret.
    """
    key = key * multiplier + byte + 1
    return (key & _MERSENNE) + (key >> 31)


@njit(**KERNEL)
def intern(text, begin, stop, multiplier, symbols):
    """Return the id of a byte string, which is added if it is new.

    Parameters
    ----------
    text : uint8 array
        The string is ``text[begin:stop]``.
    begin, stop : int
        Where it is.
    multiplier : int
        Secret of the hash function.
    symbols : Symbols
        Written to; must have room for the string.

    Returns
    -------
    symbol : int
    """
    key = 0
    for i in range(begin, stop):
        key = hash_step(key, int(text[i]), multiplier)
    return intern_hashed(text, begin, stop, key, symbols)


@njit(**KERNEL, inline="always")
def intern_hashed(text, begin, stop, key, symbols):
    """Return the id of a byte string whose hash is known.

    It is inlined, because passing the arrays costs as much as looking up a short word.

    Parameters
    ----------
    text : uint8 array
        The string is ``text[begin:stop]``.
    begin, stop : int
        Where it is.
    key : int
        Its hash.
    symbols : Symbols
        Written to; must have room for the string.

    Returns
    -------
    symbol : int
    """
    slots, hashes, ends, pool, count = symbols
    length = stop - begin
    mask = slots.size - 1
    slot = key & mask
    while slots[slot] >= 0:
        symbol = slots[slot]
        offset = ends[symbol]
        if hashes[symbol] == key and ends[symbol + 1] - offset == length + 1:
            same = 0
            while same < length and pool[offset + same] == text[begin + same]:
                same += 1
            if same == length:
                return symbol
        slot = (slot + 1) & mask
    symbol = count[0]
    slots[slot] = symbol
    hashes[symbol] = key
    offset = ends[symbol]
    for i in range(length):
        pool[offset + i] = text[begin + i]
    # No symbol contains a line end, so Python decodes and splits all in one call.
    pool[offset + length] = 10
    ends[symbol + 1] = offset + length + 1
    count[0] = symbol + 1
    return symbol


@njit(**KERNEL)
def rehash(hashes, count, slots):
    """Enter the first ``count`` symbols into the empty table ``slots``."""
    mask = slots.size - 1
    for symbol in range(count):
        slot = hashes[symbol] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = symbol


@njit(**KERNEL)
def invalid_byte(text, begin, stop):
    """Return the position of the first byte that is NUL or not UTF-8, or -1."""
    i = begin
    while i < stop:
        byte = text[i]
        low = 128
        high = 191
        if byte == 0:
            return i
        if byte < 128:
            i += 1
            continue
        if 194 <= byte <= 223:
            extra = 1
        elif 224 <= byte <= 239:
            extra = 2
            if byte == 224:
                low = 160
            elif byte == 237:
                high = 159
        elif 240 <= byte <= 244:
            extra = 3
            if byte == 240:
                low = 144
            elif byte == 244:
                high = 143
        else:
            return i
        if i + extra >= stop or not low <= text[i + 1] <= high:
            return i
        for j in range(i + 2, i + extra + 1):
            if text[j] & 192 != 128:
                return i
        i += extra + 1
    return -1


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


@njit(**KERNEL)
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


@njit(**HELPER)
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


@njit(**KERNEL)
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
