"""Charts and decoders by enumeration of all trees, and by plain dictionaries."""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from lpcfg_sk import LPCFG


class Parse(NamedTuple):
    """A binary tree over a sentence: items (label, start, stop) in preorder."""

    items: tuple
    rules: tuple
    vector: np.ndarray
    best: np.ndarray


def random_grammar(rng, *, max_states=4, density=0.5, words="xyz"):
    """Grammar whose label C stands both over words and over two children."""
    wide, tags = ["A", "B", "C"], ["C", "D", "E"]
    m = {a: int(rng.integers(1, max_states + 1)) for a in "ABCDE"}
    labels = sorted(m)
    binary = {
        (a, b, c): rng.random((m[a], m[b], m[c])) / 4
        for a, b, c in product(wide, labels, labels)
        if rng.random() < density
    }
    binary["A", "D", "E"] = rng.random((m["A"], m["D"], m["E"]))
    binary["A", "A", "E"] = rng.random((m["A"], m["A"], m["E"]))
    lexical = {(a, x): rng.random(m[a]) for a, x in product(tags, words)}
    root = {a: rng.random(m[a]) for a in ("A", "C")}
    return LPCFG.from_parameters(binary, lexical, root)


def random_transforms(rng, grammar):
    """Well-conditioned invertible matrices, which make parameters signed."""
    return {
        a: np.linalg.qr(rng.standard_normal((m, m)))[0] @ np.diag(rng.uniform(1, 2, m))
        for a, m in grammar.m.items()
    }


def all_parses(grammar, sentence):
    """List of (Parse, value) of all trees of a sentence."""
    n = len(sentence)
    chart = {}
    for i, word in enumerate(sentence):
        for (a, x), vector in grammar.lexical.items():
            if x == word:
                rule = ((a, x, i),)
                chart.setdefault((a, i, i + 1), []).append(
                    Parse(((a, i, i + 1),), rule, vector, vector)
                )
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            for (a, b, c), tensor in grammar.binary.items():
                for k in range(i + 1, j):
                    for left, right in product(
                        chart.get((b, i, k), ()), chart.get((c, k, j), ())
                    ):
                        chart.setdefault((a, i, j), []).append(
                            Parse(
                                ((a, i, j), *left.items, *right.items),
                                ((a, b, c, i, k, j), *left.rules, *right.rules),
                                np.einsum(
                                    "abc,b,c->a", tensor, left.vector, right.vector
                                ),
                                _largest(tensor, left.best, right.best),
                            )
                        )
    return [
        (parse, float(vector @ parse.vector))
        for a, vector in grammar.root.items()
        for parse in chart.get((a, 0, n), ())
    ]


def _largest(tensor, left, right):
    products = tensor * left[:, None] * right[None, :]
    return products.reshape(len(tensor), -1).max(axis=1)


def item_values(parses):
    """Sum of the values of the trees that hold each item."""
    total = {}
    for parse, value in parses:
        for item in parse.items:
            total[item] = total.get(item, 0.0) + value
    return total


def rule_values(parses):
    """Sum of the values of the trees that hold each rule at its place."""
    total = {}
    for parse, value in parses:
        for rule in parse.rules:
            total[rule] = total.get(rule, 0.0) + value
    return total


def max_marginal(parses):
    """Score of the best tree by the sum of item posteriors."""
    z = sum(value for _, value in parses)
    mu = item_values(parses)
    return max(sum(abs(mu[item] / z) for item in parse.items) for parse, _ in parses)


def max_rule_scores(parses):
    """Log product of rule posteriors of each tree, the root's among them."""
    z = sum(value for _, value in parses)
    rules, items = rule_values(parses), item_values(parses)
    return [
        np.log(items[parse.items[0]] / z)
        + sum(np.log(rules[rule] / z) for rule in parse.rules)
        for parse, _ in parses
    ]


def viterbi(grammar, parses):
    """Probability of the best derivation with latent states of each tree."""
    return [
        float(np.max(grammar.root[parse.items[0][0]] * parse.best))
        for parse, _ in parses
    ]


def best_bracket_score(n, weight, penalty):
    """Largest sum of weight − penalty over sets of brackets that do not cross.

    `weight` maps (label, start, stop) to a number. All spans but those of one word
    and of the whole sentence are tried in and out.
    """
    gain = {}
    for (_, i, j), value in weight.items():
        gain[i, j] = gain.get((i, j), 0.0) + max(value - penalty, 0.0)
    free = sum(g for (i, j), g in gain.items() if j - i == 1)
    whole = [v - penalty for (_, i, j), v in weight.items() if (i, j) == (0, n)]
    if n > 1:
        free += gain[0, n] if gain[0, n] > 0 else max(whole)
    inner = [
        (i, j)
        for i in range(n)
        for j in range(i + 2, n + 1)
        if j - i < n and gain.get((i, j), 0.0) > 0
    ]
    best = 0.0
    for size in range(len(inner) + 1):
        for chosen in combinations(inner, size):
            if not any(_cross(s, t) for s, t in combinations(chosen, 2)):
                best = max(best, sum(gain[s] for s in chosen))
    return free + best


def _cross(s, t):
    return s[0] < t[0] < s[1] < t[1] or t[0] < s[0] < t[1] < s[1]


def pcfg_inside_outside(grammar, sentence):
    """Inside and outside values of a plain PCFG by nested loops over dictionaries."""
    n = len(sentence)
    alpha, beta = {}, {}
    for i, word in enumerate(sentence):
        for (a, x), vector in grammar.lexical.items():
            if x == word:
                alpha[a, i, i + 1] = float(vector[0])
    rules = [(a, b, c, float(t[0, 0, 0])) for (a, b, c), t in grammar.binary.items()]
    places = [
        (i, k, i + width)
        for width in range(2, n + 1)
        for i in range(n - width + 1)
        for k in range(i + 1, i + width)
    ]
    for i, k, j in places:
        for a, b, c, p in rules:
            value = p * alpha.get((b, i, k), 0.0) * alpha.get((c, k, j), 0.0)
            if value:
                alpha[a, i, j] = alpha.get((a, i, j), 0.0) + value
    for a, vector in grammar.root.items():
        beta[a, 0, n] = float(vector[0])
    for i, k, j in reversed(places):
        for a, b, c, p in rules:
            above = p * beta.get((a, i, j), 0.0)
            left, right = alpha.get((b, i, k), 0.0), alpha.get((c, k, j), 0.0)
            if above and right:
                beta[b, i, k] = beta.get((b, i, k), 0.0) + above * right
            if above and left:
                beta[c, k, j] = beta.get((c, k, j), 0.0) + above * left
    return alpha, beta


def label_frequencies(grammar, depth=200):
    """Expected number of nodes of each label in a tree of a plain PCFG, by levels."""
    rules = [(a, b, c, float(t[0, 0, 0])) for (a, b, c), t in grammar.binary.items()]
    level = {a: float(vector[0]) for a, vector in grammar.root.items()}
    total = dict(level)
    for _ in range(depth):
        below = {}
        for a, b, c, p in rules:
            mass = level.get(a, 0.0) * p
            below[b] = below.get(b, 0.0) + mass
            below[c] = below.get(c, 0.0) + mass
        level = below
        for a, mass in level.items():
            total[a] = total.get(a, 0.0) + mass
        if not 1e-12 * sum(total.values()) < sum(level.values()) < 1e100:
            break
    return total


def edge_tags(grammar, edge):
    """Expected number of visits of each tag on the left (0) or right (1) spine."""
    rules = [(x, float(t[0, 0, 0])) for x, t in grammar.binary.items()]
    total = {a: sum(p for x, p in rules if x[0] == a) for a in grammar.nonterminals}
    tags = {a for a, _ in grammar.lexical}
    visits = {(a, a): 1.0 for a in tags}
    level = dict(visits)
    while sum(level.values()) > 1e-13 * sum(visits.values()):
        above = {}
        for rule, p in rules:
            step = p * (1 - 1e-6) / max(total[rule[0]], 1.0)
            for t in tags:
                mass = step * level.get((rule[1 + edge], t), 0.0)
                above[rule[0], t] = above.get((rule[0], t), 0.0) + mass
        level = above
        for key, mass in level.items():
            visits[key] = visits.get(key, 0.0) + mass
    return visits


def beside(grammar, edge):
    """Expected number of pairs of a node and a tag before (0) or behind (1) it.

    None stands for the beginning and the end of the sentence.
    """
    rules = [(x, float(t[0, 0, 0])) for x, t in grammar.binary.items()]
    total = {a: sum(p for x, p in rules if x[0] == a) for a in grammar.nonterminals}
    frequency, visits = label_frequencies(grammar), edge_tags(grammar, 1 - edge)
    tags = {a for a, _ in grammar.lexical}
    pairs = {(a, None): float(vector[0]) for a, vector in grammar.root.items()}
    for rule, p in rules:
        node, sister = (rule[2], rule[1]) if edge == 0 else (rule[1], rule[2])
        for t in tags:
            mass = frequency.get(rule[0], 0.0) * p * visits.get((sister, t), 0.0)
            pairs[node, t] = pairs.get((node, t), 0.0) + mass
    level = dict(pairs)
    while sum(level.values()) > 1e-13 * sum(pairs.values()):
        below = {}
        for rule, p in rules:
            step = p * (1 - 1e-6) / max(total[rule[0]], 1.0)
            for t in (*tags, None):
                key = (rule[1 + edge], t)
                below[key] = below.get(key, 0.0) + step * level.get((rule[0], t), 0.0)
        level = below
        for key, mass in level.items():
            pairs[key] = pairs.get(key, 0.0) + mass
    return pairs


def estimated_outside(grammar, sentence):
    """Outside values by a hidden Markov model, over the sentence's probability."""
    n, frequency = len(sentence), label_frequencies(grammar)
    before, after = beside(grammar, 0), beside(grammar, 1)
    first, tags = edge_tags(grammar, 0), sorted({a for a, _ in grammar.lexical})
    often = {c: frequency.get(c) or 1.0 for c in grammar.nonterminals} | {None: 1.0}
    follows = {
        (c, d): after.get((c, d), 0.0) / often[c] for c in tags for d in (*tags, None)
    }
    for d in tags:
        follows[None, d] = sum(
            float(v[0]) * first.get((a, d), 0.0) for a, v in grammar.root.items()
        )

    def emit(tag, i):
        return float(grammar.lexical[tag, sentence[i]][0])

    forward, backward = [{None: 1.0}], [{None: 1.0}]
    for i in range(n):
        forward.append(
            {
                d: emit(d, i) * sum(x * follows[c, d] for c, x in forward[i].items())
                for d in tags
            }
        )
    for i in reversed(range(n)):
        backward.insert(
            0,
            {
                c: emit(c, i) * sum(x * follows[c, d] for d, x in backward[0].items())
                for c in tags
            },
        )
    total = sum(x * follows[c, None] for c, x in forward[n].items())

    def outside(a, i, j):
        left = {c: before.get((a, c), 0.0) / often[c] for c in forward[i]}
        right = {d: after.get((a, d), 0.0) / often[a] for d in backward[j]}
        value = sum(x * left[c] for c, x in forward[i].items())
        return value * sum(x * right[d] for d, x in backward[j].items()) / total

    return outside


def pruned_posteriors(grammar, sentence, threshold):
    """Posteriors of items as pruning estimates them; none where no tree is left."""
    n, estimate = len(sentence), estimated_outside(grammar, sentence)
    rules = [(a, b, c, float(t[0, 0, 0])) for (a, b, c), t in grammar.binary.items()]
    inside = {}

    def keep(values, i, j):
        merit = {a: value * estimate(a, i, j) for a, value in values.items()}
        smallest = 0.1 * threshold * max(merit.values(), default=0.0)
        for a, value in values.items():
            if value > 0.0 and merit[a] >= max(smallest, threshold / 100):
                inside[a, i, j] = value

    for i, word in enumerate(sentence):
        own = {a: float(v[0]) for (a, x), v in grammar.lexical.items() if x == word}
        keep(own, i, i + 1)
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            values = {}
            for a, b, c, p in rules:
                for k in range(i + 1, i + width):
                    both = inside.get((b, i, k), 0.0)
                    both *= inside.get((c, k, i + width), 0.0)
                    values[a] = values.get(a, 0.0) + p * both
            keep(values, i, i + width)
    root = {(a, 0, n): float(vector[0]) for a, vector in grammar.root.items()}
    total = sum(inside.get(item, 0.0) * weight for item, weight in root.items())
    if total == 0.0:
        return {}
    outside = {item: root.get(item, 0.0) for item in inside}
    for item in sorted(inside, key=lambda item: item[1] - item[2]):
        a, i, j = item
        if inside[item] * outside[item] <= 0.1 * threshold * total:
            continue
        for parent, b, c, p in rules:
            for k in range(i + 1, j) if parent == a else ():
                left, right = (b, i, k), (c, k, j)
                if left in inside and right in inside:
                    outside[left] += outside[item] * p * inside[right]
                    outside[right] += outside[item] * p * inside[left]
    return {item: inside[item] * outside[item] / total for item in inside}


def expected_rule_counts(grammar, sentence):
    """Expected counts of binary rules with states, by inside-outside on dictionaries.

    The full chart of the sentence is filled with plain loops; Σ β ⊗ T ⊗ α ⊗ α / Z.
    """
    n = len(sentence)
    alpha = {
        (a, i, i + 1): vector
        for i, word in enumerate(sentence)
        for (a, x), vector in grammar.lexical.items()
        if x == word
    }
    places = [
        (i, k, i + width)
        for width in range(2, n + 1)
        for i in range(n - width + 1)
        for k in range(i + 1, i + width)
    ]
    edges = [(i, k, j, *rule) for i, k, j in places for rule in grammar.binary]
    for i, k, j, a, b, c in edges:
        if (b, i, k) in alpha and (c, k, j) in alpha:
            new = np.einsum(
                "abc,b,c->a", grammar.binary[a, b, c], alpha[b, i, k], alpha[c, k, j]
            )
            alpha[a, i, j] = alpha.get((a, i, j), 0.0) + new
    beta = {(a, 0, n): vector for a, vector in grammar.root.items()}
    z = sum(v @ alpha[a, 0, n] for a, v in grammar.root.items() if (a, 0, n) in alpha)
    counts = {rule: np.zeros(np.shape(t)) for rule, t in grammar.binary.items()}
    for i, k, j, a, b, c in reversed(edges):
        left, right = alpha.get((b, i, k)), alpha.get((c, k, j))
        if (a, i, j) not in beta or left is None or right is None:
            continue
        part = np.einsum("a,abc->abc", beta[a, i, j], grammar.binary[a, b, c])
        counts[a, b, c] += part * np.multiply.outer(left, right) / z
        for item, below in (
            ((b, i, k), np.einsum("abc,c->b", part, right)),
            ((c, k, j), np.einsum("abc,b->c", part, left)),
        ):
            beta[item] = beta.get(item, 0.0) + below
    return counts


def enumerated_rule_counts(grammar, sentence):
    """The same over all trees and all assignments of states, one by one."""
    counts = {rule: np.zeros(np.shape(t)) for rule, t in grammar.binary.items()}
    z, m = 0.0, grammar.m
    for parse, _ in all_parses(grammar, sentence):
        items = parse.items
        place = {item: number for number, item in enumerate(items)}
        for states in product(*(range(m[a]) for a, _, _ in items)):
            value = grammar.root[items[0][0]][states[0]]
            used = []
            for rule in parse.rules:
                if len(rule) == 3:
                    a, x, i = rule
                    value *= grammar.lexical[a, x][states[place[a, i, i + 1]]]
                    continue
                a, b, c, i, k, j = rule
                cell = tuple(
                    states[place[item]] for item in ((a, i, j), (b, i, k), (c, k, j))
                )
                value *= grammar.binary[a, b, c][cell]
                used.append(((a, b, c), cell))
            z += value
            for rule, cell in used:
                counts[rule][cell] += value
    return {rule: count / z for rule, count in counts.items()}
