"""Tree automata by plain recursion and by enumeration of all trees."""

from itertools import product

import numpy as np

from lpcfg_sk import WTA


def random_wta(rng, n, *, words="ab", labels=None, scale=0.3, density=1.0):
    """A signed automaton whose values decay fast with the size of trees."""

    def tensor():
        t = rng.standard_normal((n, n, n)) * scale / n
        return t * (rng.random(t.shape) < density)

    T = tensor() if labels is None else {x: tensor() for x in labels}
    omega = {w: 0.7 * rng.standard_normal(n) for w in words}
    return WTA(rng.standard_normal(n), T, omega)


def topologies(n_leaves):
    """All binary trees with that many leaves, as nested pairs over None."""
    if n_leaves == 1:
        return [None]
    return [
        (left, right)
        for u in range(1, n_leaves)
        for left in topologies(u)
        for right in topologies(n_leaves - u)
    ]


def fill(shape, leaves, labels):
    """Bracketed string of a topology with given leaves and node labels."""
    if shape is None:
        return next(leaves)
    label = next(labels)
    left = fill(shape[0], leaves, labels)
    return f"({label} {left} {fill(shape[1], leaves, labels)})"


def all_trees(max_leaves, words, labels="X"):
    """All trees with up to so many leaves, as bracketed strings."""
    out = []
    for n_leaves in range(1, max_leaves + 1):
        for shape in topologies(n_leaves):
            for leaves in product(words, repeat=n_leaves):
                for names in product(labels, repeat=n_leaves - 1):
                    marked = (x if x == "*" else f"(P {x})" for x in leaves)
                    out.append(fill(shape, marked, iter(names)))
    return out


def all_contexts(max_leaves, words):
    """Trees in which exactly one leaf is ``*``."""
    return [t for t in all_trees(max_leaves, [*words, "*"]) if t.count("*") == 1]


def vector(tree, T, omega):
    """ω(t) of a `Tree`, by recursion; T a dense array or a dict of such."""
    if len(tree.children) == 1:
        return omega[tree.children[0]]
    left, right = (vector(c, T, omega) for c in tree.children)
    tensor = T[tree.label] if isinstance(T, dict) else T
    return np.einsum("ijk,j,k->i", tensor, left, right)


def condition_number(tree, alpha, T, omega):
    """Σ ‖α(c)‖ ‖ω(t')‖ / |f(t)| over all t = c[t'], from the root down."""
    above, terms = [(tree, alpha)], []
    value = abs(alpha @ vector(tree, T, omega))
    while above:
        node, outside = above.pop()
        inside = vector(node, T, omega)
        terms.append(np.linalg.norm(outside) * np.linalg.norm(inside) / value)
        if len(node.children) == 2:
            left, right = node.children
            tensor = T[node.label] if isinstance(T, dict) else T
            through = np.einsum("ijk,i->jk", tensor, outside)
            above.append((left, through @ vector(right, T, omega)))
            above.append((right, vector(left, T, omega) @ through))
    return sum(terms)


def contract(t1, x, y, t2):
    return np.einsum("ijk,jl,km,nlm->in", t1, x, y, t2, optimize=True)


def cholesky(gram, tol):
    n = len(gram)
    lower = np.zeros((n, n))
    for j in range(n):
        pivot = gram[j, j] - lower[j, :j] @ lower[j, :j]
        if pivot > tol:
            lower[j, j] = np.sqrt(pivot)
            for i in range(j + 1, n):
                rest = gram[i, j] - lower[i, :j] @ lower[j, :j]
                lower[i, j] = rest / lower[j, j]
    return lower


def spans(shape, start=0):
    """Spans [start, stop) of a topology, in preorder."""
    if shape is None:
        return [(start, start + 1)]
    left = spans(shape[0], start)
    right = spans(shape[1], left[0][1])
    return [(start, right[0][1]), *left, *right]


def cp_update(t, a, b, c):
    """One multiplicative KL update of the first factor of a dense tensor."""
    model = np.einsum("ir,jr,kr->ijk", a, b, c)
    ratio = np.divide(t, model, out=np.zeros_like(t), where=model > 0)
    top = np.einsum("ijk,jr,kr->ir", ratio, b, c)
    return a * top / (b.sum(axis=0) * c.sum(axis=0))


def divergence(t, a, b, c):
    model = np.einsum("ir,jr,kr->ijk", a, b, c)
    return sum(
        (x * np.log(x / m) - x if x > 0 else 0.0) + m
        for x, m in zip(t.ravel(), model.ravel(), strict=True)
    )
