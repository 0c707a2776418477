"""Features of the inside and outside trees of nodes, as CSR blocks of a treebank."""

from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._files import LeftOutMixin
from lpcfg_sk._ragged import find_keys, offsets
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.features._productions import Productions
from lpcfg_sk.features._templates import (
    INSIDE_TEMPLATES,
    OUTSIDE_TEMPLATES,
    FeatureNames,
    Node,
)
from lpcfg_sk.treebank import (
    TreebankTransformerMixin,
    check_treebank,
    over_chunks,
    transforms_shards,
)


class _NodeFeatures(
    LeftOutMixin, TreebankTransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Features of nodes as a CSR block of the treebank.

    A subclass names its block and its templates. The output is a treebank even under
    ``set_config(transform_output="pandas")``.
    """

    _block: str
    _named: dict
    _left_out = ("vocabularies_", "counts_", "productions_")

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
        X = check_treebank(X, estimator=self, binary=True, sharded=True)
        trees = X.without_blocks()
        templates = self._template_list()
        self.productions_ = Productions(trees)
        only_chunk = trees if len(trees.chunk_offsets) == 2 else None

        def count(chunk):
            parts = [_count(*raw, chunk.n_nodes) for raw in self._raw(chunk, templates)]
            # A treebank of one chunk is the chunk itself, so its blocks can be kept.
            blocks = [block for _, _, block in parts] if chunk is only_chunk else None
            return chunk.n_nodes, [part[:2] for part in parts], blocks

        self.n_nodes_, totals = 0, None
        for n_nodes, parts, chunk_blocks in over_chunks(count, trees):
            self.n_nodes_, blocks = self.n_nodes_ + n_nodes, chunk_blocks
            totals = parts if totals is None else list(map(_add_counts, totals, parts))
        if self.n_nodes_ == 0:
            raise ValueError(
                f"{type(self).__name__} learns features from trees, and no row of X "
                "has a tree"
            )
        kept = [np.flatnonzero(counts >= self.min_count) for _, counts in totals]
        self.vocabularies_ = [
            _take(vocabulary, rows)
            for (vocabulary, _), rows in zip(totals, kept, strict=True)
        ]
        self.counts_ = np.concatenate(
            [counts[rows] for (_, counts), rows in zip(totals, kept, strict=True)]
        )
        self.n_features_out_ = len(self.counts_)
        if blocks is None:
            return self.transform(X)
        if self.min_count > 1:
            blocks = [block[:, rows] for block, rows in zip(blocks, kept, strict=True)]
        return self._attach(X, sparse.hstack(blocks, format="csr"))

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
            In a parser that was loaded from a compact file `X` is returned unchanged,
            because parsing does not read features.
        """
        X = check_treebank(X, estimator=self, binary=True, allow_empty=True)
        check_is_fitted(self)
        if not hasattr(self, "vocabularies_"):
            return X
        if X.n_nodes == 0:
            # Sentences to parse have no nodes, and so no features.
            empty = (0, self.n_features_out_)
            return self._attach(X, sparse.csr_matrix(empty, dtype=np.float32))
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
        """Yield the rows and the keys of the features of each template."""
        nodes = None
        for template in templates:
            if callable(template):
                yield _call_on_nodes(template, X)
                continue
            if X.n_nodes == 0:
                yield np.zeros(0, np.int64), np.zeros(0, np.int64)
                continue
            if nodes is None:
                nodes = self.productions_.columns(X)
            keys = self._named[template].keys(nodes, self.productions_)
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


class InsideFeatures(_NodeFeatures, auto_wrap_output_keys=None):
    """Features φ of the inside tree of each node.

    The inside tree of a node is the subtree below it. The features become the
    sparse block ``"inside"`` of the treebank, one row per node.

    Parameters
    ----------
    templates : "cohen2013" or list of str or callable, default="cohen2013"
        Which features. Names, for a node a with the rule a → b c:

        - ``"left"``, ``"right"``: (a, b) and (a, c);
        - ``"rule"``: a → b c;
        - ``"rule+left"``, ``"rule+right"``: the rule with the rule at a child;
        - ``"head"``: a with the tag of its head word;
        - ``"length"``: a with its number of words;
        - ``"word"``: a → x, the only feature of pre-terminals.

        ``"cohen2013"`` means all of them. A callable takes a :class:`Node` and
        returns a feature (a str or another hashable), a list of features, or None;
        it runs in Python for each node.
    min_count : int, default=1
        Features that occur at fewer nodes of the training trees are left out.
    scaling : float, default=None
        Multiply feature i by √(M / (count_i + scaling)), with M the number of
        nodes. None leaves indicators, which is what :class:`SpectralLPCFG` expects:
        it scales by itself.

    Attributes
    ----------
    n_features_out_ : int
        Number of features.
    counts_ : ndarray of int, shape (n_features,)
        Number of training nodes with each feature.
    n_nodes_ : int
        Number of nodes in training.
    productions_ : object
        Symbols and rules of the training trees.
    vocabularies_ : list
        For each template the keys of its columns, in order.

    See Also
    --------
    OutsideFeatures : Features of everything around the subtree.

    References
    ----------
    S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2013).
    Experiments with spectral learning of latent-variable PCFGs. NAACL.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.features import InsideFeatures
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))"])
    >>> features = InsideFeatures(templates=["rule", "length", "word"])
    >>> features.fit_transform(trees).blocks["inside"].shape
    (5, 7)
    >>> features.get_feature_names_out()[:3]
    array(['inside:rule=S->NP V', 'inside:rule=NP->D N', 'inside:length=S 3'],
          dtype=object)
    """

    _block = "inside"
    _named = INSIDE_TEMPLATES


class OutsideFeatures(_NodeFeatures, auto_wrap_output_keys=None):
    """Features ψ of the outside tree of each node.

    The outside tree of a node is everything but the subtree below it; the node
    itself is its foot. The features become the sparse block ``"outside"`` of the
    treebank, one row per node.

    Parameters
    ----------
    templates : "cohen2013" or list of str or callable, default="cohen2013"
        Which features. Names, for a foot a:

        - ``"rule"``, ``"rule2"``, ``"rule3"``: the one, two and three rules above,
          the path to the foot marked;
        - ``"parent"``, ``"grandparent"``: a with the labels above;
        - ``"head"``: a with the tag of the first head word on the path to the root
          that is not the foot's own head; of an intermediate foot ``@X``, whose own
          head depends on its inside tree, with the tag of its sibling's head;
        - ``"left"``, ``"right"``: a with the number of words before and after.

        ``"cohen2013"`` means all of them. A callable takes a :class:`Node` and
        returns a feature (a str or another hashable), a list of features, or None;
        it runs in Python for each node.
    min_count : int, default=1
        Features that occur at fewer nodes of the training trees are left out.
    scaling : float, default=None
        Multiply feature i by √(M / (count_i + scaling)), with M the number of
        nodes. None leaves indicators, which is what :class:`SpectralLPCFG` expects:
        it scales by itself.

    Attributes
    ----------
    n_features_out_ : int
        Number of features.
    counts_ : ndarray of int, shape (n_features,)
        Number of training nodes with each feature.
    n_nodes_ : int
        Number of nodes in training.
    productions_ : object
        Symbols and rules of the training trees.
    vocabularies_ : list
        For each template the keys of its columns, in order.

    See Also
    --------
    InsideFeatures : Features of the subtree below a node.

    References
    ----------
    S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2013).
    Experiments with spectral learning of latent-variable PCFGs. NAACL.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.features import OutsideFeatures
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))"])
    >>> features = OutsideFeatures(templates=["rule2", "left"])
    >>> features.fit_transform(trees).blocks["outside"].shape
    (5, 9)
    >>> features.get_feature_names_out()[:2]
    array(['outside:rule2=S->[NP] V | TOP->[S]',
           'outside:rule2=S->NP [V] | TOP->[S]'], dtype=object)
    """

    _block = "outside"
    _named = OUTSIDE_TEMPLATES


def _count(rows, keys, n_nodes):
    """Return the keys that occur, at how many nodes, and their indicator matrix."""
    if isinstance(keys, list):
        vocabulary = list(dict.fromkeys(keys))
        columns = _look_up(keys, vocabulary)
    else:
        vocabulary, columns = np.unique(keys, return_inverse=True)
    block = _csr(rows, columns, n_nodes, len(vocabulary))
    # Counts come from the matrix: a callable may name a feature twice at one node.
    return vocabulary, np.bincount(block.indices, minlength=len(vocabulary)), block


def _add_counts(one, two):
    """Add the (vocabulary, counts) of two chunks."""
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


def _take(vocabulary, rows):
    if isinstance(vocabulary, list):
        return [vocabulary[i] for i in rows]
    return vocabulary[rows]


def _look_up(keys, vocabulary):
    if isinstance(keys, list):
        column = {key: i for i, key in enumerate(vocabulary)}
        return np.array([column.get(key, -1) for key in keys], dtype=np.int64)
    return find_keys(vocabulary, keys)


def _csr(rows, columns, n_rows, n_columns):
    """Indicator matrix of (row, column) pairs given in the order of rows."""
    kept = columns >= 0
    rows, columns = rows[kept], columns[kept]
    indptr = offsets(np.bincount(rows, minlength=n_rows))
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
            named = template(Node(X, tree, index))
            if named is None:
                continue
            if isinstance(named, str | tuple) or not isinstance(named, Iterable):
                named = (named,)
            for key in named:
                rows.append(begin + index)
                keys.append(key)
    return np.array(rows, dtype=np.int64), keys


def _callable_name(template):
    return getattr(template, "__name__", type(template).__name__)
