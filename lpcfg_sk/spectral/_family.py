"""Spectral grammars of one treebank that differ in their numbers of states."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from lpcfg_sk.lpcfg import Layout, coarse_pcfg
from lpcfg_sk.spectral._moments import accumulate_moments, projected_nodes
from lpcfg_sk.treebank import RuleCounts


class DecomposedCorpus(NamedTuple):
    """A corpus, its rules, and the singular vectors of its features.

    Attributes
    ----------
    X : Treebank or ShardedTreebank
        Binary trees with inside and outside features.
    columns : tuple of ndarray or None
        Arguments of :func:`node_weight` with one item per tree.
    rules : RuleCounts
        The rules of the corpus and their counts.
    projections : list of Projection
        One per nonterminal.
    wanted : ndarray of int64, shape (n_nonterminals,)
        Largest number of states that the parameter `m` can mean.
    ranks : ndarray of int64, shape (n_nonterminals,)
        Numerical rank of each Ω^a, at least 1 and at most the vectors computed.
    label_count : ndarray of float64, shape (n_nonterminals,)
        Weight of the nodes of each nonterminal.
    n_features : tuple of int
        Numbers of inside and outside features.
    """

    X: object
    columns: tuple
    rules: RuleCounts
    projections: list
    wanted: np.ndarray
    ranks: np.ndarray
    label_count: np.ndarray
    n_features: tuple


class SpectralFamily:
    """Learners fitted to one treebank, with any numbers of states up to `m_max`.

    The features are decomposed and projected once. The singular vectors of few states
    are the first ones of many states, so that a further member of the family costs the
    moments of the rules whose nonterminals have another number of states.

    Parameters
    ----------
    learner : SpectralLPCFG
        Not fitted; its parameters are those of all members, except for `m`.
    X : Treebank
        Binary trees with inside and outside features.
    sample_weight : array-like of float, shape (n_trees,), default=None
        Weights of the trees.
    m_max : int
        The largest number of states.

    Attributes
    ----------
    rules : RuleCounts
        The rules of the treebank and their counts.
    base : dict of str to int
        Number of states of each nonterminal by the parameter `m` of the learner.
    """

    def __init__(self, learner, X, sample_weight=None, *, m_max):
        self._learner = learner
        self._corpus = learner._decompose_corpus(X, sample_weight, m_max)
        self.rules = self._corpus.rules
        m = learner._numbers_of_states(self._corpus)
        self.base = dict(zip(self.rules.nonterminals, m.tolist(), strict=True))

    @cached_property
    def _ranks(self):
        names = self.rules.nonterminals
        return dict(zip(names, self._corpus.ranks.tolist(), strict=True))

    @cached_property
    def _coarse(self):
        return coarse_pcfg(self.rules, alpha=self._learner.lexicon_alpha)

    @cached_property
    def _nodes(self):
        """Rules, projections and weights of the nodes of all trees."""
        corpus = self._corpus
        return projected_nodes(*corpus[:4], corpus.ranks, self._learner.ridge)

    def cut(self, nonterminal, m):
        """Return the number of states that the data supports, at most m.

        Parameters
        ----------
        nonterminal : str
            Its name; it may be one that the treebank does not have.
        m : int
            The number that is asked for.

        Returns
        -------
        int
        """
        return min(m, self._ranks.get(nonterminal, 1))

    def fit(self, m, known=None):
        """Fit a member of the family.

        Parameters
        ----------
        m : dict of str to int
            Number of states of each nonterminal, cut to what the data supports.
        known : SpectralLPCFG, default=None
            Another member. The tensors of rules whose nonterminals have the same
            numbers of states are taken from it.

        Returns
        -------
        learner : SpectralLPCFG
        """
        learner = clone(self._learner).set_params(m=dict(m))
        names = self.rules.nonterminals
        n_states = np.array([self.cut(a, m.get(a, 1)) for a in names])
        chosen = None
        if known is not None:
            shapes, before = (
                Layout.build(self.rules, n).shapes
                for n in (n_states, known.grammar_.arrays.n_states)
            )
            chosen = np.flatnonzero((shapes != before).any(axis=1))
            known = known.grammar_
        moments = accumulate_moments(
            *self._nodes, n_states, chosen=chosen, n_jobs=learner.n_jobs
        )
        grammar = learner._solve(self.rules, moments, chosen=chosen, known=known)
        return learner._set_solution(self._corpus, n_states, grammar, self._coarse)
