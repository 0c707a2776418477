"""Open files of any encoding, compressed or not, to blocks of UTF-8."""

import codecs
import gzip
import zlib

from lpcfg_sk.exceptions import TreebankFormatError
from lpcfg_sk.treebank._brackets import BLOCK_SIZE

_GZIP_MAGIC = b"\x1f\x8b"
_MARK_UNDECODABLE = "lpcfg_sk.mark_undecodable"


class DamagedInputError(Exception):
    """The rest of an input cannot be read."""


def _mark_undecodable(error):
    # A lone surrogate is not valid UTF-8, so the scanner finds it and says where.
    if isinstance(error, UnicodeDecodeError):
        return "\udc80", error.end
    raise error


codecs.register_error(_MARK_UNDECODABLE, _mark_undecodable)


def check_encoding(encoding):
    """Raise ValueError where Python does not know a text encoding."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"encoding is the name of a text encoding, got {encoding!r}"
        ) from None


def utf8_blocks(file, name, encoding, max_bytes):
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
        Most bytes that compressed data may unfold to.

    Yields
    ------
    block : bytes
        May end within a character. What does not decode is left or made invalid
        UTF-8.

    Raises
    ------
    DamagedInputError
        Where compressed data is damaged, or a text file does not decode.
    TreebankFormatError
        Where compressed data exceeds `max_bytes`.
    """
    head = _read_block(file, name)
    if isinstance(head, str):
        while head:
            yield head.encode("utf-8", "surrogatepass")
            head = _read_block(file, name)
        return
    if head.startswith(_GZIP_MAGIC):
        file = gzip.GzipFile(fileobj=_Rejoined(head, file), mode="rb")
        blocks = _capped(_rest(b"", file, name), name, max_bytes)
    else:
        blocks = _rest(head, file, name)
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
        # Not of a character, but of the whole: UTF-16 without a byte order mark.
        raise DamagedInputError(f"the encoding is another one ({error})") from error


def _rest(head, file, name):
    if head:
        yield head
    while block := _read_block(file, name):
        yield block


def _read_block(file, name):
    try:
        block = file.read(BLOCK_SIZE)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedInputError(f"damaged gzip data ({error})") from error
    except UnicodeDecodeError as error:
        raise DamagedInputError(
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
    """A file whose first bytes were read already and are given out again."""

    def __init__(self, head, file):
        self._head = head
        self._file = file

    def read(self, size=-1):
        if self._head:
            size = len(self._head) if size is None or size < 0 else size
            block, self._head = self._head[:size], self._head[size:]
            return block
        return self._file.read(size)
