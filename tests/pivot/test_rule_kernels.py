from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lpcfg_sk._kernels._pivot import (
    FeatureRows,
    feature_gradient,
    rule_gradient,
    rule_mixture,
)
from tests.reference.pivot import combination_gradient, step_two_update
from tests.tolerances import EXACT


@pytest.fixture(params=[(1, 1, 1), (2, 3, 4), (5, 1, 2)])
def events(request, seed):
    """Likelihoods of 150 events, more than a block, and a start."""
    rng = np.random.default_rng(seed)
    arrays = [rng.random((150, m)) for m in request.param]
    start = rng.dirichlet(np.ones(np.prod(request.param)))
    return *arrays, start.reshape(request.param[0], -1)


def test_em_agrees_with_the_loop_over_states(events):
    outside, left, right, start = events
    cube = start.reshape(outside.shape[1], left.shape[1], right.shape[1])
    weight = np.ones(len(outside))
    for n in (1, 2):
        cube, value = step_two_update(cube, outside, left, right)
        t, n_iter, _ = rule_mixture(outside, left, right, weight, start, -1.0, n)
        assert n_iter == n
        assert_allclose(t.ravel(), cube.ravel(), rtol=EXACT)
    before, _, _ = rule_mixture(outside, left, right, weight, start, -1.0, 1)
    gradient = np.empty_like(start)
    total, mass = rule_gradient(outside, left, right, weight, before, gradient)
    assert mass == len(outside)
    assert_allclose(total / mass, value, rtol=EXACT)


def test_gradient_by_finite_differences(events, seed):
    outside, left, right, t = events
    weight = np.random.default_rng(seed).random(len(outside))
    gradient, scrap = np.empty_like(t), np.empty_like(t)
    rule_gradient(outside, left, right, weight, t, gradient)
    for cell in np.ndindex(t.shape):
        values = []
        for step in (1e-6, -1e-6):
            moved = t.copy()
            moved[cell] += step
            values.append(rule_gradient(outside, left, right, weight, moved, scrap)[0])
        slope = (values[0] - values[1]) / 2e-6
        assert_allclose(gradient[cell], slope, rtol=1e-5)


def test_weights_repeat_events(events):
    outside, left, right, start = events
    weight = (np.arange(len(outside)) % 3).astype(float)
    some = np.repeat(np.arange(len(outside)), weight.astype(int))
    one = rule_mixture(outside, left, right, weight, start, 0.0, 4)[0]
    ones = np.ones(len(some))
    two = rule_mixture(outside[some], left[some], right[some], ones, start, 0.0, 4)[0]
    assert_allclose(one, two, rtol=1e-10)


@pytest.mark.slow_without_jit
def test_objective_rises_to_a_maximum_within_the_gap(events):
    outside, left, right, start = events
    weight = np.ones(len(outside))
    gradient = np.empty_like(start)
    values, gaps = [], []
    for n in (0, 1, 3, 10, 100, 3000):
        t, _, gap = rule_mixture(outside, left, right, weight, start, 0.0, n)
        assert_allclose(t.sum(), 1.0, rtol=1e-9)
        value, mass = rule_gradient(outside, left, right, weight, t, gradient)
        values.append(value / mass)
        gaps.append(gap)
    assert (np.diff(values) >= -1e-13).all()
    for value, gap in zip(values, gaps, strict=True):
        assert values[-1] - value <= gap + 1e-10


def test_impossible_events_are_left_out():
    outside = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    one = np.ones((3, 1))
    start = np.full((2, 1), 0.5)
    t, _, gap = rule_mixture(outside, one, one, np.ones(3), start, 1e-9, 50)
    assert_array_equal(t[:, 0], [0.5, 0.5])
    assert gap <= 1e-9
    t, n_iter, _ = rule_mixture(outside[1:2], one[:1], one[:1], one[0], start, 0.0, 5)
    assert n_iter == 0
    assert_array_equal(t, start)


def test_an_event_that_the_start_excludes_is_no_optimum():
    outside, one = np.eye(2), np.ones((2, 1))
    start = np.array([[1.0], [0.0]])
    t, _, gap = rule_mixture(outside, one, one, np.ones(2), start, 1e-9, 100)
    assert_array_equal(t, start)
    assert gap == np.inf
    # Its weight decides, not its being there.
    weight = np.array([1.0, 0.0])
    assert rule_mixture(outside, one, one, weight, start, 1e-9, 100)[2] <= 1e-9
    both = np.full((2, 1), 0.5)
    t, _, gap = rule_mixture(outside, one, one, np.ones(2), both, 1e-9, 100)
    assert_array_equal(t, both)
    assert gap <= 1e-9


def some_features(rng, n_events, m, most):
    """Up to `most` features for each event, as rows and as lists of vectors."""
    vectors = rng.random((7, m))
    lengths = rng.integers(0, most + 1, n_events)
    indptr = np.append(0, np.cumsum(lengths))
    indices = rng.integers(7, size=indptr[-1]).astype(np.int32)
    for array in (vectors, indptr, indices):
        array.flags.writeable = False
    lists = [vectors[indices[a:b]] for a, b in pairwise(indptr)]
    return FeatureRows(indptr, indices, vectors), lists


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (4, 1, 2)])
@pytest.mark.parametrize("most", [3, 200])
def test_combinations_of_features_agree_with_their_loop(seed, shape, most):
    rng = np.random.default_rng(seed)
    # Some events have no feature, some more right ones than a block holds.
    sizes = (2, 2, most)
    n_events = 60 if most < 100 else 3
    rows, lists = zip(
        *(
            some_features(rng, n_events, m, k)
            for m, k in zip(shape, sizes, strict=True)
        ),
        strict=True,
    )
    weight = rng.random(n_events)
    t = rng.dirichlet(np.ones(np.prod(shape))).reshape(-1, shape[2])
    gradient = np.empty_like(t)
    mass, blocked = feature_gradient(*rows, weight, t, gradient)
    expected, _, expected_mass = combination_gradient(t.reshape(shape), *lists, weight)
    assert_allclose(gradient.ravel(), expected.ravel(), rtol=1e-10)
    assert_allclose(mass, expected_mass, rtol=EXACT)
    assert blocked == 0.0


def test_combinations_that_t_excludes_are_counted():
    one = FeatureRows(np.arange(3), np.zeros(2, np.int32), np.ones((1, 1)))
    outside = FeatureRows(
        np.array([0, 2, 3]),
        np.array([0, 1, 2], np.int32),
        np.array([[1.0, 0], [0, 1], [0, 0]]),
    )
    gradient = np.empty((2, 1))
    t = np.array([[1.0], [0.0]])
    mass, blocked = feature_gradient(outside, one, one, np.array([3.0, 5]), t, gradient)
    # The last feature has no state at all.
    assert (mass, blocked) == (3.0, 3.0)


def test_read_only_input(events):
    for array in events:
        array.flags.writeable = False
    outside, left, right, start = events
    t, _, _ = rule_mixture(outside, left, right, np.ones(len(outside)), start, 0.0, 1)
    assert_allclose(t.sum(), 1.0, rtol=1e-12)
