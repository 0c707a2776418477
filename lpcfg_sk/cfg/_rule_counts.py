"""Probabilities and rule counts of rows under a fitted context-free grammar."""

import warnings

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.cfg._derivations import expected_rule_counts, rules_of_trees
from lpcfg_sk.cfg._empirical_risk import count_derivable
from lpcfg_sk.treebank import check_sample_weight, check_treebank


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
