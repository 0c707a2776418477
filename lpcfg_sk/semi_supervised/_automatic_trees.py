"""Trees that a parser assigns to sentences, and its confidence in them."""

import sys
from contextlib import nullcontext

import joblib
import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline

from lpcfg_sk._pipeline import unfrozen
from lpcfg_sk.parsing import RowReport
from lpcfg_sk.treebank import concatenate

__all__ = [
    "AutomaticTrees",
    "fit_weighted",
    "last_step",
    "mean_bracket_posteriors",
    "parse",
    "transform",
    "use_jobs",
]

#: Sentences that are parsed together: enough to keep all threads busy.
_BATCH = 1000


class AutomaticTrees:
    """The trees that a parser assigns to the sentences of a corpus, chunk by chunk.

    It can be iterated over once, and updates its counts on the way.

    Parameters
    ----------
    parser : estimator
        Fitted parser.
    sentences : Treebank or ShardedTreebank
        Rows without trees.
    min_confidence : float or None
        Least mean posterior of the brackets of a tree.
    progress : str or None, default=None
        Beginning of the lines about progress on standard error; None for none.

    Attributes
    ----------
    rows : list of ndarray of int64
        For each treebank that was yielded, the rows of the sentences.
    n_failed : int
        Sentences without a parse, which were left out.
    n_unsure : int
        Trees below `min_confidence`, which were left out.
    """

    def __init__(self, parser, sentences, min_confidence, progress=None):
        self._parser = parser
        self._sentences = sentences
        self._min_confidence = min_confidence
        self._progress = progress
        self.rows = []
        self.n_failed = 0
        self.n_unsure = 0

    def __iter__(self):
        begins = self._sentences.chunk_offsets[:-1].tolist()
        for begin, chunk in zip(begins, self._sentences.chunks(), strict=True):
            parts = []
            for first in range(0, len(chunk), _BATCH):
                batch = chunk[first : first + _BATCH]
                trees, rows = self._parse(batch)
                parts.append(trees)
                self.rows.append(begin + first + rows)
                self._report(begin + first + len(batch))
            if any(map(len, parts)):
                yield concatenate(parts)

    def _parse(self, batch):
        """Return the trees of a batch that are to be used, and their rows."""
        trees, report = parse(self._parser, batch)
        good = np.ones(len(trees), dtype=bool)
        good[report.without_parse()] = False
        self.n_failed += len(trees) - int(good.sum())
        if self._min_confidence is not None and good.any():
            rows = np.flatnonzero(good)
            posterior = mean_bracket_posteriors(self._parser, trees[rows])
            good[rows] = posterior >= self._min_confidence
            self.n_unsure += len(rows) - int(good.sum())
        rows = np.flatnonzero(good)
        return trees[rows], rows

    def _report(self, done):
        if self._progress is not None:
            total = len(self._sentences)
            sys.stderr.write(
                f"{self._progress}: parsed {done} of {total} sentences, "
                f"{self.n_failed} without a parse, {self.n_unsure} unsure\n"
            )


def parse(parser, X):
    """Parse sentences without a warning about those that have no parse.

    Parameters
    ----------
    parser : estimator
        Fitted parser; of a parser of another library only ``predict`` is used.
    X : Treebank
        Sentences.

    Returns
    -------
    trees : Treebank
        One tree per row.
    report : RowReport
        The status of each row.
    """
    learner = last_step(parser)
    X = transform(parser, X)
    if hasattr(learner, "_parse"):
        return learner._parse(X)
    return learner.predict(X), RowReport(len(X), {})


def mean_bracket_posteriors(parser, trees):
    r"""Mean posterior probability of the brackets of each tree.

    Parameters
    ----------
    parser : estimator
        Fitted parser with ``span_marginals``.
    trees : Treebank
        Trees, not binarised.

    Returns
    -------
    confidence : ndarray of float64, shape (n_trees,)
        :math:`\frac{1}{|t|} \sum_{(X, i, j) ∈ t} P(X, i, j)` over the brackets of the
        tree t, root included and tags left out; 1 for a tree without brackets.
    """
    X = transform(parser, trees.unparsed())
    frames = last_step(parser).span_marginals(X, precise=False)
    confidence = np.ones(len(trees))
    names = trees.labels.strings
    for row, frame in enumerate(frames):
        nodes = slice(*trees.node_offsets[row : row + 2])
        inner = np.flatnonzero(trees.size[nodes] > 1)
        if not len(inner):
            continue
        frame = frame[~frame["tag"].to_numpy()]
        keys = zip(frame["label"], frame["start"], frame["end"], strict=True)
        posterior = dict(zip(keys, frame["marginal"], strict=True))
        columns = (trees.label, trees.start, trees.stop)
        brackets = zip(*(c[nodes][inner].tolist() for c in columns), strict=True)
        values = [posterior.get((names[a], i, j), 0.0) for a, i, j in brackets]
        confidence[row] = np.mean(values)
    return confidence


def last_step(parser):
    """Return the learner at the end of a pipeline, or the parser itself."""
    parser = unfrozen(parser)
    return unfrozen(parser[-1]) if isinstance(parser, Pipeline) else parser


def transform(parser, X):
    """Return X as the last step of a fitted parser sees it."""
    parser = unfrozen(parser)
    if isinstance(parser, Pipeline) and len(parser) > 1:
        return parser[:-1].transform(X)
    return X


def fit_weighted(parser, X, weight):
    """Fit a parser to weighted trees.

    Parameters
    ----------
    parser : estimator
        A learner, an ensemble, or a pipeline that ends in one, which gets the weights.
    X : Treebank or ShardedTreebank
        Trees.
    weight : ndarray of float64, shape (n_trees,), or None
        Weights.

    Returns
    -------
    parser : estimator
        The fitted parser.
    """
    if weight is None:
        return parser.fit(X)
    if not isinstance(parser, Pipeline):
        return parser.fit(X, sample_weight=weight)
    # With metadata routing the user would have to request weights for the learner that
    # the user did not pass.
    with config_context(enable_metadata_routing=False):
        return parser.fit(X, **{f"{parser.steps[-1][0]}__sample_weight": weight})


def use_jobs(n_jobs):
    """Return a context that sets `n_jobs` for estimators where it is None."""
    return nullcontext() if n_jobs is None else joblib.parallel_config(n_jobs=n_jobs)
