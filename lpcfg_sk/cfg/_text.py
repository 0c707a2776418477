"""Context-free grammars as text: one left-hand side a line."""

import re

__all__ = ["quoted", "read_productions"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#.*)|(?P<arrow>->)|(?P<bar>\|)"""
    r"""|'(?P<single>(?:[^'\\]|\\.)+)'|"(?P<double>(?:[^"\\]|\\.)+)\""""
    r"""|(?P<symbol>[^\s|'"]+))"""
)

# How nltk.PCFG writes the probability of a rule.
_PROBABILITY = re.compile(r"\[[\d.]+(?:[eE][-+]?\d+)?\]")


def read_productions(text):
    """Read the rules of a grammar.

    Parameters
    ----------
    text : str
        Lines ``A -> B C | 'word' D``; ``#`` starts a comment.

    Returns
    -------
    productions : list of (lhs, rhs)
        In order; a right-hand side is a list of pairs (symbol, whether it is quoted).

    Examples
    --------
    >>> from lpcfg_sk.cfg._text import read_productions
    >>> read_productions("S -> A 'x'")
    [('S', [('A', False), ('x', True)])]
    """
    productions = []
    for number, line in enumerate(text.splitlines(), start=1):
        tokens = _tokens(line, number)
        if not tokens:
            continue
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
            raise ValueError(
                f"line {number}: an empty right-hand side in {line.strip()!r}"
            )
        productions.extend((tokens[0][0], side) for side in sides)
    return productions


def quoted(symbol):
    """Write a terminal so that it is read as one."""
    return "'" + symbol.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _tokens(line, number):
    """Split a line into (text, quoted) pairs."""
    tokens, at = [], 0
    line = line.rstrip()
    while at < len(line):
        match = _TOKEN.match(line, at)
        if match is None:
            rest = line[at:].lstrip()
            column = len(line) - len(rest) + 1
            raise ValueError(
                f"line {number}, column {column}: cannot read {rest!r}; "
                "is a quote left open?"
            )
        at = match.end()
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
