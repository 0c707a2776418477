"""Decoders: from a filled chart to its best binary trees, and to a treebank of them."""

import numpy as np

from lpcfg_sk._kernels import _decode as kernel
from lpcfg_sk._kernels._chart_inside import ItemVectors
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._kernels._decode import Applications, TreeScores
from lpcfg_sk._kernels._kbest import k_best
from lpcfg_sk._ragged import offsets
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.treebank import unbinarize

_NONE = np.zeros(0)
_NO_OFFSETS = np.zeros(1, dtype=np.int64)


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
    scores = max_marginal_scores(model, chart.forest, chart.posterior)
    return best_tree(chart, scores)


def max_marginal_scores(model, forest, posterior):
    """Scores of :func:`max_marginal`.

    Parameters
    ----------
    model : ChartModel
        The grammar.
    forest : Forest
        Items of sentences.
    posterior : ndarray of float64, shape (n_items,)
        Their posteriors.

    Returns
    -------
    TreeScores
    """
    has_rule = model.tensors.rule_offset[forest.app_rule] >= 0
    return TreeScores(
        item=np.abs(posterior),
        application=np.where(has_rule, 0.0, -np.inf),
        hyper_offset=_NO_OFFSETS,
        hyper=_NONE,
        root=np.where(model.root_offset >= 0, 0.0, -np.inf),
    )


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
    return best_tree(chart, max_rule_scores(model, chart))


def max_rule_scores(model, chart):
    """Scores of :func:`max_rule_product`: log posteriors of rules and roots.

    Parameters
    ----------
    model : ChartModel
        The grammar.
    chart : Chart
        Inside-outside of a sentence.

    Returns
    -------
    TreeScores
    """
    _warn_if_out_of_range(chart)
    forest = chart.forest
    hyper_offset = offsets(np.diff(forest.edge_offset)[application_group(forest)])
    rule = np.empty(hyper_offset[-1])
    inside = ItemVectors(chart.vector_offset, chart.inside, chart.exponent)
    kernel.rule_marginals(
        forest, model.tensors, inside, chart.outside, hyper_offset, rule
    )
    with np.errstate(divide="ignore"):
        item = np.log(np.abs(chart.posterior))
        hyper = np.log(np.abs(rule / chart.total))
    root = np.full(len(model.root_offset), -np.inf)
    whole = slice(*forest.item_offset[-2:])
    root[forest.item_label[whole]] = item[whole]
    root[model.root_offset < 0] = -np.inf
    item[forest.item_offset[chart.n] :] = 0.0
    return TreeScores(item, _NONE, hyper_offset, hyper, root)


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
    derivation = viterbi_derivation(model, chart)
    return None if derivation is None else derivation[:2]


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
    _warn_if_out_of_range(chart)
    forest, n = chart.forest, chart.n
    vectors = np.zeros_like(chart.inside)
    n_leaves = chart.vector_offset[forest.item_offset[n]]
    vectors[:n_leaves] = chart.inside[:n_leaves]
    best = ItemVectors(chart.vector_offset, vectors, chart.exponent.copy())
    kernel.viterbi(forest, n, model.tensors, best)
    largest, root, root_state = 0.0, -1, -1
    for item in range(*forest.item_offset[-2:]):
        begin = model.root_offset[forest.item_label[item]]
        if begin < 0:
            continue
        own = vectors[chart.vector_offset[item] : chart.vector_offset[item + 1]]
        value = own * model.root[begin : begin + len(own)]
        if len(own) and value.max() > largest:
            largest, root, root_state = value.max(), item, int(np.argmax(value))
    if root < 0:
        return None
    nodes = np.empty((3, 2 * n - 1), dtype=np.int32)
    kernel.follow_viterbi(
        forest,
        applications_by_item(forest),
        model.tensors,
        best,
        root,
        root_state,
        nodes,
    )
    return *nodes, np.log(largest) + best.exponent[-1] * np.log(2.0)


def _warn_if_out_of_range(chart):
    """Warn of a chart whose vectors lost values to underflow."""
    if not chart.in_range:
        warn_caller(
            f"probabilities in the chart of a sentence of {chart.n} words differ by "
            "more than floating point can hold, and the best trees may be missed; "
            'decoder="max-marginal" and "mbr", marginals and log probabilities are not '
            "affected",
            RuntimeWarning,
        )


def application_group(forest):
    """Return the group of each rule application."""
    n_apps = np.diff(forest.app_offset)
    return np.repeat(np.arange(len(n_apps), dtype=np.int64), n_apps)


def applications_by_item(forest):
    """Return the rule applications, listed by their parent item."""
    counts = np.bincount(forest.app_parent, minlength=len(forest.item_label))
    return Applications(
        application_group(forest),
        offsets(counts),
        np.argsort(forest.app_parent, kind="stable"),
    )


def best_derivations(forest, scores):
    """Return the best score of each item, and the edge that gives it."""
    best = np.empty(len(forest.item_label))
    back = np.empty(len(forest.item_label), dtype=np.int64)
    kernel.best_derivations(forest, scores, best, back)
    return best, back


def best_tree(chart, scores):
    """Best tree for scores that add up.

    Parameters
    ----------
    chart : Chart or PrunedChart
        Forest of a sentence.
    scores : TreeScores
        Scores of the parts of a tree.

    Returns
    -------
    items, parent : ndarray of int32, or None
        Items of the tree and their parents, in preorder; None where every tree
        scores -inf.
    """
    items, parent, found = best_trees(chart.forest, scores)
    return (items, parent) if found[0] else None


def best_trees(forest, scores):
    """Best tree of each sentence for scores that add up.

    Parameters
    ----------
    forest : Forest
        Forest of sentences.
    scores : TreeScores
        Scores of the parts of a tree.

    Returns
    -------
    items, parent : ndarray of int32, shape (n_nodes,)
        The 2n - 1 items of each tree and their parents, in preorder.
    found : ndarray of bool, shape (n_rows,)
        False where every tree scores -inf.
    """
    best, back = best_derivations(forest, scores)
    n_nodes = int(np.sum(2 * forest.n_words - 1))
    items, parent = np.zeros((2, n_nodes), dtype=np.int32)
    found = np.zeros(len(forest.n_words), dtype=np.bool_)
    kernel.follow_rows(forest, scores.root, best, back, items, parent, found)
    return items, parent, found


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
        Falling scores: log probabilities of the trees of a plain PCFG, else the sums
        of log posteriors of rules.
    items, parents : ndarray of int32, shape (n_trees, 2n - 1)
        Items and parents of each tree, in preorder.
    """
    plain = model.tensors.largest == 1
    scores = pcfg_scores(model, chart) if plain else max_rule_scores(model, chart)
    best, back = best_derivations(chart.forest, scores)
    applications = applications_by_item(chart.forest)
    return k_best(chart.forest, chart.n, applications, scores, best, back, k)


def pcfg_scores(model, chart):
    """Log probabilities of the rules of a plain PCFG.

    Parameters
    ----------
    model : ChartModel
        A grammar with one state per nonterminal and no negative parameters.
    chart : Chart
        Inside values of a sentence.

    Returns
    -------
    TreeScores
    """
    forest = chart.forest
    n_leaves = forest.item_offset[chart.n]
    item_score = np.zeros(len(forest.item_label))
    with np.errstate(divide="ignore"):
        leaf = np.log(chart.inside[:n_leaves])
        item_score[:n_leaves] = leaf + np.log(2.0) * np.repeat(
            chart.exponent[: chart.n], np.diff(forest.item_offset[: chart.n + 1])
        )
        rules = model.tensors.rule_offset[forest.app_rule]
        application = _log_or_minus_inf(model.tensors.binary, rules)
        root = _log_or_minus_inf(model.root, model.root_offset)
    return TreeScores(item_score, application, _NO_OFFSETS, _NONE, root)


def _log_or_minus_inf(values, places):
    """Logarithms of the values at some places, -inf where the place is -1."""
    return np.log(np.append(values, 0.0)[places])


#: Decoders that choose one of the grammar's own binary trees.
TREE_DECODERS = {
    "max-marginal": max_marginal,
    "max-rule-product": max_rule_product,
    "viterbi": viterbi,
}


def choose_decoder(signed, decoder):
    """Return the decoder to use; raise ValueError if it cannot be used."""
    if decoder == "auto":
        return "max-marginal" if signed else "mbr"
    if decoder == "viterbi" and signed:
        raise ValueError(
            'decoder="viterbi" needs a grammar without negative parameters; use '
            '"max-marginal" or "mbr"'
        )
    return decoder


def item_nodes(forest, items, parent):
    """Nodes of the binary trees of sentences.

    Parameters
    ----------
    forest : Forest
        Items of the sentences.
    items, parent : ndarray of int32, shape (n_nodes,)
        Items of each tree, and the places of their parents.

    Returns
    -------
    ndarray of int32, shape (4, n_nodes)
        Label, parent, start and stop.
    """
    bounds = [span_bounds(n) for n in forest.n_words.tolist()]
    start, stop = np.concatenate(bounds, axis=1)
    span = forest.item_span[items]
    label = forest.item_label[items]
    return np.array([label, parent, start[span], stop[span]], dtype=np.int32)


def assemble(treebank, names, rows, *, binarized):
    """Put the nodes of all rows into a treebank.

    Parameters
    ----------
    treebank : Treebank
        The sentences.
    names : sequence of str or None
        Names of the label ids of the nodes; None for a bare word.
    rows : list of ndarray of int32, shape (4, n_nodes)
        Label, parent, start and stop of each row's nodes, in preorder.
    binarized : bool
        Whether the labels are those of a :class:`TreeBinarizer`, whose work is undone.

    Returns
    -------
    Treebank
    """
    node_offsets = offsets([nodes.shape[1] for nodes in rows])
    columns = np.concatenate(rows, axis=1) if rows else np.zeros((4, 0), np.int32)
    used, label = np.unique(columns[0], return_inverse=True)
    table = {}
    ids = [
        -1 if names[x] is None else table.setdefault(names[x], len(table))
        for x in used.tolist()
    ]
    tags = [table.setdefault(name, len(table)) for name in treebank.labels]
    size = np.ones(columns.shape[1], dtype=np.int32)
    kernel.subtree_sizes(node_offsets, columns[1], size)
    trees = treebank.replace(
        label=np.array(ids, dtype=np.int32)[label],
        size=size,
        parent=columns[1],
        start=columns[2],
        stop=columns[3],
        node_offsets=node_offsets,
        labels=tuple(table),
        # Predicted trees hold the original tokens, not the words that the model saw.
        word=treebank.token,
        words=treebank.tokens,
        tag=np.array([*tags, -1], dtype=np.int32)[treebank.tag],
        binarized=binarized,
        check=False,
    )
    return unbinarize(trees) if binarized else trees


def distinct_trees(trees, scores):
    """Pair the next trees with their scores, without repetitions.

    Trees that differ only in a tag are equal once the given tag replaces it.
    """
    first = {}
    for score in scores:
        tree = next(trees)
        first.setdefault(str(tree), (tree, score))
    return list(first.values())
