import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np

from lpcfg_sk.cfg._text import quoted, read_productions

__all__ = ["CFG", "Rule"]


class Rule(NamedTuple):
    """A context-free rule.

    Attributes
    ----------
    lhs : str
        The nonterminal that is rewritten.
    rhs : tuple of str
        The symbols that it is rewritten to.
    terminal : tuple of bool
        Which of these symbols are terminals.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> rule = CFG.from_string("S -> 'a' S | 'b'").rules[0]
    >>> rule.lhs, rule.rhs, rule.terminal
    ('S', ('a', 'S'), (True, False))
    >>> print(rule)
    S -> 'a' S
    """

    lhs: str
    rhs: tuple
    terminal: tuple

    def __str__(self):
        symbols = (
            quoted(s) if t else s for s, t in zip(self.rhs, self.terminal, strict=True)
        )
        return f"{self.lhs} -> {' '.join(symbols)}"


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
        Whether the start symbol is no node of the trees: a tree's root is then what
        the start symbol rewrites to.

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
        by_lhs = {}
        for rule in rules:
            if not rule.rhs:
                raise ValueError(
                    f"rule {rule.lhs} -> (nothing) has an empty right-hand side; "
                    "remove empty rules from the grammar first"
                )
            by_lhs.setdefault(rule.lhs, {})[rule] = None
        self.rules = tuple(rule for group in by_lhs.values() for rule in group)
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
        """Read a grammar, one left-hand side a line.

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
        raw = read_productions(text)
        heads = {lhs for lhs, _ in raw}
        rules = [
            Rule(
                lhs,
                tuple(s for s, _ in side),
                tuple(quoted or s not in heads for s, quoted in side),
            )
            for lhs, side in raw
        ]
        _warn_of_unquoted(raw, heads)
        return cls(rules, start, unary_cycles=unary_cycles)

    @classmethod
    def from_treebank(cls, treebank, *, unary_cycles="allow"):
        """Read off the rules of a treebank.

        Parameters
        ----------
        treebank : Treebank
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
        from lpcfg_sk.treebank import check_treebank
        from lpcfg_sk.treebank._sharded import ShardedTreebank, map_shards

        if isinstance(treebank, ShardedTreebank):
            counts, order, roots = {}, {}, Counter()
            for part in map_shards(_rules_of_trees, treebank):
                for rule, count in part[0].items():
                    counts[rule] = counts.get(rule, 0) + count
                for label in part[1]:
                    order.setdefault(label, len(order))
                roots.update(part[2])
            if not counts:
                raise ValueError("CFG.from_treebank needs at least one tree, got none")
        else:
            treebank = check_treebank(
                treebank, estimator="CFG.from_treebank", parsed=True
            )
            counts, order, roots = _rules_of_trees(treebank)
        start = next(iter(roots))
        rules = sorted(counts, key=lambda r: (order[r.lhs], -counts[r]))
        if len(roots) > 1:
            start = "START"
            while start in order:
                start += "'"
            tops = [Rule(start, (label,), (False,)) for label, _ in roots.most_common()]
            rules = tops + rules
        return cls(
            rules, start, unary_cycles=unary_cycles, implicit_start=len(roots) > 1
        )

    def __repr__(self):
        return (
            f"<CFG with {len(self.rules)} rules, {len(self.nonterminals)} "
            f"nonterminals, {len(self.terminals)} terminals, start {self.start!r}>"
        )

    def __str__(self):
        lines = {}
        for rule in self.rules:
            lines.setdefault(rule.lhs, []).append(str(rule).split(" -> ", 1)[1])
        return "\n".join(f"{lhs} -> {' | '.join(rhs)}" for lhs, rhs in lines.items())

    def __eq__(self, other):
        if not isinstance(other, CFG):
            return NotImplemented
        return (self.rules, self.start) == (other.rules, other.start)

    def __hash__(self):
        return hash((self.rules, self.start))

    def __getstate__(self):
        return {**self.__dict__, "_tables": None}

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
        from lpcfg_sk.cfg._binary_normal_form import BinaryNormalForm

        return BinaryNormalForm(self)

    def tables(self):
        """Integer tables that the kernels read, made once.

        Returns
        -------
        CFGTables
            Rules and symbols as arrays.
        """
        if self._tables is None:
            from lpcfg_sk.cfg._tables import make_tables

            self._tables = make_tables(self)
        return self._tables

    def _check_symbols(self):
        known = set(self.nonterminals)
        for rule in self.rules:
            for symbol, terminal in zip(rule.rhs, rule.terminal, strict=True):
                if not terminal and symbol not in known:
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
            warnings.warn(
                f"{len(useless)} nonterminals are useless (no terminal string, or not "
                f"reachable from {self.start!r}): {', '.join(useless[:8])}",
                stacklevel=4,
            )

    def _generating(self):
        """Nonterminals that derive a string of terminals, by a worklist."""
        missing, users, done = {}, {}, set()
        agenda = []
        for i, rule in enumerate(self.rules):
            below = {s for s, t in zip(rule.rhs, rule.terminal, strict=True) if not t}
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
        by_lhs = {}
        for rule in self.rules:
            by_lhs.setdefault(rule.lhs, []).append(rule)
        seen, agenda = {self.start}, [self.start]
        while agenda:
            for rule in by_lhs[agenda.pop()]:
                for symbol, terminal in zip(rule.rhs, rule.terminal, strict=True):
                    if not terminal and symbol not in seen:
                        seen.add(symbol)
                        agenda.append(symbol)
        return seen

    def _unary_cycle(self):
        """Symbols of a cycle of unary rules, or None."""
        below = {}
        for rule in self.rules:
            if len(rule.rhs) == 1 and not rule.terminal[0]:
                below.setdefault(rule.lhs, []).append(rule.rhs[0])
        state = {}
        for root in below:
            path, stack = [], [(root, iter(below.get(root, ())))]
            if root in state:
                continue
            state[root] = "open"
            path.append(root)
            while stack:
                node, children = stack[-1]
                child = next(children, None)
                if child is None:
                    state[node] = "done"
                    stack.pop()
                    path.pop()
                elif state.get(child) == "open":
                    return [*path[path.index(child) :], child]
                elif child not in state:
                    state[child] = "open"
                    path.append(child)
                    stack.append((child, iter(below.get(child, ()))))
        return None


def _as_rules(rules):
    rules = list(rules)
    heads = {rule[0] for rule in rules}
    return [
        rule
        if isinstance(rule, Rule)
        else Rule(rule[0], tuple(rule[1]), tuple(s not in heads for s in rule[1]))
        for rule in rules
    ]


def _warn_of_unquoted(productions, heads):
    symbols = [symbol for _, side in productions for symbol in side]
    if not any(is_quoted for _, is_quoted in symbols):
        return
    bare = dict.fromkeys(s for s, is_quoted in symbols if not is_quoted)
    terminals = [s for s in bare if s not in heads]
    if terminals:
        warnings.warn(
            "these symbols have no rules and are taken as terminals, though they are "
            f"not quoted as others are: {', '.join(terminals[:8])}; quote them, or "
            "give them rules",
            stacklevel=3,
        )


def _rules_of_trees(treebank):
    """Rules, labels and roots of trees; rows without a tree are passed over."""
    treebank = treebank[treebank.is_parsed]
    roots = Counter(
        treebank.labels[i] for i in treebank.label[treebank.node_offsets[:-1]]
    )
    return (*_productions(treebank), roots)


def _productions(treebank):
    """Count the rules of all trees; also give the order of the labels.

    Right-hand sides repeat so much that a dictionary of id tuples is small; only
    distinct ones become strings.
    """
    label = treebank.label
    tree = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
    token = treebank.token[treebank.token_offsets[tree] + treebank.start]
    n_labels = len(treebank.labels)
    leaf = treebank.size == 1
    # Terminals are numbered after the labels.
    symbol = np.where(label >= 0, label, n_labels + token)
    keys = Counter()
    has_parent = np.flatnonzero(treebank.parent >= 0)
    above = treebank.node_offsets[tree[has_parent]] + treebank.parent[has_parent]
    by_parent = has_parent[np.argsort(above, kind="stable")]
    parents, first, n_children = np.unique(
        above[np.argsort(above, kind="stable")], return_index=True, return_counts=True
    )
    children = symbol[by_parent].tolist()
    for lhs, lo, n in zip(
        label[parents].tolist(), first.tolist(), n_children.tolist(), strict=True
    ):
        keys[lhs, *children[lo : lo + n]] += 1
    pairs = leaf & (label >= 0)
    for key, count in Counter(
        zip(label[pairs].tolist(), (token[pairs] + n_labels).tolist(), strict=True)
    ).items():
        keys[key] += count
    names = (*treebank.labels.strings, *treebank.tokens.strings)
    counts = {
        Rule(
            names[lhs],
            tuple(names[s] for s in rhs),
            tuple(s >= n_labels for s in rhs),
        ): count
        for (lhs, *rhs), count in keys.items()
    }
    occurring, place = np.unique(label[label >= 0], return_index=True)
    ranked = occurring[np.argsort(place)].tolist()
    return counts, {names[i]: rank for rank, i in enumerate(ranked)}
