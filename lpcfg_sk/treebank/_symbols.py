import numpy as np


class SymbolTable:
    """Strings and their ids, shared by all slices of a treebank.

    Parameters
    ----------
    strings : iterable of str
        The symbols; the position of a symbol is its id. No symbol occurs twice.
    backoff : array-like of int, default=None
        For a table of words, the id of each word's signature class. A class is
        its own class.

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
            backoff.flags.writeable = False
        self.backoff = backoff
        self._ids = None

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
        # One string and an array: joblib hashes and stores objects one at a time,
        # which for tens of thousands of strings takes longer than most fits.
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
            Its id, or -1 where it is not in the table.
        """
        return self._index().get(string, -1)

    def map_to(self, other):
        """Ids of this table's symbols in another table.

        Parameters
        ----------
        other : SymbolTable or sequence of str
            The table to translate into.

        Returns
        -------
        ids : ndarray of int32, shape (len(self),)
            ``ids[i]`` is the id of symbol ``i`` in `other`, -1 where it is absent.
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
        """Ids in another table of the symbols with some ids in this one.

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

    def _index(self):
        if self._ids is None:
            ids = {s: i for i, s in enumerate(self.strings)}
            if len(ids) != len(self.strings):
                raise ValueError("a symbol table holds each string once")
            self._ids = ids
        return self._ids


def _restore(text, lengths, backoff):
    ends = np.cumsum(lengths).tolist()
    strings = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return SymbolTable(strings, backoff)
