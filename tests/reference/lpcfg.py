"""Slow, obvious L-PCFGs: sums over all annotations and over all trees."""

import itertools
from collections import Counter, defaultdict

import numpy as np

from lpcfg_sk import LPCFG, Tree

INNER = ("S", "X", "Y")
TAGS = ("P", "Q")
WORDS = ("u", "v", "w")

TOP = object()


def random_grammar(rng, *, signed=False, states=4, density=0.6):
    """Draw a grammar over three in-terminals and two pre-terminals.

    Probabilistic unless `signed`; numbers of states are drawn from 1 to `states`.
    """
    m = {a: int(rng.integers(1, states + 1)) for a in (*INNER, *TAGS)}
    draw = rng.standard_normal if signed else rng.random
    binary = {
        (a, b, c): draw((m[a], m[b], m[c]))
        for a in INNER
        for b in (*INNER, *TAGS)
        for c in (*INNER, *TAGS)
        if rng.random() < density * (1.0 if {b, c} <= set(TAGS) else 0.3)
    }
    for a in INNER:
        binary[a, "P", "Q"] = draw((m[a], m["P"], m["Q"]))
    lexical = {(a, x): draw(m[a]) for a in TAGS for x in WORDS}
    root = {"S": draw(m["S"]), "P": draw(m["P"])}
    grammar = LPCFG.from_parameters(binary, lexical, root)
    return grammar if signed else grammar.normalized()


def random_tree(rng, grammar, label=None, size=3):
    """Draw a tree with at most `size` words over the rules of a grammar."""
    label = str(rng.choice(sorted(grammar.root))) if label is None else label
    rules = [r for r in grammar.binary if r[0] == label]
    if size > 1 and rules:
        by_width = [r for r in rules if size > 2 or {r[1], r[2]} <= set(TAGS)]
        _, b, c = by_width[rng.integers(len(by_width))]
        left = 1 if b in TAGS else size - 1
        return Tree(
            label,
            [
                random_tree(rng, grammar, b, left),
                random_tree(rng, grammar, c, max(size - left, 2)),
            ],
        )
    words = [x for a, x in grammar.lexical if a == label]
    return Tree(label, [str(rng.choice(words))])


def is_leaf(tree):
    return isinstance(tree.children[0], str)


def nodes(tree):
    """List the nodes of a tree in preorder."""
    found = [tree]
    if not is_leaf(tree):
        for child in tree.children:
            found += nodes(child)
    return found


def rule_of(tree):
    """Return (a, x) or (a, b, c)."""
    if is_leaf(tree):
        return tree.label, tree.children[0]
    return tree.label, tree.children[0].label, tree.children[1].label


def annotations(grammar, tree):
    """Yield every assignment of states to nodes, with its weight (eq. 2)."""
    m = grammar.m
    listed = nodes(tree)
    below = children_of(tree)
    for states in itertools.product(*(range(m[t.label]) for t in listed)):
        weight = grammar.root[tree.label][states[0]]
        for i, node in enumerate(listed):
            if is_leaf(node):
                weight *= grammar.lexical[rule_of(node)][states[i]]
            else:
                left, right = below[i]
                weight *= grammar.binary[rule_of(node)][
                    states[i], states[left], states[right]
                ]
        yield states, weight


def children_of(tree):
    """Map the number of each inner node (preorder) to those of its children."""
    below = {}

    def number(node, i):
        if is_leaf(node):
            return i + 1
        left = i + 1
        right = number(node.children[0], left)
        below[i] = (left, right)
        return number(node.children[1], right)

    number(tree, 0)
    return below


def tree_value(grammar, tree):
    """Return the sum over all annotations."""
    return sum(weight for _, weight in annotations(grammar, tree))


def inside(grammar, tree):
    """Compute the inside vector of the root by the recursion of figure 4."""
    if is_leaf(tree):
        return grammar.lexical[rule_of(tree)]
    left, right = (inside(grammar, child) for child in tree.children)
    return np.einsum("hjk,j,k->h", grammar.binary[rule_of(tree)], left, right)


def posteriors(grammar, tree):
    """Return the posterior of the states of each node, by enumeration."""
    m = grammar.m
    tables = [np.zeros(m[t.label]) for t in nodes(tree)]
    total = 0.0
    for states, weight in annotations(grammar, tree):
        total += weight
        for table, h in zip(tables, states, strict=True):
            table[h] += weight
    return [table / total for table in tables]


def expected_counts(grammar, trees, weights):
    """Expected counts of annotated rules and roots, by enumeration."""
    binary = {r: np.zeros_like(t) for r, t in grammar.binary.items()}
    lexical = {r: np.zeros_like(t) for r, t in grammar.lexical.items()}
    root = {r: np.zeros_like(t) for r, t in grammar.root.items()}
    log_likelihood = 0.0
    for tree, tree_weight in zip(trees, weights, strict=True):
        value = tree_value(grammar, tree)
        log_likelihood += tree_weight * np.log(value)
        listed, below = nodes(tree), children_of(tree)
        for states, weight in annotations(grammar, tree):
            part = tree_weight * weight / value
            root[tree.label][states[0]] += part
            for i, node in enumerate(listed):
                if is_leaf(node):
                    lexical[rule_of(node)][states[i]] += part
                else:
                    left, right = below[i]
                    at = states[i], states[left], states[right]
                    binary[rule_of(node)][at] += part
    return binary, lexical, root, log_likelihood


def all_trees(grammar, words, label):
    """Yield every binary tree of the grammar over the words."""
    if len(words) == 1 and (label, words[0]) in grammar.lexical:
        yield Tree(label, [words[0]])
    for a, b, c in grammar.binary:
        if a != label:
            continue
        for split in range(1, len(words)):
            for left in all_trees(grammar, words[:split], b):
                for right in all_trees(grammar, words[split:], c):
                    yield Tree(label, [left, right])


def smooth_lexicon(
    tokens, vectors, backoff, alpha, tag_of, *, beta=6.0, gamma=100.0, least=3e-4
):
    """Mix words with their classes, by the formula, one word at a time.

    `tokens` is a list of pairs (label, word), `vectors` maps such a pair to a vector,
    `backoff` a word to its class and a class to the next coarser one (None without
    classes), and `tag_of` a label to its tag.
    """
    count, tokens_of = Counter(x for _, x in tokens), Counter(tokens)
    shape = {a: 0.0 * np.asarray(v, dtype=float) for (a, _), v in vectors.items()}
    parent = dict.fromkeys(count, TOP)
    classes = {TOP}
    for x, s in (backoff or {}).items():
        parent[x] = TOP if x == s else s
        classes.add(s)
    words = {*parent, "<UNK>"}

    def ancestors(s):
        while True:
            yield s
            if s == TOP:
                return
            s = parent.get(s, TOP)

    size, members = Counter(), defaultdict(dict)
    for (a, x), n in tokens_of.items():
        unit = 1.0 if x in classes else 1.0 / count[x]
        for s in ancestors(x if x in classes else parent[x]):
            size[s] += n * unit
            old = members[s].get(a, (0.0, shape[a]))
            members[s][a] = (old[0] + n * unit, old[1] + vectors[a, x] * unit)

    def proba(s):
        """Probability and vector of each label, before negligible ones go."""
        if s == TOP:
            return {a: (n / size[s], v / size[s]) for a, (n, v) in members[s].items()}
        above = proba(parent[s])

        def of_tag(table, t):
            return sum(n for a, (n, _) in table.items() if tag_of[a] == t)

        found = {}
        for a, (p, u) in above.items():
            n, v = members[s].get(a, (0.0, shape[a]))
            count, lent = of_tag(members[s], tag_of[a]), of_tag(above, tag_of[a])
            share = (count + beta * lent) / (size[s] + beta)
            p, u = (
                share * (x + gamma * y / lent) / (count + gamma)
                for x, y in ((n, p), (v, u))
            )
            found[a] = p, u
        return found

    def without_negligible(found):
        found = {a: pair for a, pair in found.items() if pair[0] >= least}
        left = sum(p for p, _ in found.values())
        return {a: (p / left, v / left) for a, (p, v) in found.items()}

    out = {}
    for x in words:
        own = {a: (tokens_of[a, x], vectors[a, x]) for a, y in tokens_of if y == x}
        if x in classes:
            lent, kept = without_negligible(proba(x)), 0.0
        else:
            lent = without_negligible(proba(parent.get(x, TOP)))
            kept = count[x] / (count[x] + (alpha if backoff else 0.0)) if own else 0.0
        total = count[x] or ((size[x] + 1) / (size[TOP] + 1) if x in classes else 1.0)
        entries = defaultdict(lambda: (0.0, 0.0))
        if backoff and kept:
            mixed = defaultdict(lambda: (0.0, 0.0))
            for a, (n, v) in own.items():
                same = {b: q for b, q in lent.items() if tag_of[b] == tag_of[a]}
                mu = 4 * alpha / (count[x] + 4 * alpha) if same else 0.0
                mass = sum(p for p, _ in same.values())
                mixed[a] = _plus(mixed[a], n, v, 1 - mu)
                for b, (p, u) in same.items():
                    mixed[b] = _plus(mixed[b], p, u, mu * n / mass)
            own = mixed
        for a, (n, v) in own.items():
            entries[a] = _plus(entries[a], n, v, kept)
        for a, (p, u) in lent.items():
            if total * (1 - kept) * p >= least * total and kept < 1:
                entries[a] = _plus(entries[a], p, u, total * (1 - kept))
        left = sum(n for n, _ in entries.values())
        out.update({(a, x): v * total / left for a, (_, v) in entries.items()})
    return out


def _plus(pair, n, v, factor):
    return pair[0] + factor * n, pair[1] + factor * np.asarray(v, dtype=float)


def maximize(counts, smoothing, pooling, rare=0.0):
    """Smooth and normalise counts (binary, lexical) of annotated rules."""
    binary, lexical = counts
    totals = {}
    for rule, cube in binary.items():
        totals[rule[0]] = totals.get(rule[0], 0) + cube.sum(axis=(1, 2))
    for rule, vector in lexical.items():
        totals[rule[0]] = totals.get(rule[0], 0) + vector
    general = {a: t / t.sum() for a, t in totals.items()}

    def part(n):
        return smoothing and smoothing * (n + rare) / (n + smoothing * rare)

    new_binary, new_lexical = {}, {}
    for rule, cube in binary.items():
        size = cube.sum()
        marginals = [cube.sum(axis=axes) / size for axes in ((1, 2), (0, 2), (0, 1))]
        w, u, v = (
            (1 - pooling) * own + pooling * general[a]
            for own, a in zip(marginals, rule, strict=True)
        )
        product = size * np.einsum("h,j,k->hjk", w, u, v)
        new_binary[rule] = (1 - part(size)) * cube + part(size) * product
    for rule, vector in lexical.items():
        emitted = sum(v for r, v in lexical.items() if r[0] == rule[0])
        size = vector.sum()
        mixed = (1 - part(size)) * vector
        new_lexical[rule] = mixed + part(size) * size * emitted / emitted.sum()
    # The counts of states are scaled to what they were, then divided by the totals.
    for old, new in ((binary, new_binary), (lexical, new_lexical)):
        for a in {rule[0] for rule in old}:
            of_a = [rule for rule in old if rule[0] == a]
            before, after = (
                sum(table[r].reshape(len(totals[a]), -1).sum(axis=1) for r in of_a)
                for table in (old, new)
            )
            for rule in of_a:
                factor = before / after / totals[a]
                new[rule] = (new[rule].T * factor).T
    return new_binary, new_lexical


def as_grammar(index, layout, estimates):
    """Make the grammar with exactly these parameters."""
    names, words = index.nonterminals, index.words
    rules = zip(index.rule_parent, index.rule_left, index.rule_right, strict=True)
    return LPCFG.from_parameters(
        {
            (names[a], names[b], names[c]): estimates.binary[
                layout.rule_offset[r] : layout.rule_offset[r + 1]
            ].reshape(layout.shapes[r])
            for r, (a, b, c) in enumerate(rules)
        },
        {
            (names[a], words[x]): estimates.lexical[
                layout.lex_offset[e] : layout.lex_offset[e + 1]
            ]
            for e, (a, x) in enumerate(
                zip(index.lex_label, index.lex_word, strict=True)
            )
        },
        {
            names[a]: estimates.root[layout.root_offset[k] : layout.root_offset[k + 1]]
            for k, a in enumerate(index.root_label)
        },
    )
