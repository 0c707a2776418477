"""Row numbers, and ids moved from one symbol table to another."""

import numpy as np

from lpcfg_sk.treebank._symbols import SymbolTable


def row_key(key, n):
    """Take an index apart: a row number, a slice, or what :func:`row_numbers` takes.

    scikit-learn indexes by ``[rows, ...]`` what has a shape.
    """
    if isinstance(key, tuple):
        if len(key) != 2 or key[1] is not Ellipsis:
            raise IndexError(
                "a treebank has one axis; index it by an int, a slice, a list of "
                "ints, or an integer or boolean array"
            )
        key = key[0]
    if isinstance(key, np.ndarray) and key.ndim == 0:
        key = key[()]
    if isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_):
        row = int(key)
        if not -n <= row < n:
            raise IndexError(f"row {row} of a treebank with {n} rows")
        return row % n
    return key


def row_numbers(key, n):
    """Turn any one-dimensional index into non-negative row numbers."""
    rows = np.asarray(key)
    if rows.size == 0 and rows.dtype.kind not in "b":
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise IndexError(
            "a treebank is indexed by an int, a slice, a list of ints, or a "
            f"one-dimensional integer or boolean array, got {type(key).__name__}"
        )
    if rows.dtype.kind == "b":
        if len(rows) != n:
            raise IndexError(f"boolean index of length {len(rows)} for {n} rows")
        return np.flatnonzero(rows)
    rows = rows.astype(np.int64)
    if rows.min() < -n or rows.max() >= n:
        wrong = rows[(rows < -n) | (rows >= n)][0]
        raise IndexError(f"row {wrong} of a treebank with {n} rows")
    return np.where(rows < 0, rows + n, rows)


def ranges(offsets, rows):
    """Positions that the given rows cover, and the offsets of what is taken."""
    begin, end = offsets[rows], offsets[rows + 1]
    taken = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(end - begin, out=taken[1:])
    positions = np.arange(taken[-1]) + np.repeat(begin - taken[:-1], end - begin)
    return positions, taken


def translate(ids, mapping):
    """Map ids, leaving -1 as it is."""
    return np.append(mapping, np.int32(-1))[ids]


def union_of_tables(tables):
    """Join symbol tables; also give the map from each into the union."""
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
