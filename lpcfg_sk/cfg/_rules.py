"""Context-free rules, read from text and from trees."""

import re
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np

__all__ = ["Rule", "count_productions", "read_rules", "rules_by_lhs"]

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
        warnings.warn(
            "these symbols have no rules and are taken as terminals, though they are "
            f"not quoted as others are: {', '.join(terminals[:8])}; quote them, or "
            "give them rules",
            stacklevel=4,
        )


def count_productions(treebank):
    """Count the rules of all trees; rows without a tree are passed over.

    Parameters
    ----------
    treebank : Treebank
        Trees with nodes of any number of children.

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
    token = treebank.token[treebank.token_offsets[tree] + treebank.start]
    # Terminals are numbered after the labels.
    symbol = np.where(label >= 0, label, n_labels + token)
    # Right-hand sides repeat so much that a dictionary of id tuples is small; only
    # distinct ones become strings.
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
        zip(label[pairs].tolist(), (token[pairs] + n_labels).tolist(), strict=True)
    )
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
    labels = [names[i] for i in occurring[np.argsort(place)].tolist()]
    roots = Counter(names[i] for i in label[treebank.node_offsets[:-1]])
    return counts, labels, roots
