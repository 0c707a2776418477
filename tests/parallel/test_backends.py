"""One core, two threads, two processes and a Dask cluster: the same bytes."""

import json

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    AggregateMarkovLM,
    MarginEMPCFG,
    PivotLPCFG,
    SpectralLPCFG,
    SVTAMinimizer,
    VotingParser,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.persistence._codec import encode

# A grammar of so few trees does not parse every sentence, and runs are cut short.
pytestmark = [
    pytest.mark.slow_without_jit,
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ConvergenceWarning"),
]

TREES = load_toy(180)
TRAIN, TEST = TREES[:150], TREES[150:]
SENTENCES = TRAIN.sentences()

EM = {"max_iter": 3, "tol": None, "random_state": 0}
LEARNERS = {
    "pcfg": (make_parser(PCFG()), TRAIN, TEST),
    "em": (make_parser(EMLPCFG(2, **EM)), TRAIN, TEST),
    "em_pivot": (
        make_parser(EMLPCFG(init=PivotLPCFG(2), **EM)),
        TRAIN,
        TEST,
    ),
    "spectral": (make_parser(SpectralLPCFG(2)), TRAIN, TEST),
    "spectral_randomized": (
        make_parser(SpectralLPCFG(2, svd_solver="randomized", random_state=0)),
        TRAIN,
        TEST,
    ),
    "pivot": (make_parser(PivotLPCFG(2)), TRAIN, TEST),
    "margin": (
        MarginEMPCFG(
            CFG.from_string("S -> S S | 'a' | 'b' 'a' | 'b' S"), max_iter=4, tol=0.0
        ),
        [["a", "b", "a", "a"], ["b", "b", "a"], ["a", "a"], ["b", "a", "b", "a"]] * 9,
        [["a", "b", "a"]] * 3,
    ),
    "markov": (AggregateMarkovLM(3, max_iter=5, random_state=0), SENTENCES, SENTENCES),
    "markov_pivot": (
        AggregateMarkovLM(3, init="pivot", max_iter=3, random_state=0),
        SENTENCES,
        SENTENCES,
    ),
    "svta": (
        SVTAMinimizer(n_states=3),
        make_parser(PCFG())[:2].fit_transform(TRAIN),
        TEST,
    ),
    "voting": (
        VotingParser(
            [("em", make_parser(EMLPCFG(2, **EM))), ("pcfg", make_parser(PCFG()))]
        ),
        TRAIN,
        TEST,
    ),
}


def outcome(name, n_jobs=None):
    """All numbers of a fitted estimator and of what it predicts, as bytes."""
    estimator, train, test = LEARNERS[name]
    estimator = clone(estimator)
    jobs = [p for p in estimator.get_params() if p.endswith("n_jobs")]
    estimator.set_params(**dict.fromkeys(jobs, n_jobs)).fit(train)
    estimator.set_params(**dict.fromkeys(jobs))
    results = [estimator]
    if name == "voting":
        # Its members keep the number of jobs that they were fitted with.
        results = [member[-1].grammar_ for member in estimator.estimators_]
    if hasattr(estimator, "predict"):
        results += [str(tree) for tree in estimator.predict(test)]
    if hasattr(estimator, "score_samples") and not hasattr(estimator, "steps"):
        results.append(estimator.score_samples(train))
    if name in ("em", "spectral", "voting"):
        learner = estimator[-1] if hasattr(estimator, "steps") else estimator
        X = estimator[:-1].transform(test) if learner is not estimator else test
        results += learner.span_marginals(X)
    arrays = {}
    data = json.dumps(encode(results, arrays))
    return data, {key: (a.dtype, a.shape, a.tobytes()) for key, a in arrays.items()}


EXPECTED = {}


def expected(name):
    if name not in EXPECTED:
        EXPECTED[name] = outcome(name, n_jobs=1)
    return EXPECTED[name]


ALONE = [name for name in LEARNERS if name != "voting"]


@pytest.mark.parametrize("name", ALONE)
def test_two_threads_give_the_bytes_of_one(small_chunks, name):
    assert outcome(name, n_jobs=2) == expected(name)


@pytest.mark.parametrize("name", ALONE)
def test_a_cluster_gives_the_bytes_of_one_core(small_chunks, on_cluster, name):
    with on_cluster():
        found = outcome(name)
    assert found == expected(name)


@pytest.mark.parametrize("name", ["spectral", "em", "margin"])
def test_processes_give_the_bytes_of_one_core(small_chunks, name):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        found = outcome(name)
    assert found == expected(name)


def test_members_fitted_on_a_cluster_vote_as_here(small_chunks_everywhere, on_cluster):
    one = outcome("voting", n_jobs=1)
    assert outcome("voting", n_jobs=2) == one
    with on_cluster():
        found = outcome("voting")
    assert found == one


def scores_of_search(learner):
    search = GridSearchCV(make_parser(learner), {"learner__m": [1, 2]}, cv=2)
    search.fit(TRAIN[:60])
    names = [f"split{i}_test_score" for i in range(2)]
    return (
        np.stack([search.cv_results_[name] for name in names]).tobytes(),
        search.best_estimator_[-1].grammar_.arrays.binary.tobytes(),
    )


@pytest.mark.parametrize(
    "learner", [SpectralLPCFG(), EMLPCFG(**EM)], ids=["spectral", "em"]
)
def test_a_search_on_a_cluster_gives_the_bytes_of_one_core(
    small_chunks_everywhere, on_cluster, learner
):
    with on_cluster():
        found = scores_of_search(learner)
    assert found == scores_of_search(learner)
