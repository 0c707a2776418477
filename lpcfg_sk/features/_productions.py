"""Symbols and rules of the trees that features are learnt from, numbered."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._columns import first_other_head
from lpcfg_sk._ragged import find_keys
from lpcfg_sk.treebank import (
    RuleIndex,
    RuleKeys,
    RuleTable,
    SymbolTable,
    decode_table,
    head_token,
    lexical_keys,
    over_chunks,
)


class NodeColumns(NamedTuple):
    """Columns of the nodes of a treebank, as templates read them.

    All arrays have one entry per node and hold the ids of the fitted
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
    head, outside_head : ndarray of int64
        Tag of the head word, and of the next head word that the outside tree shows.
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
    outside_head: np.ndarray


class Productions:
    """The symbols and rules of trees, numbered.

    Rules a → b c come first (``0 .. n_rules - 1``), rules a → x after them. Symbols
    have the ids of the treebank, rules are sorted by the ids of their symbols.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Binary trees; sentences without a tree are left out.
    """

    def __init__(self, X):
        labels, words, tables = {}, {}, []
        for chunk_labels, chunk_words, table in over_chunks(_symbols_and_rules, X):
            labels.update(dict.fromkeys(chunk_labels))
            words.update(dict.fromkeys(chunk_words))
            if table is not None:
                tables.append(table)
        self.labels, self.words = SymbolTable(labels), SymbolTable(words)
        keys = [self._keys(table)[1:] for table in tables]
        self.rule_keys, self.lexical_keys = (
            np.unique(np.concatenate([part[kind] for part in keys] or [_NO_KEYS]))
            for kind in range(2)
        )

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
            Binary trees, at least one; sentences without a tree have no nodes.

        Returns
        -------
        columns : NodeColumns
        """
        treebank = _parsed_rows(treebank)
        index = RuleIndex.from_treebank(treebank)
        ids, rules, entries = self._keys(index)
        rule = find_keys(self.rule_keys, rules)
        entry = find_keys(self.lexical_keys, entries)
        entry[entry >= 0] += self.n_rules
        inner = np.flatnonzero(index.rule >= 0)
        leaf = np.flatnonzero(index.entry >= 0)
        production = np.empty(index.n_nodes, dtype=np.int64)
        production[inner] = rule[index.rule[inner]]
        production[leaf] = entry[index.entry[leaf]]
        label = ids.astype(np.int64)[index.label]
        n_nodes = np.diff(index.node_offsets)
        up = np.where(
            index.parent >= 0,
            index.parent + np.repeat(index.node_offsets[:-1], n_nodes),
            -1,
        )
        left, right = np.full((2, index.n_nodes), -1, dtype=np.int64)
        left[inner] = inner + 1
        right[inner] = inner + 1 + index.size[inner + 1]
        is_right = np.zeros(index.n_nodes, dtype=bool)
        is_right[right[inner]] = True
        first_token = np.repeat(treebank.token_offsets[:-1], n_nodes)
        length = np.repeat(np.diff(treebank.token_offsets), n_nodes)
        head = head_token(treebank) + first_token
        tag = np.full(treebank.n_tokens + 1, -1, dtype=np.int64)
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
            outside_head=tag[_outside_head(treebank, up, left, right, head)],
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

    def _keys(self, table):
        """Return ids of a table's labels and keys of its rules, -1 if unknown."""
        keys = RuleKeys(table, self.labels, self.words)
        # Rules are sorted by label first, unlike the entries of the table.
        label, word = keys.label[table.lex_label], keys.word[table.lex_word]
        return keys.label, keys.rules, lexical_keys(label, word, len(self.words))


_NO_KEYS = np.zeros(0, dtype=np.int64)


def _outside_head(treebank, up, left, right, head):
    """Next head word on the path to the root, found in the outside tree alone.

    Whether a constituent is the head of its parent depends on its label, which the
    outside tree shows. An intermediate node stands for several children of its parent,
    which only its inside tree shows: its next head is therefore that of its sibling.

    Parameters
    ----------
    treebank : Treebank
        Binary trees.
    up, left, right : ndarray of int64, shape (n_nodes,)
        Positions of the parent and of the children, -1 where there are none.
    head : ndarray of int64, shape (n_nodes,)
        Head token of each node.

    Returns
    -------
    token : ndarray of int64, shape (n_nodes,)
        Token, -1 where there is none.
    """
    other = first_other_head(up, head)
    if not treebank.binarized:
        return other
    intermediate = decode_table(treebank.labels.strings).intermediate
    # A label -1, of a bare word, reads the last entry.
    foot = np.flatnonzero(np.append(intermediate, False)[treebank.label] & (up >= 0))
    parent = up[foot]
    other[foot] = head[np.where(left[parent] == foot, right[parent], left[parent])]
    return other


def _parsed_rows(treebank):
    if treebank.is_parsed.all():
        return treebank
    return treebank.without_blocks()[treebank.is_parsed]


def _symbols_and_rules(treebank):
    """Return labels, words and the rules of a chunk, None without trees."""
    table = None
    if treebank.n_nodes:
        index = RuleIndex.from_treebank(_parsed_rows(treebank))
        table = RuleTable(**index.table())
    return treebank.labels.strings, treebank.words.strings, table
