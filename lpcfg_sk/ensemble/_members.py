"""Members of an ensemble: what they share in training and in parsing."""

import joblib
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from lpcfg_sk.parsing import flat_brackets

__all__ = ["MemberGroup", "group_members", "prepare", "unfrozen"]


def unfrozen(estimator):
    """Estimator inside a ``FrozenEstimator``, or itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def prepare(estimators, X):
    """Fit the preprocessing of all members, equal steps once.

    Parameters
    ----------
    estimators : list of estimator
        Unfitted members; pipelines or bare learners.
    X : Treebank
        Training trees.

    Returns
    -------
    prepared : list of (steps, learner, Treebank)
        Fitted preprocessing steps, an unfitted copy of the learner, and the trees as
        the learner sees them.
    """
    done = {}
    prepared = []
    for estimator in estimators:
        steps, learner = _split(estimator)
        fitted, seen, path = [], X, ()
        for name, step in steps:
            path = (*path, joblib.hash((type(step), step.get_params())))
            if path not in done:
                step = clone(step)
                done[path] = (step, step.fit(seen).transform(seen))
            step, seen = done[path]
            fitted.append((name, step))
        prepared.append((fitted, clone(learner), seen))
    return prepared


def _split(estimator):
    if isinstance(estimator, Pipeline):
        return estimator.steps[:-1], estimator.steps[-1][1]
    return [], estimator


class MemberGroup:
    """Fitted members that see sentences alike and share one coarse chart.

    Parameters
    ----------
    members : list of (int, estimator)
        Numbers of the members, and the members.
    """

    def __init__(self, members):
        self.numbers = [number for number, _ in members]
        self._steps = _split(members[0][1])[0]
        self._learners = [_split(member)[1] for _, member in members]

    def charts(self, X, *, quick=False):
        """Charts of the sentences of X, one for each member.

        Parameters
        ----------
        X : Treebank
            Sentences.
        quick : bool, default=False
            Whether marginals that are right to a few digits will do.

        Returns
        -------
        charts : GroupCharts
        """
        seen = X.unparsed()
        for _, step in self._steps:
            seen = step.transform(seen)
        parsers = [learner._parser() for learner in self._learners]
        return GroupCharts(self.numbers, parsers, seen, quick=quick)


class GroupCharts:
    """Charts of a treebank under all members of a group."""

    def __init__(self, numbers, parsers, treebank, *, quick=False):
        self.numbers = numbers
        self.parsers = parsers
        self.charts = [parser.charts(treebank, quick=quick) for parser in parsers]

    def brackets(self, row):
        """Yield (member number, its brackets or None where it has no parse)."""
        pruned = self.charts[0].pruned(row)
        for number, parser, charts in zip(
            self.numbers, self.parsers, self.charts, strict=True
        ):
            yield number, parser.bracket_marginals(charts, row, pruned=pruned)

    def flat_tree(self, row):
        """Nodes of a flat tree, in the numbering of the first member."""
        return flat_brackets(self.parsers[0].brackets, *self.charts[0].last_resort(row))


def group_members(estimators):
    """Group fitted members whose preprocessing and pruning are the same.

    Parameters
    ----------
    estimators : list of estimator
        Fitted members.

    Returns
    -------
    groups : list of MemberGroup
    """
    groups = {}
    for number, estimator in enumerate(estimators):
        steps, learner = _split(estimator)
        words = [s for name, s in steps if name not in ("inside", "outside")]
        key = (
            tuple(joblib.hash(s.__getstate__()) for s in words),
            joblib.hash(learner.coarse_),
            learner.prune,
            learner.max_memory,
        )
        groups.setdefault(key, []).append((number, estimator))
    return [MemberGroup(members) for members in groups.values()]
