"""Files of trees to treebanks, block by block."""

import glob
import os
import re
import warnings
from numbers import Integral

from lpcfg_sk._kernels import _scanner as kernel
from lpcfg_sk.exceptions import TreebankFormatError, TreebankWarning
from lpcfg_sk.treebank._brackets import (
    BLOCK_SIZE,
    BracketScanner,
    SymbolPool,
    TreeColumns,
    fault_message,
    place_in,
)
from lpcfg_sk.treebank._negra import ExportScanner
from lpcfg_sk.treebank._stream import DamagedInputError, check_encoding, utf8_blocks
from lpcfg_sk.treebank._treebank import Treebank

#: File names that are taken for treebanks when a directory is read.
_SUFFIXES = {
    "ptb": ".mrg .ptb .psd .prd .tree .trees .parse .parses .bracket .brackets .txt",
    "export": ".export .negra .txt",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGEST_TREE = 2**31 - 1
# Matches function tags and indices at the end of a label that is read backwards,
# which takes linear time whatever the label.
_FUNCTIONS = re.compile("(?:(?:[A-Z0-9_]*[A-Z]|[0-9]+)[-=])*")


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
        A file; a directory, whose treebank files are read in order of their
        names, with those of its subdirectories; a glob such as
        ``"wsj/**/*.mrg"``; or an open file, text or binary, which is read to its
        end and left open. Compressed files (gzip) are known by their first bytes.
    format : {"ptb", "export"}, default="ptb"
        Penn Treebank brackets, or the NEGRA export format (3 or 4) for trees
        without crossing branches.
    encoding : str, default="utf-8"
        Encoding of the bytes. A byte order mark is passed over.
    keep_traces : bool, default=False
        Keep leaves labelled ``-NONE-``; otherwise they go, together with the
        nodes that become empty.
    keep_functions : bool, default=False
        Keep function tags and indices; otherwise ``NP-SBJ-1`` and ``NP=2`` become
        ``NP``. Labels that start with ``-`` stay as they are, and so do parts in
        lower case (``X-bar``). In export format the edge label is appended to the
        node label where functions are kept, and labels are never cut.
    on_error : {"raise", "skip"}, default="raise"
        What to do about malformed input: raise at the first fault, or leave the
        tree out, count it in one warning and go on at the next tree.
    max_depth : int, default=None
        Most brackets that may be open at once; no limit where None.
    max_bytes : int, default=2**32
        Most bytes that one compressed file may unfold to; None for no limit.
    comments : str, default=None
        What starts a comment that stands between bracketed trees and lasts to the
        end of the line, for example ``"%%"`` or ``"#"``.

    Returns
    -------
    treebank : Treebank

    Raises
    ------
    TreebankFormatError
        Where the text is not a treebank, with file, line, column and tree number.

    Warns
    -----
    TreebankWarning
        If trees were left out: malformed ones with ``on_error="skip"``, or trees
        that hold nothing but traces.

    Notes
    -----
    White space is ASCII white space; a no-break space is part of a word. An
    unlabelled root becomes ``ROOT``. A word may stand beside other children, as in
    ``(S (NP a) b)``. Trees may span lines, and a line may hold many.

    With ``on_error="skip"`` a tree with a fault inside ends where its brackets
    close. After a tree that never closes, reading goes on at the next line that
    starts with "(", indented no further than the first tree of the file. A run of
    text or of closing brackets between trees counts as one fault.

    Files are read in blocks; memory is that of the columns (24 bytes a node and
    token at most) and of the longest tree.

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
        scanner = ExportScanner(
            columns, max_depth=max_depth, keep_functions=keep_functions, skip=skip
        )
    faults = _Faults(skip)
    for name, opened in _inputs(source, format):
        if opened is not None:
            _read(opened, name, scanner, faults, encoding, max_bytes)
        else:
            with open(name, "rb") as file:
                _read(file, name, scanner, faults, encoding, max_bytes)
    strip = format == "ptb" and not keep_functions
    state = columns.finish(strip_functions if strip else None)
    if faults.count:
        one = faults.count == 1
        what = "tree or stretch" if one else "trees or stretches"
        warnings.warn(
            f"{faults.count} malformed {what} of text {'was' if one else 'were'} left "
            f"out, the first at {faults.first}",
            TreebankWarning,
            stacklevel=2,
        )
    if columns.n_dropped:
        one = columns.n_dropped == 1
        warnings.warn(
            f"{columns.n_dropped} {'tree holds' if one else 'trees hold'} nothing but "
            f"traces (-NONE-) and {'was' if one else 'were'} left out; "
            "keep_traces=True keeps them",
            TreebankWarning,
            stacklevel=2,
        )
    return Treebank.from_columns(**state)


def strip_functions(label):
    """Cut function tags and indices off a label.

    Parameters
    ----------
    label : str

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
    """Count of the faults of a read, and the first of them."""

    def __init__(self, skip):
        self.skip = skip
        self.count = 0
        self.first = None

    def add(self, error, count=1):
        if not self.skip:
            raise error
        self.first = self.first or error
        self.count += count


def _read(file, name, scanner, faults, encoding, max_bytes):
    blocks = utf8_blocks(file, name, encoding, max_bytes)
    pieces, size, goal = [], 0, BLOCK_SIZE
    lines = characters = trees = 0
    fresh = True
    while True:
        try:
            block = next(blocks, None)
        except DamagedInputError as error:
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
        # A tree longer than a block is scanned again only once its text has
        # doubled, which keeps the work linear.
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
    """Pairs of a name and an open file, or None where the name is to be opened."""
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
            for path in _paths(os.path.expanduser(os.fsdecode(item)), format):
                yield path, None
        else:
            raise TypeError(
                "read_treebank reads paths and open files, got "
                f"{type(item).__name__}: {item!r}"
            )


def _paths(path, format):
    if os.path.isdir(path):
        return _files_below(path, format)
    # A path may be too long to exist, or hold a NUL
    if not _exists(path):
        if path.lstrip().startswith("("):
            raise FileNotFoundError(
                f"no such file: {path[:40]!r}; this looks like a tree: use "
                "Treebank([text]) for trees in memory"
            )
        if glob.has_magic(path):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise FileNotFoundError(f"no file matches {path!r}")
            return [
                file
                for match in found
                for file in (
                    _files_below(match, format) if os.path.isdir(match) else [match]
                )
            ]
    return [path]


def _exists(path):
    try:
        return os.path.exists(path)
    except ValueError:
        return False


def _files_below(directory, format):
    suffixes = tuple(_SUFFIXES[format].split())
    suffixes += tuple(f"{suffix}.gz" for suffix in suffixes)
    found = []
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (
            os.path.join(folder, name)
            for name in names
            if name.lower().endswith(suffixes) and not name.startswith(".")
        )
        found.extend(filter(os.path.isfile, paths))
    if not found:
        raise FileNotFoundError(
            f"no treebank file in the directory {directory!r}: none ends in "
            f"{_SUFFIXES[format]} (or these with .gz); name the files by a glob"
        )
    return sorted(found)


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
