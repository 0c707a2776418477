"""Pruning: which items of a sentence are likely under a treebank PCFG."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._chart_forest import (
    Forest,
    LiveItems,
    RuleTables,
    build_forest,
    fill_pair_slots,
)
from lpcfg_sk._kernels._coarse_inside import (
    ChildPairs,
    CoarseTables,
    RulesByChild,
    RulesByPair,
    RulesByParent,
)
from lpcfg_sk._kernels._coarse_words import (
    Neighbours,
    TagLexicon,
    Thresholds,
    Tokens,
    fill_tags,
)
from lpcfg_sk._ragged import offsets, read_only
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing._coarse_rows import PruningGrammar, live_rows
from lpcfg_sk.parsing._tags import (
    expected_label_counts,
    lowest_label,
    neighbouring_tags,
    unknown_weights,
)

# Fractions of the threshold. The inside pass leaves out an item whose estimated
# posterior is below the first fraction, or below the second one times the largest of
# its span,
_ESTIMATE = 1 / 100
_BEAM = 0.1
# the outside pass passes no mass down from items with a marginal below this one,
_FLOOR = 0.1
# and the forest leaves out edges and rule applications with a marginal below this one.
_RULE_SHARE = 0.1

# From this many bytes on, it is worth asking the system for memory beforehand.
_LARGE = 2**24

# A threshold that leaves no tree is multiplied by this factor; the last try is zero.
_LOWER = 1e-3
_LOWEST = 1e-12


class PrunedChart(NamedTuple):
    """The live items of one sentence, in the symbols of the pruner's grammar.

    Attributes
    ----------
    n : int
        Number of words.
    forest : Forest or None
        Items and their derivations; None where the sentence has no parse.
    as_unknown : ndarray of bool, shape (n,)
        Words that are treated as unknown, because they are unknown, or because they
        never occur with the given tag.
    tokens : Tokens
        The sentence.
    live : LiveItems or None
        The items that reach the threshold, with their values under the pruner's
        grammar; None where the sentence has no parse.
    """

    n: int
    forest: Forest
    as_unknown: np.ndarray
    tokens: Tokens
    live: LiveItems


class PrunedRows(NamedTuple):
    """The live items of several sentences, as in :class:`PrunedChart`.

    Attributes
    ----------
    n_words : ndarray of int64, shape (n_rows,)
        Number of words of each sentence.
    live : LiveItems
        The items that reach the threshold, with their values.
    forest : Forest or None
        Items and their derivations, where they are needed.
    as_unknown : ndarray of bool, shape (n_tokens,)
        Words that are treated as unknown.
    tokens : Tokens
        The sentences, one after the other.
    found : ndarray of bool, shape (n_rows,)
        Sentences with live items, which make a tree if there is a forest. All others
        need a lower threshold, or more memory than allowed, or have no parse.
    """

    n_words: np.ndarray
    live: LiveItems
    forest: Forest
    as_unknown: np.ndarray
    tokens: Tokens
    found: np.ndarray


class ChartPruner:
    """Decide which chart items of a sentence exist.

    Parameters
    ----------
    grammar : LPCFG
        With a threshold, a plain PCFG (one state per nonterminal) with positive
        parameters. Without, any grammar: only its rules matter.
    threshold : float, default=6e-4
        Items whose posterior probability is estimated to be smaller are left out;
        None or 0 for a full chart, which has every item that occurs in a tree of the
        grammar.
    binarized : bool, default=False
        Whether the labels are those of a :class:`TreeBinarizer`; given tags of words
        are then compared with the lowest label of a chain.
    max_memory : int, default=2**31
        Most bytes that one sentence's chart may take.

    Notes
    -----
    Posteriors are those over the items that the inside pass keeps. It estimates outside
    values by the tags that are likely beside a span, see :func:`neighbouring_tags`.
    Items with a posterior of at most a tenth of the threshold pass nothing on to their
    children. The estimate may therefore be too small, and items with an exact posterior
    above the threshold may be missing.

    A sentence with a parse keeps one: where the items that reach the threshold do not
    form a tree, it is lowered until they do.
    """

    def __init__(self, grammar, threshold=6e-4, *, binarized=False, max_memory=2**31):
        arrays = grammar.arrays
        self.grammar = grammar
        self.threshold = threshold or 0.0
        # Kernels take it as a 64-bit integer.
        self.max_memory = min(max_memory, 2**62)
        if self.threshold and arrays.n_states.max(initial=1) > 1:
            raise ValueError(
                "charts are pruned by a grammar with one latent state per nonterminal, "
                f"got up to {arrays.n_states.max()}; pass prune=None for full charts"
            )
        if self.threshold:
            weight, lexical, root = arrays.binary, arrays.lexical, arrays.root
            for name in ("binary", "lexical", "root"):
                if getattr(arrays, name).min(initial=0.0) < 0.0:
                    raise ValueError(
                        f"the pruning grammar has negative {name} parameters"
                    )
        else:
            # Read-only like the arrays of a grammar, so that kernels are compiled once.
            weight = read_only(np.ones(len(arrays.rule_parent)))
            lexical = read_only(np.ones(len(arrays.lex_label)))
            root = np.ones(len(arrays.root_label))
        self.rules = rule_tables(arrays, weight)
        self.tables = coarse_tables(arrays, weight)
        n_labels = len(arrays.n_states)
        self._root = np.zeros(n_labels)
        self._root[arrays.root_label] = root
        self.unknown_weight = unknown_weights(arrays)
        unknown = np.bincount(
            arrays.lex_label,
            weights=lexical
            * np.repeat(self.unknown_weight, np.diff(arrays.word_offset)),
            minlength=n_labels,
        )
        self.tag_names = {}
        tag_of_label = np.full(n_labels, -1, dtype=np.int32)
        for label in np.unique(arrays.lex_label).tolist():
            tag = lowest_label(grammar.nonterminals[label], binarized)
            tag_of_label[label] = self.tag_names.setdefault(tag, len(self.tag_names))
        any_word = np.bincount(arrays.lex_label, lexical, minlength=n_labels)
        self.tag_of_label = tag_of_label
        lexicon = TagLexicon(
            arrays.word_offset,
            arrays.lex_label,
            lexical,
            unknown,
            any_word,
            tag_of_label,
        )
        self._counts = expected_label_counts(arrays, weight, root)
        if self.threshold:
            neighbours = neighbouring_tags(arrays, tag_of_label, self._counts)
        else:
            neighbours = Neighbours(np.zeros(0), *np.zeros((3, 0, 0)))
        self._grammar = PruningGrammar(self.tables, lexicon, neighbours, self._root)

    def encode_tags(self, treebank):
        """Translate the given tags of all tokens, -1 where there is none."""
        tags, place = np.unique(treebank.tag, return_inverse=True)
        known = np.full(len(tags), -1, dtype=np.int32)
        for i in np.flatnonzero(tags >= 0).tolist():
            name = lowest_label(treebank.labels[tags[i]], treebank.binarized)
            known[i] = self.tag_names.get(name, -1)
        return known[place]

    def chart(self, tokens, name="the sentence", threshold=None):
        """Make the chart of one sentence.

        Parameters
        ----------
        tokens : Tokens
            Words in ids of the pruner's grammar, tags from :meth:`encode_tags`.
        name : str
            Name of the sentence in error messages.
        threshold : float, default=None
            In place of the threshold of the pruner, if that is not 0.

        Returns
        -------
        PrunedChart
        """
        n = len(tokens.word)
        _, as_unknown = self._leaves(tokens, name)
        threshold = self.threshold if threshold is None else threshold
        likely = live = self._live(tokens, threshold)
        while True:
            forest = None if live is None else self._forest(n, live, threshold, name)
            if forest is not None or threshold == 0.0:
                break
            # Either pruning cut all trees, or the sentence has none.
            threshold = threshold * _LOWER if threshold > _LOWEST else 0.0
            live = self._live(tokens, threshold)
            likely = live if likely is None else likely
        if live is None and self.threshold:
            forest = self._any_forest(n, tokens, name)
        return PrunedChart(n, forest, as_unknown, tokens, likely)

    def _any_forest(self, n, tokens, name):
        """Connect all items that can be derived, whatever their values.

        The values of a sentence can differ by more than floating point can hold.
        """
        live = self._live(tokens, 0.0, full=True)
        try:
            return None if live is None else self._forest(n, live, 0.0, name)
        except ChartMemoryError:
            return None

    def live_items(self, tokens, name="the sentence"):
        """Return the items of one sentence with their values.

        Parameters
        ----------
        tokens, name
            As in :meth:`chart`.

        Returns
        -------
        LiveItems or None
            None where the sentence has no parse.
        """
        n = len(tokens.word)
        self.check_memory(self._bytes(n), n, name)
        live = self._live(tokens, self.threshold)
        return self._live(tokens, 0.0) if live is None else live

    def _limits(self, threshold, full):
        shares = (threshold * x for x in (_BEAM, _ESTIMATE, _FLOOR))
        return Thresholds(*shares, float(threshold), full)

    def _live(self, tokens, threshold, *, full=None):
        """Return the items that reach the threshold, None where no mass is left."""
        full = self.threshold == 0.0 if full is None else full
        n_words = np.array([len(tokens.word)])
        live, _ = self._live_rows(n_words, tokens, threshold, full)
        return live if live.total[0] > 0.0 else None

    def _live_rows(self, n_words, tokens, threshold, full):
        """Return the items of sentences, and the words that are treated as unknown."""
        skipped = self._bytes(n_words) > self.max_memory
        as_unknown = np.zeros(len(tokens.word), dtype=np.bool_)
        limits = self._limits(threshold, full)
        args = (n_words, tokens, skipped, self._grammar, limits, as_unknown)
        return live_rows(*args), as_unknown

    def _forest(self, n, live, threshold, name):
        """Connect the live items; None where they make no tree."""
        n_words = np.array([n])
        fits, forest = self._connected(n_words, live, threshold)
        if not fits[0]:
            self.check_memory(self.max_memory + 1, n, name)
        return forest if self._has_root(forest)[0] else None

    def _connected(self, n_words, live, threshold):
        smallest = threshold * _RULE_SHARE
        return build_forest(n_words, live, self.rules, smallest, self.max_memory)

    def _has_root(self, forest):
        """Whether each sentence has an item that can be a root."""
        whole = forest.row_span[1:] - 1
        first, last = forest.item_offset[whole], forest.item_offset[whole + 1]
        is_root = np.append(0, np.cumsum(self._root[forest.item_label] > 0.0))
        return is_root[last] > is_root[first]

    def rows(self, n_words, tokens, *, connected=True):
        """Make the charts of several sentences.

        Parameters
        ----------
        n_words : ndarray of int64, shape (n_rows,)
            Number of words of each sentence.
        tokens : Tokens
            The sentences, one after the other.
        connected : bool, default=True
            Whether derivations are needed, and not only live items.

        Returns
        -------
        PrunedRows
        """
        live, as_unknown = self._live_rows(n_words, tokens, self.threshold, False)
        forest, has_tree = None, live.total > 0.0
        if connected:
            _, forest = self._connected(n_words, live, self.threshold)
            has_tree = self._has_root(forest)
        return PrunedRows(n_words, live, forest, as_unknown, tokens, has_tree)

    def _bytes(self, n):
        """Return the bytes that sentences of n words take before items are known."""
        tables = self.tables
        per_span = 28 * len(tables.wide_label) + 80
        per_word = 16 * len(self._root) + 40 * len(tables.pi.prob)
        return n * (n + 1) // 2 * per_span + n * per_word

    def _leaves(self, tokens, name="the sentence"):
        n = len(tokens.word)
        self.check_memory(self._bytes(n), n, name)
        return self._lexical_values(tokens)

    def _lexical_values(self, tokens):
        n = len(tokens.word)
        leaf = np.zeros((n, len(self._root)))
        as_unknown = np.zeros(n, dtype=np.bool_)
        fill_tags(tokens, self._grammar.lexicon, leaf, as_unknown)
        return leaf, as_unknown

    def flat_labels(self, tokens):
        """Labels of a flat tree over a sentence without a parse.

        Parameters
        ----------
        tokens
            As in :meth:`chart`.

        Returns
        -------
        root : int
            The likeliest root that can stand over several words; where there is none,
            the likeliest root over one word.
        wide : bool
            Whether the root can stand over several words.
        leaves : ndarray of int32
            The likeliest label over each word.
        """
        leaf, _ = self._lexical_values(tokens)
        likeliest = np.argmax(leaf * self._counts, axis=1)
        root = np.zeros_like(self._root)
        root[self.tables.wide_label] = self._root[self.tables.wide_label]
        wide = bool(root.any())
        likeliest_root = int(np.argmax(root if wide else self._root))
        return likeliest_root, wide, likeliest.astype(np.int32)

    def check_memory(self, needed, n, name):
        """Raise ChartMemoryError if a chart needs more than `max_memory` bytes.

        Where the system has less, raise MemoryError now: compiled code that fails to
        allocate memory does not free what it has allocated before.
        """
        if needed <= self.max_memory:
            if needed > _LARGE:
                np.empty(needed, dtype=np.uint8)
            return
        advice = (
            "leave the sentence out, or raise max_memory"
            if self.threshold
            else "switch pruning on (prune=6e-4), leave the sentence out, or raise "
            "max_memory"
        )
        raise ChartMemoryError(
            f"the chart of {name} ({n} words) needs at least {needed:,} bytes, more "
            f"than max_memory={self.max_memory:,}; {advice}"
        )


def _sorted_by_key(key, n_keys, *columns):
    """Sort columns by a key; return the offsets of each key and the columns."""
    order = np.argsort(key, kind="stable")
    begin = offsets(np.bincount(key, minlength=n_keys))
    return begin, *(np.ascontiguousarray(column[order]) for column in columns)


def rule_tables(arrays, weight):
    """List the rules of a grammar by the pair of their children.

    Parameters
    ----------
    arrays : GrammarArrays
        The grammar.
    weight : ndarray of float64, shape (n_rules,)
        One weight per rule.

    Returns
    -------
    RuleTables
    """
    n_labels = np.int64(max(len(arrays.n_states), 1))
    keys = arrays.rule_left.astype(np.int64) * n_labels + arrays.rule_right
    pairs, pair_of_rule = np.unique(keys, return_inverse=True)
    left, right = (ids.astype(np.int32) for ids in np.divmod(pairs, n_labels))
    begin, rules = _sorted_by_key(
        pair_of_rule, len(pairs), np.arange(len(keys), dtype=np.int32)
    )
    n_slots = 4
    while n_slots < 2 * len(pairs):
        n_slots *= 2
    slots = np.full(n_slots, -1, dtype=np.int32)
    fill_pair_slots(left, right, slots)
    return RuleTables(
        len(arrays.n_states),
        arrays.rule_parent,
        weight,
        left,
        right,
        begin,
        rules,
        slots,
    )


def coarse_tables(arrays, probabilities):
    """Pack the rules of a plain PCFG by the kind of their children.

    Parameters
    ----------
    arrays : GrammarArrays
        Symbols and rules.
    probabilities : ndarray of float64, shape (n_rules,)
        One weight per rule.

    Returns
    -------
    CoarseTables
    """
    n_labels = len(arrays.n_states)
    parent, left, right = arrays.rule_parent, arrays.rule_left, arrays.rule_right
    wide_label = np.unique(parent).astype(np.int32)
    wide = _places(wide_label, n_labels)
    n_wide = len(wide_label)
    is_wide = wide >= 0
    is_tag = np.zeros(n_labels, dtype=bool)
    is_tag[arrays.lex_label] = True

    def rules(chosen):
        return wide[parent[chosen]], left[chosen], right[chosen], probabilities[chosen]

    a, b, c, p = rules(is_wide[left] & is_wide[right])
    children, pair = np.unique(
        np.stack([wide[b], wide[c]]), axis=1, return_inverse=True
    )
    pair = pair.ravel().astype(np.int32)
    lefts, rights = np.unique(children[0]), np.unique(children[1])
    left_place, right_place = _places(lefts, n_wide), _places(rights, n_wide)
    children = left_place[children[0]], right_place[children[1]]
    number = np.full((len(lefts), len(rights)), children[0].size, dtype=np.uint32)
    number[children] = np.arange(children[0].size)
    begin, *children = _sorted_by_key(children[0], len(lefts), *children)
    pairs = ChildPairs(begin, *(x.astype(np.uint32) for x in children), number)
    ii = RulesByPair(*_sorted_by_key(pair, len(pairs.left), a, p))
    up = RulesByParent(*_sorted_by_key(a, n_wide, pair, p))
    a, b, c, p = rules(is_tag[left] & is_wide[right])
    pi = RulesByChild(*_sorted_by_key(b, n_labels, wide[c], a, p))
    a, b, c, p = rules(is_wide[left] & is_tag[right])
    ip = RulesByChild(*_sorted_by_key(c, n_labels, wide[b], a, p))
    a, b, c, p = rules(is_tag[left] & is_tag[right])
    pp = RulesByChild(*_sorted_by_key(b, n_labels, c, a, p))
    return CoarseTables(wide_label, left_place, right_place, pairs, ii, up, pi, ip, pp)


def _places(labels, n_labels):
    """Return the position of each label in a list, -1 for those not in it."""
    place = np.full(n_labels, -1, dtype=np.int32)
    place[labels] = np.arange(len(labels), dtype=np.int32)
    return place
