"""The trees that EM learns from, and how well a model predicts those held out."""

import hashlib
import itertools
from functools import reduce

import numpy as np

from lpcfg_sk._kernels._lpcfg_trees import ParsedTrees, TreeModel, tree_values
from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._ragged import find_keys, ragged_indices, read_only
from lpcfg_sk.lpcfg import divide, smoothed_emissions
from lpcfg_sk.treebank import (
    RuleCounts,
    RuleIndex,
    count_rules,
    lexical_keys,
    over_chunks,
)

#: Fewest trees to hold out; fewer are too noisy to choose by.
_FEWEST_HELD_OUT = 5
#: Most trees to hold out: more do not choose better, and they are kept in memory.
_MOST_HELD_OUT = 20_000
#: Probability of a rule that is not in the training part. It is a constant of the
#: score, which is compared between iterations only.
_UNSEEN = 1e-4


class TrainingTrees:
    """The distinct trees of a corpus with their weights, in the ids of its rules.

    Make one with :meth:`from_corpus`.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        The corpus.
    parts : list of tuple
        For each chunk of the corpus the item of `spool` with its trees (columns of a
        :class:`RuleIndex`, weights, and rows within the chunk), and their
        :class:`RuleCounts`.
    spool : Spool
        Where to keep other trees, such as those of a split.
    n_jobs : int, default=None
        As in joblib.

    Attributes
    ----------
    rules : RuleCounts
        Rules of the trees, counted with their weights.
    whole : TrainingTrees
        The trees together with those that were held out of them.
    """

    def __init__(self, X, parts, spool, *, n_jobs=None):
        counts = [count for _, count in parts]
        self.X = X
        self.whole = self
        self.rules = reduce(RuleCounts.__add__, counts)
        self.spool = spool
        self.n_jobs = n_jobs
        self._parts = [kept for kept, _ in parts]
        self._sizes = [count.n_trees for count in counts]

    @classmethod
    def from_corpus(cls, X, weight, spool, *, estimator, n_jobs=None):
        """Find the distinct trees of each chunk.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Binary trees.
        weight : ndarray of float64, shape (n_trees,), or None
            Weight of each tree.
        spool : Spool
            Where to keep the trees.
        estimator : estimator
            Name to use in error messages.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        TrainingTrees
        """
        table = count_rules(X, weight, estimator=estimator, n_jobs=n_jobs)

        def distinct(treebank, weight):
            index = RuleIndex.from_treebank(treebank, table=table)
            rows, weight = merge_equal_trees(index, weight)
            index = index.take(rows)
            counts = index.count(weight, binarized=treebank.binarized)
            return spool.keep((index.columns(), weight, rows)), counts

        chunks = over_chunks(distinct, X.without_blocks(), weight, n_jobs=n_jobs)
        return cls(X, list(chunks), spool, n_jobs=n_jobs)

    def map(self, func, *columns):
        """Yield ``func(index, weight, rows, *items)`` for the trees of each chunk.

        Parameters
        ----------
        func : callable
            Called with a :class:`RuleIndex`, the weights of its trees, their rows
            within the chunk of the corpus, and the items of the chunk.
        *columns : sequence
            One item per chunk.

        Yields
        ------
        result : object
        """
        table = self.rules.table()

        def run(part, *items):
            columns, weight, rows = part
            return func(RuleIndex(**table, **columns), weight, rows, *items)

        chunks = zip(self._parts, *columns, strict=True)
        yield from map_chunks(run, chunks, n_jobs=self.n_jobs)

    def corpus(self):
        """Return the distinct trees themselves.

        Returns
        -------
        X : Treebank or ShardedTreebank
            The distinct trees.
        weight : ndarray of float64
            Their weights.
        """
        begins = self.X.chunk_offsets[:-1].tolist()

        def find(index, weight, rows, begin):
            return begin + rows, weight

        rows, weights = zip(*self.map(find, begins), strict=True)
        return self.X[np.concatenate(rows)], np.concatenate(weights)

    def hold_out(self, fraction, rng):
        """Split the trees into training trees and held-out trees.

        Parameters
        ----------
        fraction : float
            Part of the weight to hold out.
        rng : RandomState
            Source of randomness.

        Returns
        -------
        training : TrainingTrees
            The trees to train on.
        held_out : tuple of RuleIndex and ndarray of float64
            The held-out trees and their weights. None in place of both where there
            are too few trees.
        """
        spool, table = self.spool, self.rules.table()
        binarized = self.rules.binarized
        fraction = min(fraction, _MOST_HELD_OUT / max(self.rules.n_trees, 1))

        def split(index, weight, rows, threshold):
            copies, held = count_copies(weight, fraction, threshold)
            left = weight - held
            kept, other = np.flatnonzero(left > 0), np.flatnonzero(held > 0)
            training, left, rows = index.take(kept), left[kept], rows[kept]
            part = spool.keep((training.columns(), left, rows))
            counts = training.count(left, binarized=binarized)
            return (
                copies.sum(),
                (part, counts),
                index.take(other).columns(),
                held[other],
            )

        thresholds = [rng.random_sample(size) for size in self._sizes]
        copies, parts, columns, held = zip(*self.map(split, thresholds), strict=True)
        training = TrainingTrees(self.X, parts, spool, n_jobs=self.n_jobs)
        if sum(copies) < _FEWEST_HELD_OUT or training.rules.n_trees == 0:
            return None
        training.whole = self
        indices = [RuleIndex(**table, **part) for part in columns]
        return training, (RuleIndex.concatenate(indices), np.concatenate(held))


def merge_equal_trees(index, weight):
    """Find the distinct trees of a treebank.

    Parameters
    ----------
    index : RuleIndex
        The trees.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.

    Returns
    -------
    rows : ndarray of int64
        One row for each distinct tree, in an order that depends on their content
        only.
    weight : ndarray of float64
        Sum of the weights of equal trees.
    """
    content = np.where(index.rule >= 0, index.rule, -1 - index.entry).astype("<i4")
    bounds = index.node_offsets.tolist()
    groups = {}
    for row, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        digest = hashlib.blake2b(content[lo:hi].tobytes(), digest_size=16).digest()
        groups.setdefault(digest, []).append(row)
    groups = [groups[digest] for digest in sorted(groups)]
    rows = np.array([group[0] for group in groups], dtype=np.int64)
    return rows, np.array([weight[group].sum() for group in groups])


def count_copies(weight, fraction, threshold):
    """Choose how much of each tree is held out.

    Of a tree of weight w, about ``fraction * w`` copies are held out, in whole
    numbers; weights below 1 are held out as a whole or not at all.

    Parameters
    ----------
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    fraction : float
        Part of the weight to hold out.
    threshold : ndarray of float64, shape (n_trees,)
        Random numbers between 0 and 1.

    Returns
    -------
    copies, held : ndarray of float64, shape (n_trees,)
        Number of copies that are held out, and their weight.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.em._training_trees import count_copies
    >>> count_copies(np.array([100.0, 7.0, 1.0]), 0.1, np.full(3, 0.5))[1].tolist()
    [10.0, 1.0, 0.0]
    """
    copies = np.floor(np.maximum(weight, 1.0) * fraction + threshold)
    return copies, np.minimum(copies, weight)


class HeldOut:
    """Mean log probability of held-out trees.

    Parameters
    ----------
    index : RuleIndex
        The held-out trees.
    weight : ndarray of float64, shape (n_trees,)
        Their weights.
    training : RuleCounts
        Counts of the other trees, with the same rules and ids.
    layout : Layout
        Where parameters lie.
    alpha : float
        Strength of the lexicon's smoothing.
    """

    def __init__(self, index, weight, training, layout, alpha):
        self.index = index
        self.weight = weight
        self.training = training
        self.layout = layout
        self.alpha = alpha
        self.unseen_rules = np.flatnonzero(training.rule_count == 0)
        self.unseen_roots = np.flatnonzero(training.root_count == 0)

    def score(self, parameters, totals):
        """Return the weighted mean log probability.

        A rule that no training tree has gets a small constant probability, with
        the overall distribution of its children's states. The lexicon is smoothed
        as in the final model.

        Parameters
        ----------
        parameters : Estimates
            Parameters; those of rules without training trees are used as scratch.
        totals : ndarray of float64
            Counts of the states.

        Returns
        -------
        float
        """
        try:
            self._fill(parameters, totals)
            logs = self._log_values(parameters, totals)
        finally:
            self._clear(parameters)
        return float(np.average(logs, weights=self.weight))

    def _fill(self, parameters, totals):
        """Give unseen rules a small probability."""
        index, layout = self.index, self.layout
        m, first = layout.n_states, layout.state_offset
        label = np.repeat(np.arange(len(m)), m)
        label_total = np.bincount(label, weights=totals)[label]
        share = np.where(label_total > 0, divide(totals, label_total), 1.0 / m[label])
        for r in self.unseen_rules:
            b, c = index.rule_left[r], index.rule_right[r]
            pairs = np.outer(
                share[first[b] : first[b + 1]], share[first[c] : first[c + 1]]
            )
            piece = parameters.binary[layout.rule_offset[r] : layout.rule_offset[r + 1]]
            piece.reshape(layout.shapes[r])[:] = _UNSEEN * pairs
        for k in self.unseen_roots:
            a = index.root_label[k]
            piece = parameters.root[layout.root_offset[k] : layout.root_offset[k + 1]]
            piece[:] = _UNSEEN * share[first[a] : first[a + 1]]

    def _clear(self, parameters):
        """Make the probabilities of unseen rules zero again."""
        for values, offset, unseen in (
            (parameters.binary, self.layout.rule_offset, self.unseen_rules),
            (parameters.root, self.layout.root_offset, self.unseen_roots),
        ):
            for r in unseen:
                values[offset[r] : offset[r + 1]] = 0.0

    def _log_values(self, parameters, totals):
        """Return log |value| of each held-out tree."""
        index, layout = self.index, self.layout
        rule = np.where(index.rule >= 0, index.rule, index.entry)
        columns = (index.node_offsets, index.size, index.label, rule, index.top)
        trees = ParsedTrees(*map(read_only, columns))
        lexicon = (layout.lex_offset, self._lexicon(parameters, totals))
        binary = (layout.n_states.astype(np.int32), layout.rule_offset)
        root = (layout.root_offset, parameters.root)
        model = TreeModel(
            *map(read_only, (*binary, parameters.binary, *lexicon, *root))
        )
        _, logs = tree_values(0, index.n_trees, trees, model)
        return logs

    def _lexicon(self, parameters, totals):
        """Smoothed emission probabilities of the lexical rules of the index."""
        layout, training = self.layout, self.training
        lexicon, _ = smoothed_emissions(
            training, layout, parameters.lexical, totals, alpha=self.alpha
        )
        n_labels = len(layout.n_states)
        word = np.repeat(np.arange(len(lexicon.words)), np.diff(lexicon.word_offset))
        position = find_keys(
            lexical_keys(word, lexicon.lex_label, n_labels),
            lexical_keys(training.lex_word, training.lex_label, n_labels),
        )
        length = layout.n_states[training.lex_label]
        vectors = lexicon.lexical[ragged_indices(lexicon.lex_offset[position], length)]
        entry = np.repeat(np.arange(len(length)), length)
        empty = np.bincount(entry, weights=vectors, minlength=len(length)) == 0
        vectors[empty[entry]] = _UNSEEN
        return vectors
