"""Bracketed text of the Penn Treebank to columns, around the compiled scanner."""

import re
import secrets

import numpy as np

from lpcfg_sk._kernels import _scanner as kernel
from lpcfg_sk._kernels._columns import Columns, drop_traces
from lpcfg_sk._kernels._text import Symbols, intern, rehash
from lpcfg_sk.exceptions import TreebankFormatError

#: Text is scanned in pieces of about this many bytes.
BLOCK_SIZE = 1 << 18
TRACE = "-NONE-"
ROOT = "ROOT"
UNLIMITED = 2**62
_NO_SYMBOL = -2
_BLOCK_NODES = 1 << 15
MESSAGES = {
    kernel.UNCLOSED: "the tree that starts here is never closed; a ')' is missing",
    kernel.STRAY_CLOSE: "a ')' that closes nothing; a '(' is missing before it",
    kernel.STRAY_TEXT: "text outside of brackets, expected '('",
    kernel.EMPTY: "empty brackets; a node needs a label and a word or a child",
    kernel.NO_CHILD: "a node without a word or a child",
    kernel.NO_LABEL: "a node without a label; only the root may lack one",
    kernel.NUL: "a NUL byte; is this a text file?",
    kernel.UNDECODABLE: "bytes that do not decode; pass the encoding of the file",
    kernel.TOO_DEEP: "brackets nest deeper than max_depth",
}
#: Faults of a sentence that begins with a bracket, such as "( He left . )".
_IN_SENTENCES = (kernel.NO_CHILD, kernel.STRAY_TEXT)
_SENTENCE = (
    "; a string that begins with a bracket is a tree, so write a sentence that does as "
    "a list of tokens"
)


class SymbolPool:
    """Byte strings and their ids, shared by all blocks of all files of a read.

    Ids follow the order of first occurrence. The hash function has a random secret, so
    that nobody can prepare a text whose words all collide; ids do not depend on it.
    """

    def __init__(self):
        self.multiplier = 2 + secrets.randbelow(2**31 - 4)
        self.arrays = Symbols(
            slots=np.full(1024, -1, dtype=np.int32),
            hashes=np.empty(512, dtype=np.int64),
            ends=np.zeros(513, dtype=np.int64),
            pool=np.empty(8192, dtype=np.uint8),
            count=np.zeros(1, dtype=np.int64),
        )

    def __len__(self):
        return int(self.arrays.count[0])

    def reserve(self, n_symbols, n_bytes):
        """Make room for `n_symbols` more symbols, with `n_bytes` bytes in all."""
        slots, hashes, ends, pool, count = self.arrays
        n = len(self) + n_symbols
        if n > hashes.size:
            hashes = _grown(hashes, n)
            ends = _grown(ends, hashes.size + 1)
        if 2 * n > slots.size:
            slots = np.full(1 << int(2 * n).bit_length(), -1, dtype=np.int32)
            rehash(hashes, len(self), slots)
        pool = _grown(pool, int(ends[len(self)]) + n_bytes + n_symbols)
        self.arrays = Symbols(slots, hashes, ends, pool, count)

    def add(self, string):
        """Return the id of a string, which is added if it is new."""
        text = np.frombuffer(string.encode(), dtype=np.uint8)
        self.reserve(1, text.size)
        return int(intern(text, 0, text.size, self.multiplier, self.arrays))

    def strings(self):
        """Return a list of all symbols."""
        end = self.arrays.ends[len(self)]
        return self.arrays.pool[:end].tobytes().decode().split("\n")[:-1]


def _grown(array, size):
    if size <= array.size:
        return array
    larger = np.empty(max(size, array.size + array.size // 2), dtype=array.dtype)
    larger[: array.size] = array
    return larger


class TreeColumns:
    """Columns of the trees read so far.

    Parameters
    ----------
    pool : SymbolPool
        What the ids of the columns stand for.
    keep_traces : bool
        Whether leaves labelled ``-NONE-`` are kept.
    merge_words : bool, default=False
        Whether a word without a pre-terminal may be an only child, whose parent then
        becomes its pre-terminal.

    Attributes
    ----------
    block : Columns
        The next trees are written here, after those that ``filled`` counts.
    filled : ndarray of int64, shape (3,)
        Number of trees, nodes and tokens in the block.
    n_dropped : int
        Number of trees that consisted of traces.
    """

    def __init__(self, pool, *, keep_traces, merge_words=False):
        self.pool = pool
        self.n_dropped = 0
        self._trace = _NO_SYMBOL if keep_traces else pool.add(TRACE)
        self._merge_words = merge_words
        self._pieces = {name: [] for name in Columns._fields}
        self._counts = {"node_offsets": 0, "token_offsets": 0}
        self._has_words = []
        self.filled = np.zeros(3, dtype=np.int64)
        self.block = _empty_columns(0, 0, 0)

    def reserve(self, trees, nodes, tokens):
        """Make room in ``block`` for this many more trees, nodes and tokens.

        A block collects the trees of many small files, until it is full and is
        replaced by a new one.
        """
        wanted = np.array([trees, nodes, tokens])
        room = (
            self.block.node_offsets.size - 1,
            self.block.label.size,
            self.block.token.size,
        )
        if (self.filled + wanted > room).any():
            self._put_aside()
            self.block = _empty_columns(*np.maximum(wanted, _BLOCK_NODES).tolist())

    def _put_aside(self):
        block = self.block
        trees, nodes, tokens = self.filled.tolist()
        self.filled[:] = 0
        labels = block.label[:nodes]
        has_words = np.ones(trees, dtype=bool)
        if (labels == self._trace).any() or (self._merge_words and (labels < 0).any()):
            leaves = np.flatnonzero((block.size[:nodes] == 1) & (labels != self._trace))
            tree = np.searchsorted(block.node_offsets[: trees + 1], leaves, "right") - 1
            has_words = np.bincount(tree, minlength=trees) > 0
            left = drop_traces(block, trees, self._trace, block)
            self.n_dropped += trees - left[0]
            trees, nodes, tokens = left
        self._has_words.append(has_words)
        for name in ("label", "size", "parent", "start", "stop"):
            self._pieces[name].append(getattr(block, name)[:nodes].copy())
        self._pieces["token"].append(block.token[:tokens].copy())
        for name, total in (("node_offsets", nodes), ("token_offsets", tokens)):
            offsets = getattr(block, name)[1 : trees + 1]
            self._pieces[name].append(offsets + self._counts[name])
            self._counts[name] += total

    @property
    def n_read(self):
        """Number of trees so far, those of traces included."""
        return sum(map(len, self._has_words)) + int(self.filled[0])

    @property
    def has_words(self):
        """Which of the trees do not consist of traces, once all are read."""
        return np.concatenate(self._has_words)

    def finish(self, clean=None):
        """Join the blocks and number labels and tokens separately.

        Parameters
        ----------
        clean : callable, default=None
            Maps each label to the one to use.

        Returns
        -------
        columns : dict
            The eight columns, and the lists ``labels`` and ``tokens`` of the
            strings that occur, in order of first occurrence after ``ROOT``.
        """
        self._put_aside()
        self.block = None
        state = {}
        for name, pieces in self._pieces.items():
            wide = name.endswith("offsets")
            empty = np.zeros(int(wide), dtype=np.int64 if wide else np.int32)
            state[name] = np.concatenate([empty, *pieces])
            pieces.clear()
        names = self.pool.strings()
        state["label"], state["labels"] = _table(state["label"], names, clean)
        state["token"], state["tokens"] = _table(state["token"], names)
        return state


def _table(ids, names, clean=None):
    """Return new ids, and the names that occur, after they are cleaned."""
    used = np.zeros(len(names) + 1, dtype=bool)
    used[ids] = True
    used = np.flatnonzero(used[:-1])
    mapped = np.full(len(names) + 1, -1, dtype=np.int32)
    names = [names[i] for i in used.tolist()]
    if clean is None:
        mapped[used] = np.arange(used.size)
    else:
        table = {}
        names = map(clean, names)
        mapped[used] = [table.setdefault(name, len(table)) for name in names]
        names = list(table)
    return mapped[ids], names


def _empty_columns(trees, nodes, tokens):
    node_columns = (np.empty(nodes, dtype=np.int32) for _ in range(5))
    return Columns(
        *node_columns,
        np.zeros(trees + 1, dtype=np.int64),
        np.empty(tokens, dtype=np.int32),
        np.zeros(trees + 1, dtype=np.int64),
    )


class BracketScanner:
    """Scanner of Penn brackets, which takes one block of bytes after another.

    Parameters
    ----------
    columns : TreeColumns
        Where the trees are collected.
    max_depth : int, default=None
        Greatest number of brackets that may be open at once.
    comments : str, default=None
        Start of a comment between trees.
    skip : bool, default=False
        Whether to pass over faults instead of stopping at the first one.

    Attributes
    ----------
    report : ndarray of int64
        Report of the kernel about the last block.
    places : ndarray of int64, shape (n_trees, 2)
        Where the trees of the last block begin and end.
    """

    messages = MESSAGES

    def __init__(self, columns, *, max_depth=None, comments=None, skip=False):
        self._columns = columns
        self._skip = skip
        self._settings = kernel.ScanSettings(
            skip=bool(skip),
            max_depth=UNLIMITED if max_depth is None else int(max_depth),
            margin=0,
            comment=np.frombuffer((comments or "").encode(), dtype=np.uint8),
            root=columns.pool.add(ROOT),
            multiplier=columns.pool.multiplier,
        )
        self.report = np.zeros(kernel.REPORT_SIZE, dtype=np.int64)

    def start_file(self, text):
        """Find how the trees of a file are indented."""
        head, bracket, _ = text.partition(b"(")
        indent = head.rpartition(b"\n")[2]
        margin = len(indent) if bracket and not indent.strip() else 0
        self._settings = self._settings._replace(margin=margin)

    def scan(self, text, final):
        """Scan the complete trees of a block.

        Parameters
        ----------
        text : bytes
            The block.
        final : bool
            Whether the file ends with this block.

        Returns
        -------
        consumed : int
            Number of bytes scanned; the others belong before the next block.
        """
        array = np.frombuffer(text, dtype=np.uint8)
        n_open, n_tokens = kernel.count_marks(array)
        self._columns.pool.reserve(n_tokens, array.size)
        consumed = self._scan(array, 0, final, n_open, n_tokens, np.empty(0, np.int64))
        if not final or consumed == array.size:
            return consumed
        if not self._skip:
            if self.report[kernel.FAULTS]:
                return consumed
            self.report[kernel.SEEN] += 1
            kernel.record_fault(
                self.report, kernel.UNCLOSED, consumed, self.report[kernel.SEEN]
            )
            return consumed
        # One sweep finds all brackets that are never closed, so that a file with many
        # of them is not read to its end once per bracket.
        unclosed = kernel.unmatched_brackets(array, consumed)
        before, places = self.report.copy(), self.places
        self._scan(array, consumed, final, n_open, n_tokens, unclosed)
        self.places = np.concatenate([places, self.places])
        if before[kernel.FAULTS]:
            first = slice(kernel.FAULT, kernel.REPORT_SIZE)
            self.report[first] = before[first]
        else:
            self.report[kernel.FAULT_TREE] += before[kernel.SEEN]
        for count in (kernel.SEEN, kernel.FAULTS):
            self.report[count] += before[count]
        return array.size

    def _scan(self, text, begin, final, n_open, n_tokens, unclosed):
        self._columns.reserve(n_open, n_open + n_tokens, n_tokens)
        places = np.empty((n_open, 2), dtype=np.int64)
        output = kernel.ScanOutput(
            self._columns.block, self._columns.filled, places, self.report
        )
        kernel.scan_trees(
            text,
            begin,
            final,
            unclosed,
            self._settings,
            self._columns.pool.arrays,
            output,
        )
        self.places = places[: self.report[kernel.TREES]]
        return int(self.report[kernel.POSITION])


# A character that Unicode reserves for internal use. Before a digit it stands for a
# bracket within a word, or for itself where the text contains it.
_MARK = "\ufdd0"
_MARKED = {f"{_MARK}0": _MARK, f"{_MARK}1": "(", f"{_MARK}2": ")"}


def escape_brackets(word):
    r"""Write a word so that :func:`scan_brackets` reads it again.

    Parameters
    ----------
    word : str
        Any word without white space.

    Returns
    -------
    str
        With ``\(`` and ``\)`` for brackets.
    """
    if word.endswith("\\"):
        # Without the space the backslash would escape the node's closing bracket.
        word += " "
    return word.replace("(", "\\(").replace(")", "\\)")


def _hide_brackets(text):
    """Hide escaped brackets, unless the other brackets would then be unbalanced."""
    text = text.replace(_MARK, f"{_MARK}0")
    hidden = text.replace("\\(", f"{_MARK}1").replace("\\)", f"{_MARK}2")
    return hidden if hidden.count("(") == hidden.count(")") else text


def _show_brackets(name):
    """Undo :func:`_hide_brackets` in a label or word."""
    return re.sub(f"{_MARK}[012]", lambda match: _MARKED[match[0]], name)


def scan_brackets(texts, *, first_item=0):
    r"""Return the columns of bracketed strings, each of which holds one tree.

    Labels and words are taken literally, and traces are kept. Only an unlabelled root
    becomes ``ROOT``, and ``\(`` is a bracket within a word, as ``str(tree)`` writes it.

    Parameters
    ----------
    texts : iterable of str
        The trees.
    first_item : int, default=0
        Number of the first string, for messages.

    Returns
    -------
    columns : dict
        The arrays ``label, size, parent, start, stop, node_offsets, token,
        token_offsets`` (``label`` is -1 for a word that has siblings) and the
        lists of str ``labels`` and ``tokens`` that the ids point into.

    Raises
    ------
    TreebankFormatError
        If a string is not one tree; ``file`` is ``"item <number>"``.

    Examples
    --------
    >>> from lpcfg_sk.treebank._penn import scan_brackets
    >>> columns = scan_brackets(["(S (NP dogs) (VP bark))"])
    >>> columns["labels"], columns["size"].tolist()
    (['S', 'NP', 'VP'], [3, 1, 1])
    """
    columns = TreeColumns(SymbolPool(), keep_traces=True)
    scanner = BracketScanner(columns)
    item, batch, size = first_item, [], 0
    for text in texts:
        # A file that was not read as utf-8-sig may begin with a byte order mark.
        text = text.removeprefix("\ufeff")
        if "\\" in text or _MARK in text:
            text = _hide_brackets(text)
        # A lone surrogate must reach the scanner, which reports where it is.
        batch.append(text.encode("utf-8", "surrogatepass"))
        size += len(batch[-1])
        if size >= BLOCK_SIZE:
            _scan_items(scanner, batch, item)
            item, batch, size = item + len(batch), [], 0
    _scan_items(scanner, batch, item)
    state = columns.finish()
    for table in ("labels", "tokens"):
        state[table] = [
            _show_brackets(name) if _MARK in name else name for name in state[table]
        ]
    return state


def _scan_items(scanner, batch, item):
    scanner.scan(b"\n".join(batch) + b"\n", final=True)
    ends = np.cumsum([len(text) + 1 for text in batch])
    begins = ends - [len(text) + 1 for text in batch]
    places = scanner.places
    if (
        scanner.report[kernel.FAULTS]
        or len(places) != len(batch)
        or (places[:, 0] < begins).any()
        or (places[:, 1] >= ends).any()
    ):
        raise _error_of_items(batch, item)


def _error_of_items(batch, item):
    scanner = BracketScanner(TreeColumns(SymbolPool(), keep_traces=True))
    for number, text in enumerate(batch, item):
        scanner.scan(text, final=True)
        report, places = scanner.report, scanner.places
        if report[kernel.FAULTS]:
            position = int(report[kernel.FAULT_POSITION])
            message = fault_message(scanner, text)
            if report[kernel.FAULT] in _IN_SENTENCES and text.lstrip()[:1] == b"(":
                message += _SENTENCE
        elif len(places) == 0:
            position, message = 0, "no tree, expected one bracketed tree"
        elif len(places) > 1:
            position = int(places[1, 0])
            message = "a second tree, expected one tree per string"
        else:
            continue
        line, column = place_in(text, position)
        return TreebankFormatError(message, f"item {number}", line, column)
    raise AssertionError("the items are trees one by one, but not together")


def place_in(text, position, lines=0, characters=0):
    """Return line and column of a byte, counted from 1.

    Parameters
    ----------
    text : bytes
        Part of a file.
    position : int
        Index of the byte.
    lines, characters : int, default=0
        Number of lines before the text, and of characters of its first line before it.

    Returns
    -------
    line, column : int
    """
    head = text[:position]
    line = head.rpartition(b"\n")[2]
    column = len(line.decode(errors="replace")) + 1
    breaks = head.count(b"\n")
    return lines + breaks + 1, column + (0 if breaks else characters)


def fault_message(scanner, text):
    """Return a description of the first fault of a scan, with the text it is in."""
    position = int(scanner.report[kernel.FAULT_POSITION])
    excerpt = text[position : position + 40].decode(errors="replace")
    excerpt = excerpt.splitlines()[0][:30] if excerpt.strip() else ""
    message = scanner.messages[int(scanner.report[kernel.FAULT])]
    if excerpt.startswith("LPCFGTB"):
        message = "this is what Treebank.save writes; use Treebank.open"
    return f"{message}: {excerpt!r}" if excerpt else message
