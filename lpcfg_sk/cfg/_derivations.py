"""Derivations of a CFG: the rules of trees, expected rule counts, best trees."""

import numpy as np

from lpcfg_sk._kernels._cfg_best import BestChart, cfg_best_tree
from lpcfg_sk._kernels._cfg_counts import (
    OutsideChart,
    TreeColumns,
    cfg_expected_counts,
    cfg_inside_outside,
    cfg_rules_of_trees,
)
from lpcfg_sk._kernels._cfg_inside import InsideChart
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._rules import best_chains, rewarded_chains, rule_weights
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.treebank import Treebank, over_chunks

# A sentence costs about the cube of its length; this is about twenty sentences of
# ordinary length.
_CHUNK_WORK = 200_000.0

# Most bytes of a chart, the default of all parsers.
_MAX_MEMORY = 2**31


def encode(grammar, treebank):
    """Return the terminal number of each token, -1 where the grammar has none.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Trees or sentences.

    Returns
    -------
    terminal : ndarray of int32, shape (n_tokens,)
        The terminal of the word that models see (see :class:`RareWords`); if the
        grammar lacks it, that of the word's signature class, or else of the token.
    """
    words = treebank.words
    terminal = words.known_class(words.map_to(grammar.terminals))[treebank.word]
    unknown = np.flatnonzero(terminal < 0)
    if len(unknown):
        tokens = treebank.tokens.map_to(grammar.terminals)
        terminal[unknown] = tokens[treebank.token[unknown]]
    return terminal


def check_probabilities(theta, n_rules):
    """Raise ValueError unless there is a probability for each rule.

    Parameters
    ----------
    theta : ndarray of float
        The numbers to check.
    n_rules : int
        Number of rules.
    """
    if theta.shape != (n_rules,) or not ((theta >= 0) & (theta <= 1)).all():
        raise ValueError(
            "theta_ must hold one probability between 0 and 1 for each of the "
            f"{n_rules} rules of grammar_"
        )


def rules_of_nodes(grammar, treebank):
    """Find the rule at each node of the trees of a treebank.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Trees; rows without a tree have no nodes.

    Returns
    -------
    rule : ndarray of int32, shape (n_nodes,)
        -1 at a word that has siblings, -2 where the grammar has no such rule.
    root_rule : ndarray of int32, shape (n_rows,)
        Rule of an implicit start symbol above each root, -1 where there is none.
    derivable : ndarray of bool, shape (n_rows,)
        Which rows are derivations of the grammar.
    """
    labels = np.append(treebank.labels.map_to(grammar.nonterminals), -1)
    labels = np.where(labels < 0, -2, labels).astype(np.int32)
    labels[-1] = -1
    trees = TreeColumns(
        label=labels[treebank.label],
        size=treebank.size,
        node_offsets=treebank.node_offsets,
        word=encode(grammar, treebank),
        token_offsets=treebank.token_offsets,
    )
    rule = np.full(treebank.n_nodes, -2, dtype=np.int32)
    root_rule = np.full(len(treebank), -1, dtype=np.int32)
    cfg_rules_of_trees(trees, grammar.tables(), rule, root_rule)
    row = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    parsed = treebank.is_parsed
    bad = np.zeros(len(treebank), dtype=bool)
    bad[row[rule == -2]] = True
    if grammar.implicit_start:
        bad |= parsed & (root_rule == -2)
    else:
        bad |= parsed & (root_rule != -1)
        root_rule = np.full(len(treebank), -1, dtype=np.int32)
    return rule, np.maximum(root_rule, -1), parsed & ~bad


def rules_of_trees(grammar, treebank):
    """Find the rules that the trees of a treebank use.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Trees; rows without a tree are left out of the result.

    Returns
    -------
    row, rule : ndarray of int
        One entry for each use of a rule.
    derivable : ndarray of bool, shape (n_rows,)
        Which rows are derivations of the grammar.

    Examples
    --------
    >>> from lpcfg_sk import CFG, Treebank
    >>> from lpcfg_sk.cfg import rules_of_trees
    >>> grammar = CFG.from_string("S -> 'a' S | 'b'")
    >>> row, rule, derivable = rules_of_trees(grammar, Treebank(["(S a (S b))"]))
    >>> rule.tolist(), derivable.tolist()
    ([0, 1], [True])
    """
    rule, root_rule, derivable = rules_of_nodes(grammar, treebank)
    row = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    used, rooted = rule >= 0, np.flatnonzero(root_rule >= 0)
    row = np.concatenate([row[used], rooted])
    rule = np.concatenate([rule[used], root_rule[rooted]])
    return row, rule, derivable


def expected_rule_counts(
    grammar, X, theta, weights, *, max_memory=_MAX_MEMORY, n_jobs=None
):
    """Log probabilities of sentences, and their expected rule counts.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    X : Treebank or ShardedTreebank
        Rows whose yields are summed over all derivations.
    theta : ndarray of float, shape (n_rules,)
        Rule probabilities.
    weights : ndarray of float, shape (n_rows,)
        Weights of the rows; where 0, only the probability is computed.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        As in joblib, for the sentences of each chunk of `X`.

    Returns
    -------
    log_probabilities : ndarray of float, shape (n_rows,)
    counts : ndarray of float, shape (n_rules,)
        Sum of the expected counts times the weights.
    """
    tables = grammar.tables()
    probabilities = rule_weights(tables, theta)

    def count_sentences(words, bounds, weights):
        log_probabilities, counts = np.empty(len(weights)), np.zeros(len(theta))
        n, done = int(np.diff(bounds).max(initial=0)), 0
        for charts in _inside_outside_charts(n, tables, weights.any(), max_memory):
            done = cfg_expected_counts(
                words,
                bounds,
                done,
                tables,
                probabilities,
                weights,
                *charts,
                log_probabilities,
                counts,
            )
            if done == len(weights):
                break
        return log_probabilities, counts

    def count(treebank, weights):
        words, bounds = encode(grammar, treebank), treebank.token_offsets
        parts = [
            (
                words[bounds[lo] : bounds[hi]],
                bounds[lo : hi + 1] - bounds[lo],
                weights[lo:hi],
            )
            for lo, hi in cut_by_work(treebank.lengths.astype(float) ** 3, _CHUNK_WORK)
        ]
        return _join(map_chunks(count_sentences, parts, n_jobs=n_jobs), len(theta))

    return _join(over_chunks(count, X, weights), len(theta))


def _inside_outside_charts(n, tables, with_outside, max_memory):
    """Yield charts for strings of n words, each with room for more items."""
    n_spans, n_nonterminals = n * (n + 1) // 2, tables.n_nonterminals
    n_outside = n_spans if with_outside else 0
    for n_items in _numbers_of_items(
        n,
        per_span=41 + 8 * n_nonterminals * (1 + bool(with_outside)),
        per_item=20 if with_outside else 12,
        max_memory=max_memory,
    ):
        yield (
            InsideChart(
                value=np.empty((n_spans, n_nonterminals)),
                exponent=np.empty(n_spans, dtype=np.int64),
                alive=np.empty(n_spans, dtype=bool),
                item_offset=np.empty((n_spans, 4), dtype=np.int64),
                items=np.empty(n_items, dtype=np.int32),
                item_values=np.empty(n_items),
            ),
            OutsideChart(
                value=np.empty((n_outside, n_nonterminals)),
                item_values=np.empty(n_items if with_outside else 0),
            ),
        )


def _best_charts(n, tables, max_memory):
    """Yield empty charts for a string of n words, each with room for more items."""
    shape = n * (n + 1) // 2, tables.n_nonterminals
    for n_items in _numbers_of_items(
        n, per_span=16 + 20 * shape[1], per_item=16, max_memory=max_memory
    ):
        yield BestChart(
            score=np.full(shape, -np.inf),
            bottom=np.full(shape, -1, dtype=np.int32),
            leave=np.full(shape, -1, dtype=np.int32),
            base_rule=np.full(shape, -1, dtype=np.int32),
            item_offset=np.zeros((shape[0], 2), dtype=np.int64),
            items=np.empty(n_items, dtype=np.int32),
            item_scores=np.empty(n_items),
            splits=np.empty(n_items, dtype=np.int32),
        )


def _numbers_of_items(n, *, per_span, per_item, max_memory):
    """Yield larger and larger numbers of items, until a chart takes too many bytes."""
    n_spans = n * (n + 1) // 2
    n_items = 16 * n_spans + 64
    while True:
        needed = n_spans * per_span + n_items * per_item
        if needed > max_memory:
            raise ChartMemoryError(
                f"the chart of a sentence of {n} words needs at least {needed:,} "
                f"bytes, more than max_memory={max_memory:,}; leave the sentence out, "
                "or raise max_memory"
            )
        yield n_items
        n_items *= 2


def _join(results, n_rules):
    """Concatenate log probabilities, and add up counts."""
    log_probabilities, counts = [np.zeros(0)], np.zeros(n_rules)
    for part, part_counts in results:
        log_probabilities.append(part)
        counts += part_counts
    return np.concatenate(log_probabilities), counts


def best_trees(grammar, treebank, theta, decoder, *, max_memory=_MAX_MEMORY):
    """Best derivation of each row's sentence.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Rows to parse.
    theta : ndarray of float, shape (n_rules,)
        Rule probabilities.
    decoder : {"viterbi", "max-marginal"}
        The most probable derivation, or the one with the largest expected number of
        correct constituents: the best of all derivations where unary rules have no
        cycle; within a cycle, of those that follow the most probable chains.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.

    Yields
    ------
    label, size, parent : ndarray of int
        Nodes in preorder; empty where the sentence has no derivation.
    """
    tables = grammar.tables()
    max_marginal = decoder == "max-marginal"
    with np.errstate(divide="ignore"):
        log_theta = np.log(theta)
    scores, chains = (rewarded_chains if max_marginal else best_chains)(
        tables, log_theta
    )
    words, bounds = encode(grammar, treebank), treebank.token_offsets
    rewards = (np.zeros((0, 0)) for _ in range(len(treebank)))
    if max_marginal:
        rewards = (
            counts
            for _, counts in constituent_counts(
                grammar, treebank, theta, max_memory=max_memory
            )
        )
    for row, bonus in enumerate(rewards):
        sentence = words[bounds[row] : bounds[row + 1]]
        for chart in _best_charts(len(sentence), tables, max_memory):
            fits, *tree = cfg_best_tree(sentence, tables, scores, chains, bonus, chart)
            if fits:
                break
        yield tuple(tree)


def constituent_counts(grammar, treebank, theta, *, max_memory=_MAX_MEMORY):
    """Expected numbers of the constituents of each row's sentence.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    treebank : Treebank
        Rows whose yields are summed over all derivations.
    theta : ndarray of float, shape (n_rules,)
        Rule probabilities.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.

    Yields
    ------
    log_probability : float
        -inf where the sentence has no derivation.
    counts : ndarray of float64, shape (n * (n + 1) // 2, n_nonterminals)
        Of each nonterminal over each span, numbered by `span_index`; posterior
        probabilities where unary rules have no cycle.
    """
    tables = grammar.tables()
    probabilities = rule_weights(tables, theta)
    words, bounds = encode(grammar, treebank), treebank.token_offsets
    unused_counts = np.zeros(len(theta))
    for row, n in enumerate(treebank.lengths.tolist()):
        sentence = words[bounds[row] : bounds[row + 1]]
        counts = None
        for charts in _inside_outside_charts(n, tables, True, max_memory):
            if counts is None:
                counts = np.zeros((n * (n + 1) // 2, tables.n_nonterminals))
            fits, log_probability = cfg_inside_outside(
                sentence, tables, probabilities, 1.0, *charts, unused_counts, counts
            )
            if fits:
                break
        yield log_probability, counts


def flat_tree(start, n):
    """Return label, size and parent of the nodes of a flat tree over n words."""
    if n == 1:
        return np.array([start]), np.array([1]), np.array([-1])
    size = np.ones(n + 1, dtype=int)
    size[0] = n + 1
    label, parent = np.full(n + 1, -1), np.zeros(n + 1, dtype=int)
    label[0], parent[0] = start, -1
    return label, size, parent


def treebank_from_nodes(X, trees, nonterminals):
    """Make a treebank of trees over the sentences of another.

    Parameters
    ----------
    X : Treebank
        The sentences.
    trees : list of (label, size, parent)
        Nodes of each tree in preorder, as :func:`best_trees` gives them.
    nonterminals : sequence of str
        Names of the labels.

    Returns
    -------
    treebank : Treebank
    """
    columns = {
        name: np.concatenate([np.zeros(0, int), *(tree[i] for tree in trees)])
        for i, name in enumerate(("label", "size", "parent"))
    }
    return Treebank.from_columns(
        **columns,
        node_offsets=offsets([len(tree[0]) for tree in trees]),
        token=X.token,
        token_offsets=X.token_offsets,
        labels=nonterminals,
        tokens=X.tokens,
    )
