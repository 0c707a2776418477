"""The parser: from sentences to trees, flat ones where there is no parse."""

from functools import cached_property

import numpy as np

from lpcfg_sk._ragged import ragged_indices
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.parsing._bracket_marginals import (
    BracketTable,
    bracket_frame,
    bracket_marginals,
    bracket_trees,
    flat_brackets,
)
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._decoders import (
    TREE_DECODERS,
    assemble,
    best_trees,
    choose_decoder,
    distinct_trees,
    item_nodes,
    kbest_items,
    max_marginal_scores,
)
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.parsing._sentences import SentenceCharts, map_row_ranges, map_sentences
from lpcfg_sk.parsing._tags import TagBackoff
from lpcfg_sk.treebank import BARE, encode_label

#: Thresholds to try in turn for a sentence whose chart does not fit.
COARSER = (6e-4, 6e-3, 6e-2)

#: λ of minimum-Bayes-risk decoding: about half of the expected F1.
BRACKET_PENALTY = 0.43


class ChartParser:
    """Parses sentences with a grammar.

    Parameters
    ----------
    grammar : LPCFG
        The model.
    coarse : LPCFG or None
        A plain PCFG over the same symbols, which prunes, and says how likely words
        are under given tags.
    binarized : bool, default=False
        Whether the labels are those of a :class:`TreeBinarizer`, so that predicted
        trees are restored.
    decoder : str, default="auto"
        "viterbi", "max-marginal", "max-rule-product", "mbr" or "auto".
    prune : float or None, default=6e-4
        Items whose posterior under `coarse` is estimated to be smaller are left out.
    bracket_penalty : float, default=0.43
        λ of the decoder "mbr".
    max_memory : int, default=2**31
        Most bytes that one chart may take.
    """

    def __init__(
        self,
        grammar,
        coarse,
        *,
        binarized=False,
        decoder="auto",
        prune=6e-4,
        bracket_penalty=BRACKET_PENALTY,
        max_memory=2**31,
    ):
        self.grammar = grammar
        self.binarized = binarized
        self.bracket_penalty = bracket_penalty
        self.signed = grammar.arrays.is_signed
        self.decoder = choose_decoder(self.signed, decoder)
        self.prune = prune
        self.max_memory = max_memory
        pruner = ChartPruner(
            coarse if prune else grammar,
            prune,
            binarized=binarized,
            max_memory=max_memory,
        )
        self.model = ChartModel(grammar, pruner)
        self.coarse = coarse
        self.prunes_itself = bool(prune) and grammar is coarse
        self.labels = pruner.grammar.nonterminals
        self.brackets = BracketTable.from_labels(self.labels, binarized)

    def coarser(self):
        """Yield variants of :meth:`predict` with smaller and smaller charts."""
        for threshold in COARSER:
            if self.coarse is not None and threshold > (self.prune or 0.0):
                yield ChartParser(
                    self.grammar,
                    self.coarse,
                    binarized=self.binarized,
                    decoder=self.decoder,
                    prune=threshold,
                    bracket_penalty=self.bracket_penalty,
                    max_memory=self.max_memory,
                ).predict

    @cached_property
    def _single_model(self):
        """The model in single precision."""
        return ChartModel(self.grammar, self.model.pruner, np.float32)

    @cached_property
    def _tag_backoff(self):
        """Back-off of given tags; None without a plain PCFG."""
        if self.coarse is None:
            return None
        return TagBackoff(self.coarse, binarized=self.binarized)

    def charts(
        self,
        treebank,
        *,
        open_class=True,
        quick=False,
        precise=False,
        strict_tags=False,
        lenient=False,
    ):
        """Return the charts of a treebank's sentences.

        Parameters
        ----------
        treebank : Treebank
            Sentences.
        open_class : bool, default=True
            Whether sentences with unknown words have trees.
        quick : bool, default=False
            Whether marginals need only be accurate to about the threshold of the
            pruner: they are then computed in single precision, unless parameters are
            negative, or taken from the pruning pass if the grammar is its own pruner.
        precise : bool, default=False
            Whether marginals are computed with a threshold far below `prune`.
        strict_tags : bool, default=False
            Whether tags other than the given ones are allowed only in sentences that
            have no tree with the given ones.
        lenient : bool, default=False
            Whether sentences whose chart takes too much memory have no trees, instead
            of raising.

        Returns
        -------
        SentenceCharts
        """
        single = quick and not (self.signed or self.prunes_itself)
        charts = SentenceCharts(
            self._single_model if single else self.model,
            treebank,
            open_class=open_class,
            quick=quick,
            exact=self.model,
            tag_backoff=self._tag_backoff if np.any(treebank.tag >= 0) else None,
            precise=precise,
            strict_tags=strict_tags,
            lenient=lenient,
        )
        if charts.n_unknown_tags:
            one = charts.n_unknown_tags == 1
            warn_caller(
                f"{charts.n_unknown_tags} given {'tag was' if one else 'tags were'} "
                f"never seen in training and {'is' if one else 'are'} ignored",
                TreebankWarning,
            )
        return charts

    def pruned_charts(self, treebank, *, n_jobs=None):
        """Prune the charts of all sentences as :meth:`predict` does.

        Parameters
        ----------
        treebank : Treebank
            Sentences.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        pruned : list of PrunedChart
            For :meth:`predict` of this parser, or of one with the same coarse grammar
            and threshold.
        """
        charts = self.charts(treebank)
        return map_sentences(charts.pruned, charts.treebank, n_jobs=n_jobs)

    def predict(self, treebank, *, pruned=None, n_jobs=None):
        """Parse all sentences.

        Parameters
        ----------
        treebank : Treebank
            Sentences; their trees are ignored.
        pruned : list of PrunedChart, default=None
            Result of :meth:`pruned_charts`, to parse the same sentences repeatedly.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        trees : Treebank
            Trees over the same tokens, not binarised.
        failed : list of int
            Rows without a parse, which have a flat tree.
        """
        charts = self.charts(treebank, quick=self.decoder in ("mbr", "max-marginal"))
        if pruned is None:
            rows = map_row_ranges(
                lambda *rows: self._parse(charts, *rows), charts.treebank, n_jobs=n_jobs
            )
        else:
            rows = map_sentences(
                lambda row: self._alone(charts, row, pruned=pruned[row]),
                charts.treebank,
                n_jobs=n_jobs,
            )
        failed = [row for row, (_, ok) in enumerate(rows) if not ok]
        nodes = [nodes for nodes, _ in rows]
        if self.decoder == "mbr":
            trees = assemble(charts.treebank, self._names, nodes, binarized=False)
            return self._with_given_tags(trees, charts.tags), failed
        # Flat trees use labels that the grammar does not have.
        names = (*self.labels, *self._encoded_names)
        trees = assemble(charts.treebank, names, nodes, binarized=self.binarized)
        return self._with_given_tags(trees, charts.tags), failed

    def flat_trees(self, treebank):
        """Give all sentences flat trees, for which no chart is needed.

        Parameters
        ----------
        treebank : Treebank
            Sentences, none of them empty.

        Returns
        -------
        trees : Treebank
            The likeliest root over the likeliest tags of the words.
        """
        charts = self.charts(treebank)
        nodes = [
            flat_brackets(self.brackets, *charts.last_resort(row))
            for row in range(len(treebank))
        ]
        trees = assemble(charts.treebank, self._names, nodes, binarized=False)
        return self._with_given_tags(trees, charts.tags)

    def _with_given_tags(self, trees, tags):
        """Give pre-terminals the tags that came with their words.

        A tree may have been found with another tag, see :class:`TagBackoff`.
        """
        tokens = np.flatnonzero(tags >= 0)
        if not len(tokens):
            return trees
        table = {name: i for i, name in enumerate(trees.labels)}
        ids = [
            -1 if name is None else table.setdefault(name, len(table))
            for name in self.model.pruner.tag_names
        ]
        label = trees.label.copy()
        leaves = np.flatnonzero(trees.size == 1)
        label[leaves[tokens]] = np.array(ids, dtype=label.dtype)[tags[tokens]]
        return trees.replace(label=label, labels=tuple(table), check=False)

    @cached_property
    def _names(self):
        """Original labels and tags."""
        return (*self.brackets.names, *self.brackets.tag_names)

    @cached_property
    def _encoded_names(self):
        """Original labels and tags, written as labels of the grammar."""
        if not self.binarized:
            return self._names
        return [BARE if name is None else encode_label([name]) for name in self._names]

    def _parse(self, charts, begin, end):
        """Return the nodes of each row, and whether it has a parse.

        All rows are parsed together, each step of compiled code over all of them. Rows
        for which that finds no tree are then parsed one by one.
        """
        mbr = self.decoder == "mbr"
        trees = [None] * (end - begin)
        if charts.quick and self.model.pruner.threshold:
            connected = not (mbr and self.prunes_itself)
            pruned = charts.pruned_rows(begin, end, connected=connected)
            if mbr:
                brackets, found = self.brackets_of_rows(charts, begin, end, pruned)
                nodes = trees
                if found.any():
                    # The search takes time even for a long sentence without a chart.
                    nodes = bracket_trees(self.brackets, brackets, self.bracket_penalty)
            else:
                nodes, found = self._items_of_rows(charts, begin, end, pruned)
            trees = [x if ok else None for x, ok in zip(nodes, found, strict=True)]
        rows = enumerate(trees, begin)
        return [self._alone(charts, row) if x is None else (x, True) for row, x in rows]

    def _alone(self, charts, row, *, pruned=None):
        """Return the nodes of one row, and whether it has a parse."""
        mbr = self.decoder == "mbr"
        parse = self._brackets_of_row if mbr else self._items_of_row
        nodes, ok = parse(charts, row, pruned=pruned)
        if not ok and charts.widen(row):
            nodes, ok = parse(charts, row)
        return nodes, ok

    def brackets_of_rows(self, charts, begin, end, pruned):
        """Marginals of the original brackets of a range of rows.

        Parameters
        ----------
        charts : SentenceCharts
            Charts of :meth:`charts`, with `quick`.
        begin, end : int
            The rows.
        pruned : PrunedRows
            Their pruned charts.

        Returns
        -------
        brackets : Brackets
            Marginals; none in rows that were not found.
        found : ndarray of bool
            Rows with a parse. Others may have one, see :meth:`bracket_marginals`.
        """
        if self.prunes_itself:
            live, found = pruned.live, pruned.live.total > 0.0
            items = (live.row_span, live.offset, live.label, live.posterior)
        else:
            forest = pruned.forest
            posterior, found = charts.posteriors(begin, end, pruned)
            items = (forest.row_span, forest.item_offset, forest.item_label, posterior)
        brackets = bracket_marginals(self.brackets, pruned.n_words, *items)
        tags = charts.tags[slice(*charts.treebank.token_offsets[[begin, end]])]
        return self._tagged(brackets, tags), found

    def _items_of_rows(self, charts, begin, end, pruned):
        forest = pruned.forest
        if not len(forest.item_label):
            return [None] * (end - begin), np.zeros(end - begin, dtype=bool)
        posterior, usable = charts.posteriors(begin, end, pruned)
        scores = max_marginal_scores(self.model, forest, posterior)
        items, parent, found = best_trees(forest, scores)
        nodes = item_nodes(forest, items, parent)
        ends = np.cumsum(2 * pruned.n_words - 1)[:-1]
        return np.split(nodes, ends, axis=1), found & usable

    def _items_of_row(self, charts, row, *, pruned=None):
        chart = charts.chart(row, pruned=pruned)
        tree = None
        if chart is not None and chart.usable:
            tree = TREE_DECODERS[self.decoder](self.model, chart)
        if tree is None:
            nodes = flat_brackets(self.brackets, *charts.last_resort(row))
            nodes[0] += len(self.labels)
            return nodes, False
        return item_nodes(chart.forest, *tree), True

    def _brackets_of_row(self, charts, row, *, pruned=None):
        brackets = self.bracket_marginals(charts, row, pruned=pruned)
        if brackets is None:
            return flat_brackets(self.brackets, *charts.last_resort(row)), False
        (nodes,) = bracket_trees(self.brackets, brackets, self.bracket_penalty)
        return nodes, True

    def bracket_marginals(self, charts, row, *, pruned=None):
        """Marginals of the original brackets of a row.

        Parameters
        ----------
        charts : SentenceCharts
            Charts of :meth:`charts`.
        row : int
            Which sentence.
        pruned : PrunedChart, default=None
            Pruned chart of the row, if another grammar has made it already.

        Returns
        -------
        Brackets or None
            None for a sentence without a parse.
        """
        begin, end = charts.treebank.token_offsets[row : row + 2]
        if charts.quick and self.prunes_itself:
            live = charts.live_items(row) if pruned is None else pruned.live
            if live is not None:
                n_words = np.array([end - begin])
                items = (live.row_span, live.offset, live.label, live.posterior)
                brackets = bracket_marginals(self.brackets, n_words, *items)
                return self._tagged(brackets, charts.tags[begin:end])
        chart = charts.chart(row, pruned=pruned)
        if chart is None or not chart.usable:
            return None
        forest = chart.forest
        items = (forest.item_offset, forest.item_label, chart.posterior)
        brackets = bracket_marginals(
            self.brackets, forest.n_words, forest.row_span, *items
        )
        return self._tagged(brackets, charts.tags[begin:end])

    def _tagged(self, brackets, tags):
        """Make the given tags of words certain."""
        words = np.flatnonzero(tags >= 0)
        if len(words):
            place = {name: i for i, name in enumerate(self.brackets.tag_names)}
            ids = np.array([place[name] for name in self.model.pruner.tag_names])
            brackets.tag_weight[words] = 0.0
            brackets.tag_weight[words, ids[tags[words]]] = 1.0
        return brackets

    def span_marginals(self, treebank, *, lenient=False, precise=True, n_jobs=None):
        """Marginals of the original brackets and tags, as DataFrames.

        Parameters
        ----------
        treebank : Treebank
            Sentences.
        lenient : bool, default=False
            As in :meth:`charts`.
        precise : bool, default=True
            Whether marginals are computed with a threshold far below `prune`.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal and tag;
            without rows for a sentence that has no parse.
        """
        charts = self.charts(
            treebank, quick=not precise, precise=precise, lenient=lenient
        )

        def frame(row):
            return bracket_frame(self.brackets, self.bracket_marginals(charts, row))

        return charts.map_rows(frame, n_jobs=n_jobs)

    def parse_kbest(self, treebank, k, *, lenient=False, n_jobs=None):
        """Find the k best trees of each sentence.

        Parameters
        ----------
        treebank : Treebank
            Sentences.
        k : int
            Number of trees.
        lenient : bool, default=False
            As in :meth:`charts`.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        parses : list of list of (Tree, float)
            Trees of each sentence with their scores, the best first; none for a
            sentence without a parse. Where pruning left fewer than `k`, they are those
            of a chart with a far lower threshold.
        """
        charts = self.charts(treebank, strict_tags=True, lenient=lenient)
        deeper = charts.deeper()

        def parses(row):
            scores, trees = best_of(charts, row)
            if 0 < len(scores) < k and self.prune:
                scores, trees = best_of(deeper, row)
            return scores, trees

        def best_of(charts, row):
            chart = charts.chart(row)
            if chart is None or not chart.usable:
                return [], []
            scores, items, parents = kbest_items(self.model, chart, k)
            trees = zip(items, parents, strict=True)
            return scores.tolist(), [item_nodes(chart.forest, *tree) for tree in trees]

        rows = charts.map_rows(parses, n_jobs=n_jobs)
        counts = [len(scores) for scores, _ in rows]
        copies = charts.treebank[np.repeat(np.arange(len(rows)), counts)]
        nodes = [tree for _, trees in rows for tree in trees]
        trees = assemble(copies, self.labels, nodes, binarized=self.binarized)
        tokens = ragged_indices(
            np.repeat(charts.treebank.token_offsets[:-1], counts), copies.lengths
        )
        restored = iter(self._with_given_tags(trees, charts.tags[tokens]))
        return [distinct_trees(restored, scores) for scores, _ in rows]
