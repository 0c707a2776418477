import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import LPCFG, PCFG, WTA, SVTAMinimizer, Treebank
from lpcfg_sk.automata import _gram_matrices, _svta
from lpcfg_sk.automata._minimizer import RECENT
from lpcfg_sk.exceptions import (
    NotFittedError,
    NotStronglyConvergentError,
    ParseFailureWarning,
)
from tests.reference.charts import random_grammar
from tests.reference.wta import all_trees, random_wta
from tests.tolerances import ITERATIVE, SUM

TREES = Treebank(
    [
        "(S (NP (D the) (N dog)) (V barks))",
        "(S (NP (D the) (NN (J old) (N cat))) (V sleeps))",
        "(S (NP (D a) (N dog)) (VP (V sees) (NP (D the) (N cat))))",
        "(S (N cats) (VP (V see) (N dogs)))",
        "(S (N cats) (V sleep))",
        "(S (NP (NP (D a) (N dog)) (PP (P of) (NP (D the) (N cat)))) (V barks))",
    ]
)


def test_all_states_change_no_value():
    model = SVTAMinimizer().fit(TREES)
    assert isinstance(model.estimator_, PCFG)
    assert model.n_states_ == len(model.singular_values_) == model.wta_.n_states
    np.testing.assert_allclose(
        model.wta_.value(TREES), model.original_.value(TREES), rtol=1e-8
    )
    np.testing.assert_allclose(
        np.exp(model.score_samples(TREES)), model.original_.value(TREES), rtol=1e-8
    )
    assert model.score(TREES) == 1


@pytest.mark.parametrize("gamma", [None, 1.2, "max"])
def test_truncation(gamma):
    model = SVTAMinimizer(n_states=4, gamma=gamma).fit(TREES)
    assert model.n_states_ == 4
    original = model.original_
    assert 0 < original.distance(model.wta_) < original.norm()
    if gamma == "max":
        assert not original.reweight(model.gamma_ / 0.97).is_convergent
    else:
        assert model.gamma_ == (gamma or 1)
    weighted = original.reweight(model.gamma_)
    np.testing.assert_allclose(
        model.singular_values_, weighted.singular_values(), rtol=SUM
    )


@pytest.mark.parametrize("n_states", [None, 3])
def test_each_step_of_a_fit_runs_once(monkeypatch, n_states):
    calls = []

    def count(module, name):
        function = getattr(module, name)

        def counted(*args):
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(module, name, counted)

    steps = {
        "find_recursion": _gram_matrices,
        "tree_sum": _gram_matrices,
        "subcritical_radius": _gram_matrices,
        "context_gram": _gram_matrices,
        "reduction": _svta,
        "_truncated_svd": _svta,
        "change_basis": _svta,
    }
    for name, module in steps.items():
        count(module, name)
    RECENT.clear()
    SVTAMinimizer(n_states=n_states).fit(TREES)
    assert calls == list(steps)


def test_what_can_be_minimised():
    pcfg = PCFG().fit(TREES)
    wta = WTA.from_pcfg(pcfg)
    values = []
    for given in (pcfg, pcfg.grammar_, wta):
        model = SVTAMinimizer(given, 3).fit()
        assert not hasattr(model, "estimator_")
        values.append(model.wta_.value(TREES))
    learnt = SVTAMinimizer(PCFG(), 3).fit(TREES)
    for value in values:
        np.testing.assert_array_equal(value, learnt.wta_.value(TREES))
    np.testing.assert_array_equal(
        learnt.transform(wta).value(TREES), learnt.wta_.value(TREES)
    )
    with pytest.raises(TypeError, match="from_pcfg"):
        learnt.transform(pcfg.grammar_)
    with pytest.raises(ValueError, match="needs a treebank"):
        SVTAMinimizer().fit()


@pytest.mark.slow_without_jit
def test_grammars_with_latent_states(seed):
    grammar = random_grammar(np.random.default_rng(seed)).normalized()
    model = SVTAMinimizer(grammar, gamma="max").fit()
    assert model.original_.n_states == sum(grammar.m.values())
    assert model.n_states_ <= model.original_.n_states
    trees = Treebank(all_trees(4, "xyz"))
    np.testing.assert_allclose(
        model.wta_.value(trees), model.original_.value(trees), rtol=ITERATIVE
    )


def test_sample_weight_reaches_the_learner_and_the_score():
    weight = np.array([3.0, 0, 0, 0, 1, 0])
    few = SVTAMinimizer().fit(TREES, sample_weight=weight)
    grammar = PCFG().fit(TREES, sample_weight=weight).grammar_
    np.testing.assert_allclose(
        few.original_.value(TREES), WTA.from_pcfg(grammar).value(TREES), rtol=SUM
    )
    rough = SVTAMinimizer(n_states=1).fit(TREES)
    only = np.eye(6)[4]
    assert rough.score(TREES, sample_weight=only) == 1  # two words


def test_metadata_requests_of_the_learner_are_kept():
    weight = np.arange(len(TREES)) + 1.0
    with config_context(enable_metadata_routing=True):
        learner = PCFG().set_fit_request(sample_weight=False)
        refused = SVTAMinimizer(learner).fit(TREES, sample_weight=weight)
        learner = PCFG().set_fit_request(sample_weight=True)
        taken = SVTAMinimizer(learner).fit(TREES, sample_weight=weight)
        requests = SVTAMinimizer().get_metadata_routing()
    plain = SVTAMinimizer().fit(TREES)
    np.testing.assert_array_equal(
        refused.score_samples(TREES), plain.score_samples(TREES)
    )
    assert not np.allclose(taken.score_samples(TREES), plain.score_samples(TREES))
    assert set(requests.fit.requests) == {"sample_weight"}
    assert not hasattr(requests, "transform") or not requests.transform.requests


def test_grid_search_over_states():
    search = GridSearchCV(SVTAMinimizer(), {"n_states": [1, 3, None]}, cv=2)
    search.fit(Treebank(TREES.tolist() * 2))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(TREES) > 0.5


def test_unknown_words_warn_once():
    model = SVTAMinimizer(PCFG(smoothing=0)).fit(TREES)
    with pytest.warns(ParseFailureWarning, match="1 of 2 sentences") as caught:
        trees = model.predict([["z", "z", "z"], ["a", "dog", "barks"]])
    assert len(caught) == 1
    assert str(trees[0]) == "(X (X z) (X (X z) (X z)))"
    assert str(trees[1]) == "(X (X (X a) (X dog)) (X barks))"
    assert len(model.predict(Treebank([]))) == 0


def test_divergent_grammars():
    grammar = LPCFG.from_parameters(
        binary={("A", "A", "A"): [[[0.9]]]},
        lexical={("A", "a"): [0.9]},
        root={"A": [1.0]},
    )
    with pytest.raises(NotStronglyConvergentError, match="gamma"):
        SVTAMinimizer(grammar).fit()
    model = SVTAMinimizer(grammar, gamma="max").fit()
    # s = ω² + γ²t²s²
    np.testing.assert_allclose(model.gamma_, 0.98 / (2 * 0.81), rtol=2e-3)
    trees = Treebank(all_trees(4, "a"))
    np.testing.assert_allclose(
        model.wta_.value(trees), model.original_.value(trees), rtol=SUM
    )
    finite = WTA([1.0, 0.0], ([0], [1], [1], [0.4]), {"a": [0.0, 1.0]})
    with pytest.raises(ValueError, match="finitely many"):
        SVTAMinimizer(finite, gamma="max").fit()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_states": 0},
        {"gamma": "most"},
        {"gamma": 0.0},
        {"rank_tol": 1.0},
        {"estimator": 3},
    ],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SVTAMinimizer(**parameters).fit(TREES)


def test_rank_tolerance(seed):
    wta = random_wta(np.random.default_rng(seed), 5)
    values = wta.singular_values()
    tol = values[2] / values[0] * 0.99
    model = SVTAMinimizer(wta, rank_tol=tol).fit()
    assert model.n_states_ == len(model.singular_values_) == 3


def test_estimator_manners():
    model = SVTAMinimizer(n_states=3)
    with pytest.raises(NotFittedError):
        model.predict([["a"]])
    model.fit(TREES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.wta_.value(TREES), model.wta_.value(TREES))
    assert clone(model).n_states == 3
    assert not hasattr(clone(model), "wta_")
    assert not model.__sklearn_tags__().input_tags.two_d_array
    parallel = clone(model).set_params(n_jobs=2).fit(TREES)
    assert parallel.predict(TREES) == model.predict(TREES)


def test_pipelines_as_estimator_are_explained():
    from sklearn.pipeline import make_pipeline

    with pytest.raises(TypeError, match="Pipeline"):
        SVTAMinimizer(make_pipeline(PCFG())).fit(TREES)
