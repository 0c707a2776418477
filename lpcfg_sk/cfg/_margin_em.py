"""Probabilities of a CFG by margin EM, algorithm 1 of Cohen and Smith (2012)."""

import warnings
from numbers import Integral, Real

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, fit_context
from lpcfg_sk.cfg._binary_normal_form import BinomialChains
from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._derivations import (
    best_trees,
    expected_rule_counts,
    flat_tree,
    rules_of_trees,
    treebank_from_nodes,
)
from lpcfg_sk.cfg._empirical_risk import (
    EmpiricalRisk,
    count_derivable,
    minimise,
    normalised,
    uniform,
)
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.exceptions import ConvergenceWarning, ParseFailureWarning
from lpcfg_sk.treebank import (
    TreebankInputMixin,
    check_sample_weight,
    check_treebank,
    over_chunks,
)


class MarginEMPCFG(TreebankInputMixin, BaseEstimator):
    """Probabilistic CFG by empirical risk minimisation with proper approximations.

    The log-loss is minimised over the grammars whose binomials, in the binary normal
    form, keep a margin :math:`γ = n^{-s}` from 0 and 1 (Cohen and Smith, 2012). The
    margin goes to zero as the number n of samples grows, slowly enough for the
    empirical loss to converge to the expected one.

    Trees are the supervised case, which equation 22 solves; sentences are the
    unsupervised one, for which algorithm 1 alternates expectations with equation 22;
    both together are the sum of the two losses (section 7.4.1).

    Parameters
    ----------
    grammar : CFG, default=None
        The rules; read off the trees of X where None.
    s : float, default=1.5
        Exponent of the margin; larger means closer to maximum likelihood.
    rule_order : {"frequency", "grammar"}, default="frequency"
        Order of the rules in the chain of binomials of their nonterminal. The result
        depends on it: the floor of the i-th rule is about :math:`γ (1-γ)^{i-1}` if it
        comes early, and can be as low as a product of margins if the links before it
        are at theirs. "frequency" puts the most frequent rules first.
    smoothing : {"margin", "dirichlet"}, default="margin"
        "dirichlet" replaces the margin by pseudo-counts α - 1 (equation 26).
    alpha : float, default=1.1
        Parameter of the Dirichlet prior, at least 1.
    unlabeled_weight : float, default=1.0
        Weight of a sentence relative to a tree.
    init : {"auto", "uniform", "random"}, default="auto"
        Start of the unsupervised case. "auto" starts from the trees where there are
        any, else like "uniform"; further starts of `n_init` are random.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float or None, default=1e-5
        Stop when the log-loss falls by less than this; None never stops early.
    n_init : int, default=1
        Number of starts; the one with the smallest log-loss is kept.
    decoder : {"viterbi", "max-marginal"}, default="viterbi"
        What `predict` gives.
    n_jobs : int, default=None
        As in joblib; it does not change any result.
    verbose : int, default=0
        Whether to report iterations through :mod:`logging`.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts.

    Attributes
    ----------
    grammar_ : CFG
        The grammar.
    theta_ : Series
        Probabilities of the rules, indexed by rule.
    binomials_ : DataFrame
        Chain of binomials: rule, nonterminal, place in the chain, and the
        probabilities ``stop`` and ``go``.
    gamma_ : float
        The margin; 0 for Dirichlet smoothing.
    log_losses_ : list of float
        Empirical log-loss before each iteration and at the end. It never rises for
        ``smoothing="margin"``.
    n_iter_ : int
        Number of iterations; 0 in the supervised case.
    converged_ : bool
        Whether the log-loss fell by less than `tol`.
    n_zero_probability_ : int
        Rows that the grammar does not derive, and that were left out.

    See Also
    --------
    lpcfg_sk.metrics.log_likelihood_scorer : Score to compare grammars by.

    Notes
    -----
    :meth:`score` leaves rows out that the grammar does not derive. It compares settings
    of one grammar, such as `s`. Scores of grammars that derive different rows are not
    comparable: a search over `grammar` would choose one that derives little. There
    ``scoring=log_likelihood_scorer`` is the one to use, which is -inf where a row is
    not derived.

    References
    ----------
    Cohen, S. B. and Smith, N. A. (2012). Empirical risk minimization for probabilistic
    grammars: sample complexity and hardness of learning. Computational Linguistics
    38(3).

    Examples
    --------
    >>> from lpcfg_sk import CFG, MarginEMPCFG
    >>> grammar = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
    >>> X = [["a", "c"], ["a", "a", "c"], ["c"], ["b", "c"]]
    >>> model = MarginEMPCFG(grammar, s=1.5).fit(X)
    >>> model.gamma_
    0.125
    >>> model.theta_.round(3)
    S -> 'a' S    0.375
    S -> 'b' S    0.125
    S -> 'c'      0.500
    Name: theta, dtype: float64
    """

    _parameter_constraints: dict = {
        "grammar": [CFG, None],
        "s": [Interval(Real, 0, None, closed="neither")],
        "rule_order": [StrOptions({"frequency", "grammar"})],
        "smoothing": [StrOptions({"margin", "dirichlet"})],
        "alpha": [Interval(Real, 1, None, closed="left")],
        "unlabeled_weight": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"auto", "uniform", "random"})],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "decoder": [StrOptions({"viterbi", "max-marginal"})],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        grammar=None,
        s=1.5,
        *,
        rule_order="frequency",
        smoothing="margin",
        alpha=1.1,
        unlabeled_weight=1.0,
        init="auto",
        max_iter=100,
        tol=1e-5,
        n_init=1,
        decoder="viterbi",
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.grammar = grammar
        self.s = s
        self.rule_order = rule_order
        self.smoothing = smoothing
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.decoder = decoder
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn the probabilities of the rules.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Trees, sentences, or both. Shards are read again in each iteration.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : MarginEMPCFG
        """
        X = check_treebank(X, estimator=self, sharded=True)
        risk = EmpiricalRisk.from_rows(
            X,
            check_sample_weight(sample_weight, X),
            self._grammar_for(X),
            unlabeled_weight=self.unlabeled_weight,
            n_jobs=self.n_jobs,
        )
        gamma = self._gamma(risk.n_samples) if self.smoothing == "margin" else 0.0
        rng = check_random_state(self.random_state)
        best = None
        for start in range(self.n_init if len(risk.sentences) else 1):
            theta = self._start(risk, start, rng)
            minimum = minimise(
                risk,
                self._chains(risk, theta, gamma),
                theta,
                max_iter=self.max_iter,
                tol=self.tol,
                verbose=self.verbose,
            )
            if best is None or minimum.losses[-1] < best.losses[-1]:
                best = minimum
        self._keep(risk, best)
        return self

    def _grammar_for(self, X):
        if self.grammar is not None:
            return self.grammar
        parsed = np.concatenate(list(over_chunks(lambda chunk: chunk.is_parsed, X)))
        if not parsed.any():
            raise ValueError(
                "MarginEMPCFG needs a grammar to learn from sentences alone; pass "
                "grammar=CFG.from_string(...) or CFG.from_treebank(...)"
            )
        return CFG.from_treebank(X[parsed])

    def _gamma(self, n_samples):
        gamma = n_samples**-self.s
        if gamma > 0.5:
            raise ValueError(
                f"the margin γ = n^-s = {n_samples:g}^-{self.s:g} = {gamma:.3g} "
                f"exceeds 1/2; it takes n ≥ {2 ** (1 / self.s):.3g} samples, "
                "a larger s, or smoothing='dirichlet'"
            )
        return float(gamma)

    def _start(self, risk, start, rng):
        equal = uniform(risk.grammar)
        if self.init == "random" or start > 0:
            return normalised(risk.grammar, rng.standard_exponential(len(equal)))
        if self.init == "auto" and risk.tree_counts.any():
            # One pseudo-count per nonterminal keeps rules that the trees lack.
            return normalised(risk.grammar, risk.tree_counts + equal)
        return equal

    def _chains(self, risk, theta, gamma):
        groups = list(rules_by_lhs(risk.grammar.rules).values())
        if self.rule_order == "frequency":
            counts = risk.expectations(theta)[1]
            groups = [g[np.argsort(-counts[g], kind="stable")] for g in groups]
        pseudo_count = self.alpha - 1 if self.smoothing == "dirichlet" else 0.0
        return BinomialChains(groups, len(theta), gamma, pseudo_count)

    def _keep(self, risk, minimum):
        rules, groups = risk.grammar.rules, minimum.chains.groups
        names = [str(rule) for rule in rules]
        order = np.concatenate(groups)
        self.grammar_ = risk.grammar
        self.theta_ = pd.Series(minimum.theta, index=names, name="theta")
        self.binomials_ = pd.DataFrame(
            {
                "rule": [names[i] for i in order],
                "nonterminal": [rules[i].lhs for i in order],
                "place": np.concatenate([np.arange(len(g)) for g in groups]),
                "stop": minimum.binomials[0][order],
                "go": minimum.binomials[1][order],
            }
        )
        self.gamma_ = minimum.chains.gamma
        self.log_losses_ = minimum.losses
        self.n_iter_ = minimum.n_iter
        self.converged_ = minimum.converged
        self.n_zero_probability_ = risk.n_zero_probability
        if not self.converged_ and self.tol is not None and self.max_iter > 0:
            warnings.warn(
                f"MarginEMPCFG did not converge in {self.max_iter} iterations; raise "
                "max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,
            )

    def score_samples(self, X):
        """Log probability of each tree, or of each sentence that has no tree.

        Parameters
        ----------
        X : Treebank
            Trees and sentences.

        Returns
        -------
        log_probabilities : ndarray of float, shape (n_rows,)
            Natural logarithms, -inf where the grammar derives no such row.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, allow_empty=True)
        theta = self.theta_.to_numpy()
        scores = np.full(len(X), -np.inf)
        row, rule, derivable = rules_of_trees(self.grammar_, X)
        with np.errstate(divide="ignore"):
            log_theta = np.log(theta)
        sums = np.zeros(len(X))
        np.add.at(sums, row, log_theta[rule])
        scores[derivable] = sums[derivable]
        open_rows = ~X.is_parsed
        scores[open_rows] = self.sentence_log_prob(X[open_rows])
        return scores

    def sentence_log_prob(self, X):
        """Log probability of each row's sentence, summed over derivations.

        Parameters
        ----------
        X : Treebank
            Trees are taken for their yields.

        Returns
        -------
        log_probabilities : ndarray of float, shape (n_rows,)
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, allow_empty=True)
        return expected_rule_counts(
            self.grammar_,
            X,
            self.theta_.to_numpy(),
            np.zeros(len(X)),
            n_jobs=self.n_jobs,
        )[0]

    def score(self, X, y=None, *, sample_weight=None):
        """Minus the empirical log-loss: the mean log probability of the rows.

        Rows outside the language of the grammar, which no probabilities could help,
        are left out and counted in a warning; a row that only these probabilities
        make impossible gives -inf. So scores of grammars that derive different rows
        are not comparable: :func:`~lpcfg_sk.metrics.log_likelihood_scorer`, which is
        -inf where a row is not derived, compares grammars.

        Parameters
        ----------
        X : Treebank
            Trees and sentences.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            -inf where the grammar derives none of the rows.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self)
        weights = check_sample_weight(sample_weight, X)
        scores = self.score_samples(X)
        zero = np.flatnonzero(np.isneginf(scores) & (weights > 0))
        if len(zero):
            _, derivable, _ = count_derivable(
                self.grammar_, X[zero], weights[zero], n_jobs=self.n_jobs
            )
            outside = zero[~derivable]
            if len(outside):
                weights = weights.copy()
                weights[outside] = 0.0
                warnings.warn(
                    f"{len(outside)} of {len(X)} rows are not in the language of the "
                    "grammar and were left out of the score",
                    UserWarning,
                    stacklevel=2,
                )
        counted = weights > 0
        if not counted.any():
            return -np.inf
        return float(np.average(scores[counted], weights=weights[counted]))

    def transform(self, X):
        """Expected rule counts ψ of each row.

        Parameters
        ----------
        X : Treebank
            For a tree the counts of its rules, for a sentence their expectation.

        Returns
        -------
        counts : csr_matrix of shape (n_rows, n_rules)
            Rows outside the language are empty.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, allow_empty=True)
        n_rules = len(self.theta_)
        row, rule, derivable = rules_of_trees(self.grammar_, X)
        used = derivable[row]
        counts = scipy.sparse.coo_matrix(
            (np.ones(used.sum()), (row[used], rule[used])), shape=(len(X), n_rules)
        ).tocsr()
        rows = []
        theta, one = self.theta_.to_numpy(), np.ones(1)
        for i in np.flatnonzero(~X.is_parsed):
            expected = expected_rule_counts(self.grammar_, X[i : i + 1], theta, one)[1]
            where = np.flatnonzero(expected)
            rows.append((np.full(len(where), i), where, expected[where]))
        if rows:
            i, j, values = (np.concatenate(part) for part in zip(*rows, strict=True))
            counts = counts + scipy.sparse.csr_matrix(
                (values, (i, j)), shape=counts.shape
            )
        return counts

    def fit_transform(self, X, y=None, *, sample_weight=None):
        """Fit, and give the expected rule counts of X.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Rows to learn from.
        y : None
            Not used.
        sample_weight : array-like of float, shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        counts : csr_matrix of shape (n_rows, n_rules)
            What :meth:`transform` gives.
        """
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` gives: the rules.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        names : ndarray of object
            The rules as text.
        """
        check_is_fitted(self)
        return self.theta_.index.to_numpy(dtype=object)

    def predict(self, X):
        """Parse the sentence of each row.

        Parameters
        ----------
        X : Treebank
            Trees are taken for their yields.

        Returns
        -------
        trees : Treebank
            A sentence without a derivation gets a flat tree, and is counted in a
            :class:`ParseFailureWarning`.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, allow_empty=True)
        if (X.lengths == 0).any():
            row = int(np.flatnonzero(X.lengths == 0)[0])
            raise ValueError(
                f"row {row} is an empty sentence; there is nothing to parse"
            )
        trees, failures = [], 0
        start = self.grammar_.tables().start
        for row, (label, size, parent) in enumerate(
            best_trees(self.grammar_, X, self.theta_.to_numpy(), self.decoder)
        ):
            if len(label) == 0:
                failures += 1
                label, size, parent = flat_tree(start, int(X.lengths[row]))
            elif self.grammar_.implicit_start:
                label, size, parent = label[1:], size[1:], parent[1:] - 1
            trees.append((label, size, parent))
        if failures:
            warnings.warn(
                f"{failures} of {len(X)} sentences have no derivation and got a flat "
                "tree",
                ParseFailureWarning,
                stacklevel=2,
            )
        return treebank_from_nodes(X, trees, self.grammar_.nonterminals)
