"""The E-step: expected counts of rules, over chunks of trees and over sentences."""

from collections import deque
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._chart_inside import ItemVectors
from lpcfg_sk._kernels._em import expected_counts
from lpcfg_sk._kernels._em_batches import Batches, add_rule_counts, schedule
from lpcfg_sk._parallel import CHUNK_WORK, cut_by_work, map_chunks
from lpcfg_sk._ragged import find_keys, offsets, ragged_indices
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import Estimates, Layout
from lpcfg_sk.treebank import RuleCounts, RuleKeys, lexical_keys, table_of_keys

__all__ = [
    "ExpectedCounts",
    "SentenceCounts",
    "add_counts",
    "count_sentences",
    "warn_of_failures",
]

#: A chunk has at least this many nodes per rule, and at least one node per this many
#: parameters. Its counts are as large as the parameters, so adding them up for smaller
#: chunks would take too long compared with computing them.
_NODES_PER_RULE = 32
_PARAMETERS_PER_NODE = 300
#: Most arrays of counts to keep for reuse; other processes send new ones each time.
_SPARES = 8


class ExpectedCounts:
    """Expected counts of the rules in a treebank under given parameters.

    Parameters
    ----------
    trees : TrainingTrees
        The trees.
    layout : Layout
        Where parameters and counts lie.
    n_jobs : int, default=None
        As in joblib.
    """

    def __init__(self, trees, layout, *, n_jobs=None):
        self.layout = layout
        self.n_jobs = n_jobs
        spool = trees.spool
        n_nodes = max(
            CHUNK_WORK,
            _NODES_PER_RULE * trees.rules.n_rules,
            layout.rule_offset[-1] // _PARAMETERS_PER_NODE,
        )

        def plan(index, weight, _):
            rows = cut_by_work(np.diff(index.node_offsets), n_nodes)
            return [spool.keep(_batches(index, layout, weight, *r)) for r in rows]

        self.chunks = [(kept,) for part in trees.map(plan) for kept in part]
        # Counts can be larger than any cache; touching fresh memory for them in
        # each iteration would take longer than computing them.
        self.spare = deque(maxlen=_SPARES)

    def __getstate__(self):
        # A worker receives its chunk with each call.
        spare = deque(maxlen=_SPARES)
        return {"layout": self.layout, "n_jobs": None, "chunks": [], "spare": spare}

    def __call__(self, parameters):
        """Add up the expected counts of all trees.

        Parameters
        ----------
        parameters : Estimates
            The current parameters.

        Returns
        -------
        counts : Estimates
            Expected counts; those of binary rules are still to be multiplied by
            the parameters.
        log_likelihood : float
            Weighted sum of the log probabilities of the trees.
        lost : float
            Weight of the trees of probability zero, left out of both.
        """
        total = None
        count = partial(self._count, parameters)
        for counts, log_likelihood, lost in map_chunks(
            count, self.chunks, n_jobs=self.n_jobs
        ):
            if total is None:
                total = [counts, log_likelihood, lost]
                continue
            for sums, part in zip(total[0], counts, strict=True):
                sums += part
            total[1] += log_likelihood
            total[2] += lost
            self.recycle(counts)
        return tuple(total)

    def recycle(self, parameters):
        """Take back arrays that are no longer needed."""
        self.spare.append(parameters)

    def _count(self, parameters, batches):
        try:
            counts = self.spare.pop()
        except IndexError:
            counts = Estimates(*(np.empty_like(p) for p in parameters))
        log_likelihood, lost = expected_counts(batches, self.layout, parameters, counts)
        return counts, log_likelihood, lost


def _batches(index, layout, weight, begin, end):
    """Number the nodes of some trees in the order of computation."""
    node_offsets = index.node_offsets[begin : end + 1]
    nodes = slice(node_offsets[0], node_offsets[-1])
    node_offsets = node_offsets - node_offsets[0]
    size, rule = index.size[nodes], index.rule[nodes]
    order, bounds = schedule(
        node_offsets, size, index.parent[nodes], rule, index.n_rules
    )
    left = order + 1
    right = left + size[left]
    children = np.stack([left, right], axis=1).ravel()
    roots = node_offsets[:-1]
    leaves = np.concatenate([children[size[children] == 1], roots[size[roots] == 1]])
    order = np.concatenate([order, leaves])
    position = np.empty(len(size), dtype=np.int64)
    position[order] = np.arange(len(order))
    left, right = position[left], position[right]
    rule = rule[order[: len(left)]]
    by_rule = np.argsort(rule, kind="stable")
    tree = np.repeat(np.arange(end - begin), np.diff(node_offsets))
    return Batches(
        tree=tree[order],
        weight=weight[begin:end],
        n_states=layout.n_states[index.label[nodes]][order],
        left=left,
        right=right,
        bounds=bounds,
        batch_rule=rule[bounds[:-1]],
        triples=np.stack([by_rule, left[by_rule], right[by_rule]]),
        rule_bounds=np.searchsorted(rule[by_rule], np.arange(index.n_rules + 1)),
        leaf_entry=index.entry[nodes][leaves],
        root_node=position[roots],
        top=index.top[begin:end],
    )


#: Sum of the cubed sentence lengths of a chunk. Its counts are as large as the
#: parameters, so adding them up must be cheap compared with computing them.
_CHUNK_WORK = 5_000_000


class SentenceCounts(NamedTuple):
    """Expected counts of the rules of a grammar in some sentences.

    Attributes
    ----------
    words : tuple of str
        The words of the sentences, and their signature classes, sorted.
    backoff : ndarray of int32, shape (n_words,), or None
        The signature class of each word, None without :class:`RareWords`.
    lex_word, lex_label : ndarray of int64, shape (n_entries,)
        Lexical rules, sorted.
    estimates : Estimates
        Expected counts with latent states; binary rules and roots are laid out as in
        the grammar, and the binary ones still to be multiplied by its parameters.
    weight : float
        Weight of the sentences with a parse.
    n_parsed, n_failed : int
        Numbers of sentences with and without a parse.
    """

    words: tuple
    backoff: np.ndarray | None
    lex_word: np.ndarray
    lex_label: np.ndarray
    estimates: Estimates
    weight: float
    n_parsed: int
    n_failed: int

    def plus(self, other, n_states):
        """Return the counts of two sets of sentences together."""
        words = tuple(sorted({*self.words, *other.words}))
        place = {word: i for i, word in enumerate(words)}
        parts = (self, other)
        maps = [np.array([place[w] for w in p.words], np.int64) for p in parts]
        backoff = None
        if self.backoff is not None and other.backoff is not None:
            backoff = np.arange(len(words), dtype=np.int32)
            for part, to in zip(parts, maps, strict=True):
                backoff[to] = to[part.backoff]
        entries = _summed_entries(
            np.concatenate([m[p.lex_word] for m, p in zip(maps, parts, strict=True)]),
            np.concatenate([p.lex_label for p in parts]),
            np.concatenate([p.estimates.lexical for p in parts]),
            n_states,
        )
        one, two = self.estimates, other.estimates
        return SentenceCounts(
            words,
            backoff,
            *entries[:2],
            Estimates(one.binary + two.binary, entries[2], one.root + two.root),
            self.weight + other.weight,
            self.n_parsed + other.n_parsed,
            self.n_failed + other.n_failed,
        )

    def rule_counts(self, grammar, scale, *, binarized):
        """Return the counts without latent states.

        Parameters
        ----------
        grammar : LPCFG
            The grammar of the counts.
        scale : float
            Factor of all counts.
        binarized : bool
            Whether the labels are those of a :class:`TreeBinarizer`.

        Returns
        -------
        RuleCounts
        """
        a = grammar.arrays
        n_labels = len(grammar.nonterminals)
        entries = lexical_keys(self.lex_word, self.lex_label, n_labels)
        keys = (a.rule_keys(), entries, a.root_label.astype(np.int64))
        binary = self.estimates.binary * a.binary
        rule_count = scale * _sums(binary, a.rule_offset)
        lex_offset = offsets(a.n_states[self.lex_label])
        lexical_count = scale * _sums(self.estimates.lexical, lex_offset)
        label_count = np.bincount(
            np.concatenate([a.rule_parent, self.lex_label]),
            weights=np.concatenate([rule_count, lexical_count]),
            minlength=n_labels,
        )
        return RuleCounts(
            **table_of_keys(grammar.nonterminals, self.words, self.backoff, keys),
            label_count=label_count,
            rule_count=rule_count,
            lexical_count=lexical_count,
            root_count=scale * _sums(self.estimates.root, a.root_offset),
            weight=scale * self.weight,
            n_trees=self.n_parsed,
            binarized=binarized,
        )


def count_sentences(parser, X, weight, *, n_jobs=None):
    """Add up the expected counts of all sentences of a corpus.

    Parameters
    ----------
    parser : ChartParser
        A probabilistic grammar and its pruner.
    X : Treebank or ShardedTreebank
        Sentences.
    weight : ndarray of float64, shape (n_sentences,)
        Weights of the sentences.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    SentenceCounts
    """
    n_states = parser.grammar.arrays.n_states
    begins = X.chunk_offsets[:-1].tolist()
    total = None
    for begin, chunk in zip(begins, X.chunks(), strict=True):
        if not chunk.lengths.all():
            row = begin + int(np.argmin(chunk.lengths))
            raise ValueError(
                f"row {row} of the sentences without trees is empty; leave it out"
            )
        charts = parser.charts(chunk)
        own = weight[begin : begin + len(chunk)]

        def count(first, end, charts=charts, own=own):
            return _count_rows(charts, range(first, end), own)

        rows = cut_by_work(chunk.lengths.astype(float) ** 3, _CHUNK_WORK)
        parts = map_chunks(count, rows, n_jobs=n_jobs)
        part = reduce(lambda one, two: one.plus(two, n_states), parts)
        total = part if total is None else total.plus(part, n_states)
    return total


def _count_rows(charts, rows, weight):
    """Return the expected counts of some rows of charts."""
    model, treebank = charts.model, charts.treebank
    arrays = model.grammar.arrays
    binary, root = np.zeros(len(arrays.binary)), np.zeros(len(arrays.root))
    words, labels, values = [], [], []
    used = []
    for row in rows:
        chart = charts.chart(row)
        # Vectors that lost values to underflow have no counts.
        if chart is None or not (chart.usable and chart.in_range and chart.total > 0):
            continue
        used.append(row)
        forest, offset = chart.forest, chart.vector_offset
        factor = weight[row] / chart.total
        alpha = ItemVectors(offset, chart.inside, chart.exponent)
        add_rule_counts(forest, model.tensors, alpha, chart.outside, factor, binary)
        leaves = int(forest.item_offset[chart.n])
        posterior = factor * chart.inside * chart.outside
        tokens = treebank.token_offsets[row] + forest.item_span[:leaves]
        words.append(treebank.word[tokens])
        labels.append(forest.item_label[:leaves])
        values.append(posterior[: offset[leaves]])
        for item in range(*forest.item_offset[-2:]):
            begin = model.root_offset[forest.item_label[item]]
            if begin >= 0:
                own = posterior[offset[item] : offset[item + 1]]
                root[begin : begin + len(own)] += own
    names, backoff, word = _named(treebank.words, words)
    entries = _summed_entries(
        word, _joined(labels, np.int64), _joined(values, float), arrays.n_states
    )
    return SentenceCounts(
        names,
        backoff,
        *entries[:2],
        Estimates(binary, entries[2], root),
        float(weight[used].sum()),
        len(used),
        len(rows) - len(used),
    )


def _joined(arrays, dtype):
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _named(table, words):
    """Return the names of words and their classes, sorted, the classes, and ids."""
    word = _joined(words, np.int64)
    used = np.unique(word)
    classes = used if table.backoff is None else table.backoff[used]
    names = tuple(sorted({table.strings[i] for i in {*used.tolist(), *classes}}))
    place = {name: i for i, name in enumerate(names)}
    ids = np.array([place[table.strings[i]] for i in used.tolist()], np.int64)
    backoff = None
    if table.backoff is not None:
        # A class is its own class, even if it does not occur as a word.
        backoff = np.arange(len(names), dtype=np.int32)
        backoff[ids] = [place[table.strings[i]] for i in classes.tolist()]
    return names, backoff, ids[np.searchsorted(used, word)]


def _summed_entries(word, label, values, n_states):
    """Return the different pairs of word and label, and the sums of their vectors."""
    n_labels = len(n_states)
    keys, place = np.unique(lexical_keys(word, label, n_labels), return_inverse=True)
    lex_word, lex_label = np.divmod(keys, n_labels)
    offset = offsets(n_states[lex_label])
    to = ragged_indices(offset[place], n_states[label])
    sums = np.bincount(to, weights=values, minlength=offset[-1])
    return lex_word, lex_label, sums


def _sums(values, offset):
    """Return the sum of each piece of an array."""
    piece = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    return np.bincount(piece, weights=values, minlength=len(offset) - 1)


def warn_of_failures(estimator, n_sentences):
    """Warn once of sentences that did not count.

    Parameters
    ----------
    estimator : estimator
        A fitted learner; its `n_failed_` sentences had no parse.
    n_sentences : int
        Number of all sentences.
    """
    if estimator.n_failed_:
        warn_caller(
            f"{estimator.n_failed_} of {n_sentences} sentences without trees have no "
            f"parse, and {type(estimator).__name__} did not learn from them",
            ParseFailureWarning,
        )


def add_counts(trees, layout, counts, sentences, grammar, scale):
    """Add expected counts of sentences to those of trees.

    Parameters
    ----------
    trees : RuleCounts
        Rules of the trees.
    layout : Layout
        Where `counts` lie.
    counts : Estimates
        Expected counts of the trees.
    sentences : SentenceCounts
        Expected counts of the sentences.
    grammar : LPCFG
        The grammar of the counts of sentences, with the nonterminals, binary rules and
        roots of the trees.
    scale : float
        Factor of the counts of sentences.

    Returns
    -------
    rules : RuleCounts
        Rules of trees and sentences; the latter may have words of their own.
    layout : Layout
        Where the sums lie.
    total : Estimates
        The sums.
    of_trees : ndarray of int64
        Where the lexical counts of the trees are among the sums.
    """
    own = sentences.rule_counts(grammar, scale, binarized=trees.binarized)
    rules = trees + own
    joint = Layout.build(rules, layout.n_states)
    symbols = (rules.nonterminals, rules.words)
    keys = RuleKeys(rules, *symbols).entries
    of_trees, of_sentences = (
        ragged_indices(
            joint.lex_offset[find_keys(keys, RuleKeys(part, *symbols).entries)],
            layout.n_states[part.lex_label],
        )
        for part in (trees, own)
    )
    lexical = np.zeros(joint.lex_offset[-1])
    lexical[of_trees] += counts.lexical
    lexical[of_sentences] += scale * sentences.estimates.lexical
    binary = counts.binary + scale * sentences.estimates.binary * grammar.arrays.binary
    root = counts.root + scale * sentences.estimates.root
    return rules, joint, Estimates(binary, lexical, root), of_trees
