"""Files of treebanks, which are mapped into memory instead of read.

The file begins with ``LPCFGTB`` and a newline, the version of the format (4 bytes),
the CRC-32 of the header (4 bytes) and its length (8 bytes), all little-endian. The
header is JSON: whether the trees are binarised, a list of the blocks, the length of the
file, and for each column its type, shape, offset and CRC-32. The columns follow, each
at a multiple of 64 bytes, little-endian, in C order. A symbol table has two columns:
the UTF-8 text of all strings end to end, and where each of them ends.
"""

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse

import lpcfg_sk
from lpcfg_sk._files import checked_csr, written_in_one_step
from lpcfg_sk.exceptions import TreebankFormatError
from lpcfg_sk.treebank._columns import (
    NODE_COLUMNS,
    OFFSETS,
    TOKEN_COLUMNS,
    check_columns,
)
from lpcfg_sk.treebank._origins import Origins
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._writer import write_treebank

_MAGIC = b"LPCFGTB\n"
_START = struct.Struct("<8sIIQ")
_VERSION = 1
_ALIGNMENT = 64
_COLUMNS = (*NODE_COLUMNS, *TOKEN_COLUMNS, *OFFSETS)
_TABLES = ("labels", "tokens", "words")
_ORIGINS = ("file", "line", "number")
_CSR = ("data", "indices", "indptr")
_TYPES = frozenset(
    np.dtype(t).str
    for t in ("u1", "<i4", "<i8", "<f4", "<f8", "<u4", "<u8", "i1", "?", "<i2", "<u2")
)


class TreebankFiles:
    """The methods of a treebank that write and open files."""

    def write(self, path, **options):
        """Write one bracketed tree per line.

        Parameters
        ----------
        path : path-like or file
            Where to write; a file whose name ends in ``.gz`` is compressed.
        **options
            See :func:`write_treebank`.
        """
        write_treebank(self, path, **options)

    def save(self, path):
        """Write the columns to a file that :meth:`open` maps into memory.

        The file is put in place in one step; an interrupted save leaves an old file
        unchanged.

        Parameters
        ----------
        path : str or path-like
            Where to write. Blocks, the names of their columns, and the files and lines
            where the rows were read are written too.

        See Also
        --------
        write : Write bracketed text.

        Examples
        --------
        >>> import os, tempfile
        >>> from lpcfg_sk import Treebank
        >>> treebank = Treebank(["(S (NP a) (VP b))"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trees.tb")
        ...     treebank.save(path)
        ...     Treebank.open(path) == treebank
        True
        """
        arrays, blocks = _arrays(self)
        header = {
            "library_version": lpcfg_sk.__version__,
            "n_trees": len(self),
            "binarized": self.binarized,
            "words_are_tokens": self.words is self.tokens,
            "blocks": blocks,
        }
        write_columns(path, header, arrays)

    @classmethod
    def open(cls, path, *, verify=True):
        """Open a file that :meth:`save` wrote, without reading it into memory.

        Columns are mapped: the system reads the pages that are used, and frees their
        memory when it runs short. A slice is a view of the file. Symbol tables are
        read into memory. The file must not be changed while it is open; :meth:`save`
        replaces it, which is safe.

        Parameters
        ----------
        path : str or path-like
            The file.
        verify : bool, default=True
            Whether to read the file once, to compare checksums and to check that it
            describes trees, which compiled code relies on. That takes a second or
            two per gigabyte. The header is always checked.

        Returns
        -------
        treebank : Treebank
            It is pickled by content, so the pickle does not need the file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        TreebankFormatError
            If the file has another format or a later version, or is damaged or
            truncated.

        Examples
        --------
        >>> import os, tempfile
        >>> from lpcfg_sk import Treebank
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trees.tb")
        ...     Treebank(["(S (NP a) (VP b))"]).save(path)
        ...     treebank = Treebank.open(path)
        >>> str(treebank[0])
        '(S (NP a) (VP b))'
        """
        path = os.fspath(path)
        # One descriptor, because another process may replace the file in between.
        with open(path, "rb") as file:
            header, start = _read_header(file, path)
            arrays = _map(file, path, header, start)
        if verify:
            for name, array in arrays.items():
                if _checksum(array) != header["columns"][name]["crc32"]:
                    raise TreebankFormatError(
                        f"the column {name!r} is not what was written (its checksum "
                        "differs); save the treebank again",
                        path,
                    )
        try:
            state = _state(header, arrays, verify=verify)
            if len(state["node_offsets"]) != header["n_trees"] + 1:
                raise ValueError("the number of trees is not that of the header")
            if verify:
                check_columns(state)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise TreebankFormatError(
                f"the columns do not describe a treebank: {error}", path
            ) from error
        return cls._from_state(state)


class StoredNames(Sequence):
    """Strings of a file, which are decoded one at a time when they are needed.

    Parameters
    ----------
    text : ndarray of uint8
        All strings, end to end.
    ends : ndarray of int64
        Where each of them ends.
    """

    def __init__(self, text, ends):
        self._text = text
        self._ends = ends

    def __len__(self):
        return len(self._ends)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"name {i} of {len(self)}")
        i %= len(self)
        begin = self._ends[i - 1] if i else 0
        return _decode(self._text[begin : self._ends[i]].tobytes())

    def decode_all(self):
        """Return the list of all strings."""
        raw, bounds = self._text.tobytes(), pairwise([0, *self._ends.tolist()])
        if raw.isascii():
            # Every byte is a character, so the whole text can be decoded at once.
            text = raw.decode("ascii")
            return [text[begin:end] for begin, end in bounds]
        return [_decode(raw[begin:end]) for begin, end in bounds]


def write_columns(path, header, arrays):
    """Write columns to a file.

    Parameters
    ----------
    path : str or path-like
        Where to write.
    header : dict
        JSON data about them; the description of the columns is added.
    arrays : dict of str to ndarray
        The columns, contiguous and little-endian.
    """
    described, offset = {}, 0
    for name, array in arrays.items():
        offset += -offset % _ALIGNMENT
        described[name] = {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "offset": offset,
            "crc32": _checksum(array),
        }
        offset += array.nbytes
    header = {**header, "columns": described, "n_bytes": offset}
    text = json.dumps(header).encode("ascii")
    text += b" " * (-(_START.size + len(text)) % _ALIGNMENT)
    with written_in_one_step(path) as file:
        file.write(_START.pack(_MAGIC, _VERSION, zlib.crc32(text), len(text)))
        file.write(text)
        written = 0
        for name, array in arrays.items():
            file.write(bytes(described[name]["offset"] - written))
            for part in _parts(array):
                file.write(part)
            written = described[name]["offset"] + array.nbytes


def is_saved(path):
    """Return whether :meth:`Treebank.save` wrote a file, judging by its first bytes."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def saved_length(path):
    """Return the number of trees of a file, from its header."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        return _read_header(file, path)[0]["n_trees"]


def _arrays(treebank):
    """Return all arrays of a treebank by name, and a description of its blocks."""
    arrays = {name: getattr(treebank, name) for name in _COLUMNS}
    for name in _TABLES:
        table = getattr(treebank, name)
        if name == "words" and treebank.words is treebank.tokens:
            continue
        arrays[f"{name}.text"], arrays[f"{name}.ends"] = _encode(table.strings)
        if table.backoff is not None:
            arrays[f"{name}.backoff"] = table.backoff
    if treebank.origins is not None:
        origins = treebank.origins.compact()
        arrays["origins.text"], arrays["origins.ends"] = _encode(origins.files)
        for name in _ORIGINS:
            arrays[f"origins.{name}"] = getattr(origins, name)
    blocks = []
    for i, (name, block) in enumerate(treebank.blocks.items()):
        names = treebank.block_names.get(name)
        dense = isinstance(block, np.ndarray)
        if dense:
            arrays[f"block{i}"] = block
        else:
            block = block.tocsr()
            for part in _CSR:
                arrays[f"block{i}.{part}"] = getattr(block, part)
        if names is not None:
            arrays[f"block{i}.text"], arrays[f"block{i}.ends"] = _encode(names)
        blocks.append(
            {
                "name": name,
                "sparse": not dense,
                "shape": list(block.shape),
                "named": names is not None,
            }
        )
    return {name: _plain(name, array) for name, array in arrays.items()}, blocks


def _plain(name, array):
    array = np.ascontiguousarray(array)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype.str not in _TYPES:
        raise TypeError(
            f"{name!r} is an array of {array.dtype}, which cannot be saved; use "
            "numbers of at most 64 bits"
        )
    return array


def _encode(strings):
    parts = [s.encode("utf-8", "surrogatepass") for s in strings]
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.cumsum(lengths)


def _decode(raw):
    return raw.decode("utf-8", "surrogatepass")


def _parts(array, size=2**24):
    """Yield the bytes of an array in parts, because a mapped one may be large."""
    flat = array.reshape(-1).view(np.uint8)
    for begin in range(0, len(flat), size):
        yield flat[begin : begin + size]


def _checksum(array):
    crc = 0
    for part in _parts(array):
        crc = zlib.crc32(part, crc)
    return crc


def _read_header(file, path):
    """Return the header of an open file, and where the columns begin."""
    begin = file.read(_START.size)
    if begin[: len(_MAGIC)] != _MAGIC:
        raise TreebankFormatError(
            "not a treebank that Treebank.save wrote; trees in brackets are read "
            "by read_treebank",
            path,
        )
    if len(begin) < _START.size:
        raise TreebankFormatError("the file is cut short", path)
    _, version, crc, length = _START.unpack(begin)
    if version > _VERSION:
        raise TreebankFormatError(
            f"the file is of version {version} of the format, this release of "
            f"lpcfg_sk reads up to {_VERSION}; use a newer one",
            path,
        )
    size = os.fstat(file.fileno()).st_size
    text = file.read(length) if length <= size else b""
    if len(text) != length or zlib.crc32(text) != crc:
        raise TreebankFormatError("the header is damaged or cut short", path)
    try:
        header = json.loads(text)
        expected = _START.size + length + header["n_bytes"]
        header["n_trees"] = int(header["n_trees"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise TreebankFormatError(
            f"the header is not that of a treebank: {error}", path
        ) from error
    if size != expected:
        raise TreebankFormatError(
            f"the file has {size} bytes, {expected} were written; it is cut short or "
            "something was added",
            path,
        )
    return header, _START.size + length


def _map(file, path, header, start):
    """Return views of all columns of a file."""
    # A file of an empty treebank still has a header, so it can be mapped.
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays = {}
    try:
        for name, column in header["columns"].items():
            if column["type"] not in _TYPES:
                raise ValueError(f"{name!r} is of type {column['type']!r}")
            dtype = np.dtype(column["type"])
            shape = [int(n) for n in column["shape"]]
            if any(n < 0 for n in shape) or column["offset"] < 0:
                raise ValueError(f"{name!r} has a negative size")
            count = math.prod(shape)
            if column["offset"] + count * dtype.itemsize > header["n_bytes"]:
                raise ValueError(f"{name!r} ends after the file")
            arrays[name] = np.frombuffer(
                memory, dtype, count, start + column["offset"]
            ).reshape(shape)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TreebankFormatError(
            f"the header is not that of a treebank: {error}", path
        ) from error
    return arrays


def _names(arrays, name):
    """Return strings of a file, whose ends rise to the end of their text."""
    text, ends = arrays[f"{name}.text"], arrays[f"{name}.ends"]
    types = (text.dtype, text.ndim, ends.dtype, ends.ndim)
    if types != (np.uint8, 1, np.int64, 1):
        raise ValueError(f"the names of {name!r} have a wrong type")
    length = ends[-1] if len(ends) else 0
    if length != len(text) or (np.diff(ends, prepend=0) < 0).any():
        raise ValueError(f"the names of {name!r} do not cover their text")
    return StoredNames(text, ends)


def _table(arrays, name):
    strings = _names(arrays, name).decode_all()
    if len(set(strings)) < len(strings):
        raise ValueError(f"the names of {name!r} differ from each other")
    return SymbolTable(strings, arrays.get(f"{name}.backoff"))


def _state(header, arrays, *, verify):
    state = {name: arrays[name] for name in _COLUMNS}
    for name, array in state.items():
        dtype = np.dtype(np.int64 if name in OFFSETS else np.int32)
        if array.dtype != dtype or array.ndim != 1:
            raise ValueError(f"{name!r} is not a column of {dtype}")
    for name in _TABLES:
        if name == "words" and header["words_are_tokens"]:
            state["words"] = state["tokens"]
            continue
        state[name] = _table(arrays, name)
    state["blocks"], state["block_names"] = {}, {}
    for i, block in enumerate(header["blocks"]):
        if block["sparse"]:
            parts = tuple(arrays[f"block{i}.{part}"] for part in _CSR)
            if verify:
                value = checked_csr(*parts, block["shape"])
            else:
                shape = tuple(block["shape"])
                value = scipy.sparse.csr_matrix(parts, shape=shape, copy=False)
        else:
            value = arrays[f"block{i}"]
        state["blocks"][block["name"]] = value
        state["block_names"][block["name"]] = (
            _names(arrays, f"block{i}") if block["named"] else None
        )
    state["binarized"] = bool(header["binarized"])
    state["origins"] = _origins(header["n_trees"], arrays)
    return state


def _origins(n_trees, arrays):
    """Return where the rows were read, None if the file does not say it."""
    if "origins.file" not in arrays:
        return None
    files = tuple(_names(arrays, "origins").decode_all())
    columns = [arrays[f"origins.{name}"] for name in _ORIGINS]
    if any(c.dtype != np.int32 or c.shape != (n_trees,) for c in columns):
        raise ValueError("the origins of the rows have a wrong type or length")
    origins = Origins(files, *columns)
    if n_trees and not -1 <= origins.file.min() <= origins.file.max() < len(files):
        raise ValueError("the origins of the rows name files that are not listed")
    return origins
