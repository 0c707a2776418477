"""NEGRA export format, which has one line per word or node, to columns of trees."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._columns import Columns
from lpcfg_sk._kernels._scanner import (
    EMPTY,
    FAULTS,
    NO_CHILD,
    NO_LABEL,
    POSITION,
    SEEN,
    STRAY_TEXT,
    TOO_DEEP,
    TREES,
    UNCLOSED,
    byte_fault,
    line_end,
    record_fault,
)
from lpcfg_sk._kernels._shared import HELPER, KERNEL
from lpcfg_sk._kernels._text import intern, invalid_byte, is_space

#: Codes of faults that occur in this format only.
FEW_FIELDS, BAD_PARENT, CYCLE, DISCONTINUOUS, DEFINED_TWICE = range(10, 15)

#: Indices into the state that lasts from block to block.
LEMMA = 0  # whether words have a lemma (format 4)
TABLE = 1  # whether the text is within a table
STRAY = 2  # whether the last line was out of place
STATE_SIZE = 3

#: Columns of the rows of a sentence.
#: The parent is the symbol of its number, later its row; -1 for the virtual root.
#: The last column is the index of the node in the tree once it has one.
_IS_NODE, _SYMBOL, _LABEL, _EDGE, _PARENT, _PLACE, _OPENED = range(7)
ROW_SIZE = 7
_UNOPENED, _VISITED = -1, -2

_OTHER, _BOS, _EOS, _BOT, _EOT, _FORMAT = range(6)
_HASH, _PERCENT = 35, 37


class ScanSettings(NamedTuple):
    """Settings of a scan.

    Attributes
    ----------
    skip : bool
        Whether to pass over faults instead of stopping at the first one.
    max_depth : int
        Greatest depth of a tree.
    root : int
        Symbol to use as the label of the virtual root.
    no_edge : int
        The symbol ``--``, which stands for a missing edge label or tag.
    multiplier : int
        Secret of the hash function.
    """

    skip: bool
    max_depth: int
    root: int
    no_edge: int
    multiplier: int


class Scratch(NamedTuple):
    """Working memory for one sentence.

    Attributes
    ----------
    rows : int64 array, shape (n_lines, ROW_SIZE)
        Lines of the sentence.
    row_of : int32 array, shape (n_symbols,)
        Row of the node with a number, -1 for symbols that are not numbers of nodes.
    path : int64 array, shape (n_lines + 1,)
        Rows from a word to its first open ancestor.
    """

    rows: np.ndarray
    row_of: np.ndarray
    path: np.ndarray


class ScanOutput(NamedTuple):
    """Arrays that a scan writes to.

    Attributes
    ----------
    columns : Columns
        Trees.
    filled : int64 array, shape (3,)
        Number of trees, nodes and tokens in the columns; updated by the scan.
    edge : int32 array, shape (n_nodes,)
        Edge label of each node.
    report : int64 array
        As for bracketed text.
    """

    columns: Columns
    filled: np.ndarray
    edge: np.ndarray
    report: np.ndarray


@njit(**HELPER)
def _next_field(text, position, stop):
    """Return where the next field of a line begins and ends."""
    while position < stop and is_space(text[position]):
        position += 1
    head = position
    while position < stop and not is_space(text[position]):
        position += 1
    return head, position


@njit(**HELPER)
def _keyword(text, head, tail):
    """Return the code of the keyword that a field is, or that of any other field."""
    length = tail - head
    if length < 4 or text[head] != _HASH:
        return _OTHER
    first, second, third = text[head + 1], text[head + 2], text[head + 3]
    if length == 4 and second == 79 and first in (66, 69):
        if third == 83:
            return _BOS if first == 66 else _EOS
        if third == 84:
            return _BOT if first == 66 else _EOT
    if length == 7 and first == 70 and second == 79 and third == 82:
        return _FORMAT
    return _OTHER


@njit(**HELPER)
def _is_number(text, head, tail):
    """Return whether a field consists of digits."""
    if head == tail:
        return False
    digits = head
    while digits < tail and 48 <= text[digits] <= 57:
        digits += 1
    return digits == tail


@njit(**HELPER)
def _is_node(text, head, tail):
    """Return whether a field is the number of a node, which are 500 or more."""
    if text[head] != _HASH or not _is_number(text, head + 1, tail):
        return False
    digits = tail - head - 1
    return (digits == 3 and text[head + 1] >= 53) or (
        digits > 3 and text[head + 1] != 48
    )


@njit(**HELPER)
def _parse_row(text, begin, stop, lemma, multiplier, symbols, row):
    """Read one line of a sentence.

    Parameters
    ----------
    text : uint8 array
        The line is ``text[begin:stop]``.
    begin, stop : int
        Where it is.
    lemma : bool
        Whether a lemma follows the word.
    multiplier : int
        Secret of the hash function.
    symbols : Symbols
        Written to.
    row : int64 array, shape (ROW_SIZE,)
        Written to.

    Returns
    -------
    code, place : int
        Code of a fault and its position in the text; code 0 if there is none.
    """
    invalid = invalid_byte(text, begin, stop)
    if invalid >= 0:
        return byte_fault(text, invalid), invalid
    head, tail = _next_field(text, begin, stop)
    row[_PLACE] = head
    row[_OPENED] = _UNOPENED
    is_node = _is_node(text, head, tail)
    row[_IS_NODE] = is_node
    row[_SYMBOL] = intern(
        text, head + 1 if is_node else head, tail, multiplier, symbols
    )
    if lemma:
        head, tail = _next_field(text, tail, stop)
    label_head, label_tail = _next_field(text, tail, stop)
    _, tail = _next_field(text, label_tail, stop)
    edge_head, edge_tail = _next_field(text, tail, stop)
    head, tail = _next_field(text, edge_tail, stop)
    if head == tail:
        return FEW_FIELDS, row[_PLACE]
    if not _is_number(text, head, tail):
        return BAD_PARENT, head
    row[_LABEL] = intern(text, label_head, label_tail, multiplier, symbols)
    row[_EDGE] = intern(text, edge_head, edge_tail, multiplier, symbols)
    row[_PARENT] = -1
    if tail - head > 1 or text[head] != 48:
        row[_PARENT] = intern(text, head, tail, multiplier, symbols)
    return 0, 0


@njit(**HELPER)
def _number_rows(rows, n_rows, row_of):
    """Replace the symbols of parents by rows; return a fault's code and row."""
    code = bad = 0
    for r in range(n_rows):
        if rows[r, _IS_NODE]:
            if row_of[rows[r, _SYMBOL]] >= 0 and code == 0:
                code, bad = DEFINED_TWICE, r
            row_of[rows[r, _SYMBOL]] = r
    for r in range(n_rows):
        if rows[r, _PARENT] >= 0:
            rows[r, _PARENT] = row_of[rows[r, _PARENT]]
            if rows[r, _PARENT] < 0 and code == 0:
                code, bad = BAD_PARENT, r
    for r in range(n_rows):
        if rows[r, _IS_NODE]:
            row_of[rows[r, _SYMBOL]] = -1
    return code, bad


@njit(**HELPER)
def _write_tree(scratch, n_rows, settings, columns, edge, node, word):
    """Write the tree of a sentence after ``node`` nodes and ``word`` words.

    Words are taken from left to right; each opens those of its ancestors that are
    not open yet. If the first open ancestor is closed already, branches cross.

    Parameters
    ----------
    scratch : Scratch
        Lines of the sentence, whose parents are rows.
    n_rows : int
        Number of lines.
    settings : ScanSettings
        Settings.
    columns : Columns
        Written to.
    edge : int32 array
        Written to: edge label of each node.
    node, word : int
        Number of nodes and words in the columns.

    Returns
    -------
    code, row : int
        Code of a fault and the row where it shows; code 0 if there is none.
    nodes, words : int
        Size of the tree.
    """
    rows, _, path = scratch
    _, max_depth, root, no_edge, _ = settings
    label, size, parent, start, stop = columns[:5]
    n_roots = words = 0
    root_edge = no_edge
    for r in range(n_rows):
        words += 1 - rows[r, _IS_NODE]
        if rows[r, _PARENT] < 0:
            n_roots += 1
            root_edge = rows[r, _EDGE]
    if words == 0:
        return EMPTY, 0, 0, 0
    current = -1
    n_nodes = n_words = depth = 0
    # The virtual root is a node unless the sentence names its root.
    if n_roots != 1 or root_edge != root:
        label[node] = root
        edge[node] = no_edge
        parent[node] = -1
        start[node] = 0
        stop[node] = -1
        current = 0
        n_nodes = depth = 1
    base = current
    for r in range(n_rows):
        if rows[r, _IS_NODE]:
            continue
        path[0] = r
        steps = 1
        up = rows[r, _PARENT]
        while up >= 0 and rows[up, _OPENED] == _UNOPENED:
            rows[up, _OPENED] = _VISITED
            path[steps] = up
            steps += 1
            up = rows[up, _PARENT]
        if up >= 0 and rows[up, _OPENED] == _VISITED:
            return CYCLE, up, 0, 0
        ancestor = base if up < 0 else rows[up, _OPENED]
        if ancestor >= 0 and stop[node + ancestor] >= 0:
            return DISCONTINUOUS, up, 0, 0
        while current != ancestor:
            stop[node + current] = n_words
            size[node + current] = n_nodes - current
            current = parent[node + current]
            depth -= 1
        if depth + steps > max_depth:
            return TOO_DEEP, r, 0, 0
        for step in range(steps - 1, -1, -1):
            row = path[step]
            i = node + n_nodes
            label[i] = rows[row, _LABEL]
            edge[i] = rows[row, _EDGE]
            if rows[row, _PARENT] < 0 and base < 0:
                edge[i] = no_edge
            parent[i] = current
            start[i] = n_words
            stop[i] = -1
            rows[row, _OPENED] = n_nodes
            if row != r:
                current = n_nodes
                depth += 1
            n_nodes += 1
        leaf = node + n_nodes - 1
        size[leaf] = 1
        stop[leaf] = n_words + 1
        if label[leaf] == no_edge:
            label[leaf] = -1
            if parent[leaf] < 0:
                return NO_LABEL, r, 0, 0
        columns.token[word + n_words] = rows[r, _SYMBOL]
        n_words += 1
    while current >= 0:
        stop[node + current] = n_words
        size[node + current] = n_nodes - current
        current = parent[node + current]
    for r in range(n_rows):
        if rows[r, _OPENED] < 0:
            return NO_CHILD, r, 0, 0
    return 0, 0, n_nodes, n_words


@njit(**KERNEL)
def scan_negra(text, final, settings, symbols, scratch, state, output):
    """Scan the complete sentences of a text into columns.

    Parameters
    ----------
    text : uint8 array
        UTF-8.
    final : bool
        Whether the file ends with the text; otherwise a sentence that the end cuts
        off is left for the next scan.
    settings : ScanSettings
        Settings.
    symbols : Symbols
        Written to; must have room for four symbols per line.
    scratch : Scratch
        Working memory.
    state : int64 array, shape (STATE_SIZE,)
        State that lasts from block to block; updated.
    output : ScanOutput
        Written to.
    """
    skip, multiplier = settings.skip, settings.multiplier
    rows = scratch.rows
    columns, filled, edge, report = output
    report[:] = 0
    trees, node, word = filled[0], filled[1], filled[2]
    n_rows = fault = place = sentence = position = 0
    inside = False
    while position < text.size and (skip or report[FAULTS] == 0):
        stop = line_end(text, position)
        if stop == text.size and not final:
            break
        head, tail = _next_field(text, position, stop)
        keyword = _keyword(text, head, tail) if head == position else _OTHER
        if inside and keyword == _BOS:
            # A fault is counted at the end of its sentence, so that a sentence that
            # the end of a block cuts off is not counted twice.
            if fault == 0:
                fault, place = UNCLOSED, sentence
            record_fault(report, fault, place, report[SEEN])
        if keyword == _BOS:
            inside = True
            fault = 0
            state[STRAY] = 0
            sentence = position
            n_rows = 0
            report[SEEN] += 1
        elif inside and keyword == _EOS:
            nodes = words = 0
            if fault == 0:
                fault, bad = _number_rows(rows, n_rows, scratch.row_of)
                if fault == 0:
                    fault, bad, nodes, words = _write_tree(
                        scratch, n_rows, settings, columns, edge, node, word
                    )
                place = rows[bad, _PLACE] if n_rows > 0 else sentence
            if fault == 0:
                report[TREES] += 1
                trees += 1
                node += nodes
                word += words
                columns.node_offsets[trees] = node
                columns.token_offsets[trees] = word
            else:
                record_fault(report, fault, place, report[SEEN])
            inside = False
        elif inside:
            if fault == 0 and head < tail:
                fault, place = _parse_row(
                    text, head, stop, state[LEMMA], multiplier, symbols, rows[n_rows]
                )
                n_rows += 1
                if fault != 0 and not skip:
                    record_fault(report, fault, place, report[SEEN])
        elif keyword in (_BOT, _EOT):
            state[TABLE] = keyword == _BOT
        elif keyword == _FORMAT:
            head, tail = _next_field(text, tail, stop)
            state[LEMMA] = tail - head == 1 and text[head] == 52
        elif head < tail and not state[TABLE] and text[head] != _PERCENT:
            if not state[STRAY]:
                record_fault(report, STRAY_TEXT, head, report[SEEN] + 1)
            state[STRAY] = 1
        position = min(stop + 1, text.size)
        report[POSITION] = sentence if inside else position
    if inside and final and (skip or report[FAULTS] == 0):
        if fault == 0:
            fault, place = UNCLOSED, sentence
        record_fault(report, fault, place, report[SEEN])
        report[POSITION] = text.size
    elif inside and not final:
        report[SEEN] -= 1
    filled[0], filled[1], filled[2] = trees, node, word
