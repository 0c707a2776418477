"""Moments of known grammars against sums over all their trees."""

import math
from itertools import product

import numpy as np
import pytest

from lpcfg_sk import LPCFG, SpectralLPCFG, Treebank
from lpcfg_sk.bounds import (
    grammar_moments,
    least_coefficient,
    spectral_ratio_sample_size,
)
from lpcfg_sk.datasets import make_lpcfg
from lpcfg_sk.lpcfg import independent_children
from tests.spectral.conftest import (
    enumerate_trees,
    finite,
    finite_grammar,
    with_features,
)
from tests.tolerances import EXACT, SUM

__all__ = ["finite"]


def nodes_of(tree, rule="root", below=None):
    """(label, rule, rule above with side) of all nodes of a tree."""
    own = (tree.label, *(getattr(c, "label", c) for c in tree.children))
    yield tree.label, own, (rule, below)
    if len(own) == 3:
        for side, child in enumerate(tree.children):
            yield from nodes_of(child, own, side)


def test_indicators_in_closed_form(finite):
    """Ω by counting the rules at and above the nodes of all trees."""
    grammar, trees, p = finite
    joint = {a: {} for a in grammar.nonterminals}
    for tree, mass in zip(trees, p, strict=True):
        for label, own, above in nodes_of(tree):
            key = own, above
            joint[label][key] = joint[label].get(key, 0.0) + mass
    for a, moments in grammar_moments(grammar).items():
        total = sum(joint[a].values())
        own, above = (sorted({k[i] for k in joint[a]}, key=str) for i in (0, 1))
        omega = np.zeros((len(own), len(above)))
        for (r, q), mass in joint[a].items():
            omega[own.index(r), above.index(q)] = mass / total
        assert moments.Omega.shape == omega.shape
        # Rows and columns are in another order.
        np.testing.assert_allclose(
            np.linalg.svd(moments.Omega)[1], np.linalg.svd(omega)[1], atol=EXACT
        )
        np.testing.assert_allclose(
            np.sort(moments.Omega.ravel()), np.sort(omega.ravel()), atol=EXACT
        )


def test_any_features_of_all_trees(finite):
    """Conditional independence: E[φψᵀ | a] = I diag(γ) Jᵀ."""
    grammar, trees, p = finite
    weight = np.repeat(p, np.diff(trees.node_offsets))
    label, _ = grammar.encode(trees)
    indicators = grammar_moments(grammar)
    for a, moments in grammar_moments(grammar, trees).items():
        nodes = label == grammar.nonterminals.index(a)
        phi, psi = (
            trees.blocks[side][nodes].toarray() for side in ("inside", "outside")
        )
        share = weight[nodes] / weight[nodes].sum()
        omega = (phi.T * share) @ psi
        np.testing.assert_allclose(moments.Omega, omega, atol=SUM)
        m = grammar.m[a]
        values = np.linalg.svd(omega, compute_uv=False)
        assert moments.sigma == pytest.approx(values[m - 1], abs=SUM)
        assert moments.I.sum(axis=0) @ moments.gamma == pytest.approx(
            share @ phi.sum(1), rel=SUM
        )
        np.testing.assert_allclose(moments.gamma, indicators[a].gamma, atol=SUM)


def latent_trees(grammar, tree, state, rule="root", side=None):
    """(probability, [(label, state, rule, rule above with side)]) below a node."""
    own = (tree.label, *(getattr(c, "label", c) for c in tree.children))
    node = tree.label, state, own, (rule, side)
    if len(own) == 2:
        return [(grammar.lexical[own][state], [node])]
    return [
        (t * p * q, [node, *left, *right])
        for (i, j), t in np.ndenumerate(grammar.binary[own][state])
        for p, left in latent_trees(grammar, tree.children[0], i, own, 0)
        for q, right in latent_trees(grammar, tree.children[1], j, own, 1)
    ]


def test_means_given_the_state_are_sums_over_all_states():
    """I, J, γ and ξ, by all trees with all their states."""
    rng = np.random.default_rng(1)
    t, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8), size=2)
    C, D = rng.dirichlet(np.ones(2), size=(2, 2))
    grammar = LPCFG.from_parameters(
        {
            ("S", "A", "C"): t[:4].reshape(1, 2, 2),
            ("S", "C", "A"): t[4:].reshape(1, 2, 2),
            ("A", "C", "D"): q[:, :4].reshape(2, 2, 2),
            ("A", "D", "C"): q[:, 4:].reshape(2, 2, 2),
        },
        {("C", "x"): C[:, 0], ("C", "y"): C[:, 1]}
        | {("D", "x"): D[:, 0], ("D", "y"): D[:, 1]},
        {"S": [1.0]},
    )
    pairs = [f"(A (C {x}) (D {y}))" for x, y in product("xy", repeat=2)]
    pairs += [f"(A (D {x}) (C {y}))" for x, y in product("xy", repeat=2)]
    trees = [f"(S {pair} (C {z}))" for pair in pairs for z in "xy"]
    trees += [f"(S (C {z}) {pair})" for pair in pairs for z in "xy"]
    trees = with_features(Treebank(trees))
    phi, psi = (trees.blocks[side].toarray() for side in ("inside", "outside"))
    # Keyed by what: feature blocks, and the indicators of rules.
    sums, expected, n_before = {}, {}, 0
    for tree in trees:
        for mass, nodes in latent_trees(grammar, tree, 0):
            for place, (a, h, own, above) in enumerate(nodes, start=n_before):
                key = a, h
                expected[key] = expected.get(key, 0.0) + mass
                for kind, value in (("phi", phi[place]), ("psi", psi[place])):
                    sums[key, kind] = sums.get((key, kind), 0.0) + mass * value
                for kind, rule in (("own", own), ("above", above)):
                    count = sums.setdefault((key, kind), {})
                    count[rule] = count.get(rule, 0.0) + mass
        n_before += len(nodes)
    closed = grammar_moments(grammar)
    for a, moments in grammar_moments(grammar, trees).items():
        states = [(a, h) for h in range(grammar.m[a])]
        n = np.array([expected[key] for key in states])
        I, J = (
            np.stack([sums[key, kind] for key in states], axis=1) / n
            for kind in ("phi", "psi")
        )
        np.testing.assert_allclose(moments.I, I, atol=SUM)
        np.testing.assert_allclose(moments.J, J, atol=SUM)
        np.testing.assert_allclose(moments.gamma, n / n.sum(), rtol=SUM)
        xi = np.linalg.svd(I, compute_uv=False)[len(n) - 1]
        assert moments.xi == pytest.approx(xi, rel=SUM)
        np.testing.assert_allclose(closed[a].gamma, moments.gamma, rtol=SUM)
        for found, kind in ((closed[a].I, "own"), (closed[a].J, "above")):
            rules = {rule for key in states for rule in sums[key, kind]}
            rows = [[sums[key, kind].get(r, 0.0) for key in states] for r in rules]
            rows = np.array(rows) / n
            # Rules are in another order.
            np.testing.assert_allclose(
                found[np.lexsort(found.T)], rows[np.lexsort(rows.T)], atol=SUM
            )
        xi = np.linalg.svd(closed[a].I, compute_uv=False)[len(n) - 1]
        assert closed[a].xi == pytest.approx(xi, rel=SUM)


def test_singular_values_are_those_of_the_learner(finite):
    """The learner with exact weights sees the exact Ω."""
    grammar, trees, p = finite
    model = SpectralLPCFG(m=3, scaling=None).fit(trees, sample_weight=p)
    for a, moments in grammar_moments(grammar, trees).items():
        found = model.singular_values_[a]
        assert found[grammar.m[a] - 1] == pytest.approx(moments.sigma, abs=SUM)


def test_states_of_infinitely_many_trees():
    """S → S S | a with two states, by the expected numbers of nodes."""
    t = np.array([[[0.1, 0.2], [0.0, 0.1]], [[0.05, 0.0], [0.1, 0.15]]])
    q = 1 - t.sum(axis=(1, 2))
    root = {"S": [0.3, 0.0], "A": [0.7, 0.0]}
    binary = {
        ("S", "S", "A"): t,
        ("S", "A", "A"): q[:, None, None] * np.full((1, 2, 2), 0.25),
    }
    lexical = {("A", "x"): [0.2, 0.9], ("A", "y"): [0.8, 0.1]}
    moments = grammar_moments(LPCFG.from_parameters(binary, lexical, root))
    expected = np.array([0.3, 0.0])
    total = np.zeros(2)
    for _ in range(400):
        total += expected
        expected = expected @ t.sum(axis=2)
    np.testing.assert_allclose(moments["S"].gamma, total / total.sum(), rtol=SUM)
    np.testing.assert_allclose(moments["A"].I, [[0.2, 0.9], [0.8, 0.1]], rtol=EXACT)


def test_least_coefficient_is_that_of_the_sums_over_all_trees(finite):
    """D, d and c¹ of equations 14 to 16, node by node; signs do not matter."""
    grammar, trees, p = finite
    label, _ = grammar.encode(trees)
    names = [grammar.nonterminals[i] for i in label]
    words = iter(trees.words[i] for i in trees.word)
    weight = np.repeat(p, np.diff(trees.node_offsets))
    phi, psi = (trees.blocks[side].toarray() for side in ("inside", "outside"))
    Y, Z, total = {}, {}, {}
    for a, m in grammar.m.items():
        nodes = np.flatnonzero([name == a for name in names])
        total[a] = weight[nodes].sum()
        omega = (phi[nodes].T * weight[nodes]) @ psi[nodes] / total[a]
        U, _, V = np.linalg.svd(omega, full_matrices=False)
        Y |= zip(nodes, phi[nodes] @ U[:, :m], strict=True)
        Z |= zip(nodes, psi[nodes] @ V[:m].T, strict=True)
    found = {("root", "S"): sum(weight[i] * Y[i] for i in trees.node_offsets[:-1])}
    for node, a in enumerate(names):
        if trees.size[node] == 1:
            key, value = (a, next(words)), Z[node]
        else:
            # Children follow their parent.
            left, right = node + 1, node + 1 + trees.size[node + 1]
            key = a, names[left], names[right]
            value = np.einsum("i,j,k->ijk", Z[node], Y[left], Y[right])
        found[key] = found.get(key, 0.0) + value * weight[node] / total[a]
    expected = min(np.abs(value).min() for value in found.values())
    assert least_coefficient(grammar, trees) == pytest.approx(expected, rel=SUM)


def test_states_that_features_do_not_tell_apart_have_no_coefficients():
    same = LPCFG.from_parameters(
        {("S", "A", "A"): np.full((1, 2, 2), 0.25)},
        {("A", "x"): [0.5, 0.5], ("A", "y"): [0.5, 0.5]},
        {"S": [1.0]},
    )
    with pytest.raises(ValueError, match="2 states of 'A' apart"):
        least_coefficient(same)


def test_grammars_without_moments(finite):
    grammar, trees, _ = finite
    with pytest.raises(ValueError, match="sum to"):
        grammar_moments(grammar, trees[:10])
    endless = LPCFG.from_parameters(
        {("S", "S", "S"): [[[0.5]]], ("S", "A", "A"): [[[0.5]]]},
        {("A", "x"): [1.0]},
        {"S": [1.0]},
    )
    with pytest.raises(ValueError, match="infinitely large"):
        grammar_moments(endless)
    signed = LPCFG.from_parameters({}, {("A", "x"): [-1.0]}, {"A": [-1.0]})
    with pytest.raises(ValueError, match="probabilities"):
        grammar_moments(signed)


def test_ratio_bound_by_hand():
    constants = {"m": 2, "R": 20, "Lambda": 0.01, "sigma": 0.3}
    spread = 1.1 ** (1 / 11) - 1
    expected = 128 * 4 / (spread**2 * 1e-4 * 0.3**4) * math.log(80 / 0.05)
    found = spectral_ratio_sample_size(0.1, 0.05, N=5, **constants)
    assert found == pytest.approx(expected, rel=SUM)
    # A sentence of three words has trees of two binary and three lexical rules.
    assert spectral_ratio_sample_size(0.1, 0.05, n_words=3, **constants) == found
    with pytest.raises(ValueError, match="either N"):
        spectral_ratio_sample_size(0.1, 0.05, **constants)


def test_ratios_of_trees_are_ratios_of_marginals(finite):
    """If all values of trees are within a factor, so are their sums."""
    grammar, _, _ = finite
    rng = np.random.default_rng(0)
    binary = {
        r: t * rng.uniform(0.99, 1.01, t.shape) for r, t in grammar.binary.items()
    }
    other = LPCFG.from_parameters(binary, grammar.lexical, grammar.root)
    sentence = [["x", "y", "z"]]
    true, near = (g.marginals(sentence)[0] for g in (grammar, other))
    Z = np.exp([g.sentence_log_prob(sentence)[0] for g in (grammar, other)])
    keys = ["label", "start", "end"]
    both = true.merge(near, on=keys)
    ratio = (both["marginal_y"] * Z[1]) / (both["marginal_x"] * Z[0])
    # Two binary rules in every tree.
    assert ratio.between(0.99**2, 1.01**2).all()


def test_children_become_independent():
    grammar = make_lpcfg(m=3, random_state=0)
    other = independent_children(grammar)
    for rule, tensor in grammar.binary.items():
        new = other.binary[rule]
        for axes in (2, 1, (1, 2)):
            np.testing.assert_allclose(
                new.sum(axis=axes), tensor.sum(axis=axes), atol=EXACT
            )
        for h in range(len(new)):
            assert np.linalg.matrix_rank(new[h], tol=SUM) <= 1
    again = independent_children(other)
    for rule, tensor in other.binary.items():
        np.testing.assert_allclose(again.binary[rule], tensor, atol=EXACT)


def test_trees_of_the_independent_model_sum_to_one():
    grammar = independent_children(finite_grammar(np.random.default_rng(3)))
    p = np.exp(grammar.log_prob(enumerate_trees("S")))
    assert p.sum() == pytest.approx(1, abs=SUM)
