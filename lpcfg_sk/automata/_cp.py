"""Compression of a grammar's rule tensor by CP decomposition."""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._wta_tensors import divergence, update_factor
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.automata._compressor import BaseAutomatonCompressor
from lpcfg_sk.automata._tensors import CPTensor
from lpcfg_sk.exceptions import ConvergenceWarning


def nonnegative_cp(entries, n, rank, *, max_iter, tol, random_state):
    """Decompose a sparse nonnegative tensor into CP form under KL divergence.

    Parameters
    ----------
    entries : tuple (i, j, k, weight)
        The positive entries.
    n : int
        Size of each mode.
    rank : int
        Number of rank-one terms.
    max_iter : int
        Most sweeps over the three factors.
    tol : float
        Stop when a sweep lowers the divergence by less than this share.
    random_state : RandomState
        Source of the initial factors.

    Returns
    -------
    factors : tuple of three ndarray of float64, shape (n, rank)
    divergences : list of float
        After each sweep.
    converged : bool
    """
    i, j, k, weight = entries
    # Scaled, because products of three factors must stay in range.
    exponent = int(np.frexp(weight.max())[1])
    weight = np.ldexp(weight, -exponent)
    a, b, c = (random_state.uniform(0.1, 1.0, size=(n, rank)) for _ in range(3))
    # The start has the total mass of the tensor, so that divergences are comparable.
    a *= weight.sum() / (a.sum(axis=0) * b.sum(axis=0) * c.sum(axis=0)).sum()
    values, converged = [], False
    while not converged and len(values) < max_iter:
        update_factor(i, j, k, weight, a, b, c)
        update_factor(j, i, k, weight, b, a, c)
        update_factor(k, i, j, weight, c, a, b)
        values.append(divergence(i, j, k, weight, a, b, c))
        converged = len(values) > 1 and (
            values[-2] - values[-1] <= tol * abs(values[-2])
        )
    values = np.ldexp(values, exponent).tolist()
    return (np.ldexp(a, exponent), b, c), values, converged


def quasi_newton_cp(entries, n, rank, *, max_iter, tol, random_state):
    """Decompose as :func:`nonnegative_cp`, by projected quasi-Newton steps per row.

    Parameters
    ----------
    entries, n, rank, random_state
        As in :func:`nonnegative_cp`.
    max_iter : int
        Most outer iterations.
    tol : float
        Largest violation of the optimality conditions at which to stop.

    Returns
    -------
    factors, divergences, converged
        As in :func:`nonnegative_cp`, with the last divergence only.
    """
    try:
        import pyttb
    except ImportError as error:
        raise ImportError(
            'solver="pqnr" needs pyttb: pip install pyttb, or use solver="mu"'
        ) from error
    i, j, k, weight = entries
    # Steps start from length one, as for counts: most starts fail on probabilities.
    unit = np.median(weight)
    data = pyttb.sptensor(np.column_stack([i, j, k]), weight[:, None] / unit, (n, n, n))
    start = [random_state.uniform(0.1, 1.0, size=(n, rank)) for _ in range(3)]
    with warnings.catch_warnings():
        # Warnings about shortened steps of pyttb do not concern the caller.
        warnings.simplefilter("ignore")
        try:
            # pyttb (1.8.6) never advances in its store of earlier steps. If it had a
            # second, empty place, a step of length zero would be a fatal error.
            model, _, report = pyttb.cp_apr(
                data,
                rank,
                init=pyttb.ktensor(start),
                algorithm="pqnr",
                maxiters=max_iter,
                stoptol=tol,
                lbfgsMem=1,
                printitn=0,
            )
        except (AssertionError, ArithmeticError, ValueError) as error:
            raise RuntimeError(
                f"pyttb's pqnr failed for a tensor of {len(weight)} entries and rank "
                f'{rank}: {error}; use solver="mu", another rank, or a larger n_init'
            ) from error
    a, b, c = (np.ascontiguousarray(f, np.float64) for f in model.factor_matrices)
    a = a * (model.weights * unit)
    violations = report["kktViolations"]
    last = float(divergence(i, j, k, weight, a, b, c))
    return (a, b, c), [last], bool(violations[-1] < tol)


_SOLVERS = {"mu": nonnegative_cp, "pqnr": quasi_newton_cp}


class CPCompressor(BaseAutomatonCompressor):
    """Low-rank approximation of a grammar's rules by a nonnegative CP form.

    The tensor of rule weights is approximated by a sum of `rank` nonnegative
    rank-one terms under Kullback-Leibler divergence, by multiplicative updates; the
    other weights do not change [1]_. It is the baseline of [2]_.

    Parameters
    ----------
    estimator : learner, LPCFG or WTA, default=None
        What to compress, as in `SVTAMinimizer`; weights must not be negative.
    rank : int, default=16
        Number of rank-one terms.
    max_iter : int, default=500
        Most sweeps over the three factors.
    tol : float, default=1e-4
        Stop when a sweep lowers the divergence by less than this share.
    n_init : int, default=1
        Number of random starts; the one with the least divergence is kept.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take in `predict`.
    n_jobs : int, default=None
        Number of threads of `predict` and `score`.
    random_state : int, RandomState instance or None, default=None
        Source of the initial factors.
    solver : {"mu", "pqnr"}, default="mu"
        Multiplicative updates, or projected quasi-Newton steps by the package pyttb,
        which must be installed; the two of [2]_. With "pqnr", `tol` is the largest
        violation of the optimality conditions at which to stop; its loops run in
        Python. pyttb (1.8.6) ends some starts with an error, mostly at high ranks:
        these are left out and counted in a warning, and it is an error if none is
        left, which a larger `n_init` makes less likely.

    Attributes
    ----------
    wta_ : WTA
        The automaton with transitions in CP form.
    original_ : WTA
        The automaton before compression.
    divergences_ : list of float
        Divergence after each sweep of the best start (of the last label where
        there are several).
    n_iter_ : int
        Number of sweeps of the best start (of the last label).
    estimator_ : learner
        The fitted learner, where `fit` fitted one.

    See Also
    --------
    SVTAMinimizer : Minimisation by singular values of the Hankel matrix.

    References
    ----------
    .. [1] Cohen, Satta and Collins (2013). Approximate PCFG parsing using tensor
       decomposition. NAACL.
    .. [2] Rabusseau, Balle and Cohen (2016). Low-rank approximation of weighted
       tree automata. AISTATS.

    Examples
    --------
    >>> from lpcfg_sk import CPCompressor, Treebank
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))",
    ...                   "(S (N cats) (V sleeps))"])
    >>> cp = CPCompressor(rank=2, random_state=0).fit(trees)
    >>> cp.wta_
    <WTA of 5 states, 6 words, 30 cp transition weights>
    """

    _parameter_constraints: dict = {
        **BaseAutomatonCompressor._parameter_constraints,
        "rank": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "solver": [StrOptions(set(_SOLVERS))],
    }

    def __init__(
        self,
        estimator=None,
        rank=16,
        *,
        max_iter=500,
        tol=1e-4,
        n_init=1,
        max_memory=2**31,
        n_jobs=None,
        random_state=None,
        solver="mu",
    ):
        self.estimator = estimator
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.solver = solver

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X=None, y=None, *, sample_weight=None):
        """Learn the grammar, if need be, and compress its rules.

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
        self : CPCompressor
        """
        self._fit_original(X, sample_weight)
        self.wta_, self.divergences_ = self._compress(self.original_)
        self.n_iter_ = len(self.divergences_)
        return self

    def transform(self, X):
        """Compress another automaton with the same parameters.

        Parameters
        ----------
        X : WTA
            The automaton.

        Returns
        -------
        WTA
        """
        return self._compress(self._check_automaton(X))[0]

    def _compress(self, wta):
        random_state = check_random_state(self.random_state)
        results = [self._decompose(t, random_state) for t in wta.tensors]
        tensors = [tensor for tensor, _ in results]
        small = wta._derived(wta.alpha, tensors, wta.omega_matrix, wta.states)
        return small, results[-1][1]

    def _decompose(self, tensor, random_state):
        entries = tensor.entries()
        weight = entries[3]
        if (weight < 0).any():
            raise ValueError(
                "CPCompressor takes automata with nonnegative transition weights; "
                f"{int((weight < 0).sum())} of {len(weight)} are negative. Use "
                "SVTAMinimizer for signed ones."
            )
        if len(weight) == 0:
            return tensor, []
        best, failures = None, []
        for _ in range(self.n_init):
            try:
                result = _SOLVERS[self.solver](
                    entries,
                    tensor.n,
                    self.rank,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    random_state=random_state,
                )
            except RuntimeError as error:
                failures.append(error)
                continue
            if best is None or result[1][-1] < best[1][-1]:
                best = result
        if best is None:
            raise failures[-1]
        if failures:
            warnings.warn(
                f"{len(failures)} of {self.n_init} starts were left out: "
                f"{failures[-1]}",
                ConvergenceWarning,
                stacklevel=4,
            )
        factors, divergences, converged = best
        if not converged and self.tol > 0:
            warn_caller(
                f"CP decomposition did not converge to tol={self.tol} in "
                f"{self.max_iter} sweeps; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return CPTensor(*factors), divergences
