"""The recipes of docs/model_selection.rst, on few trees."""

import re
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import Memory
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)

import lpcfg_sk.datasets
from lpcfg_sk import (
    CFG,
    PCFG,
    AggregateMarkovLM,
    MarginEMPCFG,
    PivotLPCFG,
    SpectralLPCFG,
    SVTAMinimizer,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import results_table
from lpcfg_sk.metrics import log_likelihood_scorer

pytestmark = [
    pytest.mark.slow_without_jit,
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ConvergenceWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "model_selection.rst"
TREES = load_toy(160)


def recipes():
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text)
    return [textwrap.dedent(block) for block in blocks]


@pytest.mark.slow
def test_the_page_runs(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("tabulate")
    monkeypatch.setattr(lpcfg_sk.datasets, "load_toy", lambda n: load_toy(n // 3))
    namespace = {}
    for recipe in recipes():
        exec(compile(recipe, str(PAGE), "exec"), namespace)
    plt.close("all")
    assert namespace["table"].index.tolist() == ["spectral", "pivot + EM"]


def test_the_page_compiles():
    assert len(recipes()) > 6
    for recipe in recipes():
        compile(recipe, str(PAGE), "exec")


@pytest.mark.slow_without_jit
def test_cross_validation_is_a_mean_of_folds():
    parser = make_parser(PCFG())
    scores = cross_val_score(parser, TREES, cv=2)
    half = len(TREES) // 2
    by_hand = parser.fit(TREES[half:]).score(TREES[:half])
    assert scores[0] == by_hand
    assert 0.5 < scores.mean() < 1.0


@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.TreebankWarning")
def test_another_scorer():
    scorer = partial(log_likelihood_scorer, zero="skip")
    few, many = (
        cross_val_score(
            make_parser(PCFG(), min_count=count), TREES, cv=2, scoring=scorer
        )
        for count in (2, 50)
    )
    # Classes of words are easier to predict than words.
    assert np.all(few < many)
    assert np.all(many < 0)


@pytest.mark.slow_without_jit
def test_states_and_smoothing_of_the_spectral_learner(tmp_path):
    memory = Memory(tmp_path, verbose=0)
    learner = SpectralLPCFG(m_max=4, memory=memory)
    grid = {"learner__m": [1, 4], "learner__smoothing": [5.0, 20.0]}
    cached = GridSearchCV(make_parser(learner, memory=memory), grid, cv=2).fit(TREES)
    plain = GridSearchCV(make_parser(SpectralLPCFG(m_max=4)), grid, cv=2).fit(TREES)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(cached.cv_results_[name], plain.cv_results_[name])
    table = results_table(cached)
    assert table.loc[0, "m"] == 4
    assert set(table.columns) >= {"m", "smoothing"}
    assert cached.best_estimator_[-1].m == 4


@pytest.mark.slow_without_jit
def test_random_search_over_pivots():
    search = RandomizedSearchCV(
        make_parser(PivotLPCFG(m=2)),
        {"learner__scaling": [1.0, 50.0], "rarewords__min_count": [2, 5]},
        n_iter=3,
        cv=2,
        random_state=0,
    ).fit(TREES)
    table = results_table(search)
    assert len(table) == 3
    assert set(table.columns[:2]) == {"scaling", "min_count"}


@pytest.mark.slow_without_jit
def test_templates_are_a_parameter():
    templates = [["rule", "word"], "cohen2013"]
    search = GridSearchCV(
        make_parser(SpectralLPCFG(m=2)), {"inside__templates": templates}, cv=2
    ).fit(TREES)
    assert results_table(search)["templates"].tolist() != []
    few, all_ = (
        make_parser(SpectralLPCFG(m=2), inside__templates=t).fit(TREES)
        for t in templates
    )
    assert few["inside"].n_features_out_ < all_["inside"].n_features_out_


@pytest.mark.slow_without_jit
def test_halving_gives_good_settings_more_trees():
    search = HalvingGridSearchCV(
        make_parser(PCFG()),
        {"binarize__horizontal": [0, 1], "binarize__vertical": [1, 2]},
        cv=2,
        min_resources=40,
        factor=2,
        random_state=0,
    ).fit(TREES)
    assert search.n_resources_ == [40, 80, 160]
    assert results_table(search)["iteration"].max() == 2


def test_margin_of_a_grammar():
    grammar = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
    X = [["a", "c"], ["a", "a", "c"], ["c"], ["a", "a", "a", "c"]] * 3
    search = GridSearchCV(MarginEMPCFG(grammar), {"gamma": [0.4, 0.1, 1e-4]}, cv=2).fit(
        X
    )
    # Never seen in training, yet possible.
    assert np.isfinite(search.score([["b", "c"]]))
    assert search.best_params_["gamma"] < 0.4


def test_states_of_an_automaton():
    binary = TreeBinarizer().fit_transform(TREES)
    short = binary[binary.lengths <= 10]
    search = GridSearchCV(SVTAMinimizer(), {"n_states": [1, 10]}, cv=2).fit(short)
    assert search.best_params_["n_states"] == 10
    assert search.best_estimator_.wta_.n_states == 10


def test_kappa_of_a_language_model():
    model = AggregateMarkovLM(4, init="pivot", max_iter=2, random_state=0)
    grid = {"kappa": [1.0, 50.0]}
    search = GridSearchCV(model, grid, cv=2).fit(TREES.sentences())
    assert np.isfinite(results_table(search)["mean_score"]).all()
