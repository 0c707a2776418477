"""The rules of binary trees, and how often each of them occurs."""

from dataclasses import dataclass, fields

import numpy as np

from lpcfg_sk._ragged import offsets
from lpcfg_sk.treebank._symbols import SymbolTable


def rule_keys(parent, left, right, n_labels):
    """Return one integer per rule a → b c, (a·N + b)·N + c.

    Parameters
    ----------
    parent, left, right : ndarray of int
        Label ids, -1 for unknown labels.
    n_labels : int
        Number of labels N.

    Returns
    -------
    ndarray of int64
        Increasing in (a, b, c); -1 where an id is negative.
    """
    n = np.int64(n_labels)
    a, b, c = (np.asarray(ids, dtype=np.int64) for ids in (parent, left, right))
    return np.where((a >= 0) & (b >= 0) & (c >= 0), (a * n + b) * n + c, -1)


def lexical_keys(word, label, n_labels):
    """Return one integer per lexical rule a → x, x·N + a.

    Parameters
    ----------
    word, label : ndarray of int
        Ids of words and labels, -1 for unknown ones.
    n_labels : int
        Number of labels N.

    Returns
    -------
    ndarray of int64
        Increasing in (x, a); -1 where an id is negative.
    """
    x, a = np.asarray(word, dtype=np.int64), np.asarray(label, dtype=np.int64)
    return np.where((x >= 0) & (a >= 0), x * np.int64(n_labels) + a, -1)


@dataclass(frozen=True, eq=False)
class RuleTable:
    """Symbols and rules of binary trees.

    Attributes
    ----------
    nonterminals : tuple of str
        Labels that occur, sorted.
    words : tuple of str
        Words that occur and their signature classes, sorted.
    backoff : ndarray of int32, shape (n_words,), or None
        The signature class of each word, None without :class:`RareWords`.
    rule_parent, rule_left, rule_right : ndarray of int32, shape (n_rules,)
        Binary rules, sorted.
    word_offset : ndarray of int64, shape (n_words + 1,)
        Lexical rules of word x are ``word_offset[x]:word_offset[x + 1]``.
    lex_word, lex_label : ndarray of int32, shape (n_entries,)
        Lexical rules, sorted by (word, label).
    root_label : ndarray of int32, shape (n_roots,)
        Nonterminals at roots, sorted.
    """

    nonterminals: tuple
    words: tuple
    backoff: np.ndarray | None
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    word_offset: np.ndarray
    lex_word: np.ndarray
    lex_label: np.ndarray
    root_label: np.ndarray

    @property
    def n_rules(self):
        """Number of binary rules."""
        return len(self.rule_parent)

    @property
    def occurs_below(self):
        """Boolean array that tells which nonterminals occur below another node."""
        below = np.zeros(len(self.nonterminals), dtype=bool)
        below[self.rule_left] = below[self.rule_right] = True
        return below

    def table(self):
        """Return the fields of :class:`RuleTable`.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(RuleTable)}


@dataclass(frozen=True, eq=False)
class RuleCounts(RuleTable):
    """Rules and how often they occur, without the trees.

    The sum of the counts of two treebanks is the counts of both together.

    Attributes
    ----------
    nonterminals, words, backoff, rule_parent, rule_left, rule_right, word_offset, \
lex_word, lex_label, root_label
        The rules, as in :class:`RuleTable`.
    label_count, rule_count, lexical_count, root_count : ndarray of float64
        Total weight of the occurrences of each nonterminal, rule and root.
    weight : float
        Total weight of the trees.
    n_trees : int
        Number of trees.
    binarized : bool
        Whether a :class:`TreeBinarizer` made them.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import RuleIndex
    >>> one = RuleIndex.from_treebank(Treebank(["(S (A x) (A y))"])).count()
    >>> two = RuleIndex.from_treebank(Treebank(["(S (A x) (B z))"])).count()
    >>> (one + two).nonterminals, (one + two).label_count.tolist()
    (('A', 'B', 'S'), [3.0, 1.0, 2.0])
    """

    label_count: np.ndarray
    rule_count: np.ndarray
    lexical_count: np.ndarray
    root_count: np.ndarray
    weight: float
    n_trees: int
    binarized: bool

    def __add__(self, other):
        """Add two counts; ids are those of the union of the symbols."""
        nonterminals = tuple(sorted({*self.nonterminals, *other.nonterminals}))
        words = tuple(sorted({*self.words, *other.words}))
        counts = (self, other)
        keys = [RuleKeys(part, nonterminals, words) for part in counts]
        backoff = None
        if self.backoff is not None and other.backoff is not None:
            backoff = np.arange(len(words), dtype=np.int32)
            for part, key in zip(counts, keys, strict=True):
                backoff[key.word] = key.word[part.backoff]
        names = {
            "label": "label_count",
            "rules": "rule_count",
            "entries": "lexical_count",
            "roots": "root_count",
        }
        (_, rules, entries, roots), totals = zip(
            *(
                _add([getattr(k, key) for k in keys], [getattr(c, n) for c in counts])
                for key, n in names.items()
            ),
            strict=True,
        )
        return RuleCounts(
            **table_of_keys(nonterminals, words, backoff, (rules, entries, roots)),
            **dict(zip(names.values(), totals, strict=True)),
            weight=self.weight + other.weight,
            n_trees=self.n_trees + other.n_trees,
            binarized=self.binarized and other.binarized,
        )


def table_of_keys(nonterminals, words, backoff, keys):
    """Return the fields of a :class:`RuleTable` as a dict.

    Parameters
    ----------
    nonterminals, words : tuple of str
        The symbols.
    backoff : ndarray of int32, shape (n_words,), or None
        Signature classes.
    keys : sequence of three ndarray of int
        Sorted keys of binary rules and of lexical rules, and root labels.

    Returns
    -------
    dict
    """
    rules, entries, roots = keys
    pair, right = np.divmod(rules, len(nonterminals))
    parent, left = np.divmod(pair, len(nonterminals))
    lex_word, lex_label = np.divmod(entries, len(nonterminals))
    ids = {
        "rule_parent": parent,
        "rule_left": left,
        "rule_right": right,
        "lex_word": lex_word,
        "lex_label": lex_label,
        "root_label": roots,
    }
    return {
        "nonterminals": nonterminals,
        "words": words,
        "backoff": backoff,
        "word_offset": offsets(np.bincount(lex_word, minlength=len(words))),
        **{name: column.astype(np.int32) for name, column in ids.items()},
    }


class RuleKeys:
    """Ids and keys of the rules of a table in terms of other symbols.

    Parameters
    ----------
    table : RuleTable
        The rules.
    nonterminals, words : SymbolTable or sequence of str
        The other symbols.

    Attributes
    ----------
    label, word : ndarray of int32
        New id of each nonterminal and word of the table, -1 where there is none.
    rules, entries, roots : ndarray of int64
        New keys of the binary rules, lexical rules and roots; -1 for those with a
        symbol that has no new id.
    """

    def __init__(self, table, nonterminals, words):
        n_labels = len(nonterminals)
        self.label = SymbolTable(table.nonterminals).map_to(nonterminals)
        self.word = SymbolTable(table.words).map_to(words)
        rules = (table.rule_parent, table.rule_left, table.rule_right)
        self.rules = rule_keys(*(self.label[part] for part in rules), n_labels)
        self.entries = lexical_keys(
            self.word[table.lex_word], self.label[table.lex_label], n_labels
        )
        self.roots = self.label[table.root_label].astype(np.int64)


def _add(keys, counts):
    """Return the union of keys, and the sums of their counts."""
    union = np.union1d(*keys)
    total = np.zeros(len(union))
    for part, count in zip(keys, counts, strict=True):
        total[np.searchsorted(union, part)] += count
    return union, total
