"""Members of an ensemble, and the work that they share."""

import operator

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lpcfg_sk.parsing import BracketTable

__all__ = ["Electorate", "group_members", "prepare"]


def prepare(estimators, X):
    """Fit the preprocessing of all members; equal steps are fitted once.

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
        fitted, trees, path = [], X, ()
        for name, step in steps:
            path = (*path, joblib.hash((type(step), step.get_params())))
            if path not in done:
                step = clone(step)
                done[path] = (step, step.fit(trees).transform(trees))
            step, trees = done[path]
            fitted.append((name, step))
        prepared.append((fitted, clone(learner), trees))
    return prepared


def _split(estimator):
    if isinstance(estimator, Pipeline):
        return estimator.steps[:-1], estimator.steps[-1][1]
    return [], estimator


class MemberGroup:
    """Fitted members with the same preprocessing, which share one coarse chart.

    Parameters
    ----------
    members : list of (int, estimator)
        Numbers of the members, and the members.
    """

    def __init__(self, members):
        self.numbers = [number for number, _ in members]
        self._steps = _split(members[0][1])[0]
        self.parsers = [_split(member)[1]._parser() for _, member in members]

    def charts(self, X, *, quick=False):
        """Charts of the sentences of X, one for each member.

        Parameters
        ----------
        X : Treebank
            Sentences.
        quick : bool, default=False
            Whether marginals need only be accurate to a few digits; otherwise they are
            computed with a lower threshold.

        Returns
        -------
        charts : list of SentenceCharts
        """
        X = X.unparsed()
        for _, step in self._steps:
            X = step.transform(X)
        return [p.charts(X, quick=quick, precise=not quick) for p in self.parsers]


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
            joblib.hash(learner.coarse_ if learner.prune else _rules(learner.grammar_)),
            learner.prune,
            learner.max_memory,
        )
        groups.setdefault(key, []).append((number, estimator))
    return [MemberGroup(members) for members in groups.values()]


def _rules(grammar):
    """Return all of a grammar but its parameters, which determines its full charts."""
    values = ("binary", "lexical", "root", "n_states", "rule_offset", "lex_offset")
    arrays = grammar.arrays._asdict()
    rules = [array for name, array in arrays.items() if name not in values]
    return grammar.nonterminals, grammar.words, grammar.unknown_word, rules


class Electorate:
    """Fitted members in groups, and one table of the brackets of all.

    Parameters
    ----------
    estimators : list of estimator
        Fitted members.

    Attributes
    ----------
    groups : list of MemberGroup
        Members that share coarse charts.
    table : BracketTable
        Brackets and tags of all members.
    brackets, tags : list of ndarray of int64
        For each member, the ids of its brackets and tags in the table.
    """

    def __init__(self, estimators):
        self._made_of = _parts(estimators)
        self.groups = group_members(estimators)
        parsers = {}
        for group in self.groups:
            parsers.update(zip(group.numbers, group.parsers, strict=True))
        tables = [parsers[number].brackets for number in sorted(parsers)]
        names, tags = {}, {}
        self.brackets, self.tags = [], []
        for table in tables:
            seen, ids = {}, []
            for name in table.names:
                # The second bracket with the same name is the second in a unary chain.
                order = seen[name] = seen.get(name, -1) + 1
                ids.append(names.setdefault((name, order), len(names)))
            self.brackets.append(np.array(ids, dtype=np.int64))
            ids = [tags.setdefault(tag, len(tags)) for tag in table.tag_names]
            self.tags.append(np.array(ids, dtype=np.int64))
        self.table = BracketTable(
            tuple(name for name, _ in names), tuple(tags), None, None, None
        )

    def is_of(self, estimators):
        """Whether it was made from the current fits of these members."""
        parts = _parts(estimators)
        return len(parts) == len(self._made_of) and all(
            map(operator.is_, parts, self._made_of)
        )


def _parts(estimators):
    """List the objects that decide how members parse."""
    parts = []
    for estimator in estimators:
        steps, learner = _split(estimator)
        for _, step in steps:
            parts.extend(vars(step).values())
        parts.append(learner._parser())
    return parts
