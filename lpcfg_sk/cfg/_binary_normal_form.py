"""Binary normal form: multinomials over rules as chains of binomials.

The rules of a nonterminal, in a fixed order, are a chain of binary choices (section 3.2
of Cohen and Smith, 2012): link i stops with rule i or goes on to the later ones.
Learning does not parse with that form; counts of its events are counts of rules and
their tail sums, which :class:`BinomialChains` works with.
"""

import numpy as np
import pandas as pd

from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._rules import Rule, rules_by_lhs
from lpcfg_sk.treebank import Tree, Treebank


class BinaryNormalForm:
    r"""A grammar of degree two that is equivalent to a given one.

    The rules ``A -> α_1 | ... | α_N`` become the chain of figure 2 of Cohen and
    Smith (2012),

    ``A -> α_1 | A1``, ``A1 -> α_2 | A2``, ..., ``A{N-1} -> α_N``.

    Theorem 1: with the binomials :math:`b_i = θ_i / \sum_{j ≥ i} θ_j` and
    :math:`c_i = 1 - b_i` of :func:`theta_to_binomials`, derivations keep their
    probabilities. (The theorem as printed divides by the previous link alone, which is
    wrong from the third rule on.)

    Parameters
    ----------
    original : CFG
        Any grammar.

    Attributes
    ----------
    original, grammar : CFG
        The given grammar and its binary normal form.

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

    def __init__(self, original):
        self.original = original
        self._groups = rules_by_lhs(original.rules)
        taken = set(original.nonterminals)
        rules, self._links = [], {}
        for lhs, group in self._groups.items():
            names = [lhs]
            for _ in group[1:]:
                number = len(names)
                while f"{lhs}{number}" in taken:
                    number += 1
                names.append(f"{lhs}{number}")
                taken.add(names[-1])
            for position, index in enumerate(group):
                rule = original.rules[index]
                rules.append(Rule(names[position], rule.rhs, rule.terminal))
                if position + 1 < len(group):
                    below = (names[position + 1],)
                    rules.append(Rule(names[position], below, (False,)))
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
        self._position = {
            name: position
            for names in self._links.values()
            for position, name in enumerate(names)
        }

    def to_binary(self, theta):
        """Probabilities of the binary normal form, by theorem 1.

        Parameters
        ----------
        theta : array-like of float, shape (n_rules,)
            Probabilities of the original rules.

        Returns
        -------
        theta : Series
            Probabilities of the rules of `grammar`, indexed by rule.
        """
        theta = np.asarray(theta, dtype=float)
        chains = [theta_to_binomials(theta[g]) for g in self._groups.values()]
        # The rules of a chain alternate; its last link does not go on.
        binary = [np.stack(chain, axis=1).ravel()[:-1] for chain in chains]
        binary = np.concatenate(binary)
        return pd.Series(binary, index=[str(rule) for rule in self.grammar.rules])

    def from_binary(self, theta):
        """Probabilities of the original rules, the reverse of theorem 1.

        Parameters
        ----------
        theta : array-like of float
            Probabilities of the rules of `grammar`.

        Returns
        -------
        theta : Series
            Probabilities of the original rules, indexed by rule.
        """
        binary = np.asarray(theta, dtype=float)
        original = np.ones(len(self.original.rules))
        begin = 0
        for group in self._groups.values():
            end = begin + 2 * len(group) - 1
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
        """
        place = {
            self.original.rules[index]: position
            for group in self._groups.values()
            for position, index in enumerate(group)
        }
        trees = []
        for tree in Treebank(treebank):
            labels, sizes, words = tree._content()
            chains = []
            for node, label in enumerate(labels):
                if label is None:
                    chains.append([None])
                    continue
                rule = _rule_at(labels, sizes, words, tree._starts, node)
                chains.append(self._links[label][: place[rule] + 1])
            # A chain makes all subtrees above it larger.
            added = offsets([len(chain) - 1 for chain in chains]).tolist()
            new_sizes = [
                size + added[node + size] - added[node] - step
                for node, size in enumerate(sizes)
                for step in range(len(chains[node]))
            ]
            new_labels = [name for chain in chains for name in chain]
            trees.append(_tree(new_labels, new_sizes, words))
        return Treebank(trees)

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
        """
        trees = []
        for tree in Treebank(treebank):
            labels, sizes, words = tree._content()
            kept = [label is None or self._position[label] == 0 for label in labels]
            n_kept = offsets(kept).tolist()
            new_sizes = [
                n_kept[node + size] - n_kept[node]
                for node, size in enumerate(sizes)
                if kept[node]
            ]
            new_labels = [label for label, k in zip(labels, kept, strict=True) if k]
            trees.append(_tree(new_labels, new_sizes, words))
        return Treebank(trees)


def theta_to_binomials(theta):
    r"""Turn a multinomial into its chain of binomials.

    Parameters
    ----------
    theta : ndarray of float, shape (N,)
        Probabilities (or counts: any non-negative numbers).

    Returns
    -------
    stop, go : ndarray of float, shape (N,)
        :math:`b_i = θ_i / t_i` and :math:`c_i = t_{i+1} / t_i` with the tail sums
        :math:`t_i = \sum_{j ≥ i} θ_j`; both, because 1 - b loses the digits of a small
        c. Links after the last positive θ are 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.cfg import theta_to_binomials
    >>> theta_to_binomials(np.array([0.25, 0.75, 0.0]))
    (array([0.25, 1.  , 1.  ]), array([0.75, 0.  , 0.  ]))
    """
    tail = np.cumsum(theta[::-1])[::-1]
    rest = np.append(tail[1:], 0.0)
    positive = tail > 0
    safe = np.where(positive, tail, 1.0)
    return np.where(positive, theta / safe, 1.0), np.where(positive, rest / safe, 0.0)


def binomials_to_theta(stop, go):
    r"""Turn a chain of binomials into its multinomial.

    Parameters
    ----------
    stop, go : ndarray of float, shape (N,)
        The chain.

    Returns
    -------
    theta : ndarray of float, shape (N,)
        :math:`θ_i = b_i \prod_{j<i} c_j`.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.cfg import binomials_to_theta
    >>> binomials_to_theta(np.array([0.25, 0.5, 1.0]), np.array([0.75, 0.5, 0.0]))
    array([0.25 , 0.375, 0.375])
    """
    return stop * np.concatenate([[1.0], np.cumprod(go[:-1])])


class BinomialChains:
    """The multinomials of a grammar as chains of binomials with a margin or a prior.

    Parameters
    ----------
    groups : list of ndarray of int
        Rules of each nonterminal, in the order of its chain.
    n_rules : int
        Number of rules.
    gamma : float, default=0.0
        Margin γ: binomials are kept in [γ, 1 - γ].
    pseudo_count : float, default=0.0
        α - 1 of a Dirichlet prior, added to the counts of both events of each link.
    """

    def __init__(self, groups, n_rules, gamma=0.0, pseudo_count=0.0):
        self.groups = groups
        self.n_rules = n_rules
        self.gamma = gamma
        self.pseudo_count = pseudo_count

    def split(self, theta):
        """Binomials of rule probabilities.

        Parameters
        ----------
        theta : ndarray of float, shape (n_rules,)
            Rule probabilities.

        Returns
        -------
        stop, go : ndarray of float, shape (n_rules,)
            Probability of a rule, and of the later rules of its nonterminal, given
            that no earlier one was taken; within the margin.
        """
        stop, go = np.ones(self.n_rules), np.zeros(self.n_rules)
        for group in self.groups:
            stop[group], go[group] = theta_to_binomials(theta[group])
        return self._truncate(stop, go)

    def join(self, stop, go):
        """Rule probabilities of binomials, the reverse of `split`."""
        theta = np.ones(self.n_rules)
        for group in self.groups:
            theta[group] = binomials_to_theta(stop[group], go[group])
        return theta

    def estimate(self, counts, old):
        """Minimise the log-loss of expected counts over Θ(γ).

        Equation 22: the relative frequency of each binomial, cut to [γ, 1 - γ];
        equation 26: with a pseudo-count, the mode under a Dirichlet prior.

        Parameters
        ----------
        counts : ndarray of float, shape (n_rules,)
            Expected counts of the rules, ψ.
        old : tuple of ndarray
            Binomials that are kept where a link was never reached (0/0).

        Returns
        -------
        stop, go : ndarray of float, shape (n_rules,)
        """
        stop, go = old[0].copy(), old[1].copy()
        for group in self.groups:
            links, own = group[:-1], counts[group]
            later = np.cumsum(own[::-1])[::-1][1:] + self.pseudo_count
            own = own[:-1] + self.pseudo_count
            total = own + later
            seen = total > 0
            stop[links[seen]] = own[seen] / total[seen]
            go[links[seen]] = later[seen] / total[seen]
        return self._truncate(stop, go)

    def _truncate(self, stop, go):
        """Move every binomial into [γ, 1 - γ] in place, the map T(θ, γ) of section 4.1.

        The last link of a chain has one event and is exempt.
        """
        for group in self.groups:
            links = group[:-1]
            low, high = stop[links] < self.gamma, go[links] < self.gamma
            stop[links[low]], go[links[low]] = self.gamma, 1.0 - self.gamma
            stop[links[high]], go[links[high]] = 1.0 - self.gamma, self.gamma
        return stop, go


def _rule_at(labels, sizes, words, starts, node):
    if sizes[node] == 1:
        return Rule(labels[node], (words[starts[node] - starts[0]],), (True,))
    rhs, terminal, child = [], [], node + 1
    while child < node + sizes[node]:
        bare = labels[child] is None
        rhs.append(words[starts[child] - starts[0]] if bare else labels[child])
        terminal.append(bare)
        child += sizes[child]
    return Rule(labels[node], tuple(rhs), tuple(terminal))


def _tree(labels, sizes, words):
    starts = offsets([size == 1 for size in sizes])[:-1]
    return Tree._from_columns(
        tuple(labels), tuple(sizes), tuple(starts.tolist()), tuple(words)
    )
