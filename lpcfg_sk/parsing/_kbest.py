"""Lists of the k best trees."""

import numpy as np

from lpcfg_sk._kernels._decode import best_derivations
from lpcfg_sk._kernels._kbest import k_best
from lpcfg_sk._ragged import offsets
from lpcfg_sk.parsing._decoders import (
    application_group,
    applications_by_item,
    max_rule_scores,
)

_NONE = np.zeros(0)


def kbest_items(model, chart, k):
    """Find the k best trees of a sentence.

    Parameters
    ----------
    model : ChartModel
        The grammar.
    chart : Chart
        Inside-outside of a sentence.
    k : int
        Number of trees.

    Returns
    -------
    scores : ndarray of float64
        Scores, falling: log probabilities of the trees of a plain PCFG, else the sums
        of log posteriors of rules.
    items, parents : ndarray of int32, shape (n_trees, 2n - 1)
        Items and parents of each tree, in preorder.
    """
    if model.largest == 1:
        scores = pcfg_scores(model, chart)
    else:
        scores = max_rule_scores(model, chart)
    item_score, app_score, hyper_score, root_score = scores
    forest = chart.forest
    best = np.empty(len(forest.item_label))
    back = np.empty(len(forest.item_label), dtype=np.int64)
    best_derivations(forest, chart.n, item_score, app_score, hyper_score, best, back)
    group = application_group(forest)
    return k_best(
        forest,
        group,
        *applications_by_item(forest),
        item_score,
        app_score,
        offsets(np.diff(forest.edge_offset)[group]),
        hyper_score,
        root_score,
        best,
        back,
        k,
    )


def pcfg_scores(model, chart):
    """Log probabilities of the rules of a plain PCFG.

    Parameters
    ----------
    model : ChartModel
        A grammar with one state a nonterminal and no negative parameters.
    chart : Chart
        Inside values of a sentence.

    Returns
    -------
    item_score, app_score, hyper_score, root_score : ndarray of float64
        Arguments of ``best_tree``.
    """
    forest = chart.forest
    n_leaves = forest.item_offset[chart.n]
    item_score = np.zeros(len(forest.item_label))
    with np.errstate(divide="ignore"):
        leaf = np.log(chart.inside[:n_leaves])
        item_score[:n_leaves] = leaf + np.log(2.0) * np.repeat(
            chart.exponent[: chart.n], np.diff(forest.item_offset[: chart.n + 1])
        )
        app_score = log_or_minus_inf(model.binary, model.rule_offset[forest.app_rule])
        root_score = log_or_minus_inf(model.root, model.root_offset)
    return item_score, app_score, _NONE, root_score


def log_or_minus_inf(values, at):
    """Logarithms of the values at some places, -inf where the place is -1."""
    return np.log(np.append(values, 0.0)[at])
