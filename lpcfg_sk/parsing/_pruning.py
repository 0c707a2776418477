"""Which items of a sentence are worth a look: pruning by a treebank PCFG."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._chart_forest import Forest, build_forest
from lpcfg_sk._kernels._coarse_inside import coarse_inside
from lpcfg_sk._kernels._coarse_outside import coarse_outside, live_items
from lpcfg_sk._kernels._coarse_tables import ROW, fill_tags, word_rules
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing._tables import coarse_tables, rule_tables
from lpcfg_sk.treebank._labels import decode_label

# Shares of the threshold. A label is left out of the inside pass where its value times
# its frequency is below this share of the span's largest;
_BEAM = 0.1
# items with a smaller marginal hand no mass down in the outside pass;
_FLOOR = 0.1
# edges and rule applications with a smaller marginal are left out of the forest.
_RULE_SHARE = 0.1

# A threshold that leaves no tree is lowered by this factor, in the end to zero.
_LOWER = 1e-3
_LOWEST = 1e-12


class LiveItems(NamedTuple):
    """The items of one sentence with their values under the pruner's grammar.

    Attributes
    ----------
    offset : ndarray of int64
        Span s has the items ``offset[s]:offset[s + 1]``.
    label : ndarray of int32
        Nonterminals.
    inside, outside : ndarray of float64
        Scaled values; their product is the marginal, in the scale of `total`.
    exponent : ndarray of int32
        Power of two of each span.
    total : float
        Scaled probability of the sentence.
    """

    offset: np.ndarray
    label: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    exponent: np.ndarray
    total: float

    @property
    def posterior(self):
        """Marginals over the probability of the sentence."""
        return self.inside * self.outside / self.total


class PrunedChart(NamedTuple):
    """The live items of one sentence, in the symbols of the pruner's grammar.

    Attributes
    ----------
    n : int
        Number of words.
    forest : Forest or None
        Items and their derivations; None where the sentence has no parse.
    as_unknown : ndarray of bool, shape (n,)
        Words that are taken as unknown ones, because they are, or because they never
        have the tag that was given.
    live : LiveItems or None
        The items that reach the threshold, with their values under the pruner's
        grammar; None where the sentence has no parse.
    """

    n: int
    forest: Forest
    as_unknown: np.ndarray
    live: LiveItems


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
    A sentence with a parse keeps one: where the items that reach the threshold make
    up no tree, it is lowered until they do.
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
        self._weight = weight
        self.tables = coarse_tables(arrays, weight, root)
        n_labels = len(arrays.n_states)
        n_rows = -(-len(self.tables.right_label) // ROW)
        self._stride = ROW * max(n_rows, 1)
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
        leaf, as_unknown = self._leaves(words, tags, name)
        threshold = self.threshold
        likely = live = self._live(leaf.copy(), threshold)
        while True:
            forest = None if live is None else self._forest(n, live, threshold, name)
            if forest is not None or threshold == 0.0:
                return PrunedChart(n, forest, as_unknown, likely)
            # Without any mass it was the beam that cut all trees, or there are none.
            lower = live is not None and threshold > _LOWEST
            threshold = threshold * _LOWER if lower else 0.0
            live = self._live(leaf.copy(), threshold)
            likely = live if likely is None else likely

    def live_items(self, words, tags, name="the sentence"):
        """Return the items of one sentence with their values.

        Parameters
        ----------
        words, tags, name
            As in :meth:`chart`.

        Returns
        -------
        LiveItems or None
            None where the sentence has no parse.
        """
        leaf, _ = self._leaves(words, tags, name)
        live = self._live(leaf.copy(), self.threshold)
        return self._live(leaf, 0.0) if live is None else live

    def _live(self, leaf, threshold):
        """Return the items that reach the threshold, None where no mass is left."""
        n, tables, full = len(leaf), self.tables, self.threshold == 0.0
        n_spans = n * (n + 1) // 2
        n_wide = len(tables.wide_label)
        exponent = np.zeros(n_spans, dtype=np.int32)
        alive = np.zeros(n_spans, dtype=np.bool_)
        beam = threshold * _BEAM
        rules = word_rules(tables, leaf, full, beam, exponent, alive)
        offset = np.empty(n_spans + 1, dtype=np.int64)
        label = np.empty(n_spans * n_wide, dtype=np.int32)
        value = np.empty(n_spans * n_wide)
        left_offset = np.empty(n_spans + 1, dtype=np.int64)
        left_item = np.empty(n_spans * len(tables.left_label), dtype=np.int32)
        rights = np.empty((n_spans, self._stride), dtype=np.float32)
        items = (offset, label, value, left_offset, left_item, rights)
        chart = (exponent, alive, *items)
        count = coarse_inside(n, tables, *rules, leaf, full, beam, *chart)
        root = self._root[tables.wide_label]
        leaf_mass = np.zeros_like(leaf)
        if n == 1:
            leaf_mass[0] = leaf[0] * self._root
            total = leaf_mass.sum()
        else:
            top = slice(*offset[-2:])
            total = value[top] @ root[label[top]]
        if not total > 0.0:
            return None
        beta = np.zeros(count)
        floor = total * threshold * _FLOOR
        coarse_outside(
            n, tables, *rules, leaf, full, floor, root, *chart, beta, leaf_mass
        )
        live_offset = np.empty(n_spans + 1, dtype=np.int64)
        values = live_items(
            n,
            tables,
            leaf,
            leaf_mass,
            alive,
            offset,
            label,
            value,
            beta,
            total * threshold,
            live_offset,
        )
        return LiveItems(live_offset, *values, exponent, total)

    def _forest(self, n, live, threshold, name):
        """Connect the live items; None where they make no tree."""
        fits, forest = build_forest(
            n,
            live.offset,
            live.label,
            live.inside,
            live.outside,
            live.exponent,
            len(self._root),
            self.rules,
            self._weight,
            live.total * threshold * _RULE_SHARE,
            self.max_memory,
        )
        if not fits:
            self.check_memory(self.max_memory + 1, n, name)
        top = forest.item_label[slice(*forest.item_offset[-2:])]
        return forest if self._root[top].any() else None

    def _leaves(self, words, tags, name="the sentence"):
        n, tables, arrays = len(words), self.tables, self.grammar.arrays
        per_span = 28 * len(tables.wide_label) + 8 * self._stride + 64
        per_word = 16 * len(self._root) + 40 * len(tables.pi_prob)
        self.check_memory(n * (n + 1) // 2 * per_span + n * per_word, n, name)
        leaf = np.zeros((len(words), len(self._root)))
        as_unknown = np.zeros(len(words), dtype=np.bool_)
        fill_tags(
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
        """Labels of a flat tree over a sentence without a parse.

        Parameters
        ----------
        words, tags
            As in :meth:`chart`.

        Returns
        -------
        root : int
            The likeliest root over several words; over one word if all roots are.
        wide : bool
            Whether the root is one over several words.
        leaves : ndarray of int32
            The likeliest label over each word.
        """
        leaf, _ = self._leaves(words, tags)
        likeliest = np.argmax(leaf * self.tables.tag_prior, axis=1)
        root = np.zeros_like(self._root)
        root[self.tables.wide_label] = self._root[self.tables.wide_label]
        wide = bool(root.any())
        top = int(np.argmax(root if wide else self._root))
        return top, wide, likeliest.astype(np.int32)

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
