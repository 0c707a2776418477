"""Files that are complete or absent, and models in them: never pickle."""

import contextlib
import io
import json
import math
import os
import secrets
import struct
import tokenize
import zipfile
import zlib

import numpy as np

import lpcfg_sk

__all__ = ["load_arrays", "save_arrays", "written_in_one_step"]

_HEADER = "header"
_FORMAT = "lpcfg_sk"
_SUFFIX = ".npy"

#: What zipfile, zlib and numpy raise for files that are not what they should be.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    ValueError,
    EOFError,
    OSError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    RuntimeError,
    SyntaxError,
)


@contextlib.contextmanager
def written_in_one_step(path):
    """Open a file that takes its place only when it is complete.

    The file is written beside its place, flushed to the disk, and moved there in one
    step. After an error or an interruption the old file, if any, is as it was, and
    nothing else is left behind.

    Parameters
    ----------
    path : str or path-like
        Where to write.

    Yields
    ------
    file : binary file

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk._files import written_in_one_step
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_in_one_step(os.path.join(folder, "model")) as file:
    ...         _ = file.write(b"weights")
    ...     os.listdir(folder)
    ['model']
    """
    folder, name = os.path.split(os.fspath(path))
    draft = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(draft)
        raise


def save_arrays(path, kind, version, meta, arrays):
    """Write named arrays and plain data to one file.

    The file is a ``.npz`` archive with a JSON header. It is written beside its
    place, flushed to the disk, and moved there in one step, so an interrupted
    write never leaves half a file.

    Parameters
    ----------
    path : str or path-like
        Where to write; taken as it is, no suffix is added.
    kind : str
        What the file holds, e.g. ``"LPCFG"``; `load_arrays` asks for it.
    version : int
        Version of the layout of this kind.
    meta : dict
        Plain data (strings, numbers, lists, dicts), stored as JSON.
    arrays : dict of str to ndarray
        The arrays, of numbers or booleans.
    """
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise TypeError(f"Array {name!r} holds Python objects; numbers needed.")
    header = {
        "format": _FORMAT,
        "kind": kind,
        "version": int(version),
        "library_version": lpcfg_sk.__version__,
        "meta": meta,
        "arrays": sorted(arrays),
    }
    text = np.frombuffer(json.dumps(header).encode("ascii"), dtype=np.uint8)
    with written_in_one_step(path) as file:
        np.savez(file, **{_HEADER: text}, **arrays)


def load_arrays(path, kind, version):
    """Read what `save_arrays` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        What the file must hold.
    version : int
        The newest version of the layout that the caller can read.

    Returns
    -------
    version : int
        Version of the layout of the file.
    meta : dict
        The plain data.
    arrays : dict of str to ndarray
        The arrays.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is foreign, damaged, of another kind or too new.

    Notes
    -----
    The content is not trusted: no objects are made, compressed archives are refused,
    and no header makes it allocate more than the size of the file.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            stored = _read_archive(file)
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is not a readable lpcfg_sk file: it is damaged, cut short "
                f"or something else ({error}). Save the model again."
            ) from error
    try:
        header = json.loads(stored.pop(_HEADER).tobytes().decode("ascii"))
        found, found_version = header["kind"], int(header["version"])
        meta, names = header["meta"], header["arrays"]
        if header["format"] != _FORMAT:
            raise ValueError(f"format {header['format']!r}")
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} was not written by lpcfg_sk: its header is missing or unreadable "
            f"({error})."
        ) from error
    if found != kind:
        reader = "lpcfg_sk.load" if found == "estimator" else f"{found}.load"
        raise ValueError(
            f"{path} holds a {found}; expected: {kind}. It is read with {reader}."
        )
    if found_version > version:
        raise ValueError(
            f"{path} has layout version {found_version} (written by lpcfg_sk "
            f"{header.get('library_version')}); this release reads up to version "
            f"{version}. Update lpcfg_sk."
        )
    if sorted(stored) != names:
        raise ValueError(
            f"{path} is damaged: expected the arrays {names}, found {sorted(stored)}."
        )
    return found_version, meta, stored


def _read_archive(file):
    """Arrays of an archive by name, in memory of no more than the file's own size."""
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        # What this library writes is not compressed. Then nothing can unfold to more
        # than the file holds, unless members share their bytes.
        if any(m.compress_type != zipfile.ZIP_STORED for m in members):
            raise ValueError("an array is compressed")
        if sum(m.file_size for m in members) > size:
            raise ValueError("its arrays claim to be larger than the file")
        stored = {m.filename: _read_array(archive.read(m)) for m in members}
    if len(stored) != len(members):
        raise ValueError("two arrays have one name")
    if not all(name.endswith(_SUFFIX) for name in stored):
        raise ValueError("it holds other files than arrays")
    return {name.removesuffix(_SUFFIX): array for name, array in stored.items()}


def _read_array(content):
    """Array of a ``.npy`` file, whose header is believed only as far as it fits."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"an array of .npy version {version}")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if dtype.kind not in "biufc" or min(shape, default=0) < 0:
        raise ValueError(f"an array of dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"{len(content) - start} bytes for an array of shape {shape}")
    flat = np.frombuffer(content, dtype=dtype, offset=start).copy()
    return flat.reshape(shape, order="F" if by_columns else "C")
