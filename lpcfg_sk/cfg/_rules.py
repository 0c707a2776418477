"""Context-free rules: read from text, and as tables for kernels."""

import re
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._cfg_chains import UnaryChains
from lpcfg_sk._kernels._cfg_inside import CFGTables, RuleWeights
from lpcfg_sk._ragged import offsets
from lpcfg_sk._warnings import warn_caller

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#.*)|(?P<arrow>->)|(?P<bar>\|)"""
    r"""|'(?P<single>(?:[^'\\]|\\.)+)'|"(?P<double>(?:[^"\\]|\\.)+)\""""
    r"""|(?P<symbol>[^\s|'"]+))"""
)

# How nltk.PCFG writes the probability of a rule.
_PROBABILITY = re.compile(r"\[[\d.]+(?:[eE][-+]?\d+)?\]")


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
        return f"{self.lhs} -> {self._rhs_text()}"

    def _rhs_text(self):
        return " ".join(
            "'" + symbol.replace("\\", "\\\\").replace("'", "\\'") + "'"
            if terminal
            else symbol
            for symbol, terminal in zip(self.rhs, self.terminal, strict=True)
        )

    def _nonterminals(self):
        """Nonterminals of the right-hand side."""
        if self.terminal == (True,):
            return []
        return [s for s, t in zip(self.rhs, self.terminal, strict=True) if not t]


def rules_by_lhs(rules):
    """Group rules by their left-hand sides.

    Parameters
    ----------
    rules : iterable of Rule
        The rules.

    Returns
    -------
    groups : dict of str to ndarray of int
        Numbers of the rules of each nonterminal.
    """
    groups = {}
    for index, rule in enumerate(rules):
        groups.setdefault(rule.lhs, []).append(index)
    return {lhs: np.array(group) for lhs, group in groups.items()}


def read_rules(text):
    """Read the rules of a grammar, one left-hand side per line.

    Parameters
    ----------
    text : str
        Lines ``A -> B C | 'word' D``; ``#`` starts a comment.

    Returns
    -------
    rules : list of Rule
        In the order of the text. A symbol is a terminal if it is quoted or has no
        rules.

    Examples
    --------
    >>> from lpcfg_sk.cfg._rules import read_rules
    >>> read_rules("S -> S 'x' | 'y'")[0]
    Rule(lhs='S', rhs=('S', 'x'), terminal=(False, True))
    """
    productions = []
    for number, line in enumerate(text.splitlines(), start=1):
        productions.extend(_read_line(line, number))
    heads = {lhs for lhs, _ in productions}
    _warn_of_unquoted([s for _, side in productions for s in side], heads)
    return [
        Rule(
            lhs,
            tuple(symbol for symbol, _ in side),
            tuple(is_quoted or symbol not in heads for symbol, is_quoted in side),
        )
        for lhs, side in productions
    ]


def _read_line(line, number):
    """Read one line into pairs (lhs, list of (symbol, whether it is quoted))."""
    tokens = _tokens(line, number)
    if not tokens:
        return []
    if len(tokens) < 2 or tokens[1] != ("->", False) or tokens[0][1]:
        raise ValueError(
            f"line {number}: expected 'A -> ...' with a nonterminal on the "
            f"left, got {line.strip()!r}"
        )
    sides = [[]]
    for symbol, is_quoted in tokens[2:]:
        if is_quoted or symbol not in ("|", "->"):
            sides[-1].append((symbol, is_quoted))
        elif symbol == "|":
            sides.append([])
        else:
            raise ValueError(f"line {number}: a second '->' in {line.strip()!r}")
    if not all(sides):
        raise ValueError(f"line {number}: an empty right-hand side in {line.strip()!r}")
    return [(tokens[0][0], side) for side in sides]


def _tokens(line, number):
    """Split a line into (text, quoted) pairs."""
    tokens, position = [], 0
    line = line.rstrip()
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            rest = line[position:].lstrip()
            column = len(line) - len(rest) + 1
            raise ValueError(
                f"line {number}, column {column}: cannot read {rest!r}; "
                "is a quote left open?"
            )
        position = match.end()
        if match["comment"] is not None:
            break
        terminal = match["single"] or match["double"]
        if terminal is not None:
            tokens.append((re.sub(r"\\(.)", r"\1", terminal), True))
            continue
        symbol = match["arrow"] or match["bar"] or match["symbol"]
        if _PROBABILITY.fullmatch(symbol):
            raise ValueError(
                f"line {number}: {symbol!r} in {line.strip()!r} is the probability of "
                "a rule; probabilities are learnt, leave them out (or quote the "
                "symbol if it is a terminal)"
            )
        tokens.append((symbol, False))
    return tokens


def _warn_of_unquoted(symbols, heads):
    if not any(is_quoted for _, is_quoted in symbols):
        return
    bare = dict.fromkeys(s for s, is_quoted in symbols if not is_quoted)
    terminals = [s for s in bare if s not in heads]
    if terminals:
        warn_caller(
            "these symbols have no rules and are taken as terminals, though they are "
            f"not quoted as others are: {', '.join(terminals[:8])}; quote them, or "
            "give them rules"
        )


def make_tables(grammar):
    """Number the symbols of a grammar and lay out its rules.

    Parameters
    ----------
    grammar : CFG
        Any grammar.

    Returns
    -------
    tables : CFGTables
    """
    nonterminal = {s: i for i, s in enumerate(grammar.nonterminals)}
    n_nonterminals = len(nonterminal)
    terminal = {s: n_nonterminals + i for i, s in enumerate(grammar.terminals)}
    n_symbols = n_nonterminals + len(terminal)
    sides = [
        tuple(
            terminal[s] if t else nonterminal[s]
            for s, t in zip(rule.rhs, rule.terminal, strict=True)
        )
        for rule in grammar.rules
    ]
    items = _trie(sides, n_symbols)
    trie = sorted((item, prefix) for prefix, item in items.items() if len(prefix) > 1)
    trie_left = [items[prefix[:-1]] for _, prefix in trie]
    trie_right = [prefix[-1] for _, prefix in trie]
    n_items = n_symbols + len(trie)
    lhs = np.array([nonterminal[rule.lhs] for rule in grammar.rules], dtype=np.int32)
    item = np.array([items[side] for side in sides], dtype=np.int32)
    rules = np.arange(len(lhs), dtype=np.int32)
    is_unary, is_trie = item < n_nonterminals, item >= n_symbols
    is_word = ~is_unary & ~is_trie
    done_offset, done_rule = _group(
        item[is_trie] - n_symbols, rules[is_trie], len(trie)
    )
    word_offset, word_rule = _group(
        item[is_word] - n_nonterminals, rules[is_word], len(terminal)
    )
    left_offset = np.searchsorted(trie_left, np.arange(n_items + 1)).astype(np.int64)
    adds_nonterminal = np.array(trie_right, dtype=np.int64) < n_nonterminals
    before = offsets(adds_nonterminal)
    key = item.astype(np.int64) * n_nonterminals + lhs
    order = np.argsort(key, kind="stable")
    return CFGTables(
        n_nonterminals=n_nonterminals,
        n_terminals=len(terminal),
        start=nonterminal[grammar.start],
        left_offset=left_offset,
        terminal_offset=left_offset[:-1] + np.diff(before[left_offset]),
        trie_left=np.array(trie_left, dtype=np.int32),
        trie_right=np.array(trie_right, dtype=np.int32),
        rule_lhs=lhs,
        rule_item=item,
        done_offset=done_offset,
        done_rule=done_rule,
        word_offset=word_offset,
        word_rule=word_rule,
        unary_rule=rules[is_unary],
        unary_lhs=lhs[is_unary],
        unary_child=item[is_unary],
        begins=_begins(lhs, [side[0] for side in sides], n_nonterminals, n_symbols),
        lookup_key=key[order],
        lookup_rule=rules[order],
    )


def rule_weights(tables, theta):
    """Return probabilities of rules, and sums over all chains of unary rules.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    theta : ndarray of float64, shape (n_rules,)
        Rule probabilities.

    Returns
    -------
    weights : RuleWeights
        The weight of the chains from A to B is entry (A, B) of (I - U)⁻¹, where U holds
        the probabilities of A → B.

    Raises
    ------
    ValueError
        If the sum diverges.
    """
    n = tables.n_nonterminals
    step = np.zeros((n, n))
    np.add.at(step, (tables.unary_lhs, tables.unary_child), theta[tables.unary_rule])
    radius = np.abs(np.linalg.eigvals(step)).max(initial=0.0)
    useful = useful_nonterminals(tables, theta) if radius >= 1 - 1e-12 else None
    if useful is not None and useful[tables.start]:
        # Cycles that no derivation of a sentence contains have no part in the sum.
        step[~useful] = 0.0
        radius = np.abs(np.linalg.eigvals(step)).max(initial=0.0)
    if radius >= 1 - 1e-12:
        raise ValueError(
            "the probabilities of the unary rules leave a cycle of them with "
            f"probability one (spectral radius {radius:.6g}): the sum over derivations "
            "diverges; remove the cycle from the grammar"
        )
    total = np.linalg.inv(np.eye(n) - step)
    # Rounding must not give weight to chains that do not exist.
    possible = _transitive(step > 0)
    total = np.where(possible, np.maximum(total, 0.0), 0.0)
    return _with_chains(theta, total, total != 0)


def useful_nonterminals(tables, theta):
    """Find the nonterminals of derivations of positive probability.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    theta : ndarray of float64, shape (n_rules,)
        Rule probabilities; rules of probability zero are not used.

    Returns
    -------
    ndarray of bool, shape (N,)
        Whether the start symbol derives a string of terminals by way of the
        nonterminal.
    """
    n_symbols = tables.n_nonterminals + tables.n_terminals
    trie = n_symbols + np.arange(len(tables.trie_left))
    lhs, item = tables.rule_lhs, tables.rule_item
    generating = np.zeros(n_symbols + len(trie), dtype=bool)
    generating[tables.n_nonterminals : n_symbols] = True

    def upward(mask):
        mask[trie] = mask[tables.trie_left] & mask[tables.trie_right]
        mask[lhs[(theta > 0) & mask[item]]] = True

    _until_nothing_is_new(generating, upward)
    used = (theta > 0) & generating[item]
    reached = np.zeros_like(generating)
    reached[tables.start] = True

    def downward(mask):
        mask[item[used & mask[lhs]]] = True
        for part in (tables.trie_left, tables.trie_right):
            mask[part[mask[trie]]] = True

    _until_nothing_is_new(reached, downward)
    return (generating & reached)[: tables.n_nonterminals]


def _until_nothing_is_new(mask, step):
    count = -1
    while mask.sum() > count:
        count = mask.sum()
        step(mask)


def best_chains(tables, log_theta):
    """Return scores of rules, and of the best chains of unary rules.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    log_theta : ndarray of float64, shape (n_rules,)
        Rule scores, at most zero; -inf forbids a rule.

    Returns
    -------
    weights : RuleWeights
        Scores of the rules and of the best chain from each A to each B.
    chains : UnaryChains
        The symbols of these chains.
    """
    n = tables.n_nonterminals
    best = np.full((n, n), -np.inf)
    hop = np.full((n, n), -1, dtype=np.int32)
    scores = log_theta[tables.unary_rule]
    for lhs, child, score in zip(
        tables.unary_lhs.tolist(), tables.unary_child.tolist(), scores, strict=True
    ):
        if lhs != child and score > best[lhs, child]:
            best[lhs, child] = score
            hop[lhs, child] = child
    np.fill_diagonal(best, 0.0)
    for via in range(n):
        through = best[:, via, None] + best[None, via, :]
        better = through > best
        best = np.where(better, through, best)
        hop = np.where(better, hop[:, via, None], hop)
    chains = UnaryChains(
        next_hop=np.ascontiguousarray(hop),
        order=np.zeros(0, dtype=np.int32),
        component=np.zeros(1, dtype=np.int64),
        exit_offset=np.zeros(1, dtype=np.int64),
        exit_child=np.zeros(0, dtype=np.int32),
    )
    return _with_chains(log_theta, best, np.isfinite(best)), chains


def rewarded_chains(tables, log_theta):
    """Return the rules and chains of unary rules where only constituents have scores.

    Parameters
    ----------
    tables : CFGTables
        The grammar.
    log_theta : ndarray of float64, shape (n_rules,)
        Rule scores; -inf forbids a rule, other values choose the chains within cycles
        of unary rules.

    Returns
    -------
    weights : RuleWeights
        Scores of zero, -inf for forbidden rules; the chains are those within
        components.
    chains : UnaryChains
        Components of the nonterminals, and the unary rules between them.
    """
    n = tables.n_nonterminals
    _, chains = best_chains(tables, log_theta)
    allowed = np.isfinite(log_theta[tables.unary_rule])
    lhs, child = tables.unary_lhs[allowed], tables.unary_child[allowed]
    step = np.zeros((n, n), dtype=bool)
    step[lhs, child] = True
    reaches = _transitive(step)
    together = reaches & reaches.T
    # A symbol reaches more symbols than any symbol of a lower component does.
    first = together.argmax(axis=1)
    order = np.lexsort((np.arange(n), first, reaches.sum(axis=1)))
    begins = np.flatnonzero(np.diff(first[order], prepend=-1))
    between = ~together[lhs, child]
    exit_offset, exit_child = _group(lhs[between], child[between], n)
    weights = _with_chains(
        np.where(np.isfinite(log_theta), 0.0, -np.inf),
        np.zeros((n, n)),
        together,
    )
    return weights, chains._replace(
        order=order.astype(np.int32),
        component=np.append(begins, n),
        exit_offset=exit_offset,
        exit_child=exit_child,
    )


def _with_chains(rule, chain, exists):
    """Group the chains of a matrix (A, B) by their lower ends B."""
    bottom, top = np.nonzero(exists.T)
    return RuleWeights(
        rule=rule,
        chain_offset=np.searchsorted(bottom, np.arange(len(chain) + 1)).astype(
            np.int64
        ),
        chain_top=top.astype(np.int32),
        chain=chain[top, bottom],
    )


def _trie(sides, n_symbols):
    """Number all prefixes of two or more symbols so that left items ascend."""
    items = {(s,): s for s in range(n_symbols)}
    level = {side[:2] for side in sides if len(side) > 1}
    length = 2
    while level:
        for prefix in sorted(level, key=lambda p: (items[p[:-1]], p[-1])):
            items[prefix] = len(items)
        length += 1
        level = {side[:length] for side in sides if len(side) >= length}
    return items


def _begins(lhs, corner, n_nonterminals, n_symbols):
    """Left-corner relation between nonterminals and terminals."""
    direct = np.zeros((n_nonterminals, n_symbols), dtype=bool)
    direct[lhs, corner] = True
    above = _transitive(direct[:, :n_nonterminals])
    # Products of booleans are slow; sums of so few ones are exact.
    below = direct[:, n_nonterminals:].astype(np.float32)
    return above.astype(np.float32) @ below > 0


def _group(keys, values, n):
    order = np.argsort(keys, kind="stable")
    offset = np.searchsorted(keys[order], np.arange(n + 1)).astype(np.int64)
    return offset, values[order]


def _transitive(step):
    possible = step | np.eye(len(step), dtype=bool)
    for via in range(len(step)):
        possible |= possible[:, via, None] & possible[None, via, :]
    return possible
