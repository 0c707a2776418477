import numpy as np
import pytest

from lpcfg_sk import WTA
from lpcfg_sk.automata import critical_gamma
from tests.reference.wta import random_wta


def test_fold():
    # s = ω² + γ²t²s² has a solution up to γ = 1 / (2 t ω)
    for t, omega in ((0.3, 1.0), (0.05, 2.0), (7.0, 0.5)):
        wta = WTA([1.0], [[[t]]], {"a": [omega]})
        gamma = critical_gamma(wta, rtol=1e-4)
        expected = 1 / (2 * t * omega)
        assert expected * (1 - 2e-4) <= gamma <= expected


def test_linear_growth():
    # right-branching trees of value p^size diverge at γ = 1 / p
    wta = WTA([0.0, 1.0], ([1], [0], [1], [0.4]), {"a": [1.0, 1.0]})
    gamma = critical_gamma(wta)
    assert 2.5 * (1 - 2e-3) <= gamma <= 2.5


def test_both_sides_of_the_critical_point(seed):
    wta = random_wta(np.random.default_rng(seed), 4)
    gamma = critical_gamma(wta)
    assert wta.reweight(gamma * 0.999).is_convergent
    assert not wta.reweight(gamma * 1.005).is_convergent


def test_finitely_many_trees():
    wta = WTA([1.0, 0.0], ([0], [1], [1], [0.4]), {"a": [0.0, 1.0]})
    assert critical_gamma(wta) == np.inf
    zero = WTA([0.0], [[[1.0]]], {"a": [1.0]})
    assert critical_gamma(zero) == np.inf


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_scale_of_transitions_divides_gamma(seed, scale):
    wta = random_wta(np.random.default_rng(seed), 3)
    np.testing.assert_allclose(
        critical_gamma(wta.reweight(scale)), critical_gamma(wta) / scale, rtol=2e-3
    )
