"""Bracketed text to columns of trees.

All brackets are structural in bracketed text, and every delimiter is an ASCII
byte, so the scanner works on UTF-8 bytes and never on characters.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._columns import Columns
from lpcfg_sk._kernels._shared import HELPER, KERNEL, held
from lpcfg_sk._kernels._text import hash_step, intern_hashed, invalid_byte, is_space

#: Indices into the report of a scan.
POSITION = 0  # where scanning stopped; the text after it is not used yet
TREES = 1  # trees written to the columns
SEEN = 2  # trees begun, good or bad
FAULTS = 3  # faults found
FAULT = 4  # code of the first fault
FAULT_POSITION = 5
FAULT_TREE = 6  # number of trees begun up to the first fault
REPORT_SIZE = 7

#: Codes of faults.
UNCLOSED, STRAY_CLOSE, STRAY_TEXT, EMPTY, NO_CHILD = range(1, 6)
NO_LABEL, NUL, UNDECODABLE, TOO_DEEP = range(6, 10)

_NEWLINE, _OPEN, _CLOSE = 10, 40, 41
_BYTE_ORDER_MARK = np.frombuffer(b"\xef\xbb\xbf", dtype=np.uint8)


class ScanSettings(NamedTuple):
    """Settings of a scan.

    Attributes
    ----------
    skip : bool
        Whether to pass over faults instead of stopping at the first one.
    max_depth : int
        Greatest number of brackets that may be open at once.
    margin : int
        After a tree that is never closed, scanning goes on at the next "(" that is
        the first of its line and indented by at most this much.
    comment : uint8 array
        Start of a comment between trees; empty if there are no comments.
    root : int
        Symbol to use as the label of an unlabelled root.
    multiplier : int
        Secret of the hash function.
    """

    skip: bool
    max_depth: int
    margin: int
    comment: np.ndarray
    root: int
    multiplier: int


class ScanOutput(NamedTuple):
    """Arrays that a scan writes to.

    Attributes
    ----------
    columns : Columns
        Trees. A leaf is a pre-terminal with its word; a word with siblings is a node
        of its own with label -1.
    filled : int64 array, shape (3,)
        Number of trees, nodes and tokens in the columns; updated by the scan.
    places : int64 array, shape (n_trees, 2)
        Where each tree begins and ends in the text.
    report : int64 array, shape (REPORT_SIZE,)
        See ``POSITION`` and the following names. ``report[POSITION]`` is the start of
        the tree that the end of the text cuts off.
    """

    columns: Columns
    filled: np.ndarray
    places: np.ndarray
    report: np.ndarray


@njit(**KERNEL)
def count_marks(text):
    """Count opening brackets and tokens, which bound the output of a scan."""
    n_open = 0
    n_tokens = 0
    before = True
    for i in range(text.size):
        byte = text[i]
        between = (byte == 32) | ((byte >= 9) & (byte <= 13)) | (byte & 254 == _OPEN)
        n_open += byte == _OPEN
        n_tokens += before & (not between)
        before = between
    return n_open, n_tokens


@held
@njit(**KERNEL)
def unmatched_brackets(text, begin):
    """Return the positions of opening brackets that are never closed, ascending."""
    count = 0
    for _ in range(2):
        positions = np.empty(count, dtype=np.int64)
        kept = count
        closers = 0
        for i in range(text.size - 1, begin - 1, -1):
            if text[i] == _CLOSE:
                closers += 1
            elif text[i] == _OPEN:
                if closers > 0:
                    closers -= 1
                elif kept > 0:
                    kept -= 1
                    positions[kept] = i
                else:
                    count += 1
    return positions


@njit(**HELPER)
def line_end(text, position):
    """Return where the line at a position ends."""
    while position < text.size and text[position] != _NEWLINE:
        position += 1
    return position


@njit(**HELPER)
def _next_tree_line(text, position, margin):
    """Return the next "(" that is first on its line, indented by at most ``margin``."""
    while position < text.size:
        first = position = line_end(text, position) + 1
        while position < text.size and (text[position] == 32 or text[position] == 9):
            position += 1
        indented = position - first <= margin
        if indented and position < text.size and text[position] == _OPEN:
            return position
    return text.size


@njit(**HELPER)
def _starts_with(text, position, prefix):
    """Return whether a prefix that is not empty stands at a position."""
    if prefix.size == 0 or position + prefix.size > text.size:
        return False
    same = 0
    while same < prefix.size and text[position + same] == prefix[same]:
        same += 1
    return same == prefix.size


@njit(**HELPER)
def _token(text, position, multiplier):
    """Return the end of a token, its hash, and its first invalid byte or -1."""
    begin = position
    key = 0
    odd = False
    while position < text.size:
        byte = int(text[position])
        if byte <= _CLOSE and (byte >= _OPEN or is_space(byte)):
            break
        odd |= byte == 0 or byte >= 128
        key = hash_step(key, byte, multiplier)
        position += 1
    return position, key, invalid_byte(text, begin, position) if odd else -1


@njit(**HELPER)
def _next_tree(text, position, final, skip, comment, report):
    """Pass over the text between trees.

    Stray text that is cut off by the end of a block is left for the next scan,
    because it may turn out to be a comment.

    Parameters
    ----------
    text : uint8 array
        UTF-8.
    position : int
        Where to start, outside any tree.
    final : bool
        Whether the file ends with the text.
    skip : bool
        Whether to pass over stray text.
    comment : uint8 array
        Start of a comment.
    report : int64 array
        Stray text is recorded here.

    Returns
    -------
    position : int
        The next "(", or where scanning has to stop.
    more : bool
        Whether a tree begins there.
    """
    stray = -1
    while position < text.size and text[position] != _OPEN:
        byte = text[position]
        if is_space(byte):
            position += 1
        elif not final and position + max(3, comment.size) > text.size:
            return (position if stray < 0 else stray), False
        elif _starts_with(text, position, _BYTE_ORDER_MARK):
            position += 3
        elif (stray < 0 or is_space(text[position - 1])) and _starts_with(
            text, position, comment
        ):
            begin = position
            position = line_end(text, position)
            if position == text.size and not final:
                return (begin if stray < 0 else stray), False
        else:
            if stray < 0:
                stray = position
            if not skip:
                break
            position += 1
    if stray >= 0:
        if skip and position == text.size and not final:
            return stray, False
        code = STRAY_CLOSE if text[stray] == _CLOSE else STRAY_TEXT
        if code == STRAY_TEXT:
            _, _, invalid = _token(text, stray, np.int64(0))
            if invalid >= 0:
                stray, code = invalid, byte_fault(text, invalid)
        record_fault(report, code, stray, report[SEEN] + 1)
        if not skip:
            return position, False
    return position, position < text.size


@njit(**HELPER)
def byte_fault(text, position):
    """Return the code of the fault for an invalid byte."""
    return NUL if text[position] == 0 else UNDECODABLE


@njit(**KERNEL)
def record_fault(report, code, position, tree):
    """Count a fault, and note where the first one is.

    Parameters
    ----------
    report : int64 array
        Written to.
    code : int
        Kind of the fault.
    position : int
        Where it is in the text.
    tree : int
        Number of trees begun so far.
    """
    if report[FAULTS] == 0:
        report[FAULT] = code
        report[FAULT_POSITION] = position
        report[FAULT_TREE] = tree
    report[FAULTS] += 1


@njit(**KERNEL)
def scan_trees(text, begin, final, unclosed, settings, symbols, output):
    """Scan the complete trees of ``text[begin:]`` into columns.

    Parameters
    ----------
    text : uint8 array
        UTF-8.
    begin : int
        Where to start, outside any tree.
    final : bool
        Whether the file ends with the text; otherwise a tree that the end cuts off
        is left for the next scan.
    unclosed : int64 array
        Positions of brackets known never to be closed, ascending.
    settings : ScanSettings
        Settings.
    symbols : Symbols
        Written to; must have room for all tokens of the text.
    output : ScanOutput
        Written to.
    """
    skip, max_depth, margin, comment, root, multiplier = settings
    columns, filled, places, report = output
    label, size, parent, start, stop, node_offsets, token, token_offsets = columns
    for k in range(REPORT_SIZE):
        report[k] = 0
    position = begin
    known = 0
    trees, first, token_first = filled[0], filled[1], filled[2]
    while True:
        position, more = _next_tree(text, position, final, skip, comment, report)
        report[POSITION] = position
        if not more:
            break
        while known < unclosed.size and unclosed[known] < position:
            known += 1
        if known < unclosed.size and unclosed[known] == position:
            report[SEEN] += 1
            record_fault(report, np.int64(UNCLOSED), position, report[SEEN])
            position = _next_tree_line(text, position, margin)
            continue
        current = -1
        depth = n_nodes = n_tokens = fault = 0
        place = position
        while position < text.size:
            byte = text[position]
            if is_space(byte):
                position += 1
                continue
            if fault != 0 and not skip:
                break
            if fault != 0:
                # The tree is faulty; only its end matters.
                position += 1
                if byte == _OPEN:
                    depth += 1
                elif byte == _CLOSE:
                    depth -= 1
                    if depth == 0:
                        break
                continue
            last = first + n_nodes - 1
            waiting = n_nodes > 0 and last == first + current and stop[last] >= 0
            if byte == _CLOSE:
                if current == n_nodes - 1 and not waiting:
                    fault, place = NO_CHILD, position
                    continue
                position += 1
                depth -= 1
                size[first + current] = n_nodes - current
                stop[first + current] = n_tokens
                current = parent[first + current]
                if current < 0:
                    break
                continue
            if waiting:
                # The word before has a sibling, so it becomes a node of its own.
                node = last + 1
                label[node] = -1
                size[node] = 1
                parent[node] = current
                start[node] = n_tokens - 1
                stop[node] = n_tokens
                n_nodes += 1
            opens = byte == _OPEN
            head = position
            if opens:
                head += 1
                while head < text.size and is_space(text[head]):
                    head += 1
            tail, key, invalid = _token(text, head, multiplier)
            if tail == text.size:
                # The end cuts the tree off, perhaps within a character.
                position = tail
            elif invalid >= 0:
                fault, place = byte_fault(text, invalid), invalid
            elif opens and head == tail and text[tail] == _CLOSE:
                fault, place = EMPTY, position
            elif opens and head == tail and current >= 0:
                fault, place = NO_LABEL, position
            elif opens and depth == max_depth:
                fault, place = TOO_DEEP, position
            else:
                symbol = root
                if head < tail:
                    symbol = intern_hashed(text, head, tail, key, symbols)
                if not opens:
                    token[token_first + n_tokens] = symbol
                    n_tokens += 1
                node = first + n_nodes
                if opens:
                    label[node] = symbol
                    parent[node] = current
                    start[node] = n_tokens
                    stop[node] = -1
                    current = n_nodes
                    n_nodes += 1
                    depth += 1
                elif current == n_nodes - 1:
                    stop[node - 1] = n_tokens
                else:
                    label[node] = -1
                    size[node] = 1
                    parent[node] = current
                    start[node] = n_tokens - 1
                    stop[node] = n_tokens
                    n_nodes += 1
                position = tail
        complete = current < 0 and n_nodes > 0 and fault == 0
        if fault != 0 and (depth == 0 or not skip):
            report[SEEN] += 1
            record_fault(report, fault, place, report[SEEN])
            report[POSITION] = position
            if not skip:
                break
        elif complete:
            report[SEEN] += 1
            places[report[TREES], 0] = report[POSITION]
            places[report[TREES], 1] = position
            report[TREES] += 1
            trees += 1
            first += n_nodes
            token_first += n_tokens
            node_offsets[trees] = first
            token_offsets[trees] = token_first
            report[POSITION] = position
        else:
            break
    filled[0], filled[1], filled[2] = trees, first, token_first
