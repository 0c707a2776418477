"""One node per tree, independent samples, and the regularised inverse."""

import numpy as np
import pytest

from lpcfg_sk import SpectralLPCFG
from lpcfg_sk.spectral._decomposition import project
from lpcfg_sk.spectral._node_features import node_weight
from lpcfg_sk.treebank import RuleIndex
from tests.spectral.conftest import with_features
from tests.tolerances import EXACT, SUM

LITERAL = {"smoothing": None, "lexical_smoothing": None, "lexicon_alpha": 0.0}


def test_a_node_drawn_by_size_has_the_weight_of_all_nodes_on_average(sampled):
    index = RuleIndex.from_treebank(sampled[:20])
    size = np.diff(index.node_offsets)
    weight = np.linspace(0.5, 2.0, 20)
    mean = np.zeros(index.n_nodes)
    for node in range(size.max()):
        for row in np.flatnonzero(size > node):
            drawn = np.zeros(20, dtype=int)
            drawn[row] = node
            own = np.where(np.arange(20) == row, weight * size, 0.0)
            mean += node_weight(index, own, drawn) / size[row]
    np.testing.assert_allclose(mean, node_weight(index, weight), rtol=EXACT)


@pytest.mark.parametrize("sampling", ["one", "one-by-size"])
def test_all_draws_together_are_all_nodes_by_size_alone(finite, sampling, monkeypatch):
    """A copy of a tree for each of its nodes, which is the one that is drawn."""
    _, trees, p = finite
    some = np.argsort(-p, kind="stable")[:200]
    size = np.diff(trees.node_offsets)[some]
    copies = np.repeat(some, size)
    nodes = np.concatenate([np.arange(n) for n in size])
    monkeypatch.setattr(
        "lpcfg_sk.spectral._node_features._draw_nodes", lambda X, random_state: nodes
    )
    everything = SpectralLPCFG(2, **LITERAL).fit(trees[some], sample_weight=p[some])
    drawn = SpectralLPCFG(2, node_sampling=sampling, **LITERAL)
    drawn.fit(trees[copies], sample_weight=p[copies] / np.repeat(size, size))
    values = [
        sign * np.exp(log)
        for sign, log in (m.grammar_.tree_values(trees) for m in (everything, drawn))
    ]
    same = np.allclose(*values, rtol=0, atol=SUM)
    assert same == (sampling == "one-by-size")


@pytest.mark.slow_without_jit
def test_halves_are_independent(finite):
    """Singular vectors of one half, moments of the other: the sum of both is all."""
    _, trees, p = finite
    model = SpectralLPCFG(
        3, scaling=None, split_samples=True, random_state=0, **LITERAL
    )
    twice = trees[np.repeat(np.arange(len(trees)), 2)]
    weight = np.repeat(p, 2)
    model.fit(twice, sample_weight=weight)
    first = np.random.RandomState(0).permutation(len(twice)) < len(twice) // 2
    only = SpectralLPCFG(3, scaling=None, **LITERAL).fit(
        twice, sample_weight=np.where(first, weight, 1e-40)
    )
    for a, values in only.singular_values_.items():
        np.testing.assert_allclose(
            model.singular_values_[a][: model.m_[a]], values[: model.m_[a]], rtol=SUM
        )
    # Roots are counted in the second half alone.
    total = weight[~first].sum()
    assert model.grammar_.root["S"].shape == (1,)
    assert model.counts_["S"] == pytest.approx(weight.sum() - total, rel=SUM)


def test_an_independent_copy_gives_the_exact_distribution(finite):
    """Where both halves have the exact moments, so does the grammar."""
    _, trees, p = finite
    order = np.random.RandomState(0).permutation(2 * len(trees)) < len(trees)
    # Row i of the first half and of the second are the same tree.
    rows = np.empty(2 * len(trees), dtype=int)
    rows[order] = rows[~order] = np.arange(len(trees))
    model = SpectralLPCFG(3, split_samples=True, random_state=0, **LITERAL)
    model.fit(trees[rows], sample_weight=p[rows])
    sign, log = model.grammar_.tree_values(trees)
    assert np.abs(sign * np.exp(log) - p).sum() < SUM


def test_ridge_is_the_regularised_inverse(sampled):
    model = SpectralLPCFG(2, **LITERAL).fit(sampled)
    names = model.grammar_.nonterminals
    label, _ = model.grammar_.encode(sampled)
    projections = [model.projections_[a] for a in names]
    m = np.array([model.m_[a] for a in names])
    block = sampled.blocks["outside"]
    plain = project(block, label, projections, "outside", m)
    damped = project(block, label, projections, "outside", m, ridge=0.3)
    for a, projection in enumerate(projections):
        s = projection.singular_values[: m[a]]
        factor = s**2 / (s**2 + (0.3 * s[0]) ** 2)
        rows = label == a
        np.testing.assert_allclose(
            damped[rows, : m[a]], plain[rows, : m[a]] * factor, rtol=SUM
        )
    ridged = SpectralLPCFG(2, ridge=0.3, **LITERAL).fit(sampled)
    assert ridged.grammar_ != model.grammar_
    none = SpectralLPCFG(2, ridge=0.0, **LITERAL).fit(sampled)
    assert none.grammar_ == model.grammar_


def test_one_tree_cannot_be_split():
    tree = with_features(["(S (A a) (B b))"])
    with pytest.raises(ValueError, match="at least two trees"):
        SpectralLPCFG(1, split_samples=True).fit(tree)
