"""The rules of many treebanks together, and how often each of them occurs."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import find_keys, offsets
from lpcfg_sk.lpcfg._rules import RuleIndex, weighted_trees
from lpcfg_sk.treebank._sharded import map_shards, split_by_shard

__all__ = ["RuleInventory", "shard_weights", "take_inventory"]


class RuleInventory(NamedTuple):
    """Rules and their counts, without the trees.

    It stands for the :class:`RuleIndex` of trees that are elsewhere wherever only
    rules and counts are asked for. Inventories add up.

    Attributes
    ----------
    nonterminals, words, backoff, rule_parent, rule_left, rule_right, word_offset, \
lex_word, lex_label, root_label
        As in :class:`RuleIndex`.
    label_count, rule_count, lexical_count, root_count : ndarray of float64
        Weight of the occurrences of each.
    weight : float
        Weight of all trees.
    n_trees : int
        Number of trees.
    binarized : bool
        Whether a :class:`TreeBinarizer` made them.
    """

    nonterminals: tuple
    words: tuple
    backoff: np.ndarray
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    word_offset: np.ndarray
    lex_word: np.ndarray
    lex_label: np.ndarray
    root_label: np.ndarray
    label_count: np.ndarray
    rule_count: np.ndarray
    lexical_count: np.ndarray
    root_count: np.ndarray
    weight: float
    n_trees: int
    binarized: bool

    @classmethod
    def of_index(cls, index, weight, *, binarized):
        """Count the rules of an index, with weights a tree."""
        shared = {name: getattr(index, name) for name in cls._fields[:10]}
        return cls(
            **shared,
            label_count=index.label_counts(weight),
            rule_count=index.rule_counts(weight),
            lexical_count=index.lexical_counts(weight),
            root_count=index.root_counts(weight),
            weight=float(weight.sum()),
            n_trees=index.n_trees,
            binarized=bool(binarized),
        )

    @property
    def n_rules(self):
        """Number of binary rules."""
        return len(self.rule_parent)

    def label_counts(self, weight=None):
        """Return how often each nonterminal occurs; weights are those counted."""
        return self.label_count.copy()

    def rule_counts(self, weight=None):
        """Return how often each binary rule occurs; weights are those counted."""
        return self.rule_count.copy()

    def lexical_counts(self, weight=None):
        """Return how often each lexical rule occurs; weights are those counted."""
        return self.lexical_count.copy()

    def root_counts(self, weight=None):
        """Return how often each root occurs; weights are those counted."""
        return self.root_count.copy()

    def __add__(self, other):
        """Join two inventories; ids are those of all symbols together."""
        nonterminals = tuple(sorted({*self.nonterminals, *other.nonterminals}))
        words = tuple(sorted({*self.words, *other.words}))
        parts = [_Translated(part, nonterminals, words) for part in (self, other)]
        backoff = None
        if self.backoff is not None and other.backoff is not None:
            backoff = np.arange(len(words), dtype=np.int32)
            for part in parts:
                backoff[part.word] = part.word[part.inventory.backoff]
        label_count = np.zeros(len(nonterminals))
        for part in parts:
            label_count[part.label] += part.inventory.label_count
        rules, rule_count = _join([(p.rules, p.inventory.rule_count) for p in parts])
        entries, lexical_count = _join(
            [(p.entries, p.inventory.lexical_count) for p in parts]
        )
        roots, root_count = _join([(p.roots, p.inventory.root_count) for p in parts])
        n = len(nonterminals)
        pair, right = np.divmod(rules, n)
        parent, left = np.divmod(pair, n)
        lex_word, lex_label = (ids.astype(np.int32) for ids in np.divmod(entries, n))
        return RuleInventory(
            nonterminals=nonterminals,
            words=words,
            backoff=backoff,
            rule_parent=parent.astype(np.int32),
            rule_left=left.astype(np.int32),
            rule_right=right.astype(np.int32),
            word_offset=offsets(np.bincount(lex_word, minlength=len(words))),
            lex_word=lex_word,
            lex_label=lex_label,
            root_label=roots.astype(np.int32),
            label_count=label_count,
            rule_count=rule_count,
            lexical_count=lexical_count,
            root_count=root_count,
            weight=self.weight + other.weight,
            n_trees=self.n_trees + other.n_trees,
            binarized=self.binarized and other.binarized,
        )

    def index(self, treebank):
        """Index trees whose rules are all here, in the ids of this inventory.

        Parameters
        ----------
        treebank : Treebank
            Binary trees.

        Returns
        -------
        RuleIndex
        """
        own = RuleIndex.from_treebank(treebank)
        moved = _Translated(own, self.nonterminals, self.words)
        rule = find_keys(_rule_keys(self), moved.rules)
        entry = find_keys(_lexical_keys(self), moved.entries)
        top = find_keys(self.root_label, moved.roots)
        return own._replace(
            **{name: getattr(self, name) for name in RuleInventory._fields[:10]},
            label=moved.label[own.label],
            word=moved.word[own.word],
            rule=np.append(rule, -1).astype(np.int32)[own.rule],
            entry=np.append(entry, -1).astype(np.int32)[own.entry],
            top=top.astype(np.int32)[own.top],
        )


class _Translated:
    """Rules of an index or inventory as keys over other symbols."""

    def __init__(self, inventory, nonterminals, words):
        self.inventory = inventory
        self.label = _positions(inventory.nonterminals, nonterminals)
        self.word = _positions(inventory.words, words)
        n, label = np.int64(len(nonterminals)), self.label.astype(np.int64)
        self.rules = (
            label[inventory.rule_parent] * n + label[inventory.rule_left]
        ) * n + label[inventory.rule_right]
        word = self.word.astype(np.int64)[inventory.lex_word]
        self.entries = word * n + label[inventory.lex_label]
        self.roots = label[inventory.root_label]


def _positions(strings, among):
    number = {s: i for i, s in enumerate(among)}
    return np.fromiter((number[s] for s in strings), dtype=np.int32, count=len(strings))


def _rule_keys(index):
    n = np.int64(len(index.nonterminals))
    return (index.rule_parent.astype(np.int64) * n + index.rule_left) * n + (
        index.rule_right
    )


def _lexical_keys(index):
    n = np.int64(len(index.nonterminals))
    return index.lex_word.astype(np.int64) * n + index.lex_label


def _join(parts):
    """Union of keys, and the sums of their counts."""
    keys = np.union1d(parts[0][0], parts[1][0])
    total = np.zeros(len(keys))
    for part, counts in parts:
        total[np.searchsorted(keys, part)] += counts
    return keys, total


def shard_weights(X, sample_weight, estimator):
    """Weights of the trees of each shard, or None for each where all are 1.

    Parameters
    ----------
    X : ShardedTreebank
        The trees.
    sample_weight : array-like of float, shape (n_trees,), or None
        Weights.
    estimator : estimator
        Who asks, for the messages.

    Returns
    -------
    list
    """
    # The weights of all trees are looked at together, as for one treebank.
    from lpcfg_sk.treebank import check_sample_weight

    if len(X) == 0:
        raise ValueError(
            f"{type(estimator).__name__} needs at least one tree, got none"
        )
    if sample_weight is None:
        return [None] * X.n_shards
    weight = check_sample_weight(sample_weight, X)
    return split_by_shard(X, weight)


def take_inventory(X, weights, estimator, *, n_jobs=None):
    """Count the rules of all shards.

    Parameters
    ----------
    X : ShardedTreebank
        Binary trees.
    weights : list
        Weights of the trees of each shard, see :func:`shard_weights`.
    estimator : estimator
        Who asks, for the messages.
    n_jobs : int, default=None
        Number of shards to look at together.

    Returns
    -------
    RuleInventory
    """

    def count(treebank, weight):
        if weight is not None and not weight.any():
            return None
        treebank, weight = weighted_trees(treebank, weight, estimator)
        index = RuleIndex.from_treebank(treebank)
        return RuleInventory.of_index(index, weight, binarized=treebank.binarized)

    parts = map_shards(count, X.without_blocks(), weights, n_jobs=n_jobs)
    return reduce(RuleInventory.__add__, (part for part in parts if part is not None))
