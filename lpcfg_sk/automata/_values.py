"""Values of trees and of sentences under a tree automaton."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._wta_charts import (
    SpanFeatures,
    node_heights,
    rescale_rows,
    spread_splits,
    sum_splits,
)
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk.automata._algebra import add_tensors
from lpcfg_sk.automata._tensors import blocks, scale_exponent
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.treebank import check_treebank

#: Numbers (nodes × states) that one chunk of trees keeps in memory.
_CHUNK_NUMBERS = 4_000_000


def terminal_vectors(wta, X):
    """Look up the terminal weights of the tokens of a treebank.

    Parameters
    ----------
    wta : WTA
        The automaton.
    X : Treebank
        Trees or sentences.

    Returns
    -------
    omega : ndarray of float64, shape (n_words + 1, n)
        Terminal weights; the last row, of zeros, is that of words without any weight.
    word : ndarray of int, shape (n_tokens,)
        Row of each token; -1 is the last one.
    """
    word = X.words.known_class(X.words.map_to(wta.words))
    if wta.unknown_word is not None:
        unknown = wta.words.index(wta.unknown_word)
        word = np.where(word >= 0, word, unknown)
    return np.vstack([wta.omega_matrix, np.zeros(wta.n_states)]), word[X.word]


# -- trees -----------------------------------------------------------------------


class _Trees(NamedTuple):
    """Some trees, with the weights of an automaton for their nodes.

    Parameters
    ----------
    tensors : sequence of tensors
        Transition tensors of ordinary size.
    log_unit : ndarray of float64, shape (n_tensors + 1,)
        Logarithm of the factor that each tensor lacks, followed by 0.
    label : ndarray of int, shape (n_nodes,)
        Tensor of each inner node, -1 where there is none.
    leaves : ndarray of float64, shape (n_tokens, n)
        Terminal weights of the tokens.
    node_offsets : ndarray of int64, shape (n_trees + 1,)
        First node of each tree.
    size : ndarray of int32, shape (n_nodes,)
        Number of nodes of each subtree, in preorder.
    """

    tensors: tuple
    log_unit: np.ndarray
    label: np.ndarray
    leaves: np.ndarray
    node_offsets: np.ndarray
    size: np.ndarray


def tree_log_values(wta, X, *, n_jobs=None):
    """Sign and log absolute value of f(t) for each tree.

    The tensor is applied once to all nodes of one height in a chunk of trees. The
    vector of each node is divided by its largest absolute value and the logarithm is
    kept, so nothing under- or overflows.

    Parameters
    ----------
    wta : WTA
        The automaton.
    X : Treebank
        Binary trees.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    sign : ndarray of float64, shape (n_trees,)
        -1, 0 or 1.
    log : ndarray of float64, shape (n_trees,)
        -inf where the sign is 0.
    """
    return _over_chunks(_values, wta, X, n_jobs) or (np.zeros(0), np.zeros(0))


def tree_condition_numbers(wta, X, *, n_jobs=None):
    """Condition number Σ_v ‖α(c_v)‖ ‖ω(t_v)‖ / |f(t)| of each tree's value.

    The sum is over the nodes v of t = c_v[t_v]. As f(t) = α(c_v)ᵀω(t_v), each term
    is one over the cosine of an angle, and vectors of length 1 are enough.

    Parameters
    ----------
    wta, X, n_jobs
        As in `tree_log_values`.

    Returns
    -------
    ndarray of float64, shape (n_trees,)
        inf where the value is zero.
    """
    columns = _over_chunks(_condition_numbers, wta, X, n_jobs)
    return columns[0] if columns else np.zeros(0)


def tree_vectors(wta, X, *, n_jobs=None):
    """Vectors ω(t) of trees, and the logarithms of the factors taken out of them."""
    return _over_chunks(_root_vectors, wta, X, n_jobs) or _no_vectors(wta)


def leaf_contexts(wta, X, *, n_jobs=None):
    """Vectors α(c) of the contexts of all leaves, and their log scales."""
    return _over_chunks(_leaf_contexts, wta, X, n_jobs) or _no_vectors(wta)


def _no_vectors(wta):
    return np.zeros((0, wta.n_states)), np.zeros(0)


def _over_chunks(function, wta, X, n_jobs):
    """Concatenated columns of a function of α and of chunks of trees."""
    alpha = wta.alpha
    omega, word = terminal_vectors(wta, X)
    if wta.labels is None:
        label = np.zeros(X.n_nodes, dtype=np.int32)
    else:
        label = X.labels.map_to(wta.labels)[X.label]
    tensors, exponents = zip(*(t.normalized() for t in wta.tensors), strict=True)
    # A node without a tensor has weight zero, whatever the scale.
    log_unit = np.log(2.0) * np.array([*exponents, 0])

    def of_chunk(begin, end):
        nodes = slice(*X.node_offsets[[begin, end]])
        tokens = slice(*X.token_offsets[[begin, end]])
        node_offsets = X.node_offsets[begin : end + 1] - X.node_offsets[begin]
        leaves = omega[word[tokens]]
        trees = _Trees(
            tensors, log_unit, label[nodes], leaves, node_offsets, X.size[nodes]
        )
        return function(alpha, trees)

    chunks = cut_by_work(np.diff(X.node_offsets) * len(alpha), _CHUNK_NUMBERS)
    parts = list(map_chunks(of_chunk, chunks, n_jobs=n_jobs))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _values(alpha, trees):
    vectors, log_scale, _ = _inside(trees)
    root = trees.node_offsets[:-1]
    exponent = scale_exponent(alpha)
    value = vectors[root] @ np.ldexp(alpha, -exponent)
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(value)) + log_scale[root] + np.log(2.0) * exponent
    return np.where(log > -np.inf, np.sign(value), 0.0), log


def _condition_numbers(alpha, trees):
    inside, scale, levels = _inside(trees)
    outside, _ = _outside(alpha, trees, inside, scale, levels)
    value = np.abs(np.einsum("vi,vi->v", outside, inside))
    length = np.linalg.norm(outside, axis=1) * np.linalg.norm(inside, axis=1)
    terms = np.divide(length, value, out=np.full(len(value), np.inf), where=value > 0)
    return (np.add.reduceat(terms, trees.node_offsets[:-1]),)


def _root_vectors(alpha, trees):
    vectors, log_scale, _ = _inside(trees)
    root = trees.node_offsets[:-1]
    return vectors[root], log_scale[root]


def _leaf_contexts(alpha, trees):
    outside, log_scale = _outside(alpha, trees, *_inside(trees))
    leaf = trees.size == 1
    return outside[leaf], log_scale[leaf]


def _outside(alpha, trees, inside, inside_scale, levels):
    """Rescaled α(c_v) of all nodes, and their log scales."""
    outside, scale = np.zeros_like(inside), np.zeros(len(inside))
    outside[trees.node_offsets[:-1]] = alpha
    to_left, to_right = (
        [t.permuted(axes) for t in trees.tensors] for axes in ((1, 0, 2), (2, 0, 1))
    )
    for nodes in reversed(levels[1:]):
        left = nodes + 1
        right = left + trees.size[left]
        label, above, log_scale = trees.label[nodes], outside[nodes], scale[nodes]
        rescale_rows(above, log_scale)
        log_scale += trees.log_unit[label]
        for to, below, beside in ((to_left, left, right), (to_right, right, left)):
            outside[below] = _apply(to, label, above, inside[beside])
            scale[below] = log_scale + inside_scale[beside]
    rescale_rows(outside, scale)
    return outside, scale


def _inside(trees):
    """Rescaled ω(t_v) of all nodes, their log scales, and the nodes by height."""
    tensors, log_unit, label, leaves, node_offsets, size = trees
    height = node_heights(node_offsets, size)
    order = np.argsort(height, kind="stable")
    levels = np.split(order, np.cumsum(np.bincount(height))[:-1])
    vectors = np.empty((len(size), leaves.shape[1]))
    scale = np.zeros(len(size))
    rows, log_scale = np.array(leaves), np.zeros(len(leaves))
    rescale_rows(rows, log_scale)
    vectors[levels[0]], scale[levels[0]] = rows, log_scale
    for nodes in levels[1:]:
        left = nodes + 1
        right = left + size[left]
        rows = _apply(tensors, label[nodes], vectors[left], vectors[right])
        log_scale = scale[left] + scale[right] + log_unit[label[nodes]]
        rescale_rows(rows, log_scale)
        vectors[nodes], scale[nodes] = rows, log_scale
    return vectors, scale, levels


def _apply(tensors, label, left, right):
    """Rows T(I, left, right) with the tensor of each row's label."""
    if len(tensors) == 1 and (label == 0).all():
        return tensors[0].apply(left, right)
    rows = np.zeros_like(left)
    for t, tensor in enumerate(tensors):
        own = label == t
        if own.any():
            rows[own] = tensor.apply(left[own], right[own])
    return rows


# -- sentences -------------------------------------------------------------------


def width_offsets(length):
    """Number of the first span of each width.

    Parameters
    ----------
    length : int
        Number of words.

    Returns
    -------
    ndarray of int64, shape (length + 2,)
        ``first[w] + s`` is the number of the span [s, s + w), as `span_index` gives
        it to kernels; the last entry is the number of spans.
    """
    return offsets([0, *range(length, 0, -1)])


class SpanChart:
    """Inside and outside vectors of all spans of a sentence.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    tensor : DenseTensor, SparseTensor or CPTensor
        Transition weights, summed over node labels.
    leaves : ndarray of float64, shape (length, n)
        Terminal weights of the words.
    max_memory : int, default=2**31
        Most bytes that the chart may take.

    Attributes
    ----------
    sign : float
        Sign of the string value Σ_t f(t) over the trees t of the sentence.
    log_value : float
        Logarithm of its absolute value.
    first : ndarray of int64, shape (length + 2,)
        ``first[w] + s`` is the number of the span [s, s + w).
    """

    def __init__(self, alpha, tensor, leaves, max_memory=2**31):
        exponent = scale_exponent(alpha)
        self.alpha = np.ldexp(alpha, -exponent)
        self.tensor, tensor_exponent = tensor.normalized()
        self.length, n = leaves.shape
        self.first = width_offsets(self.length)
        self.n_cells = int(self.first[-1])
        needed = 8 * self.n_cells * 5 * n
        if needed > max_memory:
            raise ChartMemoryError(
                f"The chart of a sentence of {self.length} words under an automaton "
                f"of {n} states takes about {needed / 2**20:.0f} MiB, more than "
                f"max_memory={max_memory}; raise max_memory, leave the sentence out "
                "or use fewer states."
            )
        self.inside = np.zeros((self.n_cells, n))
        self.scale = np.zeros(self.n_cells)
        left = right = self.inside
        if self.tensor.kind == "cp":
            left, right = np.zeros((2, self.n_cells, self.tensor.rank))
        self.features = SpanFeatures(self.length, left, right, self.scale)
        self.inside[: self.length] = leaves
        self._finish(slice(0, self.length))
        for width in range(2, self.length + 1):
            for lo, hi, cells in self._rows(width):
                self._fill(width, lo, hi, cells)
        value = float(self.inside[-1] @ self.alpha)
        self.sign = float(np.sign(value))
        self.log_value = -np.inf
        if value != 0:
            # A tree over n words has n − 1 inner nodes.
            power = exponent + (self.length - 1) * tensor_exponent
            self._log_sum = float(np.log(abs(value)) + self.scale[-1])
            self.log_value = self._log_sum + power * np.log(2.0)

    def _rows(self, width):
        """Runs lo:hi of the spans of one width, and the numbers of those spans."""
        n_spans, first = self.length - width + 1, self.first[width]
        for lo, hi in blocks(n_spans, 8 * self.tensor.n_features):
            yield lo, hi, slice(first + lo, first + hi)

    def _finish(self, cells):
        rescale_rows(self.inside[cells], self.scale[cells])
        if self.tensor.kind == "cp":
            self.features.left[cells] = self.tensor.left(self.inside[cells])
            self.features.right[cells] = self.tensor.right(self.inside[cells])

    def _fill(self, width, lo, hi, cells):
        sums = np.empty((hi - lo, self.tensor.n_features))
        log_scale = np.empty(hi - lo)
        sum_splits(width, lo, self.features, self.tensor.pairs, sums, log_scale)
        self.inside[cells] = self.tensor.combine(sums)
        self.scale[cells] = log_scale
        self._finish(cells)

    def posteriors(self):
        """Share of the string value that each span's trees have.

        Returns
        -------
        ndarray of float64, shape (n_cells,)
            ``μ(s, w) = Σ_{t ∋ span} f(t) / Σ_t f(t)``, 1 for the whole sentence
            and for single words; may be negative or above 1 for signed automata.

        Raises
        ------
        ValueError
            If the string value is zero.
        """
        if self.sign == 0:
            raise ValueError("A sentence of value zero has no posteriors of spans.")
        to_left, to_right = np.zeros((2, *self.features.left.shape))
        scales = np.full(self.n_cells, -np.inf)
        outside_features = SpanFeatures(self.length, to_left, to_right, scales)
        mu = np.zeros(self.n_cells)
        for width in range(self.length, 0, -1):
            for lo, _, cells in self._rows(width):
                if width == self.length:
                    outside, log_scale = self.alpha[None, :].copy(), np.zeros(1)
                else:
                    outside = self.tensor.left_adjoint(to_left[cells])
                    outside = outside + self.tensor.right_adjoint(to_right[cells])
                    log_scale = scales[cells].copy()
                rescale_rows(outside, log_scale)
                value = np.einsum("mj,mj->m", outside, self.inside[cells])
                weight = np.exp(log_scale + self.scale[cells] - self._log_sum)
                mu[cells] = self.sign * value * weight
                if width == 1:
                    continue
                grads = np.ascontiguousarray(self.tensor.combine_adjoint(outside))
                weights = grads, log_scale, outside_features
                spread_splits(width, lo, self.features, self.tensor.pairs, *weights)
        return mu


class SentenceValues:
    """Methods of a tree automaton for sentences: sums over all their trees."""

    def span_charts(self, X, *, max_memory=2**31):
        """Yield the chart of each sentence, over all its trees.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words count; trees are ignored.
        max_memory : int, default=2**31
            Most bytes that the chart of one sentence may take.

        Yields
        ------
        SpanChart
            String value and posteriors of spans.
        """
        X = check_treebank(X, estimator="WTA", allow_empty=True)
        empty = np.flatnonzero(X.lengths == 0)
        if len(empty):
            raise ValueError(f"row {empty[0]} is an empty sentence, which has no trees")
        chart = self.chart_maker(X, max_memory=max_memory)
        for row in range(len(X)):
            yield chart(row)

    def chart_maker(self, X, *, max_memory=2**31):
        """Prepare the charts of many sentences.

        Parameters
        ----------
        X : Treebank
            The sentences.
        max_memory : int, default=2**31
            Most bytes that the chart of one sentence may take.

        Returns
        -------
        callable
            Takes the number of a row that has words and returns its `SpanChart`.
        """
        omega, word = terminal_vectors(self, X)
        tensor = add_tensors(self.tensors)

        def chart(row):
            leaves = omega[word[slice(*X.token_offsets[row : row + 2])]]
            return SpanChart(self.alpha, tensor, leaves, max_memory)

        return chart

    def sentence_log_value(self, X, *, max_memory=2**31):
        """Sign and log absolute value of f_G(w) = Σ f(t) over the trees t of w.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words count; trees are ignored.
        max_memory : int, default=2**31
            Most bytes that the chart of one sentence may take.

        Returns
        -------
        sign : ndarray of float64, shape (n_sentences,)
        log : ndarray of float64, shape (n_sentences,)
        """
        charts = self.span_charts(X, max_memory=max_memory)
        values = np.array([(c.sign, c.log_value) for c in charts]).reshape(-1, 2)
        if np.isnan(values).any():
            raise ValueError(
                "the weights of the automaton are too large: sums of them are not "
                "defined in double precision; scale them down"
            )
        return values[:, 0], values[:, 1]

    def sentence_value(self, X, *, max_memory=2**31):
        """String value f_G(w) = Σ f(t) over all trees t with the words w.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words count; trees are ignored.
        max_memory : int, default=2**31
            Most bytes that the chart of one sentence may take.

        Returns
        -------
        ndarray of float64, shape (n_sentences,)
        """
        sign, log = self.sentence_log_value(X, max_memory=max_memory)
        with np.errstate(over="ignore"):
            return sign * np.exp(log)
