"""Inside-outside of sentences under an L-PCFG."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk._kernels import _chart_inside as kernel
from lpcfg_sk._kernels._chart_forest import Forest
from lpcfg_sk._kernels._chart_inside import ItemVectors, Lexicon, Tensors
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._kernels._coarse_inside import Tokens
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import find_keys, offsets, ragged_indices, read_only
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.treebank import rule_keys

#: Cubed sentence lengths in one chunk of parallel work.
_CHUNK_WORK = 200_000


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
    """

    n: int
    forest: Forest
    vector_offset: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    exponent: np.ndarray
    total: float
    marginal: np.ndarray

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
    """A grammar whose rules and nonterminals are numbered as those of a pruner.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar. Where it does not share the nonterminals and rules of the pruner,
        they are matched by name.
    pruner : ChartPruner
        Decides which chart items exist.
    dtype : dtype, default=np.float64
        Type of the vectors. Single precision takes two thirds of the time. Without
        negative parameters it is right to six digits; with them, cancellation loses up
        to 0.02 of a posterior on treebanks.

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
        # One kind of arrays, so that kernels are compiled once per precision.
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
        offset = offsets(self.n_states[forest.item_label])
        n_bytes = sum(array.nbytes for array in forest) + 24 * offset[-1]
        self.pruner.check_memory(n_bytes, n, name)
        words = np.where(pruned.as_unknown, np.int32(-1), words)
        tokens = pruned.tokens._replace(word=words)
        alpha = ItemVectors(
            offset,
            np.zeros(offset[-1], dtype=self.dtype),
            np.zeros(len(forest.item_offset) - 1, dtype=np.int32),
        )
        kernel.fill_leaves(forest, tokens, self.lexicon, alpha)
        kernel.inside(forest, n, self.tensors, alpha)
        beta = np.zeros(offset[-1], dtype=self.dtype)
        total = 0.0
        for item in range(*forest.item_offset[-2:]):
            begin = self.root_offset[forest.item_label[item]]
            if begin >= 0:
                own = slice(offset[item], offset[item + 1])
                beta[own] = self.root[begin : begin + own.stop - own.start]
                total += float(alpha.values[own] @ beta[own])
        marginal = np.zeros(len(forest.item_label))
        if outside:
            kernel.outside(forest, n, self.tensors, alpha, beta)
            kernel.marginals(alpha, beta, marginal)
        return Chart(
            n, forest, offset, alpha.values, beta, alpha.exponent, total, marginal
        )


def _same_rules(grammar, other):
    """Whether two grammars number the same nonterminals and rules alike."""
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


def map_sentences(func, treebank, *, n_jobs=None):
    """Return ``[func(row) for each row]``, rows in parallel threads.

    Parameters
    ----------
    func : callable
        Called with a row number.
    treebank : Treebank
        Sentences, none of them empty.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    list
    """
    lengths = treebank.lengths
    if len(lengths) and lengths.min() == 0:
        row = int(np.argmin(lengths))
        raise ValueError(f"row {row} is an empty sentence; leave it out")

    def run(begin, end):
        return [func(row) for row in range(begin, end)]

    chunks = cut_by_work(lengths.astype(float) ** 3, _CHUNK_WORK)
    parts = map_chunks(run, chunks, n_jobs=n_jobs)
    return [result for part in parts for result in part]


class SentenceCharts:
    """The charts of all rows of a treebank, made on demand.

    Parameters
    ----------
    model : ChartModel
        The grammar and its pruner.
    treebank : Treebank
        Sentences; their trees are ignored.
    open_class : bool, default=True
        Whether a word that the grammar does not know, or not with its given tag, is
        treated as an open-class word. Otherwise its sentence has no tree.
    quick : bool, default=False
        Whether values that are right up to about the threshold of the pruner suffice.
    exact : ChartModel, default=None
        The same grammar in double precision, for sentences that `model` in single
        precision cannot hold.
    tag_backoff : TagBackoff, default=None
        What given tags leave open; None where they are followed to the letter, as
        without `open_class`.
    strict_tags : bool, default=False
        Whether labels of other tags are only open to a sentence that has no tree
        without them.

    Attributes
    ----------
    tags : ndarray of int32, shape (n_tokens,)
        Given tags in ids of the pruner, -1 for none.
    n_unknown_tags : int
        Number of given tags that no nonterminal of the grammar has; they are ignored.
    """

    def __init__(
        self,
        model,
        treebank,
        *,
        open_class=True,
        quick=False,
        exact=None,
        tag_backoff=None,
        strict_tags=False,
    ):
        self.model = model
        self.exact = model if exact is None else exact
        self.quick = quick
        self.open_class = open_class
        self.strict_tags = strict_tags
        self.treebank = treebank.unparsed()
        self._words = model.grammar.encode(self.treebank)[1]
        self._coarse_words = (
            self._words
            if model.shares_words
            else model.pruner.grammar.encode(self.treebank)[1]
        )
        self.tags = model.pruner.encode_tags(self.treebank)
        given = self.treebank.tag >= 0
        self.n_unknown_tags = int(np.sum(given & (self.tags < 0)))
        self._shares, self._other = np.zeros((2, len(self.tags))), 0.0
        if tag_backoff is not None and open_class and given.any():
            self._shares = tag_backoff.shares(self.treebank)
            self._other = tag_backoff.other

    def _coarse(self, row):
        """Return the tokens of a row in ids of the pruner."""
        own = slice(*self.treebank.token_offsets[row : row + 2])
        any_word, unknown = self._shares
        return Tokens(
            self._coarse_words[own],
            self.tags[own],
            any_word[own],
            unknown[own],
            self._other,
        )

    def pruned(self, row):
        """Return the pruned chart of a row."""
        tokens, name = self._coarse(row), f"row {row}"
        if self.strict_tags and tokens.other > 0.0 and tokens.tag.max() >= 0:
            pruned = self.model.pruner.chart(tokens._replace(other=0.0), name)
            if pruned.forest is not None:
                return pruned
        return self.model.pruner.chart(tokens, name)

    def live_items(self, row):
        """Return the items of a row under the pruner, None without a parse."""
        return self.model.pruner.live_items(self._coarse(row), f"row {row}")

    def last_resort(self, row):
        """Return the labels of a flat tree, see :meth:`ChartPruner.flat_labels`."""
        return self.model.pruner.flat_labels(self._coarse(row))

    def chart(self, row, *, pruned=None, outside=True):
        """Return the filled chart of a row, None where it has no parse."""
        pruned = self.pruned(row) if pruned is None else pruned
        if pruned.forest is None or (pruned.as_unknown.any() and not self.open_class):
            return None
        begin, end = self.treebank.token_offsets[row : row + 2]
        sentence = (pruned, self._words[begin:end], f"row {row}")
        chart = self.model.inside_outside(*sentence, outside=outside)
        if self.exact is not self.model and not chart.usable:
            chart = self.exact.inside_outside(*sentence, outside=outside)
        return chart


def full_charts(grammar, treebank, max_memory=2**31):
    """Return the unpruned charts of a treebank under a grammar."""
    pruner = ChartPruner(grammar, None, max_memory=max_memory)
    return SentenceCharts(ChartModel(grammar, pruner), treebank, open_class=False)


def sentence_log_prob(grammar, X, *, max_memory=2**31, n_jobs=None):
    """Log probability of each sentence under a grammar, over full charts.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar.
    X : Treebank
        Sentences.
    max_memory : int, default=2**31
        Most bytes that one chart may take.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (n_sentences,)
        -inf where there is no tree or the sum is not positive.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG, Treebank
    >>> from lpcfg_sk.parsing import sentence_log_prob
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[1.0]]]},
    ...     lexical={("A", "x"): [0.25], ("A", "y"): [0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> sentence_log_prob(grammar, Treebank([["x", "y"]])).round(4)
    array([-1.674])
    """
    return chart_log_probs(full_charts(grammar, X, max_memory), n_jobs=n_jobs)


def chart_log_probs(charts, *, n_jobs=None):
    """Log probability of each row of sentence charts."""

    def log_prob(row):
        chart = charts.chart(row, outside=False)
        return -np.inf if chart is None else chart.log_prob

    rows = map_sentences(log_prob, charts.treebank, n_jobs=n_jobs)
    return np.array(rows, dtype=np.float64)


def marginals(grammar, X, *, normalize=False, max_memory=2**31, n_jobs=None):
    """Marginals μ(a, i, j) of each sentence, over full charts.

    Parameters
    ----------
    grammar : LPCFG
        Any grammar.
    X : Treebank
        Sentences.
    normalize : bool, default=False
        Whether to divide by the value of the sentence.
    max_memory : int, default=2**31
        Most bytes that one chart may take.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    list of DataFrame
        One per sentence, with the columns label, start, end, marginal.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG, Treebank
    >>> from lpcfg_sk.parsing import marginals
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[1.0]]]},
    ...     lexical={("A", "x"): [0.25], ("A", "y"): [0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> marginals(grammar, Treebank([["x", "y"]]), normalize=True)[0]
      label  start  end  marginal
    0     S      0    2       1.0
    1     A      0    1       1.0
    2     A      1    2       1.0
    """
    charts = full_charts(grammar, X, max_memory)
    return chart_marginals(charts, normalize=normalize, n_jobs=n_jobs)


def chart_marginals(charts, *, normalize=False, n_jobs=None):
    """Marginals of each row of sentence charts, as DataFrames."""
    names = np.array(charts.model.pruner.grammar.nonterminals, dtype=object)

    def frame(row):
        chart = charts.chart(row)
        if chart is None:
            return item_frame(0, np.zeros(0, np.int32), names[:0], np.zeros(0))
        if normalize:
            values = chart.posterior
        else:
            # Without their scale the values may underflow to 0.
            values = np.ldexp(chart.marginal, int(chart.exponent[-1]))
        forest = chart.forest
        return item_frame(chart.n, forest.item_span, names[forest.item_label], values)

    return map_sentences(frame, charts.treebank, n_jobs=n_jobs)


def item_frame(n, span, labels, values):
    """Put items into a DataFrame, from left to right, wide spans first."""
    start, end = span_bounds(n)
    frame = pd.DataFrame(
        {
            "label": pd.array(labels, dtype="string"),
            "start": start[span],
            "end": end[span],
            "marginal": values,
        }
    )
    order = np.lexsort((-frame["end"], frame["start"]))
    return frame.iloc[order].reset_index(drop=True)
