"""The input of estimators: checks of treebanks and weights, and transformers."""

from functools import wraps

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import CheckedStateMixin
from lpcfg_sk.treebank._sharded import ShardedTreebank
from lpcfg_sk.treebank._treebank import Treebank


def check_treebank(
    X,
    *,
    estimator,
    parsed=False,
    binary=False,
    allow_empty=False,
    blocks=(),
    sharded=False,
):
    """Return X as a treebank, or raise an error that says what is wrong with it.

    Parameters
    ----------
    X : Treebank or iterable of trees or sentences
        Input of an estimator.
    estimator : estimator or str
        Name to use in error messages.
    parsed : bool, default=False
        Whether every row must have a tree.
    binary : bool, default=False
        Whether every node of a tree must have two children or be a pre-terminal.
    allow_empty : bool, default=False
        Whether a treebank without rows is accepted.
    blocks : tuple of str, default=()
        Node features that X must carry.
    sharded : bool, default=False
        Whether a :class:`ShardedTreebank` is returned without being loaded; its trees
        are then checked when they are read.

    Returns
    -------
    treebank : Treebank or ShardedTreebank
    """
    if isinstance(X, ShardedTreebank) and not (sharded and len(X)):
        X = X.load()
    if isinstance(X, ShardedTreebank):
        return X
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    # A string, or an object without features, is not a learner.
    learner = hasattr(estimator, "_uses_features")
    if not isinstance(X, Treebank):
        if hasattr(X, "to_numpy") and not hasattr(X, "columns"):
            X = X.to_numpy()
        if isinstance(X, np.ndarray) and (X.dtype.kind not in "OUT" or X.ndim != 1):
            hint = "; X.tolist() lists its rows" if X.dtype.kind in "OUT" else ""
            raise TypeError(
                f"{name} takes a Treebank, or a list of bracketed strings, Trees or "
                f"token lists, got an array of dtype {X.dtype} and shape "
                f"{X.shape}{hint}"
            )
        try:
            X = Treebank(X)
        except TypeError as error:
            message = str(error)
            if message.startswith("Treebank takes"):
                raise TypeError(message.replace("Treebank", name, 1)) from None
            raise TypeError(f"{name}: {message}") from None
    if len(X) == 0 and not allow_empty:
        raise ValueError(f"{name} needs at least one tree, got an empty treebank")
    if parsed and not X.is_parsed.all():
        row = int(np.flatnonzero(~X.is_parsed)[0])
        raise ValueError(
            f"{name} needs trees here, but row {row} is a sentence without a tree "
            f"({int((~X.is_parsed).sum())} such rows); leave them out, parse them "
            "first, or let SelfTrainingParser learn from trees and sentences"
        )
    if binary and X.rule_index is None:
        _check_binary(X, name, learner)
    for block in blocks:
        if block not in X.blocks:
            pipeline = f"use make_parser({name}()), or " if learner else ""
            raise ValueError(
                f"{name} needs {' and '.join(blocks)} features of the nodes, and this "
                f"treebank has no {block!r} block; {pipeline}put InsideFeatures and "
                "OutsideFeatures before it in the Pipeline"
            )
    return X


def _check_binary(X, name, learner):
    tree = np.repeat(np.arange(len(X)), np.diff(X.node_offsets))
    has_parent = X.parent >= 0
    above = X.node_offsets[tree[has_parent]] + X.parent[has_parent]
    n_children = np.bincount(above, minlength=X.n_nodes)
    wrong = np.flatnonzero(((n_children != 0) & (n_children != 2)) | (X.label < 0))
    if len(wrong) == 0:
        return
    node = int(wrong[0])
    row = int(tree[node])
    if X.label[node] < 0:
        what = "a word that has siblings instead of a pre-terminal of its own"
    else:
        what = f"a node {X.labels[X.label[node]]!r} with {n_children[node]} children"
    pipeline = f", or use make_parser({name}())" if learner else ""
    raise ValueError(
        f"{name} needs binary trees over pre-terminals, but tree {row} has {what}; put "
        f"a TreeBinarizer before it{pipeline}"
    )


#: Products of a few counts of at least this size stay in range.
_LEAST_WEIGHT = 1e-60


def check_sample_weight(sample_weight, treebank):
    """Return one finite, non-negative weight per row.

    Parameters
    ----------
    sample_weight : array-like of float, shape (n_trees,), or None
        Weights; None for ones.
    treebank : Treebank
        The rows.

    Returns
    -------
    weights : ndarray of float64, shape (n_trees,)
    """
    if sample_weight is None:
        return np.ones(len(treebank))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(treebank),):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected one weight for each of "
            f"the {len(treebank)} trees"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        row = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise ValueError(
            f"sample_weight[{row}] is {weights[row]}; weights are finite and not "
            "negative"
        )
    if not weights.any():
        raise ValueError("all weights of sample_weight are zero")
    largest = weights.max()
    if not _LEAST_WEIGHT <= largest <= 1.0 / _LEAST_WEIGHT:
        raise ValueError(
            f"the largest weight of sample_weight is {largest:g}, expected one between "
            f"{_LEAST_WEIGHT:g} and {1.0 / _LEAST_WEIGHT:g}: products of such counts "
            "leave the range of floating point; divide all weights by it"
        )
    tiny = np.flatnonzero((weights > 0) & (weights < _LEAST_WEIGHT))
    if len(tiny):
        raise ValueError(
            f"sample_weight[{tiny[0]}] is {weights[tiny[0]]:g}, expected 0 or at least "
            f"{_LEAST_WEIGHT:g}: products of such counts vanish; give the row 0 to "
            "leave it out"
        )
    return weights


def weighted_trees(X, sample_weight, estimator, *, blocks=()):
    """Check the input of a learner and leave out trees of weight zero.

    Parameters
    ----------
    X : Treebank, ShardedTreebank or iterable of trees
        Binary trees.
    sample_weight : array-like of float, shape (n_trees,), or None
        Weights; an integer weight means that many copies, so 0 means absence.
    estimator : estimator or str
        Name to use in error messages.
    blocks : tuple of str, default=()
        Node features that X must carry.

    Returns
    -------
    X : Treebank or ShardedTreebank
        Trees with a positive weight.
    weight : ndarray of float64, shape (n_trees,), or None
        Positive weights, one per row of `X`; None if all are 1.
    """
    X = check_treebank(
        X, estimator=estimator, parsed=True, binary=True, blocks=blocks, sharded=True
    )
    if sample_weight is None:
        return X, None
    weight = check_sample_weight(sample_weight, X)
    if np.all(weight > 0):
        return X, weight
    return X[weight > 0], weight[weight > 0]


def trees_and_sentences(X, sample_weight, estimator):
    """Check the input of a learner that also takes rows without trees.

    Parameters
    ----------
    X : Treebank, ShardedTreebank or iterable of trees and sentences
        Binary trees, and rows without nodes.
    sample_weight : array-like of float, shape (n_rows,), or None
        Weights of the rows.
    estimator : estimator or str
        Name to use in error messages.

    Returns
    -------
    trees : Treebank or ShardedTreebank
        Trees with a positive weight.
    weight : ndarray of float64, shape (n_trees,), or None
        Their weights; None if all are 1.
    sentences : Treebank or ShardedTreebank
        Sentences with a positive weight.
    sentence_weight : ndarray of float64, shape (n_sentences,)
        Their weights.
    """
    X = check_treebank(X, estimator=estimator, sharded=True)
    parsed = X.is_parsed
    weight = check_sample_weight(sample_weight, X)
    rows = ~parsed & (weight > 0)
    trees = X
    if not parsed.all():
        trees = X[parsed]
        sample_weight = None if sample_weight is None else weight[parsed]
        if not np.any(weight[parsed] > 0):
            name = estimator if isinstance(estimator, str) else type(estimator).__name__
            raise ValueError(
                f"{name} needs trees beside sentences, and none of these {len(X)} rows "
                "has a tree and a weight above 0"
            )
    trees, tree_weight = weighted_trees(trees, sample_weight, estimator)
    return trees, tree_weight, X[rows], weight[rows]


def transforms_shards(transform):
    """Let ``transform`` take shards, too, which are transformed when they are opened.

    Parameters
    ----------
    transform : callable
        A method ``transform(self, X)`` of a fitted transformer.

    Returns
    -------
    callable
        The method for a :class:`Treebank` or a :class:`ShardedTreebank`.
    """

    @wraps(transform)
    def wrapper(self, X):
        check_is_fitted(self)
        if isinstance(X, ShardedTreebank):
            return X.apply(self)
        return transform(self, X)

    return wrapper


class TreebankInputMixin(CheckedStateMixin):
    """An estimator that takes trees as X."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _check_sentences(self, X, sharded=False):
        """Check X for a method that takes trees and sentences, after the fit."""
        check_is_fitted(self)
        return check_treebank(X, estimator=self, allow_empty=True, sharded=sharded)

    def _check_trees(self, X):
        """Check X for a method that takes binary trees, after the fit."""
        check_is_fitted(self)
        return check_treebank(
            X, estimator=self, parsed=True, binary=True, allow_empty=True
        )


class TreebankTransformerMixin(
    TreebankInputMixin, TransformerMixin, auto_wrap_output_keys=None
):
    """A transformer that takes trees as X."""

    def fit_transform(self, X, y=None, **fit_params):
        """Fit to trees and transform them.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Training data.
        y : None
            Ignored.
        **fit_params
            Further arguments of ``fit``.

        Returns
        -------
        treebank : Treebank
        """
        # Both fit and transform read X, and an iterator can be read once.
        X = check_treebank(X, estimator=self, allow_empty=True, sharded=True)
        return super().fit_transform(X, y, **fit_params)
