"""Base of compressors: the automaton of a grammar, bracketing with it, and scores."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import lpcfg_sk
from lpcfg_sk._kernels._wta_charts import best_bracketing
from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk._validation import N_JOBS, HasMethods, Interval
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.automata._wta import WTA
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import LPCFG
from lpcfg_sk.treebank import (
    SymbolTable,
    TreebankInputMixin,
    check_sample_weight,
    check_treebank,
)

#: Label of all nodes of a predicted bracketing.
_NODE_LABEL = "X"


class BaseAutomatonCompressor(TreebankInputMixin, BaseEstimator):
    """Base of estimators that learn a grammar and compress its automaton.

    Subclasses have the parameters `estimator`, `max_memory` and `n_jobs`, set
    `wta_` in ``fit`` and implement ``transform``.
    """

    _parameter_constraints: dict = {
        "estimator": [None, HasMethods(["fit"]), LPCFG, WTA],
        "max_memory": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
    }

    def _fit_original(self, X, sample_weight):
        """Set `original_`, the automaton to compress, and `estimator_` where needed."""
        model = self.estimator
        vars(self).pop("estimator_", None)
        if not isinstance(model, WTA | LPCFG) and not _is_fitted(model):
            model = self.estimator_ = self._fit_learner(X, sample_weight)
        self.original_ = model if isinstance(model, WTA) else WTA.from_pcfg(model)

    def _fit_learner(self, X, sample_weight):
        if X is None:
            raise ValueError(
                f"{type(self).__name__} needs a treebank to fit its estimator; give "
                "one, or a fitted learner, an LPCFG or a WTA as estimator."
            )
        given = lpcfg_sk.PCFG() if self.estimator is None else self.estimator
        learner = clone(given)
        weighted = sample_weight is not None and _takes_weights(learner)
        learner.fit(X, **({"sample_weight": sample_weight} if weighted else {}))
        if not hasattr(learner, "grammar_"):
            raise TypeError(
                f"estimator {type(learner).__name__} has no grammar_ after fit; give a "
                "learner such as PCFG or EMLPCFG (put preprocessing steps before "
                f"{type(self).__name__} in the Pipeline, not inside it)."
            )
        return learner

    def _check_automaton(self, X):
        check_is_fitted(self)
        if not isinstance(X, WTA):
            raise TypeError(
                f"transform takes a WTA, got {type(X).__name__}; make one with "
                "WTA.from_pcfg."
            )
        return X

    def predict(self, X):
        """Bracket sentences by minimum Bayes risk on topology.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words count; trees are ignored.

        Returns
        -------
        Treebank
            Binary trees with all nodes labelled "X".

        Warns
        -----
        ParseFailureWarning
            Once, with the number of sentences of value zero under the automaton;
            they get a right-branching tree.
        """
        X = self._check_sentences(X)
        if len(X) == 0:
            return X
        trees, failed = mbr_bracketings(
            self.wta_, X, max_memory=self.max_memory, n_jobs=self.n_jobs
        )
        if len(failed):
            warn_caller(
                f"{len(failed)} of {len(X)} sentences have value zero under the "
                f"automaton (the first in row {failed[0]}) and got a right-branching "
                "tree.",
                ParseFailureWarning,
            )
        return trees

    def score(self, X, y=None, *, sample_weight=None):
        """Score the bracketings of `predict` by their F measure against X.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees like those of `fit`, normally binary; each span of two or more words
            counts once.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        float
            Between 0 and 1.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, parsed=True)
        weight = check_sample_weight(sample_weight, X)
        return bracketing_f1(X, self.predict(X), weight)

    def score_samples(self, X):
        """Log value log f̂(t) of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees.

        Returns
        -------
        ndarray of float64, shape (n_trees,)
            Natural logarithm; -inf where the value is zero or negative.
        """
        check_is_fitted(self)
        sign, log = self.wta_.log_value(X, n_jobs=self.n_jobs)
        return np.where(sign > 0, log, -np.inf)


def _takes_weights(learner):
    """Whether a learner's metadata request, if there is one, asks for weights."""
    if not hasattr(learner, "get_metadata_routing"):
        return True
    request = getattr(learner.get_metadata_routing(), "fit", None)
    return request is None or request.requests.get("sample_weight") is not False


def _is_fitted(learner):
    if not hasattr(learner, "grammar_"):
        return False
    try:
        check_is_fitted(learner)
    except NotFittedError:
        return False
    return True


def mbr_bracketings(wta, X, *, max_memory=2**31, n_jobs=None):
    """Find the binary trees with the largest sum of posteriors of their spans.

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
        All nodes are labelled "X"; a sentence of value zero gets a right-branching
        tree.
    failed : ndarray of int64
        Rows whose sentence has value zero.

    Notes
    -----
    The posterior of a span is its share Σ_{t ∋ span} f(t) / Σ_t f(t) of the
    sentence's value (Goodman, 1996), over the topologies t of the sentence.
    """
    make_chart = wta.chart_maker(X, max_memory=max_memory)
    lengths = X.lengths

    def parse(row):
        length = int(lengths[row])
        if length == 0:
            return (np.zeros(0, dtype=np.int32),) * 4, False
        chart = make_chart(row)
        failed, gain = chart.sign == 0, np.zeros(chart.n_cells)
        if not failed:
            posteriors = chart.posteriors()
            failed = not np.isfinite(posteriors).all()
            gain = gain if failed else posteriors
        return best_bracketing(length, gain), failed

    rows = [(row,) for row in range(len(X))]
    trees, failed = zip(*map_chunks(parse, rows, n_jobs=n_jobs), strict=True)
    columns = map(np.concatenate, zip(*trees, strict=True))
    columns = dict(zip(("size", "parent", "start", "stop"), columns, strict=True))
    bracketed = X.replace(
        **columns,
        label=np.zeros(len(columns["size"]), dtype=np.int32),
        node_offsets=offsets([len(tree[0]) for tree in trees]),
        labels=SymbolTable([_NODE_LABEL]),
        tag=np.full(X.n_tokens, -1),
        blocks={},
        block_names={},
        binarized=False,
    )
    return bracketed, np.flatnonzero(np.array(failed) & (lengths > 2))


def bracketing_counts(gold, predicted):
    """Count the spans of two or more words in each tree, and the common ones.

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
    base = int(gold.lengths.max(initial=0)) + 1
    spans = [_span_keys(trees, base) for trees in (gold, predicted)]
    both = np.intersect1d(*spans, assume_unique=True)
    return tuple(
        np.bincount(keys // base**2, minlength=len(gold)) for keys in (both, *spans)
    )


def _span_keys(treebank, base):
    """Distinct keys (tree, start, stop) of the spans of two or more words."""
    tree = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    start, stop = treebank.start.astype(np.int64), treebank.stop.astype(np.int64)
    wide = stop - start > 1
    return np.unique(((tree * base + start) * base + stop)[wide])


def bracketing_f1(gold, predicted, sample_weight=None):
    """Compute the F measure of unlabelled bracketing, over the spans of all trees.

    The span of the whole sentence counts, unlike the root in
    :func:`lpcfg_sk.metrics.f1_score`.

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
