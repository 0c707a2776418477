"""Decoders: from a filled chart to one binary tree."""

import numpy as np

from lpcfg_sk._kernels import _decode as kernel
from lpcfg_sk._kernels import _decode_viterbi as latent
from lpcfg_sk._ragged import offsets

_NONE = np.zeros(0)


def max_marginal(model, chart):
    """Tree with the largest sum of marginals ``|μ(a, i, j) / Z|`` (Goodman 1996).

    Parameters
    ----------
    model : ChartModel
        The grammar.
    chart : Chart
        Inside-outside of a sentence.

    Returns
    -------
    items, parent : ndarray of int32, or None
        Items of the tree and their parents, in preorder; None where there is none.

    Notes
    -----
    The maximum is over the trees of the grammar. Intermediate labels of a
    binarisation count like all others. Models with signed parameters may give
    negative marginals and totals: they are divided by the signed total, and their
    magnitudes count.
    """
    score = np.abs(chart.posterior)
    app_score = np.where(_has_rule(model, chart), 0.0, -np.inf)
    root_score = np.where(model.root_offset >= 0, 0.0, -np.inf)
    return best_tree(chart, score, app_score, _NONE, root_score)


def max_rule_product(model, chart):
    """Tree with the largest product of rule posteriors (Petrov and Klein 2007).

    Parameters
    ----------
    model : ChartModel
        The grammar.
    chart : Chart
        Inside-outside of a sentence.

    Returns
    -------
    items, parent : ndarray of int32, or None
        Items of the tree and their parents, in preorder; None where there is none.
    """
    return best_tree(chart, *max_rule_scores(model, chart))


def max_rule_scores(model, chart):
    """Scores of :func:`max_rule_product`, as arguments of :func:`best_tree`.

    Returns
    -------
    item_score, app_score, hyper_score, root_score : ndarray of float64
        Logarithms of the posteriors of lexical rules, binary rules and roots.
    """
    forest = chart.forest
    n_edges = np.diff(forest.edge_offset)[application_group(forest)]
    hyper_offset = offsets(n_edges)
    rule = np.empty(hyper_offset[-1])
    latent.rule_marginals(
        forest,
        chart.vector_offset,
        model.rule_offset,
        model.binary,
        model.largest,
        chart.inside,
        chart.outside,
        chart.exponent,
        hyper_offset,
        rule,
    )
    with np.errstate(divide="ignore"):
        item_score = np.log(np.abs(chart.posterior))
        hyper_score = np.log(np.abs(rule / chart.total))
    root_score = np.full(len(model.root_offset), -np.inf)
    top = slice(*forest.item_offset[-2:])
    root_score[forest.item_label[top]] = item_score[top]
    root_score[model.root_offset < 0] = -np.inf
    item_score[forest.item_offset[chart.n] :] = 0.0
    return item_score, _NONE, hyper_score, root_score


def viterbi(model, chart):
    """Tree of the best derivation with latent states.

    Parameters
    ----------
    model : ChartModel
        A grammar without negative parameters.
    chart : Chart
        Inside vectors of a sentence.

    Returns
    -------
    items, parent : ndarray of int32, or None
        Items of the tree and their parents, in preorder; None where there is none.
    """
    found = viterbi_derivation(model, chart)
    return None if found is None else found[:2]


def viterbi_derivation(model, chart):
    """Best derivation with latent states.

    Parameters
    ----------
    model : ChartModel
        A grammar without negative parameters.
    chart : Chart
        Inside vectors of a sentence.

    Returns
    -------
    items, parent, states : ndarray of int32
        Items of the tree, their parents and their states, in preorder.
    log_prob : float
        Logarithm of the probability of the derivation; None in place of all where
        there is no tree.
    """
    forest, n = chart.forest, chart.n
    vectors = np.zeros_like(chart.inside)
    n_leaves = chart.vector_offset[forest.item_offset[n]]
    vectors[:n_leaves] = chart.inside[:n_leaves]
    exponent = chart.exponent.copy()
    rules = (chart.vector_offset, model.rule_offset, model.binary)
    latent.viterbi(forest, n, *rules, model.largest, vectors, exponent)
    best, root, root_state = 0.0, -1, -1
    for item in range(*forest.item_offset[-2:]):
        begin = model.root_offset[forest.item_label[item]]
        if begin < 0:
            continue
        own = vectors[chart.vector_offset[item] : chart.vector_offset[item + 1]]
        value = own * model.root[begin : begin + len(own)]
        if len(own) and value.max() > best:
            best, root, root_state = value.max(), item, int(np.argmax(value))
    if root < 0:
        return None
    items, parent, states = np.empty((3, 2 * n - 1), dtype=np.int32)
    latent.follow_viterbi(
        forest,
        application_group(forest),
        *applications_by_item(forest),
        *rules,
        vectors,
        exponent,
        root,
        root_state,
        items,
        states,
        parent,
    )
    return items, parent, states, np.log(best) + exponent[-1] * np.log(2.0)


def application_group(forest):
    """Return the group of each rule application."""
    n_apps = np.diff(forest.app_offset)
    return np.repeat(np.arange(len(n_apps), dtype=np.int64), n_apps)


def applications_by_item(forest):
    """Return offsets and rule applications, listed by their parent item."""
    counts = np.bincount(forest.app_parent, minlength=len(forest.item_label))
    return offsets(counts), np.argsort(forest.app_parent, kind="stable")


def _has_rule(model, chart):
    return model.rule_offset[chart.forest.app_rule] >= 0


def best_tree(chart, item_score, app_score, hyper_score, root_score):
    """Best tree for scores that add up; see ``lpcfg_sk._kernels._decode``.

    Parameters
    ----------
    chart : Chart or PrunedChart
        Forest of a sentence.
    item_score : ndarray of float64
        One value an item.
    app_score : ndarray of float64
        One value a rule application.
    hyper_score : ndarray of float64
        One value an edge of each rule application, in place of `app_score`.
    root_score : ndarray of float64
        One value a nonterminal, for the item at the root.

    Returns
    -------
    items, parent : ndarray of int32, or None
        Items of the tree and their parents, in preorder; None where every tree
        scores -inf.
    """
    forest, n = chart.forest, chart.n
    best = np.empty(len(forest.item_label))
    back = np.empty(len(forest.item_label), dtype=np.int64)
    kernel.best_derivations(forest, n, item_score, app_score, hyper_score, best, back)
    first, last = forest.item_offset[-2:]
    top = best[first:last] + root_score[forest.item_label[first:last]]
    if not len(top) or not np.max(top) > -np.inf:
        return None
    items = np.empty(2 * n - 1, dtype=np.int32)
    parent = np.empty(2 * n - 1, dtype=np.int32)
    kernel.follow(forest, first + int(np.argmax(top)), back, items, parent)
    return items, parent


#: Decoders that choose one of the grammar's own binary trees.
TREE_DECODERS = {
    "max-marginal": max_marginal,
    "max-rule-product": max_rule_product,
    "viterbi": viterbi,
}
