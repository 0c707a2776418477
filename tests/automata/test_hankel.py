"""Contexts, Hankel blocks and the automata that they determine."""

import numpy as np
import pytest

from lpcfg_sk import WTA, Treebank
from lpcfg_sk.automata import hankel_matrix, insert_tree, wta_from_hankel
from tests.reference import wta as reference
from tests.tolerances import EXACT, SUM


def contexts_and_trees(leaves=2):
    contexts = reference.all_contexts(leaves, "ab")
    contexts = [c.replace("*", "(P *)") for c in contexts]
    return contexts, reference.all_trees(leaves, "ab")


@pytest.fixture
def wta(seed):
    return reference.random_wta(np.random.default_rng(seed), 3)


def context_matrix(wta, context):
    """Ξ(c) by the recursion of section 2.2."""
    if context.words() == ["*"]:
        return np.eye(wta.n_states)
    left, right = context.children
    T = wta.T[context.label] if wta.labels else wta.T
    if "*" in left.words():
        above = np.einsum("ijk,k->ij", T, wta.tree_vectors([right])[0])
        return above @ context_matrix(wta, left)
    above = np.einsum("ijk,j->ik", T, wta.tree_vectors([left])[0])
    return above @ context_matrix(wta, right)


@pytest.mark.parametrize("labels", [None, "XY"])
def test_vectors_are_those_of_the_recursion(labels, seed):
    wta = reference.random_wta(np.random.default_rng(seed), 3, labels=labels)
    trees = Treebank(reference.all_trees(3, "ab", labels or "X"))
    np.testing.assert_allclose(
        wta.tree_vectors(trees) @ wta.alpha, wta.value(trees), rtol=SUM, atol=EXACT
    )
    contexts = Treebank([t.replace("(P a)", "(P *)", 1) for t in map(str, trees)])
    contexts = contexts[[i for i, t in enumerate(trees) if "a" in t.words()]]
    expected = [wta.alpha @ context_matrix(wta, context) for context in contexts]
    np.testing.assert_allclose(wta.context_vectors(contexts), expected, atol=EXACT)


def test_blocks_factorise(wta):
    contexts, trees = contexts_and_trees(3)
    H = hankel_matrix(wta.value, contexts, trees)
    value = wta.value([insert_tree(contexts[3], trees[5])])[0]
    assert H[3, 5] == pytest.approx(value, rel=EXACT)
    product = wta.context_vectors(contexts) @ wta.tree_vectors(trees).T
    np.testing.assert_allclose(H, product, atol=EXACT)
    assert np.linalg.matrix_rank(H) == 3


def test_figure_1():
    """c1 = (*, d), t = (c, c), c2 = (a, (b, *))."""
    c1, t = "(X (P *) (P d))", "(X (P c) (P c))"
    assert insert_tree(c1, t) == "(X (X (P c) (P c)) (P d))"
    c2 = "(X (P a) (X (P b) (P *)))"
    assert insert_tree(c2, c1) == "(X (P a) (X (P b) (X (P *) (P d))))"


def test_a_basis_determines_the_automaton(wta):
    contexts, basis = contexts_and_trees()
    found = wta_from_hankel(wta.value, "ab", contexts, basis)
    assert found.n_states == 3
    trees = reference.all_trees(5, "ab")
    np.testing.assert_allclose(found.value(trees), wta.value(trees), atol=1e-10)
    # P_A = P and S_A = S: the factorisation of the block that the basis gave.
    H = hankel_matrix(wta.value, contexts, basis)
    P, S = found.context_vectors(contexts), found.tree_vectors(basis).T
    np.testing.assert_allclose(P @ S, H, atol=SUM)
    np.testing.assert_allclose(P.T @ P, S @ S.T, atol=SUM)


def test_states_that_do_not_count_are_not_recovered(wta):
    """The direct sum of two copies has six states and rank three."""
    T = np.zeros((6, 6, 6))
    T[:3, :3, :3] = T[3:, 3:, 3:] = wta.T
    twice = WTA(
        np.tile(wta.alpha, 2), T, {w: np.tile(v, 2) for w, v in wta.omega.items()}
    )
    found = wta_from_hankel(twice.value, "ab", *contexts_and_trees())
    assert found.n_states == 3
    trees = reference.all_trees(4, "ab")
    np.testing.assert_allclose(found.value(trees), 2 * wta.value(trees), atol=1e-10)


def test_bad_contexts_and_ranks(wta):
    with pytest.raises(ValueError, match="got 0 in"):
        insert_tree("(P a)", "(P b)")
    with pytest.raises(ValueError, match="row 1 has 2"):
        wta.context_vectors(["(P *)", "(X (P *) (P *))"])
    contexts, trees = contexts_and_trees()
    with pytest.raises(ValueError, match=r"rank 3.*got rank=4"):
        wta_from_hankel(wta.value, "ab", contexts, trees, rank=4)
    with pytest.raises(ValueError, match="zero on it"):
        wta_from_hankel(lambda X: np.zeros(len(X)), "ab", contexts, trees)
    assert wta.tree_vectors([]).shape == wta.context_vectors([]).shape == (0, 3)
