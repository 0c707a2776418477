"""Inputs of the commands: files, folders, patterns, compressed files and stdin."""

import gzip
import io
import itertools
import os
import re
import stat
import sys

from lpcfg_sk.treebank import read_treebank, treebank_files

_GZIP_MAGIC = b"\x1f\x8b"
#: Beginning of a tree; in a sentence white space follows a bracket.
_TREE = re.compile(r"\s*\((?:[^\s)]|\s*\()")


def begins_tree(line):
    """Whether a line is the beginning of a tree rather than a sentence."""
    return _TREE.match(line) is not None


def read_trees(sources, arguments, **options):
    """Read the trees of all sources.

    Parameters
    ----------
    sources : list of str
        Paths, folders, patterns, or "-" for stdin.
    arguments : Namespace
        Has ``format``, ``encoding`` and ``skip_errors``.
    **options
        Passed to :func:`lpcfg_sk.read_treebank`.

    Returns
    -------
    treebank : Treebank
        At least one tree.
    """
    treebank = read_treebank(
        [_stdin() if source == "-" else source for source in sources],
        format=arguments.format,
        encoding=arguments.encoding,
        on_error="skip" if arguments.skip_errors else "raise",
        **options,
    )
    if len(treebank) == 0:
        raise ValueError(
            f"{', '.join(sources)}: no trees in the format {arguments.format!r}"
        )
    return treebank


def keep_inputs(output, *sources, format="ptb"):
    """Refuse to write a result over what a command reads.

    Parameters
    ----------
    output : str or None
        Where to write.
    *sources : str or None
        Paths, folders and patterns of what is read. A file in a folder of trees that
        is no treebank itself may be replaced.
    format : str, default="ptb"
        Decides which files of a folder are read.
    """
    if output is None or not os.path.isfile(output):
        return
    for source in filter(None, sources):
        for path in treebank_files(source, format):
            if os.path.exists(path) and os.path.samefile(path, output):
                raise ValueError(
                    f"{output} is read by this command and would be lost; give "
                    "--output another file"
                )


def tree_lines(source):
    """Read trees as text with one tree per line, whatever their layout is.

    Parameters
    ----------
    source : str
        A path, folder, pattern, or "-" for stdin.

    Returns
    -------
    lines : text file
        Lines of files with one tree per line are as they were: empty where a sentence
        has no parse.
    """
    parts = []
    for name in ["-"] if source == "-" else treebank_files(source):
        with _open_bytes(name) as file:
            content = file.read()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(
                f"{name} is not text in UTF-8; expected trees, gold and predicted. For "
                "a model, parse its sentences first, or use report"
            ) from None
        lines = text.removesuffix("\n").split("\n")
        if any(line.count("(") != line.count(")") for line in lines):
            # Nothing is stripped: the settings of the evaluation decide.
            named = io.BytesIO(content)
            named.name = name
            trees = read_treebank(named, keep_traces=True, keep_functions=True)
            lines = map(str, trees)
        parts.extend(f"{line}\n" for line in lines)
    together = io.StringIO("".join(parts))
    together.name = source
    return together


def files_of_lines(sources, size):
    """Open one file after the other.

    Parameters
    ----------
    sources : list of str
        Paths, folders, patterns, or "-" for stdin.
    size : int
        Most lines of a batch.

    Yields
    ------
    batches : iterator of lists of bytes
        The lines of a file. What a pipe or terminal has ready is a batch, so that each
        line is answered before the next one is written.
    """
    for source in sources:
        for name in ["-"] if source == "-" else treebank_files(source):
            with _open_bytes(name) as file:
                if _is_output(file):
                    raise ValueError(
                        f"{name} is where the answers go, too; write them to another "
                        "file, outside of the folder or pattern of the input"
                    )
                yield _batches(file, size)


def _batches(file, size):
    """Yield the lines of a file in batches."""
    if _is_live(file):
        yield from _ready_lines(file, size)
        return
    lines = iter(file)
    while batch := list(itertools.islice(lines, size)):
        yield batch


def _is_live(file):
    """Whether a file is a pipe or a terminal, where someone waits for answers."""
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, io.UnsupportedOperation):
        return False
    return not stat.S_ISREG(mode)


def _is_output(file):
    """Whether a file is the one that the answers are written to."""
    try:
        own, output = os.fstat(file.fileno()), os.fstat(sys.stdout.fileno())
    except (OSError, io.UnsupportedOperation):
        return False
    return stat.S_ISREG(own.st_mode) and os.path.samestat(own, output)


def _ready_lines(file, size):
    """Yield the complete lines that each read of a pipe returns."""
    rest = b""
    while block := file.read1(2**16):
        *lines, rest = (rest + block).split(b"\n")
        for begin in range(0, len(lines), size):
            yield lines[begin : begin + size]
    if rest:
        yield [rest]


def _open_bytes(name):
    """Open a file or stdin, and uncompress what is compressed."""
    if name == "-":
        file = _stdin()
        if hasattr(file, "peek") and file.peek(2).startswith(_GZIP_MAGIC):
            file = gzip.GzipFile(fileobj=file)
        return _Kept(file)
    file = open(name, "rb")  # noqa: SIM115 - the caller closes it
    if _is_live(file):
        return file
    head = file.read(len(_GZIP_MAGIC))
    file.seek(0)
    if head != _GZIP_MAGIC:
        return file
    # Opened by name, because a GzipFile does not close the file that it is given.
    file.close()
    return gzip.open(name)


def _stdin():
    return getattr(sys.stdin, "buffer", sys.stdin)


class _Kept:
    """Stdin as bytes; leaving the context does not close it."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __iter__(self):
        return (_as_bytes(line) for line in self._file)

    def read(self):
        return _as_bytes(self._file.read())

    def read1(self, size):
        return self._file.read1(size)

    def fileno(self):
        return self._file.fileno()


def _as_bytes(text):
    return text.encode() if isinstance(text, str) else text
