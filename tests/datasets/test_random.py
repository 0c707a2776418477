"""Random grammars."""

import numpy as np
import pytest

from lpcfg_sk import LPCFG, PCFG
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from tests.tolerances import EXACT, SUM


def branching(grammar):
    """Mean number of children of each kind, and whether a symbol is a word's."""
    ids = {(a, h): 0 for a, m in grammar.m.items() for h in range(m)}
    ids = {symbol: i for i, symbol in enumerate(ids)}
    mean = np.zeros((len(ids), len(ids)))
    total = np.zeros(len(ids))
    words = np.zeros(len(ids))
    for (a, b, c), tensor in grammar.binary.items():
        for (h, j, k), p in np.ndenumerate(tensor):
            mean[ids[a, h], ids[b, j]] += p
            mean[ids[a, h], ids[c, k]] += p
            total[ids[a, h]] += p
    for (a, _), vector in grammar.lexical.items():
        for h, p in enumerate(vector):
            words[ids[a, h]] += p
            total[ids[a, h]] += p
    return ids, mean, total, words


@pytest.mark.parametrize("pivot", [False, True, 0.6])
@pytest.mark.parametrize("mean_length", [2.5, 8, 40])
def test_probabilities_and_mean_length(pivot, mean_length, seed):
    grammar = make_lpcfg(
        m=lambda name: 3 if name.startswith("A") else 2,
        pivot=pivot,
        mean_length=mean_length,
        random_state=seed,
    )
    ids, mean, total, words = branching(grammar)
    np.testing.assert_allclose(total, 1.0, rtol=EXACT)
    radius = np.abs(np.linalg.eigvals(mean)).max()
    np.testing.assert_allclose(radius, (mean_length - 2) / (mean_length - 1), rtol=SUM)
    lengths = np.linalg.solve(np.eye(len(ids)) - mean, words)
    top = {a: v for a, v in grammar.root.items()}
    assert sum(v.sum() for v in top.values()) == pytest.approx(1.0, rel=EXACT)
    for (a, h), i in ids.items():
        expected = mean_length if a in top else 1.0
        assert lengths[i] == pytest.approx(expected, rel=SUM), (a, h)


def test_sizes_names_and_reach(seed):
    grammar = make_lpcfg(3, 12, 100, density=0.01, random_state=seed)
    interminals = [f"A{i}" for i in range(3)]
    preterminals = [f"P{i:02d}" for i in range(12)]
    assert list(grammar.nonterminals) == interminals + preterminals
    assert sorted(grammar.words) == [f"w{i:02d}" for i in range(100)]
    children = {x for _, b, c in grammar.binary for x in (b, c)}
    assert children == set(interminals + preterminals)
    assert set(grammar.root) == set(interminals)


def test_density_and_concentration(seed):
    sparse = make_lpcfg(density=0.1, random_state=seed)
    full = make_lpcfg(density=1.0, random_state=seed)
    assert len(full.binary) == 4 * 10 * 10
    assert len(full.lexical) == 6 * 60
    assert len(sparse.binary) < 0.2 * len(full.binary)
    peaked = make_lpcfg(concentration=1e-3, density=1.0, random_state=seed)
    flat = make_lpcfg(concentration=100, density=1.0, random_state=seed)

    def largest(grammar):
        return np.max([v.max() for v in grammar.lexical.values()])

    assert largest(peaked) > 0.9
    assert largest(flat) < 0.05


def inside_features(grammar):
    """P(rule or word | state) of each nonterminal, one row a feature."""
    features = {a: [] for a in grammar.nonterminals}
    for (a, _, _), tensor in grammar.binary.items():
        features[a].append(tensor.sum(axis=(1, 2)))
    for (a, _), vector in grammar.lexical.items():
        features[a].append(vector)
    return features


def outside_features(grammar):
    """Weight of a state below each rule, one row a rule and side."""
    features = {a: [] for a in grammar.nonterminals}
    for (_, b, c), tensor in grammar.binary.items():
        features[b].append(tensor.sum(axis=(0, 2)))
        features[c].append(tensor.sum(axis=(0, 1)))
    return features


def has_pivots(rows, m):
    rows = np.array(rows)
    alone = (rows > 0).sum(axis=1) == 1
    return len(set(rows[alone].argmax(axis=1))) == m


@pytest.mark.parametrize("m", [2, 5])
def test_pivot_assumption(m, seed):
    grammar = make_lpcfg(m=m, pivot=True, density=1.0, random_state=seed)
    for features in (inside_features(grammar), outside_features(grammar)):
        assert all(has_pivots(rows, m) for rows in features.values())
    without = make_lpcfg(m=m, density=1.0, random_state=seed)
    for features in (inside_features(without), outside_features(without)):
        assert not any(has_pivots(rows, m) for rows in features.values())


def test_share_of_pivot_words(seed):
    grammar = make_lpcfg(m=3, pivot=0.4, random_state=seed)
    own = {}
    for (a, _), vector in grammar.lexical.items():
        if (vector > 0).sum() == 1:
            own[a] = own.get(a, 0) + vector
    for total in own.values():
        np.testing.assert_allclose(total, 0.4, rtol=EXACT)


def test_same_seed_same_grammar():
    for pivot in (False, True):
        one, two, other = (
            make_lpcfg(pivot=pivot, random_state=seed) for seed in (1, 1, 2)
        )
        assert one == two
        assert one != other


def test_number_of_states():
    assert make_lpcfg(2, 2, 20, m={"A1": 4, "P0": 3}, random_state=0).m == {
        "A0": 1,
        "A1": 4,
        "P0": 3,
        "P1": 1,
    }
    with pytest.raises(ValueError, match="m gives 0 states to 'P1'"):
        make_lpcfg(m={"P1": 0})
    with pytest.raises(ValueError, match="m gives 'x' states to 'A0'"):
        make_lpcfg(m=lambda name: "x")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mean_length": 2}, "mean_length"),
        ({"density": 0}, "density"),
        ({"pivot": 1.0}, "pivot"),
        ({"n_words": 12, "pivot": True}, "raise n_words=12"),
        ({"n_preterminals": 1, "pivot": True}, "raise n_preterminals"),
        ({"m": 30, "pivot": True, "n_words": 500}, "raise n_preterminals"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        make_lpcfg(**params)


def test_smallest_grammar():
    grammar = make_lpcfg(1, 1, 1, m=1, random_state=0)
    assert grammar.m == {"A0": 1, "P0": 1}
    assert len(grammar.binary) == 4


def test_make_treebank(seed):
    grammar = make_lpcfg(mean_length=6, random_state=seed)
    treebank = make_treebank(grammar, 2000, random_state=seed)
    assert len(treebank) == 2000
    assert treebank == make_treebank(grammar, 2000, random_state=seed)
    assert treebank != make_treebank(grammar, 2000, random_state=seed + 1)
    assert np.isfinite(grammar.log_prob(treebank)).all()
    # Standard deviation of the mean is below 0.2 here.
    assert abs(treebank.lengths.mean() - 6) < 1.0
    learner = PCFG(smoothing=0.0).fit(treebank)
    assert len(make_treebank(learner, 5, random_state=seed)) == 5
    assert isinstance(learner.grammar_, LPCFG)
    with pytest.raises(TypeError, match="takes an LPCFG or a fitted learner, got str"):
        make_treebank("S -> NP VP")
