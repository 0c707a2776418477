"""Treebanks larger than memory: files that are opened one at a time."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk.treebank._columns import row_key
from lpcfg_sk.treebank._origins import Origins, joined_origins
from lpcfg_sk.treebank._reader import read_treebank
from lpcfg_sk.treebank._storage import is_saved, saved_length
from lpcfg_sk.treebank._treebank import Treebank, concatenate

_SUFFIX = ".tb"


class _Shard(NamedTuple):
    """A file, the rows to use (None for all), and the steps to apply to them."""

    path: str
    rows: np.ndarray | None
    steps: tuple

    def load(self, keep=None):
        """Open the file and transform its rows, or those that `keep` selects."""
        if is_saved(self.path):
            treebank = Treebank.open(self.path, verify=False)
        else:
            treebank = read_treebank(self.path)
        if self.rows is not None:
            treebank = treebank[self.rows]
        if keep is not None:
            treebank = treebank[keep]
        for step in self.steps:
            treebank = step.transform(treebank)
        return treebank


class ShardedTreebank(Sequence):
    """Trees in several files; each worker opens one file at a time.

    All estimators take it as ``X``. Transformers, learners and ``predict`` go
    through it shard by shard, so that memory holds only the model and as many
    shards as there are jobs. Language models and automata load it first.

    Parameters
    ----------
    paths : path-like or list of path-like
        Files that :meth:`Treebank.save` wrote, or bracketed text, which is read
        again each time it is used. A directory stands for its files that end in
        ``.tb``, in the order of their names.
    verify : bool, default=True
        Whether to read all saved files once, as :meth:`Treebank.open` does.

    Attributes
    ----------
    n_shards : int
        Number of shards.
    offsets : ndarray of int64, shape (n_shards + 1,)
        Shard ``i`` has the rows ``offsets[i]:offsets[i + 1]``.

    See Also
    --------
    Treebank.open : One file mapped into memory.

    Notes
    -----
    A subset is a sharded treebank again, with lists of rows. The ``transform`` of a
    transformer returns a sharded treebank that applies it each time a shard is opened;
    :meth:`save` applies it once and for all.

    All workers must see the files, and the directory for temporary files, under the
    same names. Pickles hold the names of the files, not their content.

    If weights are whole numbers, the grammar of a :class:`PCFG` is the same as that
    of the trees in memory, to the last bit. Other learners add up the same numbers in
    another order, so parameters agree up to rounding.

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk import PCFG, ShardedTreebank, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> trees = load_toy(60)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trees[:40].save(os.path.join(folder, "1.tb"))
    ...     trees[40:].save(os.path.join(folder, "2.tb"))
    ...     X = ShardedTreebank(folder)
    ...     parser = make_parser(PCFG()).fit(X)
    >>> X
    <ShardedTreebank of 60 trees in 2 shards>
    >>> parser[-1].m_ == make_parser(PCFG()).fit(trees)[-1].m_
    True
    """

    def __init__(self, paths, *, verify=True):
        shards = [_Shard(path, None, ()) for path in _files(paths)]
        lengths = [_length(shard.path, verify) for shard in shards]
        self._set_shards(shards, lengths)

    def _set_shards(self, shards, lengths):
        self._shards = tuple(shards)
        self.offsets = offsets(lengths)

    @property
    def n_shards(self):
        """Number of shards."""
        return len(self._shards)

    @property
    def shape(self):
        """``(n_trees,)``, so that scikit-learn indexes without making a list."""
        return (len(self),)

    @property
    def is_parsed(self):
        """Boolean array that tells which rows have a tree."""
        # Transformers never make a tree of a sentence or vice versa, and bracketed
        # text holds trees only.
        parts = [
            shard._replace(steps=()).load().is_parsed
            if is_saved(shard.path)
            else np.ones(size, dtype=bool)
            for shard, size in zip(self._shards, np.diff(self.offsets), strict=True)
        ]
        return np.concatenate([np.zeros(0, dtype=bool), *parts])

    @property
    def sources(self):
        """DataFrame with the file, line and number of each row that was read."""
        return self._origins().frame()

    @property
    def groups(self):
        """Number of the file of each row, -1 for none, as ``GroupKFold`` wants it."""
        return self._origins().file

    def _origins(self):
        banks = [shard._replace(steps=()).load() for shard in self._shards]
        return joined_origins(banks) or Origins.unknown(len(self))

    def __len__(self):
        return int(self.offsets[-1])

    def __getitem__(self, key):
        rows = row_key(key, len(self))
        if type(rows) is int:
            shard = int(np.searchsorted(self.offsets, rows, side="right")) - 1
            row = rows - int(self.offsets[shard])
            return self._shards[shard].load(slice(row, row + 1))[0]
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        shard_of_row = np.searchsorted(self.offsets, rows, side="right") - 1
        ends = np.flatnonzero(np.diff(shard_of_row)) + 1
        shards, lengths = [], []
        for run in np.split(np.arange(len(rows)), ends):
            if not len(run):
                continue
            i = int(shard_of_row[run[0]])
            local = rows[run] - self.offsets[i]
            shard = self._shards[i]
            whole = len(local) == self.offsets[i + 1] - self.offsets[i]
            if not (whole and np.array_equal(local, np.arange(len(local)))):
                own = local if shard.rows is None else shard.rows[local]
                shard = shard._replace(rows=own)
            shards.append(shard)
            lengths.append(len(local))
        return self._with(shards, lengths)

    def _with(self, shards, lengths):
        treebank = ShardedTreebank.__new__(ShardedTreebank)
        treebank._set_shards(shards, lengths)
        return treebank

    def __iter__(self):
        return (tree for treebank in self.chunks() for tree in treebank)

    @property
    def chunk_offsets(self):
        """Each shard is a chunk, so the same as `offsets`."""
        return self.offsets

    def chunks(self):
        """Open one shard after the other.

        Returns
        -------
        treebanks : iterator of Treebank
        """
        return (shard.load() for shard in self._shards)

    def load(self):
        """Read all shards into memory.

        Returns
        -------
        treebank : Treebank
        """
        return concatenate(self.chunks())

    def apply(self, *transformers):
        """Apply transformers to each shard when it is opened.

        Parameters
        ----------
        *transformers : transformer
            Fitted transformers, which keep the number of rows.

        Returns
        -------
        treebank : ShardedTreebank
        """
        shards = [s._replace(steps=(*s.steps, *transformers)) for s in self._shards]
        return self._with(shards, np.diff(self.offsets))

    def without_blocks(self):
        """Leave out the steps that only add node features.

        Returns
        -------
        treebank : ShardedTreebank
            The same trees.
        """
        shards = [
            s._replace(steps=tuple(t for t in s.steps if not hasattr(t, "_block")))
            for s in self._shards
        ]
        return self._with(shards, np.diff(self.offsets))

    def save(self, folder, *, n_jobs=None):
        """Apply all transformers and write each shard to a directory.

        Parameters
        ----------
        folder : path-like
            A directory, which is made if it does not exist. Files are named by numbers.
        n_jobs : int, default=None
            Number of shards to work on at the same time.

        Returns
        -------
        treebank : ShardedTreebank
            The new files.
        """
        os.makedirs(folder, exist_ok=True)
        names = [
            os.path.join(folder, f"{i:05d}{_SUFFIX}") for i in range(self.n_shards)
        ]
        first = [i == 0 for i in range(self.n_shards)]
        chunks = zip(self._shards, names, first, strict=True)
        list(map_chunks(_save, chunks, n_jobs=n_jobs))
        return ShardedTreebank(names, verify=False)

    def __repr__(self):
        return f"<ShardedTreebank of {len(self)} trees in {self.n_shards} shards>"


def over_chunks(func, X, *columns, n_jobs=None):
    """Yield ``func(treebank, *items)`` for each chunk of a corpus, in order.

    Parameters
    ----------
    func : callable
        Called with the treebank of a chunk and its rows of each column.
    X : Treebank or ShardedTreebank
        The corpus.
    *columns : ndarray, shape (n_trees, ...), or None
        Columns with one item per row of the corpus, such as weights; None for ones.
    n_jobs : int, default=None
        Number of chunks that are open at the same time.

    Yields
    ------
    result : object

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import over_chunks
    >>> trees = Treebank(["(S (A a) (B b))", "(S (A c))"])
    >>> list(over_chunks(lambda chunk: chunk.n_tokens, trees))
    [3]
    """

    def run(chunk, *items):
        if isinstance(chunk, Treebank):
            return func(chunk, *items)
        try:
            return func(chunk.load(), *items)
        except Exception as error:
            error.add_note(f"in the shard {chunk.path}")
            raise

    # Workers open the files of shards themselves.
    chunks = X._shards if isinstance(X, ShardedTreebank) else X.chunks()
    pieces = [
        [
            np.ones(end - begin) if column is None else column[begin:end]
            for begin, end in pairwise(X.chunk_offsets.tolist())
        ]
        for column in columns
    ]
    yield from map_chunks(run, zip(chunks, *pieces, strict=True), n_jobs=n_jobs)


def append_rows(X, treebanks, folder):
    """Return a corpus with further rows at its end.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        The corpus.
    treebanks : iterable of Treebank
        The rows, in parts.
    folder : path-like
        Where each part is written to a file of its own if the corpus is in files.

    Returns
    -------
    treebank : Treebank or ShardedTreebank
        As `X`.
    """
    if isinstance(X, Treebank):
        return concatenate([X, *treebanks])
    shards, lengths = list(X._shards), np.diff(X.offsets).tolist()
    for number, treebank in enumerate(treebanks):
        path = os.path.join(folder, f"{number:05d}{_SUFFIX}")
        treebank.save(path)
        shards.append(_Shard(path, None, ()))
        lengths.append(len(treebank))
    return X._with(shards, lengths)


def _save(shard, path, named):
    treebank = shard.load()
    # All shards have the same features, whose names may be larger than a shard.
    if not named:
        treebank = treebank.replace(block_names=dict.fromkeys(treebank.blocks))
    treebank.save(path)


def _files(paths):
    if isinstance(paths, str | os.PathLike):
        if os.path.isdir(paths):
            names = sorted(n for n in os.listdir(paths) if n.endswith(_SUFFIX))
            if not names:
                raise FileNotFoundError(
                    f"the directory {os.fspath(paths)} holds no file that ends in "
                    f"{_SUFFIX}"
                )
            return [os.path.join(paths, name) for name in names]
        paths = [paths]
    paths = [os.fspath(path) for path in paths]
    if not paths:
        raise ValueError("a sharded treebank needs at least one file")
    return [os.path.abspath(path) for path in paths]


def _length(path, verify):
    if not is_saved(path):
        return len(read_treebank(path))
    if verify:
        return len(Treebank.open(path))
    return saved_length(path)
