"""Sums over all trees: whether they converge, singular values, norms, distances."""

import numpy as np

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata._algebra import common_words, sum_parts
from lpcfg_sk.automata._fixed_points import (
    CRITICAL,
    TOL,
    QuadraticStep,
    fixed_point,
    leading_value,
)
from lpcfg_sk.automata._gram_matrices import (
    GramMatrices,
    cross_gram,
    diagonal_sizes,
    find_recursion,
    gram_analysis,
    tree_analysis,
    tree_sum,
    value_unit,
)
from lpcfg_sk.automata._reduction import reduce_exactly, restrict, useful_states
from lpcfg_sk.automata._svta import (
    convergent_form,
    exact_reduction,
    hankel_svd,
    minimum,
    rescale_terminals,
    summable_form,
)
from lpcfg_sk.automata._tensors import DenseTensor
from lpcfg_sk.exceptions import NotStronglyConvergentError

#: Relative squared distance below which its three inner products cancel too much.
_CANCELLATION = 1e-9
#: Largest joint number of states for which a difference is solved as one automaton.
_MAX_DIFFERENCE_STATES = 160
#: Most steps in which to find that a sum of signed weights diverges.
_SIGNED_STEPS = 1000


class SumsOverTrees:
    """Gram matrices, singular values, minimisation and distances of automata."""

    def analysis(self):
        """Gram matrices over the useful states; solved once.

        Returns
        -------
        Analysis
            Named tuple (states, gram, radius, unit).
        """
        return gram_analysis(self)

    def gram_matrices(self):
        """Gram matrices of all contexts and of all trees (Algorithm 2).

        Returns
        -------
        GramMatrices
            Named tuple (context, tree) of n × n matrices, G_C = Σ_c α(c)α(c)ᵀ and
            G_T = Σ_t ω(t)ω(t)ᵀ. States that no tree reaches or no context observes
            play no part in f; their rows and columns are zero.

        Raises
        ------
        NotStronglyConvergentError
            If the sums diverge.
        """
        wta, c = rescale_terminals(self)
        states, gram, _, unit = gram_analysis(wta)
        with np.errstate(over="ignore", under="ignore"):
            parts = gram.context * (unit / c) * (unit / c), gram.tree * c * c
        whole = np.zeros((2, self.n_states, self.n_states))
        whole[:, states[:, None], states] = parts
        return GramMatrices(*whole)

    def spectral_radius(self):
        """Spectral radius ρ(E) of the Gram iteration at its fixed point.

        Returns
        -------
        float
            Below 1 where `is_square_convergent`, 0 for automata without recursion; inf
            where the sum over trees has no finite value. Hidden states count here and
            may diverge, although `is_square_convergent` and `singular_values` ignore
            them.
        """
        try:
            return gram_analysis(rescale_terminals(self)[0]).radius
        except NotStronglyConvergentError:
            return np.inf

    @property
    def is_square_convergent(self):
        """Whether Σ_t |t| f(t)² is finite, as singular values need.

        The sum is that of all squared entries of the Hankel matrix. It is finite for
        every strongly convergent f, and for others: see `is_strongly_convergent`.
        """
        try:
            convergent_form(self)
        except NotStronglyConvergentError:
            return False
        return True

    @property
    def is_convergent(self):
        """The same as `is_square_convergent`, not the paper's strong convergence."""
        return self.is_square_convergent

    @property
    def is_strongly_convergent(self):
        """Whether Σ_t |t| |f(t)| is finite, as theorem 3 of the paper assumes.

        For a probability distribution it says that trees have a finite expected size.
        It implies `is_square_convergent`, but not the other way round. No method of
        this class requires it. None where weights of both signs leave it undecided:
        the sum is finite if the sum of the absolute weights is, and infinite if
        Σ_t f(c[t]) is for some context c or `is_square_convergent` is false; no
        algorithm is known for the remaining cases.

        Examples
        --------
        >>> from lpcfg_sk import WTA
        >>> [WTA([1.0], [[[p]]], {"a": [0.5]}).is_strongly_convergent
        ...  for p in (0.49, 0.51)]
        [True, False]
        """
        return self._cached("strong", lambda: strongly_convergent(self))

    def singular_values(self, *, rank_tol=None):
        """Singular values of the Hankel matrix of f, largest first.

        Parameters
        ----------
        rank_tol : float, default=None
            Share of the largest value that counts as zero; rounding error where
            None.

        Returns
        -------
        ndarray of float64, shape (rank,)
            Empty for the zero function.
        """
        _check_rank_tol(rank_tol)
        return hankel_svd(self, rank_tol).singular_values

    def minimize(self, *, rank_tol=None):
        """Make the smallest automaton of the same function, up to rounding.

        Parameters
        ----------
        rank_tol : float, default=None
            Share of the largest singular value that counts as zero. With any value,
            parts of f that are hidden by rounding errors of other parts are lost: those
            about 1e-8 below the others, unless they have separate states.

        Returns
        -------
        WTA
            The singular value tree automaton of f, or of a reweighted f where f is
            not square convergent or its weights are far from 1; one state of
            weight zero for the zero function.
        """
        _check_rank_tol(rank_tol)
        return minimum(self, rank_tol)

    def truncate(self, n, *, rank_tol=None):
        """Keep the n leading states of the singular value tree automaton.

        Parameters
        ----------
        n : int
            Number of states; the rank of f is enough for f itself.
        rank_tol : float, default=None
            Share of the largest singular value that counts as zero.

        Returns
        -------
        WTA

        Raises
        ------
        NotStronglyConvergentError
            If f has no singular value decomposition.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n should be a positive number of states, got {n!r}.")
        _check_rank_tol(rank_tol)
        return hankel_svd(self, rank_tol).truncate(int(n))

    def inner_product(self, other):
        """Sum of f(t) g(t) over all trees.

        Parameters
        ----------
        other : WTA
            Square convergent, like this one.

        Returns
        -------
        float
        """
        self._check_same_trees(other)
        pair = summable_form(self), summable_form(other)
        return _inner_product(*pair) * value_unit(pair[0]) * value_unit(pair[1])

    def norm(self):
        """The ℓ2 norm of f, the root of Σ_t f(t)².

        Returns
        -------
        float
        """
        wta = summable_form(self)
        return float(np.sqrt(max(_inner_product(wta, wta), 0.0))) * value_unit(wta)

    def distance(self, other, *, method="auto"):
        """The ℓ2 distance of two functions, the root of Σ_t (f(t) − g(t))².

        Parameters
        ----------
        other : WTA
            Square convergent, like this one.
        method : {"auto", "inner", "difference"}, default="auto"
            "inner" takes three inner products, which cannot tell functions apart that
            differ by less than about 1e-7 of their norm; "difference" takes the
            automaton of the difference; "auto" takes the latter where it matters and
            the ranks of both functions add up to 160 at most. The unknown word is a
            word like any other here.

        Returns
        -------
        float
        """
        if method not in ("auto", "inner", "difference"):
            raise ValueError(
                f"method should be 'auto', 'inner' or 'difference', got {method!r}."
            )
        self._check_same_trees(other)
        pair = summable_form(self), summable_form(other)
        return float(_distance(*pair, method)) * max(map(value_unit, pair))

    def _check_same_trees(self, other):
        if not isinstance(other, SumsOverTrees):
            raise TypeError(f"expected another WTA, got {type(other).__name__}.")
        if (self.labels is None) != (other.labels is None):
            raise ValueError(
                "One automaton has a tensor for each node label and the other ignores "
                "labels; give both the same kind of transitions."
            )


def _check_rank_tol(rank_tol):
    if rank_tol is not None and not 0 <= rank_tol < 1:
        raise ValueError(
            "rank_tol should be None or a share of the largest singular value, from 0 "
            f"to below 1, got {rank_tol!r}."
        )


def _inner_product(first, second):
    """Sum of f(t) g(t) over all trees, in units of `value_unit` of both automata."""
    pair = first, second
    states, _, trees, _ = zip(*map(tree_analysis, pair), strict=True)
    if any(len(useful) == 0 for useful in states):
        return 0.0
    parts = [restrict(wta, useful) for wta, useful in zip(pair, states, strict=True)]
    alpha1, alpha2 = (
        part[0] / value_unit(wta) for part, wta in zip(parts, pair, strict=True)
    )
    with one_blas_thread():
        if first is second:
            return float(alpha1 @ trees[0] @ alpha2)
        cross = _cross(pair, [part[1] for part in parts], states, trees)
        return float(alpha1 @ cross @ alpha2)


def _cross(pair, tensors, states, trees):
    """Sum of ω_A(t)ω_B(t)ᵀ over all trees, for some states of a pair of automata.

    Parameters
    ----------
    pair : tuple of two WTA
        The automata.
    tensors : sequence of two sequences of tensors
        Their transitions between those states.
    states : sequence of two ndarray of int64 or slice
        The states.
    trees : sequence of two ndarray of float64, shape (n, n)
        Their Gram matrices of all trees.

    Returns
    -------
    ndarray of float64, shape (n_first, n_second)
    """
    first, second = pair
    if first.labels is not None:
        by_label = [
            dict(zip(wta.labels, own, strict=True))
            for wta, own in zip(pair, tensors, strict=True)
        ]
        shared = [label for label in first.labels if label in by_label[1]]
        tensors = [[own[label] for label in shared] for own in by_label]
    _, omegas, _ = common_words(first, second, literal=True)
    omegas = [omega[:, useful] for omega, useful in zip(omegas, states, strict=True)]
    sizes = [diagonal_sizes(tree) for tree in trees]
    return cross_gram(tensors[0], omegas[0], tensors[1], omegas[1], sizes)


def _distance(first, second, method):
    """Root of Σ_t (f(t) − g(t))², in units of the larger `value_unit` of the two."""
    units = np.array([value_unit(first), value_unit(second)])
    units /= units.max()
    own = units**2 * [_inner_product(w, w) for w in (first, second)]
    if own.min() <= 0:
        return np.sqrt(max(own.max(), 0.0))
    if method != "difference":
        value = own.sum() - 2 * units.prod() * _inner_product(first, second)
        if method == "inner" or value > _CANCELLATION * own.max():
            return np.sqrt(max(value, 0.0))
    if method == "auto" and not _can_be_subtracted(first, second):
        return np.sqrt(max(value, 0.0))
    small = [minimum(w) for w in (first, second)]
    with one_blas_thread():
        return _difference(*small, max(value_unit(first), value_unit(second)))


def _can_be_subtracted(first, second):
    """Whether the difference of two functions has few enough states.

    Ranks are those of the exact reduction, which is much faster than singular values.
    It is not computed if one automaton already exceeds the limit.
    """
    n_states = 0
    for wta in sorted((first, second), key=lambda w: w.n_parameters):
        n_states += exact_reduction(wta, useful_states(wta)).rank
        if n_states > _MAX_DIFFERENCE_STATES:
            return False
    return True


def _difference(first, second, unit):
    """Norm of f − g in coordinates where the difference itself is small.

    With M = S_AB S_BB⁺ the states δ = ω_A(t) − M ω_B(t) and ω_B(t) compute f − g;
    all entries of the Gram matrix of δ are of the size of the difference, so
    nothing cancels.
    """
    alpha, tensors, omega, *_ = sum_parts(first, -second, literal=True)
    n, alpha = first.n_states, alpha / unit
    pair = first, second
    trees = [wta.gram_matrices().tree for wta in pair]
    cross = _cross(pair, [wta.tensors for wta in pair], [slice(None)] * 2, trees)
    own = gram_analysis(second).gram.tree
    sizes = diagonal_sizes(own)
    inverse = np.linalg.pinv(own / np.outer(sizes, sizes), rcond=1e-10, hermitian=True)
    shift = (cross / sizes) @ inverse / sizes
    basis = np.eye(len(alpha))
    basis[:n, n:] = shift
    dual = np.eye(len(alpha))
    dual[:n, n:] = -shift
    tensors = [DenseTensor(t.to_dense()).project(dual.T, basis, basis) for t in tensors]
    gram, _ = tree_sum(tensors, omega @ dual.T, find_recursion(tensors))
    alpha = basis.T @ alpha
    return np.sqrt(max(float(alpha @ gram @ alpha), 0.0))


def strongly_convergent(wta):
    """Decide whether Σ_t |t| |f(t)| is finite.

    Parameters
    ----------
    wta : WTA
        The automaton of f.

    Returns
    -------
    bool or None
        None where weights of both signs leave it undecided.

    Notes
    -----
    With nonnegative weights s = Σ_t ω(t) is the least solution of
    s = Σ_σ ω_σ + T(I, s, s), and Σ_t |t| f(t) is finite if and only if s is and the
    derivative T(I, s, ·) + T(I, ·, s) has a spectral radius below 1, as in the proof of
    theorem 4 of Rabusseau, Balle and Cohen (2016) with ω in place of ω⊗ω.

    The automaton of the absolute weights bounds |f| from above. If f is strongly
    convergent, the sums of the ω(t) of a minimal automaton over all trees up to a
    height converge, because each entry is a combination of some f(c[t]).
    """
    wta, _ = rescale_terminals(wta)
    states = useful_states(wta)
    if len(states) == 0:
        return True
    alpha, tensors, omega = restrict(wta, states)
    with one_blas_thread():
        bound = [tensor.absolute() for tensor in tensors]
        if _nonnegative_sum_converges(bound, np.abs(omega)):
            return True
        if _one_sign(alpha, tensors, omega):
            return False
        try:
            small = convergent_form(reduce_exactly(wta))
        except NotStronglyConvergentError:
            return False
        return False if _signed_sum_diverges(small) else None


def _one_sign(alpha, tensors, omega):
    parts = [part for tensor in tensors for part in tensor.arrays().values()]
    return any((sign * alpha >= 0).all() for sign in (1, -1)) and all(
        (part >= 0).all() for part in (omega, *parts)
    )


def _sum_step(tensors, omega):
    """Make the map s ↦ Σ_σ ω_σ + T(I, s, s)."""

    def apply(left, right):
        return sum(t.apply(left[None], right[None])[0] for t in tensors)

    return QuadraticStep(omega.sum(axis=0), apply)


def _nonnegative_sum_converges(tensors, omega):
    """Whether s is finite and the derivative there has a spectral radius below 1."""
    recursion = find_recursion(tensors)
    inside = np.diagonal(recursion.pairs)
    if not inside.any():
        return True
    step, start = _sum_step(tensors, omega), np.zeros(omega.shape[1])
    try:
        s, _ = fixed_point(step, start, _sizes, recursion.depth, symmetric=False)
    except NotStronglyConvergentError:
        return False
    if (s < 0).any():
        # Newton's method left the region below a least solution, so there is none.
        return False
    unit = _sizes(s)[inside]

    def matvec(v):
        h = np.zeros(len(s))
        h[inside] = v * unit
        return step.derivative(s, h)[inside] / unit

    return bool(leading_value(matvec, np.ones(len(unit))) < 1 - CRITICAL)


def _sizes(s):
    return np.where(s == 0, 1.0, np.abs(s))


def _signed_sum_diverges(wta):
    """Whether sums of ω(t) over trees up to a height certainly grow without bound."""
    states, gram, *_ = gram_analysis(wta)
    if len(states) == 0:
        return False
    _, tensors, omega = restrict(wta, states)
    step, unit = _sum_step(tensors, omega), diagonal_sizes(gram.tree)
    s = np.zeros(len(states))
    for _ in range(_SIGNED_STEPS):
        new = step.value(s)
        if not np.isfinite(new).all():
            return True
        if (np.abs(new - s) <= TOL * unit).all():
            return False
        s = new
    return False
