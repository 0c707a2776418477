"""What compressed automata share: where they come from and how they parse."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.automata._bracketing import bracketing_f1, mbr_bracketings
from lpcfg_sk.automata._wta import WTA
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import LPCFG
from lpcfg_sk.treebank import check_sample_weight, check_treebank

__all__ = ["BaseAutomatonCompressor"]


class BaseAutomatonCompressor(BaseEstimator):
    """Base of estimators that learn a grammar and shrink its automaton.

    Subclasses have the parameters `estimator`, `max_memory` and `n_jobs`, set
    `wta_` in fit and implement ``transform``.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _fit_original(self, X, sample_weight):
        """Set `original_`, the automaton to compress."""
        given = self.estimator
        vars(self).pop("estimator_", None)
        if isinstance(given, WTA):
            self.original_ = given
        elif isinstance(given, LPCFG) or _is_fitted(given):
            self.original_ = WTA.from_pcfg(given)
        else:
            self.estimator_ = self._fit_learner(given, X, sample_weight)
            self.original_ = WTA.from_pcfg(self.estimator_)

    def _fit_learner(self, given, X, sample_weight):
        if X is None:
            raise ValueError(
                f"{type(self).__name__} needs a treebank to fit its estimator; give "
                "one, or a fitted learner, an LPCFG or a WTA as estimator."
            )
        if given is None:
            from lpcfg_sk.em import PCFG

            given = PCFG()
        learner = clone(given)
        weighted = sample_weight is not None and _takes_weights(learner)
        learner.fit(X, **({"sample_weight": sample_weight} if weighted else {}))
        if not hasattr(learner, "grammar_"):
            raise TypeError(
                f"estimator {type(learner).__name__} has no grammar_ after fit; give a "
                "learner such as PCFG or EMLPCFG (put preprocessing steps before "
                f"{type(self).__name__} in the Pipeline, not inside it)."
            )
        return learner

    def _check_automaton(self, X):
        check_is_fitted(self)
        if not isinstance(X, WTA):
            raise TypeError(
                f"transform takes a WTA, got {type(X).__name__}; make one with "
                "WTA.from_pcfg."
            )
        return X

    def predict(self, X):
        """Bracket sentences by minimum Bayes risk on topology.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            The words are what counts; trees are ignored.

        Returns
        -------
        Treebank
            Binary trees with all nodes labelled "X".

        Warns
        -----
        ParseFailureWarning
            Once, with the number of sentences that the automaton gives the value
            zero; they get the tree that branches to the right.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, allow_empty=True)
        if len(X) == 0:
            return X
        trees, failed = mbr_bracketings(
            self.wta_, X, max_memory=self.max_memory, n_jobs=self.n_jobs
        )
        if len(failed):
            warnings.warn(
                f"{len(failed)} of {len(X)} sentences have value zero under the "
                f"automaton (the first in row {failed[0]}) and got a right-branching "
                "tree.",
                ParseFailureWarning,
                stacklevel=2,
            )
        return trees

    def score(self, X, y=None, *, sample_weight=None):
        """F measure of unlabelled bracketing of `predict` against the trees of X.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees as the estimator was fitted on, normally binary; spans of two or
            more words count, each once.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        float
            Between 0 and 1.
        """
        check_is_fitted(self)
        X = check_treebank(X, estimator=self, parsed=True)
        weight = check_sample_weight(sample_weight, X)
        return bracketing_f1(X, self.predict(X), weight)

    def score_samples(self, X):
        """Log value log f̂(t) of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees.

        Returns
        -------
        ndarray of float64, shape (n_trees,)
            Natural logarithm; -inf where the value is zero or negative.
        """
        check_is_fitted(self)
        sign, log = self.wta_.log_value(X, n_jobs=self.n_jobs)
        return np.where(sign > 0, log, -np.inf)


def _takes_weights(learner):
    """Whether the learner's metadata request, if it has one, lets weights through."""
    if not hasattr(learner, "get_metadata_routing"):
        return True
    request = getattr(learner.get_metadata_routing(), "fit", None)
    return request is None or request.requests.get("sample_weight") is not False


def _is_fitted(learner):
    if not hasattr(learner, "grammar_"):
        return False
    try:
        check_is_fitted(learner)
    except NotFittedError:
        return False
    return True
