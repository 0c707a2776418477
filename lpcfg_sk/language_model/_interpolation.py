"""Linear interpolation of language models."""

from numbers import Real

import numpy as np
from sklearn.base import clone

from lpcfg_sk._validation import Interval, fit_context
from lpcfg_sk.language_model._base import BaseLanguageModel
from lpcfg_sk.language_model._counting import check_corpus

# EM over the weights ends when none changes by more than this.
_TOL = 1e-8
_MOST_STEPS = 1000


class InterpolatedLM(BaseLanguageModel):
    r"""Linear interpolation of language models with the same vocabulary.

    .. math:: p(w | u) = \sum_k λ_k p_k(w | u)

    Parameters
    ----------
    estimators : list of language models
        Models with the same `mode`, `min_count`, `unk_token` and `vocabulary`.
    weights : array-like of float, default=None
        The λ_k, which sum to one. None chooses those that maximise the likelihood of
        held-out sentences, by EM.
    validation_fraction : float, default=0.1
        Share of the sentences, the last ones, held out to choose the weights.

    Attributes
    ----------
    estimators_ : list of language models
        The fitted models.
    weights_ : ndarray of float, shape (n_models,)
        Their weights.
    vocabulary_ : ndarray of str
        Outcomes of all models.

    Examples
    --------
    >>> from lpcfg_sk.language_model import (
    ...     AggregateMarkovLM, InterpolatedLM, KneserNeyLM)
    >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
    >>> models = [KneserNeyLM(2), AggregateMarkovLM(2, tol=0.1, random_state=0)]
    >>> model = InterpolatedLM(models, weights=[0.7, 0.3]).fit(X)
    >>> round(float(model.predict_proba([["the"]]).sum()), 6)
    1.0
    """

    _parameter_constraints: dict = {
        "estimators": [list, tuple],
        "weights": [None, "array-like"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(self, estimators, *, weights=None, validation_fraction=0.1):
        self.estimators = estimators
        self.weights = weights
        self.validation_fraction = validation_fraction

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, X_val=None, sample_weight=None):
        """Fit the models, and choose their weights.

        Parameters
        ----------
        X : list of list of str
            Training sentences.
        y : None
            Ignored.
        X_val : list of list of str, default=None
            Held-out sentences for the weights, instead of a part of X.
        sample_weight : array-like of shape (n_sentences,), default=None
            Weights of the sentences.

        Returns
        -------
        self
        """
        X = check_corpus(X, estimator=self)
        given = self._given_weights()
        if given is None and X_val is None:
            cut = len(X) - max(1, round(self.validation_fraction * len(X)))
            if not 0 < cut < len(X):
                raise ValueError(
                    f"{len(X)} sentences leave none to hold out for the weights; give "
                    "X_val or weights"
                )
            part = None if sample_weight is None else np.asarray(sample_weight)[:cut]
            self._fit_models(X[:cut], part)
            given = self._choose_weights(X[cut:])
        self._fit_models(X, sample_weight)
        if given is None:
            given = self._choose_weights(check_corpus(X_val, estimator=self))
        self.weights_ = given
        return self

    def _given_weights(self):
        n = len(self.estimators)
        if n == 0 or not all(isinstance(e, BaseLanguageModel) for e in self.estimators):
            raise ValueError("estimators holds at least one language model")
        if self.weights is None:
            return None
        weights = np.asarray(self.weights, dtype=float)
        if (
            weights.shape != (n,)
            or (weights < 0).any()
            or abs(weights.sum() - 1) > 1e-9
        ):
            raise ValueError(
                f"weights holds {n} numbers from 0 on that sum to one, got "
                f"{self.weights!r}"
            )
        return weights

    def _fit_models(self, X, sample_weight):
        self.estimators_ = [
            clone(model).fit(X, sample_weight=sample_weight)
            for model in self.estimators
        ]
        first = self.estimators_[0]
        # The number of start symbols matters only for trigrams and longer n-grams.
        starts = {model._n_starts for model in self.estimators_ if model._order > 2}
        for model in self.estimators_[1:]:
            same = model.mode == first.mode and np.array_equal(
                model.vocabulary_, first.vocabulary_
            )
            if not same or len(starts) > 1:
                raise ValueError(
                    f"{type(first).__name__} and {type(model).__name__} have different "
                    "outcomes or start symbols; give them the same mode, min_count, "
                    "unk_token, vocabulary and start_symbols"
                )
        self._name_outcomes(first.vocabulary_.tolist())

    def _choose_weights(self, X):
        """Maximise the likelihood of sentences over the weights."""
        self.weights_ = np.full(len(self.estimators_), 1.0 / len(self.estimators_))
        events, scored = self._events(X)
        p = self._by_model(events.history[scored], events.outcome[scored])
        p = p[:, p.any(axis=0)]
        if p.shape[1] == 0:
            raise ValueError("no held-out token has a positive probability")
        weights = self.weights_
        for _ in range(_MOST_STEPS):
            joint = weights[:, None] * p
            new = (joint / joint.sum(axis=0)).mean(axis=1)
            done = np.abs(new - weights).max() <= _TOL
            weights = new
            if done:
                break
        return weights

    @property
    def mode(self):
        """Mode of the models."""
        return self.estimators[0].mode

    @property
    def unk_token(self):
        """Name of the unknown word."""
        return self.estimators[0].unk_token

    @property
    def score_unk(self):
        """Whether unknown words count as outcomes when scoring."""
        return self.estimators[0].score_unk

    @property
    def _order(self):
        return max(model._order for model in self.estimators_)

    @property
    def _n_starts(self):
        return max(model._n_starts for model in self.estimators_)

    def _by_model(self, history, outcome):
        return np.stack(
            [
                model._probabilities(history[:, : model._order - 1], outcome)
                for model in self.estimators_
            ]
        )

    def _probabilities(self, history, outcome):
        return self.weights_ @ self._by_model(history, outcome)

    def _distribution(self, history):
        return sum(
            weight * model._distribution(history[:, : model._order - 1])
            for weight, model in zip(self.weights_, self.estimators_, strict=True)
        )
