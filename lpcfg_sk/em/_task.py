"""Training data of one fit of EM, and where its runs start."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.em._heldout import choose_held_out
from lpcfg_sk.em._initial import from_grammar, perturbed
from lpcfg_sk.em._run import EMRun
from lpcfg_sk.em._statistics import ExpectedCounts
from lpcfg_sk.exceptions import NotFittedError
from lpcfg_sk.lpcfg._lpcfg import LPCFG
from lpcfg_sk.lpcfg._maximization import Estimates, Layout
from lpcfg_sk.lpcfg._rules import RuleIndex, requested_states
from lpcfg_sk.treebank import Treebank

__all__ = ["LEARNER", "WARM", "Task"]

#: Occurrences of a nonterminal that a latent state needs.
_COUNT_PER_STATE = 10
#: Part of uniform in the mix when EM starts from another model.
_UNIFORM = 0.03

#: Starts that are no seeds.
WARM, LEARNER = "warm", "learner"


class Task(NamedTuple):
    """Training data of one fit, and the runs of EM on them."""

    estimator: object
    treebank: Treebank
    index: RuleIndex
    weight: np.ndarray
    coarse: LPCFG

    def take(self, weight):
        """Return the task with other weights; trees of weight zero are left out."""
        rows = np.flatnonzero(weight > 0)
        return self._replace(
            treebank=self.treebank[rows],
            index=self.index.take(rows),
            weight=weight[rows],
        )

    @property
    def binarized(self):
        """Whether a TreeBinarizer made the trees."""
        return self.treebank.binarized

    def hold_out(self, fraction, rng):
        """Split the trees into those to train on and those to choose by.

        Parameters
        ----------
        fraction : float
            Part of the weight to hold out.
        rng : RandomState
            Source of randomness.

        Returns
        -------
        training, validation : Task
            Or None where there are too few trees.
        """
        held = choose_held_out(self.weight, fraction, rng)
        if not held.any():
            return None
        return self.take(self.weight - held), self.take(held)

    def fit_learner(self, learner):
        """Fit another learner on the same trees."""
        return learner.fit(self.treebank, sample_weight=self.weight)

    def counts(self, layout):
        """Return what computes expected counts under parameters in a layout."""
        return ExpectedCounts(self.index, layout, self.weight)

    @property
    def n_states(self):
        """Numbers of states that are asked for and that the trees support."""
        index = self.index
        counts = index.label_counts(self.weight)
        wanted = requested_states(self.estimator.m, index.nonterminals, counts)
        below = np.zeros(len(wanted), dtype=bool)
        below[index.rule_left] = below[index.rule_right] = True
        supported = np.where(below, counts // _COUNT_PER_STATE, 1)
        return np.minimum(wanted, np.maximum(supported, 1)).astype(np.int64)

    def run(self, start, n_states):
        """Begin a run of EM.

        `start` is a seed, or what else to start from; `n_states` the numbers of
        states, which another model brings along.
        """
        index, weight = self.index, self.weight
        if start in (WARM, LEARNER):
            layout, estimates = self.from_model(start)
        else:
            layout = Layout.build(index, n_states)
            rng = np.random.RandomState(start)
            estimates = perturbed(index, layout, weight, rng)
        return EMRun(
            index,
            layout,
            weight,
            estimates,
            self.counts(layout),
            smoothing=self.estimator.smoothing,
            n_jobs=self.estimator.n_jobs,
        )

    def from_model(self, start):
        """Return the layout and the parameters of another model."""
        estimator, index = self.estimator, self.index
        grammar = estimator.grammar_ if start == WARM else _learner_grammar(self)
        m = grammar.m
        layout = Layout.build(index, [m.get(a, 1) for a in index.nonterminals])
        a = grammar.arrays
        if (
            start == WARM
            and grammar.nonterminals == index.nonterminals
            and grammar.words[: len(index.words)] == index.words
            and np.array_equal(a.rule_offset, layout.rule_offset)
            and np.array_equal(a.rule_parent, index.rule_parent)
            and np.array_equal(a.rule_left, index.rule_left)
            and np.array_equal(a.rule_right, index.rule_right)
            and np.array_equal(a.root_label, index.root_label)
            and np.array_equal(estimator._emissions[0], index.lex_word)
            and np.array_equal(estimator._emissions[1], index.lex_label)
        ):
            emissions = estimator._emissions[2]
            return layout, Estimates(a.binary.copy(), emissions.copy(), a.root.copy())
        return layout, from_grammar(index, layout, self.weight, grammar, _UNIFORM)


def _learner_grammar(task):
    learner = task.estimator.init
    try:
        check_is_fitted(learner)
    except NotFittedError:
        learner = task.fit_learner(clone(learner))
    grammar = getattr(learner, "grammar_", None)
    if not isinstance(grammar, LPCFG):
        raise TypeError(
            "init must be a learner whose grammar_ is an LPCFG, got "
            f"{type(learner).__name__}."
        )
    a = grammar.arrays
    if any(np.any(values < 0) for values in (a.binary, a.lexical, a.root)):
        raise ValueError(
            f"init={type(learner).__name__} gives a grammar with negative "
            "parameters, from which EM cannot start; use a learner of "
            "probabilities, such as PivotLPCFG or PCFG."
        )
    return grammar
