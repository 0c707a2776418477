"""Binary normal form: multinomials over rules as chains of binomials.

The rules of a nonterminal, in a fixed order, are a chain of binary choices (section 3.2
of Cohen and Smith, 2012): link i stops with rule i or goes on to the later ones.
Learning does not parse with that form. The counts of its events are counts of rules
and their tail sums, from which ``BinomialChains`` works.
"""

import numpy as np
import pandas as pd

from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._binomials import binomials_to_theta, theta_to_binomials
from lpcfg_sk.cfg._derivations import rules_of_nodes
from lpcfg_sk.cfg._rules import Rule, rules_by_lhs
from lpcfg_sk.treebank import check_treebank

# How far the sum of a nonterminal's probabilities may be from one.
_ROUNDING = 1e-6


class BinaryNormalForm:
    r"""A grammar of degree two that is equivalent to a given one.

    Three or more rules ``A -> α_1 | ... | α_N`` become the chain of figure 2 of Cohen
    and Smith (2012),

    ``A -> α_1 | A1``, ``A1 -> α_2 | A2``, ..., ``A{N-1} -> α_N``;

    one or two rules do not change. (The text of section 3.2 adds links to these as
    well, the figure does not; the bounds of :mod:`lpcfg_sk.bounds` take the smaller
    number of rules N of the figure.)

    Theorem 1: with the binomials :math:`b_i = θ_i / \sum_{j ≥ i} θ_j` and
    :math:`c_i = 1 - b_i` of :func:`theta_to_binomials`, derivations keep their
    probabilities. (The theorem as printed divides by the previous link alone, which is
    wrong from the third rule on.)

    Parameters
    ----------
    original : CFG
        Any grammar.
    order : array-like of int, shape (n_rules,), default=None
        Indices of the rules, each once, in the order of their chains; None for the
        order of the grammar.

    Attributes
    ----------
    original, grammar : CFG
        The given grammar and its binary normal form.

    See Also
    --------
    MarginEMPCFG.to_binary_normal_form : The form in the order of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk import CFG
    >>> form = CFG.from_string("S -> a | b | c").to_binary_normal_form()
    >>> theta = form.to_binary(np.array([0.5, 0.2, 0.3]))
    >>> theta
    S -> 'a'     0.5
    S -> S1      0.5
    S1 -> 'b'    0.4
    S1 -> S2     0.6
    S2 -> 'c'    1.0
    dtype: float64
    >>> form.from_binary(theta).tolist()
    [0.5, 0.2, 0.3]
    """

    def __init__(self, original, order=None):
        self.original = original
        self._groups = rules_by_lhs(original.rules)
        if order is not None:
            self._groups = _reordered(self._groups, order, len(original.rules))
        taken = set(original.nonterminals)
        rules, self._links = [], {}
        for lhs, group in self._groups.items():
            names = [lhs]
            # Figure 2 does not change nonterminals of two rules.
            while 2 < len(group) != len(names):
                suffix = len(names)
                while f"{lhs}{suffix}" in taken:
                    suffix += 1
                names.append(f"{lhs}{suffix}")
                taken.add(names[-1])
            for position, index in enumerate(group):
                rule = original.rules[index]
                name = names[min(position, len(names) - 1)]
                rules.append(Rule(name, rule.rhs, rule.terminal))
                if position + 1 < len(names):
                    rules.append(Rule(name, (names[position + 1],), (False,)))
            self._links[lhs] = names
        if original.implicit_start and len(self._links[original.start]) > 1:
            raise ValueError(
                "the binary normal form needs a start symbol that is a node of the "
                "trees; put one root label above all trees"
            )
        self.grammar = type(original)(
            rules,
            original.start,
            unary_cycles=original.unary_cycles,
            implicit_start=original.implicit_start,
        )

    def to_binary(self, theta):
        """Probabilities of the binary normal form, by theorem 1.

        Parameters
        ----------
        theta : array-like of float, shape (n_rules,)
            Probabilities of the original rules, which sum to one for each nonterminal.

        Returns
        -------
        theta : Series
            Probabilities of the rules of `grammar`, indexed by rule.
        """
        theta = _check_probabilities(theta, self.original)
        binary = []
        for group in self._groups.values():
            stop, go = theta_to_binomials(theta[group])
            if len(group) == 2:
                binary.append(np.array([stop[0], go[0]]))
            else:
                # The chain alternates between stopping and going on; its last link
                # only stops.
                binary.append(np.stack([stop, go], axis=1).ravel()[:-1])
        names = [str(rule) for rule in self.grammar.rules]
        return pd.Series(np.concatenate(binary), index=names)

    def from_binary(self, theta):
        """Probabilities of the original rules, the reverse of theorem 1.

        Parameters
        ----------
        theta : array-like of float
            Probabilities of the rules of `grammar`, which sum to one for each
            nonterminal.

        Returns
        -------
        theta : Series
            Probabilities of the original rules, indexed by rule.
        """
        binary = _check_probabilities(theta, self.grammar)
        original = np.ones(len(self.original.rules))
        begin = 0
        for group in self._groups.values():
            end = begin + (2 if len(group) == 2 else 2 * len(group) - 1)
            if len(group) == 2:
                original[group] = binary[begin:end]
            else:
                stop, go = binary[begin:end:2], binary[begin + 1 : end : 2]
                original[group] = binomials_to_theta(stop, np.append(go, 0.0))
            begin = end
        return pd.Series(original, index=[str(rule) for rule in self.original.rules])

    def transform(self, treebank):
        """Rewrite derivations of the original grammar, the map Υ of theorem 1.

        Parameters
        ----------
        treebank : Treebank
            Trees of the original grammar.

        Returns
        -------
        treebank : Treebank
            Trees of the binary normal form.

        Raises
        ------
        ValueError
            If a tree is not a derivation of the original grammar.
        """
        treebank, rule = _derivations(treebank, self.original, "transform")
        names = self.grammar.nonterminals
        ids = {name: i for i, name in enumerate(names)}
        # Labels of the chain above each rule, from the nonterminal down.
        paths = [()] * len(self.original.rules)
        for lhs, group in self._groups.items():
            links = [ids[name] for name in self._links[lhs]]
            for position, index in enumerate(group):
                paths[index] = links[: position + 1]
        lengths = np.array([*map(len, paths), 1])[rule]
        first = offsets(lengths)
        old = np.repeat(np.arange(len(rule)), lengths)
        step = np.arange(first[-1]) - first[old]
        path_begin = offsets([*map(len, paths), 1])[:-1]
        labels = np.array([label for path in (*paths, (-1,)) for label in path])
        # A chain makes all subtrees above it larger.
        grown = first[np.arange(len(rule)) + treebank.size] - first[:-1]
        above = _global_parents(treebank)
        parent = np.where(step > 0, np.arange(first[-1]) - 1, first[above[old] + 1] - 1)
        return _with_nodes(
            treebank,
            names,
            label=labels[path_begin[rule[old]] + step],
            size=grown[old] - step,
            parent=np.where((above[old] < 0) & (step == 0), -1, parent),
            node_offsets=first[treebank.node_offsets],
        )

    def inverse_transform(self, treebank):
        """Collapse the chains again.

        Parameters
        ----------
        treebank : Treebank
            Trees of the binary normal form.

        Returns
        -------
        treebank : Treebank
            Trees of the original grammar.

        Raises
        ------
        ValueError
            If a tree is not a derivation of the binary normal form.
        """
        treebank, _ = _derivations(treebank, self.grammar, "inverse_transform")
        links = {name for names in self._links.values() for name in names[1:]}
        is_link = np.array([name in links for name in treebank.labels] + [False])
        kept = ~is_link[treebank.label]
        n_kept = offsets(kept)
        nodes, above = np.arange(len(kept)), _global_parents(treebank)
        # For each node, the nearest node at or above it that is kept. Roots are kept.
        nearest = np.where(kept, nodes, above)
        while not kept[nearest].all():
            nearest = nearest[nearest]
        names = self.original.nonterminals
        ids = treebank.labels.map_to(names)
        parent = np.where(above >= 0, n_kept[nearest[above]], -1)
        size = n_kept[nodes + treebank.size] - n_kept[:-1]
        return _with_nodes(
            treebank,
            names,
            label=np.append(ids, -1)[treebank.label][kept],
            size=size[kept],
            parent=parent[kept],
            node_offsets=n_kept[treebank.node_offsets],
        )


def _reordered(groups, order, n_rules):
    """Return the rules of each nonterminal in the given order."""
    order = np.asarray(order)
    if order.shape != (n_rules,) or not np.array_equal(
        np.sort(order), np.arange(n_rules)
    ):
        raise ValueError(
            f"order must hold the numbers of the {n_rules} rules, each once, got an "
            f"array of shape {order.shape}"
        )
    rank = np.argsort(order)
    return {lhs: group[np.argsort(rank[group])] for lhs, group in groups.items()}


def _check_probabilities(theta, grammar):
    """Return the probabilities of a grammar's rules, or say what is wrong with them."""
    theta, rules = np.asarray(theta, dtype=float), grammar.rules
    if theta.shape != (len(rules),):
        raise ValueError(
            f"theta has shape {theta.shape}, expected one probability for each of the "
            f"{len(rules)} rules of the grammar"
        )
    bad = ~((theta >= 0) & (theta <= 1))
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise ValueError(
            "probabilities are between 0 and 1, but theta of the rule "
            f"{rules[index]} is {theta[index]}"
        )
    for lhs, group in rules_by_lhs(rules).items():
        total = theta[group].sum()
        if abs(total - 1) > _ROUNDING:
            raise ValueError(
                f"the probabilities of the rules of {lhs!r} sum to {total:.9g}, "
                "expected 1"
            )
    return theta


def _derivations(treebank, grammar, method):
    """Return trees of a grammar with the rule at each node, -1 at bare words.

    Raises ValueError where a tree is not a derivation of the grammar.
    """
    name = f"BinaryNormalForm.{method}"
    treebank = check_treebank(treebank, estimator=name, parsed=True, allow_empty=True)
    rule, _, derivable = rules_of_nodes(grammar, treebank)
    if derivable.all():
        return treebank, rule
    row = int(np.flatnonzero(~derivable)[0])
    begin, end = treebank.node_offsets[row : row + 2]
    foreign = np.flatnonzero(rule[begin:end] == -2)
    if len(foreign) == 0:
        label = treebank.labels[treebank.label[begin]]
        reason = f"its root {label!r} is not the start symbol {grammar.start!r}"
    else:
        label = treebank.labels[treebank.label[begin + foreign[0]]]
        reason = f"the grammar has no rule for its node {label!r}"
        node = begin + foreign[0]
        words = slice(
            *(
                treebank.token_offsets[row] + treebank.start[node],
                treebank.token_offsets[row] + treebank.stop[node],
            )
        )
        text = " ".join(treebank.tokens[i] for i in treebank.token[words][:8])
        reason += f" over {text!r}"
    raise ValueError(
        f"{name}: tree {row} is not a derivation of the grammar; {reason}. Trees of "
        "other grammars cannot be rewritten: leave them out, or make the form of a "
        "grammar that derives them (CFG.from_treebank)"
    )


def _global_parents(treebank):
    """Return the parent of each node among all nodes of the treebank, -1 at roots."""
    first = np.repeat(treebank.node_offsets[:-1], np.diff(treebank.node_offsets))
    return np.where(treebank.parent >= 0, treebank.parent + first, -1)


def _with_nodes(treebank, names, *, label, size, parent, node_offsets):
    """Return the same sentences under other nodes; parents are numbered globally."""
    first = np.repeat(node_offsets[:-1], np.diff(node_offsets))
    table = {name: i for i, name in enumerate(names)}
    tags = [table.setdefault(name, len(table)) for name in treebank.labels]
    return treebank.replace(
        label=label,
        size=size,
        parent=np.where(parent >= 0, parent - first, -1),
        start=None,
        stop=None,
        node_offsets=node_offsets,
        labels=tuple(table),
        tag=np.array([*tags, -1])[treebank.tag],
        blocks={},
        block_names={},
    )
