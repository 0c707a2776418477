"""Minimisation of grammars by singular value tree automata, and its critical γ.

A search over `n_states` fits a clone of its estimator per candidate and fold, and
clones share no objects. The automata of one fold are equal, though, and so are their
decompositions. A process therefore keeps recent decompositions, by the content of the
automaton.
"""

from collections import OrderedDict
from hashlib import blake2b
from numbers import Integral, Real
from threading import Lock

import numpy as np

from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.automata._compressor import BaseAutomatonCompressor
from lpcfg_sk.automata._gram_matrices import find_recursion, tree_gram
from lpcfg_sk.automata._reduction import reduce_exactly, restrict, useful_states
from lpcfg_sk.automata._svta import gamma_scale, hankel_svd, rescale_terminals
from lpcfg_sk.automata._wta import WTA
from lpcfg_sk.exceptions import NotStronglyConvergentError

#: gamma="max" takes this fraction of the critical γ: close, yet well conditioned.
_SHARE_OF_CRITICAL = 0.98
#: Most solves of each phase of the search for the critical γ.
_MAX_SOLVES = 60
#: Bytes of the decompositions that a process keeps.
_MAX_BYTES = 1 << 29
#: γ beyond this, in units of `gamma_scale`, counts as infinite.
_LARGEST_GAMMA = 1e8


class SVTAMinimizer(BaseAutomatonCompressor):
    """Low-rank approximation of a grammar by its singular value tree automaton.

    The grammar becomes a weighted tree automaton over binary topologies; the
    singular value decomposition of its (infinite) Hankel matrix is computed from
    its Gram matrices, and the states with the largest singular values are kept
    [1]_.

    Parameters
    ----------
    estimator : learner, LPCFG or WTA, default=None
        What to minimise. A learner is fitted on the treebank that `fit` gets
        (`PCFG()` where None); a fitted one, a grammar or an automaton is used as
        given.
    n_states : int, default=None
        Number of states to keep; where None, as many as the rank, which changes no
        value.
    gamma : float or "max", default=None
        Weight of an inner node during minimisation (SVTA*): t ↦ γ^size(t) f(t) is
        approximated in place of f, so γ > 1 gives more weight to long sentences.
        "max" takes 0.98 of the largest γ that converges. None is 1.
    rank_tol : float, default=None
        Singular values up to this share of the largest one count as zero; where
        None, those that rounding alone explains.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take in `predict`.
    n_jobs : int, default=None
        Number of threads of `predict` and `score`.

    Attributes
    ----------
    wta_ : WTA
        The minimised automaton.
    original_ : WTA
        The automaton before minimisation.
    singular_values_ : ndarray of float64, shape (rank,)
        Singular values of the Hankel matrix, largest first; of the reweighted
        function where `gamma` is given.
    n_states_ : int
        Number of states of `wta_`.
    gamma_ : float
        The weight of an inner node that was used.
    estimator_ : learner
        The fitted learner, where `fit` fitted one.

    See Also
    --------
    CPCompressor : Low-rank approximation of the rule tensor instead.

    Notes
    -----
    `GridSearchCV` clones its estimator, so a fitted learner loses its fit and is fitted
    again on each fold. An LPCFG, a WTA or a ``sklearn.frozen.FrozenEstimator`` is used
    unchanged.

    Fits to equal automata share one decomposition, however many `n_states` a search
    tries: a process keeps the last ones, up to 512 MB, by the content of the automaton,
    `gamma` and `rank_tol`. Estimators hold no part of it, so it is not pickled.

    With all states the values are those of the original up to rounding: on treebanks
    to 1e-8 of each. Trees that repeat an unlikely rule many times, such as long lists,
    can lose more: the new states mix the old ones, and rounding errors in the
    direction of likely rules grow from node to node. The states of an SVTA are unique
    up to sign, so another way to compute them would not help;
    :meth:`WTA.condition_numbers` shows which trees are affected.

    References
    ----------
    .. [1] Rabusseau, Balle and Cohen (2016). Low-rank approximation of weighted
       tree automata. AISTATS.

    Examples
    --------
    >>> from lpcfg_sk import SVTAMinimizer, Treebank
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))",
    ...                   "(S (NP (D the) (N cat)) (V sleeps))",
    ...                   "(S (N cats) (V sleeps))"])
    >>> svta = SVTAMinimizer(n_states=3).fit(trees)
    >>> svta.wta_.n_states, len(svta.singular_values_)
    (3, 5)
    >>> str(svta.predict([["the", "cat", "barks"]])[0])
    '(X (X (X the) (X cat)) (X barks))'
    """

    _parameter_constraints: dict = {
        **BaseAutomatonCompressor._parameter_constraints,
        "n_states": [None, Interval(Integral, 1, None, closed="left")],
        "gamma": [
            None,
            StrOptions({"max"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "rank_tol": [None, Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        estimator=None,
        n_states=None,
        *,
        gamma=None,
        rank_tol=None,
        max_memory=2**31,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.n_states = n_states
        self.gamma = gamma
        self.rank_tol = rank_tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X=None, y=None, *, sample_weight=None):
        """Learn the grammar, if need be, and minimise its automaton.

        Parameters
        ----------
        X : Treebank or iterable of trees, default=None
            Trees to fit the estimator on; may be left out where it is fitted.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        self : SVTAMinimizer

        Raises
        ------
        NotStronglyConvergentError
            If the (reweighted) automaton has no singular value decomposition.
        """
        self._fit_original(X, sample_weight)
        self.gamma_, svd, self.wta_ = self._minimize(self.original_)
        self.singular_values_ = svd.singular_values.copy()
        self.n_states_ = self.wta_.n_states
        return self

    def transform(self, X):
        """Minimise another automaton with the same parameters.

        Parameters
        ----------
        X : WTA
            The automaton.

        Returns
        -------
        WTA
        """
        return self._minimize(self._check_automaton(X))[2]

    def _minimize(self, wta):
        """Return γ, the decomposition of the reweighted automaton, and the result."""
        gamma = self._gamma(wta)
        svd = recent_svd(wta, gamma, self.rank_tol)
        return gamma, svd, svd.truncate(self.n_states).reweight(1 / gamma)

    def _gamma(self, wta):
        if self.gamma is None:
            return 1.0
        if self.gamma != "max":
            return float(self.gamma)
        critical = recent_number(wta, critical_gamma)
        if not np.isfinite(critical):
            raise ValueError(
                "gamma='max': every γ converges, because only finitely many trees "
                "have a value; give gamma as a number."
            )
        return _SHARE_OF_CRITICAL * critical


def critical_gamma(wta, *, rtol=1e-3):
    """Find the largest γ for which t ↦ γ^size(t) f(t) has singular values.

    Parameters
    ----------
    wta : WTA
        The automaton of f.
    rtol : float, default=1e-3
        Relative accuracy.

    Returns
    -------
    float
        A lower bound of γ*, at most `rtol` away from it; inf where there are only
        finitely many trees of non-zero value.

    Notes
    -----
    The criterion is ``Σ_t |t| γ^(2 size(t)) f(t)² < ∞``, which is what the singular
    value decomposition needs. (The paper asks for strong convergence in ℓ1, which
    leaves hardly any γ > 1 for a treebank grammar, and then uses 2.4.) As γ grows to
    γ*, 1 − ρ(E) goes to zero as γ*² − γ² or as its square root; both laws are
    extrapolated from the solves so far, each of which starts from the solution of the
    last.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG, WTA
    >>> from lpcfg_sk.automata import critical_gamma
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "S", "S"): [[[0.3]]]}, lexical={("S", "x"): [0.7]},
    ...     root={"S": [1.0]},
    ... )
    >>> bool(critical_gamma(WTA.from_pcfg(grammar)) > 1)
    True
    """
    if not isinstance(wta, WTA):
        raise TypeError(f"critical_gamma takes a WTA, got {type(wta).__name__}.")
    if not 0 < rtol < 1:
        raise ValueError(f"rtol should be between 0 and 1, got {rtol!r}.")
    with one_blas_thread():
        return _critical_gamma(wta, rtol)


def _critical_gamma(wta, rtol):
    if all(tensor.kind != "sparse" for tensor in wta.tensors):
        # Hidden states may diverge, but do not limit γ. In sparse automata such as
        # grammars they are separate states, which are left out below.
        wta = reduce_exactly(wta)
    wta, _ = rescale_terminals(wta)
    states = useful_states(wta)
    if len(states) == 0:
        return np.inf
    _, tensors, omega = restrict(wta, states)
    recursion = find_recursion(tensors)
    if not recursion.pairs.any():
        return np.inf
    unit = gamma_scale(tensors, omega)

    def solve(gamma, start):
        scaled = [t.scaled(gamma) for t in tensors]
        try:
            gram, radius = tree_gram(scaled, omega, recursion, start)
        except NotStronglyConvergentError:
            return None
        return gram, 1 - radius

    low = unit
    for _ in range(_MAX_SOLVES):
        solution = solve(low, None)
        if solution is not None:
            break
        low /= 2
    if solution is None:
        raise NotStronglyConvergentError(
            f"No γ down to {low:.3g} makes the automaton convergent; its weights are "
            "too large, divide the transition weights by a constant first."
        )
    gram, gap = solution
    high = np.inf
    points = [(low**2, gap)]
    for _ in range(_MAX_SOLVES):
        if high <= low * (1 + rtol):
            break
        if low > _LARGEST_GAMMA * unit:
            return np.inf
        gamma = _next_gamma(points, low, high, rtol)
        solution = solve(gamma, gram)
        if solution is None:
            high = gamma
        else:
            low, (gram, gap) = gamma, solution
            points.append((low**2, gap))
    return low


def _next_gamma(points, low, high, rtol):
    """Choose the γ to solve next, near the extrapolated zero of 1 − ρ."""
    guess = _extrapolate(points)
    if guess is not None:
        for gamma in (guess * (1 - rtol / 3), guess * (1 + rtol / 3)):
            if low * (1 + rtol / 10) < gamma < high * (1 - rtol / 10):
                return gamma
    if np.isinf(high):
        return low * (1.25 if len(points) < 3 else 2)
    return np.sqrt(low * high)


def _extrapolate(points):
    """Zero of 1 − ρ, extrapolated by the law that fits the solves so far better."""
    if len(points) < 2:
        return None
    (x1, y1), (x2, y2) = points[-2:]
    best, least = None, np.inf
    for power in (1, 2):
        slope = (y1**power - y2**power) / (x2 - x1)
        if slope <= 0:
            continue
        error = 0.0
        if len(points) > 2:
            x0, y0 = points[-3]
            error = abs(y1**power + slope * (x1 - x0) - y0**power) / y0**power
        if error < least:
            best, least = np.sqrt(x2 + y2**power / slope), error
    return best


class RecentResults:
    """The results used last, up to a number of bytes, shared by all threads.

    Parameters
    ----------
    max_bytes : int
        Largest total size; the results used least recently are dropped first.
    """

    def __init__(self, max_bytes):
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries = OrderedDict()

    def clear(self):
        """Forget all results."""
        with self._lock:
            self._entries.clear()

    def get(self, key, compute):
        """Return the result of a key; compute it in one thread where it is unknown.

        Parameters
        ----------
        key : tuple
            Determines the result.
        compute : callable
            Returns the result and the bytes that it takes. Nothing is kept where it
            raises.

        Returns
        -------
        object
            Shared by all callers, who must not change it.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if not entry.known:
                try:
                    entry.result, entry.n_bytes = compute()
                    entry.known = True
                finally:
                    self._tidy(None if entry.known else key)
            return entry.result

    def _tidy(self, failed):
        with self._lock:
            self._entries.pop(failed, None)
            total = sum(entry.n_bytes for entry in self._entries.values())
            while total > self.max_bytes:
                total -= self._entries.popitem(last=False)[1].n_bytes


class _Entry:
    """A result, or the promise of one while a thread computes it."""

    def __init__(self):
        self.lock, self.known, self.result, self.n_bytes = Lock(), False, None, 0


RECENT = RecentResults(_MAX_BYTES)


def content_key(wta):
    """Hash the content of an automaton, except for the names of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    bytes
    """
    parts = [("alpha", wta.alpha), ("omega", wta.omega_matrix)]
    for tensor in wta.tensors:
        parts += tensor.arrays().items()
    shapes = [(name, array.shape, array.dtype.str) for name, array in parts]
    digest = blake2b(
        repr((wta.words, wta.labels, wta.unknown_word, shapes)).encode(
            errors="surrogatepass"
        )
    )
    for _, array in parts:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def recent_svd(wta, gamma, rank_tol):
    """Decompose t ↦ γ^size(t) f(t), or find the decomposition of an equal automaton.

    Parameters
    ----------
    wta : WTA
        The automaton of f.
    gamma : float
        Weight of an inner node.
    rank_tol : float or None
        As in `hankel_svd`.

    Returns
    -------
    HankelSVD
        Its arrays are read-only.
    """
    weighted = wta.reweight(gamma)

    def compute():
        svd = hankel_svd(weighted, rank_tol)
        arrays = [part for part in svd if isinstance(part, np.ndarray)]
        for array in arrays:
            array.flags.writeable = False
        if svd.wta is weighted:
            # The caller has an equal automaton, so this one need not be kept.
            svd = svd._replace(wta=None)
        else:
            arrays += [svd.wta.alpha, svd.wta.omega_matrix]
            arrays += [a for t in svd.wta.tensors for a in t.arrays().values()]
        return svd, sum(array.nbytes for array in arrays)

    svd = RECENT.get((content_key(wta), float(gamma), rank_tol), compute)
    return svd if svd.wta is not None else svd._replace(wta=weighted)


def recent_number(wta, function):
    """Compute a number for an automaton, or find it from an equal automaton.

    Parameters
    ----------
    wta : WTA
        The automaton.
    function : callable
        Takes the automaton and returns the number.

    Returns
    -------
    float
    """
    key = content_key(wta), function.__qualname__
    return RECENT.get(key, lambda: (function(wta), 0))
