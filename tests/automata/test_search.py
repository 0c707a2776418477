"""Searches over the number of states solve the Gram equations once per automaton."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from lpcfg_sk import PCFG, WTA, SVTAMinimizer
from lpcfg_sk._parallel import one_blas_thread
from lpcfg_sk.automata import _gram_matrices
from lpcfg_sk.automata._minimizer import RECENT, RecentResults
from lpcfg_sk.exceptions import NotStronglyConvergentError
from tests.automata.test_minimizer import TREES
from tests.reference.wta import random_wta

# Half of so few trees does not know all words of the other half.
pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)


@pytest.fixture
def solved(monkeypatch):
    """Automata whose Gram equations were solved, by their number of states."""
    calls, solve = [], _gram_matrices.tree_sum

    def counted(tensors, *args):
        calls.append(tensors[0].n)
        return solve(tensors, *args)

    monkeypatch.setattr(_gram_matrices, "tree_sum", counted)
    RECENT.clear()
    yield calls
    RECENT.clear()


@pytest.mark.parametrize("gamma", [None, 1.1])
def test_a_search_over_the_number_of_states_solves_once_per_fold(solved, gamma):
    grid = {"n_states": [1, 2, 3, 4]}
    search = GridSearchCV(SVTAMinimizer(gamma=gamma), grid, cv=2, refit=False)
    search.fit(TREES)
    assert len(solved) == 2


def test_a_search_with_a_given_grammar_solves_once(solved):
    grammar = PCFG().fit(TREES).grammar_
    for given in (grammar, WTA.from_pcfg(grammar)):
        search = GridSearchCV(SVTAMinimizer(given), {"n_states": [1, 2, 4]}, cv=2)
        search.fit(TREES)
    assert len(solved) == 1


def test_the_largest_gamma_is_found_once(solved, monkeypatch):
    calls = []

    def counted(wta):
        calls.append(wta)
        return 1.5

    monkeypatch.setattr("lpcfg_sk.automata._minimizer.critical_gamma", counted)
    for n_states in (1, 2, 3):
        SVTAMinimizer(n_states=n_states, gamma="max").fit(TREES)
    assert len(calls) == len(solved) == 1


@pytest.mark.parametrize("gamma", [None, "max"])
def test_shared_decompositions_change_no_bit(solved, gamma):
    fresh = []
    for n_states in (2, 4, None):
        RECENT.clear()
        fresh.append(SVTAMinimizer(n_states=n_states, gamma=gamma).fit(TREES))
    RECENT.clear()
    for own in fresh:
        model = clone(own).fit(TREES)
        assert model.gamma_ == own.gamma_
        np.testing.assert_array_equal(model.singular_values_, own.singular_values_)
        for found, expected in (
            (model.wta_.T, own.wta_.T),
            (model.wta_.alpha, own.wta_.alpha),
            (model.wta_.omega_matrix, own.wta_.omega_matrix),
        ):
            np.testing.assert_array_equal(found, expected)
        assert model.wta_.words == own.wta_.words


def test_no_result_is_stale(solved):
    grammar = PCFG().fit(TREES).grammar_
    wta = WTA.from_pcfg(grammar)
    first = SVTAMinimizer(wta, 3).fit()
    expected = first.singular_values_.copy()
    first.singular_values_[:] = 0
    np.testing.assert_array_equal(
        SVTAMinimizer(wta, 3).fit().singular_values_, expected
    )
    others = [
        (wta * 2.0, {}),
        (wta.reweight(0.5), {}),
        (WTA(wta.alpha, {"X": wta.T}, wta.omega), {}),
        (WTA(wta.alpha, wta.T, {f"{w}'": v for w, v in wta.omega.items()}), {}),
        (wta, {"gamma": 1.1}),
        (wta, {"rank_tol": 0.1}),
    ]
    for automaton, parameters in others:
        model = SVTAMinimizer(automaton, 3, **parameters).fit()
        assert model.wta_.words == automaton.words
        assert model.wta_.labels == automaton.labels
        weighted = automaton.reweight(parameters.get("gamma", 1))
        np.testing.assert_array_equal(
            model.singular_values_,
            weighted.singular_values(rank_tol=parameters.get("rank_tol")),
        )


def test_shared_decompositions_are_not_pickled(solved):
    model = SVTAMinimizer(n_states=1).fit(TREES)
    before = pickle.dumps(model)
    for n_states in (2, 3):
        clone(model).set_params(n_states=n_states).fit(TREES)
    assert pickle.dumps(model) == before
    RECENT.clear()
    assert pickle.dumps(clone(model).fit(TREES)) == before


def test_divergent_automata_raise_each_time(solved):
    wta = WTA([1.0], [[[0.9]]], {"a": [1.0]})
    for _ in range(2):
        with pytest.raises(NotStronglyConvergentError):
            SVTAMinimizer(wta, 1).fit()
    assert SVTAMinimizer(wta, 1, gamma=0.1).fit().n_states_ == 1


def test_kept_results_are_bounded_and_computed_by_one_thread():
    recent, calls = RecentResults(100), []

    def get(key, n_bytes=40):
        def compute():
            calls.append(key)
            return key, n_bytes

        return recent.get((key,), compute)

    assert [get(key) for key in "abab"] == list("abab")
    assert calls == ["a", "b"]
    assert [get("c"), get("b"), get("a")] == ["c", "b", "a"]
    assert calls == ["a", "b", "c", "a"]
    get("huge", 1000)
    get("huge", 1000)
    assert calls[4:] == ["huge", "huge"]
    calls.clear()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(get, "xxxx"))
    assert calls == ["x"]


def test_threads_of_a_search_change_no_bit(solved):
    grid = {"n_states": [1, 2, 3]}
    scores = []
    for n_jobs in (1, 2):
        RECENT.clear()
        search = GridSearchCV(SVTAMinimizer(), grid, cv=2)
        with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
            search.fit(TREES)
        scores.append(search.best_estimator_.singular_values_)
    np.testing.assert_array_equal(*scores)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("dense", [False, True])
def test_singular_values_do_not_depend_on_the_number_of_blas_threads(dense):
    rng = np.random.default_rng(0)
    wta = random_wta(rng, 60, scale=0.4 / 60)
    if not dense:
        i, j, k = rng.integers(0, 60, size=(3, 600))
        weights = rng.random(600) / 40
        wta = WTA(wta.alpha, (i, j, k, weights), wta.omega)
    found = []
    for n_threads in (1, 4):
        # A copy, so that nothing is known of it yet.
        copy = pickle.loads(pickle.dumps(wta))
        with threadpool_limits(n_threads, user_api="blas"):
            small = copy.truncate(5)
            found.append((copy.singular_values(), small.alpha, small.T, copy.norm()))
    for other in found[1:]:
        for part, expected in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(part, expected)


def test_a_thread_does_not_end_the_limit_of_another():
    def threads():
        return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
