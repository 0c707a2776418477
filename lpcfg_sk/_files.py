"""Files that are complete or absent, and models in them: never pickle."""

import contextlib
import errno
import io
import json
import math
import os
import platform
import secrets
import shutil
import stat
import struct
import time
import tokenize
import zipfile
import zlib

import numpy as np
import scipy.sparse

import lpcfg_sk

__all__ = [
    "checked_csr",
    "clear_error_of_full_disk",
    "load_arrays",
    "mark_as_used",
    "remove_abandoned",
    "save_arrays",
    "temporary_prefix",
    "written_in_one_step",
]

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


# Seconds within which a file may have been made but not yet been marked as used.
_YOUNG = 60.0

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_HEADER = "header"
_FORMAT = "lpcfg_sk"
_SUFFIX = ".npy"

#: Errors that zipfile, zlib and numpy raise for damaged files.
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

#: Errors of reading a header that this library did not write.
_UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@contextlib.contextmanager
def written_in_one_step(path):
    """Open a file that takes its place only when it is complete.

    A temporary file in the same folder is written, flushed to disk, and renamed in one
    step. After an error or an interruption the old file, if any, is unchanged, and
    nothing else is left behind. The new file has the permissions of the old one, and
    its owner where the system allows that; a symbolic link stays one, and the file
    that it names is replaced.

    Parameters
    ----------
    path : str or path-like
        Where to write. A device or a pipe is written to directly.

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
    path = os.fsdecode(path)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        # Devices and pipes cannot be replaced; a directory raises here. Writers of
        # archives ask for the position in the file, which devices and pipes lack.
        with open(path, "wb") as file:
            content = io.BytesIO()
            yield content
            file.write(content.getbuffer())
        return
    # Not before: the real path of /dev/stdout, where that is a pipe, names nothing.
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there is no folder {folder!r} for {name!r}")
    prefix = f".{name}.{temporary_prefix()}"
    remove_abandoned(folder, prefix)
    draft = os.path.join(folder, f"{prefix}{secrets.token_hex(4)}.tmp")
    try:
        # A private file must not be readable by others even while it is written.
        with (
            clear_error_of_full_disk(path, "the old file, if any, is as it was"),
            open(draft, "xb", opener=_opener(0o666 if old is None else 0o600)) as file,
        ):
            mark_as_used(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            _take_over(draft, old)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(draft)
        raise


@contextlib.contextmanager
def clear_error_of_full_disk(path, advice):
    """Context in which the error of a full disk names the file and gives advice.

    Parameters
    ----------
    path : str
        What is written.
    advice : str
        Advice to add to the message.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        reason = f"{error.strerror}; {advice}"
        raise OSError(error.errno, reason, os.fspath(path)) from error


def temporary_prefix():
    """Return the prefix of temporary files and folders of this machine.

    Machines that share a disk may not see each other's locks, so each of them removes
    only its own files.
    """
    return f"{zlib.crc32(platform.node().encode()):08x}-"


def mark_as_used(descriptor):
    """Lock an open file or folder, so that `remove_abandoned` leaves it alone.

    The system releases the lock when the process ends, even if it is killed.

    Parameters
    ----------
    descriptor : int
        Descriptor of the file.
    """
    # Without locks `remove_abandoned` removes nothing.
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_abandoned(folder, prefix):
    """Remove what dead processes of this user and machine have left in a folder.

    Parameters
    ----------
    folder : str
        Where to look.
    prefix : str
        How the names of the temporary files and folders begin.
    """
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder or "."):
            if entry.name.startswith(prefix) and _is_abandoned(entry):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.remove(entry.path)


def _is_abandoned(entry):
    """Return whether an entry of a folder is old and no process has locked it."""
    status = entry.stat(follow_symlinks=False)
    if (
        fcntl is None
        or stat.S_ISLNK(status.st_mode)
        or status.st_uid != os.getuid()
        or time.time() - status.st_mtime < _YOUNG
    ):
        return False
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _opener(mode):
    return lambda path, flags: os.open(path, flags, mode)


def _take_over(path, old):
    """Give a file the owner and the permissions of another one."""
    new = os.stat(path)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        # Only the superuser can give files away.
        with contextlib.suppress(OSError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def checked_csr(data, indices, indptr, shape):
    """Make a sparse matrix of arrays that cannot be trusted.

    scipy's own check leaves out the offsets of a matrix that claims to be empty.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Values, their columns, and where the values of each row begin.
    shape : sequence of int
        Numbers of rows and columns.

    Returns
    -------
    csr_matrix
        Views of the arrays.

    Raises
    ------
    ValueError
        If offsets do not rise from 0 to the number of values, or a column is out of
        range.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk._files import checked_csr
    >>> checked_csr(np.ones(1), np.array([2]), np.array([0, 0, 1]), (2, 3)).toarray()
    array([[0., 0., 0.],
           [0., 0., 1.]])
    """
    # scipy keeps them in 64 bits.
    if len(shape) != 2 or not all(0 <= n < 2**63 and n == int(n) for n in shape):
        raise ValueError(f"a sparse matrix has no shape {shape}")
    n_rows, n_columns = (int(n) for n in shape)
    for name, array, kinds in (
        ("data", data, "biuf"),
        ("indices", indices, "i"),
        ("indptr", indptr, "i"),
    ):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise ValueError(f"{name!r} of a sparse matrix has a wrong type or shape")
    if (
        n_rows < 0
        or len(indptr) != n_rows + 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(indices) != len(data)
        or (indptr[1:] < indptr[:-1]).any()
    ):
        raise ValueError("the rows of a sparse matrix do not cover its values")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise ValueError("a column of a sparse matrix is out of range")
    return scipy.sparse.csr_matrix(
        (data, indices, indptr), shape=(n_rows, n_columns), copy=False
    )


def save_arrays(path, kind, version, meta, arrays):
    """Write named arrays and plain data to one file.

    The file is a ``.npz`` archive with a JSON header. A temporary file is written,
    flushed to disk, and renamed in one step, so an interrupted write never leaves
    half a file.

    Parameters
    ----------
    path : str or path-like
        Where to write; no suffix is added.
    kind : str
        What the file holds, e.g. ``"LPCFG"``; `load_arrays` checks it.
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
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text = np.frombuffer(text, dtype=np.uint8)
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
    The content is not trusted: no Python objects are created, compressed archives are
    refused, and no header can cause more memory to be allocated than the file's size.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            stored = _read_archive(file)
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is not a readable lpcfg_sk file: it is damaged, cut short "
                f"or something else ({error}). Save the model again; treebanks are "
                "opened by Treebank.open."
            ) from error
    try:
        header = json.loads(stored.pop(_HEADER).tobytes().decode("ascii"))
        found, found_version = header["kind"], int(header["version"])
        meta, names = header["meta"], header["arrays"]
        if header["format"] != _FORMAT:
            raise ValueError(f"format {header['format']!r}")
    except _UNREADABLE as error:
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
        # This library does not compress. Members that are not compressed cannot be
        # larger than the file in all, unless they share bytes.
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
    """Array of a ``.npy`` file, whose header must agree with the file's size."""
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


class LeftOutMixin:
    """Explains access to an attribute that a compact file left out.

    A subclass lists in ``_left_out`` the attributes that parsing does not need; see
    :func:`lpcfg_sk.save`.

    Examples
    --------
    >>> from lpcfg_sk._files import LeftOutMixin
    >>> class Learner(LeftOutMixin):
    ...     _left_out = ("projections_",)
    >>> learner = Learner()
    >>> learner.grammar_ = "S -> NP VP"  # fitted, loaded from a compact file
    >>> hasattr(learner, "projections_")
    False
    """

    _left_out: tuple = ()

    def __getattr__(self, name):
        # Called for missing attributes only.
        fitted = any(k.endswith("_") and not k.startswith("_") for k in vars(self))
        if fitted and name in type(self)._left_out:
            raise AttributeError(
                f"{type(self).__name__} was loaded from a compact file, which leaves "
                f"{name} out; fit it again and keep it by save(..., compact=False)"
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )
