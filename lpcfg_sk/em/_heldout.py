"""Held-out trees: which they are, and how well a model predicts them."""

import hashlib
import itertools

import numpy as np

from lpcfg_sk._kernels._tree_inside_outside import tree_values
from lpcfg_sk._ragged import find_keys, ragged_indices
from lpcfg_sk.lpcfg._maximization import divide, smoothed_emissions

__all__ = ["FEWEST", "HeldOut", "choose_held_out", "count_copies", "merge_equal_trees"]

#: Trees to hold out at the least; fewer say nothing.
FEWEST = 5

#: Probability of a rule that is not in the training part. It is a constant of the
#: score, which is compared between iterations only.
_UNSEEN = 1e-4


def merge_equal_trees(index, weight):
    """Find the different trees of a treebank.

    Parameters
    ----------
    index : RuleIndex
        The trees.
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.

    Returns
    -------
    rows : ndarray of int64
        One row for each different tree, in an order that depends on their content
        only.
    weight : ndarray of float64
        Sum of the weights of equal trees.
    """
    content = np.where(index.rule >= 0, index.rule, -1 - index.entry).astype("<i4")
    bounds = index.node_offsets.tolist()
    groups = {}
    for row, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        digest = hashlib.blake2b(content[lo:hi].tobytes(), digest_size=16).digest()
        groups.setdefault(digest, []).append(row)
    groups = [groups[digest] for digest in sorted(groups)]
    rows = np.array([group[0] for group in groups], dtype=np.int64)
    return rows, np.array([weight[group].sum() for group in groups])


def choose_held_out(weight, fraction, rng):
    """Choose how much of each tree is held out.

    Of a tree of weight w, about ``fraction * w`` copies are held out, in whole
    numbers; weights below 1 are held out as a whole or not at all.

    Parameters
    ----------
    weight : ndarray of float64, shape (n_trees,)
        Weights of the trees.
    fraction : float
        Part of the weight to hold out.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    ndarray of float64, shape (n_trees,)
        Weight that is held out; all zero if that would be fewer than five trees,
        or if nothing would be left.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.em._heldout import choose_held_out
    >>> rng = np.random.RandomState(0)
    >>> choose_held_out(np.array([100.0, 7.0, 1.0, 1.0]), 0.1, rng).tolist()
    [10.0, 1.0, 0.0, 0.0]
    """
    copies, held = count_copies(weight, fraction, rng)
    if copies.sum() < FEWEST or not np.any(held < weight):
        return np.zeros(len(weight))
    return held


def count_copies(weight, fraction, rng):
    """Return how many copies of each tree are held out, and their weight."""
    threshold = rng.random_sample(len(weight))
    copies = np.floor(np.maximum(weight, 1.0) * fraction + threshold)
    return copies, np.minimum(copies, weight)


class HeldOut:
    """Mean log probability of held-out trees.

    Parameters
    ----------
    index : RuleIndex
        The held-out trees.
    training : RuleIndex
        The other trees, with the same rules and ids.
    layout : Layout
        Where parameters lie.
    weight, training_weight : ndarray of float64
        Weights of the trees of both.
    alpha : float
        Strength of the lexicon's smoothing.
    """

    def __init__(self, index, training, layout, weight, training_weight, alpha):
        self.index = index
        self.training = training
        self.layout = layout
        self.weight = weight
        self.training_weight = training_weight
        self.alpha = alpha
        self.unseen_rules = np.flatnonzero(training.rule_counts() == 0)
        self.unseen_roots = np.flatnonzero(training.root_counts() == 0)

    def score(self, parameters, totals):
        """Return the weighted mean log probability.

        A rule that no training tree has gets a small constant probability, with
        the states of its children as they are in general. The lexicon is
        smoothed as it is in the final model.

        Parameters
        ----------
        parameters : Estimates
            Parameters; those of rules without training trees are used as scratch.
        totals : ndarray of float64
            Counts of the states.

        Returns
        -------
        float
        """
        try:
            self._fill(parameters, totals)
            logs = self._log_values(parameters, totals)
        finally:
            self._clear(parameters)
        return float(np.average(logs, weights=self.weight))

    def _fill(self, parameters, totals):
        """Give unseen rules a small probability."""
        index, layout = self.index, self.layout
        m, first = layout.n_states, layout.state_offset
        of_label = np.repeat(np.arange(len(m)), m)
        of_nonterminal = np.bincount(of_label, weights=totals)[of_label]
        share = np.where(
            of_nonterminal > 0, divide(totals, of_nonterminal), 1.0 / m[of_label]
        )
        for r in self.unseen_rules:
            b, c = index.rule_left[r], index.rule_right[r]
            pairs = np.outer(
                share[first[b] : first[b + 1]], share[first[c] : first[c + 1]]
            )
            piece = parameters.binary[layout.rule_offset[r] : layout.rule_offset[r + 1]]
            piece.reshape(layout.shapes[r])[:] = _UNSEEN * pairs
        for k in self.unseen_roots:
            a = index.root_label[k]
            piece = parameters.root[layout.root_offset[k] : layout.root_offset[k + 1]]
            piece[:] = _UNSEEN * share[first[a] : first[a + 1]]

    def _clear(self, parameters):
        """Make the probabilities of unseen rules zero again."""
        for values, offset, unseen in (
            (parameters.binary, self.layout.rule_offset, self.unseen_rules),
            (parameters.root, self.layout.root_offset, self.unseen_roots),
        ):
            for r in unseen:
                values[offset[r] : offset[r + 1]] = 0.0

    def _log_values(self, parameters, totals):
        """Return log |value| of each held-out tree."""
        index, layout = self.index, self.layout
        _, logs = tree_values(
            0,
            index.n_trees,
            index.node_offsets,
            index.size,
            index.label,
            np.where(index.rule >= 0, index.rule, index.entry),
            index.top,
            layout.n_states,
            layout.rule_offset,
            parameters.binary,
            layout.lex_offset,
            self._lexicon(parameters, totals),
            layout.root_offset,
            parameters.root,
        )
        return logs

    def _lexicon(self, parameters, totals):
        """Smoothed emission probabilities of the lexical rules of the index."""
        layout, training = self.layout, self.training
        lexicon, _ = smoothed_emissions(
            training,
            layout,
            parameters.lexical,
            totals,
            weight=self.training_weight,
            alpha=self.alpha,
        )
        n_labels = len(layout.n_states)
        word = np.repeat(np.arange(len(lexicon.words)), np.diff(lexicon.word_offset))
        keys = word * n_labels + lexicon.lex_label
        wanted = training.lex_word.astype(np.int64) * n_labels + training.lex_label
        found = find_keys(keys, wanted)
        length = layout.n_states[training.lex_label]
        vectors = lexicon.lexical[ragged_indices(lexicon.lex_offset[found], length)]
        entry = np.repeat(np.arange(len(length)), length)
        empty = np.bincount(entry, weights=vectors, minlength=len(length)) == 0
        vectors[empty[entry]] = _UNSEEN
        return vectors
