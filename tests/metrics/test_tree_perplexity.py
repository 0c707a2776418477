import math

import numpy as np
import pytest

from lpcfg_sk.metrics import tree_perplexity
from tests.tolerances import EXACT


def test_by_the_formula(seed):
    rng = np.random.default_rng(seed)
    f, g = rng.random((2, 20))
    p, q = f / f.sum(), g / g.sum()
    result = tree_perplexity(f, g)
    assert result.perplexity == pytest.approx(2 ** -(p @ np.log2(q)), rel=EXACT)
    assert result.original == pytest.approx(2 ** -(p @ np.log2(p)), rel=EXACT)
    assert result.perplexity > result.original
    ratios = sorted(abs(math.log(b / a)) for a, b in zip(f, g, strict=True))
    assert result.median_log_ratio == pytest.approx(sum(ratios[9:11]) / 2, rel=EXACT)
    assert (result.n_clipped, result.clipped_mass) == (0, 0.0)


def test_values_that_are_not_positive_are_clipped_and_counted():
    f, g = np.array([0.4, 0.3, 0.2, 0.0]), np.array([0.5, -0.2, 0.0, 0.25])
    result = tree_perplexity(f, g)
    p, q = f / 0.9, np.array([0.5, 0.25, 0.25, 0.25]) / 1.25
    assert result.perplexity == pytest.approx(2 ** -(p @ np.log2(q)), rel=EXACT)
    assert result.n_clipped == 2
    assert result.clipped_mass == pytest.approx(5 / 9, rel=EXACT)
    assert result.median_log_ratio == pytest.approx(math.log(0.5 / 0.4), rel=EXACT)


def test_logarithms_do_not_underflow():
    f, g = np.array([0.4, 0.1]), np.array([0.3, -0.1])
    pairs = [(np.sign(x), np.log(np.abs(x)) - 5000) for x in (f, g)]
    plain, scaled = tree_perplexity(f, g), tree_perplexity(*pairs)
    assert scaled == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(
    ("f", "g", "message"),
    [
        ([0.5, -0.5], [1, 1], "no negative"),
        ([0.0, 0.0], [1, 1], "positive value"),
        ([0.5, 0.5], [-1, 0], "f_hat has no positive"),
        ([0.5, 0.5], [1, 1, 1], "2 values of f and 3"),
        ([0.5, np.inf], [1, 1], "finite"),
    ],
)
def test_bad_values(f, g, message):
    with pytest.raises(ValueError, match=message):
        tree_perplexity(f, g)
