"""The treebank: what every estimator takes and transformers return."""

import zlib
from collections.abc import Sequence
from itertools import groupby, pairwise
from types import MappingProxyType

import numpy as np

from lpcfg_sk._parallel import cut_by_work
from lpcfg_sk._ragged import read_only
from lpcfg_sk.treebank._columns import (
    MAPPINGS,
    NODE_COLUMNS,
    OFFSETS,
    TOKEN_COLUMNS,
    check_columns,
    check_ids,
    compact_columns,
    joined_columns,
    node_frame,
    node_spans,
    ranges,
    row_key,
    same_trees,
)
from lpcfg_sk.treebank._objects import columns_of_objects, iter_rows, kind_of
from lpcfg_sk.treebank._origins import WithOrigins
from lpcfg_sk.treebank._penn import scan_brackets
from lpcfg_sk.treebank._picture import figures_html
from lpcfg_sk.treebank._storage import TreebankFiles
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._tree import Tree

#: Nodes and tokens in a chunk.
_CHUNK_SIZE = 2**22

_IMMUTABLE = (
    "a Treebank is immutable, its {!r} cannot be {}; "
    "treebank.replace(...) gives a new one"
)


class Treebank(TreebankFiles, WithOrigins, Sequence):
    """Trees and sentences as flat columns.

    A treebank is the ``X`` of every estimator of the library, with one row per tree.
    It is immutable; a slice shares the memory of the whole.

    Parameters
    ----------
    trees : iterable
        Bracketed strings (taken literally), :class:`Tree` objects, ``nltk.Tree``
        objects, or sentences without a parse: token lists, or strings that do not
        begin with ``(``, which are split at white space. A token is a str or a pair
        ``(word, tag)``.

    Attributes
    ----------
    label, size, parent, start, stop : ndarray of int32, shape (n_nodes,)
        The nodes of all trees in preorder: label id (-1 for a word that has
        siblings), number of nodes of the subtree, index of the parent within the
        tree (-1 for a root), and the span in words. A pre-terminal and its word
        are one node of size 1. The first child of node ``i`` is ``i + 1``, the
        next sibling of ``c`` is ``c + size[c]``.
    token, word, tag : ndarray of int32, shape (n_tokens,)
        Surface form, the word that models see, and the given tag (-1 for none) of
        each token. The k-th leaf of a tree is its k-th token.
    node_offsets, token_offsets : ndarray of int64, shape (n_trees + 1,)
        Tree ``t`` has the nodes ``node_offsets[t]:node_offsets[t + 1]``.
    labels, tokens, words : SymbolTable
        What the ids stand for.
    blocks : mapping of str to array or sparse matrix
        Node features and vectors, with one row per node.
    binarized : bool
        Whether :class:`TreeBinarizer` made these trees.

    See Also
    --------
    read_treebank : Read trees from files.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> treebank = Treebank(["(S (NP (NNS dogs)) (VP (VBP bark)))",
    ...                      ["cats", "sleep"]])
    >>> len(treebank), treebank.n_nodes
    (2, 5)
    >>> str(treebank[0])
    '(S (NP (NNS dogs)) (VP (VBP bark)))'
    >>> treebank[[1]].sentences()
    [['cats', 'sleep']]
    """

    def __init__(self, trees=()):
        if isinstance(trees, Treebank):
            self.__dict__.update(trees.__dict__)
            return
        parts, row = [], 0
        for kind, run in groupby(iter_rows(trees), key=kind_of):
            run = list(run)
            if kind == "bracket":
                columns = scan_brackets(run, first_item=row)
            else:
                columns = columns_of_objects(run, kind, row)
            # Trees may come out of a pickle.
            parts.append(Treebank.from_columns(**columns, check=kind == "tree"))
            row += len(run)
        self.__dict__.update(concatenate(parts).__dict__)

    @classmethod
    def from_columns(
        cls,
        *,
        label,
        size,
        parent,
        node_offsets,
        token,
        token_offsets,
        labels,
        tokens,
        start=None,
        stop=None,
        word=None,
        words=None,
        tag=None,
        blocks=None,
        block_names=None,
        binarized=False,
        origins=None,
        check=True,
    ):
        """Make a treebank from columns.

        Parameters
        ----------
        label, size, parent : array-like of int
            Node columns, see the attributes of :class:`Treebank`.
        node_offsets : array-like of int
            First node of each tree, and the number of nodes at the end.
        token : array-like of int
            Surface token ids.
        token_offsets : array-like of int
            First token of each tree, and the number of tokens at the end.
        labels, tokens : SymbolTable or iterable of str
            Symbol tables.
        start, stop : array-like of int, default=None
            Spans of the nodes; None for those that follow from the sizes.
        word, words : array-like of int and SymbolTable, default=None
            The words that models see; None for the surface tokens.
        tag : array-like of int, default=None
            Given tags as label ids.
        blocks, block_names : dict, default=None
            Arrays with one row per node, and the names of their columns.
        binarized : bool, default=False
            Whether a :class:`TreeBinarizer` made the trees.
        origins : Origins, default=None
            Where the rows were read.
        check : bool, default=True
            Whether to check that ids are in range and nodes nest, which compiled code
            relies on; False is for columns of which that is known.

        Returns
        -------
        treebank : Treebank

        Raises
        ------
        ValueError
            If the columns do not describe trees.
        """
        tokens = _table(tokens)
        if start is None:
            start, stop = node_spans(np.asarray(size, int), np.asarray(node_offsets))
        state = {
            "label": label,
            "size": size,
            "parent": parent,
            "start": start,
            "stop": stop,
            "node_offsets": node_offsets,
            "token": token,
            "word": token if word is None else word,
            "tag": np.full(len(token), -1) if tag is None else tag,
            "token_offsets": token_offsets,
            "labels": _table(labels),
            "tokens": tokens,
            "words": tokens if words is None else _table(words),
            "blocks": dict(blocks or {}),
            "block_names": dict(block_names or {}),
            "binarized": bool(binarized),
            "origins": origins,
        }
        treebank = cls._from_state(state)
        if check:
            check_columns(treebank._state())
        return treebank

    @classmethod
    def _from_state(cls, state):
        for name in NODE_COLUMNS + TOKEN_COLUMNS:
            state[name] = _frozen(state[name], np.int32)
        for name in OFFSETS:
            state[name] = _frozen(state[name], np.int64)
        for name in MAPPINGS:
            state[name] = MappingProxyType(dict(state[name]))
        state.setdefault("origins", None)
        n_nodes = int(state["node_offsets"][-1])
        for name, block in state["blocks"].items():
            if block.shape[0] != n_nodes:
                raise ValueError(
                    f"block {name!r} has {block.shape[0]} rows, the treebank has "
                    f"{n_nodes} nodes"
                )
        treebank = cls.__new__(cls)
        treebank.__dict__.update(state, _kept={})
        return treebank

    def __setattr__(self, name, value):
        raise AttributeError(_IMMUTABLE.format(name, "set"))

    def __delattr__(self, name):
        raise AttributeError(_IMMUTABLE.format(name, "deleted"))

    def replace(self, *, check=True, **changes):
        """Return a treebank with some columns, tables or blocks replaced.

        Parameters
        ----------
        check : bool, default=True
            As in :meth:`from_columns`, as far as changes make it necessary.
        **changes
            Further arguments of :meth:`from_columns`.

        Returns
        -------
        treebank : Treebank

        Examples
        --------
        >>> import numpy as np
        >>> from lpcfg_sk import Treebank
        >>> treebank = Treebank(["(S (NP a) (VP b))"])
        >>> wider = treebank.replace(blocks={"vectors": np.zeros((3, 2))})
        >>> wider.vectors.shape
        (3, 2)
        """
        treebank = Treebank.from_columns(**{**self._state(), **changes}, check=False)
        if changes.keys() <= set(MAPPINGS):
            treebank.__dict__["_kept"] = self._kept
        elif check and changes.keys().isdisjoint((*NODE_COLUMNS, *OFFSETS)):
            check_ids(treebank._state())
        elif check:
            check_columns(treebank._state())
        return treebank

    def _state(self):
        """Return the arguments of :meth:`from_columns`."""
        return {name: self.__dict__[name] for name in self.__dict__ if name != "_kept"}

    @property
    def rule_index(self):
        """The :class:`RuleIndex` of the trees, None until one has been made."""
        return self._kept.get("rule_index")

    def keep_rule_index(self, index):
        """Keep the rules of the trees, so that features and learners share them.

        Treebanks that differ in their blocks alone share it, too.

        Parameters
        ----------
        index : RuleIndex
            Index of this treebank.
        """
        self._kept["rule_index"] = index

    @property
    def n_nodes(self):
        """Number of nodes of all trees."""
        return len(self.label)

    @property
    def n_tokens(self):
        """Number of tokens of all trees and sentences."""
        return len(self.token)

    @property
    def shape(self):
        """``(n_trees,)``, so that scikit-learn indexes without making a list."""
        return (len(self),)

    @property
    def is_parsed(self):
        """Boolean array that tells which rows have a tree."""
        return np.diff(self.node_offsets) > 0

    @property
    def lengths(self):
        """Number of tokens of each row."""
        return np.diff(self.token_offsets)

    @property
    def vectors(self):
        """One vector per node, as the ``transform`` of a learner makes them."""
        try:
            return self.blocks["vectors"]
        except KeyError:
            raise AttributeError(
                "this treebank carries no vectors; a learner's transform adds them"
            ) from None

    @property
    def nbytes(self):
        """Bytes of the columns and blocks."""
        names = (*NODE_COLUMNS, *TOKEN_COLUMNS, *OFFSETS)
        arrays = [getattr(self, name) for name in names]
        for block in self.blocks.values():
            dense = isinstance(block, np.ndarray)
            arrays += (block,) if dense else (block.data, block.indices, block.indptr)
        return sum({id(array): array.nbytes for array in arrays}.values())

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes

    def __len__(self):
        return len(self.node_offsets) - 1

    def __getitem__(self, key):
        rows = row_key(key, len(self))
        if type(rows) is int:
            return self._tree(rows)
        state = self._state()
        nodes, state["node_offsets"] = ranges(self.node_offsets, rows)
        tokens, state["token_offsets"] = ranges(self.token_offsets, rows)
        for name in NODE_COLUMNS:
            state[name] = state[name][nodes]
        for name in TOKEN_COLUMNS:
            state[name] = state[name][tokens]
        state["blocks"] = {k: block[nodes] for k, block in self.blocks.items()}
        state["origins"] = self.origins and self.origins.take(rows)
        return Treebank._from_state(state)

    def _tree(self, row):
        nodes = slice(*self.node_offsets[row : row + 2])
        tokens = slice(*self.token_offsets[row : row + 2])
        names = self.labels.strings
        return Tree._from_columns(
            tuple(names[i] if i >= 0 else None for i in self.label[nodes].tolist()),
            tuple(self.size[nodes].tolist()),
            tuple(self.start[nodes].tolist()),
            tuple(self.tokens[i] for i in self.token[tokens].tolist()),
        )

    def __add__(self, other):
        if not isinstance(other, Treebank):
            return NotImplemented
        return concatenate([self, other])

    def __iter__(self):
        return (self._tree(row) for row in range(len(self)))

    @property
    def chunk_offsets(self):
        """Chunk i has the rows ``chunk_offsets[i]:chunk_offsets[i + 1]``."""
        if self.n_nodes + self.n_tokens <= _CHUNK_SIZE:
            return np.array([0, len(self)])
        work = np.diff(self.node_offsets) + self.lengths
        return np.array([0, *(end for _, end in cut_by_work(work, _CHUNK_SIZE))])

    def chunks(self):
        """Cut the rows into views of bounded size, as learners go through them.

        Returns
        -------
        treebanks : iterator of Treebank
            The treebank itself, unless it has millions of nodes.
        """
        bounds = self.chunk_offsets.tolist()
        if len(bounds) == 2:
            return iter([self])
        return (self[begin:end] for begin, end in pairwise(bounds))

    def without_blocks(self):
        """Leave out node features.

        Returns
        -------
        treebank : Treebank
            The same trees.
        """
        if not self.blocks:
            return self
        return self.replace(blocks={}, block_names={})

    def sentences(self):
        """Return a list of the sentences.

        Returns
        -------
        list of list of str
            The tokens of each row.
        """
        names, ids = self.tokens.strings, self.token.tolist()
        bounds = self.token_offsets.tolist()
        return [[names[i] for i in ids[lo:hi]] for lo, hi in pairwise(bounds)]

    def tolist(self):
        """Return a list of the trees.

        Returns
        -------
        list of Tree
            One per row.
        """
        return list(self)

    def unparsed(self):
        """Return the sentences without their trees.

        Returns
        -------
        treebank : Treebank
            The same tokens, words and tags, without nodes.
        """
        empty = np.zeros(0, dtype=np.int32)
        return self.replace(
            **dict.fromkeys(NODE_COLUMNS, empty),
            node_offsets=np.zeros(len(self) + 1, dtype=np.int64),
            blocks={},
            block_names={},
            check=False,
        )

    def to_frame(self):
        """Return a DataFrame with one row per node.

        Returns
        -------
        frame : DataFrame
            Columns tree, node, parent, label, start, stop, and token for leaves.

        Examples
        --------
        >>> from lpcfg_sk import Treebank
        >>> Treebank(["(S (NP a) (VP b))"]).to_frame()
           tree  node  parent label  start  stop token
        0     0     0      -1     S      0     2  <NA>
        1     0     1       0    NP      0     1     a
        2     0     2       0    VP      1     2     b
        """
        return node_frame(self)

    def __eq__(self, other):
        if not isinstance(other, Treebank):
            return NotImplemented
        return same_trees(self, other)

    def __hash__(self):
        return hash((len(self), self.n_tokens, zlib.crc32(self.size.tobytes())))

    def __repr__(self):
        unparsed = len(self) - int(self.is_parsed.sum())
        note = f", {unparsed} unparsed" if unparsed else ""
        blocks = f", blocks {', '.join(self.blocks)}" if self.blocks else ""
        return (
            f"<Treebank of {len(self)} trees{note}, {self.n_tokens} tokens, "
            f"{self.n_nodes} nodes{blocks}>"
        )

    def _repr_html_(self):
        drawn = np.flatnonzero(self.lengths[:50] <= 40)[:3].tolist()
        figures = {
            "trees": int(self.is_parsed.sum()),
            "sentences without a tree": int((~self.is_parsed).sum()),
            "tokens": self.n_tokens,
            "nodes": self.n_nodes,
            "labels": len(np.unique(self.label[self.label >= 0])),
            "different tokens": len(np.unique(self.token)),
        }
        below = "".join(self._tree(row)._repr_html_() for row in drawn)
        return figures_html("Treebank", {k: n for k, n in figures.items() if n}, below)

    def __reduce__(self):
        return _restore, (compact_columns(self),)


def concatenate(treebanks):
    """Join treebanks, row after row.

    Parameters
    ----------
    treebanks : iterable of Treebank
        Fitted vocabularies must be the same in all of them. Blocks that some
        treebank lacks are left out.

    Returns
    -------
    treebank : Treebank

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import concatenate
    >>> len(concatenate([Treebank(["(S (A a) (B b))"]), Treebank([["a", "b"]])]))
    2
    """
    treebanks = list(treebanks)
    if len(treebanks) == 1:
        return treebanks[0]
    return Treebank.from_columns(**joined_columns(treebanks), check=False)


def _restore(state):
    return Treebank.from_columns(**state)


def _frozen(array, dtype):
    array = np.ascontiguousarray(array, dtype=dtype)
    # Most columns of a new treebank are those of another one.
    return read_only(array) if array.flags.writeable else array


def _table(strings):
    return strings if isinstance(strings, SymbolTable) else SymbolTable(strings)
