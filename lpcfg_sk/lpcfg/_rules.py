"""The rules of a binarised treebank, and where each of them occurs."""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import find_keys, offsets, ragged_indices
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.treebank import check_sample_weight, check_treebank

__all__ = ["RuleIndex", "requested_states", "weighted_trees"]


class RuleIndex(NamedTuple):
    """Rules of a binarised treebank and their places, in ids of one model.

    All learners start from it: nonterminals, words, binary rules a → b c, lexical
    rules a → x and roots are those that occur, and each node knows its own.

    Attributes
    ----------
    nonterminals : tuple of str
        Labels that occur, sorted.
    words : tuple of str
        Words that occur and their signature classes, sorted.
    backoff : ndarray of int32, shape (n_words,), or None
        The signature class of each word, None without :class:`RareWords`.
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        Tree t has the nodes ``node_offsets[t]:node_offsets[t + 1]``.
    label, size, parent : ndarray of int32, shape (n_nodes,)
        Nonterminal, number of nodes below (with itself), and parent within the
        tree, of each node; preorder.
    word : ndarray of int32, shape (n_tokens,)
        Word of each token.
    rule : ndarray of int32, shape (n_nodes,)
        Binary rule at each node, -1 at leaves.
    entry : ndarray of int32, shape (n_nodes,)
        Lexical rule at each leaf, -1 at other nodes.
    top : ndarray of int32, shape (n_trees,)
        Root entry of each tree.
    rule_parent, rule_left, rule_right : ndarray of int32, shape (n_rules,)
        Binary rules, sorted.
    word_offset : ndarray of int64, shape (n_words + 1,)
        Lexical rules of word x are ``word_offset[x]:word_offset[x + 1]``.
    lex_word, lex_label : ndarray of int32, shape (n_entries,)
        Lexical rules, sorted by (word, label).
    root_label : ndarray of int32, shape (n_roots,)
        Nonterminals at roots, sorted.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.lpcfg import RuleIndex
    >>> index = RuleIndex.from_treebank(Treebank(["(S (D the) (N dog))"]))
    >>> index.nonterminals, index.words
    (('D', 'N', 'S'), ('dog', 'the'))
    >>> index.rule.tolist(), index.entry.tolist()
    ([0, -1, -1], [-1, 1, 0])
    """

    nonterminals: tuple
    words: tuple
    backoff: np.ndarray
    node_offsets: np.ndarray
    label: np.ndarray
    size: np.ndarray
    parent: np.ndarray
    word: np.ndarray
    rule: np.ndarray
    entry: np.ndarray
    top: np.ndarray
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    word_offset: np.ndarray
    lex_word: np.ndarray
    lex_label: np.ndarray
    root_label: np.ndarray

    @classmethod
    def from_treebank(cls, treebank):
        """Index a treebank of binary trees.

        Parameters
        ----------
        treebank : Treebank
            Every row has a tree, every node two children or a word
            (see :class:`TreeBinarizer`).

        Returns
        -------
        RuleIndex
        """
        treebank = check_treebank(
            treebank, estimator="RuleIndex", parsed=True, binary=True
        )
        nonterminals, label = _used(treebank.labels.strings, treebank.label)
        backoff = treebank.words.backoff
        classes = backoff[treebank.word] if backoff is not None else treebank.word
        words, both = _used(
            treebank.words.strings, np.concatenate([treebank.word, classes])
        )
        word, word_class = np.split(both, 2)
        if backoff is not None:
            # A class is its own class, and need not occur as a word itself.
            backoff = np.arange(len(words), dtype=np.int32)
            backoff[word] = word_class
        rule, rules = _index_rules(treebank, label, len(nonterminals))
        entry, entries = _index_words(treebank, label, word, len(nonterminals))
        roots = label[treebank.node_offsets[:-1]]
        root_label, top = np.unique(roots, return_inverse=True)
        return cls(
            nonterminals=nonterminals,
            words=words,
            backoff=backoff,
            node_offsets=treebank.node_offsets,
            label=label,
            size=treebank.size,
            parent=treebank.parent,
            word=word,
            rule=rule,
            entry=entry,
            top=top.astype(np.int32),
            rule_parent=rules[0],
            rule_left=rules[1],
            rule_right=rules[2],
            word_offset=offsets(np.bincount(entries[0], minlength=len(words))),
            lex_word=entries[0],
            lex_label=entries[1],
            root_label=root_label,
        )

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
        return self._replace(
            node_offsets=offsets(length),
            label=self.label[nodes],
            size=self.size[nodes],
            parent=self.parent[nodes],
            word=self.word[tokens],
            rule=self.rule[nodes],
            entry=self.entry[nodes],
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

    @property
    def n_rules(self):
        """Number of binary rules."""
        return len(self.rule_parent)

    def node_weight(self, weight=None):
        """Return the weight of each node's tree (ones where `weight` is None).

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree.

        Returns
        -------
        ndarray of float64
            One number a node.
        """
        if weight is None:
            return np.ones(self.n_nodes)
        return np.repeat(np.asarray(weight, float), np.diff(self.node_offsets))

    def label_counts(self, weight=None):
        """Return how often each nonterminal occurs, with weights a tree.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree.

        Returns
        -------
        ndarray of float64
            One number a nonterminal.
        """
        return np.bincount(
            self.label,
            weights=self.node_weight(weight),
            minlength=len(self.nonterminals),
        )

    def rule_counts(self, weight=None):
        """Return how often each binary rule occurs, with weights a tree.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree.

        Returns
        -------
        ndarray of float64
            One number a binary rule.
        """
        inner = self.rule >= 0
        return np.bincount(
            self.rule[inner],
            weights=self.node_weight(weight)[inner],
            minlength=self.n_rules,
        )

    def lexical_counts(self, weight=None):
        """Return how often each lexical rule occurs, with weights a tree.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree.

        Returns
        -------
        ndarray of float64
            One number a lexical rule.
        """
        leaf = self.entry >= 0
        return np.bincount(
            self.entry[leaf],
            weights=self.node_weight(weight)[leaf],
            minlength=len(self.lex_label),
        )

    def root_counts(self, weight=None):
        """Return how often each root entry occurs, with weights a tree.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_trees,), default=None
            Weight of each tree.

        Returns
        -------
        ndarray of float64
            One number a root entry.
        """
        weight = np.ones(self.n_trees) if weight is None else weight
        return np.bincount(self.top, weights=weight, minlength=len(self.root_label))


def weighted_trees(X, sample_weight, estimator):
    """Check the input of a learner and leave out trees of weight zero.

    Parameters
    ----------
    X : Treebank or iterable of trees
        Binary trees.
    sample_weight : array-like of float, shape (n_trees,), or None
        Weights; an integer weight means that many copies, so 0 means absence.
    estimator : estimator or str
        Who asks, for the messages.

    Returns
    -------
    treebank : Treebank
    weight : ndarray of float64
        Positive weights, one a row of `treebank`.
    """
    treebank = check_treebank(X, estimator=estimator, parsed=True, binary=True)
    weight = check_sample_weight(sample_weight, treebank)
    if not np.all(weight > 0):
        treebank = treebank[weight > 0]
        weight = weight[weight > 0]
    return treebank, weight


def requested_states(m, nonterminals, counts):
    """Return the number of latent states that the user asks for.

    Parameters
    ----------
    m : int, mapping of str to int, or callable
        One number for all; a number for some nonterminals (1 for those not
        named); or ``m(nonterminal, count) -> int``, with the (weighted) number
        of occurrences.
    nonterminals : sequence of str
        Names.
    counts : array-like of float
        Number of occurrences of each.

    Returns
    -------
    ndarray of int64
        At least 1 each.

    Warns
    -----
    TreebankWarning
        If `m` names nonterminals that the trees do not have.

    Examples
    --------
    >>> from lpcfg_sk.lpcfg._rules import requested_states
    >>> requested_states({"NP": 4}, ["NP", "VP"], [10, 10]).tolist()
    [4, 1]
    >>> requested_states(lambda a, n: min(8, n // 3), ["NP", "VP"], [9, 60]).tolist()
    [3, 8]
    """
    if callable(m):
        wanted = [m(a, c) for a, c in zip(nonterminals, counts, strict=True)]
    elif hasattr(m, "items"):
        wanted = [m.get(a, 1) for a in nonterminals]
        _warn_of_unknown(m, nonterminals)
    else:
        wanted = [m] * len(nonterminals)
    for a, value in zip(nonterminals, wanted, strict=True):
        if not _is_whole(value) or value < 1:
            raise ValueError(
                f"m gives {value!r} latent states for {a!r}; a whole number from 1 on "
                "is needed."
            )
    return np.array(wanted, dtype=np.int64)


def _warn_of_unknown(m, nonterminals):
    # No error: a fold of cross-validation may lack a label.
    unknown = [a for a in m if a not in set(nonterminals)]
    if unknown:
        names = ", ".join(map(repr, unknown[:5])) + (", ..." if unknown[5:] else "")
        warnings.warn(
            f"m names nonterminals that the trees do not have, which is ignored: "
            f"{names}",
            TreebankWarning,
            stacklevel=3,
        )


def _is_whole(value):
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return isinstance(value, Integral) or float(value).is_integer()


def _used(strings, ids):
    """Return the strings that occur, sorted, and the ids among them."""
    used = np.unique(ids)
    names = [strings[i] for i in used.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    mapping = np.full(len(strings), -1, dtype=np.int32)
    mapping[used[order]] = np.arange(len(used), dtype=np.int32)
    return tuple(names[i] for i in order), mapping[ids]


def _index_rules(treebank, label, n_labels):
    at = np.flatnonzero(treebank.size > 1)
    left = at + 1
    right = left + treebank.size[left]
    keys = (label[at].astype(np.int64) * n_labels + label[left]) * n_labels
    found, which = np.unique(keys + label[right], return_inverse=True)
    rule = np.full(len(label), -1, dtype=np.int32)
    rule[at] = which
    pair, c = np.divmod(found, n_labels)
    a, b = np.divmod(pair, n_labels)
    return rule, [ids.astype(np.int32) for ids in (a, b, c)]


def _index_words(treebank, label, word, n_labels):
    at = np.flatnonzero(treebank.size == 1)
    keys = word[leaf_tokens(treebank, at)].astype(np.int64) * n_labels + label[at]
    found, which = np.unique(keys, return_inverse=True)
    entry = np.full(len(label), -1, dtype=np.int32)
    entry[at] = which
    return entry, [ids.astype(np.int32) for ids in np.divmod(found, n_labels)]


def leaf_tokens(treebank, leaves):
    """Return the position of each leaf's token in the token columns."""
    tree = np.searchsorted(treebank.node_offsets, leaves, side="right") - 1
    return treebank.token_offsets[tree] + treebank.start[leaves]


def rules_in_trees(arrays, keys, lex_keys, treebank, label, word):
    """Find the rules of a grammar at the nodes of binary trees.

    Parameters
    ----------
    arrays : GrammarArrays
        The grammar.
    keys, lex_keys : ndarray of int64
        Its ``rule_keys`` and ``lexical_keys``.
    treebank : Treebank
        Binary trees.
    label, word : ndarray of int32
        Nodes' labels and tokens' words in ids of the grammar, -1 for unknown.

    Returns
    -------
    rule : ndarray of int32, shape (n_nodes,)
        Rule of each node; at leaves the lexical entry; -1 where the grammar has
        no such rule.
    top : ndarray of int32, shape (n_trees,)
        Root entry of each tree, -1 where the grammar has none.
    """
    n = np.int64(max(len(arrays.n_states), 1))
    rule = np.full(len(label), -1, dtype=np.int32)
    at = np.flatnonzero(treebank.size > 1)
    left = at + 1
    right = left + treebank.size[left]
    a, b, c = (label[i].astype(np.int64) for i in (at, left, right))
    known = (a >= 0) & (b >= 0) & (c >= 0)
    rule[at] = np.where(known, find_keys(keys, (a * n + b) * n + c), -1)
    at = np.flatnonzero(treebank.size == 1)
    x, a = word[leaf_tokens(treebank, at)].astype(np.int64), label[at]
    rule[at] = np.where((x >= 0) & (a >= 0), find_keys(lex_keys, x * n + a), -1)
    roots = label[treebank.node_offsets[:-1]]
    top = find_keys(arrays.root_label, roots).astype(np.int32)
    return rule, top
