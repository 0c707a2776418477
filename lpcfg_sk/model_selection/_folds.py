"""Folds of a search over numbers of states: what all candidates have in common."""

from functools import cached_property

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lpcfg_sk.lpcfg import requested_states
from lpcfg_sk.metrics import f1_score
from lpcfg_sk.spectral import SpectralFamily, SpectralLPCFG
from lpcfg_sk.treebank import count_rules, unbinarize, weighted_trees

__all__ = ["Fold", "learner_of", "make_family", "prepare"]


def learner_of(estimator):
    """Return the learner of a pipeline, or the estimator itself."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def prepare(estimator, X):
    """Fit the steps before the learner.

    Parameters
    ----------
    estimator : Pipeline or learner
        Not fitted.
    X : Treebank
        Training trees.

    Returns
    -------
    steps : Pipeline or None
        The fitted steps; None for a learner alone.
    X : Treebank
        The trees as the learner sees them.
    """
    if not isinstance(estimator, Pipeline) or len(estimator) == 1:
        return None, X
    steps = clone(estimator[:-1])
    return steps, steps.fit_transform(X)


def make_family(learner, X, sample_weight, m_max):
    """Learners on one treebank that differ in their numbers of states.

    Parameters
    ----------
    learner : estimator with the parameter `m`
        Not fitted.
    X : Treebank
        Training trees as the learner sees them.
    sample_weight : ndarray of float64, shape (n_trees,), or None
        Weights of the trees.
    m_max : int
        The largest number of states.

    Returns
    -------
    SpectralFamily or RefitFamily
    """
    if isinstance(learner, SpectralLPCFG):
        return SpectralFamily(learner, X, sample_weight, m_max=m_max)
    return RefitFamily(learner, X, sample_weight)


class RefitFamily:
    """Learners that share nothing: each is fitted from scratch.

    Parameters, attributes and methods are those of ``SpectralFamily``.
    """

    def __init__(self, learner, X, sample_weight=None):
        self._learner, self._X, self._weight = learner, X, sample_weight
        self.rules = count_rules(*weighted_trees(X, sample_weight, learner))
        names = self.rules.nonterminals
        m = requested_states(learner.m, names, self.rules.label_count)
        self.base = dict(zip(names, m.tolist(), strict=True))

    def cut(self, nonterminal, m):
        """Return m: what the data supports is only known after a fit."""
        return m

    def fit(self, m, known=None):
        """Fit a learner with the given numbers of states."""
        learner = clone(self._learner).set_params(m=dict(m))
        weights = {} if self._weight is None else {"sample_weight": self._weight}
        return learner.fit(self._X, **weights)


class Fold:
    """Training and test trees of one fold, prepared for all candidates.

    Parameters
    ----------
    estimator : Pipeline or learner
        Not fitted.
    train, test : Treebank
        The trees.
    sample_weight : ndarray of float64 or None
        Weights of the training trees.
    m_max : int
        The largest number of states.
    scorer : callable or None
        ``scorer(estimator, X) -> float``; labelled F1 where None.
    """

    def __init__(self, estimator, train, test, sample_weight, m_max, scorer):
        self._estimator, self._test, self._scorer = estimator, test, scorer
        self._steps, train = prepare(estimator, train)
        self.family = make_family(learner_of(estimator), train, sample_weight, m_max)
        self._seen = test if self._steps is None else self._steps.transform(test)
        if self._shares_charts:
            # Pruning depends on the rules alone, not on the number of states.
            parser = self.fit({})._parser()
            self._pruned = parser.pruned_charts(
                self._seen, n_jobs=learner_of(estimator).n_jobs
            )

    @property
    def _shares_charts(self):
        is_spectral = isinstance(self.family, SpectralFamily)
        return (
            self._scorer is None and is_spectral and learner_of(self._estimator).prune
        )

    @cached_property
    def _gold(self):
        return unbinarize(self._seen) if self._seen.binarized else self._seen

    def fit(self, changes, known=None):
        """Fit a candidate.

        Parameters
        ----------
        changes : dict of str to int
            Numbers of states that differ from those of the estimator.
        known : learner, default=None
            A similar candidate, fitted before.

        Returns
        -------
        learner : estimator
        """
        base = self.family.base
        # A fold may lack a rare nonterminal.
        changes = {a: m for a, m in changes.items() if a in base}
        return self.family.fit({**base, **changes}, known)

    def score(self, changes, known=None):
        """Fit a candidate on the training trees and score it on the test trees.

        Parameters
        ----------
        changes, known
            See :meth:`fit`.

        Returns
        -------
        score : float
        """
        learner = self.fit(changes, known)
        if self._shares_charts:
            trees, _ = learner._parser().predict(
                self._seen, pruned=self._pruned, n_jobs=learner.n_jobs
            )
            return f1_score(self._gold, trees)
        if self._scorer is None:
            return learner.score(self._seen)
        if self._steps is None:
            return self._scorer(learner, self._test)
        fitted = clone(self._estimator)
        fitted.steps = [*self._steps.steps, (fitted.steps[-1][0], learner)]
        return self._scorer(fitted, self._test)
