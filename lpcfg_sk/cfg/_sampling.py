"""Trees drawn from the rules of a context-free grammar."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.treebank import Treebank, node_spans


def sample_trees(grammar, theta, n, random_state, max_nodes):
    """Draw trees from a grammar.

    Parameters
    ----------
    grammar : CFG
        The grammar.
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules.
    n : int
        Number of trees.
    random_state : int, RandomState instance or None
        Source of randomness. The first trees of a larger sample are those of a smaller
        one.
    max_nodes : int
        Limit on the number of nodes of one tree.

    Returns
    -------
    treebank : Treebank

    Raises
    ------
    ValueError
        If a tree grows beyond `max_nodes`.
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n must be a whole number from 0 on, got {n!r}")
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    draw = _Drawing(grammar, theta, np.random.default_rng(seed), max_nodes)
    trees = [draw.tree() for _ in range(n)]
    label, size, parent, word = (
        np.array([x for tree in trees for x in tree[i]], dtype=np.int64)
        for i in range(4)
    )
    node_offsets = offsets([len(tree[0]) for tree in trees])
    start, stop = node_spans(size, node_offsets)
    return Treebank.from_columns(
        label=label,
        size=size,
        parent=parent,
        start=start,
        stop=stop,
        node_offsets=node_offsets,
        token=word[word >= 0],
        token_offsets=offsets(word >= 0)[node_offsets],
        labels=grammar.nonterminals,
        tokens=grammar.terminals,
    )


class _Drawing:
    """Draws one tree after the other."""

    def __init__(self, grammar, theta, rng, max_nodes):
        self.rng, self.max_nodes = rng, max_nodes
        n_nonterminals = len(grammar.nonterminals)
        label = {name: i for i, name in enumerate(grammar.nonterminals)}
        word = {name: n_nonterminals + i for i, name in enumerate(grammar.terminals)}
        self.n_nonterminals, self.start = n_nonterminals, label[grammar.start]
        self.implicit_start = grammar.implicit_start
        self.sides = [
            [(word if t else label)[s] for s, t in zip(r.rhs, r.terminal, strict=True)]
            for r in grammar.rules
        ]
        self.rules = list(rules_by_lhs(grammar.rules).values())
        self.cumulative = [np.cumsum(theta[group]) for group in self.rules]

    def _side(self, label):
        """Draw a right-hand side."""
        cumulative = self.cumulative[label]
        at = np.searchsorted(cumulative, self.rng.random() * cumulative[-1], "right")
        return self.sides[self.rules[label][min(at, len(cumulative) - 1)]]

    def tree(self):
        """Return label, size, parent and word of the nodes of a tree, in preorder."""
        labels, parents, words = [], [], []
        start = self._side(self.start)[0] if self.implicit_start else self.start
        agenda = [(start, -1)]
        while agenda:
            symbol, above = agenda.pop()
            parents.append(above)
            if symbol >= self.n_nonterminals:
                labels.append(-1)
                words.append(symbol - self.n_nonterminals)
                continue
            labels.append(symbol)
            side = self._side(symbol)
            if len(side) == 1 and side[0] >= self.n_nonterminals:
                # A pre-terminal and its word are one node.
                words.append(side[0] - self.n_nonterminals)
                continue
            words.append(-1)
            agenda += [(child, len(labels) - 1) for child in reversed(side)]
            if len(labels) + len(agenda) > self.max_nodes:
                raise ValueError(
                    f"a tree grew beyond max_nodes={self.max_nodes} nodes; the trees "
                    "of this grammar may be infinitely large. Sample with a larger "
                    "max_nodes if they are not"
                )
        sizes = [1] * len(labels)
        for node in range(len(labels) - 1, 0, -1):
            sizes[parents[node]] += sizes[node]
        return labels, sizes, parents, words
