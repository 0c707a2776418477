"""Columns of a treebank: chosen by row, joined, compared, shown and checked."""

import numpy as np
import pandas as pd
import scipy.sparse

from lpcfg_sk._files import checked_csr
from lpcfg_sk._kernels._columns import NodeColumns
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.treebank._objects import columns_of_objects
from lpcfg_sk.treebank._origins import joined_origins
from lpcfg_sk.treebank._symbols import compact_ids, translate, union_of_tables

NODE_COLUMNS = ("label", "size", "parent", "start", "stop")
TOKEN_COLUMNS = ("token", "word", "tag")
OFFSETS = ("node_offsets", "token_offsets")
MAPPINGS = ("blocks", "block_names")

#: Number of nodes to check at a time.
_PART = 2**20


def node_columns(treebank):
    """Return the nodes of a treebank in the form that kernels take."""
    return NodeColumns(*(getattr(treebank, name) for name in NodeColumns._fields))


def node_spans(size, node_offsets):
    """Return where the words of each node begin and end within its tree.

    Parameters
    ----------
    size : ndarray of int, shape (n_nodes,)
        Number of nodes of each subtree, in preorder.
    node_offsets : ndarray of int, shape (n_trees + 1,)
        Tree t has the nodes ``node_offsets[t]:node_offsets[t + 1]``.

    Returns
    -------
    start, stop : ndarray of int64, shape (n_nodes,)
    """
    leaves = offsets(size == 1)
    before = np.repeat(leaves[node_offsets[:-1]], np.diff(node_offsets))
    return leaves[:-1] - before, leaves[np.arange(len(size)) + size] - before


# -- rows ----------------------------------------------------------------------


def row_key(key, n):
    """Return an index as a row number, a slice of step 1, or an array of row numbers.

    Numbers are not negative. scikit-learn indexes objects that have a shape by
    ``[rows, ...]``.
    """
    if isinstance(key, tuple):
        if len(key) != 2 or key[1] is not Ellipsis:
            raise IndexError(
                "a treebank has one axis; index it by an int, a slice, a list of "
                "ints, or an integer or boolean array"
            )
        key = key[0]
    if isinstance(key, slice):
        begin, end, step = key.indices(n)
        return (
            slice(begin, max(begin, end)) if step == 1 else np.arange(begin, end, step)
        )
    if isinstance(key, np.ndarray) and key.ndim == 0:
        key = key[()]
    if isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_):
        if not -n <= key < n:
            raise IndexError(f"row {key} of a treebank with {n} rows")
        return int(key) % n
    rows = np.asarray(key)
    if rows.size == 0 and rows.dtype.kind not in "b":
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise IndexError(
            "a treebank is indexed by an int, a slice, a list of ints, or a "
            f"one-dimensional integer or boolean array, got {_named(key)}"
        )
    if rows.dtype.kind == "b":
        if len(rows) != n:
            raise IndexError(f"boolean index of length {len(rows)} for {n} rows")
        return np.flatnonzero(rows)
    rows = rows.astype(np.int64)
    wrong = rows[(rows < -n) | (rows >= n)]
    if len(wrong):
        raise IndexError(f"row {wrong[0]} of a treebank with {n} rows")
    return np.where(rows < 0, rows + n, rows)


def _named(key):
    """Name the type of a key, and of what it holds if that is the trouble."""
    name = type(key).__name__
    if isinstance(key, list | tuple) and key:
        name += f" of {type(key[0]).__name__}"
    return name


def ranges(bounds, rows):
    """Return the positions that the given rows cover, and their new offsets."""
    if isinstance(rows, slice):
        begin, end = bounds[[rows.start, rows.stop]]
        return slice(begin, end), bounds[rows.start : rows.stop + 1] - begin
    lengths = bounds[rows + 1] - bounds[rows]
    return ragged_indices(bounds[rows], lengths), offsets(lengths)


def joined_columns(banks):
    """Return the state of a treebank with the rows of all others.

    Parameters
    ----------
    banks : list of Treebank
        Blocks that one of them lacks are left out.

    Returns
    -------
    state : dict
        Arguments of :meth:`Treebank.from_columns`.
    """
    if not banks:
        return columns_of_objects([], "tree", 0)
    labels, label_maps = union_of_tables([b.labels for b in banks])
    tokens, token_maps = union_of_tables([b.tokens for b in banks])
    if all(b.words is b.tokens for b in banks):
        words, word_maps = tokens, token_maps
    else:
        words, word_maps = union_of_tables([b.words for b in banks])
    state = {
        name: np.concatenate([getattr(b, name) for b in banks])
        for name in ("size", "parent", "start", "stop")
    }
    for name, maps in (
        ("label", label_maps),
        ("tag", label_maps),
        ("token", token_maps),
        ("word", word_maps),
    ):
        state[name] = np.concatenate(
            [translate(getattr(b, name), m) for b, m in zip(banks, maps, strict=True)]
        )
    for name in OFFSETS:
        lengths = [np.diff(getattr(b, name)) for b in banks]
        state[name] = offsets(np.concatenate(lengths))
    shared = [k for k in banks[0].blocks if all(k in b.blocks for b in banks)]
    state["blocks"] = {
        k: (
            np.concatenate([b.blocks[k] for b in banks])
            if isinstance(banks[0].blocks[k], np.ndarray)
            else scipy.sparse.vstack([b.blocks[k] for b in banks], format="csr")
        )
        for k in shared
    }
    state["block_names"] = {
        k: v for k, v in banks[0].block_names.items() if k in shared
    }
    state.update(labels=labels, tokens=tokens, words=words)
    state["binarized"] = all(b.binarized for b in banks)
    state["origins"] = joined_origins(banks)
    return state


def compact_columns(treebank):
    """Return the state with tables reduced to the symbols that occur, in order.

    Two treebanks with the same content then have the same bytes, however they were
    sliced or read, which is what ``Pipeline(memory=...)`` compares. A fitted vocabulary
    (one with signature classes) is kept whole.
    """
    # A read-only view of a dictionary cannot be pickled.
    blocks = {name: dict(getattr(treebank, name)) for name in MAPPINGS}
    state = {**treebank._state(), **blocks}
    both = np.concatenate([treebank.label, treebank.tag])
    both, state["labels"] = compact_ids(both, treebank.labels)
    state["label"] = both[: treebank.n_nodes]
    state["tag"] = both[treebank.n_nodes :] if (treebank.tag >= 0).any() else None
    state["token"], state["tokens"] = compact_ids(treebank.token, treebank.tokens)
    if treebank.words is treebank.tokens and np.array_equal(
        treebank.word, treebank.token
    ):
        state["word"] = state["words"] = None
    elif treebank.words.backoff is None:
        state["word"], state["words"] = compact_ids(treebank.word, treebank.words)
    state["origins"] = treebank.origins and treebank.origins.compact()
    return state


def same_trees(one, two):
    """Return whether two treebanks hold the same trees over the same tokens."""
    return all(
        np.array_equal(getattr(one, name), getattr(two, name))
        for name in ("node_offsets", "token_offsets", "size")
    ) and all(
        _same_symbols(one, two, column, table)
        for column, table in (
            ("label", "labels"),
            ("token", "tokens"),
            ("tag", "labels"),
        )
    )


def _same_symbols(one, two, column, table):
    a, b = getattr(one, column), getattr(two, column)
    if getattr(one, table) is not getattr(two, table):
        a = translate(a, getattr(one, table).map_to(getattr(two, table)))
        if (a[getattr(one, column) >= 0] < 0).any():
            return False
    return np.array_equal(a, b)


def node_frame(treebank):
    """Return a DataFrame with one row per node, see :meth:`Treebank.to_frame`."""
    counts = np.diff(treebank.node_offsets)
    tree = np.repeat(np.arange(len(treebank)), counts)
    names = np.array([*treebank.labels.strings, None], dtype=object)
    token = np.full(treebank.n_nodes, None, dtype=object)
    leaves = treebank.size == 1
    strings = np.array([*treebank.tokens.strings, None], dtype=object)
    position = treebank.token_offsets[tree[leaves]] + treebank.start[leaves]
    token[leaves] = strings[treebank.token[position]]
    return pd.DataFrame(
        {
            "tree": tree,
            "node": np.arange(treebank.n_nodes) - treebank.node_offsets[tree],
            "parent": treebank.parent,
            "label": pd.array(names[treebank.label], dtype="string"),
            "start": treebank.start,
            "stop": treebank.stop,
            "token": pd.array(token, dtype="string"),
        }
    )


# -- checks --------------------------------------------------------------------


def check_columns(state):
    """Check that columns describe trees, which kernels rely on.

    Parameters
    ----------
    state : dict
        Arguments of ``Treebank.from_columns``.

    Raises
    ------
    ValueError
        If ids are out of range or nodes do not nest.
    """
    node_offsets = _check_offsets(state, "node", state["label"])
    if len(_check_offsets(state, "token", state["token"])) != len(node_offsets):
        raise ValueError("node and token offsets disagree on the number of trees")
    check_ids(state)
    n_trees, begin = len(node_offsets) - 1, 0
    while begin < n_trees:
        last = np.searchsorted(node_offsets, node_offsets[begin] + _PART)
        end = min(max(begin + 1, int(last)), n_trees)
        _check_trees(state, begin, end)
        begin = end
    for name, block in state["blocks"].items():
        if block.shape[0] != len(state["label"]):
            raise ValueError(f"block {name!r} does not have one row per node")
        if getattr(block, "format", None) == "csr":
            checked_csr(block.data, block.indices, block.indptr, block.shape)


def check_ids(state):
    """Check that columns have their lengths, and ids stand for a symbol.

    Parameters
    ----------
    state : dict
        Arguments of ``Treebank.from_columns``.

    Raises
    ------
    ValueError
        If they do not.
    """
    for names, shape in (
        (NODE_COLUMNS, state["label"].shape),
        (TOKEN_COLUMNS, state["token"].shape),
    ):
        for name in names:
            if state[name].shape != shape:
                raise ValueError(f"column {name!r} has a wrong length")
    for column, table, least in (
        ("label", "labels", -1),
        ("tag", "labels", -1),
        ("token", "tokens", 0),
        ("word", "words", 0),
    ):
        _check_range(state[column], least, len(state[table]), column)
    for table in ("labels", "tokens", "words"):
        if state[table].backoff is not None:
            _check_range(state[table].backoff, 0, len(state[table]), "backoff")


def _check_offsets(state, kind, column):
    bounds = state[f"{kind}_offsets"]
    if bounds.ndim != 1 or len(bounds) == 0 or bounds[0] != 0:
        raise ValueError(f"{kind} offsets do not begin with 0")
    if (np.diff(bounds) < 0).any() or bounds[-1] != len(column):
        raise ValueError(f"{kind} offsets do not cover the {kind}s")
    return bounds


def _check_range(column, least, end, name):
    for begin in range(0, len(column), _PART):
        part = column[begin : begin + _PART]
        if part.min() < least or part.max() >= end:
            raise ValueError(f"ids of {name!r} are out of range")


def _check_trees(state, first, last):
    """Check that the nodes of the trees ``first:last`` nest in preorder."""
    bounds = state["node_offsets"][first : last + 1]
    nodes = slice(bounds[0], bounds[-1])
    counts = np.diff(bounds)
    row = np.repeat(np.arange(last - first), counts)
    index = np.arange(len(row)) - (bounds[:-1] - bounds[0])[row]
    size, parent, start, stop = (
        state[name][nodes].astype(np.int64)
        for name in ("size", "parent", "start", "stop")
    )
    if (size < 1).any() or (index + size > counts[row]).any():
        raise ValueError("the size of a node is out of range")
    if (state["label"][nodes][size > 1] < 0).any():
        raise ValueError("a node with children has no label")
    below = index > 0
    if (parent[~below] != -1).any() or (size != counts[row])[~below].any():
        raise ValueError("the first node of a tree is not its root")
    if (parent[below] < 0).any() or (parent >= index)[below].any():
        raise ValueError("the parent of a node is out of range")
    child = np.flatnonzero(below)
    above = child - index[child] + parent[child]
    if (child + size[child] > above + size[above]).any():
        raise ValueError("nodes do not nest")
    # The first child comes right after its parent, and every other child where the
    # one before it ends.
    inner = np.flatnonzero(size > 1)
    covered = np.bincount(above, weights=size[child], minlength=len(size))
    if (covered[inner] != size[inner] - 1).any() or (
        parent[inner + 1] != index[inner]
    ).any():
        raise ValueError("the children of a node do not cover it")
    expected_start, expected_stop = node_spans(size, bounds - bounds[0])
    if (start != expected_start).any() or (stop != expected_stop).any():
        raise ValueError("the span of a node is not that of its leaves")
    n_tokens = np.diff(state["token_offsets"][first : last + 1])[counts > 0]
    # A root covers all leaves of its tree.
    if (stop[~below] != n_tokens).any():
        raise ValueError("a tree does not have one leaf per token")
