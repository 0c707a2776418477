import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from lpcfg_sk import PCFG, SpectralLPCFG, make_parser
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.exceptions import ParseFailureWarning, TreebankWarning
from lpcfg_sk.language_model import KneserNeyLM
from lpcfg_sk.metrics import (
    f1_score,
    log_likelihood_scorer,
    parseval_scorer,
    perplexity,
)
from lpcfg_sk.treebank import Treebank
from tests.tolerances import EXACT

TREES = ["(S (NP (PRP I)) (VP (VBP am)))", "(S (VP (VB go)))"] * 6


class Stub(BaseEstimator):
    """Predicts flat trees; each token costs `loss`."""

    def __init__(self, loss=1.0, impossible=()):
        self.loss = loss
        self.impossible = impossible

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        flat = [
            f"(S {' '.join(f'(VP (X {word}))' for word in sentence)})"
            for sentence in Treebank(X).sentences()
        ]
        return Treebank(flat)

    def score_samples(self, X):
        log_prob = -self.loss * Treebank(X).lengths.astype(float)
        log_prob[list(self.impossible)] = -np.inf
        return log_prob

    def sentence_log_prob(self, X):
        return self.score_samples(X) / 2


def test_parseval_scorer_in_model_selection():
    trees = Treebank(TREES)
    scores = cross_val_score(Stub(), trees, scoring=parseval_scorer, cv=3)
    assert_allclose(scores, f1_score(trees, Stub().predict(trees)), rtol=EXACT)
    assert 0 < scores[0] < 1


def test_parseval_scorer_takes_gold_trees_from_y():
    gold = Treebank(TREES)
    assert parseval_scorer(Stub(), gold.unparsed(), gold) == parseval_scorer(
        Stub(), gold
    )
    alone = parseval_scorer(Stub(), gold[:1])
    weighted = parseval_scorer(Stub(), gold[:2], sample_weight=[3, 0])
    assert_allclose(weighted, alone, rtol=EXACT)


def test_log_likelihood_scorer_in_a_search():
    search = GridSearchCV(
        Stub(), {"loss": [3.0, 1.0, 2.0]}, scoring=log_likelihood_scorer, cv=2
    ).fit(Treebank(TREES))
    assert search.best_params_ == {"loss": 1.0}
    assert_allclose(search.best_score_, -1.5, rtol=EXACT)


def test_log_likelihood_weights():
    found = log_likelihood_scorer(Stub(), TREES[:2], sample_weight=[3, 1])
    assert_allclose(found, -(3 * 2 + 1) / 4, rtol=EXACT)


def test_impossible_rows():
    stub = Stub(impossible=[0])
    assert log_likelihood_scorer(stub, TREES[:3]) == -np.inf
    assert perplexity(stub, TREES[:3]) == np.inf
    with pytest.warns(TreebankWarning, match="1 of 3 rows have probability zero"):
        assert log_likelihood_scorer(stub, TREES[:3], zero="skip") == -1.5
    with pytest.warns(TreebankWarning, match="1 of 3 rows"):
        found = perplexity(stub, TREES[:3], zero="skip")
    assert_allclose(found, np.e, rtol=EXACT)
    with pytest.warns(TreebankWarning):
        assert log_likelihood_scorer(stub, TREES[:1], zero="skip") == -np.inf
    with pytest.warns(TreebankWarning):
        assert perplexity(stub, TREES[:1], zero="skip") == np.inf
    # A row that has no weight does no harm.
    assert log_likelihood_scorer(stub, TREES[:2], sample_weight=[0, 1]) == -1.0
    with pytest.raises(ValueError, match="zero must be one of"):
        perplexity(stub, TREES, zero="ignore")


@pytest.fixture(scope="module")
def signed():
    """A spectral grammar that gives some trees and sentences negative values."""
    trees = make_treebank(
        make_lpcfg(3, 4, 12, m=2, mean_length=5, random_state=0), 400, random_state=0
    )
    plain = {"smoothing": None, "lexical_smoothing": None, "prune": None}
    parser = make_parser(SpectralLPCFG(m=4, **plain), rarewords__min_count=1).fit(
        trees[:150]
    )
    return parser, trees[150:]


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("method", ["score_samples", "sentence_log_prob"])
def test_likelihood_of_spectral_grammars_can_be_finite(signed, method):
    parser, test = signed
    seen, learner = parser[:-1].transform(test), parser[-1]
    with pytest.warns(ParseFailureWarning, match="have a negative value"):
        own = getattr(learner, method)(seen)
    if method == "score_samples":
        plain = learner.coarse_.log_prob(seen)
    else:
        plain = learner.coarse_.sentence_log_prob(seen)
    lost = np.isneginf(own) & np.isfinite(plain)
    assert lost.any()
    known = np.isfinite(plain)
    expected = np.log(0.9 * np.exp(own[known]) + 0.1 * np.exp(plain[known]))
    mixed = learner.mixture_log_prob(seen, weight=0.1, method=method)
    assert_allclose(mixed[known], expected, rtol=1e-6)
    assert np.isneginf(mixed[~known]).all()
    scorer = partial(log_likelihood_scorer, method=method)
    with pytest.warns(ParseFailureWarning):
        assert scorer(parser, test) == -np.inf
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows have probability zero")
        found = scorer(parser, test, zero="mix", mix=0.1)
    assert_allclose(found, expected.mean(), rtol=1e-6)


@pytest.mark.slow_without_jit
def test_number_of_states_of_a_spectral_grammar_is_chosen_by_likelihood():
    truth = make_lpcfg(3, 4, 12, m=2, mean_length=6, concentration=0.3, random_state=1)
    trees = make_treebank(truth, 2000, random_state=0)
    plain = {"smoothing": None, "lexical_smoothing": None}
    search = GridSearchCV(
        make_parser(SpectralLPCFG(**plain), rarewords__min_count=1),
        {"learner__m": [1, 2, 8]},
        scoring=partial(log_likelihood_scorer, zero="mix"),
        cv=2,
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows have probability zero")
        search.fit(trees)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"learner__m": 2}


def test_mixtures_need_a_grammar_and_a_weight(signed):
    parser, test = signed
    with pytest.raises(TypeError, match="Stub has no method 'mixture_log_prob'"):
        log_likelihood_scorer(Stub(), TREES, zero="mix")
    with pytest.raises(TypeError, match="PCFG has no method 'word_log_prob'"):
        log_likelihood_scorer(PCFG(), TREES, method="word_log_prob")
    with pytest.raises(ValueError, match="weight must be a number between 0 and 1"):
        log_likelihood_scorer(parser, test, zero="mix", mix=0)
    with pytest.raises(ValueError, match="method must be"):
        log_likelihood_scorer(parser, test, zero="mix", method="predict")
    with pytest.raises(ValueError, match="zero must be one of"):
        log_likelihood_scorer(Stub(), TREES, zero="ignore")


def test_perplexity_of_trees_sentences_and_counts():
    log_prob = np.log([0.5**4, 0.5])
    for X in (TREES[:2], Treebank(TREES[:2]).unparsed(), [["a", "b"], ["c"]]):
        assert_allclose(perplexity(log_prob, X), 2 ** (5 / 3), rtol=EXACT)
    assert_allclose(perplexity(log_prob, np.array([3, 2])), 2.0, rtol=EXACT)
    assert_allclose(perplexity(Stub(), TREES), np.e, rtol=EXACT)
    halved = perplexity(Stub(), TREES, method="sentence_log_prob")
    assert_allclose(halved, np.exp(0.5), rtol=EXACT)
    weighted = perplexity(log_prob, TREES[:2], sample_weight=[0, 2])
    assert_allclose(weighted, 2.0, rtol=EXACT)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("score_unk", [False, True])
def test_perplexity_counts_what_a_language_model_scores(mode, score_unk):
    model = KneserNeyLM(mode=mode, score_unk=score_unk)
    model.fit([["a", "b", "a"], ["b", "a"], []])
    X = [["a", "new", "b"], ["new"], [], ["b", "new", "new", "new"]]
    assert_allclose(perplexity(model, X), model.perplexity(X), rtol=EXACT)
    # The tokens are not those of another method.
    model.sentence_log_prob = model.score_samples
    plain = perplexity(model, X, method="sentence_log_prob")
    assert_allclose(plain, perplexity(model.score_samples(X), X), rtol=EXACT)


def test_perplexity_reads_rows_once():
    model = KneserNeyLM().fit([["a", "b", "a"], ["b", "a"]])
    X = [["a", "b"], ["b"]]
    assert perplexity(model, iter(X)) == model.perplexity(X)
    assert perplexity(Stub(), iter(TREES)) == perplexity(Stub(), TREES)


def test_perplexity_overflow_is_infinite():
    assert perplexity([-1e6], np.array([1])) == np.inf


@pytest.mark.parametrize(
    ("log_prob", "X", "error", "message"),
    [
        ([np.nan], [["a"]], ValueError, "row 0 is nan"),
        ([0.0, np.inf], [["a"], ["b"]], ValueError, "row 1 is inf"),
        ([[0.0]], [["a"]], ValueError, "expected one per row"),
        ([0.0], [["a"], ["b"]], ValueError, "1 log probabilities for 2 rows"),
        ([0.0], np.array([-1]), ValueError, "token counts"),
    ],
)
def test_bad_log_probabilities(log_prob, X, error, message):
    with pytest.raises(error, match=message):
        perplexity(log_prob, X)


def test_model_without_the_method():
    with pytest.raises(TypeError, match="Stub has no method 'log_prob'"):
        perplexity(Stub(), TREES, method="log_prob")
