"""Obvious versions of the kernels of the pivot method."""

from itertools import combinations, product

import numpy as np


def simplex_least_squares(point, vertices):
    """Try every support: the best feasible affine minimiser is the answer."""
    m = len(vertices)
    best, answer = np.inf, None
    for size in range(1, m + 1):
        for support in combinations(range(m), size):
            W = vertices[list(support)]
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = W @ W.T
            system[:size, size] = system[size, :size] = 1.0
            right = np.append(W @ point, 1.0)
            weights = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if (weights < -1e-12).any():
                continue
            distance = ((weights @ W - point) ** 2).sum()
            if distance < best - 1e-14:
                best = distance
                answer = np.zeros(m)
                answer[list(support)] = weights
    return answer


def separable(rng, m, d, columns, *, mass=0.1):
    """Random π, r, s in which the first m rows and last m columns are pivots."""
    pi = rng.dirichlet(np.full(m, 3.0))
    r = rng.dirichlet(np.full(d, 0.5), m).T
    s = rng.dirichlet(np.full(columns, 0.5), m).T
    for h in range(m):
        r[h] = 0.0
        r[h, h] = mass
        s[columns - 1 - h] = 0.0
        s[columns - 1 - h, h] = mass
    r /= r.sum(axis=0)
    s /= s.sum(axis=0)
    return pi, r, s


def best_order(found, true):
    """The order of the true states that comes nearest to the found ones."""
    from scipy.optimize import linear_sum_assignment

    cost = ((found[:, :, None] - true[:, None, :]) ** 2).sum(axis=0)
    return linear_sum_assignment(cost)[1]


def step_two_update(t, s, left, right):
    """One EM update of t(h1, h2, h3) for the nodes of one rule (figure 1, step 2)."""
    new = np.zeros_like(t)
    log_likelihood = 0.0
    for g, f2, f3 in zip(s, left, right, strict=True):
        joint = np.zeros_like(t)
        for h1, h2, h3 in product(*map(range, t.shape)):
            joint[h1, h2, h3] = t[h1, h2, h3] * g[h1] * f2[h2] * f3[h3]
        log_likelihood += np.log(joint.sum())
        new += joint / joint.sum()
    return new / len(s), log_likelihood / len(s)


def combination_gradient(t, outside, left, right, weight):
    """Gradient of the objective of section 6.2, its value and number of combinations.

    Events are lists of feature vectors; t has three axes.
    """
    gradient, value, mass = np.zeros_like(t), 0.0, 0.0
    for g, f2, f3, w in zip(outside, left, right, weight, strict=True):
        for s, r, r2 in product(g, f2, f3):
            joint = np.zeros_like(t)
            for h1, h2, h3 in product(*map(range, t.shape)):
                joint[h1, h2, h3] = s[h1] * r[h2] * r2[h3]
            total = (t * joint).sum()
            gradient += w * joint / total
            value += w * np.log(total)
            mass += w
    return gradient, value, mass


def finite_grammar():
    """Parameters of an L-PCFG with finitely many trees whose states have pivots.

    S → A B and A → B C; A is also a root.  Every state of A, B and C has an inside
    tree, and an outside tree, that occurs with no other state.
    """
    binary = {
        ("S", "A", "B"): np.array([[[0.6, 0.0], [0.0, 0.4]]]),
        ("A", "B", "C"): np.array([[[0.5, 0.2], [0.0, 0.3]], [[0.0, 0.4], [0.6, 0.0]]]),
    }
    lexical = {
        ("B", "b0"): np.array([0.5, 0.0]),
        ("B", "b1"): np.array([0.0, 0.3]),
        ("B", "b2"): np.array([0.5, 0.7]),
        ("C", "c0"): np.array([0.4, 0.0]),
        ("C", "c1"): np.array([0.0, 0.8]),
        ("C", "c2"): np.array([0.6, 0.2]),
    }
    root = {"S": np.array([0.6]), "A": np.array([0.1, 0.3])}
    return {"binary": binary, "lexical": lexical, "root": root}


def finite_trees(grammar):
    """All trees of :func:`finite_grammar` with their probabilities."""
    b = {x: v for (a, x), v in grammar["lexical"].items() if a == "B"}
    c = {x: v for (a, x), v in grammar["lexical"].items() if a == "C"}
    rule, top = grammar["binary"]["A", "B", "C"], grammar["binary"]["S", "A", "B"][0]
    trees, probabilities = [], []
    for x, y in product(b, c):
        below = np.einsum("hjk,j,k->h", rule, b[x], c[y])
        a = f"(A (B {x}) (C {y}))"
        trees.append(a)
        probabilities.append(grammar["root"]["A"] @ below)
        for z in b:
            trees.append(f"(S {a} (B {z}))")
            probabilities.append(grammar["root"]["S"][0] * (below @ top @ b[z]))
    return trees, np.array(probabilities)


def inside_tree(node):
    """The whole inside tree of a node of :func:`finite_trees`, as a feature."""
    return f"{node.label} {' '.join(node.words[node.start : node.stop])}"


def outside_tree(node):
    """The whole outside tree of such a node."""
    before, after = node.words[: node.start], node.words[node.stop :]
    above = node if node.parent is None else node.parent
    top = above if above.parent is None else above.parent
    return f"{node.label} {top.label} {' '.join(before)} _ {' '.join(after)}"
