"""How well a model predicts held-out trees."""

import numpy as np

from lpcfg_sk._kernels._lpcfg_trees import ParsedTrees, TreeModel, tree_values
from lpcfg_sk._ragged import find_keys, ragged_indices, read_only
from lpcfg_sk.lpcfg import divide, smoothed_emissions
from lpcfg_sk.treebank import lexical_keys

__all__ = ["HeldOut"]

#: Probability of a rule that is not in the training part. It is a constant of the
#: score, which is compared between iterations only.
_UNSEEN = 1e-4


class HeldOut:
    """Mean log probability of held-out trees.

    Parameters
    ----------
    index : RuleIndex
        The held-out trees.
    weight : ndarray of float64, shape (n_trees,)
        Their weights.
    training : RuleCounts
        Counts of the other trees, with the same rules and ids.
    layout : Layout
        Where parameters lie.
    alpha : float
        Strength of the lexicon's smoothing.
    """

    def __init__(self, index, weight, training, layout, alpha):
        self.index = index
        self.weight = weight
        self.training = training
        self.layout = layout
        self.alpha = alpha
        self.unseen_rules = np.flatnonzero(training.rule_count == 0)
        self.unseen_roots = np.flatnonzero(training.root_count == 0)

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
        label = np.repeat(np.arange(len(m)), m)
        label_total = np.bincount(label, weights=totals)[label]
        share = np.where(label_total > 0, divide(totals, label_total), 1.0 / m[label])
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
        rule = np.where(index.rule >= 0, index.rule, index.entry)
        columns = (index.node_offsets, index.size, index.label, rule, index.top)
        trees = ParsedTrees(*map(read_only, columns))
        lexicon = (layout.lex_offset, self._lexicon(parameters, totals))
        binary = (layout.n_states.astype(np.int32), layout.rule_offset)
        root = (layout.root_offset, parameters.root)
        model = TreeModel(
            *map(read_only, (*binary, parameters.binary, *lexicon, *root))
        )
        _, logs = tree_values(0, index.n_trees, trees, model)
        return logs

    def _lexicon(self, parameters, totals):
        """Smoothed emission probabilities of the lexical rules of the index."""
        layout, training = self.layout, self.training
        lexicon, _ = smoothed_emissions(
            training, layout, parameters.lexical, totals, alpha=self.alpha
        )
        n_labels = len(layout.n_states)
        word = np.repeat(np.arange(len(lexicon.words)), np.diff(lexicon.word_offset))
        position = find_keys(
            lexical_keys(word, lexicon.lex_label, n_labels),
            lexical_keys(training.lex_word, training.lex_label, n_labels),
        )
        length = layout.n_states[training.lex_label]
        vectors = lexicon.lexical[ragged_indices(lexicon.lex_offset[position], length)]
        entry = np.repeat(np.arange(len(length)), length)
        empty = np.bincount(entry, weights=vectors, minlength=len(length)) == 0
        vectors[empty[entry]] = _UNSEEN
        return vectors
