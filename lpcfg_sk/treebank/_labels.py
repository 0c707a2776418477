r"""Labels of binarised trees: how they are encoded and decoded.

An original label is escaped and then combined:

====================  ======================================================
``S+VP``              a chain of unary nodes, from the top down
``X~``                a chain whose lowest label is in its unusual role: a
                      pre-terminal that usually is a phrase, or vice versa
``NP^S^ROOT``         the labels above, nearest first (vertical memory)
``@NP``, ``@NP|DT``   an intermediate node of NP, with the siblings that were
                      split off before it (horizontal memory)
``\bare``             a word that has siblings and no pre-terminal of its own
====================  ======================================================

``\ + @ | ^ ~`` inside an original label are written with a backslash before them,
and an empty label as ``\0``.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import offsets, read_only
from lpcfg_sk.treebank._symbols import SymbolTable

#: Pre-terminal of a word that has none.
BARE = "\\bare"

_ESCAPES = str.maketrans({c: "\\" + c for c in "\\+@|^~"})
_ESCAPED = re.compile(r"\\([\\+@|^~])")
# An escaped character, or anything that is neither an escape nor special.
_TEXT = r"(?:\\.|[^\\{}]|\\$)*"
_CHAIN = re.compile(_TEXT.format("|^"), re.DOTALL)
_PART = re.compile(_TEXT.format("+"), re.DOTALL)
_MEMORY = re.compile(_TEXT.format("|"), re.DOTALL)


class LabelParts(NamedTuple):
    """Meaning of a label of a binarised tree.

    Attributes
    ----------
    intermediate : bool
        Whether binarisation made the node.
    chain : tuple of str
        The original labels from the top down. For an intermediate node it is the
        label of the node that was split; for a bare word it is empty.

    Examples
    --------
    >>> from lpcfg_sk.treebank import decode_label
    >>> decode_label("S+VP").chain
    ('S', 'VP')
    """

    intermediate: bool
    chain: tuple


class LabelTable(NamedTuple):
    """Meaning of all labels of a table.

    Attributes
    ----------
    intermediate : ndarray of bool, shape (n_labels,)
        Which labels belong to intermediate nodes.
    chain_offsets : ndarray of int64, shape (n_labels + 1,)
        Label ``a`` stands for the originals
        ``chain[chain_offsets[a]:chain_offsets[a + 1]]``, from the top down. A bare
        word has no originals.
    chain : ndarray of int32
        Ids of original labels.
    originals : tuple of str
        The original labels, in order of occurrence.

    Examples
    --------
    >>> from lpcfg_sk.treebank import decode_table
    >>> decode_table(["NP+NN", "@NP"]).originals
    ('NP', 'NN')
    """

    intermediate: np.ndarray
    chain_offsets: np.ndarray
    chain: np.ndarray
    originals: tuple


def escape_label(label):
    r"""Escape an original label, so that it can be combined with others.

    Parameters
    ----------
    label : str
        The label.

    Returns
    -------
    escaped : str

    Examples
    --------
    >>> from lpcfg_sk.treebank._labels import escape_label
    >>> escape_label("NP-SBJ"), escape_label("ADVP|PRT")
    ('NP-SBJ', 'ADVP\\|PRT')
    """
    return label.translate(_ESCAPES) if label else "\\0"


def _unescape(text):
    return "" if text == "\\0" else _ESCAPED.sub(r"\1", text)


def _is_marked(text):
    """Return whether a text ends in a mark that is not escaped."""
    unmarked = text[:-1]
    escapes = len(unmarked) - len(unmarked.rstrip("\\"))
    return text.endswith("~") and escapes % 2 == 0


def _split(pattern, text):
    """Return the parts of a text between the separators that a pattern stops at."""
    parts, position = [], 0
    while True:
        end = pattern.match(text, position).end()
        parts.append(text[position:end])
        if end == len(text):
            return parts
        position = end + 1


def encode_label(chain, *, marked=False, ancestors=(), intermediate=False, siblings=()):
    """Combine original labels into the label of a node of a binarised tree.

    Parameters
    ----------
    chain : sequence of str
        Original labels from the top down.
    marked : bool, default=False
        Whether the lowest label is in its unusual role.
    ancestors : sequence of str, default=()
        Labels above the node, nearest first.
    intermediate : bool, default=False
        Whether binarisation made the node.
    siblings : sequence of str or None, default=()
        Labels of the siblings that were split off before the node; None for a bare
        word.

    Returns
    -------
    label : str

    Examples
    --------
    >>> from lpcfg_sk.treebank._labels import encode_label
    >>> encode_label(["S", "VP"], ancestors=["VP"])
    'S+VP^VP'
    >>> encode_label(["NP"], intermediate=True, siblings=["DT", "JJ"])
    '@NP|DT|JJ'
    """
    pieces = ["@" if intermediate else "", "+".join(map(escape_label, chain))]
    if marked:
        pieces.append("~")
    for label in ancestors:
        pieces += ("^", escape_label(label))
    for label in siblings:
        pieces += ("|", BARE if label is None else escape_label(label))
    return "".join(pieces)


def memory_length(label):
    """Return how many siblings a label remembers.

    Parameters
    ----------
    label : str
        Label of a node of a binarised tree.

    Returns
    -------
    n_siblings : int

    Examples
    --------
    >>> from lpcfg_sk.treebank._labels import memory_length
    >>> memory_length("@NP|DT|JJ"), memory_length("@NP"), memory_length("NP")
    (2, 0, 0)
    """
    return len(_split(_MEMORY, label)) - 1 if label.startswith("@") else 0


def forget_oldest(label):
    r"""Return a label that remembers one sibling fewer.

    Parameters
    ----------
    label : str
        Label of an intermediate node with horizontal memory.

    Returns
    -------
    label : str

    Examples
    --------
    >>> from lpcfg_sk.treebank._labels import forget_oldest
    >>> forget_oldest("@NP|DT|JJ"), forget_oldest(r"@VP^S|ADVP\|PRT")
    ('@NP|JJ', '@VP^S')
    """
    owner, _, *siblings = _split(_MEMORY, label)
    return "|".join((owner, *siblings))


@lru_cache(maxsize=2**14)
def decode_label(label):
    """Decode the label of a node of a binarised tree.

    Every string can be decoded. A string that :class:`TreeBinarizer` would not write
    is taken as literally as possible.

    Parameters
    ----------
    label : str
        The label.

    Returns
    -------
    parts : LabelParts

    Examples
    --------
    >>> from lpcfg_sk.treebank import decode_label
    >>> decode_label("S+VP")
    LabelParts(intermediate=False, chain=('S', 'VP'))
    >>> decode_label("@NP|DT")
    LabelParts(intermediate=True, chain=('NP',))
    """
    if label == BARE:
        return LabelParts(False, ())
    intermediate = label.startswith("@")
    text = _CHAIN.match(label, 1 if intermediate else 0).group()
    if _is_marked(text):
        text = text[:-1]
    return LabelParts(intermediate, tuple(map(_unescape, _split(_PART, text))))


def decode_table(labels):
    """Decode all labels of a table.

    Parameters
    ----------
    labels : SymbolTable or sequence of str
        Labels of binarised trees.

    Returns
    -------
    table : LabelTable

    Examples
    --------
    >>> from lpcfg_sk.treebank import decode_table
    >>> table = decode_table(["S", "NP+NN", "@NP"])
    >>> table.intermediate, table.originals
    (array([False, False,  True]), ('S', 'NP', 'NN'))
    >>> table.chain_offsets, table.chain
    (array([0, 1, 3, 4]), array([0, 1, 2, 1], dtype=int32))
    """
    if not isinstance(labels, SymbolTable):
        labels = SymbolTable(labels)
    # Parsers restore one tree after the other with the same table of labels.
    if labels._decoded is None:
        parts = [decode_label(label) for label in labels]
        ids = {}
        chain = [ids.setdefault(s, len(ids)) for part in parts for s in part.chain]
        labels._decoded = LabelTable(
            read_only(np.array([p.intermediate for p in parts], dtype=np.bool_)),
            read_only(offsets([len(part.chain) for part in parts])),
            read_only(np.array(chain, dtype=np.int32)),
            tuple(ids),
        )
    return labels._decoded
