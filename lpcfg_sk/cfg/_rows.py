"""What a fit minimises: the loss of trees and sentences under a grammar."""

import warnings
from dataclasses import dataclass

import numpy as np

from lpcfg_sk.cfg._cfg import CFG
from lpcfg_sk.cfg._expectations import encode, expected_counts, rules_of_trees
from lpcfg_sk.cfg._sharded import expectations_of_shards, look_at_shards
from lpcfg_sk.treebank import ShardedTreebank, Treebank

__all__ = ["Task", "derivable", "normalised", "rules_by_lhs", "uniform"]


@dataclass
class Task:
    """The rows of one fit, as its iterations need them.

    Attributes
    ----------
    grammar : CFG
        The rules.
    tree_counts : ndarray of float64, shape (n_rules,)
        Weighted counts of the rules in the trees.
    sentences : Treebank or ShardedTreebank
        Sentences without a tree.
    weights : ndarray of float64, shape (n_sentences,)
        Weights of the sentences.
    n_samples : float
        Weight of all rows: the n of the margin n^-s.
    total_weight : float
        The same with the discount of the sentences: the loss is a mean over it.
    n_zero_probability : int
        Rows that the grammar does not derive, and that are left out.
    n_jobs : int or None
        As in joblib.
    """

    grammar: CFG
    tree_counts: np.ndarray
    sentences: Treebank | ShardedTreebank
    weights: np.ndarray
    n_samples: float
    total_weight: float
    n_zero_probability: int
    n_jobs: int | None

    @classmethod
    def of_rows(cls, X, weights, grammar, *, unlabeled_weight=1.0, n_jobs=None):
        """Sort out the rows of a treebank.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Trees, sentences, or both.
        weights : ndarray of float64, shape (n_rows,)
            Their weights.
        grammar : CFG
            The rules. Rows that it does not derive are left out, and counted in a
            warning.
        unlabeled_weight : float, default=1.0
            Weight of a sentence relative to a tree.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        Task
        """
        if isinstance(X, ShardedTreebank):
            tree_counts, within, parsed = look_at_shards(
                X, weights, grammar, uniform(grammar), n_jobs=n_jobs
            )
        else:
            parsed = X.is_parsed
            row, rule, within = rules_of_trees(grammar, X)
            used = (within & (weights > 0))[row]
            tree_counts = np.bincount(
                rule[used], weights=weights[row[used]], minlength=len(grammar.rules)
            )
            within[~parsed] = derivable(grammar, X[~parsed], n_jobs=n_jobs)
        n_zero_probability = _report_zero_probability(X, grammar, within, weights)
        keep = within & (weights > 0)
        sentence_weights = weights[keep & ~parsed] * unlabeled_weight
        return cls(
            grammar=grammar,
            tree_counts=tree_counts,
            sentences=X[keep & ~parsed],
            weights=sentence_weights,
            n_samples=float(weights[keep].sum()),
            total_weight=weights[keep & parsed].sum() + sentence_weights.sum(),
            n_zero_probability=n_zero_probability,
            n_jobs=n_jobs,
        )

    def expectations(self, theta):
        """Empirical log-loss and expected counts under rule probabilities."""
        if isinstance(self.sentences, ShardedTreebank):
            log_probability, counts = expectations_of_shards(
                self.grammar, self.sentences, theta, self.weights, n_jobs=self.n_jobs
            )
        else:
            log_probabilities, counts = expected_counts(
                self.grammar, self.sentences, theta, self.weights, n_jobs=self.n_jobs
            )
            log_probability = float(self.weights @ log_probabilities)
        used = self.tree_counts > 0
        loss = -float(self.tree_counts[used] @ np.log(theta[used]))
        loss -= log_probability
        return loss / self.total_weight, counts + self.tree_counts


def rules_by_lhs(grammar):
    """Return the numbers of the rules of each nonterminal."""
    groups = {}
    for index, rule in enumerate(grammar.rules):
        groups.setdefault(rule.lhs, []).append(index)
    return [np.array(group) for group in groups.values()]


def normalised(grammar, weights):
    """Return rule probabilities in proportion to weights."""
    theta = np.empty(len(weights))
    for group in rules_by_lhs(grammar):
        theta[group] = weights[group] / weights[group].sum()
    return theta


def uniform(grammar):
    """Return equal probabilities for the rules of each nonterminal."""
    return normalised(grammar, np.ones(len(grammar.rules)))


def derivable(grammar, sentences, *, n_jobs=None):
    """Return which sentences the grammar derives, with any probabilities."""
    if len(sentences) == 0:
        return np.zeros(0, dtype=bool)
    log_probabilities, _ = expected_counts(
        grammar, sentences, uniform(grammar), np.zeros(len(sentences)), n_jobs=n_jobs
    )
    return np.isfinite(log_probabilities)


def _report_zero_probability(X, grammar, within, weights):
    """Return the number of rows outside the language, with a warning if any."""
    missing = ~within & (weights > 0)
    n_missing = int(missing.sum())
    if n_missing == 0:
        return 0
    first = int(np.flatnonzero(missing)[0])
    unknown = _unknown_tokens(grammar, X[missing])
    hint = f"; unknown terminals: {', '.join(unknown)}" if unknown else ""
    if not (within & (weights > 0)).any():
        raise ValueError(
            f"none of the {len(X)} rows is derived by the grammar (start "
            f"{grammar.start!r}){hint}"
        )
    warnings.warn(
        f"{n_missing} of {len(X)} rows have probability zero under "
        f"the grammar and were left out, the first is row {first}{hint}",
        UserWarning,
        stacklevel=4,
    )
    return n_missing


def _unknown_tokens(grammar, treebank, most=5):
    if isinstance(treebank, ShardedTreebank):
        treebank = treebank[:1000].load()
    unknown = np.unique(treebank.token[encode(grammar, treebank) < 0])
    return [treebank.tokens[i] for i in unknown[:most]]
