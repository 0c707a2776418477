"""Inside-outside of sentences under an L-PCFG."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels import _chart_inside as kernel
from lpcfg_sk._kernels._chart_forest import Forest
from lpcfg_sk._kernels._chart_inside import ItemVectors, Lexicon, Tensors
from lpcfg_sk._ragged import find_keys, offsets, ragged_indices, read_only
from lpcfg_sk.parsing._log_charts import log_inside_outside
from lpcfg_sk.treebank import rule_keys

# Fractions of the range of exponents. A product of five factors above the first one
# cannot underflow,
_FAR = 0.19
# and outside values below the inverse of the second one make any underflow harmless.
_HARMLESS = 0.75


class Chart(NamedTuple):
    """Inside and outside vectors of the items of a sentence.

    Attributes
    ----------
    n : int
        Number of words.
    forest : Forest
        The items and their derivations.
    vector_offset : ndarray of int64
        Item t has the vectors at ``vector_offset[t]:vector_offset[t + 1]``.
    inside, outside : ndarray of float64
        Scaled vectors, see ``lpcfg_sk._kernels._chart_inside``.
    exponent : ndarray of int32
        Power of two of each span.
    total : float
        Scaled value of the sentence; the true one is ``total * 2 ** exponent[-1]``.
    marginal : ndarray of float64
        Scaled marginals μ of the items, in the scale of `total`.
    in_range : bool
        Whether underflow changed the vectors by no more than rounding does. `total` and
        `marginal` are right in double precision even where it changed them more.
    """

    n: int
    forest: Forest
    vector_offset: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    exponent: np.ndarray
    total: float
    marginal: np.ndarray
    in_range: bool

    @property
    def log_prob(self):
        """Log probability of the sentence; -inf where it is not positive."""
        if not self.total > 0.0:
            return -np.inf
        return np.log(self.total) + self.exponent[-1] * np.log(2.0)

    @property
    def posterior(self):
        """Marginals divided by the value of the sentence."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self.marginal / self.total

    @property
    def usable(self):
        """Whether the posteriors are finite."""
        return self.total != 0.0 and bool(np.isfinite(self.posterior).all())


class ChartModel:
    """A grammar whose rules and nonterminals have the numbers of a pruner.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar. Where it does not share the nonterminals and rules of the pruner,
        they are matched by name.
    pruner : ChartPruner
        Decides which chart items exist.
    dtype : dtype, default=np.float64
        Type of the vectors. Single precision takes two thirds of the time. Without
        negative parameters it is accurate to six digits; with them, cancellation costs
        up to 0.02 of a posterior on treebanks.

    Attributes
    ----------
    shares_words : bool
        Whether the words of a sentence have the same ids for the grammar and for the
        pruner.
    n_states : ndarray of int64, shape (n_nonterminals,)
        Number of states of each nonterminal of the pruner.
    tensors : Tensors
        Tensors of the rules of the pruner.
    lexicon : Lexicon
        Lexical vectors, by the words of `grammar` and the nonterminals of the pruner.
    root_offset : ndarray of int64, shape (n_nonterminals,)
        Where the vector of each nonterminal begins in `root`; -1 for none.
    root : ndarray of float
        Root vectors.
    """

    def __init__(self, grammar, pruner, dtype=np.float64):
        arrays = grammar.arrays
        self.grammar = grammar
        self.pruner = pruner
        if _same_rules(grammar, pruner.grammar):
            label = np.arange(len(arrays.n_states))
            rule_offset = arrays.rule_offset[:-1]
            lexicon = arrays
        else:
            known = {a: i for i, a in enumerate(pruner.grammar.nonterminals)}
            label = np.array([known.get(a, -1) for a in grammar.nonterminals], np.int64)
            rule_offset = _rule_offset_by_name(arrays, pruner.grammar.arrays, label)
            lexicon = _lexicon_by_name(arrays, label)
        self.shares_words = (
            grammar.words == pruner.grammar.words
            and grammar.unknown_word == pruner.grammar.unknown_word
        )
        n_labels = len(pruner.grammar.nonterminals)
        # Nonterminals that the grammar lacks have no states and no items.
        self.n_states = np.zeros(max(n_labels, 1), dtype=np.int64)
        self.n_states[label[label >= 0]] = arrays.n_states[label >= 0]
        self.root_offset = np.full(len(self.n_states), -1, dtype=np.int64)
        roots = label[arrays.root_label]
        self.root_offset[roots[roots >= 0]] = arrays.root_offset[:-1][roots >= 0]
        self.dtype = dtype
        self.root = arrays.root.astype(dtype, copy=False)
        # All arrays are read-only, so that kernels are compiled once per precision.
        self.tensors = Tensors(
            read_only(rule_offset),
            read_only(arrays.binary.astype(dtype, copy=False)),
            int(arrays.n_states.max(initial=1)) ** 2,
        )
        unknown_offset, unknown = self._sum_of_words(lexicon, self._unknown_weight())
        _, any_word = self._sum_of_words(lexicon, np.ones(len(grammar.words)))
        self.lexicon = Lexicon(
            read_only(lexicon.word_offset),
            read_only(lexicon.lex_label),
            read_only(lexicon.lex_offset),
            read_only(lexicon.lexical.astype(dtype, copy=False)),
            read_only(unknown_offset),
            read_only(unknown.astype(dtype, copy=False)),
            read_only(any_word.astype(dtype, copy=False)),
            read_only(pruner.tag_of_label),
        )

    def _sum_of_words(self, lexicon, weight):
        """Return offsets and weighted sums of vectors under each nonterminal."""
        weight = np.repeat(weight, np.diff(lexicon.word_offset))
        length = np.diff(lexicon.lex_offset)
        offset = offsets(self.n_states)
        total = np.zeros(offset[-1])
        np.add.at(
            total,
            ragged_indices(offset[lexicon.lex_label], length),
            np.repeat(weight, length) * lexicon.lexical,
        )
        return offset, total

    def _unknown_weight(self):
        """Return the weights of the words that make up the unknown one, by name."""
        pruner = self.pruner
        if self.shares_words:
            return pruner.unknown_weight
        weights = pruner.unknown_weight.tolist()
        weight_of_word = dict(zip(pruner.grammar.words, weights, strict=True))
        return np.array([weight_of_word.get(x, 0.0) for x in self.grammar.words])

    def inside_outside(self, pruned, words, name="the sentence", *, outside=True):
        """Fill the chart of a sentence (figure 5).

        Parameters
        ----------
        pruned : PrunedChart
            Items, with a forest.
        words : ndarray of int32
            Words in ids of the model's grammar, -1 for unknown ones.
        name : str
            Name of the sentence in error messages.
        outside : bool, default=True
            Whether to compute outside vectors and marginals.

        Returns
        -------
        Chart
        """
        n, forest = pruned.n, pruned.forest
        self.pruner.check_memory(self._bytes(forest), n, name)
        tokens = self._tokens(pruned, words)
        alpha, roots, total = self._inside(forest, tokens)
        chart = Chart(
            n,
            forest,
            alpha.offset,
            alpha.values,
            roots.copy(),
            alpha.exponent,
            float(total[0]),
            np.zeros(len(forest.item_label)),
            True,
        )
        if not outside and self._is_far_from_underflow(chart):
            return chart
        kernel.outside(forest, self.tensors, alpha, chart.outside)
        kernel.marginals(alpha, chart.outside, chart.marginal)
        if lost_nothing(chart):
            return chart
        chart = chart._replace(in_range=False)
        if self.dtype != np.float64:
            return chart
        leaves = alpha._replace(values=np.zeros_like(alpha.values))
        kernel.fill_leaves(forest, tokens, self.lexicon, leaves)
        return in_logarithms(chart, self.tensors, leaves, roots)

    def posteriors(self, pruned, words):
        """Return the posteriors of the items of several sentences.

        Parameters
        ----------
        pruned : PrunedRows
            Items.
        words : ndarray of int32
            As in :meth:`inside_outside`.

        Returns
        -------
        posterior : ndarray of float64, shape (n_items,)
            Marginals divided by the values of the sentences; 0 in sentences that are
            not `usable`.
        usable : ndarray of bool, shape (n_rows,)
            Sentences with a tree whose values are in range.
        """
        forest = pruned.forest
        posterior = np.zeros(len(forest.item_label))
        if self._bytes(forest) > self.pruner.max_memory or not len(posterior):
            return posterior, np.zeros(len(pruned.found), dtype=bool)
        alpha, beta, total = self._inside(forest, self._tokens(pruned, words))
        kernel.outside(forest, self.tensors, alpha, beta)
        kernel.marginals(alpha, beta, posterior)
        rows = forest.item_offset[forest.row_span]
        largest = _largest_of_pieces(beta, alpha.offset[rows])
        usable = pruned.found & is_in_range(largest, total, beta.dtype)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            posterior /= np.repeat(total, np.diff(rows))
        finite = np.append(0, np.cumsum(np.isfinite(posterior)))[rows]
        usable &= np.diff(finite) == np.diff(rows)
        posterior[~np.repeat(usable, np.diff(rows))] = 0.0
        return posterior, usable

    def _bytes(self, forest):
        n_values = int(self.n_states[forest.item_label].sum())
        return sum(array.nbytes for array in forest) + 24 * n_values

    def _tokens(self, pruned, words):
        """Return the sentences in words of the model."""
        words = np.where(pruned.as_unknown, np.int32(-1), words)
        return pruned.tokens._replace(word=words)

    def _inside(self, forest, tokens):
        """Return the inside vectors, the root vectors, and the sentences' values."""
        offset = offsets(self.n_states[forest.item_label])
        alpha = ItemVectors(
            offset,
            np.zeros(offset[-1], dtype=self.dtype),
            np.zeros(len(forest.item_offset) - 1, dtype=np.int32),
        )
        kernel.fill_leaves(forest, tokens, self.lexicon, alpha)
        kernel.inside(forest, self.tensors, alpha)
        roots = np.zeros(offset[-1], dtype=self.dtype)
        total = np.zeros(len(forest.n_words))
        kernel.fill_roots(forest, self.root_offset, self.root, alpha, roots, total)
        return alpha, roots, total

    @cached_property
    def _smallest(self):
        """Smallest magnitude of a parameter of a rule that is not zero."""
        magnitude = np.abs(self.tensors.binary)
        return np.min(magnitude, where=magnitude > 0.0, initial=1.0)

    def _is_far_from_underflow(self, chart):
        """Whether no product of the inside pass can have underflowed."""
        tiny = 2.0 ** (_FAR * np.finfo(self.dtype).minexp)
        inside = np.abs(chart.inside)
        if (
            self._smallest < tiny
            or np.min(inside, where=inside > 0.0, initial=1.0) < tiny
            or abs(chart.total) < tiny
        ):
            return False
        forest, exponent = chart.forest, chart.exponent
        edge = exponent[forest.item_span[forest.edge_left]]
        edge = edge + exponent[forest.item_span[forest.edge_right]]
        span = np.repeat(exponent[forest.group_span], np.diff(forest.edge_offset))
        return np.min(edge - span, initial=0) >= np.log2(tiny)


def lost_nothing(chart):
    """Whether underflow changed a chart by less than rounding does.

    An inside value that is too small for its span is off by at most the smallest
    floating-point number. It enters the marginals times an outside value, so that
    outside values far below the inverse of that number, in units of the sentence's
    total, exclude any harm.

    Parameters
    ----------
    chart : Chart
        Inside and outside vectors of a sentence.
    """
    largest = np.abs(chart.outside).max(initial=0.0)
    return bool(is_in_range(largest, chart.total, chart.outside.dtype))


def is_in_range(largest, total, dtype):
    """Whether sentences lost nothing, by their largest outside values and totals."""
    most = 2.0 ** (-_HARMLESS * np.finfo(dtype).minexp)
    return (largest <= most * np.abs(total)) & (total != 0.0)


def _largest_of_pieces(values, begin):
    """Return the largest magnitude of ``values[begin[r]:begin[r + 1]]``, 0 for none."""
    largest = np.zeros(len(begin) - 1)
    some = begin[1:] > begin[:-1]
    largest[some] = np.maximum.reduceat(np.abs(values), begin[:-1][some])
    return largest


def in_logarithms(chart, tensors, leaves, roots):
    """Recompute the total and the marginals of a chart in logarithms.

    Parameters
    ----------
    chart : Chart
        A chart in double precision.
    tensors : Tensors
        Rules of the model.
    leaves : ItemVectors
        Lexical vectors, not scaled.
    roots : ndarray of float64
        Root vectors.

    Returns
    -------
    Chart
    """
    total, marginal = log_inside_outside(chart.forest, chart.n, tensors, leaves, roots)
    log_total, sign = total
    if sign == 0.0:
        return chart._replace(total=0.0, marginal=np.zeros_like(chart.marginal))
    exponent = chart.exponent.copy()
    exponent[-1] = np.floor(log_total / np.log(2.0))
    scaled = sign * np.exp(log_total - exponent[-1] * np.log(2.0))
    posterior = sign * marginal[1] * np.exp(marginal[0] - log_total)
    return chart._replace(exponent=exponent, total=scaled, marginal=posterior * scaled)


def _same_rules(grammar, other):
    """Whether two grammars have the same nonterminals and rules with equal numbers."""
    one, two = grammar.arrays, other.arrays
    return grammar is other or (
        grammar.nonterminals == other.nonterminals
        and np.array_equal(one.rule_parent, two.rule_parent)
        and np.array_equal(one.rule_left, two.rule_left)
        and np.array_equal(one.rule_right, two.rule_right)
    )


def _rule_offset_by_name(arrays, other, label):
    """Return where the tensor of each rule of another grammar begins, -1 for none."""
    rules = (arrays.rule_parent, arrays.rule_left, arrays.rule_right)
    keys = rule_keys(*(label[ids] for ids in rules), len(other.n_states))
    order = np.argsort(keys, kind="stable")
    place = find_keys(keys[order], other.rule_keys())
    return np.where(place >= 0, arrays.rule_offset[order[place]], -1)


def _lexicon_by_name(arrays, label):
    """Return the lexical entries of known nonterminals, renumbered and sorted."""
    n_words = len(arrays.word_offset) - 1
    word = np.repeat(np.arange(n_words), np.diff(arrays.word_offset))
    entries = np.flatnonzero(label[arrays.lex_label] >= 0)
    entry_label = label[arrays.lex_label[entries]]
    order = np.lexsort((entry_label, word[entries]))
    entries = entries[order]
    begin = arrays.lex_offset[entries]
    length = arrays.lex_offset[entries + 1] - begin
    return arrays._replace(
        word_offset=offsets(np.bincount(word[entries], minlength=n_words)),
        lex_label=entry_label[order].astype(np.int32),
        lex_offset=offsets(length),
        lexical=arrays.lexical[ragged_indices(begin, length)],
    )
