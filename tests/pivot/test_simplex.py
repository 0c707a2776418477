import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lpcfg_sk.pivot import simplex_least_squares
from tests.reference import pivot as reference
from tests.tolerances import ITERATIVE

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("m, l", [(1, 2), (2, 1), (4, 3), (5, 6), (6, 2)])
def test_pairwise_agrees_with_enumeration(seed, m, l):
    rng = np.random.default_rng(seed + m)
    vertices = rng.normal(size=(m, l))
    points = np.vstack(
        [rng.normal(size=(15, l)), rng.dirichlet(np.ones(m), 5) @ vertices]
    )
    weights, gap = simplex_least_squares(points, vertices, tol=1e-13, max_iter=10000)
    assert gap <= 1e-13
    assert weights.min() >= 0
    assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    for point, found in zip(points, weights, strict=True):
        expected = reference.simplex_least_squares(point, vertices)
        # with more vertices than dimensions only the nearest point is unique
        assert_allclose(found @ vertices, expected @ vertices, atol=ITERATIVE)
        if m <= l + 1:
            assert_allclose(found, expected, atol=ITERATIVE)


def test_frank_wolfe_comes_near_the_pairwise_solution(seed):
    rng = np.random.default_rng(seed)
    vertices, points = rng.normal(size=(8, 10)), rng.normal(size=(30, 10))
    tight, _ = simplex_least_squares(points, vertices, tol=1e-14, max_iter=5000)
    loose, gap = simplex_least_squares(
        points, vertices, solver="frank-wolfe", tol=1e-3, max_iter=20000
    )
    assert gap <= 1e-3

    def objective(weights):
        return ((weights @ vertices - points) ** 2).sum(axis=1)

    # the duality gap bounds the excess of the objective, in units of the mean norm
    scale = ((vertices - vertices.mean(axis=0)) ** 2).sum(axis=1).mean()
    excess = (objective(loose) - objective(tight)) / (2 * scale)
    assert (excess >= -1e-12).all()
    assert (excess <= 1e-3 + 1e-12).all()


@pytest.mark.parametrize("solver", ["pairwise", "frank-wolfe"])
def test_the_reported_gap_is_what_was_left(seed, solver):
    rng = np.random.default_rng(seed)
    vertices, points = rng.normal(size=(9, 9)), rng.normal(size=(40, 9))
    few, gap = simplex_least_squares(points, vertices, solver=solver, max_iter=2)
    origin = vertices.mean(axis=0)
    centred = vertices - origin
    scale = (centred**2).sum(axis=1).mean()
    gradient = ((few @ centred) - (points - origin)) @ centred.T / scale
    gaps = (few * gradient).sum(axis=1) - gradient.min(axis=1)
    assert gap > 1e-3
    # measured before the last step, so it may only be larger
    assert gaps.max() <= gap * 1.5


def test_points_outside_the_hull_go_to_its_border():
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    points = np.array([[-1.0, -1.0], [2.0, -1.0], [1.0, 1.0]])
    weights, _ = simplex_least_squares(points, triangle, tol=1e-14)
    assert_allclose(weights, [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]], atol=1e-12)


def test_equal_vertices_are_no_problem():
    vertices = np.array([[1.0, 1.0], [1.0, 1.0]])
    weights, gap = simplex_least_squares(np.array([[3.0, 0.0]]), vertices)
    assert_allclose(weights.sum(), 1.0)
    assert gap == 0.0


def test_n_jobs_does_not_change_a_bit(seed):
    rng = np.random.default_rng(seed)
    vertices, points = rng.normal(size=(6, 6)), rng.normal(size=(5000, 6))
    one, _ = simplex_least_squares(points, vertices)
    two, _ = simplex_least_squares(points, vertices, n_jobs=2)
    assert_array_equal(one, two)


def test_read_only_input(seed):
    rng = np.random.default_rng(seed)
    vertices, points = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    expected, _ = simplex_least_squares(points, vertices)
    vertices.flags.writeable = points.flags.writeable = False
    found, _ = simplex_least_squares(points, vertices)
    assert_array_equal(found, expected)
