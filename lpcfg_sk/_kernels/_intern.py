"""Ids of byte strings, and the classes of bytes that scanners distinguish."""

from typing import NamedTuple

import numpy as np
from numba import njit

_MERSENNE = 2**31 - 1


class Symbols(NamedTuple):
    """Interned byte strings: an open-addressing table over a pool of bytes."""

    slots: np.ndarray  # int32, a power of two long; -1 is free
    hashes: np.ndarray  # int64, one per symbol
    ends: np.ndarray  # int64; pool[ends[i]:ends[i + 1]] is symbol i and a line end
    pool: np.ndarray  # uint8
    count: np.ndarray  # int64[1]


@njit(nogil=True, cache=True)
def is_space(byte):
    """Return whether a byte is ASCII white space."""
    return byte == 32 or 9 <= byte <= 13


@njit(nogil=True, cache=True)
def hash_step(key, byte, multiplier):
    """Add a byte to a polynomial hash modulo 2^31 - 1.

    The hash is universal, because the multiplier is secret.
    """
    key = key * multiplier + byte + 1
    return (key & _MERSENNE) + (key >> 31)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True, inline="always")
def intern_hashed(text, begin, stop, key, symbols):
    """Return the id of a byte string whose hash is known.

    Inlined, because passing the arrays costs as much as looking up a short word.

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


@njit(nogil=True, cache=True)
def rehash(hashes, count, slots):
    """Enter the first ``count`` symbols into the empty table ``slots``."""
    mask = slots.size - 1
    for symbol in range(count):
        slot = hashes[symbol] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = symbol


@njit(nogil=True, cache=True)
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
