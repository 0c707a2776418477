"""Rows of a treebank from trees, nltk trees, token lists and sentences."""

from collections.abc import Mapping

import numpy as np

from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.treebank._tree import Tree


def kind_of(item):
    """Return the form in which a row of a treebank is given."""
    if isinstance(item, str):
        # A file that was not read as utf-8-sig may begin with a byte order mark.
        text = item.removeprefix("\ufeff").lstrip()
        return "bracket" if text.startswith("(") else "text"
    if isinstance(item, Tree):
        return "tree"
    if callable(getattr(item, "label", None)) and hasattr(item, "__iter__"):
        return "nltk"
    if isinstance(item, list | tuple | np.ndarray):
        return "sentence"
    return "unknown"


def iter_rows(trees):
    """Iterate over the user's trees, or raise TypeError if they are not a collection.

    Parameters
    ----------
    trees : object
        What was passed to :class:`Treebank`.

    Returns
    -------
    iterator
    """
    if isinstance(trees, bytes):
        raise TypeError("Treebank takes an iterable of trees, got bytes; decode them")
    if isinstance(trees, str):
        raise TypeError(
            "Treebank takes an iterable of trees, got one string; wrap it in a "
            "list, [text], or use read_treebank for a file"
        )
    if kind_of(trees) in ("tree", "nltk"):
        raise TypeError(
            "Treebank takes an iterable of trees, got one tree; wrap it in a list, "
            "[tree]"
        )
    if hasattr(trees, "get_params"):
        raise TypeError(
            "Treebank takes an iterable of trees, got an estimator; are the "
            f"arguments in the right order? {trees!r}"
        )
    if isinstance(trees, Mapping):
        raise TypeError(
            f"Treebank takes an iterable of trees, got a {type(trees).__name__}; "
            "pass its values in a list"
        )
    if hasattr(trees, "columns") and hasattr(trees, "to_numpy"):
        raise TypeError(
            "Treebank takes an iterable of trees, got a "
            f"{type(trees).__name__}, whose items are names of columns; pass the "
            "column that holds the trees"
        )
    try:
        return iter(trees)
    except TypeError:
        raise TypeError(
            "Treebank takes an iterable of bracketed strings, Trees, nltk Trees "
            f"or token lists, got {type(trees).__name__}"
        ) from None


def columns_of_objects(items, kind, row):
    """Return the columns of trees, nltk trees or token lists.

    Parameters
    ----------
    items : list
        Trees or sentences.
    kind : {"tree", "nltk", "sentence", "text", "unknown"}
        Form of all items, see :func:`kind_of`.
    row : int
        Number of the first item, for messages.

    Returns
    -------
    state : dict
        Arguments of :meth:`Treebank.from_columns`.
    """
    labels, tokens = {}, {}
    columns = {name: [] for name in ("label", "size", "parent", "token", "tag")}
    node_offsets, token_offsets, texts = [0], [0], []
    for i, item in enumerate(items):
        tags = None
        if kind == "tree":
            names, sizes, words = item._content()
        elif kind == "nltk":
            names, sizes, words = _nodes_of_nltk(item, row + i)
        elif kind == "sentence":
            names, sizes, (words, tags) = (), (), _words_and_tags(item, row + i)
            texts += (w for w in words if len(words) == 1 and len(w.split()) > 1)
        elif kind == "text":
            names, sizes, words = (), (), item.split()
        else:
            what = type(item).__name__
            if isinstance(item, float):
                what += f" ({item})"
            raise TypeError(
                f"item {row + i} is a {what}; a treebank is made of "
                "bracketed strings, Trees, nltk Trees, token lists or sentences"
            )
        columns["size"].extend(sizes)
        columns["parent"].extend(_parents(sizes))
        columns["token"].extend(tokens.setdefault(w, len(tokens)) for w in words)
        for name, column in (("label", names), ("tag", tags or [None] * len(words))):
            columns[name].extend(
                -1 if s is None else labels.setdefault(s, len(labels)) for s in column
            )
        node_offsets.append(len(columns["label"]))
        token_offsets.append(len(columns["token"]))
    if kind == "text":
        _warn_of_words(token_offsets)
    elif kind == "sentence":
        _warn_of_texts(texts)
    return {
        **columns,
        "node_offsets": node_offsets,
        "token_offsets": token_offsets,
        "labels": labels,
        "tokens": tokens,
    }


def _warn_of_words(token_offsets):
    """Warn if strings look like the words of one sentence."""
    n_words = np.diff(token_offsets)
    if len(n_words) > 1 and (n_words == 1).all():
        warn_caller(
            f"each of these {len(n_words)} strings is taken as a sentence of one word; "
            "one sentence is a list within the list, as in [['the', 'dog']], or "
            "['the dog']",
            TreebankWarning,
        )


def _warn_of_texts(texts):
    """Warn of lists of one token that look like lists of one sentence."""
    if texts:
        warn_caller(
            f"{len(texts)} sentences have one token, with white space in it: "
            f"{texts[0]!r}; a sentence is one string, ['the dog'], or a list of "
            "tokens, [['the', 'dog']]",
            TreebankWarning,
        )


def _parents(sizes):
    parents, ends = [], []
    for i, size in enumerate(sizes):
        while ends and ends[-1][1] == i:
            ends.pop()
        parents.append(ends[-1][0] if ends else -1)
        if size > 1:
            ends.append((i, i + size))
    return parents


def _words_and_tags(tokens, row):
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
    return words, tags


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
    return labels, sizes, words
