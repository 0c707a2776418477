"""Which items of a sentence are worth a look: pruning by a treebank PCFG."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels import _coarse as kernel
from lpcfg_sk._kernels._chart_forest import Forest, build_forest
from lpcfg_sk.decoding._tables import coarse_tables, rule_tables
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.treebank._labels import decode_label

#: Items that carry less than this share of the threshold hand no mass down.
_FLOOR = 0.1

_NO_ITEMS = np.zeros((0, 2), dtype=np.int32)


class PrunedChart(NamedTuple):
    """The live items of one sentence, in the symbols of the pruner's grammar.

    Attributes
    ----------
    n : int
        Number of words.
    forest : Forest or None
        Items and their derivations; None where the sentence has no parse.
    as_unknown : ndarray of bool, shape (n,)
        Words that are taken as unknown ones.
    log_prob : float
        Log probability of the sentence under the pruning grammar; nan in a full
        chart.
    """

    n: int
    forest: Forest
    as_unknown: np.ndarray
    log_prob: float


class ChartPruner:
    """Make the charts of sentences.

    Parameters
    ----------
    grammar : LPCFG
        With a threshold, a plain PCFG (one state everywhere) with positive
        parameters. Without, any grammar: only its rules count.
    threshold : float, default=3e-4
        Items with a smaller posterior probability are left out; None or 0 for a
        full chart, which has every item that occurs in a tree of the grammar.
    binarized : bool, default=False
        Whether the labels are those of a :class:`TreeBinarizer`; given tags of words
        are then compared with the lowest label of a chain.
    max_memory : int, default=2**31
        Most bytes that one sentence's chart may take.

    Notes
    -----
    The best tree of the pruning grammar is always kept, so that a sentence with a
    parse keeps one.
    """

    def __init__(self, grammar, threshold=3e-4, *, binarized=False, max_memory=2**31):
        arrays = grammar.arrays
        self.grammar = grammar
        self.threshold = threshold or 0.0
        self.max_memory = max_memory
        self.rules = rule_tables(arrays)
        if self.threshold and arrays.n_states.max(initial=1) > 1:
            raise ValueError(
                "charts are pruned by a grammar with one latent state a nonterminal, "
                f"got up to {arrays.n_states.max()}; pass prune=None for full charts"
            )
        if self.threshold:
            weight, self._lexical, root = arrays.binary, arrays.lexical, arrays.root
            for name in ("binary", "lexical", "root"):
                if getattr(arrays, name).min(initial=0.0) < 0.0:
                    raise ValueError(
                        f"the pruning grammar has negative {name} parameters"
                    )
        else:
            weight = np.ones(len(arrays.rule_parent))
            self._lexical = np.ones(len(arrays.lex_label))
            root = np.ones(len(arrays.root_label))
        self.tables = coarse_tables(arrays, weight)
        n_labels = len(arrays.n_states)
        self._root = np.zeros(n_labels)
        self._root[arrays.root_label] = root
        self.unknown_weight = unknown_weights(arrays)
        self._unknown = np.bincount(
            arrays.lex_label,
            weights=self._lexical
            * np.repeat(self.unknown_weight, np.diff(arrays.word_offset)),
            minlength=n_labels,
        )
        self.tag_names = {}
        self._tag_of_label = np.full(n_labels, -1, dtype=np.int32)
        for label in np.unique(arrays.lex_label).tolist():
            tag = _lowest(grammar.nonterminals[label], binarized)
            self._tag_of_label[label] = self.tag_names.setdefault(
                tag, len(self.tag_names)
            )

    def encode_tags(self, treebank):
        """Translate the given tags of all tokens, -1 where there is none."""
        tags = [_lowest(label, treebank.binarized) for label in treebank.labels]
        table = [self.tag_names.get(tag, -1) for tag in tags]
        return np.array([*table, -1], dtype=np.int32)[treebank.tag]

    def chart(self, words, tags, name="the sentence"):
        """Make the chart of one sentence.

        Parameters
        ----------
        words : ndarray of int32
            Words in ids of the pruner's grammar, -1 for unknown ones.
        tags : ndarray of int32
            Given tags from :meth:`encode_tags`, -1 for none.
        name : str
            What to call the sentence in an error message.

        Returns
        -------
        PrunedChart
        """
        n = len(words)
        n_spans = n * (n + 1) // 2
        n_labels, n_wide = len(self._root), len(self.tables.wide_label)
        dense = 16 * (n_spans * n_wide + n * n_labels) + 16 * n_spans
        self.check_memory(dense, n, name)
        full = self.threshold == 0.0
        leaf, as_unknown = self._leaves(words, tags)
        alpha = np.zeros((n_spans, n_wide))
        exponent = np.zeros(n_spans, dtype=np.int32)
        alive = np.zeros(n_spans, dtype=np.bool_)
        kernel.coarse_inside(n, self.tables, leaf, full, alpha, exponent, alive)
        beta, beta_leaf = np.zeros_like(alpha), np.zeros_like(leaf)
        if n == 1:
            beta_leaf[0] = self._root
            total = leaf[0] @ self._root
        else:
            beta[-1] = self._root[self.tables.wide_label]
            total = alpha[-1] @ beta[-1]
        if not total > 0.0:
            return PrunedChart(n, None, as_unknown, -np.inf)
        log_prob = np.nan if full else np.log(total) + exponent[-1] * np.log(2.0)
        kernel.coarse_outside(
            n,
            self.tables,
            leaf,
            full,
            alpha,
            exponent,
            alive,
            total * self.threshold * _FLOOR,
            beta,
            beta_leaf,
        )
        offset = np.zeros(n_spans + 1, dtype=np.int64)
        labels = kernel.live_items(
            n,
            self.tables,
            leaf,
            alpha,
            beta,
            beta_leaf,
            total * self.threshold,
            _NO_ITEMS,
            offset,
        )
        fits, forest = build_forest(
            n, offset, labels, n_labels, self.rules, self.max_memory
        )
        if not fits:
            self.check_memory(self.max_memory + 1, n, name)
        return PrunedChart(n, forest, as_unknown, log_prob)

    def _leaves(self, words, tags):
        arrays = self.grammar.arrays
        leaf = np.zeros((len(words), len(self._root)))
        as_unknown = np.zeros(len(words), dtype=np.bool_)
        kernel.fill_tags(
            words,
            tags,
            self._tag_of_label,
            arrays.word_offset,
            arrays.lex_label,
            self._lexical,
            self._unknown,
            leaf,
            as_unknown,
        )
        return leaf, as_unknown

    def flat_labels(self, words, tags):
        """Return the likeliest root, and the likeliest label over each word."""
        leaf, _ = self._leaves(words, tags)
        return int(np.argmax(self._root)), np.argmax(leaf, axis=1).astype(np.int32)

    def check_memory(self, needed, n, name):
        """Refuse a chart that would take more than `max_memory` bytes."""
        if needed <= self.max_memory:
            return
        advice = (
            "leave the sentence out, or raise max_memory"
            if self.threshold
            else "switch pruning on (prune=3e-4), leave the sentence out, or raise "
            "max_memory"
        )
        raise ChartMemoryError(
            f"the chart of {name} ({n} words) needs at least {needed:,} bytes, more "
            f"than max_memory={self.max_memory:,}; {advice}"
        )


def _lowest(label, binarized):
    """Return the tag that a label over one word stands for, None for a bare word."""
    if not binarized:
        return label
    chain = decode_label(label).chain
    return chain[-1] if chain else None


def unknown_weights(arrays):
    """Return weights of the words that make up the unknown word.

    Every known word counts the same, whatever its frequency, so that labels with many
    different words (open classes) take most of the mass.
    """
    n_words = len(arrays.word_offset) - 1
    word = np.repeat(np.arange(n_words), np.diff(arrays.word_offset))
    entry = np.repeat(np.arange(len(word)), np.diff(arrays.lex_offset))
    size = np.bincount(word[entry], weights=np.abs(arrays.lexical), minlength=n_words)
    weight = np.divide(1.0, size, out=np.zeros(n_words), where=size > 0)
    return weight / max(weight.sum(), np.finfo(float).tiny)
