"""Probabilities of a CFG by margin EM, algorithm 1 of Cohen and Smith (2012)."""

from dataclasses import replace
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from lpcfg_sk._ragged import offsets
from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.cfg._binomials import BinomialChains
from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._conversion import is_binary
from lpcfg_sk.cfg._derivations import rules_of_trees
from lpcfg_sk.cfg._empirical_risk import (
    EmpiricalRisk,
    RuleCountsMixin,
    minimise,
    normalised,
    uniform,
)
from lpcfg_sk.cfg._parsing import CFGParserMixin
from lpcfg_sk.cfg._rules import Rule, rules_by_lhs
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.lpcfg import smooth_lexicon
from lpcfg_sk.treebank import check_sample_weight, check_treebank, over_chunks

_DECODERS = ("auto", "viterbi", "max-marginal", "mbr", "max-rule-product")


class MarginEMPCFG(RuleCountsMixin, CFGParserMixin, BaseEstimator):
    r"""Probabilistic CFG by empirical risk minimisation with proper approximations.

    The log-loss is minimised over the grammars whose binomials, in the binary normal
    form, keep a margin :math:`γ = n^{-s}` from 0 and 1 (Cohen and Smith, 2012). The
    margin goes to zero as the number n of samples grows, slowly enough for the
    empirical loss to converge to the expected one.

    ``make_parser(MarginEMPCFG())`` is a parser like those of other learners: its rules
    are read off binarised trees over the words of :class:`RareWords`. Only its `score`
    differs, which is the mean log probability; ``scoring=parseval_scorer`` is F1.

    Trees are the supervised case, which equation 22 solves; sentences are the
    unsupervised one, for which algorithm 1 alternates expectations with equation 22;
    both together are the sum of the two losses (section 7.4.1).

    Parameters
    ----------
    grammar : CFG, default=None
        The rules; read off the trees of X where None.
    s : float, default=1.5
        Exponent of the margin; larger means closer to maximum likelihood. The paper
        needs s > 1 (section 4.1); smaller values cause a warning.
    gamma : float, default=None
        The margin itself, between 0 (maximum likelihood) and 1/2; None for
        :math:`n^{-s}`.
    rule_order : {"frequency", "grammar"}, default="frequency"
        Order of the rules in the chain of binomials of their nonterminal. The result
        depends on it: the floor of the i-th rule is about :math:`γ (1-γ)^{i-1}` if it
        comes early, and can be as low as a product of margins if the links before it
        are at theirs. "frequency" puts the most frequent rules first. The class Θ(γ)
        of grammars then depends on the data, so theorems 2 and 3, which assume a class
        that is fixed in advance, do not apply; they apply to "grammar".
    smoothing : {"margin", "dirichlet"}, default="margin"
        "dirichlet" replaces the margin by pseudo-counts α - 1 (equation 26).
    alpha : float, default=1.1
        Parameter of the Dirichlet prior, at least 1.
    lexicon_alpha : float, default=1.0
        Strength of the smoothing of rules A → x by the signature classes of words, in
        tokens, see :func:`lpcfg_sk.lpcfg.smooth_lexicon`. It applies to the counts of
        trees whose words :class:`RareWords` made, where `grammar` is None. 0 for none.
    unlabeled_weight : float, default=1.0
        Weight of a sentence relative to a tree.
    init : {"auto", "uniform", "random"}, default="auto"
        Start of the unsupervised case. "auto" starts from the trees where there are
        any, else like "uniform"; further starts of `n_init` are random.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float or None, default=1e-5
        Stop when the objective falls by less than this; None never stops early.
    n_init : int, default=1
        Number of starts; the one with the smallest objective is kept.
    decoder : str, default="auto"
        Which tree :meth:`predict` returns.

        - "viterbi": the tree of the most probable derivation;
        - "max-marginal": the tree with the largest expected number of correct
          constituents;
        - "mbr", "max-rule-product": as in :class:`PCFG`;
        - "auto": "mbr" for trees of a :class:`TreeBinarizer`, else "viterbi".
    prune : float or None, default=6e-4
        After a :class:`TreeBinarizer`, chart items with a smaller posterior are left
        out when sentences are parsed. None (or 0) for full charts.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is handled by `on_failure`; :meth:`fit` and methods that return
        probabilities raise :class:`~lpcfg_sk.exceptions.ChartMemoryError` before the
        chart is allocated.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a derivation, or whose
        coarsest chart does not fit `max_memory`: give it a flat tree, raise an error,
        or leave it without a tree.
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
        Empirical log-loss before each iteration and at the end, of smoothed counts
        where `lexicon_alpha` applies.
    objectives_ : list of float
        The objective at the same times, which never rises: the log-loss, and for
        ``smoothing="dirichlet"`` the penalty of the prior, which is
        :math:`-(α - 1) \sum (\log b + \log c) / n` over all binomials.
    n_iter_ : int
        Number of iterations; 0 in the supervised case.
    converged_ : bool
        Whether the objective fell by less than `tol`.
    n_zero_probability_ : int
        Number of rows left out because the grammar does not derive them.
    binarized_ : bool
        Whether the training trees came from a :class:`TreeBinarizer`; predicted trees
        are then restored.

    See Also
    --------
    lpcfg_sk.metrics.log_likelihood_scorer : Score to compare grammars by.
    lpcfg_sk.metrics.parseval_scorer : F1 of the trees that :meth:`predict` gives.

    Notes
    -----
    :meth:`score` leaves out rows that the grammar does not derive. Use it to compare
    settings of one grammar, such as `s`. Scores of grammars that derive different rows
    are not comparable: a search over `grammar` would choose one that derives little.
    For such a search use ``scoring=log_likelihood_scorer``, which is -inf where a row
    is not derived.

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
        "gamma": [Interval(Real, 0, 0.5, closed="both"), None],
        "rule_order": [StrOptions({"frequency", "grammar"})],
        "smoothing": [StrOptions({"margin", "dirichlet"})],
        "alpha": [Interval(Real, 1, None, closed="left")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        "unlabeled_weight": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"auto", "uniform", "random"})],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "decoder": [StrOptions(set(_DECODERS))],
        "prune": [Interval(Real, 0, 1, closed="left"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left")],
        "on_failure": [StrOptions({"flat", "raise", "skip"})],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        grammar=None,
        s=1.5,
        *,
        gamma=None,
        rule_order="frequency",
        smoothing="margin",
        alpha=1.1,
        lexicon_alpha=1.0,
        unlabeled_weight=1.0,
        init="auto",
        max_iter=100,
        tol=1e-5,
        n_init=1,
        decoder="auto",
        prune=6e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.grammar = grammar
        self.s = s
        self.gamma = gamma
        self.rule_order = rule_order
        self.smoothing = smoothing
        self.alpha = alpha
        self.lexicon_alpha = lexicon_alpha
        self.unlabeled_weight = unlabeled_weight
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.decoder = decoder
        self.prune = prune
        self.max_memory = max_memory
        self.on_failure = on_failure
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
        if self.smoothing == "margin" and self.gamma is None and self.s <= 1:
            warn_caller(
                f"s={self.s:g}: the paper needs s > 1 for its approximations to be "
                "proper; choose a larger s, or set the margin itself with gamma",
                UserWarning,
            )
        weights = check_sample_weight(sample_weight, X)
        grammar, smoothed_counts = self._grammar_for(X, weights)
        risk = EmpiricalRisk.from_rows(
            X,
            weights,
            grammar,
            unlabeled_weight=self.unlabeled_weight,
            max_memory=self.max_memory,
            n_jobs=self.n_jobs,
        )
        if smoothed_counts is not None:
            risk = replace(risk, tree_counts=smoothed_counts)
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
            if best is None or minimum.objectives[-1] < best.objectives[-1]:
                best = minimum
        binarized = next(iter(X.chunks())).binarized
        self.binarized_ = bool(binarized) and is_binary(risk.grammar)
        self._keep(risk, best)
        return self

    def _grammar_for(self, X, weights):
        """Return the rules, and their counts where they are not those of the trees."""
        if self.grammar is not None:
            return self.grammar, None
        parsed = np.concatenate(list(over_chunks(lambda chunk: chunk.is_parsed, X)))
        # A tree of weight zero counts as absent.
        parsed &= weights > 0
        if not parsed.any():
            raise ValueError(
                "MarginEMPCFG needs a grammar to learn from sentences alone; pass "
                "grammar=CFG.from_string(...) or CFG.from_treebank(...)"
            )
        trees = X[parsed]
        if self.lexicon_alpha > 0 and word_classes(trees) is not None:
            alpha = self.lexicon_alpha
            return grammar_with_backoff(trees, weights[parsed], alpha=alpha)
        return CFG.from_treebank(trees), None

    def _gamma(self, n_samples):
        if self.gamma is not None:
            return float(self.gamma)
        gamma = n_samples**-self.s
        if gamma > 0.5:
            raise ValueError(
                f"the margin γ = n^-s = {n_samples:g}^-{self.s:g} = {gamma:.3g} "
                f"exceeds 1/2; it takes n ≥ {2 ** (1 / self.s):.3g} samples, "
                "a larger s, gamma=..., or smoothing='dirichlet'"
            )
        return float(gamma)

    def _start(self, risk, start, rng):
        equal = uniform(risk.grammar)
        if self.init == "random" or start > 0:
            return normalised(risk.grammar, rng.standard_exponential(len(equal)))
        if self.init == "auto" and risk.tree_counts.any():
            # One pseudo-count per nonterminal keeps rules that do not occur in trees.
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
        self.objectives_ = minimum.objectives
        self.n_iter_ = minimum.n_iter
        self.converged_ = minimum.converged
        self.n_zero_probability_ = risk.n_zero_probability
        if not self.converged_ and self.tol is not None and self.max_iter > 0:
            warn_caller(
                f"MarginEMPCFG did not converge in {self.max_iter} iterations; raise "
                "max_iter or tol",
                ConvergenceWarning,
            )


class _LexicalCounts(NamedTuple):
    """Counts of the rules A → x, as :func:`smooth_lexicon` reads them.

    Attributes
    ----------
    words : tuple of str
        The words that models see.
    backoff : ndarray of int32, shape (n_words,)
        Signature class of each word.
    word_offset : ndarray of int64, shape (n_words + 1,)
        First rule of each word.
    lex_word, lex_label : ndarray of int64, shape (n_rules,)
        Word and nonterminal of each rule.
    lexical_count : ndarray of float64, shape (n_rules,)
        Weight of its uses.
    nonterminals : tuple of str
        The nonterminals.
    binarized : bool
        Whether they are labels of a :class:`TreeBinarizer`.
    """

    words: tuple
    backoff: np.ndarray
    word_offset: np.ndarray
    lex_word: np.ndarray
    lex_label: np.ndarray
    lexical_count: np.ndarray
    nonterminals: tuple
    binarized: bool


def word_classes(X):
    """Return the words of a treebank if they have signature classes, else None."""
    words = next(iter(X.chunks())).words
    return None if words.backoff is None else words


def grammar_with_backoff(X, weights, *, alpha):
    """Read off the rules of trees, with rules for words under the tags of their class.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Trees whose words have signature classes (see :class:`RareWords`).
    weights : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    alpha : float
        Strength of the smoothing, in tokens.

    Returns
    -------
    grammar : CFG
        The rules of the trees and, after those of each nonterminal, its new ones.
    tree_counts : ndarray of float64, shape (n_rules,)
        Weights of the rules; those of rules A → x are smoothed by
        :func:`~lpcfg_sk.lpcfg.smooth_lexicon`.
    """
    grammar = CFG.from_treebank(X)
    words, n_rules = word_classes(X), len(grammar.rules)

    def count(treebank, weights):
        row, rule, _ = rules_of_trees(grammar, treebank)
        return np.bincount(rule, weights=weights[row], minlength=n_rules)

    counts = sum(over_chunks(count, X, weights))
    label_of = {name: i for i, name in enumerate(grammar.nonterminals)}
    lexical = [
        (words.index(rule.rhs[0]), label_of[rule.lhs], counts[i])
        for i, rule in enumerate(grammar.rules)
        if rule.terminal == (True,)
    ]
    lex_word, lex_label, lexical_count = (
        np.array(column) for column in zip(*sorted(lexical), strict=True)
    )
    smoothed = smooth_lexicon(
        _LexicalCounts(
            words.strings,
            words.backoff,
            offsets(np.bincount(lex_word, minlength=len(words))),
            lex_word,
            lex_label,
            lexical_count,
            grammar.nonterminals,
            next(iter(X.chunks())).binarized,
        ),
        np.ones(len(label_of), dtype=np.int64),
        lexical_count,
        alpha=alpha,
    )
    smoothed_counts = {
        rule: counts[i]
        for i, rule in enumerate(grammar.rules)
        if rule.terminal != (True,)
    }
    entry_word = np.repeat(
        np.arange(len(smoothed.words)), np.diff(smoothed.word_offset)
    )
    for word, label, value in zip(
        entry_word.tolist(), smoothed.lex_label.tolist(), smoothed.lexical, strict=True
    ):
        # The unknown word is not needed: RareWords leaves no word unknown.
        if word < len(words):
            rule = Rule(grammar.nonterminals[label], (words[word],), (True,))
            smoothed_counts[rule] = value
    extended = CFG(
        dict.fromkeys((*grammar.rules, *smoothed_counts)),
        grammar.start,
        unary_cycles=grammar.unary_cycles,
        implicit_start=grammar.implicit_start,
    )
    return extended, np.array([smoothed_counts.get(r, 0.0) for r in extended.rules])
