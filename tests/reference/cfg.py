"""Derivations of context-free grammars, one by one."""

import math
from collections import Counter


def derivations(grammar, sentence):
    """All derivations of a sentence, as nested (rule number, children) pairs.

    Unary rules must be acyclic.
    """
    by_lhs = {}
    for index, rule in enumerate(grammar.rules):
        by_lhs.setdefault(rule.lhs, []).append((index, rule))

    def of_symbol(symbol, words):
        for index, rule in by_lhs[symbol]:
            for children in of_sequence(rule.rhs, rule.terminal, words):
                yield index, children

    def of_sequence(symbols, terminal, words):
        if not symbols:
            if not words:
                yield ()
            return
        if len(words) < len(symbols):
            return
        if terminal[0]:
            if words[0] == symbols[0]:
                for rest in of_sequence(symbols[1:], terminal[1:], words[1:]):
                    yield (words[0], *rest)
            return
        for cut in range(1, len(words) - len(symbols) + 2):
            for first in of_symbol(symbols[0], words[:cut]):
                for rest in of_sequence(symbols[1:], terminal[1:], words[cut:]):
                    yield (first, *rest)

    return list(of_symbol(grammar.start, tuple(sentence)))


def rule_counts(derivation):
    """How often a derivation uses each rule."""
    index, children = derivation
    counts = Counter([index])
    for child in children:
        if not isinstance(child, str):
            counts += rule_counts(child)
    return counts


def probability(derivation, theta):
    """Product of the probabilities of the rules of a derivation."""
    return math.prod(theta[r] ** n for r, n in rule_counts(derivation).items())


def expected_counts(grammar, sentence, theta):
    """Probability of a sentence, and its expected rule counts, by enumeration."""
    total, counts = 0.0, [0.0] * len(grammar.rules)
    for derivation in derivations(grammar, sentence):
        p = probability(derivation, theta)
        total += p
        for rule, n in rule_counts(derivation).items():
            counts[rule] += p * n
    if total > 0:
        counts = [c / total for c in counts]
    return total, counts


def bracketed(grammar, derivation):
    """A derivation as a bracketed tree."""
    index, children = derivation
    parts = [c if isinstance(c, str) else bracketed(grammar, c) for c in children]
    return f"({grammar.rules[index].lhs} {' '.join(parts)})"


def constituents(grammar, derivation, begin=0):
    """Labelled spans of a derivation, and its end."""
    index, children = derivation
    spans, end = [], begin
    for child in children:
        if isinstance(child, str):
            end += 1
        else:
            below, end = constituents(grammar, child, end)
            spans.extend(below)
    return [(grammar.rules[index].lhs, begin, end), *spans], end


def sample(grammar, theta, rng, depth=12):
    """Draw a derivation; None where it grows deeper than `depth`."""

    def draw(symbol, depth):
        if depth == 0:
            return None
        options = [i for i, rule in enumerate(grammar.rules) if rule.lhs == symbol]
        weights = [theta[i] for i in options]
        index = options[rng.choice(len(options), p=weights)]
        rule, children = grammar.rules[index], []
        for s, terminal in zip(rule.rhs, rule.terminal, strict=True):
            child = s if terminal else draw(s, depth - 1)
            if child is None:
                return None
            children.append(child)
        return index, tuple(children)

    return draw(grammar.start, depth)
