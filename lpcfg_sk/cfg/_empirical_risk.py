"""Log-loss and rule counts of trees and sentences, and its minimisation."""

import logging
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.cfg._binomials import BinomialChains
from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._derivations import encode, expected_rule_counts, rules_of_trees
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.treebank import (
    ShardedTreebank,
    Treebank,
    check_sample_weight,
    check_treebank,
    over_chunks,
)

_LOGGER = logging.getLogger("lpcfg_sk.cfg")

# The objective may rise by rounding, never by more.
_ROUNDING = 1e-9


class Minimum(NamedTuple):
    """Result of minimisation from one start.

    Attributes
    ----------
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules.
    binomials : tuple of ndarray of float64, shape (n_rules,)
        The links of the chains: probabilities to stop at a rule, and to go on.
    chains : BinomialChains
        The order of the rules.
    losses : list of float
        Log-loss before each iteration and at the end.
    objectives : list of float
        The objective at the same times, which never rises: the log-loss plus the
        penalty of the Dirichlet prior.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the objective fell by less than `tol`.
    """

    theta: np.ndarray
    binomials: tuple
    chains: BinomialChains
    losses: list
    objectives: list
    n_iter: int
    converged: bool


def minimise(risk, chains, theta, *, max_iter, tol, verbose=0):
    """Algorithm 1: expectations, then equation 22, until the objective stops falling.

    Parameters
    ----------
    risk : EmpiricalRisk
        Trees and sentences.
    chains : BinomialChains
        Order of the rules, and the margin or the prior.
    theta : ndarray of float64, shape (n_rules,)
        Rule probabilities to start from.
    max_iter : int
        Largest number of iterations.
    tol : float or None
        Stop when the objective falls by less than this; None never stops early.
    verbose : int, default=0
        Whether to report iterations through :mod:`logging`.

    Returns
    -------
    Minimum
    """
    binomials = chains.split(theta)
    # Without sentences the counts do not depend on theta, and one step is enough.
    converged = len(risk.sentences) == 0
    if converged:
        binomials = chains.estimate(risk.tree_counts, binomials)
    losses, objectives = [], []
    for n_iter in range(max_iter + 1):
        theta = chains.join(*binomials)
        loss, counts = risk.expectations(theta)
        losses.append(loss)
        objectives.append(loss + chains.penalty(*binomials) / risk.total_weight)
        if verbose:
            _LOGGER.info("iteration %d: log-loss %.6f", n_iter, loss)
        if converged or n_iter == max_iter:
            break
        if n_iter > 0:
            before, now = objectives[-2:]
            if now > before + _ROUNDING * abs(before):
                warn_caller(
                    f"the objective rose from {before:.9g} to {now:.9g}",
                    ConvergenceWarning,
                )
            if tol is not None and before - now < tol:
                converged = True
                break
        binomials = chains.estimate(counts, binomials)
    return Minimum(theta, binomials, chains, losses, objectives, n_iter, converged)


@dataclass
class EmpiricalRisk:
    """The rows of one fit: trees as counts of rules, and sentences.

    Attributes
    ----------
    grammar : CFG
        The rules.
    tree_counts : ndarray of float64, shape (n_rules,)
        Weighted counts of the rules in the trees.
    sentences : Treebank or ShardedTreebank
        Sentences without a tree.
    weights : ndarray of float64, shape (n_sentences,)
        Weights of the sentences.
    n_samples : float
        Weight of all rows: the n of the margin n^-s.
    total_weight : float
        The same with sentences discounted; the loss is divided by it.
    n_zero_probability : int
        Rows that the grammar does not derive, and that are left out.
    max_memory : int
        Most bytes that the chart of one sentence may take.
    n_jobs : int or None
        As in joblib.
    """

    grammar: CFG
    tree_counts: np.ndarray
    sentences: Treebank | ShardedTreebank
    weights: np.ndarray
    n_samples: float
    total_weight: float
    n_zero_probability: int
    max_memory: int
    n_jobs: int | None

    @classmethod
    def from_rows(
        cls, X, weights, grammar, *, unlabeled_weight=1.0, max_memory=2**31, n_jobs=None
    ):
        """Count the rules of the trees, and keep the sentences.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Trees, sentences, or both.
        weights : ndarray of float64, shape (n_rows,)
            Their weights.
        grammar : CFG
            The rules. Rows that it does not derive are left out, and counted in a
            warning.
        unlabeled_weight : float, default=1.0
            Weight of a sentence relative to a tree.
        max_memory : int, default=2**31
            Most bytes that the chart of one sentence may take.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        EmpiricalRisk
        """
        tree_counts, derivable, parsed = count_derivable(
            grammar, X, weights, max_memory=max_memory, n_jobs=n_jobs
        )
        n_zero_probability = _report_zero_probability(X, grammar, derivable, weights)
        kept = derivable & (weights > 0)
        sentence_weights = weights[kept & ~parsed] * unlabeled_weight
        return cls(
            grammar=grammar,
            tree_counts=tree_counts,
            sentences=X[kept & ~parsed],
            weights=sentence_weights,
            n_samples=float(weights[kept].sum()),
            total_weight=weights[kept & parsed].sum() + sentence_weights.sum(),
            n_zero_probability=n_zero_probability,
            max_memory=max_memory,
            n_jobs=n_jobs,
        )

    def expectations(self, theta):
        """Empirical log-loss and expected counts under rule probabilities."""
        log_probabilities, counts = expected_rule_counts(
            self.grammar,
            self.sentences,
            theta,
            self.weights,
            max_memory=self.max_memory,
            n_jobs=self.n_jobs,
        )
        used = self.tree_counts > 0
        loss = -float(self.tree_counts[used] @ np.log(theta[used]))
        loss -= float(self.weights @ log_probabilities)
        return loss / self.total_weight, counts + self.tree_counts


def count_derivable(grammar, X, weights, *, max_memory=2**31, n_jobs=None):
    """Count the rules of the trees, and find the rows that the grammar derives.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    X : Treebank or ShardedTreebank
        Trees, sentences, or both.
    weights : ndarray of float64, shape (n_rows,)
        Their weights.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    tree_counts : ndarray of float64, shape (n_rules,)
        Weight of the uses of each rule in trees that the grammar derives.
    derivable, parsed : ndarray of bool, shape (n_rows,)
        Which rows the grammar derives with any probabilities, and which have a tree.
    """
    n_rules = len(grammar.rules)

    def count(treebank, weights):
        row, rule, derivable = rules_of_trees(grammar, treebank)
        used = derivable[row]
        counts = np.bincount(rule[used], weights=weights[row[used]], minlength=n_rules)
        return counts, derivable, treebank.is_parsed

    parts = zip(*over_chunks(count, X, weights, n_jobs=n_jobs), strict=True)
    counts, derivable, parsed = parts
    derivable, parsed = np.concatenate(derivable), np.concatenate(parsed)
    if not parsed.all():
        derivable[~parsed] = np.isfinite(
            expected_rule_counts(
                grammar,
                X[~parsed],
                uniform(grammar),
                np.zeros((~parsed).sum()),
                max_memory=max_memory,
                n_jobs=n_jobs,
            )[0]
        )
    return sum(counts), derivable, parsed


def normalised(grammar, weights):
    """Return rule probabilities in proportion to weights."""
    theta = np.empty(len(weights))
    for group in rules_by_lhs(grammar.rules).values():
        theta[group] = weights[group] / weights[group].sum()
    return theta


def uniform(grammar):
    """Return equal probabilities for the rules of each nonterminal."""
    return normalised(grammar, np.ones(len(grammar.rules)))


def _report_zero_probability(X, grammar, derivable, weights):
    """Return the number of rows outside the language, with a warning if any."""
    missing = ~derivable & (weights > 0)
    n_missing = int(missing.sum())
    if n_missing == 0:
        return 0
    first = int(np.flatnonzero(missing)[0])
    unknown = _unknown_tokens(grammar, X[missing])
    hint = f"; unknown terminals: {', '.join(unknown)}" if unknown else ""
    if not (derivable & (weights > 0)).any():
        raise ValueError(
            f"none of the {len(X)} rows is derived by the grammar (start "
            f"{grammar.start!r}){hint}"
        )
    warn_caller(
        f"{n_missing} of {len(X)} rows have probability zero under "
        f"the grammar and were left out, the first is row {first}{hint}",
        UserWarning,
    )
    return n_missing


def _unknown_tokens(grammar, X, most=5):
    """Return some tokens that the grammar does not know."""
    names = {}
    for treebank in X.chunks():
        unknown = np.unique(treebank.token[encode(grammar, treebank) < 0])
        names.update((treebank.tokens[i], None) for i in unknown[:most])
        if len(names) >= most:
            break
    return list(names)[:most]


class RuleCountsMixin:
    """Scores and features of a model with ``grammar_``, a CFG, and ``theta_``."""

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
        theta = self._probabilities()
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
            self._probabilities(),
            np.zeros(len(X)),
            max_memory=self.max_memory,
            n_jobs=self.n_jobs,
        )[0]

    def score(self, X, y=None, *, sample_weight=None):
        """Minus the empirical log-loss: the mean log probability of the rows.

        Rows outside the language of the grammar, whose probability is zero whatever
        the rule probabilities, are left out and counted in a warning. A row that is
        impossible only under these probabilities gives -inf. Scores of grammars that
        derive different rows are therefore not comparable. To compare grammars, use
        :func:`~lpcfg_sk.metrics.log_likelihood_scorer`, which is -inf where a row is
        not derived.

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
                self.grammar_,
                X[zero],
                weights[zero],
                max_memory=self.max_memory,
                n_jobs=self.n_jobs,
            )
            outside = zero[~derivable]
            if len(outside):
                weights = weights.copy()
                weights[outside] = 0.0
                warn_caller(
                    f"{len(outside)} of {len(X)} rows are not in the language of the "
                    "grammar and were left out of the score",
                    UserWarning,
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
        theta, one = self._probabilities(), np.ones(1)
        for i in np.flatnonzero(~X.is_parsed):
            expected = expected_rule_counts(
                self.grammar_, X[i : i + 1], theta, one, max_memory=self.max_memory
            )[1]
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
        # Both fit and transform read X, and an iterator can be read once.
        X = check_treebank(X, estimator=self, sharded=True)
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
