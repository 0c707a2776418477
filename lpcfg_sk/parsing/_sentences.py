"""Charts of all sentences of a treebank, their probabilities and marginals."""

import copy

import numpy as np
import pandas as pd

from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._kernels._coarse_words import Tokens
from lpcfg_sk._parallel import cut_by_work, map_chunks, run_apart
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ChartMemoryError, ParseFailureWarning
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._pruning import ChartPruner

#: Sentences of more words can take seconds.
LONG = 200

#: Cubed sentence lengths in one chunk of parallel work.
_CHUNK_WORK = 200_000

# Tokens of the unknown word that are added to each word of a sentence without a parse.
_OPEN_CLASS_SHARE = 0.01

# Part of the threshold at which probabilities and marginals that are given to users are
# computed: 3e-12 by default, where WSJ dev has errors of 1e-8.
_PRECISE = 5e-9


def map_sentences(func, treebank, *, n_jobs=None):
    """Return ``[func(row) for each row]``, rows in parallel threads.

    Parameters
    ----------
    func : callable
        Called with a row number.
    treebank : Treebank
        Sentences.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    list
    """

    def run(begin, end):
        return [func(row) for row in range(begin, end)]

    return map_row_ranges(run, treebank, n_jobs=n_jobs)


def map_row_ranges(run, treebank, *, n_jobs=None):
    """Return what ``run(begin, end)`` lists for ranges of rows, in parallel threads.

    Parameters
    ----------
    run : callable
        Called with the first row and the one after the last; returns one result per
        row.
    treebank, n_jobs
        As in :func:`map_sentences`.

    Returns
    -------
    list
    """
    lengths = treebank.lengths

    def run_chunk(begin, end):
        if lengths[begin:end].max() > LONG:
            return run_apart(run, begin, end)
        return run(begin, end)

    chunks = cut_by_work(lengths.astype(float) ** 3, _CHUNK_WORK)
    parts = map_chunks(run_chunk, chunks, n_jobs=n_jobs)
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
        Which labels a word with a given tag may take; None where given tags are
        followed to the letter, as without `open_class`.
    precise : bool, default=False
        Whether probabilities and marginals themselves are wanted, and not only trees:
        the threshold of the pruner is then lowered by the factor 5e-9. A sentence
        whose chart then takes too much memory is computed with the threshold itself,
        with a warning.
    strict_tags : bool, default=False
        Whether labels of other tags are only open to a sentence that has no tree
        without them.
    lenient : bool, default=False
        Whether a sentence whose chart takes too much memory counts as one without a
        parse, with a warning.

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
        precise=False,
        strict_tags=False,
        lenient=False,
    ):
        self.model = model
        self.exact = model if exact is None else exact
        self.quick = quick
        self.open_class = open_class
        self.precise = precise
        self.strict_tags = strict_tags
        self.lenient = lenient
        self._imprecise, self._unfit = {}, {}
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
            self._shares = np.array(tag_backoff.shares(self.treebank))
            self._other = tag_backoff.other

    def _coarse(self, row, end=None):
        """Return the tokens of a row, or of several, in ids of the pruner."""
        end = row + 1 if end is None else end
        own = slice(*self.treebank.token_offsets[[row, end]])
        any_word, unknown = self._shares
        return Tokens(
            self._coarse_words[own],
            self.tags[own],
            any_word[own],
            unknown[own],
            self._other,
        )

    def widen(self, row):
        """Let the words of a row without a parse be open-class words, too.

        Unlikely tags are left out of the lexicon where words have classes. Returns
        False where they have none, or where this would change nothing.
        """
        own = slice(*self.treebank.token_offsets[row : row + 2])
        has_classes = self.treebank.words.backoff is not None
        if not (self.open_class and has_classes) or self._shares[:, own].any():
            return False
        self._shares[1, own] = _OPEN_CLASS_SHARE
        return True

    def deeper(self):
        """Return charts of the same sentences with a threshold far below `prune`.

        A sentence whose chart then takes too much memory has that of `prune`.
        """
        charts = copy.copy(self)
        charts.precise, charts._imprecise = True, {}
        return charts

    def pruned(self, row):
        """Return the pruned chart of a row."""
        return self._first_that_fits(row, lambda pruned: pruned)

    def _first_that_fits(self, row, use):
        """Return ``use(pruned chart)`` for the lowest threshold whose chart fits."""
        threshold = self.model.pruner.threshold
        if self.precise and threshold:
            try:
                return use(self._pruned(row, threshold * _PRECISE))
            except ChartMemoryError as error:
                result = use(self._pruned(row, threshold))
                self._imprecise[row] = error
                return result
        return use(self._pruned(row, threshold))

    def _pruned(self, row, threshold):
        tokens, name = self._coarse(row), f"row {row}"
        if self.strict_tags and tokens.other > 0.0 and tokens.tag.max() >= 0:
            strict = tokens._replace(other=0.0)
            pruned = self.model.pruner.chart(strict, name, threshold)
            if pruned.forest is not None:
                return pruned
        return self.model.pruner.chart(tokens, name, threshold)

    def map_rows(self, func, *, n_jobs=None):
        """Return ``[func(row) for each row]``, in parallel threads.

        Parameters
        ----------
        func : callable
            Called with a row number.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        list

        Warns
        -----
        RuntimeWarning
            If charts took too much memory: once for all rows.
        """
        results = map_sentences(func, self.treebank, n_jobs=n_jobs)
        self.warn_of_memory()
        return results

    def warn_of_memory(self):
        """Issue one warning about all charts so far that took too much memory."""
        for errors, what in (
            (
                self._imprecise,
                "probabilities are therefore computed with "
                f"prune={self.model.pruner.threshold}, and may be off by several "
                "percent",
            ),
            (self._unfit, "they have no answer"),
        ):
            if errors:
                warn_caller(
                    f"the charts of {len(errors)} of {len(self.treebank)} sentences do "
                    f"not fit; {what}. The first: {errors[min(errors)]}",
                    RuntimeWarning,
                )

    def pruned_rows(self, begin, end, *, connected=True):
        """Return the pruned charts of a range of rows, see :meth:`ChartPruner.rows`."""
        n_words = np.diff(self.treebank.token_offsets[begin : end + 1])
        tokens = self._coarse(begin, end)
        return self.model.pruner.rows(n_words, tokens, connected=connected)

    def posteriors(self, begin, end, pruned):
        """Return posteriors of the pruned charts, see :meth:`ChartModel.posteriors`."""
        words = self._words[slice(*self.treebank.token_offsets[[begin, end]])]
        return self.model.posteriors(pruned, words)

    def live_items(self, row):
        """Return the items of a row under the pruner, None without a parse."""
        return self.model.pruner.live_items(self._coarse(row), f"row {row}")

    def last_resort(self, row):
        """Return the labels of a flat tree, see :meth:`ChartPruner.flat_labels`."""
        return self.model.pruner.flat_labels(self._coarse(row))

    def chart(self, row, *, pruned=None, outside=True):
        """Return the filled chart of a row, None where it has no parse."""
        begin, end = self.treebank.token_offsets[row : row + 2]
        if begin == end:
            return None
        if pruned is not None:
            return self._filled(row, pruned, outside)
        try:
            return self._first_that_fits(
                row, lambda pruned: self._filled(row, pruned, outside)
            )
        except ChartMemoryError as error:
            if not self.lenient:
                raise
            self._unfit[row] = error
            return None

    def _filled(self, row, pruned, outside):
        if pruned.forest is None or (pruned.as_unknown.any() and not self.open_class):
            return None
        begin, end = self.treebank.token_offsets[row : row + 2]
        sentence = (pruned, self._words[begin:end], f"row {row}")
        chart = self.model.inside_outside(*sentence, outside=outside)
        in_doubt = not (chart.in_range and chart.usable)
        if self.exact is not self.model and in_doubt:
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

    rows = charts.map_rows(log_prob, n_jobs=n_jobs)
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

    def empty():
        return item_frame(0, np.zeros(0, np.int32), names[:0], np.zeros(0))

    def frame(row):
        chart = charts.chart(row)
        if chart is None:
            return empty()
        if normalize and not chart.usable:
            return None
        if normalize:
            values = chart.posterior
        else:
            # Without their scale the values may underflow to 0.
            values = np.ldexp(chart.marginal, int(chart.exponent[-1]))
        forest = chart.forest
        return item_frame(chart.n, forest.item_span, names[forest.item_label], values)

    frames = charts.map_rows(frame, n_jobs=n_jobs)
    undefined = [row for row, found in enumerate(frames) if found is None]
    if undefined:
        warn_caller(
            f"{len(undefined)} of {len(frames)} sentences have the value zero, by "
            "which marginals cannot be divided; their tables are empty (the "
            f"first is row {undefined[0]})",
            ParseFailureWarning,
        )
    return [empty() if found is None else found for found in frames]


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
