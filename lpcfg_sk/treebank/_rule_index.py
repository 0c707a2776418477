"""Where the rules of binary trees occur: one rule per node."""

from dataclasses import dataclass, fields, replace
from functools import reduce

import numpy as np

from lpcfg_sk._ragged import find_keys, offsets, ragged_indices
from lpcfg_sk.treebank._rule_table import (
    RuleCounts,
    RuleKeys,
    RuleTable,
    lexical_keys,
    rule_keys,
    table_of_keys,
)
from lpcfg_sk.treebank._sharded import over_chunks
from lpcfg_sk.treebank._validation import check_treebank


@dataclass(frozen=True, eq=False)
class RuleIndex(RuleTable):
    """Rules of binary trees and their places.

    All learners start from it. Its nonterminals, words, binary rules a → b c, lexical
    rules a → x and roots are those that occur in the trees.

    Attributes
    ----------
    nonterminals, words, backoff, rule_parent, rule_left, rule_right, word_offset, \
lex_word, lex_label, root_label
        The rules, as in :class:`RuleTable`.
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        Tree t has the nodes ``node_offsets[t]:node_offsets[t + 1]``.
    label, size, parent : ndarray of int32, shape (n_nodes,)
        Nonterminal, number of nodes of the subtree, and parent within the tree, of
        each node in preorder.
    word : ndarray of int32, shape (n_tokens,)
        Word of each token.
    rule : ndarray of int32, shape (n_nodes,)
        Binary rule at each node, -1 at leaves.
    entry : ndarray of int32, shape (n_nodes,)
        Lexical rule at each leaf, -1 at other nodes.
    top : ndarray of int32, shape (n_trees,)
        Root entry of each tree.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import RuleIndex
    >>> index = RuleIndex.from_treebank(Treebank(["(S (D the) (N dog))"]))
    >>> index.nonterminals, index.words
    (('D', 'N', 'S'), ('dog', 'the'))
    >>> index.rule.tolist(), index.entry.tolist()
    ([0, -1, -1], [-1, 1, 0])
    """

    node_offsets: np.ndarray
    label: np.ndarray
    size: np.ndarray
    parent: np.ndarray
    word: np.ndarray
    rule: np.ndarray
    entry: np.ndarray
    top: np.ndarray

    @classmethod
    def from_treebank(cls, treebank, *, table=None, estimator="RuleIndex"):
        """Index a treebank of binary trees.

        The treebank keeps its index, so that features and learners share it.

        Parameters
        ----------
        treebank : Treebank
            Every row has a tree, every node two children or a word
            (see :class:`TreeBinarizer`).
        table : RuleTable, default=None
            Rules whose ids to use, which include all rules of the trees. By default
            the rules of the treebank itself.
        estimator : estimator or str, default="RuleIndex"
            Name to use in error messages.

        Returns
        -------
        RuleIndex
        """
        if treebank.rule_index is None:
            treebank = check_treebank(
                treebank, estimator=estimator, parsed=True, binary=True
            )
            treebank.keep_rule_index(cls._build(treebank))
        index = treebank.rule_index
        return index if table is None else index._renumbered(table)

    def _renumbered(self, table):
        """Return the index with the ids of a table that has all rules of the trees."""
        if all(map(np.array_equal, self.table().values(), table.table().values())):
            return self
        own = RuleKeys(self, table.nonterminals, table.words)
        new = RuleKeys(table, table.nonterminals, table.words)
        rule = find_keys(new.rules, own.rules)
        entry = find_keys(new.entries, own.entries)
        root = find_keys(new.roots, own.roots)
        return replace(
            self,
            **table.table(),
            label=own.label[self.label],
            word=own.word[self.word],
            rule=np.append(rule, -1).astype(np.int32)[self.rule],
            entry=np.append(entry, -1).astype(np.int32)[self.entry],
            top=root.astype(np.int32)[self.top],
        )

    @classmethod
    def _build(cls, treebank):
        nonterminals, label = _used(treebank.labels.strings, treebank.label)
        backoff = treebank.words.backoff
        used = treebank.word
        if backoff is not None:
            # Keep the class of a word and all coarser classes.
            level = np.unique(used)
            while len(level):
                used = np.concatenate([used, level])
                level = np.unique(backoff[level[backoff[level] != level]])
        words, ids = _used(treebank.words.strings, used)
        word = ids[: len(treebank.word)]
        if backoff is not None:
            new_id = np.full(len(backoff), -1, dtype=np.int32)
            new_id[used] = ids
            classes, backoff = backoff[used], np.empty(len(words), dtype=np.int32)
            backoff[ids] = new_id[classes]
        n_labels = len(nonterminals)
        inner = np.flatnonzero(treebank.size > 1)
        left = inner + 1
        right = left + treebank.size[left]
        keys = rule_keys(label[inner], label[left], label[right], n_labels)
        rules, rule = _number(keys, inner, len(label))
        leaves = np.flatnonzero(treebank.size == 1)
        tokens = leaf_tokens(treebank, leaves)
        keys = lexical_keys(word[tokens], label[leaves], n_labels)
        entries, entry = _number(keys, leaves, len(label))
        roots = label[treebank.node_offsets[:-1]]
        root_label, top = np.unique(roots, return_inverse=True)
        return cls(
            **table_of_keys(nonterminals, words, backoff, (rules, entries, root_label)),
            node_offsets=treebank.node_offsets,
            label=label,
            size=treebank.size,
            parent=treebank.parent,
            word=word,
            rule=rule,
            entry=entry,
            top=top.astype(np.int32),
        )

    def columns(self):
        """Return the fields of nodes and trees, without those of the rules.

        Returns
        -------
        dict
        """
        names = {field.name for field in fields(self)} - self.table().keys()
        return {name: getattr(self, name) for name in sorted(names)}

    @classmethod
    def concatenate(cls, indices):
        """Join indices of trees with the same rules and ids.

        Parameters
        ----------
        indices : sequence of RuleIndex
            At least one.

        Returns
        -------
        RuleIndex
        """
        names = ("label", "size", "parent", "word", "rule", "entry", "top")
        columns = {
            name: np.concatenate([getattr(index, name) for index in indices])
            for name in names
        }
        sizes = np.concatenate([np.diff(index.node_offsets) for index in indices])
        return replace(indices[0], **columns, node_offsets=offsets(sizes))

    def take(self, rows):
        """Index some of the trees, with the same rules and ids.

        Parameters
        ----------
        rows : ndarray of int or bool
            Which trees.

        Returns
        -------
        RuleIndex
        """
        rows = np.arange(self.n_trees)[rows]
        length = np.diff(self.node_offsets)[rows]
        nodes = ragged_indices(self.node_offsets[rows], length)
        # A binary tree with n nodes has (n + 1) / 2 leaves.
        n_tokens = (np.diff(self.node_offsets) + 1) // 2
        tokens = ragged_indices(offsets(n_tokens)[rows], n_tokens[rows])
        columns = {
            name: getattr(self, name)[nodes]
            for name in ("label", "size", "parent", "rule", "entry")
        }
        return replace(
            self,
            **columns,
            node_offsets=offsets(length),
            word=self.word[tokens],
            top=self.top[rows],
        )

    @property
    def n_trees(self):
        """Number of trees."""
        return len(self.top)

    @property
    def n_nodes(self):
        """Number of nodes of all trees."""
        return len(self.label)

    def count(self, weight=None, *, binarized=False):
        """Count labels, rules and roots.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree; None for ones.
        binarized : bool, default=False
            Whether a :class:`TreeBinarizer` made the trees.

        Returns
        -------
        RuleCounts
        """
        weight = np.ones(self.n_trees) if weight is None else weight
        node_weight = self.node_weight(weight)

        def total(ids, n):
            nodes = ids >= 0
            return np.bincount(ids[nodes], weights=node_weight[nodes], minlength=n)

        return RuleCounts(
            **self.table(),
            label_count=total(self.label, len(self.nonterminals)),
            rule_count=total(self.rule, self.n_rules),
            lexical_count=total(self.entry, len(self.lex_label)),
            root_count=np.bincount(self.top, weight, len(self.root_label)),
            weight=float(weight.sum()),
            n_trees=self.n_trees,
            binarized=bool(binarized),
        )

    def node_weight(self, weight=None):
        """Return the weight of each node's tree.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree; None for ones.

        Returns
        -------
        ndarray of float64
            One number per node.
        """
        if weight is None:
            return np.ones(self.n_nodes)
        return np.repeat(np.asarray(weight, float), np.diff(self.node_offsets))


def count_rules(X, weight=None, *, estimator="count_rules", n_jobs=None):
    """Count the rules of all trees.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Binary trees.
    weight : ndarray of float64, shape (n_trees,), default=None
        Weight of each tree.
    estimator : estimator or str, default="count_rules"
        Name to use in error messages.
    n_jobs : int, default=None
        Number of chunks to count at the same time.

    Returns
    -------
    RuleCounts

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import count_rules
    >>> count_rules(Treebank(["(S (A x) (A y))"])).rule_count.tolist()
    [1.0]
    """

    def count(treebank, weight):
        index = RuleIndex.from_treebank(treebank, estimator=estimator)
        return index.count(weight, binarized=treebank.binarized)

    return reduce(
        RuleCounts.__add__,
        over_chunks(count, X.without_blocks(), weight, n_jobs=n_jobs),
    )


def _number(keys, nodes, n_nodes):
    """Return the keys that occur, and the number of each node's key, or -1."""
    keys, numbers = np.unique(keys, return_inverse=True)
    column = np.full(n_nodes, -1, dtype=np.int32)
    column[nodes] = numbers
    return keys, column


def _used(strings, ids):
    """Return the strings that occur, sorted, and the ids among them."""
    used = np.unique(ids)
    names = [strings[i] for i in used.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    mapping = np.full(len(strings), -1, dtype=np.int32)
    mapping[used[order]] = np.arange(len(used), dtype=np.int32)
    return tuple(names[i] for i in order), mapping[ids]


def leaf_tokens(treebank, leaves):
    """Return the position of each leaf's token in the token columns."""
    tree = np.searchsorted(treebank.node_offsets, leaves, side="right") - 1
    return treebank.token_offsets[tree] + treebank.start[leaves]
