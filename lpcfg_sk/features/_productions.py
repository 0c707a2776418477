from functools import reduce
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._features import first_other_head
from lpcfg_sk._ragged import find_keys
from lpcfg_sk.treebank import SymbolTable
from lpcfg_sk.treebank._heads import head_token
from lpcfg_sk.treebank._sharded import map_shards


class NodeColumns(NamedTuple):
    """What templates read of the nodes of a treebank.

    All arrays have one entry a node and hold the ids of the fitted
    :class:`Productions`; -1 stands for "none" and for "unknown".

    Attributes
    ----------
    label, left, right, up : ndarray of int64
        Label, and the positions of the children and of the parent.
    is_right : ndarray of bool
        Whether a node is the right child of its parent.
    n_words, before, after : ndarray of int64
        Words below a node, to its left and to its right.
    production : ndarray of int64
        Id of the rule a → b c or a → x at the node.
    head, other_head : ndarray of int64
        Tag of the head word, and of the first head on the path to the root that is
        another word.
    """

    label: np.ndarray
    left: np.ndarray
    right: np.ndarray
    up: np.ndarray
    is_right: np.ndarray
    n_words: np.ndarray
    before: np.ndarray
    after: np.ndarray
    production: np.ndarray
    head: np.ndarray
    other_head: np.ndarray


class Productions:
    """The symbols and rules of a treebank, numbered.

    Rules a → b c come first (``0 .. n_rules - 1``), rules a → x after them.

    Parameters
    ----------
    treebank : Treebank
        Binary trees.
    """

    def __init__(self, treebank):
        self.labels = SymbolTable(treebank.labels.strings)
        self.words = SymbolTable(treebank.words.strings)
        self.rule_keys, self.lexical_keys = self._used(treebank)

    @classmethod
    def of_shards(cls, X, n_jobs=None):
        """Number the symbols and rules of all shards.

        Parameters
        ----------
        X : ShardedTreebank
            Binary trees.
        n_jobs : int, default=None
            Number of shards to look at together.

        Returns
        -------
        productions : Productions
        """
        labels, words = {}, {}
        for part in map_shards(_symbols, X, n_jobs=n_jobs):
            labels.update(dict.fromkeys(part[0]))
            words.update(dict.fromkeys(part[1]))
        made = cls.__new__(cls)
        made.labels, made.words = SymbolTable(labels), SymbolTable(words)
        parts = map_shards(made._used, X, n_jobs=n_jobs)
        made.rule_keys, made.lexical_keys = reduce(
            lambda one, two: tuple(map(np.union1d, one, two)), parts
        )
        return made

    def _used(self, treebank):
        """Keys of the rules that occur."""
        rules, entries = self._keys(treebank, _links(treebank))
        return np.unique(rules[rules >= 0]), np.unique(entries[entries >= 0])

    @property
    def n_rules(self):
        """Number of rules a → b c."""
        return len(self.rule_keys)

    def __len__(self):
        return len(self.rule_keys) + len(self.lexical_keys)

    def columns(self, treebank):
        """Columns of a treebank in the ids of this numbering.

        Parameters
        ----------
        treebank : Treebank
            Binary trees.

        Returns
        -------
        columns : NodeColumns
        """
        up, left, right = links = _links(treebank)
        rules, entries = self._keys(treebank, links)
        production = find_keys(self.rule_keys, rules)
        entry = find_keys(self.lexical_keys, entries)
        found = entry >= 0
        production[found] = entry[found] + self.n_rules
        label = self._label_ids(treebank)
        is_right = np.zeros(treebank.n_nodes, dtype=bool)
        is_right[right[right >= 0]] = True
        n_nodes = np.diff(treebank.node_offsets)
        first_token = np.repeat(treebank.token_offsets[:-1], n_nodes)
        length = np.repeat(np.diff(treebank.token_offsets), n_nodes)
        head = head_token(treebank) + first_token
        tag = np.full(treebank.n_tokens + 1, -1, dtype=np.int64)
        leaf = left < 0
        tag[first_token[leaf] + treebank.start[leaf]] = label[leaf]
        return NodeColumns(
            label=label,
            left=left,
            right=right,
            up=up,
            is_right=is_right,
            n_words=(treebank.stop - treebank.start).astype(np.int64),
            before=treebank.start.astype(np.int64),
            after=length - treebank.stop,
            production=production,
            head=tag[head],
            other_head=tag[first_other_head(up, head)],
        )

    def name(self, production):
        """Return a rule as text, such as ``NP->DT NN``."""
        a, b, c = self.symbols(production)
        return f"{a}->{b}" if c is None else f"{a}->{b} {c}"

    def symbols(self, production):
        """Return the symbols (a, b, c) of a rule, or (a, x, None)."""
        if production < self.n_rules:
            rest, c = divmod(int(self.rule_keys[production]), len(self.labels))
            a, b = divmod(rest, len(self.labels))
            return self.labels[a], self.labels[b], self.labels[c]
        key = int(self.lexical_keys[production - self.n_rules])
        a, x = divmod(key, len(self.words))
        return self.labels[a], self.words[x], None

    def _label_ids(self, treebank):
        mapping = np.append(treebank.labels.map_to(self.labels), -1)
        return mapping[treebank.label].astype(np.int64)

    def _keys(self, treebank, links):
        """One integer for the rule at each node, -1 where a symbol is unknown."""
        _, left, right = links
        label = self._label_ids(treebank)
        rules = np.full(treebank.n_nodes, -1, dtype=np.int64)
        inner = np.flatnonzero(left >= 0)
        a, b, c = label[inner], label[left[inner]], label[right[inner]]
        known = (a >= 0) & (b >= 0) & (c >= 0)
        n = len(self.labels)
        rules[inner[known]] = ((a * n + b) * n + c)[known]
        entries = np.full(treebank.n_nodes, -1, dtype=np.int64)
        leaf = np.flatnonzero(left < 0)
        mapping = np.append(treebank.words.map_to(self.words), -1).astype(np.int64)
        # The k-th leaf of a tree is its k-th token: leaves in preorder are tokens
        # in order, except those of sentences without a tree.
        parsed = np.repeat(treebank.is_parsed, treebank.lengths)
        x = mapping[treebank.word[parsed]]
        a = label[leaf]
        known = (a >= 0) & (x >= 0)
        entries[leaf[known]] = (a * len(self.words) + x)[known]
        return rules, entries


def _symbols(treebank):
    return treebank.labels.strings, treebank.words.strings


def _links(treebank):
    """Positions of the parent and of the two children of each node."""
    offset = np.repeat(treebank.node_offsets[:-1], np.diff(treebank.node_offsets))
    up = np.where(treebank.parent >= 0, treebank.parent + offset, -1)
    inner = np.flatnonzero(treebank.size > 1)
    left = np.full(treebank.n_nodes, -1, dtype=np.int64)
    right = left.copy()
    left[inner] = inner + 1
    right[inner] = inner + 1 + treebank.size[inner + 1]
    return up.astype(np.int64), left, right
