"""L-PCFGs by expectation maximisation."""

import sys
import tempfile
import warnings
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._validation import N_STATES, HasMethods, Interval, StrOptions, fit_context
from lpcfg_sk.em._heldout import HeldOut, merge_equal_trees
from lpcfg_sk.em._sharded import ShardedTask
from lpcfg_sk.em._task import LEARNER, WARM, Task
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.lpcfg._maximization import coarse_pcfg
from lpcfg_sk.lpcfg._rule_counts import shard_weights, take_inventory
from lpcfg_sk.lpcfg._rules import RuleIndex, weighted_trees
from lpcfg_sk.treebank._sharded import ShardedTreebank

__all__ = ["EMLPCFG"]


class EMLPCFG(BaseLPCFG):
    """Latent-variable PCFG by expectation maximisation.

    The nonterminals of the trees are split into latent states, and the
    probabilities of the split rules are those that make the trees likely. EM finds
    a local maximum, so the start matters, and it fits the training trees too well
    if nothing stops it: smoothing and held-out trees do.

    Parameters
    ----------
    m : int, dict or callable, default=8
        Number of latent states: one for all nonterminals; a number for some by
        name (1 for the others); or ``m(nonterminal, count) -> int``. A nonterminal
        has at most one state for ten occurrences, and one if it occurs at roots
        only.
    init : "perturb" or learner, default="perturb"
        Where to start. "perturb": relative frequencies of rules, divided evenly over
        the states and multiplied by random numbers. A learner (fitted or not) of
        a probabilistic grammar, such as :class:`PivotLPCFG`: its grammar, mixed
        with 3% of uniform; `m` is then the learner's own.
    max_iter : int, default=100
        Most iterations of a run.
    tol : float or None, default=0.05
        A run ends when the mean log probability of a tree has grown by less than
        this in `n_iter_no_change` iterations; on held-out trees where there are any.
        None for exactly `max_iter` iterations.
    n_init : int, default=1
        Number of random starts; the best is kept, by its score on held-out trees,
        or by likelihood where there are none. 1 where `init` is a learner.
    smoothing : float, default=0.1
        Part of each rule's probability that is shared between states: the counts of
        a rule are mixed with the product of their marginals over the states of
        parent and children, in each iteration. 0 is plain EM.
    lexicon_alpha : float, default=1.0
        Strength, in tokens, of the mix of each word with its signature class.
    validation_fraction : float or None, default=0.1
        Part of the trees that is held out to choose the number of iterations; the
        model is then trained on all trees for that number. With None, or fewer than
        five trees to hold out, training goes on until `tol` or `max_iter`.
    n_iter_no_change : int, default=5
        Number of iterations that must gain `tol`.
    warm_start : bool, default=False
        Whether fit goes on from the last fit, for the number of iterations that
        `max_iter` and `tol` allow, without holding out trees.
    decoder : {"auto", "mbr", "max-marginal", "max-rule-product", "viterbi"}, \
default="auto"
        Which tree :meth:`predict` returns; "auto" is "mbr".
    prune : float or None, default=3e-4
        Chart items with a smaller posterior under `coarse_` are left out.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        Number of threads. Does not change a bit of the result.
    verbose : int, default=0
        Whether to report each iteration (on standard error).
    random_state : int, RandomState instance or None, default=None
        Source of randomness of the start and of the choice of held-out trees.

    Attributes
    ----------
    grammar_ : LPCFG
        The model.
    coarse_ : LPCFG
        The plain PCFG of the training trees, which prunes charts.
    m_ : dict of str to int
        Number of latent states of each nonterminal.
    n_iter_ : int
        Number of iterations of the model.
    converged_ : bool
        Whether the run ended before `max_iter`.
    lower_bounds_ : list of float
        Mean log likelihood of a training tree before each iteration.
    lower_bound_ : float
        The last of them.
    validation_scores_ : list of float
        Mean log probability of a held-out tree after each iteration of the run that
        chose `n_iter_`; empty where nothing was held out.

    See Also
    --------
    PCFG : The grammar without latent states.
    SpectralLPCFG, PivotLPCFG : Learners without local optima.

    Notes
    -----
    The E-step computes the expected counts of the split rules by the inside-outside
    algorithm on the given trees (figure 2 of [1]_), the M-step divides them by those
    of the parents' states. Without smoothing the likelihood never falls, and a
    :class:`ConvergenceWarning` says so if it does; with smoothing no such guarantee
    exists. Equal trees are merged and sorted by their content, so the result depends
    neither on the order of the trees nor on whether a tree is repeated or weighted.

    Interrupted by the keyboard, fit leaves the model of the last iteration.

    References
    ----------
    .. [1] Cohen, Stratos, Collins, Foster and Ungar (2014). Spectral learning of
       latent-variable PCFGs: algorithms and sample complexity. JMLR 15.
    .. [2] Matsuzaki, Miyao and Tsujii (2005). Probabilistic CFG with latent
       annotations. ACL.
    .. [3] Petrov, Barrett, Thibaux and Klein (2006). Learning accurate, compact, and
       interpretable tree annotation. ACL.

    Examples
    --------
    >>> from lpcfg_sk import EMLPCFG, Treebank
    >>> trees = Treebank(["(S (A x) (A y))", "(S (A y) (A x))"] * 10)
    >>> model = EMLPCFG(m=2, smoothing=0, tol=1e-6, random_state=0).fit(trees)
    >>> model.m_
    {'A': 2, 'S': 1}
    >>> bool(model.score_samples(["(S (A x) (A y))"]) > -1)
    True
    """

    _parameter_constraints: dict = {
        "m": N_STATES,
        "init": [StrOptions({"perturb"}), HasMethods("fit")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, 1, closed="both")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        **BaseLPCFG._parameter_constraints,
    }

    #: Who interrupts a long fit gets the model of the last iteration.
    _keeps_interrupted_model = True

    def __init__(
        self,
        m=8,
        *,
        init="perturb",
        max_iter=100,
        tol=0.05,
        n_init=1,
        smoothing=0.1,
        lexicon_alpha=1.0,
        validation_fraction=0.1,
        n_iter_no_change=5,
        warm_start=False,
        decoder="auto",
        prune=3e-4,
        max_memory=2**31,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            decoder=decoder,
            prune=prune,
            max_memory=max_memory,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.m = m
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.smoothing = smoothing
        self.lexicon_alpha = lexicon_alpha
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def _uses_features(self):
        return getattr(self.init, "_uses_features", False)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn from a treebank.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees
            Binary trees over pre-terminals (see :class:`TreeBinarizer`). Shards are
            turned into temporary files once, which each iteration reads; at most
            20,000 of their trees are held out.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        self : EMLPCFG
        """
        if isinstance(X, ShardedTreebank):
            with tempfile.TemporaryDirectory(prefix="lpcfg_sk-em-") as folder:
                self._fit_task(self._sharded_task(X, sample_weight, folder))
        else:
            X, weight = weighted_trees(X, sample_weight, self)
            index = RuleIndex.from_treebank(X)
            rows, weight = merge_equal_trees(index, weight)
            X, index = X[rows], index.take(rows)
            coarse = coarse_pcfg(index, weight=weight, alpha=self.lexicon_alpha)
            self._fit_task(Task(self, X, index, weight, coarse))
        if not self.converged_ and self.tol is not None:
            warnings.warn(
                f"EM did not converge in {self.max_iter} iterations; increase max_iter "
                "or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _sharded_task(self, X, sample_weight, folder):
        weights = shard_weights(X, sample_weight, self)
        index = take_inventory(X, weights, self, n_jobs=self.n_jobs)
        coarse = coarse_pcfg(index, alpha=self.lexicon_alpha)
        return ShardedTask(self, X, weights, index, coarse, folder, "weight", {})

    def _fit_task(self, task):
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        if self.warm_start and hasattr(self, "grammar_"):
            self._train(task, [WARM], None)
            return
        starts, n_states = [LEARNER], None
        if self.init == "perturb":
            starts, n_states = seeds.tolist(), task.n_states
        parts = None
        if self.validation_fraction is not None:
            parts = task.hold_out(self.validation_fraction, rng)
        if parts is None:
            self._train(task, starts, n_states)
        else:
            self._train_for_chosen_time(task, starts, n_states, *parts)

    def _train(self, task, starts, n_states):
        """Run EM from each start until it converges, and keep the likeliest."""
        best = None
        for start in starts:
            run = task.run(start, n_states)
            watch = _Watch(self.tol, self.n_iter_no_change)
            converged = False
            with self._interruptible(task, run):
                while not converged and len(run.lower_bounds) < self.max_iter:
                    self._step(run)
                    converged = watch.is_idle(run.lower_bounds[-1])
            if best is None or run.lower_bounds[-1] > best.lower_bounds[-1]:
                best, self.converged_ = run, converged
        self.validation_scores_ = []
        self._publish(task, best)

    def _train_for_chosen_time(self, task, starts, n_states, training, validation):
        """Choose start and number of iterations by held-out trees, then use all."""
        best = (-np.inf, None, None, None)
        for start in starts:
            run = training.run(start, n_states)
            held_out = HeldOut(
                validation.index,
                training.index,
                run.layout,
                validation.weight,
                training.weight,
                self.lexicon_alpha,
            )
            watch = _Watch(self.tol, self.n_iter_no_change)
            scores, converged = [], False
            with self._interruptible(training, run):
                while not converged and len(scores) < self.max_iter:
                    self._step(run)
                    scores.append(held_out.score(run.estimates, run.totals))
                    converged = watch.is_idle(scores[-1])
                    if self.verbose:
                        sys.stderr.write(f"  held-out trees {scores[-1]:.4f}\n")
            if max(scores) > best[0]:
                best = (max(scores), start, scores, converged)
        _, start, scores, converged = best
        if scores is None:
            warnings.warn(
                "Held-out trees have probability zero from the first iteration on, so "
                "they cannot choose the number of iterations; EM runs until `tol` "
                "instead. Smoothing helps.",
                ConvergenceWarning,
                stacklevel=3,
            )
            self._train(task, starts, n_states)
            return
        run = task.run(start, n_states)
        with self._interruptible(task, run):
            for _ in range(int(np.argmax(scores)) + 1):
                self._step(run)
        self.validation_scores_ = scores
        self.converged_ = converged
        self._publish(task, run)

    def _step(self, run):
        """Do one iteration."""
        run.step()
        if self.verbose:
            sys.stderr.write(
                f"EMLPCFG iteration {len(run.lower_bounds)}: mean log likelihood "
                f"{run.lower_bounds[-1]:.4f}\n"
            )

    @contextmanager
    def _interruptible(self, task, run):
        """Leave the model of the last iteration if the user interrupts."""
        try:
            yield
        except KeyboardInterrupt:
            if run.totals is not None:
                self.converged_ = False
                self.validation_scores_ = []
                self._publish(task, run)
            raise

    def _publish(self, task, run):
        """Make the model of a run that of the estimator."""
        grammar = run.grammar(self.lexicon_alpha)
        self.m_ = grammar.m
        self.lower_bounds_ = run.lower_bounds
        self.lower_bound_ = run.lower_bounds[-1]
        self.n_iter_ = len(run.lower_bounds)
        index = run.index
        self._emissions = (index.lex_word, index.lex_label, run.estimates.lexical)
        self._set_model(grammar, task.coarse, task)


class _Watch:
    """Tells when a score has stopped growing."""

    def __init__(self, tol, patience):
        self.tol = tol
        self.patience = patience
        self.reached = -np.inf
        self.idle = 0

    def is_idle(self, score):
        """Return whether the last scores did not gain `tol` together."""
        if self.tol is None:
            return False
        self.idle += 1
        if score > self.reached + self.tol:
            self.reached, self.idle = score, 0
        return self.idle >= self.patience
