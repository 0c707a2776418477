"""Search over the numbers of latent states of the nonterminals."""

import sys
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._validation import N_JOBS, HasMethods, Interval, fit_context
from lpcfg_sk.model_selection._folds import Fold, learner_of, make_family, prepare
from lpcfg_sk.treebank import TreebankInputMixin, check_sample_weight, check_treebank

_COLUMNS = (
    "step",
    "nonterminal",
    "m",
    "mean_score",
    "std_score",
    "gain",
    "gain_error",
    "kept",
)


class _Candidate(NamedTuple):
    """Numbers of states that differ from the base, and their scores by fold."""

    changes: dict
    scores: np.ndarray
    learners: list

    @property
    def mean(self):
        return float(np.mean(self.scores))


def _delegate(name, summary):
    """Make a method that calls the one of the best estimator."""

    def has_method(self):
        estimator = getattr(self, "best_estimator_", self.estimator)
        return hasattr(estimator, name)

    def method(self, *args, **kwargs):
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"LatentStateSearchCV.{name}"
    method.__doc__ = f"""{summary}

        Available where the best estimator has the method.

        Parameters
        ----------
        *args, **kwargs
            Those of ``best_estimator_.{name}``.

        Returns
        -------
        result : object
            What ``best_estimator_.{name}`` returns.
        """
    return available_if(has_method)(method)


class LatentStateSearchCV(TreebankInputMixin, MetaEstimatorMixin, BaseEstimator):
    """Cross-validated numbers of latent states, one for each nonterminal.

    Nonterminals need different numbers of states, and the best number for one depends
    on those of the others. The search of [1]_ goes through the nonterminals, the most
    frequent first, tries all candidates for each, and keeps the best vectors m in a
    beam. A change is only accepted if its gain, paired over the folds, exceeds its own
    standard error by a margin.

    Parameters
    ----------
    estimator : SpectralLPCFG, another learner with `m`, or a pipeline of one
        The learner's parameter `m` says where the search starts, and remains the
        number of states of the nonterminals that are not searched.
    candidates : sequence of int, default=(1, 2, 4, 8, 16, 24, 32)
        Numbers of states to try.
    n_nonterminals : int or None, default=10
        How many nonterminals to search, the most frequent ones; all where None.
    n_passes : int, default=1
        How often to go through the nonterminals. A pass that changes nothing is the
        last one.
    beam_width : int, default=1
        How many vectors are kept from one nonterminal to the next.
    margin : float, default=1.0
        A candidate is accepted if the mean of its gains over the folds is positive
        and more than `margin` times the standard error of that mean, which is taken
        to be at least the root mean square of those of all candidates of the step.
        With a single fold, which has no standard error, any gain counts.
    scoring : callable, default=None
        ``scoring(estimator, X) -> float``, such as
        :func:`~lpcfg_sk.metrics.parseval_scorer`; where None, the labelled F1 of
        ``estimator.score``.
    cv : int, splitter or iterable, default=5
        Folds, as in :class:`sklearn.model_selection.GridSearchCV`.
    refit : bool, default=True
        Whether to fit the estimator with the chosen numbers on all trees.
    n_jobs : int, default=None
        Number of threads over candidates and folds. The result does not depend on it.
    verbose : int, default=0
        Whether to report each step (on standard error).

    Attributes
    ----------
    m_ : dict of str to int
        The chosen number of states of every nonterminal.
    base_m_ : dict of str to int
        The numbers with which the search began.
    counts_ : dict of str to float
        Number of nodes of each nonterminal that was searched, in that order.
    base_score_, best_score_ : float
        Mean score over the folds of the numbers with which the search began, and of
        the chosen ones. The latter is the best of many scores, and so too high: report
        a score on other trees.
    best_estimator_ : estimator
        The estimator with ``m=m_``, fitted on all trees, where `refit`.
    results_ : DataFrame
        One row per candidate that was scored: ``step``, ``nonterminal``, ``m``,
        ``mean_score`` and ``std_score`` over the folds, ``gain`` over the vector that
        it changes, ``gain_error`` (the standard error of the gain), and ``kept``,
        whether it stayed in the beam. There is one step per nonterminal and pass.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    SpectralLPCFG : ``m="singular_values"`` chooses without a search.
    sklearn.model_selection.GridSearchCV : Searches one number for all nonterminals.

    Notes
    -----
    For a :class:`SpectralLPCFG` each fold is preprocessed and decomposed once, with as
    many singular vectors as the largest candidate; a candidate then costs the moments
    of the rules with the nonterminal whose number is tried, and parsing. With the
    default `scoring` the test sentences are pruned once, and their charts kept, which
    takes some 50 KB per sentence. Other learners are fitted from the start for each
    candidate.

    At most ``n_passes * n_nonterminals * beam_width * len(candidates)`` vectors are
    scored on each fold; numbers that the data of no fold supports are left out.

    References
    ----------
    .. [1] S. Narayan and S. B. Cohen (2016). Optimizing spectral learning for parsing.
       ACL.

    Examples
    --------
    >>> from lpcfg_sk import LatentStateSearchCV, SpectralLPCFG, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> parser = make_parser(SpectralLPCFG(m=2))
    >>> search = LatentStateSearchCV(
    ...     parser, candidates=(1, 2, 4), n_nonterminals=2, cv=2
    ... ).fit(load_toy(60))
    >>> list(search.counts_)
    ['NP', 'DT']
    >>> search.best_estimator_[-1].m == search.m_
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"])],
        "candidates": ["array-like"],
        "n_nonterminals": [None, Interval(Integral, 1, None, closed="left")],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "scoring": [None, callable],
        "cv": ["cv_object"],
        "refit": ["boolean"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator,
        *,
        candidates=(1, 2, 4, 8, 16, 24, 32),
        n_nonterminals=10,
        n_passes=1,
        beam_width=1,
        margin=1.0,
        scoring=None,
        cv=5,
        refit=True,
        n_jobs=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.candidates = candidates
        self.n_nonterminals = n_nonterminals
        self.n_passes = n_passes
        self.beam_width = beam_width
        self.margin = margin
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None, sample_weight=None):
        """Search, and fit the estimator with the numbers that were found.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees; for a learner alone, as the learner takes them.
        y : None
            Ignored.
        groups : array-like, shape (n_trees,), default=None
            Groups of trees, such as documents, for a splitter that keeps them together.
        sample_weight : array-like of float, shape (n_trees,), default=None
            Weights of the trees in training; all test trees count alike.

        Returns
        -------
        self : LatentStateSearchCV
        """
        X = check_treebank(X, estimator=self, parsed=True)
        weight = sample_weight
        if weight is not None:
            weight = check_sample_weight(weight, X)
        sizes = self._candidates()
        learner = learner_of(self.estimator)
        if "m" not in learner.get_params(deep=False):
            raise ValueError(
                f"LatentStateSearchCV searches the parameter m of a learner, which "
                f"{type(learner).__name__} does not have; use SpectralLPCFG, "
                "PivotLPCFG or EMLPCFG, or a pipeline that ends in one"
            )
        whole = make_family(learner, prepare(self.estimator, X)[1], weight, max(sizes))
        counts = _searchable(whole.rules, self.n_nonterminals)
        folds = self._folds(X, groups, weight, max(sizes))
        base, best, rows = self._search(folds, list(counts), sizes)
        self.n_splits_ = len(folds)
        self.results_ = pd.DataFrame(rows, columns=_COLUMNS)
        self.base_score_ = base.mean
        self.best_score_ = best.mean
        self.counts_ = counts
        self.base_m_ = whole.base
        self.m_ = {**whole.base, **best.changes}
        if self.refit:
            estimator = clone(self.estimator)
            learner_of(estimator).set_params(m=dict(self.m_))
            weights = {} if weight is None else {self._weight_name: weight}
            self.best_estimator_ = estimator.fit(X, **weights)
        return self

    @property
    def _weight_name(self):
        if learner_of(self.estimator) is self.estimator:
            return "sample_weight"
        return f"{self.estimator.steps[-1][0]}__sample_weight"

    def _candidates(self):
        sizes = list(self.candidates)
        whole = all(isinstance(m, Integral) and m >= 1 for m in sizes)
        if not sizes or not whole or len(set(sizes)) < len(sizes):
            raise ValueError(
                "candidates must be different whole numbers from 1 on, got "
                f"{self.candidates!r}"
            )
        return sorted(int(m) for m in sizes)

    def _folds(self, X, groups, weight, m_max):
        cv = check_cv(self.cv)

        def fold(train, test):
            own = None if weight is None else weight[train]
            parts = X[train], X[test]
            return Fold(self.estimator, *parts, own, m_max, self.scoring)

        splits = list(cv.split(X, None, groups))
        return list(map_chunks(fold, splits, n_jobs=self.n_jobs))

    def _search(self, folds, nonterminals, sizes):
        """Search by a beam; return the first and the best candidate, and all rows."""
        (scores,) = self._scores(folds, [({}, [None] * len(folds))])
        base = _Candidate({}, scores, [fold.fit({}) for fold in folds])
        self._say(f"score {base.mean:.4f} over {len(folds)} folds")
        beam, rows, step = [base], [], 0
        for _ in range(self.n_passes):
            before = [candidate.changes for candidate in beam]
            for a in nonterminals:
                step += 1
                beam, tried = self._step(folds, beam, a, sizes, step)
                rows += tried
                self._say(
                    f"step {step}: {len(tried)} candidates for {a}, "
                    f"score {beam[0].mean:.4f}, {beam[0].changes}"
                )
            if [candidate.changes for candidate in beam] == before:
                break
        return base, beam[0], rows

    def _step(self, folds, beam, a, sizes, step):
        """Try all numbers of states of one nonterminal on all vectors of the beam."""
        trials = [
            (parent, {**parent.changes, a: m})
            for parent in beam
            for m in _distinct(folds, parent, a, sizes)
        ]
        scores = self._scores(folds, [(c, parent.learners) for parent, c in trials])
        gains = [
            found - parent.scores
            for (parent, _), found in zip(trials, scores, strict=True)
        ]
        errors = _standard_errors(np.reshape(gains, (-1, len(folds))))
        pool, rows = [(candidate, None) for candidate in beam], []
        for number, (parent, changes) in enumerate(trials):
            found, gain, error = scores[number], gains[number].mean(), errors[number]
            scored = found.mean(), found.std()
            rows.append([step, a, changes[a], *scored, gain, error, False])
            if gain > 0 and not gain <= self.margin * error:
                pool.append((_Candidate(changes, found, parent.learners), number))
        # The sort is stable: earlier candidates win ties, then those with fewer states.
        pool.sort(key=lambda entry: -entry[0].mean)
        kept = []
        for candidate, number in pool:
            if len(kept) == self.beam_width:
                break
            if any(candidate.changes == other.changes for other in kept):
                continue
            if number is not None:
                rows[number][-1] = True
                # Fitting it again from its parent is cheaper than keeping all learners.
                learners = [
                    fold.fit(candidate.changes, learner)
                    for fold, learner in zip(folds, candidate.learners, strict=True)
                ]
                candidate = candidate._replace(learners=learners)
            kept.append(candidate)
        return kept, rows

    def _scores(self, folds, trials):
        """Score trials, pairs of changes and known learners, on all folds."""
        jobs = [
            (fold, changes, learner)
            for changes, learners in trials
            for fold, learner in zip(folds, learners, strict=True)
        ]
        found = map_chunks(Fold.score, jobs, n_jobs=self.n_jobs)
        return np.array(list(found), dtype=float).reshape(len(trials), len(folds))

    def score(self, X, y=None):
        """Score the best estimator by `scoring`.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Sentences to parse, and their gold trees.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Labelled F1 between 0 and 1 where `scoring` is None.
        """
        check_is_fitted(self, "best_estimator_")
        if self.scoring is None:
            return self.best_estimator_.score(X)
        return self.scoring(self.best_estimator_, X)

    predict = _delegate("predict", "Parse sentences with the best estimator.")
    transform = _delegate("transform", "Transform trees by the best estimator.")
    score_samples = _delegate("score_samples", "Log probability of each tree.")
    sentence_log_prob = _delegate("sentence_log_prob", "Log probability of sentences.")
    marginals = _delegate("marginals", "Marginals of the nonterminals.")
    span_marginals = _delegate("span_marginals", "Posterior probabilities of brackets.")
    parse_kbest = _delegate("parse_kbest", "Best k trees of each sentence.")
    sample = _delegate("sample", "Draw trees from the grammar.")

    def __sklearn_is_fitted__(self):
        return hasattr(self, "m_")

    def _say(self, text):
        if self.verbose:
            sys.stderr.write(f"LatentStateSearchCV: {text}\n")


def _searchable(rules, n_nonterminals):
    """Count the most frequent nonterminals that may have more than one state."""
    columns = rules.nonterminals, rules.label_count.tolist(), rules.occurs_below
    counts = {a: n for a, n, below in zip(*columns, strict=True) if below}
    order = sorted(counts, key=lambda a: (-counts[a], a))
    return {a: counts[a] for a in order[:n_nonterminals]}


def _distinct(folds, parent, a, sizes):
    """Return the sizes that give distinct grammars, in increasing order."""

    def states(changes):
        m = [{**fold.family.base, **changes}.get(a, 1) for fold in folds]
        return tuple(fold.family.cut(a, k) for fold, k in zip(folds, m, strict=True))

    seen = {states(parent.changes)}
    return [m for m in sizes if (s := states({a: m})) not in seen and not seen.add(s)]


def _standard_errors(gains):
    """Standard errors of the mean gains of the candidates of a step.

    The variance over few folds is itself mostly noise, and the candidate that looks
    best is often one whose variance looks small. No error is therefore taken to be
    smaller than the root mean square of all errors of the step.
    """
    n_candidates, n_folds = gains.shape
    if n_folds == 1 or n_candidates == 0:
        return np.full(n_candidates, np.nan)
    variance = gains.var(axis=1, ddof=1) / n_folds
    return np.sqrt(np.maximum(variance, variance.mean()))
