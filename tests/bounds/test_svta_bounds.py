import numpy as np
import pytest

from lpcfg_sk import Treebank
from lpcfg_sk.bounds import (
    geometric_truncation_max_size,
    svta_weight_bounds,
    truncation_error,
    truncation_max_size,
    truncation_total_error,
    truncation_total_max_size,
)
from tests.reference.wta import all_trees, random_wta
from tests.tolerances import SUM


def test_weight_bounds_are_the_least_of_three():
    s = np.array([4.0, 1.0, 0.25])
    bounds = svta_weight_bounds(s)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                three = (
                    np.sqrt(s[i] / (s[j] * s[k])),
                    np.sqrt(s[j] / (s[i] * s[k])),
                    np.sqrt(s[k] / (s[i] * s[j])),
                )
                np.testing.assert_allclose(
                    bounds.transition[i, j, k], min(three), rtol=SUM
                )


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_weight_bounds_at_the_ends_of_double_precision(size):
    bounds = svta_weight_bounds(np.full(2, size)).transition
    np.testing.assert_allclose(bounds, 1 / np.sqrt(size), rtol=SUM)


def test_total_error_is_the_sum_over_sizes():
    # 4^m topologies, S^(m + 1) labellings, n^(2m + 1) s each.
    terms = [4**m * 3 ** (m + 1) * 2 ** (2 * m + 1) * 0.5 for m in range(5)]
    total = truncation_total_error(5, n=2, n_words=3, s=0.5)
    np.testing.assert_allclose(total, sum(terms), rtol=SUM)


def test_truncation_bounds_hold(seed):
    wta = random_wta(np.random.default_rng(seed), 3)
    values = wta.singular_values()
    by_size = [
        Treebank(all_trees(m + 1, "ab")[len(all_trees(m, "ab")) :])
        if m
        else Treebank(all_trees(1, "ab"))
        for m in range(4)
    ]
    for n in (1, 2):
        small = wta.truncate(n)
        s = values[n]
        total = 0.0
        for size, trees in enumerate(by_size):
            error = np.abs(wta.value(trees) - small.value(trees))
            assert error.max() <= truncation_error(size, n=3, s=s)
            total += error.sum()
            assert total <= truncation_total_error(size + 1, n=3, n_words=2, s=s)


def test_sizes_invert_the_errors():
    n, s, epsilon = 4, 1e-7, 1e-2
    largest = truncation_max_size(epsilon, n=n, s=s)
    np.testing.assert_allclose(truncation_error(largest, n=n, s=s), epsilon, rtol=SUM)
    M = int(truncation_total_max_size(epsilon, n=n, n_words=3, s=s))
    assert truncation_total_error(M, n=n, n_words=3, s=s) < epsilon


def test_corners():
    assert truncation_error(5, n=3, s=0.0) == 0
    assert truncation_error(10**6, n=3, s=1.0) == np.inf
    assert truncation_max_size(0.1, n=1, s=0.01) == np.inf
    assert truncation_max_size(0.1, n=1, s=1.0) == 0
    assert truncation_max_size(0.1, n=5, s=0.0) == np.inf
    assert truncation_total_max_size(0.1, n=5, n_words=2, s=0.0) == np.inf
    assert truncation_total_error(1000, n=2, n_words=3, s=0.0) == 0
    assert truncation_total_error(10**9, n=2, n_words=3, s=0.1) == np.inf
    assert truncation_error(10**400, n=1, s=0.5) == 0.5
    for bad in ([1.0, 0.0], [1.0, np.inf], [np.nan]):
        with pytest.raises(ValueError, match="positive"):
            svta_weight_bounds(bad)
    with pytest.raises(ValueError, match="M=-1"):
        truncation_error(-1, n=2, s=0.1)
    with pytest.raises(ValueError, match="s=nan"):
        truncation_max_size(0.1, n=2, s=np.nan)
    with pytest.raises(ValueError, match="epsilon"):
        truncation_max_size(0.0, n=2, s=0.1)


@pytest.mark.parametrize("n_kept", [0, 3, 7])
def test_geometric_decay_is_the_bound_at_the_first_cut_value(n_kept):
    C, theta, options = 2.5, 0.3, {"n": 8, "n_words": 4}
    found = geometric_truncation_max_size(
        1e-3, n_kept=n_kept, C=C, theta=theta, **options
    )
    s = C * theta ** (n_kept + 1)
    expected = np.log(1e-3 / s) / np.log(4 * 4 * 8**2) - 1
    assert found == pytest.approx(expected, rel=SUM)
    largest = truncation_total_max_size(1e-3, s=s, **options)
    assert found == pytest.approx(largest, rel=SUM)
    with pytest.raises(ValueError, match="theta"):
        geometric_truncation_max_size(0.1, n_kept=1, C=C, theta=1.5, **options)
