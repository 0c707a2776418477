"""Byte strings to ids, and the classes of bytes that the scanners tell apart."""

from typing import NamedTuple

import numpy as np
from numba import njit

_MERSENNE = 2**31 - 1


class Symbols(NamedTuple):
    """Interned byte strings: an open-addressing table over a pool of bytes."""

    slots: np.ndarray  # int32, a power of two long; -1 is free
    hashes: np.ndarray  # int64, one a symbol
    ends: np.ndarray  # int64; symbol i is pool[ends[i]:ends[i + 1]]
    pool: np.ndarray  # uint8
    count: np.ndarray  # int64[1]


@njit(nogil=True, cache=True)
def is_space(byte):
    """Whether a byte is ASCII white space; anything else belongs to a token."""
    return byte == 32 or 9 <= byte <= 13


@njit(nogil=True, cache=True)
def hash_bytes(text, begin, stop, multiplier):
    """Polynomial hash modulo 2^31 - 1; a secret multiplier makes it universal."""
    key = 0
    for i in range(begin, stop):
        key = key * multiplier + int(text[i]) + 1
        key = (key & _MERSENNE) + (key >> 31)
    return key


@njit(nogil=True, cache=True)
def intern(text, begin, stop, multiplier, symbols):
    """Id of the byte string ``text[begin:stop]``; room for it was reserved."""
    slots, hashes, ends, pool, count = symbols
    key = hash_bytes(text, begin, stop, multiplier)
    length = stop - begin
    mask = slots.size - 1
    slot = key & mask
    while slots[slot] >= 0:
        symbol = slots[slot]
        if hashes[symbol] == key and ends[symbol + 1] - ends[symbol] == length:
            offset = ends[symbol]
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
    ends[symbol + 1] = offset + length
    count[0] = symbol + 1
    return symbol


@njit(nogil=True, cache=True)
def rehash(hashes, count, slots):
    """Fill the free table ``slots`` with the first ``count`` symbols."""
    mask = slots.size - 1
    for symbol in range(count):
        slot = hashes[symbol] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = symbol


@njit(nogil=True, cache=True)
def invalid_byte(text, begin, stop):
    """Position of the first byte that is NUL or not UTF-8, -1 for none."""
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
