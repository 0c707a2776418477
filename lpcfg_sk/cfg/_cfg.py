"""Context-free grammars, and those of hidden Markov models."""

import warnings
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pandas as pd

from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.cfg._binary_normal_form import BinaryNormalForm
from lpcfg_sk.cfg._rules import (
    Rule,
    make_tables,
    read_rules,
    rules_by_lhs,
)
from lpcfg_sk.treebank import check_treebank, over_chunks


class CFG:
    """A context-free grammar with right-hand sides of any length.

    The grammar is symbolic; probabilities come from :class:`MarginEMPCFG`.

    Parameters
    ----------
    rules : iterable of (lhs, rhs) or Rule
        Rules; in a pair, a symbol of `rhs` that has no rules is a terminal.
    start : str, default=None
        Start symbol; the left-hand side of the first rule where None.
    unary_cycles : {"error", "allow"}, default="error"
        Whether chains of rules such as ``A -> B``, ``B -> A`` are accepted. They
        give a sentence infinitely many derivations.
    implicit_start : bool, default=False
        Whether trees have no node for the start symbol: their roots are then the
        symbols that it rewrites to.

    Attributes
    ----------
    rules : tuple of Rule
        The rules, each once, grouped by left-hand side in order of appearance.
    start : str
        The start symbol.
    nonterminals, terminals : tuple of str
        The symbols.

    See Also
    --------
    MarginEMPCFG : Learns the probabilities of the rules.

    Notes
    -----
    Every grammar is made by the constructor, also one from a file or a pickle. It keeps
    each rule once, and checks that no rule is empty, that the start symbol and all
    nonterminals have rules, and that chains of unary rules end, unless `unary_cycles`
    is "allow".

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> grammar = CFG.from_string('''
    ...     S -> NP VP
    ...     NP -> 'the' N | N
    ...     N -> 'dog' | 'dogs'
    ...     VP -> 'barks' | 'bark' 'at' NP
    ... ''')
    >>> len(grammar.rules), grammar.terminals
    (7, ('the', 'dog', 'dogs', 'barks', 'bark', 'at'))
    >>> print(grammar.rules[1])
    NP -> 'the' N
    """

    def __init__(
        self, rules, start=None, *, unary_cycles="error", implicit_start=False
    ):
        if unary_cycles not in ("error", "allow"):
            raise ValueError(
                f"unary_cycles is 'error' or 'allow', got {unary_cycles!r}"
            )
        rules = _as_rules(rules)
        if not rules:
            raise ValueError("a grammar needs at least one rule, got none")
        for rule in rules:
            if not rule.rhs:
                raise ValueError(
                    f"rule {rule.lhs} -> (nothing) has an empty right-hand side; "
                    "remove empty rules from the grammar first"
                )
        rules = list(dict.fromkeys(rules))
        by_lhs = rules_by_lhs(rules)
        self.rules = tuple(rules[i] for group in by_lhs.values() for i in group)
        self.start = self.rules[0].lhs if start is None else start
        if self.start not in by_lhs:
            raise ValueError(
                f"the start symbol {self.start!r} has no rules; left-hand sides are "
                f"{', '.join(list(by_lhs)[:8])}"
            )
        self.nonterminals = tuple(by_lhs)
        self.terminals = tuple(
            dict.fromkeys(
                s
                for rule in self.rules
                for s, t in zip(rule.rhs, rule.terminal, strict=True)
                if t
            )
        )
        self.unary_cycles = unary_cycles
        self.implicit_start = implicit_start
        self._check_symbols()
        cycle = self._unary_cycle()
        if cycle and unary_cycles == "error":
            raise ValueError(
                f"the unary rules {' -> '.join(cycle)} form a cycle, which gives a "
                "sentence infinitely many derivations; remove one of them, or pass "
                "unary_cycles='allow'"
            )
        self._tables = None

    @classmethod
    def from_string(cls, text, start=None, *, unary_cycles="error"):
        """Read a grammar, one left-hand side per line.

        Parameters
        ----------
        text : str
            Lines ``A -> B C | 'word' D``. Terminals are quoted; an unquoted symbol
            that has no rules is a terminal as well, with a warning where others are
            quoted. ``#`` starts a comment. There are no probabilities.
        start : str, default=None
            Start symbol; the first left-hand side where None.
        unary_cycles : {"error", "allow"}, default="error"
            What to do about cycles of unary rules.

        Returns
        -------
        grammar : CFG

        Examples
        --------
        >>> from lpcfg_sk import CFG
        >>> CFG.from_string("S -> S S | a").terminals
        ('a',)
        """
        return cls(read_rules(text), start, unary_cycles=unary_cycles)

    @classmethod
    def from_treebank(cls, treebank, *, unary_cycles="allow"):
        """Read off the rules of a treebank.

        Parameters
        ----------
        treebank : Treebank or ShardedTreebank
            Trees with nodes of any number of children. Where trees have different
            root labels, a new implicit start symbol rewrites to each of them.
        unary_cycles : {"error", "allow"}, default="allow"
            What to do about cycles of unary rules, which real treebanks have.

        Returns
        -------
        grammar : CFG
            Rules of each nonterminal by falling frequency.

        Examples
        --------
        >>> from lpcfg_sk import CFG, Treebank
        >>> trees = Treebank(["(S (NP (D a) (N b)) (V c))", "(S (NP (N b)) (V c))"])
        >>> for rule in CFG.from_treebank(trees).rules:
        ...     print(rule)
        S -> NP V
        NP -> D N
        NP -> N
        D -> 'a'
        N -> 'b'
        V -> 'c'
        """
        treebank = check_treebank(
            treebank, estimator="CFG.from_treebank", parsed=True, sharded=True
        )
        counts, order, roots = Counter(), {}, Counter()
        for part, labels, part_roots in over_chunks(_count_productions, treebank):
            counts.update(part)
            for label in labels:
                order.setdefault(label, len(order))
            roots.update(part_roots)
        if not counts:
            raise ValueError("CFG.from_treebank needs at least one tree, got none")
        start = next(iter(roots))
        rules = sorted(counts, key=lambda r: (order[r.lhs], -counts[r]))
        if len(roots) > 1:
            start = "START"
            while start in order:
                start += "'"
            labels = [label for label, _ in roots.most_common()]
            rules = [Rule(start, (label,), (False,)) for label in labels] + rules
        return cls(
            rules, start, unary_cycles=unary_cycles, implicit_start=len(roots) > 1
        )

    def __repr__(self):
        return (
            f"<CFG with {len(self.rules)} rules, {len(self.nonterminals)} "
            f"nonterminals, {len(self.terminals)} terminals, start {self.start!r}>"
        )

    def __str__(self):
        return "\n".join(
            f"{lhs} -> {' | '.join(self.rules[i]._rhs_text() for i in group)}"
            for lhs, group in rules_by_lhs(self.rules).items()
        )

    def __eq__(self, other):
        if not isinstance(other, CFG):
            return NotImplemented
        return (self.rules, self.start) == (other.rules, other.start)

    def __hash__(self):
        return hash((self.rules, self.start))

    def __reduce__(self):
        return _restore, (
            self.rules,
            self.start,
            self.unary_cycles,
            self.implicit_start,
        )

    @property
    def degree(self):
        """Largest number of rules of a nonterminal, deg(G)."""
        return max(Counter(rule.lhs for rule in self.rules).values())

    def to_binary_normal_form(self):
        """Rewrite the grammar so that no nonterminal has more than two rules.

        Returns
        -------
        form : BinaryNormalForm
            The grammar of section 3.2 and figure 2 of Cohen and Smith (2012), and
            the maps of theorem 1 between probabilities and between trees.

        Examples
        --------
        >>> from lpcfg_sk import CFG
        >>> form = CFG.from_string("P -> at | on | in").to_binary_normal_form()
        >>> print(form.grammar)
        P -> 'at' | P1
        P1 -> 'on' | P2
        P2 -> 'in'
        """
        return BinaryNormalForm(self)

    def tables(self):
        """Integer tables that the kernels read, made once.

        Returns
        -------
        CFGTables
            Rules and symbols as arrays.
        """
        if self._tables is None:
            self._tables = make_tables(self)
        return self._tables

    def _check_symbols(self):
        known = set(self.nonterminals)
        for rule in self.rules:
            for symbol in rule._nonterminals():
                if symbol not in known:
                    raise ValueError(f"{symbol!r} in rule {rule} has no rules")
        generating, reachable = self._generating(), self._reachable()
        useless = [
            n for n in self.nonterminals if n not in generating or n not in reachable
        ]
        if self.start not in generating:
            raise ValueError(
                f"the start symbol {self.start!r} derives no string of terminals; "
                "every derivation from it goes on forever"
            )
        if useless:
            warn_caller(
                f"{len(useless)} nonterminals are useless (no terminal string, or not "
                f"reachable from {self.start!r}): {', '.join(useless[:8])}"
            )

    def _generating(self):
        """Nonterminals that derive a string of terminals, by a worklist."""
        missing, users, done = {}, {}, set()
        agenda = []
        for i, rule in enumerate(self.rules):
            below = set(rule._nonterminals())
            missing[i] = len(below)
            for symbol in below:
                users.setdefault(symbol, []).append(i)
            if not below:
                agenda.append(rule.lhs)
        while agenda:
            symbol = agenda.pop()
            if symbol in done:
                continue
            done.add(symbol)
            for i in users.get(symbol, ()):
                missing[i] -= 1
                if missing[i] == 0:
                    agenda.append(self.rules[i].lhs)
        return done

    def _reachable(self):
        """Nonterminals that a derivation from the start symbol can contain."""
        by_lhs = rules_by_lhs(self.rules)
        seen, agenda = {self.start}, [self.start]
        while agenda:
            for i in by_lhs[agenda.pop()]:
                for symbol in self.rules[i]._nonterminals():
                    if symbol not in seen:
                        seen.add(symbol)
                        agenda.append(symbol)
        return seen

    def _unary_cycle(self):
        """Symbols of a cycle of unary rules, or None."""
        below = {}
        for rule in self.rules:
            if len(rule.rhs) == 1 and not rule.terminal[0]:
                below.setdefault(rule.lhs, []).append(rule.rhs[0])
        try:
            TopologicalSorter(below).prepare()
        except CycleError as error:
            # The error lists the cycle from the bottom up.
            return error.args[1][::-1]
        return None


def _restore(rules, start, unary_cycles, implicit_start):
    with warnings.catch_warnings():
        # Useless symbols were reported when the grammar was made.
        warnings.simplefilter("ignore", UserWarning)
        return CFG(
            rules, start, unary_cycles=unary_cycles, implicit_start=implicit_start
        )


def _count_productions(treebank):
    """Count the rules of all trees; rows without a tree are passed over.

    Parameters
    ----------
    treebank : Treebank
        Trees with nodes of any number of children. Terminals are the words that models
        see, some of which :class:`RareWords` replaced by classes.

    Returns
    -------
    counts : dict of Rule to int
        The rules and their counts.
    labels : list of str
        The labels, in the order of their first nodes.
    roots : Counter of str
        Labels of the roots.
    """
    treebank = treebank[treebank.is_parsed]
    label, n_labels = treebank.label, len(treebank.labels)
    tree = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    word = treebank.word[treebank.token_offsets[tree] + treebank.start]
    # Terminals are numbered after the labels.
    symbol = np.where(label >= 0, label, n_labels + word)
    # Few right-hand sides are distinct, so a dictionary of id tuples is small; only
    # its keys become strings.
    keys = Counter()
    has_parent = np.flatnonzero(treebank.parent >= 0)
    above = treebank.node_offsets[tree[has_parent]] + treebank.parent[has_parent]
    order = np.argsort(above, kind="stable")
    parents, first, n_children = np.unique(
        above[order], return_index=True, return_counts=True
    )
    children = symbol[has_parent[order]].tolist()
    for lhs, lo, n in zip(
        label[parents].tolist(), first.tolist(), n_children.tolist(), strict=True
    ):
        keys[lhs, *children[lo : lo + n]] += 1
    pairs = (treebank.size == 1) & (label >= 0)
    keys.update(
        zip(label[pairs].tolist(), (word[pairs] + n_labels).tolist(), strict=True)
    )
    names = (*treebank.labels.strings, *treebank.words.strings)
    counts = {
        Rule(
            names[lhs],
            tuple(names[s] for s in rhs),
            tuple(s >= n_labels for s in rhs),
        ): count
        for (lhs, *rhs), count in keys.items()
    }
    occurring, place = np.unique(label[label >= 0], return_index=True)
    labels = [names[i] for i in occurring[np.argsort(place)].tolist()]
    roots = Counter(names[i] for i in label[treebank.node_offsets[:-1]])
    return counts, labels, roots


def _as_rules(rules):
    rules = list(rules)
    heads = {rule[0] for rule in rules}
    return [
        rule
        if isinstance(rule, Rule)
        else Rule(rule[0], tuple(rule[1]), tuple(s not in heads for s in rule[1]))
        for rule in rules
    ]


def hmm_to_cfg(initial, transition, emission, *, stop, words=None):
    """Write a hidden Markov model as a context-free grammar with probabilities.

    Parameters
    ----------
    initial : array-like of float, shape (n_states,)
        Probabilities of the first state.
    transition : array-like of float, shape (n_states, n_states)
        Probabilities of the next state; a row and its entry of `stop` sum to one.
    emission : array-like of float, shape (n_states, n_words)
        Probabilities of the words of each state.
    stop : array-like of float, shape (n_states,)
        Probability that a state is the last one.
    words : sequence of str, default=None
        The words; ``"0"``, ``"1"``, ... where None.

    Returns
    -------
    grammar : CFG
        Rules ``S -> Qi``, ``Qi -> Ei Qj | Ei`` and ``Ei -> 'word'``, with one
        multinomial per multinomial of the model, so that the derivations of a sentence
        are its sequences of states (section 3 of Cohen and Smith, 2012).
    theta : Series of float
        Probabilities of the rules, in the order of ``grammar.rules``.

    Examples
    --------
    >>> from lpcfg_sk.cfg import entropy, hmm_to_cfg
    >>> grammar, theta = hmm_to_cfg(
    ...     [1.0, 0.0], [[0.5, 0.3], [0.2, 0.6]], [[0.9, 0.1], [0.4, 0.6]],
    ...     stop=[0.2, 0.2], words=["a", "b"])
    >>> print(grammar)
    S -> Q0 | Q1
    Q0 -> E0 Q0 | E0 Q1 | E0
    E0 -> 'a' | 'b'
    Q1 -> E1 Q0 | E1 Q1 | E1
    E1 -> 'a' | 'b'
    >>> round(entropy(grammar, theta), 4)
    7.3491
    """
    initial, transition, emission, stop = (
        np.asarray(x, dtype=float) for x in (initial, transition, emission, stop)
    )
    n, n_words = len(initial), emission.shape[-1]
    words = [str(i) for i in range(n_words)] if words is None else list(words)
    for name, values, shape in (
        ("initial", initial, (n,)),
        ("transition", transition, (n, n)),
        ("emission", emission, (n, len(words))),
        ("stop", stop, (n,)),
    ):
        if values.shape != shape or not (values >= 0).all():
            raise ValueError(
                f"{name} must have shape {shape} and no negative entries, got shape "
                f"{values.shape}"
            )
    for name, totals in (
        ("initial", initial.sum(keepdims=True)),
        ("transition and stop", transition.sum(axis=1) + stop),
        ("emission", emission.sum(axis=1)),
    ):
        if not np.allclose(totals, 1, rtol=0, atol=1e-8):
            raise ValueError(f"probabilities of {name} must sum to one, got {totals}")
    theta = {}
    for i in range(n):
        theta[Rule("S", (f"Q{i}",), (False,))] = initial[i]
    for i in range(n):
        for j in range(n):
            theta[Rule(f"Q{i}", (f"E{i}", f"Q{j}"), (False, False))] = transition[i, j]
        theta[Rule(f"Q{i}", (f"E{i}",), (False,))] = stop[i]
        for word, value in zip(words, emission[i], strict=True):
            theta[Rule(f"E{i}", (word,), (True,))] = value
    grammar = CFG(theta)
    values = [theta[rule] for rule in grammar.rules]
    return grammar, pd.Series(values, [str(r) for r in grammar.rules], name="theta")
