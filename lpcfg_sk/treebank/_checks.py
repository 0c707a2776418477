"""Whether columns describe trees: what kernels rely on without looking."""

import numpy as np

__all__ = ["check_columns"]

#: Nodes to look at together.
_PART = 2**20


def check_columns(state):
    """Make sure that columns describe trees.

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
    token_offsets = _check_offsets(state, "token", state["token"])
    if len(node_offsets) != len(token_offsets):
        raise ValueError("node and token offsets are of different numbers of trees")
    for names, shape in (
        (("label", "size", "parent", "start", "stop"), state["label"].shape),
        (("token", "word", "tag"), state["token"].shape),
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
    n_trees, begin = len(node_offsets) - 1, 0
    while begin < n_trees:
        last = np.searchsorted(node_offsets, node_offsets[begin] + _PART)
        end = min(max(begin + 1, int(last)), n_trees)
        _check_trees(state, begin, end)
        begin = end
    for name, block in state["blocks"].items():
        if block.shape[0] != len(state["label"]):
            raise ValueError(f"block {name!r} has not one row a node")
        if not isinstance(block, np.ndarray):
            block.check_format(full_check=True)


def _check_offsets(state, kind, column):
    offsets = state[f"{kind}_offsets"]
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0:
        raise ValueError(f"{kind} offsets do not begin with 0")
    if (np.diff(offsets) < 0).any() or offsets[-1] != len(column):
        raise ValueError(f"{kind} offsets do not cover the {kind}s")
    return offsets


def _check_range(column, least, end, name):
    for begin in range(0, len(column), _PART):
        part = column[begin : begin + _PART]
        if part.min() < least or part.max() >= end:
            raise ValueError(f"ids of {name!r} are out of range")


def _check_trees(state, first, last):
    """Check the nodes of the trees `first` to `last`, which nest in preorder."""
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
    below = index > 0
    if (parent[~below] != -1).any() or (size != counts[row])[~below].any():
        raise ValueError("the first node of a tree is not its root")
    if (parent[below] < 0).any() or (parent >= index)[below].any():
        raise ValueError("the parent of a node is out of range")
    at = np.flatnonzero(below)
    above = at - index[at] + parent[at]
    if (at + size[at] > above + size[above]).any():
        raise ValueError("nodes do not nest")
    # Children follow each other: the first comes after its parent, and each other
    # where the one before it ends.
    inner = np.flatnonzero(size > 1)
    covered = np.bincount(above, weights=size[at], minlength=len(size))
    if (covered[inner] != size[inner] - 1).any() or (
        parent[inner + 1] != index[inner]
    ).any():
        raise ValueError("the children of a node do not cover it")
    leaves = np.concatenate([[0], np.cumsum(size == 1)])
    before = leaves[bounds[:-1] - bounds[0]][row]
    here = np.arange(len(row))
    if (start != leaves[here] - before).any() or (
        stop != leaves[here + size] - before
    ).any():
        raise ValueError("the span of a node is not that of its leaves")
    n_tokens = np.diff(state["token_offsets"][first : last + 1])
    n_leaves = leaves[bounds[1:] - bounds[0]] - leaves[bounds[:-1] - bounds[0]]
    if (n_leaves[counts > 0] != n_tokens[counts > 0]).any():
        raise ValueError("a tree has not one leaf for each token")
