"""Symbol tables, and ids moved from one table to another."""

import numpy as np

from lpcfg_sk._ragged import read_only


class SymbolTable:
    """Strings and their ids, shared by all slices of a treebank.

    Parameters
    ----------
    strings : iterable of str
        The symbols; the position of a symbol is its id. No symbol occurs twice.
    backoff : array-like of int, default=None
        For a table of words, the id of each word's signature class, and of the next
        coarser class of each class. The coarsest class is its own.

    Examples
    --------
    >>> from lpcfg_sk.treebank import SymbolTable
    >>> labels = SymbolTable(["S", "NP", "VP"])
    >>> labels[1], labels.index("VP"), labels.index("PP")
    ('NP', 2, -1)
    """

    def __init__(self, strings, backoff=None):
        self.strings = tuple(strings)
        if backoff is not None:
            backoff = np.ascontiguousarray(backoff, dtype=np.int32)
            if backoff.shape != (len(self.strings),):
                raise ValueError(
                    f"backoff has shape {backoff.shape}, expected one id for each of "
                    f"the {len(self.strings)} symbols"
                )
            _check_classes(backoff)
            backoff = read_only(backoff)
        self.backoff = backoff
        self._ids = None
        # Result of decode_table, if the symbols are labels.
        self._decoded = None

    def __len__(self):
        return len(self.strings)

    def __iter__(self):
        return iter(self.strings)

    def __getitem__(self, i):
        return self.strings[i]

    def __contains__(self, string):
        return self.index(string) >= 0

    def __eq__(self, other):
        if not isinstance(other, SymbolTable):
            return NotImplemented
        same_backoff = (self.backoff is None) == (other.backoff is None) and (
            self.backoff is None or np.array_equal(self.backoff, other.backoff)
        )
        return self.strings == other.strings and same_backoff

    def __hash__(self):
        return hash(self.strings)

    def __repr__(self):
        head = ", ".join(map(repr, self.strings[:4]))
        more = ", ..." if len(self) > 4 else ""
        return f"<SymbolTable of {len(self)}: {head}{more}>"

    def __reduce__(self):
        # One string and an array, because joblib hashes and stores objects one at a
        # time, which takes longer than most fits for tens of thousands of strings.
        lengths = np.fromiter(map(len, self.strings), dtype=np.int32, count=len(self))
        return _restore, ("".join(self.strings), lengths, self.backoff)

    def index(self, string):
        """Return the id of a string.

        Parameters
        ----------
        string : str
            The symbol.

        Returns
        -------
        int
            Its id, or -1 if it is not in the table.
        """
        return self._index().get(string, -1)

    def map_to(self, other):
        """Return the ids of this table's symbols in another table.

        Parameters
        ----------
        other : SymbolTable or sequence of str
            The table to translate into.

        Returns
        -------
        ids : ndarray of int32, shape (len(self),)
            ``ids[i]`` is the id of symbol ``i`` in `other`, -1 if it is absent.
        """
        if not isinstance(other, SymbolTable):
            other = SymbolTable(other)
        if other.strings is self.strings:
            return np.arange(len(self), dtype=np.int32)
        get = other._index().get
        return np.fromiter(
            (get(s, -1) for s in self.strings), dtype=np.int32, count=len(self)
        )

    def translate(self, ids, other):
        """Translate ids of this table into ids of another one.

        Parameters
        ----------
        ids : ndarray of int
            Ids in this table; -1 stays -1.
        other : SymbolTable
            The table to translate into.

        Returns
        -------
        ids : ndarray of int32, shape of `ids`
            Ids in `other`, -1 where it lacks the symbol.
        """
        if len(ids) >= len(self):
            return np.append(self.map_to(other), np.int32(-1))[ids]
        # A single sentence must not cost as much as the whole vocabulary.
        get, names = other._index().get, self.strings
        translated = (-1 if i < 0 else get(names[i], -1) for i in ids.tolist())
        return np.fromiter(translated, dtype=np.int32, count=len(ids))

    def known_class(self, ids):
        """Replace unknown words by the finest of their classes that is known.

        Parameters
        ----------
        ids : ndarray of int, shape (len(self),)
            Ids of this table's words in another table, see `map_to`; -1 if unknown.

        Returns
        -------
        ids : ndarray of int, shape (len(self),)
            -1 where no class is known either; `ids` in a table without classes.
        """
        if self.backoff is None:
            return ids
        ids, coarser = np.array(ids), self.backoff
        while True:
            unknown = np.flatnonzero((ids < 0) & (ids[coarser] >= 0))
            ids[unknown] = ids[coarser[unknown]]
            if np.array_equal(coarser, self.backoff[coarser]):
                return ids
            coarser = self.backoff[coarser]

    def _index(self):
        if self._ids is None:
            ids = {s: i for i, s in enumerate(self.strings)}
            if len(ids) != len(self.strings):
                raise ValueError("a symbol table holds each string once")
            self._ids = ids
        return self._ids


def _check_classes(backoff):
    """Reject ids out of range, and classes that are coarser than themselves."""
    n = len(backoff)
    if n and not 0 <= backoff.min() <= backoff.max() < n:
        raise ValueError(f"backoff holds ids out of range, expected 0 to {n - 1}")
    coarser = backoff
    for _ in range(n.bit_length()):
        coarser = coarser[coarser]
    if not np.array_equal(coarser, backoff[coarser]):
        raise ValueError("backoff leads in a circle, expected ever coarser classes")


def _restore(text, lengths, backoff):
    ends = np.cumsum(lengths).tolist()
    strings = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return SymbolTable(strings, backoff)


def translate(ids, mapping):
    """Map ids from one table to another; -1 stays -1."""
    return np.append(mapping, np.int32(-1))[ids]


def union_of_tables(tables):
    """Return the union of symbol tables, and the map of ids from each into it."""
    if all(t is tables[0] for t in tables):
        return tables[0], [np.arange(len(tables[0]), dtype=np.int32)] * len(tables)
    strings = dict.fromkeys(s for t in tables for s in t.strings)
    backoff = next((t.backoff for t in tables if t.backoff is not None), None)
    if backoff is not None and any(t != tables[0] for t in tables):
        raise ValueError(
            "treebanks with different fitted vocabularies cannot be joined; join them "
            "before RareWords"
        )
    union = tables[0] if backoff is not None else SymbolTable(strings)
    return union, [t.map_to(union) for t in tables]


def compact_ids(ids, table):
    """Renumber ids by first occurrence and drop symbols that do not occur."""
    used, first = np.unique(ids[ids >= 0], return_index=True)
    order = used[np.argsort(first, kind="stable")]
    mapping = np.full(len(table) + 1, -1, dtype=np.int32)
    mapping[order] = np.arange(len(order), dtype=np.int32)
    return mapping[ids], SymbolTable([table[i] for i in order.tolist()])
