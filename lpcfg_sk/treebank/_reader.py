"""Text files of any encoding, compressed or not, to treebanks."""

import codecs
import glob
import gzip
import os
import re
import zlib
from numbers import Integral

from lpcfg_sk._kernels import _scanner as kernel
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankFormatError, TreebankWarning
from lpcfg_sk.treebank._negra import NegraScanner
from lpcfg_sk.treebank._origins import OriginRecorder
from lpcfg_sk.treebank._penn import (
    BLOCK_SIZE,
    BracketScanner,
    SymbolPool,
    TreeColumns,
    fault_message,
    place_in,
)
from lpcfg_sk.treebank._treebank import Treebank
from lpcfg_sk.treebank._writer import check_encoding

#: Suffixes of the files that are read in a directory.
_SUFFIXES = {
    "ptb": ".mrg .ptb .psd .prd .tree .trees .parse .parses .bracket .brackets .txt",
    "export": ".export .negra .txt",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_MARK_UNDECODABLE = "lpcfg_sk.mark_undecodable"
_LARGEST_TREE = 2**31 - 1
# Matches function tags and indices at the end of a label that is read backwards,
# which takes linear time for every label.
_FUNCTIONS = re.compile("(?:(?:[A-Z0-9_]*[A-Z]|[0-9]+)[-=])*")


class _DamagedInputError(Exception):
    """The rest of an input cannot be read."""


def _mark_undecodable(error):
    # A lone surrogate is not valid UTF-8, so the scanner reports it.
    if isinstance(error, UnicodeDecodeError):
        return "\udc80", error.end
    raise error


codecs.register_error(_MARK_UNDECODABLE, _mark_undecodable)


def read_treebank(
    source,
    *,
    format="ptb",
    encoding="utf-8",
    keep_traces=False,
    keep_functions=False,
    on_error="raise",
    max_depth=None,
    max_bytes=2**32,
    comments=None,
):
    r"""Read trees from files.

    Parameters
    ----------
    source : path-like, file, or iterable of those
        A file; a directory, whose treebank files and those of its subdirectories
        are read in the order of their names; a glob such as ``"wsj/**/*.mrg"``; or
        an open file, text or binary, which is read to its end and left open.
        Compressed files (gzip) are recognised by their first bytes.
    format : {"ptb", "export"}, default="ptb"
        Penn Treebank brackets, or the NEGRA export format (3 or 4) for trees
        without crossing branches.
    encoding : str, default="utf-8"
        Encoding of the bytes. A byte order mark is ignored.
    keep_traces : bool, default=False
        Whether to keep leaves labelled ``-NONE-``; otherwise they are removed,
        together with the nodes that become empty.
    keep_functions : bool, default=False
        Whether to keep function tags and indices; otherwise ``NP-SBJ-1`` and
        ``NP=2`` become ``NP``. Labels that start with ``-`` are kept as they are,
        and so are parts in lower case (``X-bar``). In export format labels are never
        shortened, and the edge label is appended to the node label if functions are
        kept.
    on_error : {"raise", "skip"}, default="raise"
        What to do about malformed input: raise an error at the first fault, or leave
        the tree out, go on with the next one, and warn at the end.
    max_depth : int, default=None
        Greatest number of brackets that may be open at once; None for no limit.
    max_bytes : int, default=2**32
        Greatest uncompressed size of a compressed file; None for no limit.
    comments : str, default=None
        Start of a comment, for example ``"%%"`` or ``"#"``. Comments stand between
        bracketed trees and last to the end of the line.

    Returns
    -------
    treebank : Treebank

    Raises
    ------
    TreebankFormatError
        If the text is not a treebank, with file, line, column and tree number.

    Warns
    -----
    TreebankWarning
        If trees were left out: malformed ones with ``on_error="skip"``, or trees
        that consist of traces.

    Notes
    -----
    White space is ASCII white space; a no-break space is part of a word. An
    unlabelled root becomes ``ROOT``. A word may stand beside other children, as in
    ``(S (NP a) b)``. Trees may span lines, and a line may hold many.

    With ``on_error="skip"`` a tree with a fault inside ends where its brackets
    close. After a tree that never closes, reading goes on at the next line that
    starts with "(", indented no further than the first tree of the file. A run of
    text or of closing brackets between trees counts as one fault.

    Files are read in blocks. Memory holds the columns (at most 24 bytes per node and
    token) and the longest tree.

    Examples
    --------
    >>> import io
    >>> from lpcfg_sk import read_treebank
    >>> text = "( (S (NP-SBJ-1 (PRP She)) (VP (VBZ tries) (S (-NONE- *-1)))) )"
    >>> treebank = read_treebank(io.StringIO(text))
    >>> str(treebank[0])
    '(ROOT (S (NP (PRP She)) (VP (VBZ tries))))'
    """
    _check_options(format, on_error, max_depth, max_bytes, comments)
    check_encoding(encoding)
    columns = TreeColumns(
        SymbolPool(), keep_traces=keep_traces, merge_words=format == "export"
    )
    skip = on_error == "skip"
    if format == "ptb":
        scanner = BracketScanner(
            columns, max_depth=max_depth, comments=comments, skip=skip
        )
    else:
        scanner = NegraScanner(
            columns, max_depth=max_depth, keep_functions=keep_functions, skip=skip
        )
    faults = _Faults(skip)
    places = OriginRecorder(columns)
    for name, opened in _inputs(source, format):
        places.start_file(name)
        if opened is not None:
            _read(opened, name, scanner, faults, places, encoding, max_bytes)
        else:
            with open(name, "rb") as file:
                _read(file, name, scanner, faults, places, encoding, max_bytes)
    strip = format == "ptb" and not keep_functions
    state = columns.finish(strip_functions if strip else None)
    if faults.count:
        one = faults.count == 1
        what = "tree or stretch" if one else "trees or stretches"
        warn_caller(
            f"{faults.count} malformed {what} of text {'was' if one else 'were'} left "
            f"out, the first at {faults.first}",
            TreebankWarning,
        )
    if columns.n_dropped:
        one = columns.n_dropped == 1
        warn_caller(
            f"{columns.n_dropped} {'tree holds' if one else 'trees hold'} nothing but "
            f"traces (-NONE-) and {'was' if one else 'were'} left out; "
            "keep_traces=True keeps them",
            TreebankWarning,
        )
    return Treebank.from_columns(**state, origins=places.origins(), check=False)


def strip_functions(label):
    """Remove function tags and indices from a label.

    Parameters
    ----------
    label : str
        Label of a phrase.

    Returns
    -------
    category : str

    Examples
    --------
    >>> from lpcfg_sk.treebank._reader import strip_functions
    >>> [strip_functions(s) for s in ("NP-SBJ-1", "NP=2", "-LRB-", "ADVP|PRT")]
    ['NP', 'NP', '-LRB-', 'ADVP|PRT']
    """
    if label[0] in "-=":
        return label
    return label[: len(label) - _FUNCTIONS.match(label[::-1]).end()]


class _Faults:
    """Number of faults of the files read so far, and the first of them."""

    def __init__(self, skip):
        self.skip = skip
        self.count = 0
        self.first = None

    def add(self, error, count=1):
        if not self.skip:
            raise error
        self.first = self.first or error
        self.count += count


def _read(file, name, scanner, faults, places, encoding, max_bytes):
    blocks = _utf8_blocks(file, name, encoding, max_bytes)
    pieces, size, goal = [], 0, BLOCK_SIZE
    lines = characters = trees = 0
    fresh = True
    while True:
        try:
            block = next(blocks, None)
        except _DamagedInputError as error:
            faults.add(TreebankFormatError(str(error), name, lines + 1))
            block = None
        final = block is None
        if not final:
            pieces.append(block)
            size += len(block)
            if size < goal:
                continue
        text = b"".join(pieces)
        if fresh:
            text = text.removeprefix(_BYTE_ORDER_MARK)
            scanner.start_file(text)
            fresh = False
        consumed = scanner.scan(text, final)
        report = scanner.report
        places.add(text, scanner, lines)
        if report[kernel.FAULTS]:
            position = int(report[kernel.FAULT_POSITION])
            line, column = place_in(text, position, lines, characters)
            error = TreebankFormatError(
                fault_message(scanner, text),
                name,
                line,
                column,
                trees + int(report[kernel.FAULT_TREE]),
            )
            faults.add(error, int(report[kernel.FAULTS]))
        if final:
            break
        trees += int(report[kernel.SEEN])
        line, column = place_in(text, consumed, lines, characters)
        lines, characters = line - 1, column - 1
        # A tree longer than a block is scanned again only when its text has doubled,
        # which keeps the work linear.
        pieces, size = [text[consumed:]], len(text) - consumed
        goal = max(BLOCK_SIZE, 2 * size)
        if size > _LARGEST_TREE:
            raise TreebankFormatError(
                "a tree of more than 2 GiB; is a bracket missing?",
                name,
                line,
                column,
                trees + 1,
            )


def _inputs(source, format):
    """Yield the name of each file, and the file itself if it is open."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        source = [source]
    elif isinstance(source, bytes | bytearray) or not hasattr(source, "__iter__"):
        raise TypeError(
            "read_treebank takes a path, a glob, a directory, an open file or a list "
            f"of those, got {type(source).__name__}; wrap text in io.StringIO"
        )
    for item in source:
        if hasattr(item, "read"):
            name = getattr(item, "name", None)
            yield (name if isinstance(name, str) else "<file>"), item
        elif isinstance(item, str | os.PathLike):
            for path in treebank_files(item, format):
                yield path, None
        else:
            raise TypeError(
                "read_treebank reads paths and open files, got "
                f"{type(item).__name__}: {item!r}"
            )


def treebank_files(path, format="ptb"):
    """List the files that a path, a folder or a pattern stands for.

    Parameters
    ----------
    path : path-like
        See :func:`read_treebank`.
    format : {"ptb", "export"}, default="ptb"
        Decides which files of a folder are taken, by their suffixes.

    Returns
    -------
    paths : list of str

    Raises
    ------
    FileNotFoundError
        If a folder has no such file, or nothing matches a pattern.
    """
    path = os.path.expanduser(os.fsdecode(path))
    if os.path.isdir(path):
        return _files_below(path, format)
    if not os.path.exists(path):
        if path.lstrip().startswith("("):
            raise FileNotFoundError(
                f"no such file: {path[:40]!r}; this looks like a tree: use "
                "Treebank([text]) for trees in memory"
            )
        if glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise FileNotFoundError(f"no file matches {path!r}")
            return [
                file
                for match in matches
                for file in (
                    _files_below(match, format) if os.path.isdir(match) else [match]
                )
            ]
    return [path]


def _files_below(directory, format):
    suffixes = tuple(_SUFFIXES[format].split())
    suffixes += tuple(f"{suffix}.gz" for suffix in suffixes)
    files = []
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (
            os.path.join(folder, name)
            for name in names
            if name.lower().endswith(suffixes) and not name.startswith(".")
        )
        files.extend(filter(os.path.isfile, paths))
    if not files:
        raise FileNotFoundError(
            f"no treebank file in the directory {directory!r}: none ends in "
            f"{_SUFFIXES[format]} (or these with .gz); name the files by a glob"
        )
    return sorted(files)


def _check_options(format, on_error, max_depth, max_bytes, comments):
    if format not in _SUFFIXES:
        raise ValueError(f"format is 'ptb' or 'export', got {format!r}")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error is 'raise' or 'skip', got {on_error!r}")
    for name, value in (("max_depth", max_depth), ("max_bytes", max_bytes)):
        if value is not None and not (
            isinstance(value, Integral) and not isinstance(value, bool) and value > 0
        ):
            raise ValueError(f"{name} is a positive int or None, got {value!r}")
    if comments is not None:
        if not isinstance(comments, str):
            raise TypeError(f"comments is a str or None, got {comments!r}")
        if not comments or re.search(r"[\s()]", comments):
            raise ValueError(
                "comments is what starts a comment, without brackets and white "
                f"space, got {comments!r}"
            )
        if format == "export":
            raise ValueError("export format has comments of its own, starting with %%")


def _utf8_blocks(file, name, encoding, max_bytes):
    """Read an open file as blocks of UTF-8.

    Parameters
    ----------
    file : file
        Text or binary, compressed by gzip or not.
    name : str
        Name of the file, for messages.
    encoding : str
        Encoding of a binary file.
    max_bytes : int or None
        Greatest size of the uncompressed data.

    Yields
    ------
    block : bytes
        May end within a character. Bytes that do not decode are invalid UTF-8 here
        too.

    Raises
    ------
    _DamagedInputError
        If compressed data is damaged, or a text file does not decode.
    TreebankFormatError
        If compressed data exceeds `max_bytes`.
    """
    head = _read_block(file, name)
    file = _Rejoined(head, file)
    if isinstance(head, str):
        for block in _blocks(file, name):
            yield block.encode("utf-8", "surrogatepass")
        return
    if head.startswith(_GZIP_MAGIC):
        file = gzip.GzipFile(fileobj=file, mode="rb")
        blocks = _capped(_blocks(file, name), name, max_bytes)
    else:
        blocks = _blocks(file, name)
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)(_MARK_UNDECODABLE)
    for block in blocks:
        yield _decoded(decoder, block)
    yield _decoded(decoder, b"", final=True)


def _decoded(decoder, block, final=False):
    try:
        return decoder.decode(block, final).encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        # The whole file has another encoding, such as UTF-16 without a byte order mark.
        raise _DamagedInputError(f"the encoding is another one ({error})") from error


def _blocks(file, name):
    while block := _read_block(file, name):
        yield block


def _read_block(file, name):
    try:
        block = file.read(BLOCK_SIZE)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _DamagedInputError(f"damaged gzip data ({error})") from error
    except UnicodeDecodeError as error:
        raise _DamagedInputError(
            f"the file was opened with a wrong encoding ({error})"
        ) from error
    if not isinstance(block, str | bytes):
        raise TypeError(
            f"reading {name} gave {type(block).__name__}, expected str or bytes"
        )
    return block


def _capped(blocks, name, max_bytes):
    total = 0
    for block in blocks:
        total += len(block)
        if max_bytes is not None and total > max_bytes:
            raise TreebankFormatError(
                f"compressed data unfolds to more than max_bytes={max_bytes} bytes; "
                "raise max_bytes if the file is to be trusted",
                name,
            )
        yield block


class _Rejoined:
    """A file whose first block has been read and is returned again."""

    def __init__(self, head, file):
        self._head = head
        self._file = file

    def read(self, size=-1):
        if self._head:
            size = len(self._head) if size is None or size < 0 else size
            block, self._head = self._head[:size], self._head[size:]
            return block
        return self._file.read(size)
