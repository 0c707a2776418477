"""Unlabelled bracketings: minimum-Bayes-risk trees and their agreement."""

import numpy as np

from lpcfg_sk._kernels._topology import best_bracketing
from lpcfg_sk._parallel import map_chunks
from lpcfg_sk.automata._chart import first_cells
from lpcfg_sk.treebank import SymbolTable

__all__ = ["bracketing_counts", "bracketing_f1", "mbr_bracketings"]

#: Label of all nodes of a predicted bracketing.
NODE_LABEL = "X"


def mbr_bracketings(wta, X, *, max_memory=2**31, n_jobs=None):
    """Binary trees that maximise the sum of the posteriors of their spans.

    Parameters
    ----------
    wta : WTA
        The automaton.
    X : Treebank
        Sentences.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    trees : Treebank
        All nodes are labelled "X"; a sentence of value zero gets the tree that
        branches to the right.
    failed : ndarray of int64
        Rows whose sentence has value zero.

    Notes
    -----
    The posterior of a span is its share Σ_{t ∋ span} f(t) / Σ_t f(t) of the
    sentence's value (Goodman, 1996), over the topologies t of the sentence.
    """
    chart_of = wta.chart_maker(X, max_memory=max_memory)
    lengths = X.lengths

    def parse(row):
        length = int(lengths[row])
        if length == 0:
            return (np.zeros(0, dtype=np.int32),) * 4, False
        chart = chart_of(row)
        gain = np.zeros(chart.n_cells)
        if chart.sign != 0:
            gain = chart.posteriors()
        failed = chart.sign == 0 or not np.isfinite(gain).all()
        if failed:
            gain = np.zeros(chart.n_cells)
        return best_bracketing(length, first_cells(length), gain), failed

    rows = [(row,) for row in range(len(X))]
    results = list(map_chunks(parse, rows, n_jobs=n_jobs))
    columns = [np.concatenate(c) for c in zip(*(r[0] for r in results), strict=True)]
    size, parent, start, stop = columns
    counts = [len(r[0][0]) for r in results]
    trees = X.replace(
        label=np.zeros(len(size), dtype=np.int32),
        size=size,
        parent=parent,
        start=start,
        stop=stop,
        node_offsets=np.concatenate([[0], np.cumsum(counts)]),
        labels=SymbolTable([NODE_LABEL]),
        tag=np.full(X.n_tokens, -1),
        blocks={},
        block_names={},
        binarized=False,
    )
    failed = np.array([r[1] for r in results], dtype=bool)
    return trees, np.flatnonzero(failed & (X.lengths > 2))


def bracketing_counts(gold, predicted):
    """Numbers of spans of two or more words in each tree, and of common ones.

    Parameters
    ----------
    gold, predicted : Treebank
        Trees of the same sentences. A span counts once, whatever its labels.

    Returns
    -------
    matched, n_gold, n_predicted : ndarray of int64, shape (n_trees,)

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.automata import bracketing_counts
    >>> gold = Treebank(["(S (A a) (B (C b) (D c)))"])
    >>> other = Treebank(["(S (X (A a) (C b)) (D c))"])
    >>> [int(count[0]) for count in bracketing_counts(gold, other)]
    [1, 2, 2]
    """
    if len(gold) != len(predicted) or (gold.lengths != predicted.lengths).any():
        raise ValueError("Both treebanks should hold trees of the same sentences.")
    sets = [_spans(gold), _spans(predicted)]
    both = np.intersect1d(*sets, assume_unique=True)
    base = _base(gold)
    return tuple(
        np.bincount(keys // base**2, minlength=len(gold)) for keys in (both, *sets)
    )


def _base(treebank):
    return int(treebank.lengths.max(initial=0)) + 1


def _spans(treebank):
    base = _base(treebank)
    tree = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    start, stop = treebank.start.astype(np.int64), treebank.stop.astype(np.int64)
    wide = stop - start > 1
    return np.unique(((tree * base + start) * base + stop)[wide])


def bracketing_f1(gold, predicted, sample_weight=None):
    """F measure of unlabelled bracketing, summed over all trees.

    Parameters
    ----------
    gold, predicted : Treebank
        Trees of the same sentences.
    sample_weight : array-like of float, shape (n_trees,), default=None
        How often each tree counts.

    Returns
    -------
    float
        Between 0 and 1; 1 where there is no span of two words.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.automata import bracketing_f1
    >>> gold = Treebank(["(S (A a) (B (C b) (D c)))"])
    >>> other = Treebank(["(S (X (A a) (C b)) (D c))"])
    >>> bracketing_f1(gold, other)
    0.5
    """
    matched, n_gold, n_predicted = bracketing_counts(gold, predicted)
    weight = np.ones(len(gold)) if sample_weight is None else sample_weight
    total = float(weight @ (n_gold + n_predicted))
    return 2 * float(weight @ matched) / total if total else 1.0
