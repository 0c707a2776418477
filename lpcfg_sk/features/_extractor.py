from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._ragged import find_keys
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.features._names import FeatureNames
from lpcfg_sk.features._node import Node
from lpcfg_sk.features._productions import Productions
from lpcfg_sk.treebank import (
    TreebankTransformerMixin,
    check_treebank,
    transforms_shards,
)
from lpcfg_sk.treebank._sharded import ShardedTreebank, map_shards


class _NodeFeatures(
    TreebankTransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Features of nodes as a CSR block of the treebank.

    A subclass names its block and its templates. The output is a treebank also under
    ``set_config(transform_output="pandas")``.
    """

    _block: str
    _named: dict

    _parameter_constraints: dict = {
        "templates": [StrOptions({"cohen2013"}), list, tuple],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "scaling": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, templates="cohen2013", *, min_count=1, scaling=None):
        self.templates = templates
        self.min_count = min_count
        self.scaling = scaling

    def fit(self, X, y=None):
        """Number the features that occur.

        Parameters
        ----------
        X : Treebank
            Binary trees; sentences without a tree have no nodes and no features.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self.fit_transform(X)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None):
        """Number the features that occur, and put them into the treebank.

        Parameters
        ----------
        X : Treebank
            Binary trees.
        y : None
            Ignored.

        Returns
        -------
        treebank : Treebank
            `X` with one more block.
        """
        if isinstance(X, ShardedTreebank):
            return self._fit_shards(X)
        X = check_treebank(X, estimator=self, binary=True)
        if X.n_nodes == 0:
            raise ValueError(
                f"{type(self).__name__} learns features from trees, and no row of X "
                "has a tree"
            )
        names = self._template_list()
        self.productions_ = Productions(X)
        self.vocabularies_ = []
        parts = []
        for rows, keys in self._raw(X, names):
            columns, vocabulary = _intern(keys, self.min_count)
            self.vocabularies_.append(vocabulary)
            parts.append(_csr(rows, columns, X.n_nodes, len(vocabulary)))
        block = sparse.hstack(parts, format="csr")
        self.n_features_out_ = block.shape[1]
        counts = np.bincount(block.indices, minlength=self.n_features_out_)
        self.counts_ = counts
        self.n_nodes_ = X.n_nodes
        return self._attach(X, block)

    @transforms_shards
    def transform(self, X):
        """Put the features of each node into the treebank.

        Parameters
        ----------
        X : Treebank
            Binary trees, or sentences.

        Returns
        -------
        treebank : Treebank
            `X` with one more block; features never seen in training are left out.
        """
        X = check_treebank(X, estimator=self, binary=True, allow_empty=True)
        parts = []
        raw = self._raw(X, self._template_list())
        for (rows, keys), vocabulary in zip(raw, self.vocabularies_, strict=True):
            columns = _look_up(keys, vocabulary)
            parts.append(_csr(rows, columns, X.n_nodes, len(vocabulary)))
        return self._attach(X, sparse.hstack(parts, format="csr"))

    def get_feature_names_out(self, input_features=None):
        """Return readable names of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str objects, shape (n_features,)
            Such as ``inside:rule=NP->DT NN``.
        """
        check_is_fitted(self)
        return np.array(self._names()[:], dtype=object)

    def _names(self):
        templates = self._template_list()
        return FeatureNames(
            [
                f"{self._block}:{_callable_name(t) if callable(t) else t}="
                for t in templates
            ],
            [None if callable(t) else self._named[t] for t in templates],
            self.vocabularies_,
            self.productions_,
        )

    def _fit_shards(self, X):
        """Number the features of all shards; the counts of each are added up."""
        names = self._template_list()
        trees = X.without_blocks()
        self.productions_ = Productions.of_shards(trees)
        totals, self.n_nodes_ = None, 0
        for n_nodes, parts in map_shards(self._count_keys, trees):
            self.n_nodes_ += n_nodes
            totals = parts if totals is None else list(map(_add_keys, totals, parts))
        if self.n_nodes_ == 0:
            raise ValueError(
                f"{type(self).__name__} learns features from trees, and no row of X "
                "has a tree"
            )
        self.vocabularies_, counts = [], []
        for _, (keys, count) in zip(names, totals, strict=True):
            kept = np.flatnonzero(count >= self.min_count)
            self.vocabularies_.append(
                [keys[i] for i in kept] if isinstance(keys, list) else keys[kept]
            )
            counts.append(count[kept])
        self.counts_ = np.concatenate(counts)
        self.n_features_out_ = len(self.counts_)
        return X.apply(self)

    def _count_keys(self, X):
        """Keys of each template in a treebank, and how often they occur."""
        X = check_treebank(X, estimator=self, binary=True, allow_empty=True)
        parts = []
        for rows, keys in self._raw(X, self._template_list()):
            columns, vocabulary = _intern(keys, 1)
            # A node has a feature once.
            block = _csr(rows, columns, X.n_nodes, len(vocabulary))
            count = np.bincount(block.indices, minlength=len(vocabulary))
            parts.append((vocabulary, count))
        return X.n_nodes, parts

    def _template_list(self):
        if self.templates == "cohen2013":
            return list(self._named)
        for template in self.templates:
            if not callable(template) and template not in self._named:
                raise ValueError(
                    f"{template!r} is no template of {type(self).__name__}; use a "
                    f"callable or one of {', '.join(map(repr, self._named))}"
                )
        if not self.templates:
            raise ValueError(f"{type(self).__name__} needs at least one template")
        return list(self.templates)

    def _raw(self, X, templates):
        """Yield, for each template, the rows and the keys of what it says."""
        columns = None
        for template in templates:
            if callable(template):
                yield _call_on_nodes(template, X)
                continue
            if columns is None:
                columns = self.productions_.columns(X)
            keys = self._named[template].keys(columns, self.productions_)
            rows = np.flatnonzero(keys >= 0)
            yield rows, keys[rows]

    def _attach(self, X, block):
        if self.scaling is not None:
            factors = np.sqrt(self.n_nodes_ / (self.counts_ + self.scaling))
            block.data *= factors.astype(block.dtype)[block.indices]
        return X.replace(
            blocks={**X.blocks, self._block: block},
            block_names={**X.block_names, self._block: self._names()},
        )


def _intern(keys, min_count):
    """Number the keys that occur often enough; -1 for the others."""
    if isinstance(keys, list):
        counts = {}
        for key in keys:
            counts[key] = counts.get(key, 0) + 1
        vocabulary = [key for key, count in counts.items() if count >= min_count]
        return _look_up(keys, vocabulary), vocabulary
    vocabulary, columns, counts = np.unique(
        keys, return_inverse=True, return_counts=True
    )
    if min_count > 1:
        kept = counts >= min_count
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        vocabulary, columns = vocabulary[kept], number[columns]
    return columns, vocabulary


def _add_keys(one, two):
    """Join (keys, counts) of two treebanks."""
    (keys, counts), (more, more_counts) = one, two
    if isinstance(keys, list):
        total = dict(zip(keys, counts.tolist(), strict=True))
        for key, count in zip(more, more_counts.tolist(), strict=True):
            total[key] = total.get(key, 0) + count
        return list(total), np.array(list(total.values()), dtype=np.int64)
    union = np.union1d(keys, more)
    total = np.zeros(len(union), dtype=np.int64)
    total[np.searchsorted(union, keys)] += counts
    total[np.searchsorted(union, more)] += more_counts
    return union, total


def _look_up(keys, vocabulary):
    if isinstance(keys, list):
        number = {key: i for i, key in enumerate(vocabulary)}
        return np.array([number.get(key, -1) for key in keys], dtype=np.int64)
    return find_keys(vocabulary, keys)


def _csr(rows, columns, n_rows, n_columns):
    """Indicator matrix of (row, column) pairs given in the order of rows."""
    kept = columns >= 0
    rows, columns = rows[kept], columns[kept]
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=indptr[1:])
    index = np.int32 if max(len(rows), n_columns) < 2**31 else np.int64
    data = np.ones(len(rows), dtype=np.float32)
    matrix = sparse.csr_matrix(
        (data, columns.astype(index), indptr.astype(index)),
        shape=(n_rows, n_columns),
    )
    matrix.sum_duplicates()
    return matrix


def _call_on_nodes(template, X):
    """Features that a user's function finds, node by node."""
    rows, keys = [], []
    bounds = X.node_offsets.tolist()
    for tree, (begin, end) in enumerate(pairwise(bounds)):
        for index in range(end - begin):
            found = template(Node(X, tree, index))
            if found is None:
                continue
            if isinstance(found, str | tuple) or not isinstance(found, Iterable):
                found = (found,)
            for key in found:
                rows.append(begin + index)
                keys.append(key)
    return np.array(rows, dtype=np.int64), keys


def _callable_name(template):
    return getattr(template, "__name__", type(template).__name__)
