"""Models on disk: arrays and a JSON header, never pickle."""

import json
import os
import secrets
import zipfile

import numpy as np

import lpcfg_sk

__all__ = ["load_arrays", "save_arrays"]

_HEADER = "header"
_FORMAT = "lpcfg_sk"


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
    path = os.fspath(path)
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
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, **{_HEADER: text}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


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
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                stored = {name: archive[name] for name in archive.files}
        except (
            zipfile.BadZipFile,
            ValueError,
            EOFError,
            OSError,
            KeyError,
            AttributeError,
            TypeError,
            NotImplementedError,
            SyntaxError,
        ) as error:
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
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} was not written by lpcfg_sk: its header is missing or unreadable "
            f"({error})."
        ) from error
    if found != kind:
        raise ValueError(f"{path} holds a {found}, but a {kind} was asked for.")
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
