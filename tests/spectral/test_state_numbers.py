"""Numbers of states that are read off the singular values."""

import numpy as np
import pytest

from lpcfg_sk import SpectralLPCFG
from lpcfg_sk.spectral._decomposition import numerical_rank, state_number
from tests.spectral.conftest import STATES

#: Squares 64, 16, 4, 1 of sum 85.
HALVES = np.array([8.0, 4.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("threshold", "m"), [(0.5, 1), (64 / 85, 1), (0.76, 2), (0.99, 4), (1.0, 4)]
)
def test_energy(threshold, m):
    assert state_number(HALVES, 100, 4, "energy", threshold) == m


def test_energy_counts_the_values_up_to_m_max():
    # Of 64 + 16 the first has 80 %, of all four 75 %.
    assert state_number(HALVES, 100, 2, "energy", 0.78) == 1
    assert state_number(HALVES, 100, 4, "energy", 0.78) == 2


@pytest.mark.parametrize(
    ("values", "threshold", "m"),
    [
        ([8.0, 7.0, 1.0, 0.9], 3.0, 2),
        ([8.0, 7.0, 1.0, 0.9], 8.0, 4),
        ([8.0, 1.0, 0.9, 0.1], 3.0, 3),
        ([8.0, 1.0, 0.9, 0.2], 3.0, 1),
        (HALVES, None, 4),
        # One value fewer than m_max: a zero follows.
        ([8.0, 1.0, 0.5], 3.0, 3),
    ],
)
def test_gap(values, threshold, m):
    assert state_number(np.array(values), 100, 4, "gap", threshold) == m


@pytest.mark.parametrize(
    ("count", "m"), [(3, 1), (50, 1), (200, 6), (275, 8), (500, 16), (9e9, 16)]
)
def test_ramp(count, m):
    """One more than 15 (n - 50) / 450, to the next even number where in the middle."""
    assert state_number(np.full(40, 2.0), count, 16, "ramp") == m


def test_ramp_leaves_small_values_out():
    values = np.array([10.0, 5.0, 0.11, 0.09])
    assert state_number(values, 1000, 4, "ramp") == 3
    assert state_number(values, 1000, 4, "ramp", 0.4) == 2


@pytest.mark.parametrize("rule", ["energy", "gap", "ramp"])
def test_a_single_value_is_one_state(rule):
    for values in ([], [3.0]):
        assert state_number(np.array(values), 1000, 8, rule) == 1


def test_rank():
    assert numerical_rank(np.array([]), 1e-6) == 0
    assert numerical_rank(np.array([1.0, 1e-5, 1e-7]), 1e-6) == 2


@pytest.mark.parametrize("rule", ["energy", "gap", "ramp"])
def test_the_learner_follows_the_rule(sampled, rule):
    model = SpectralLPCFG("singular_values", m_max=5, state_rule=rule).fit(sampled)
    for a, values in model.singular_values_.items():
        rank = max(1, numerical_rank(values, model.rank_tol))
        expected = min(rank, state_number(values, model.counts_[a], 5, rule))
        assert model.m_[a] == model.grammar_.m[a] == expected
    same = SpectralLPCFG(model.m_, m_max=5).fit(sampled)
    for one, two in zip(model.grammar_.arrays, same.grammar_.arrays, strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_gap_of_exact_moments_is_the_true_number(finite):
    """Ω^a has rank m_a, and values that are rounding count as zeros."""
    _, trees, p = finite
    model = SpectralLPCFG("singular_values", state_rule="gap")
    assert model.fit(trees, sample_weight=p).m_ == STATES


@pytest.mark.parametrize(
    "wrong", [{"m": "energy"}, {"state_rule": "best"}, {"state_threshold": 0.0}]
)
def test_bad_settings(sampled, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SpectralLPCFG(**wrong).fit(sampled)
