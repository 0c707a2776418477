"""Files of the corpora that NLTK downloads, without NLTK."""

import os
import re
import sys
import zipfile
from pathlib import Path, PurePosixPath

__all__ = ["corpus_files", "data_folders"]

#: Largest file that is read from an archive; the corpora have a few megabytes.
_MAX_BYTES = 2**30


def data_folders():
    """Folders in which NLTK looks for its data, in its order.

    Returns
    -------
    list of Path
        ``NLTK_DATA``, ``nltk_data`` in the home folder, and those of the system.
    """
    given = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    folders = [Path(folder).expanduser() for folder in given if folder]
    home = os.path.expanduser("~")
    if home != "~":
        folders.append(Path(home, "nltk_data"))
    below = ("", "share", "lib")
    folders += [Path(sys.prefix, part, "nltk_data") for part in below]
    if os.name == "nt":
        system = [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    else:
        system = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    return folders + [Path(folder, "nltk_data") for folder in system]


def corpus_files(package, pattern, path=None):
    """Read the files of a corpus, from its folder or from the archive of it.

    Parameters
    ----------
    package : str
        Name of the corpus for ``nltk.download``.
    pattern : str
        Regular expression that matches the names of its files.
    path : path-like, default=None
        The folder of the corpus, which may hold the files at any depth, a .zip archive
        of it, or a folder of NLTK's data; where None, NLTK's folders are searched.

    Returns
    -------
    files : dict of str to bytes
        Content by path, in the order of the file names.

    Raises
    ------
    FileNotFoundError
        If there are no such files.
    """
    names = package, f"{package}.zip"
    if path is None:
        folders = [folder / "corpora" for folder in data_folders()]
        places = [folder / name for folder in folders for name in names]
    else:
        # Data of NLTK hold other corpora, too, with files of like names.
        folders = [Path(path), Path(path, "corpora")]
        places = [folder / name for folder in folders for name in names] + [Path(path)]
    for place in places:
        if files := _read(place, re.compile(pattern)):
            return files
    if path is not None:
        raise FileNotFoundError(
            f"{path} has no files of the corpus {package!r}, whose names match "
            f"{pattern!r}; give the folder or the .zip file that "
            f'nltk.download("{package}") makes'
        )
    searched = ", ".join(str(folder) for folder in data_folders())
    raise FileNotFoundError(
        f"the corpus {package!r} is not on this machine; download it once by import "
        f'nltk; nltk.download("{package}"), or give the path of its folder '
        f"(searched: {searched})"
    )


def _read(place, pattern):
    """Read the files whose names match below a folder or in an archive."""
    if place.is_dir():
        found = [p for p in place.rglob("*") if pattern.fullmatch(p.name)]
        found = sorted((p for p in found if p.is_file()), key=lambda p: (p.name, p))
        return {str(p): p.read_bytes() for p in found}
    if not place.is_file():
        return {}
    if not zipfile.is_zipfile(place):
        return {str(place): place.read_bytes()} if pattern.fullmatch(place.name) else {}
    with zipfile.ZipFile(place) as archive:
        found = [
            (PurePosixPath(info.filename), info)
            for info in archive.infolist()
            if pattern.fullmatch(PurePosixPath(info.filename).name)
        ]
        large = [str(name) for name, info in found if info.file_size > _MAX_BYTES]
        if large:
            raise ValueError(
                f"{large[0]} in {place} has more than {_MAX_BYTES} bytes, which no "
                "file of this corpus has; unpack the archive and give its folder"
            )
        found.sort(key=lambda entry: (entry[0].name, entry[0]))
        return {f"{place}/{name}": archive.read(info) for name, info in found}
