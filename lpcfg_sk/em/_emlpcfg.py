"""L-PCFGs by expectation maximisation."""

import sys
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._parallel import Spool
from lpcfg_sk._validation import (
    N_STATES,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.em._expectation import (
    ExpectedCounts,
    add_counts,
    count_sentences,
    warn_of_failures,
)
from lpcfg_sk.em._run import (
    Run,
    check_possible,
    from_grammar,
    last_parameters,
    learner_grammar,
    n_supported_states,
    perturbed,
)
from lpcfg_sk.em._training_trees import HeldOut, TrainingTrees
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.lpcfg import (
    Estimates,
    Layout,
    coarse_pcfg,
    grammar_of_parameters,
    maximize,
)
from lpcfg_sk.treebank import trees_and_sentences

__all__ = ["EMLPCFG"]

#: Starts that are not seeds: the last fit, and another learner.
_LAST_FIT, _LEARNER = "last fit", "learner"


class EMLPCFG(BaseLPCFG):
    """Latent-variable PCFG by expectation maximisation.

    The nonterminals of the trees are split into latent states, and the
    probabilities of the split rules are those that make the trees likely. EM finds
    a local maximum, so the start matters. It also overfits the training trees, which
    smoothing and held-out trees prevent.

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
        with 3% of evenly divided frequencies; `m` is then the learner's own.
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
        Part of each rule's probability that is shared between states, larger for rare
        rules: in each iteration a rule's counts are mixed with the product of their
        marginals over the states of parent and children. 0 is plain EM.
    lexicon_alpha : float, default=1.0
        Strength, in tokens, of the mix of each word with its signature class.
    validation_fraction : float or None, default=0.1
        Part of the trees that is held out to choose the number of iterations; the
        model is then trained on all trees for that number. With None, or fewer than
        five trees to hold out, training goes on until `tol` or `max_iter`.
    n_iter_no_change : int, default=5
        Number of iterations over which the score must grow by `tol`.
    warm_start : bool, default=False
        Whether fit goes on from the last fit, for the number of iterations that
        `max_iter` and `tol` allow, without holding out trees.
    unlabeled_weight : float, default=0.5
        Weight w of a sentence without a tree, see `n_unlabeled_iter`. 0 leaves
        sentences out.
    n_unlabeled_iter : int, default=2
        Number of iterations with sentences, after all those with trees alone. The
        expected counts are E[c(trees)] + w E[c(sentences)]; the second expectation is
        over the pruned charts of the sentences, that is over trees and latent states.
    decoder : {"auto", "mbr", "max-marginal", "max-rule-product", "viterbi"}, \
default="auto"
        Which tree :meth:`predict` returns; "auto" is "mbr".
    prune : float or None, default=6e-4
        Chart items whose posterior under `coarse_` is estimated to be smaller are
        left out, see "Pruning" in the user guide.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is parsed with ``prune`` raised to 6e-4, 6e-3 and 6e-2 in turn.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a parse, or whose coarsest
        chart does not fit `max_memory`: give it a flat tree, raise an error, or leave
        it without a tree.
    n_jobs : int, default=None
        Number of threads. The result does not depend on it.
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
    n_failed_ : int
        Sentences that had no parse in the last iteration, and did not count.

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

    After a keyboard interrupt the estimator holds the model of the last iteration.

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
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
        "n_unlabeled_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        **BaseLPCFG._parameter_constraints,
    }

    #: Only a warm start needs the emissions before smoothing.
    _left_out = ("_emissions",)
    #: An interrupted fit leaves the model of the last iteration.
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
        unlabeled_weight=0.5,
        n_unlabeled_iter=2,
        decoder="auto",
        prune=6e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            decoder=decoder,
            prune=prune,
            max_memory=max_memory,
            on_failure=on_failure,
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
        self.unlabeled_weight = unlabeled_weight
        self.n_unlabeled_iter = n_unlabeled_iter
        self.random_state = random_state

    @property
    def _uses_features(self):
        return getattr(self.init, "_uses_features", False)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn from a treebank.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees and sentences
            Binary trees over pre-terminals (see :class:`TreeBinarizer`), and rows
            without trees. Shards are turned into temporary files once, which each
            iteration reads. At most 20,000 trees are held out.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        self : EMLPCFG
        """
        X, weight, sentences, sentence_weight = trees_and_sentences(
            X, sample_weight, self
        )
        self.n_failed_ = 0
        # With several chunks, what later passes need is kept in files.
        with Spool(on_disk=len(X.chunk_offsets) > 2) as spool:
            trees = TrainingTrees.from_corpus(
                X, weight, spool, estimator=self, n_jobs=self.n_jobs
            )
            run = self._fit_trees(trees)
            if self.unlabeled_weight and len(sentences):
                self._add_sentences(trees, run, sentences, sentence_weight)
        warn_of_failures(self, len(sentences))
        if not self.converged_ and self.tol is not None:
            warn_caller(
                f"EM did not converge in {self.max_iter} iterations; increase max_iter "
                "or tol.",
                ConvergenceWarning,
            )
        return self

    def _fit_trees(self, trees):
        """Run EM from all starts, as long as the score of held-out trees grows."""
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        starts, parts = [_LEARNER], None
        if self.warm_start and hasattr(self, "grammar_"):
            starts = [_LAST_FIT]
        elif self.init == "perturb":
            n_states = n_supported_states(self.m, trees.rules)
            starts = [(n_states, seed) for seed in seeds.tolist()]
        if starts != [_LAST_FIT] and self.validation_fraction is not None:
            parts = trees.hold_out(self.validation_fraction, rng)
        if parts is not None:
            training, held_out = parts
            runs = ((self._run(training, start, held_out), start) for start in starts)
            best, start = max(runs, key=lambda run: max(run[0].scores))
            if max(best.scores) > -np.inf:
                n_iter = int(np.argmax(best.scores)) + 1
                run = self._run(trees, start, max_iter=n_iter, tol=None)
                run.scores, run.converged = best.scores, best.converged
                self._publish(run, trees.rules, trees.whole.rules)
                return run
            warn_caller(
                "Held-out trees have probability zero from the first iteration on, so "
                "they cannot choose the number of iterations; EM runs until `tol` "
                "instead. Smoothing helps.",
                ConvergenceWarning,
            )
        runs = (self._run(trees, start) for start in starts)
        run = max(runs, key=lambda run: run.lower_bounds[-1])
        self._publish(run, trees.rules, trees.whole.rules)
        return run

    def _run(self, trees, start, held_out=None, **limits):
        """Run EM from one start: E-step, M-step, until the score stops growing.

        `limits` are values of `max_iter` and `tol` other than the estimator's own.
        """
        limits = {"max_iter": self.max_iter, "tol": self.tol, **limits}
        tol, best_score, best_iter = limits["tol"], -np.inf, 0
        run = Run(*self._start(start, trees))
        e_step = ExpectedCounts(trees, run.layout, n_jobs=self.n_jobs)
        if held_out is not None:
            held_out = HeldOut(*held_out, trees.rules, run.layout, self.lexicon_alpha)
        try:
            for n_iter in range(1, limits["max_iter"] + 1):
                counts, log_likelihood, lost = e_step(run.parameters)
                check_possible(lost, trees.rules)
                totals = maximize(
                    trees.rules,
                    run.layout,
                    counts,
                    parameters=run.parameters,
                    smoothing=self.smoothing,
                )
                e_step.recycle(run.parameters)
                run.update(counts, totals, log_likelihood / trees.rules.weight)
                if held_out is not None:
                    run.scores.append(held_out.score(counts, totals))
                self._report(run)
                if tol is None:
                    continue
                score = (run.scores or run.lower_bounds)[-1]
                if score > best_score + tol:
                    best_score, best_iter = score, n_iter
                run.converged = n_iter - best_iter >= self.n_iter_no_change
                if run.converged:
                    break
        except KeyboardInterrupt:
            if run.totals is not None:
                run.scores, run.converged = [], False
                self._publish(run, trees.rules, trees.whole.rules)
            raise
        return run

    def _add_sentences(self, trees, run, sentences, weight):
        """Continue a run with the expected counts of trees and sentences."""
        of_trees_layout = run.layout
        e_step = ExpectedCounts(trees, of_trees_layout, n_jobs=self.n_jobs)
        parameters = run.parameters
        for iteration in range(self.n_unlabeled_iter):
            expected = count_sentences(
                self._parser(), sentences, weight, n_jobs=self.n_jobs
            )
            counts, _, _ = e_step(parameters)
            counts = counts._replace(binary=counts.binary * parameters.binary)
            rules, layout, counts, place = add_counts(
                trees.rules,
                of_trees_layout,
                counts,
                expected,
                self.grammar_,
                self.unlabeled_weight,
            )
            totals = maximize(rules, layout, counts, smoothing=self.smoothing)
            run.layout = layout
            run.set_parameters(counts, totals)
            parameters = Estimates(counts.binary, counts.lexical[place], counts.root)
            self.n_failed_ = expected.n_failed
            self._publish(run, rules, rules)
            if self.verbose:
                sys.stderr.write(
                    f"EMLPCFG iteration {iteration + 1} with sentences: "
                    f"{expected.n_parsed} parsed, {expected.n_failed} without a parse\n"
                )

    def _start(self, start, trees):
        """Return the layout and parameters of a start.

        A start is a pair of the numbers of states and a seed, or names a model.
        """
        rules = trees.rules
        if start not in (_LAST_FIT, _LEARNER):
            n_states, seed = start
            layout = Layout.build(rules, n_states)
            return layout, perturbed(rules, layout, np.random.RandomState(seed))
        last = start == _LAST_FIT
        grammar = self.grammar_ if last else learner_grammar(self.init, trees)
        m = grammar.m
        layout = Layout.build(rules, [m.get(a, 1) for a in rules.nonterminals])
        parameters = None
        # A model from a compact file goes on from its smoothed emissions.
        if last and hasattr(self, "_emissions"):
            parameters = last_parameters(rules, layout, grammar, self._emissions)
        if parameters is None:
            parameters = from_grammar(rules, layout, grammar)
        return layout, parameters

    def _report(self, run):
        """Report an iteration, and warn if the likelihood fell."""
        n_iter = len(run.lower_bounds)
        if self.verbose:
            held_out = f", held-out trees {run.scores[-1]:.4f}" if run.scores else ""
            sys.stderr.write(
                f"EMLPCFG iteration {n_iter}: mean log likelihood "
                f"{run.lower_bounds[-1]:.4f}{held_out}\n"
            )
        if self.smoothing > 0 or n_iter < 2:
            return
        before, now = run.lower_bounds[-2:]
        if now < before - 1e-9 * abs(before):
            warn_caller(
                f"The likelihood fell by {before - now:.3g} in iteration {n_iter - 1}, "
                "which EM should never do; the parameters may have lost too many "
                "digits.",
                ConvergenceWarning,
            )

    def _publish(self, run, rules, coarse_rules):
        """Set the fitted attributes from a run.

        `coarse_rules` are the rules of the grammar that prunes.
        """
        alpha = self.lexicon_alpha
        grammar = grammar_of_parameters(
            rules, run.layout, run.parameters, run.totals, alpha=alpha
        )
        self.m_ = grammar.m
        self.lower_bounds_ = run.lower_bounds
        self.lower_bound_ = run.lower_bounds[-1]
        self.n_iter_ = len(run.lower_bounds)
        self.converged_ = run.converged
        self.validation_scores_ = run.scores
        self._emissions = (rules.lex_word, rules.lex_label, run.parameters.lexical)
        self._set_model(grammar, coarse_pcfg(coarse_rules, alpha=alpha), rules)
