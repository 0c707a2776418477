"""Columns of a treebank made from strings and Python objects."""

import numpy as np

from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._tree import Tree

NODE_COLUMNS = ("label", "size", "parent", "start", "stop")
TOKEN_COLUMNS = ("token", "word", "tag")


def empty_columns():
    """State of a treebank without rows."""
    empty = np.zeros(0, dtype=np.int32)
    table = SymbolTable(())
    return {
        **dict.fromkeys(NODE_COLUMNS + TOKEN_COLUMNS, empty),
        "node_offsets": [0],
        "token_offsets": [0],
        "labels": table,
        "tokens": table,
        "words": table,
        "blocks": {},
        "block_names": {},
        "binarized": False,
    }


def kind_of(item):
    """Say how a row of a treebank is given."""
    if isinstance(item, str):
        return "bracket"
    if isinstance(item, Tree):
        return "tree"
    if callable(getattr(item, "label", None)) and hasattr(item, "__iter__"):
        return "nltk"
    if isinstance(item, list | tuple | np.ndarray):
        return "sentence"
    return "unknown"


def columns_of_strings(texts, row):
    """Columns of bracketed strings, the first of which is item `row`."""
    from lpcfg_sk.treebank._brackets import scan_brackets

    state = empty_columns()
    state.update(scan_brackets(texts, first_item=row))
    state["labels"] = SymbolTable(state["labels"])
    state["tokens"] = state["words"] = SymbolTable(state["tokens"])
    state["word"] = state["token"]
    state["tag"] = np.full(len(state["token"]), -1, dtype=np.int32)
    return state


def columns_of_objects(items, kind, row):
    """Columns of trees, nltk trees or token lists, the first being item `row`."""
    labels, tokens = {}, {}
    columns = {name: [] for name in (*NODE_COLUMNS, "token", "tag")}
    node_offsets, token_offsets = [0], [0]
    for i, item in enumerate(items):
        if kind == "tree":
            nodes, words, tags = _nodes_of_tree(item)
        elif kind == "nltk":
            nodes, words, tags = _nodes_of_nltk(item, row + i)
        elif kind == "sentence":
            nodes, words, tags = _nodes_of_sentence(item, row + i)
        else:
            raise TypeError(
                f"item {row + i} is a {type(item).__name__}; a treebank is made of "
                "bracketed strings, Trees, nltk Trees or token lists"
            )
        _append_nodes(columns, nodes, labels)
        columns["token"].extend(tokens.setdefault(w, len(tokens)) for w in words)
        columns["tag"].extend(
            -1 if t is None else labels.setdefault(t, len(labels)) for t in tags
        )
        node_offsets.append(len(columns["label"]))
        token_offsets.append(len(columns["token"]))
    tables = SymbolTable(tokens)
    return {
        **empty_columns(),
        **columns,
        "word": columns["token"],
        "node_offsets": node_offsets,
        "token_offsets": token_offsets,
        "labels": SymbolTable(labels),
        "tokens": tables,
        "words": tables,
    }


def _append_nodes(columns, nodes, labels):
    names, sizes = nodes
    parents, ends, stops, leaves = [], [], [0] * len(names), 0
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        while ends and ends[-1][1] == i:
            stops[ends.pop()[0]] = leaves
        parents.append(ends[-1][0] if ends else -1)
        columns["label"].append(
            -1 if name is None else labels.setdefault(name, len(labels))
        )
        columns["start"].append(leaves)
        if size == 1:
            leaves += 1
            stops[i] = leaves
        else:
            ends.append((i, i + size))
    for i, _ in ends:
        stops[i] = leaves
    columns["size"].extend(sizes)
    columns["parent"].extend(parents)
    columns["stop"].extend(stops)


def _nodes_of_tree(tree):
    labels, sizes, words = tree._content()
    return (labels, sizes), words, [None] * len(words)


def _nodes_of_sentence(tokens, row):
    words, tags = [], []
    for token in tokens:
        word, tag = (
            token if isinstance(token, tuple) and len(token) == 2 else (token, None)
        )
        if not isinstance(word, str) or not (tag is None or isinstance(tag, str)):
            raise TypeError(
                f"item {row}: a sentence is a list of str, or of (word, tag) pairs of "
                f"str, got {token!r} in it"
            )
        words.append(word)
        tags.append(tag)
    return ((), ()), words, tags


def _nodes_of_nltk(tree, row):
    labels, sizes, words = [], [], []
    stack = [(iter((tree,)), -1)]
    while stack:
        children, parent = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            if parent >= 0:
                sizes[parent] = len(labels) - parent
            continue
        if isinstance(child, str):
            labels.append(None)
            sizes.append(1)
            words.append(child)
            continue
        if not callable(getattr(child, "label", None)):
            raise TypeError(
                f"item {row}: leaves of an nltk Tree are str, got {child!r}"
            )
        below = list(child)
        if not below:
            raise ValueError(
                f"item {row}: node {child.label()!r} has no children; every node "
                "covers a word"
            )
        labels.append(str(child.label()))
        sizes.append(1)
        if len(below) == 1 and isinstance(below[0], str):
            words.append(below[0])
        else:
            stack.append((iter(below), len(labels) - 1))
    return (labels, sizes), words, [None] * len(words)
