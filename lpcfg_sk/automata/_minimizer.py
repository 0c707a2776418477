"""Singular value tree automata of learnt grammars."""

from numbers import Integral, Real

import numpy as np

from lpcfg_sk._validation import N_JOBS, HasMethods, Interval, StrOptions, fit_context
from lpcfg_sk.automata._compressor import BaseAutomatonCompressor
from lpcfg_sk.automata._gamma import critical_gamma
from lpcfg_sk.automata._wta import WTA
from lpcfg_sk.lpcfg import LPCFG

__all__ = ["SVTAMinimizer"]

#: Share of the critical γ that gamma="max" takes: close, yet well conditioned.
_SHARE_OF_CRITICAL = 0.98


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
        (`PCFG()` where None); one that is fitted already, a grammar or an automaton
        is taken as it is.
    n_states : int, default=None
        Number of states to keep; all of the rank where None, which changes no
        value.
    gamma : float or "max", default=None
        Weight of an inner node during minimisation (SVTA*): t ↦ γ^size(t) f(t) is
        approximated in place of f, so γ > 1 gives more weight to long sentences.
        "max" takes 0.98 of the largest γ that converges. None is 1.
    rank_tol : float, default=None
        Singular values up to this share of the largest one count as zero; where
        None, those that rounding explains.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take in `predict`.
    n_jobs : int, default=None
        Number of threads of `predict` and `score`.

    Attributes
    ----------
    wta_ : WTA
        The minimised automaton.
    original_ : WTA
        The automaton before.
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
    `GridSearchCV` clones its estimator, which takes the fit from a fitted learner: it
    is then fitted again on each fold. An LPCFG, a WTA or a
    ``sklearn.frozen.FrozenEstimator`` stays as it is.

    With all states the values are those of the original up to rounding: on treebanks
    to 1e-8 of each. Trees that repeat an unlikely rule many times, such as long lists,
    can lose more: the new states mix the old ones, and rounding errors in the
    direction of likely rules grow from node to node. As the states of an SVTA are
    unique up to sign, this is not a matter of how they are computed;
    :meth:`WTA.condition_numbers` tells which trees are concerned.

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
        "estimator": [None, HasMethods(["fit"]), LPCFG, WTA],
        "n_states": [None, Interval(Integral, 1, None, closed="left")],
        "gamma": [
            None,
            StrOptions({"max"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "rank_tol": [None, Interval(Real, 0, 1, closed="left")],
        "max_memory": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
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
            What the estimator learns from; may be left out where it is fitted.
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
        self.gamma_ = self._gamma(self.original_)
        weighted = self.original_.reweight(self.gamma_)
        self.singular_values_ = weighted.singular_values(rank_tol=self.rank_tol)
        self.wta_ = self._truncate(weighted, self.gamma_)
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
        wta = self._check_automaton(X)
        gamma = self._gamma(wta)
        return self._truncate(wta.reweight(gamma), gamma)

    def _gamma(self, wta):
        if self.gamma is None:
            return 1.0
        if self.gamma != "max":
            return float(self.gamma)
        critical = critical_gamma(wta)
        if not np.isfinite(critical):
            raise ValueError(
                "gamma='max': every γ converges, because only finitely many trees "
                "have a value; give gamma as a number."
            )
        return _SHARE_OF_CRITICAL * critical

    def _truncate(self, weighted, gamma):
        n_states = self.n_states
        if n_states is None:
            n_states = weighted.n_states
        small = weighted.truncate(n_states, rank_tol=self.rank_tol)
        return small.reweight(1 / gamma)
