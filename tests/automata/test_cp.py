import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from lpcfg_sk import WTA, CPCompressor, Treebank
from lpcfg_sk._kernels._wta_tensors import divergence, update_factor
from lpcfg_sk.automata._cp import nonnegative_cp, quasi_newton_cp
from lpcfg_sk.exceptions import ConvergenceWarning
from tests.reference import wta as reference
from tests.tolerances import EXACT, SUM


@pytest.fixture
def tensor(seed):
    rng = np.random.default_rng(seed)
    t = rng.random((5, 5, 5)) * (rng.random((5, 5, 5)) < 0.4)
    i, j, k = (a.astype(np.int32) for a in np.nonzero(t))
    entries = i, j, k, t[i, j, k]
    for a in entries:
        a.flags.writeable = False
    return t, entries


def test_update_and_divergence(tensor, seed):
    t, (i, j, k, weight) = tensor
    a, b, c = np.random.default_rng(seed).random((3, 5, 2))
    expected = reference.cp_update(t, a, b, c)
    np.testing.assert_allclose(
        divergence(i, j, k, weight, a, b, c),
        reference.divergence(t, a, b, c),
        rtol=SUM,
    )
    updated = a.copy()
    update_factor(i, j, k, weight, updated, b, c)
    np.testing.assert_allclose(updated, expected, rtol=SUM)
    middle = b.copy()
    update_factor(j, i, k, weight, middle, a, c)
    np.testing.assert_allclose(
        middle, reference.cp_update(t.transpose(1, 0, 2), b, a, c), rtol=SUM
    )


def test_divergence_never_rises(tensor):
    _, values, _ = nonnegative_cp(
        tensor[1], 5, 3, max_iter=50, tol=0, random_state=np.random.RandomState(0)
    )
    assert all(np.diff(values) <= EXACT)
    assert values[-1] < values[0]


def test_zeros_stay_harmless():
    i = np.zeros(1, dtype=np.int32)
    a = np.zeros((2, 1))
    update_factor(i, i, i, np.ones(1), a, np.zeros((2, 1)), np.ones((2, 1)))
    np.testing.assert_array_equal(a, 0)
    assert divergence(i, i, i, np.ones(1), a, a, a) == np.inf


@pytest.mark.slow_without_jit
def test_against_pyttb(tensor):
    ttb = pytest.importorskip("pyttb")
    t, entries = tensor
    theirs = min(_pyttb_divergence(ttb, t, np.random.RandomState(s)) for s in range(3))
    ours = min(
        nonnegative_cp(
            entries,
            5,
            2,
            max_iter=2000,
            tol=1e-10,
            random_state=np.random.RandomState(s),
        )[1][-1]
        for s in range(3)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-2)


def _pyttb_divergence(ttb, t, rng):
    start = ttb.ktensor([rng.uniform(0.1, 1, size=(5, 2)) for _ in range(3)])
    model, *_ = ttb.cp_apr(
        ttb.tensor(t.copy()).to_sptensor(),
        2,
        init=start,
        algorithm="mu",
        stoptol=1e-8,
        maxiters=500,
        printitn=0,
    )
    factors = [f.copy() for f in model.factor_matrices]
    factors[0] *= model.weights
    return reference.divergence(t, *factors)


def test_exact_when_the_rank_is_enough(seed):
    rng = np.random.default_rng(seed)
    n = 3
    T = rng.random((n, n, n)) * 0.05
    wta = WTA(rng.random(n), T, {"a": rng.random(n), "b": rng.random(n)})
    model = CPCompressor(wta, rank=9, max_iter=20000, tol=1e-9, random_state=0).fit()
    assert model.wta_.n_parameters == 3 * 9 * n
    trees = Treebank(reference.all_trees(3, "ab"))
    np.testing.assert_allclose(model.wta_.value(trees), wta.value(trees), rtol=1e-6)
    assert wta.distance(model.wta_) < 1e-7 * wta.norm()
    # Thousands of iterations magnify last bits of matrix products, which can depend on
    # where the arrays lie in memory.
    np.testing.assert_allclose(
        model.transform(wta).value(trees), model.wta_.value(trees), rtol=1e-7
    )


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_the_size_of_weights_does_not_matter(size):
    T = np.full((2, 2, 2), 0.1)
    T[0, 1, 0] = 0.3
    options = {"rank": 2, "tol": 1e-2, "random_state": 0}
    wta = WTA([1.0, 0.5], T, {"a": [0.3, 0.6]})
    one = CPCompressor(wta, **options).fit()
    other = CPCompressor(wta.reweight(size), **options).fit()
    np.testing.assert_allclose(
        other.wta_.tensors[0].to_dense() / size, one.wta_.tensors[0].to_dense(), SUM
    )
    np.testing.assert_allclose(
        np.array(other.divergences_) / size, one.divergences_, rtol=1e-6
    )


def test_parameters_and_warnings(seed):
    wta = reference.random_wta(np.random.default_rng(seed), 3)
    with pytest.raises(ValueError, match="negative"):
        CPCompressor(wta).fit()
    positive = WTA([1.0, 0.5], np.full((2, 2, 2), 0.1), {"a": [0.3, 0.6]})
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        CPCompressor(positive, 2, max_iter=2, tol=1e-12, random_state=0).fit()
    with pytest.raises(ValueError, match="rank"):
        CPCompressor(positive, 0).fit()
    best = CPCompressor(positive, 2, n_init=3, tol=1e-2, random_state=0).fit()
    one = CPCompressor(positive, 2, n_init=1, tol=1e-2, random_state=0).fit()
    assert best.divergences_[-1] <= one.divergences_[-1]
    assert clone(best).get_params()["n_init"] == 3
    with pytest.raises(TypeError, match="WTA"):
        best.transform(3)


def test_learns_and_parses():
    trees = Treebank(
        ["(S (NP (D the) (N dog)) (V barks))", "(S (N cats) (V sleep))"] * 3
    )
    model = CPCompressor(rank=4, random_state=0).fit(trees)
    assert model.estimator_.grammar_ is not None
    assert model.score(trees) == 1
    again = CPCompressor(rank=4, random_state=0).fit(trees)
    np.testing.assert_array_equal(
        model.score_samples(trees), again.score_samples(trees)
    )


def test_projected_quasi_newton_reaches_the_divergence_of_updates(tensor):
    pytest.importorskip("pyttb")
    entries = tensor[1]
    least = [
        min(
            solve(
                entries,
                5,
                2,
                max_iter=2000,
                tol=1e-8,
                random_state=np.random.RandomState(seed),
            )[1][-1]
            for seed in range(3)
        )
        for solve in (nonnegative_cp, quasi_newton_cp)
    ]
    assert least[1] == pytest.approx(least[0], rel=1e-2)
    (a, b, c), (value,), _ = quasi_newton_cp(
        entries, 5, 2, max_iter=100, tol=1e-4, random_state=np.random.RandomState(0)
    )
    assert value == pytest.approx(reference.divergence(tensor[0], a, b, c), rel=SUM)


def test_quasi_newton_steps_need_pyttb(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyttb", None)
    wta = WTA([1.0], np.full((1, 1, 1), 0.1), {"a": [0.5]})
    with pytest.raises(ImportError, match="pip install pyttb"):
        CPCompressor(wta, 1, solver="pqnr").fit()


def pyttb_that(cp_apr):
    names = {"sptensor": lambda *args: args, "ktensor": lambda factors: factors}
    return SimpleNamespace(cp_apr=cp_apr, **names)


def test_failures_of_pyttb_are_explained(monkeypatch):
    def fail(*args, **options):
        raise AssertionError("L-BFGS first iterate is bad")

    monkeypatch.setitem(sys.modules, "pyttb", pyttb_that(fail))
    wta = WTA([1.0], np.full((1, 1, 1), 0.1), {"a": [0.5]})
    with pytest.raises(RuntimeError, match=r"is bad; .* a larger n_init"):
        CPCompressor(wta, 1, solver="pqnr", random_state=0, n_init=3).fit()


def test_starts_that_fail_are_left_out(monkeypatch):
    weights = []

    def fail_once(data, rank, *, init, **options):
        weights.append(data[1])
        if len(weights) == 1:
            raise AssertionError("bad start")
        model = SimpleNamespace(factor_matrices=init, weights=np.full(rank, 2.0))
        return model, None, {"kktViolations": [0.0]}

    monkeypatch.setitem(sys.modules, "pyttb", pyttb_that(fail_once))
    wta = WTA([1.0], np.full((1, 1, 1), 0.1), {"a": [0.5]})
    cp = CPCompressor(wta, 1, solver="pqnr", random_state=0, n_init=2)
    with pytest.warns(ConvergenceWarning, match="1 of 2 starts were left out"):
        cp.fit()
    # The package sees weights of the size of counts; the factors have that of ours.
    np.testing.assert_allclose(weights, 1.0)
    rng = np.random.RandomState(0)
    _, factors = (rng.uniform(0.1, 1.0, size=(3, 1)) for _ in range(2))
    assert np.prod(cp.wta_.T) == pytest.approx(0.2 * factors.prod(), rel=EXACT)
