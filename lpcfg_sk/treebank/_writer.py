"""Treebanks to files."""

import codecs
import contextlib
import gzip
import os
import re
import secrets
from itertools import pairwise

import numpy as np

from lpcfg_sk._kernels._writer import bracket_length, write_brackets
from lpcfg_sk.treebank._brackets import ROOT
from lpcfg_sk.treebank._negra import NO_EDGE
from lpcfg_sk.treebank._stream import check_encoding

#: Nodes and words are put together in pieces of about this many.
_PIECE = 1 << 17
_NOT_IN_BRACKETS = re.compile(r"[()\0 \t\n\r\v\f]|\A\Z")
_NOT_IN_EXPORT = re.compile(r"[\0 \t\n\r\v\f]|\A\Z")
_KEYWORD = re.compile(r"#(?:BOS|EOS|[5-9][0-9]{2}|[1-9][0-9]{3,})")
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def write_treebank(treebank, target, *, format="ptb", encoding="utf-8", escape=False):
    r"""Write a treebank to a file.

    A file is written beside its place and moved there when it is complete.

    Parameters
    ----------
    treebank : Treebank
        Trees; sentences without a parse cannot be written.
    target : path-like or file
        Where to; a name that ends in ``.gz`` is compressed. An open file, text or
        binary, is written to and left open.
    format : {"ptb", "export"}, default="ptb"
        One bracketed tree a line, or NEGRA export format 3.
    encoding : str, default="utf-8"
        Encoding of the bytes.
    escape : bool, default=False
        Write ``(`` and ``)`` within labels and words as ``-LRB-`` and ``-RRB-``
        where the format cannot hold them.

    Raises
    ------
    ValueError
        Where a row has no tree, or where a label or word cannot be written.

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
        _write_open(target, pieces, encoding)
        return
    path = os.path.realpath(os.path.expanduser(os.fsdecode(target)))
    if os.path.exists(path) and not os.path.isfile(path):
        # a device or a pipe is not to be replaced; a directory raises here
        with open(path, "wb") as file:
            file.writelines(_encoded(pieces, encoding))
        return
    _replace(path, _encoded(pieces, encoding))


def _replace(path, pieces):
    draft = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(draft, "xb") as file:
            if path.endswith(".gz"):
                # without a time stamp the same trees are the same bytes
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    packed.writelines(pieces)
            else:
                file.writelines(pieces)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(draft)
        raise


def _encoded(pieces, encoding):
    if codecs.lookup(encoding).name == "utf-8":
        yield from pieces
        return
    encoder = codecs.getincrementalencoder(encoding)()
    for piece in pieces:
        yield encoder.encode(piece.decode())
    yield encoder.encode("", final=True)


def _write_open(file, pieces, encoding):
    # a text file says so by what it makes of an empty string
    try:
        file.write("")
    except TypeError:
        file.writelines(_encoded(pieces, encoding))
    else:
        file.writelines(piece.decode() for piece in pieces)


def _bracket_pieces(treebank, encoding, escape):
    labels = _strings(treebank, "label", _NOT_IN_BRACKETS, encoding, escape)
    tokens = _strings(treebank, "token", _NOT_IN_BRACKETS, encoding, escape)
    label_pool, label_ends = _pool(labels)
    token_pool, token_ends = _pool(tokens)
    for first, last in _tree_ranges(treebank):
        nodes = slice(*treebank.node_offsets[[first, last]])
        words = slice(*treebank.token_offsets[[first, last]])
        length = bracket_length(
            treebank.label[nodes],
            treebank.size[nodes],
            treebank.token[words],
            label_ends,
            token_ends,
        )
        text = np.empty(length, dtype=np.uint8)
        write_brackets(
            treebank.label,
            treebank.size,
            treebank.parent,
            treebank.node_offsets,
            treebank.token,
            treebank.token_offsets,
            label_pool,
            label_ends,
            token_pool,
            token_ends,
            first,
            last,
            text,
        )
        yield text.tobytes()


def _tree_ranges(treebank):
    """Cut the trees into ranges of about the same number of nodes and tokens."""
    work = treebank.node_offsets + treebank.token_offsets
    cuts = np.searchsorted(work, np.arange(_PIECE, work[-1], _PIECE))
    bounds = np.unique(np.concatenate([[0], cuts, [len(treebank)]])).tolist()
    return pairwise(bounds)


def _pool(strings):
    encoded = [string.encode() for string in strings]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in encoded], out=ends[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def _strings(treebank, column, forbidden, encoding, escape=False):
    """Strings of a column as they are to be written, empty where they do not occur."""
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
    at = np.flatnonzero(getattr(treebank, column) == i)[0]
    offsets = treebank.node_offsets if column == "label" else treebank.token_offsets
    tree = np.searchsorted(offsets, at, side="right") - 1
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
    # A root called ROOT is the virtual one, with the number 0.
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
