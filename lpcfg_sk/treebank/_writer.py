"""Treebanks to text files."""

import codecs
import gzip
import os
import re
from itertools import pairwise

import numpy as np

from lpcfg_sk._files import written_in_one_step
from lpcfg_sk._kernels._columns import Columns
from lpcfg_sk._kernels._text import Strings, bracket_length, write_brackets
from lpcfg_sk._ragged import offsets
from lpcfg_sk.treebank._negra import NO_EDGE
from lpcfg_sk.treebank._penn import ROOT

#: About this many nodes and words are written at a time.
_PIECE = 1 << 17
_NOT_IN_BRACKETS = re.compile(r"[()\0 \t\n\r\v\f]|\A\Z")
_NOT_IN_EXPORT = re.compile(r"[\0 \t\n\r\v\f]|\A\Z")
_KEYWORD = re.compile(r"#(?:BOS|EOS|[5-9][0-9]{2}|[1-9][0-9]{3,})")
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def check_encoding(encoding):
    """Raise ValueError if Python does not know a text encoding."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"encoding is the name of a text encoding, got {encoding!r}"
        ) from None


def write_treebank(treebank, target, *, format="ptb", encoding="utf-8", escape=False):
    r"""Write a treebank to a file.

    The file is written under another name and renamed when it is complete.

    Parameters
    ----------
    treebank : Treebank
        Trees; sentences without a parse cannot be written.
    target : path-like or file
        Where to write; a file whose name ends in ``.gz`` is compressed. An open file,
        text or binary, is left open.
    format : {"ptb", "export"}, default="ptb"
        One bracketed tree per line, or NEGRA export format 3.
    encoding : str, default="utf-8"
        Encoding of the bytes.
    escape : bool, default=False
        Write ``(`` and ``)`` within labels and words as ``-LRB-`` and ``-RRB-``
        where the format does not allow them.

    Raises
    ------
    ValueError
        If a row has no tree, or if a label or word cannot be written.

    Examples
    --------
    >>> import io
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import write_treebank
    >>> file = io.StringIO()
    >>> write_treebank(Treebank(["(S (NP a) b)"]), file)
    >>> file.getvalue()
    '(S (NP a) b)\n'
    """
    if format not in ("ptb", "export"):
        raise ValueError(f"format is 'ptb' or 'export', got {format!r}")
    check_encoding(encoding)
    unparsed = np.flatnonzero(~treebank.is_parsed)
    if unparsed.size:
        raise ValueError(
            f"{unparsed.size} of {len(treebank)} rows are sentences without a tree, "
            f"the first is row {unparsed[0]}; write treebank[treebank.is_parsed]"
        )
    if format == "ptb":
        pieces = _bracket_pieces(treebank, encoding, escape)
    else:
        pieces = _export_pieces(treebank, encoding)
    if hasattr(target, "write"):
        # Only a text file takes an empty str.
        try:
            target.write("")
        except TypeError:
            target.writelines(_encoded(pieces, encoding))
        else:
            target.writelines(piece.decode() for piece in pieces)
        return
    path = os.path.expanduser(os.fsdecode(target))
    with written_in_one_step(path) as file:
        if path.endswith(".gz"):
            # Without a time stamp the same trees give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.writelines(_encoded(pieces, encoding))
        else:
            file.writelines(_encoded(pieces, encoding))


def _encoded(pieces, encoding):
    if codecs.lookup(encoding).name == "utf-8":
        yield from pieces
        return
    encoder = codecs.getincrementalencoder(encoding)()
    for piece in pieces:
        yield encoder.encode(piece.decode())
    yield encoder.encode("", final=True)


def _bracket_pieces(treebank, encoding, escape):
    labels = _strings(treebank, "label", _NOT_IN_BRACKETS, encoding, escape)
    tokens = _strings(treebank, "token", _NOT_IN_BRACKETS, encoding, escape)
    labels, tokens = _pool(labels), _pool(tokens)
    columns = Columns(*(getattr(treebank, name) for name in Columns._fields))
    for first, last in _tree_ranges(treebank):
        length = bracket_length(columns, labels, tokens, first, last)
        text = np.empty(length, dtype=np.uint8)
        write_brackets(columns, labels, tokens, first, last, text)
        yield text.tobytes()


def _tree_ranges(treebank):
    """Cut the trees into ranges of about the same number of nodes and tokens."""
    work = treebank.node_offsets + treebank.token_offsets
    cuts = np.searchsorted(work, np.arange(_PIECE, work[-1], _PIECE))
    bounds = np.unique(np.concatenate([[0], cuts, [len(treebank)]])).tolist()
    return pairwise(bounds)


def _pool(strings):
    encoded = [string.encode() for string in strings]
    pool = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Strings(pool, offsets([len(string) for string in encoded]))


def _strings(treebank, column, forbidden, encoding, escape=False):
    """Return the strings of a column in written form, empty if they do not occur."""
    ids = getattr(treebank, column)
    table = getattr(treebank, f"{column}s")
    used = np.zeros(len(table) + 1, dtype=bool)
    used[ids] = True
    strings = []
    for i, string in enumerate(table):
        if not used[i]:
            strings.append("")
            continue
        if escape:
            string = string.translate(_ESCAPES)
        if forbidden.search(string) or not _is_encodable(string, encoding):
            raise _cannot_write(treebank, column, i, escape)
        strings.append(string)
    return strings


def _is_encodable(string, encoding):
    try:
        string.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _cannot_write(treebank, column, i, escape):
    place = np.flatnonzero(getattr(treebank, column) == i)[0]
    bounds = treebank.node_offsets if column == "label" else treebank.token_offsets
    tree = np.searchsorted(bounds, place, side="right") - 1
    kind = "label" if column == "label" else "word"
    string = getattr(treebank, f"{column}s")[i]
    hint = ""
    if not escape and ("(" in string or ")" in string):
        hint = "; escape=True writes brackets as -LRB- and -RRB-"
    return ValueError(
        f"tree {tree}: the {kind} {string!r} cannot be written: it is empty or holds "
        f"a bracket, white space or what the encoding cannot express{hint}"
    )


def _export_pieces(treebank, encoding):
    labels = [*_strings(treebank, "label", _NOT_IN_EXPORT, encoding), NO_EDGE]
    tokens = _strings(treebank, "token", _NOT_IN_EXPORT, encoding)
    for i in np.unique(treebank.token):
        if _KEYWORD.fullmatch(tokens[i]):
            raise ValueError(
                f"the word {tokens[i]!r} cannot be written in export format, where it "
                "has another meaning"
            )
    if NO_EDGE in labels[:-1]:
        raise ValueError(
            f"the label {NO_EDGE!r} cannot be written in export format, where it "
            "means that there is no tag"
        )
    yield b"#FORMAT 3\n"
    for t in range(len(treebank)):
        yield _export_sentence(treebank, t, labels, tokens).encode()


def _export_sentence(treebank, t, labels, tokens):
    nodes = slice(*treebank.node_offsets[t : t + 2])
    words = slice(*treebank.token_offsets[t : t + 2])
    label = treebank.label[nodes].tolist()
    size = treebank.size[nodes].tolist()
    parent = treebank.parent[nodes].tolist()
    names = iter(tokens[i] for i in treebank.token[words].tolist())
    # A root called ROOT is the virtual root, which has the number 0.
    virtual = size[0] > 1 and labels[label[0]] == ROOT
    inner = [i for i, n in enumerate(size) if n > 1 and not (virtual and i == 0)]
    number = {i: 500 + k for k, i in enumerate(reversed(inner))}
    word_lines, node_lines = [], []
    for i, up in enumerate(parent):
        if virtual and i == 0:
            continue
        edge = ROOT if up < 0 else NO_EDGE
        line = f"{labels[label[i]]}\t--\t{edge}\t{number.get(up, 0)}\n"
        if size[i] == 1:
            word_lines.append(f"{next(names)}\t{line}")
        else:
            node_lines.append(f"#{number[i]}\t{line}")
    body = "".join(word_lines + node_lines[::-1])
    return f"#BOS {t + 1}\n{body}#EOS {t + 1}\n"
