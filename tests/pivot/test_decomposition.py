import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize

from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.pivot import (
    anchor_decomposition,
    cca,
    fast_anchor_words,
    pivot_decomposition,
    simplex_least_squares,
)
from lpcfg_sk.pivot._simplex import match_states
from tests.reference.pivot import best_order, separable
from tests.tolerances import EXACT, SUM


@pytest.mark.parametrize(
    "m, d, columns, kappa",
    [(1, 4, 5, 0.0), (2, 10, 8, 0.0), (6, 40, 50, 0.01), (15, 80, 60, 0.0)],
)
def test_exact_matrix_is_recovered(seed, m, d, columns, kappa):
    rng = np.random.default_rng([seed, m])
    pi, r, s = separable(rng, m, d, columns)
    result = pivot_decomposition(r @ np.diag(pi) @ s.T, m, kappa=kappa)
    order = best_order(result.r, r)
    assert_allclose(result.pi, pi[order], atol=1e-10)
    assert_allclose(result.r, r[:, order], atol=1e-10)
    assert_allclose(result.s, s[:, order], atol=1e-10)
    if m > 1:  # every row is a pivot of a single state
        assert_array_equal(result.row_anchors, order)
        assert set(result.column_anchors) == set(range(columns - m, columns))


@pytest.mark.parametrize("svd_solver", ["dense", "arpack"])
def test_exact_sparse_matrix_with_empty_rows(seed, svd_solver):
    rng = np.random.default_rng(seed)
    m = 5
    pi, r, s = separable(rng, m, 500, 450)
    rows = np.sort(rng.choice(800, 500, replace=False))
    columns = np.sort(rng.choice(700, 450, replace=False))
    Q = sparse.lil_array((800, 700))
    Q[np.ix_(rows, columns)] = 1000.0 * r @ np.diag(pi) @ s.T
    result = pivot_decomposition(Q.tocsc(), m, svd_solver=svd_solver, random_state=seed)
    order = best_order(result.r[rows], r)
    assert_allclose(result.pi, pi[order], atol=1e-10)
    assert_allclose(result.r[rows], r[:, order], atol=1e-10)
    assert_allclose(result.s[columns], s[:, order], atol=1e-10)
    assert_allclose(result.r.sum(axis=0), 1.0, rtol=EXACT)


def test_error_falls_with_the_sample(seed):
    rng = np.random.default_rng(seed)
    pi, r, s = separable(rng, 4, 20, 20, mass=1.0)
    Q = r @ np.diag(pi) @ s.T
    errors = []
    for size in (10**4, 10**6, 10**8):
        counts = rng.multinomial(size, Q.ravel()).reshape(Q.shape)
        result = pivot_decomposition(counts, 4)
        order = best_order(result.r, r)
        errors.append(
            np.abs(result.r - r[:, order]).sum() + np.abs(result.s - s[:, order]).sum()
        )
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


@pytest.mark.filterwarnings("ignore:the permutation step did not converge")
@pytest.mark.slow_without_jit
def test_a_large_sparse_matrix_stays_sparse(seed):
    rng = np.random.default_rng(seed)
    size, m, n = 100_000, 8, 300_000
    state = rng.integers(m, size=n)
    rows = np.where(rng.random(n) < 0.3, state, rng.integers(m, size, size=n))
    columns = np.where(rng.random(n) < 0.3, state, rng.integers(m, size, size=n))
    Q = sparse.coo_array((np.ones(n), (rows, columns)), shape=(size, size)).tocsr()
    result = pivot_decomposition(
        Q, m, kappa=5.0, min_count=100, max_iter=2, random_state=0
    )
    assert set(result.row_anchors) == set(range(m))
    assert_allclose(result.r.sum(axis=0), 1.0, rtol=1e-9)
    assert_allclose(result.s.sum(axis=0), 1.0, rtol=1e-9)
    assert_allclose(result.pi, 1 / m, atol=0.01)


@pytest.mark.slow_without_jit
def test_one_projection_serves_smaller_m(seed):
    rng = np.random.default_rng(seed)
    Q = rng.integers(0, 20, (60, 50))
    shared = cca(Q, 10, kappa=1.0)
    for m in (2, 5):
        alone = pivot_decomposition(Q, m, kappa=1.0)
        again = pivot_decomposition(Q, m, projection=shared)
        assert_allclose(again.r, alone.r, atol=1e-9)
        assert_allclose(again.singular_values, alone.singular_values, rtol=1e-9)


def test_randomized_svd_agrees_with_arpack(seed):
    rng = np.random.default_rng(seed)
    Q = sparse.random_array((3000, 2500), density=0.003, rng=rng, format="csr")
    Q.data = np.ceil(Q.data * 10)
    top = sparse.csr_array(
        np.kron(np.eye(30), np.ones((100, 1))) @ np.kron(np.eye(30), np.ones((1, 83)))
    )
    top.resize((3000, 2500))
    Q = sparse.csr_array(Q + top)
    expected = cca(Q, 30, kappa=1.0, svd_solver="arpack", random_state=0)
    found = cca(Q, 30, kappa=1.0, svd_solver="randomized", random_state=0)
    assert_allclose(found.singular_values, expected.singular_values, rtol=1e-4)
    overlap = np.linalg.svd(
        np.linalg.qr(found.right)[0].T @ np.linalg.qr(expected.right)[0]
    )[1]
    assert overlap.min() > 0.999


def test_cca_of_one_hot_variables(seed):
    rng = np.random.default_rng(seed)
    Q = rng.integers(1, 9, (7, 6)).astype(float)
    result = cca(Q, 3)
    p, q = Q.sum(axis=1) / Q.sum(), Q.sum(axis=0) / Q.sum()
    # canonical variables are uncorrelated with unit second moments; the first is 1
    scale = np.sqrt(Q.sum())
    left, right = result.left * scale, result.right * scale
    assert_allclose(left.T @ np.diag(p) @ left, np.eye(3), atol=1e-12)
    assert_allclose(right.T @ np.diag(q) @ right, np.eye(3), atol=1e-12)
    assert_allclose(np.abs(left[:, 0]), 1.0, rtol=1e-12)
    assert_allclose(
        left.T @ (Q / Q.sum()) @ right, np.diag(result.singular_values), atol=1e-12
    )
    assert_allclose(result.singular_values[0], 1.0, rtol=1e-12)


def test_m_is_cut_to_the_rank():
    Q = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    result = pivot_decomposition(Q, 5)
    assert result.pi.tolist() == [1.0]
    assert_allclose(result.r[:, 0], [1 / 6, 2 / 6, 3 / 6], rtol=1e-12)


def test_rare_rows_are_no_pivots():
    # row 2 lies farthest out but was seen only twice
    Q = np.array([[50.0, 10, 40], [10, 50, 40], [0, 2, 0]])
    assert 2 in pivot_decomposition(Q, 2).row_anchors
    assert set(pivot_decomposition(Q, 2, min_count=5).row_anchors) == {0, 1}
    assert set(pivot_decomposition(Q, 2, min_count=(5, 0)).row_anchors) == {0, 1}


def test_anchors_are_vertices_of_the_hull(seed):
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(6, 8))
    inner = rng.dirichlet(np.ones(6), 50) @ vertices
    points = np.vstack([inner[:20], vertices, inner[20:]])
    assert set(fast_anchor_words(points, 6)) == set(range(20, 26))
    some = fast_anchor_words(points, 6, candidates=np.arange(len(points)) < 23)
    assert set(some) >= {20, 21, 22}
    assert len(some) == 6
    assert len(fast_anchor_words(points, 20)) == 6
    assert len(fast_anchor_words(points[:0], 2)) == 0


def test_matching_never_loses_likelihood(seed):
    rng = np.random.default_rng(seed)
    Q = sparse.csr_array(rng.poisson(1.0, (12, 10)).astype(float))
    posteriors = rng.dirichlet(np.ones(3), 12)
    s = rng.dirichlet(np.ones(10), 3).T
    start = np.full((3, 3), 1 / 3)

    def likelihood(n):
        t, n_iter, gap = match_states(Q, posteriors, s, start, tol=0.0, max_iter=n)
        assert n_iter == n
        assert_allclose(t.sum(axis=1), 1.0, rtol=EXACT)
        dense = Q.toarray()
        value = (dense * np.log(posteriors @ t @ s.T)).sum() / dense.sum()
        return value, gap

    values, gaps = zip(*(likelihood(n) for n in (1, 2, 5, 20, 200, 2000)), strict=True)
    assert (np.diff(values) >= -1e-14).all()
    # concave: the gap bounds the distance to the global maximum
    assert gaps[-1] < 1e-6
    for value, gap in zip(values, gaps, strict=True):
        assert values[-1] - value <= gap + 1e-12


@pytest.mark.parametrize(
    "Q, message",
    [
        ([[1.0, -1.0]], "non-negative"),
        ([[1.0, np.nan]], "finite"),
        ([[0.0, 0.0]], "no events"),
        ([1.0, 2.0], "matrix"),
        ([["a", "b"]], "dtype"),
    ],
)
def test_bad_matrices_are_named(Q, message):
    with pytest.raises(ValueError, match=message):
        pivot_decomposition(Q, 1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"solver": "pairwize"}, "solver"),
        ({"svd_solver": "lapack"}, "svd_solver"),
        ({"projection": cca(np.eye(3), 1)}, r"has 1 directions, and m=3"),
        ({"projection": cca(np.eye(4), 3)}, "another matrix"),
        ({"projection": cca(np.eye(3), 3)._replace(left=np.eye(3) * np.nan)}, "finite"),
        ({"kappa": -1.0}, "kappa"),
        ({"min_count": -1.0}, "min_count"),
        ({"solver_tol": np.nan}, "solver_tol"),
        ({"solver_max_iter": 0}, "solver_max_iter"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
@pytest.mark.parametrize("decompose", [pivot_decomposition, anchor_decomposition])
def test_bad_settings_of_decompositions_are_named(decompose, options, message):
    with pytest.raises(ValueError, match=message):
        decompose(np.eye(3), 3, **options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tol": -1.0}, "tol"),
        ({"max_iter": -1}, "max_iter"),
        ({"min_count": (1.0, -1.0)}, "negative"),
        ({"min_count": (1.0, 2.0, 3.0)}, "pair"),
    ],
)
def test_bad_settings_of_both_sides_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        pivot_decomposition(np.eye(3), 3, **options)


def test_bad_numbers_are_refused_by_every_step():
    for Q in (-np.eye(2), np.eye(2) * np.nan, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="Q "):
            cca(Q, 2)
        with pytest.raises(ValueError, match="Q "):
            anchor_decomposition(Q, 2)
    with pytest.raises(ValueError, match="svd_solver"):
        cca(np.eye(2), 2, svd_solver="lapack")
    bad = np.array([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ValueError, match="points must hold finite"):
        fast_anchor_words(bad, 2)
    with pytest.raises(ValueError, match="points"):
        simplex_least_squares(bad, np.eye(2))
    with pytest.raises(ValueError, match="vertices"):
        simplex_least_squares(np.eye(2), bad)
    with pytest.raises(ValueError, match="solver"):
        simplex_least_squares(np.eye(2), np.eye(2), solver="pairwize")


def test_too_few_iterations_of_the_permutation_step_are_told(seed):
    rng = np.random.default_rng(seed)
    pi, r, s = separable(rng, 4, 20, 20, mass=1.0)
    counts = rng.multinomial(10**4, (r @ np.diag(pi) @ s.T).ravel()).reshape(20, 20)
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 iterations"):
        result = pivot_decomposition(counts, 4, max_iter=3)
    assert result.n_iter == 3
    assert result.gap > 1e-6
    # To take no step is a choice, not a failure; by default there are enough.
    assert pivot_decomposition(counts, 4, max_iter=0).n_iter == 0
    assert pivot_decomposition(counts, 4).gap <= 1e-6


@pytest.mark.parametrize("sparse_input", [False, True])
def test_half_the_model_needs_pivots_of_rows_only(seed, sparse_input):
    # Matrix decomposition problem 2: no column belongs to one state.
    rng = np.random.default_rng(seed)
    pi, r, _ = separable(rng, 4, 30, 25)
    s = rng.dirichlet(np.ones(25), 4).T
    assert s.min() > 0
    Q = r @ np.diag(pi) @ s.T
    result = anchor_decomposition(sparse.csr_array(Q) if sparse_input else Q, 4)
    order = best_order(result.r, r)
    assert_allclose(result.r, r[:, order], atol=1e-10)
    assert_allclose(result.pi, pi[order], atol=1e-10)
    assert_array_equal(result.anchors, order)
    joint = result.pi * result.r
    assert_allclose(result.posteriors, joint / joint.sum(axis=1)[:, None], atol=1e-9)
    both = pivot_decomposition(Q, 4, max_iter=0)
    assert_array_equal(both.r, anchor_decomposition(Q, 4).r)


@pytest.mark.parametrize("m", [0, 2.5, "two"])
def test_bad_m(m):
    with pytest.raises(ValueError, match="positive integer"):
        pivot_decomposition(np.eye(3), m)


def test_the_alternative_of_section_5_3_recovers_exact_columns(seed):
    """Columns need no pivots: s is dense."""
    rng = np.random.default_rng(seed)
    pi, r, _ = separable(rng, 4, 20, 15)
    s = rng.dirichlet(np.ones(15), 4).T
    result = pivot_decomposition(r @ np.diag(pi) @ s.T, 4, columns="likelihood")
    order = best_order(result.r, r)
    assert_allclose(result.s, s[:, order], atol=1e-10)
    assert (result.n_iter, len(result.column_anchors)) == (0, 0)
    assert result.gap < 1e-6


def test_the_alternative_maximises_the_likelihood(seed):
    """No other s is better, found here by a general optimiser."""
    rng = np.random.default_rng(seed)
    pi, r, s = separable(rng, 2, 6, 5, mass=1.0)
    Q = rng.multinomial(2000, (r @ np.diag(pi) @ s.T).ravel()).reshape(6, 5)
    result = pivot_decomposition(Q, 2, columns="likelihood", tol=1e-9, max_iter=20_000)
    joint = result.r * result.pi
    posteriors = joint / joint.sum(axis=1, keepdims=True)

    def loss(x):
        x = np.exp(x.reshape(5, 2))
        p = posteriors @ (x / x.sum(axis=0)).T
        return -(Q[Q > 0] * np.log(p[Q > 0])).sum() / Q.sum()

    best = min(
        minimize(loss, rng.standard_normal(10), options={"gtol": 1e-9}).fun
        for _ in range(3)
    )
    found = loss(np.log(np.maximum(result.s, 1e-300)).ravel())
    assert found <= best + SUM
