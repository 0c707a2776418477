"""Where the rows of a treebank were read: file, line and number."""

from typing import NamedTuple

import numpy as np
import pandas as pd


class Origins(NamedTuple):
    """One entry per row of a treebank; -1 where something is not known.

    Attributes
    ----------
    files : tuple of str
        Names of files.
    file, line, number : ndarray of int32, shape (n_rows,)
        Index of the file, line where the tree begins, and number of the tree within
        the file; both counted from 1.
    """

    files: tuple
    file: np.ndarray
    line: np.ndarray
    number: np.ndarray

    @classmethod
    def unknown(cls, n_rows):
        """Return the origins of rows that were not read from files."""
        return cls((), *np.full((3, n_rows), -1, dtype=np.int32))

    def take(self, rows):
        """Return the origins of some rows."""
        return Origins(self.files, *(column[rows] for column in self[1:]))

    def compact(self):
        """Return the origins with the files that occur, in the order of the rows."""
        used, first, file = np.unique(self.file, return_index=True, return_inverse=True)
        ids = np.full(len(used), -1, dtype=np.int32)
        order = [i for i in np.argsort(first).tolist() if used[i] >= 0]
        ids[order] = np.arange(len(order))
        files = tuple(self.files[used[i]] for i in order)
        return Origins(files, ids[file], self.line, self.number)

    def frame(self):
        """Return a DataFrame with the columns file, line and number."""
        return pd.DataFrame(
            {
                "file": pd.Categorical.from_codes(self.file, list(self.files)),
                "line": pd.arrays.IntegerArray(self.line, self.line < 0),
                "number": pd.arrays.IntegerArray(self.number, self.number < 0),
            }
        )


def joined_origins(treebanks):
    """Return the origins of the rows of several treebanks, None if none has any."""
    if all(treebank.origins is None for treebank in treebanks):
        return None
    parts = [t.origins or Origins.unknown(len(t)) for t in treebanks]
    files, moved = {}, []
    for part in parts:
        ids = [files.setdefault(name, len(files)) for name in part.files]
        moved.append(np.array([*ids, -1], dtype=np.int32)[part.file])
    columns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("line", "number")
    )
    return Origins(tuple(files), np.concatenate(moved), *columns)


class OriginRecorder:
    """Collects where the trees of files begin.

    Parameters
    ----------
    columns : TreeColumns
        Where the scanner puts the trees.
    """

    def __init__(self, columns):
        self._columns = columns
        self._files, self._file, self._line, self._number = [], [], [], []
        self._n_done = columns.n_read

    def start_file(self, name):
        """Begin another file."""
        self._files.append(name)
        self._n_before = self._columns.n_read

    def add(self, text, scanner, lines):
        """Add the trees of a block; `lines` is the number of lines before it."""
        n_done, self._n_done = self._n_done, self._columns.n_read
        n_new = self._n_done - n_done
        line = np.full(n_new, -1, dtype=np.int32)
        places = getattr(scanner, "places", ())
        if len(places):
            breaks = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
            line[:] = lines + 1 + np.searchsorted(breaks, places[:, 0])
        self._line.append(line)
        first = n_done - self._n_before + 1
        self._number.append(np.arange(first, first + n_new, dtype=np.int32))
        self._file.append(np.full(n_new, len(self._files) - 1, dtype=np.int32))

    def origins(self):
        """Return the origins of all trees that are left."""
        if not self._files:
            return None
        parts = (self._file, self._line, self._number)
        kept = self._columns.has_words
        return Origins(
            tuple(self._files), *(np.concatenate(part)[kept] for part in parts)
        )


class WithOrigins:
    """Properties of a treebank that say where its rows were read."""

    @property
    def sources(self):
        r"""DataFrame with the file, line and number of each row that was read.

        Slices, joined, transformed, predicted and saved treebanks keep it.

        Examples
        --------
        >>> import io
        >>> from lpcfg_sk import read_treebank
        >>> read_treebank(io.StringIO("(S (A a))\n\n(S (B b))")).sources
             file  line  number
        0  <file>     1       1
        1  <file>     3       2
        """
        return (self.origins or Origins.unknown(len(self))).frame()

    @property
    def groups(self):
        """Number of the file of each row, -1 for none, as ``GroupKFold`` wants it."""
        return (self.origins or Origins.unknown(len(self))).file
