import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lpcfg_sk._kernels._aggregate import pair_probabilities
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.language_model import AggregateMarkovLM
from lpcfg_sk.language_model._aggregate_training import BigramCounts, pivot_outcomes
from tests.reference import language_model as reference
from tests.reference.pivot import best_order, separable

pytestmark = pytest.mark.kernels


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def corpus(rng):
    """Words of four classes; each class is followed by the next one."""
    words = [[f"{name}{i}" for i in range(12)] for name in "abcd"]
    weights = 1.0 / np.arange(1, 13)
    weights /= weights.sum()
    return [
        [words[k % 4][rng.choice(12, p=weights)] for k in range(start, start + 20)]
        for start in rng.integers(4, size=120)
    ]


@pytest.fixture
def model():
    return AggregateMarkovLM(4, min_count=1, random_state=0)


def test_expectations_agree_with_the_dense_loop(rng):
    counts = rng.poisson(0.3, (30, 20)) * rng.random((30, 20))
    r = rng.dirichlet(np.ones(5), 30).astype(np.float32)
    s = rng.dirichlet(np.ones(20), 5).T.astype(np.float32)
    r[3] = [1, 0, 0, 0, 0]
    s[7, 0] = 0.0
    counts[3, 7] = 2.0
    rows, columns = np.nonzero(counts)
    bigrams = BigramCounts(rows, columns, counts[rows, columns], counts.shape)
    for array in (r, s):
        array.flags.writeable = False
    contexts, outcomes, log_likelihood, impossible = bigrams.expect(r, s)
    expected = reference.em_step(counts, r.astype(float), s.astype(float))
    assert_allclose(contexts, expected[0], rtol=1e-4, atol=1e-6)
    assert_allclose(outcomes, expected[1], rtol=1e-4, atol=1e-6)
    assert_allclose(log_likelihood, expected[2], rtol=1e-5)
    assert impossible == 2.0
    only_rows = bigrams.expect(r, s, columns=False)
    assert_array_equal(only_rows[0], contexts)
    assert only_rows[1] is None


def test_pair_probabilities(rng):
    r, s = rng.random((6, 3)), rng.random((7, 3))
    rows, columns = rng.integers(6, size=9), rng.integers(7, size=9)
    out = np.empty(9)
    pair_probabilities(rows, columns, r, s, out)
    assert_allclose(out, (r @ s.T)[rows, columns], rtol=1e-12)


@pytest.mark.parametrize("init", ["random", "pivot"])
@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("prior", [None, (1.0, 5.0)])
def test_parameters_are_distributions(corpus, model, init, mode, prior):
    model.set_params(init=init, mode=mode, prior=prior, min_count=5).fit(corpus)
    assert model.r_.min() >= 0
    assert model.s_.min() >= 0
    assert_allclose(model.r_.sum(axis=1), 1.0, rtol=1e-5)
    assert_allclose(model.s_.sum(axis=0), 1.0, rtol=1e-5)
    assert_allclose(model.pi_.sum(), 1.0, rtol=1e-6)
    proba = model.predict_proba([[], ["a0"], ["b3", "never"]])
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-5)


def test_likelihood_never_falls_without_a_prior(corpus, model):
    model.set_params(prior=None, validation_fraction=None, tol=0.0, max_iter=60)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model.fit(corpus)
    assert len(model.lower_bounds_) == 60
    assert np.diff(model.lower_bounds_).min() > -1e-5
    assert model.lower_bounds_[-1] - model.lower_bounds_[0] > 1.0


@pytest.mark.parametrize("init", ["random", "pivot"])
def test_the_classes_are_found(corpus, model, init):
    model.set_params(init=init, prior=(0.5, 1.0)).fit(corpus[:100])
    # the unigram model has about 4 times the perplexity
    assert model.perplexity(corpus[100:]) < 11
    classes = {
        word[0]: int(model.s_[i].argmax())
        for i, word in enumerate(model.vocabulary_)
        if word[1:] == "0"
    }
    assert len(set(classes.values())) == 4


@pytest.mark.slow_without_jit
def test_em_leaves_the_plateau_around_its_start(model):
    # noise and priors: the first iterations gain nothing on held-out sentences
    rng = np.random.default_rng(0)
    words = [[f"{name}{i}" for i in range(40)] for name in "abcd"]
    weights = 1.0 / np.arange(1, 41)
    X = [
        [
            words[(k if rng.random() > 0.3 else rng.integers(4)) % 4][
                rng.choice(40, p=weights / weights.sum())
            ]
            for k in range(start, start + 20)
        ]
        for start in rng.integers(4, size=200)
    ]
    model.set_params(m=8, prior=(10.0, 100.0), max_iter=200)
    for random_state in range(4):
        model.set_params(random_state=random_state).fit(X[:150])
        assert model.n_iter_ > 15
        assert model.perplexity(X[150:]) < 80


def test_pivots_are_words_of_distinct_classes(corpus, model):
    model.set_params(init="pivot", max_iter=0).fit(corpus)
    assert sorted(pivot[0] for pivot in model.pivots_) == list("abcd")
    assert model.n_iter_ == 0
    assert model.n_pivot_iter_ >= 1
    assert model.m_ == 4


def test_exact_counts_give_the_true_model(rng, model):
    pi, s, r = separable(rng, 3, 25, 20, mass=1.0)
    counts = 1e4 * (r * pi) @ s.T
    rows, columns = np.nonzero(counts)
    bigrams = BigramCounts(rows, columns, counts[rows, columns], counts.shape)
    model.set_params(m=3, kappa=0.0, anchor_min_count=0.0)
    found, share, pivots = pivot_outcomes(model, bigrams, np.random.RandomState(0))
    order = best_order(found, s)
    assert_allclose(found, s[:, order], atol=1e-6)
    assert_allclose(share, pi[order], atol=1e-6)
    assert_array_equal(pivots, order)


def test_n_jobs_does_not_change_a_bit(corpus, model):
    for init in ("random", "pivot"):
        model.set_params(init=init, n_jobs=None)
        one = clone(model).fit(corpus)
        two = clone(model).set_params(n_jobs=2).fit(corpus)
        assert_array_equal(one.r_, two.r_)
        assert_array_equal(one.s_, two.s_)


def test_stream_and_sentence_events(model):
    X = [["a", "b"], [], ["c"]]
    stream = model.set_params(m=1, validation_fraction=None).fit(X)
    assert stream.event_report(X).n_events == 3
    assert stream.score_samples(X).shape == (3,)
    assert stream.score_samples(X)[1] == 0
    sentence = model.set_params(mode="sentence").fit(X)
    assert sentence.event_report(X).n_events == 6
    assert sentence.score_samples(X)[1] < 0
    assert "</s>" in sentence.vocabulary_


def test_context_crosses_sentences_in_a_stream_only(corpus, model):
    for mode, equal in (("stream", False), ("sentence", True)):
        fitted = clone(model).set_params(mode=mode).fit(corpus)
        together = fitted.score_samples([corpus[0], corpus[1]])[1]
        alone = fitted.score_samples([corpus[1]])[0]
        assert (abs(together - alone) < 1e-9) == equal


def test_score_is_the_mean_over_scored_tokens(corpus, model):
    model.set_params(min_count=20).fit(corpus)
    report = model.event_report(corpus)
    assert 0 < report.n_unknown < report.n_events
    assert report.n_scored == report.n_events - report.n_unknown
    mean = model.score_samples(corpus).sum() / report.n_scored
    assert_allclose(model.score(corpus), mean, rtol=1e-9)
    assert_allclose(model.perplexity(corpus), np.exp(-mean), rtol=1e-9)
    model.set_params(score_unk=True)
    assert model.event_report(corpus).n_scored == report.n_events


def test_score_weights(corpus, model):
    model.fit(corpus)
    weights = np.zeros(len(corpus))
    weights[5:8] = 1
    samples = model.score_samples(corpus)[5:8]
    expected = samples.sum() / sum(map(len, corpus[5:8]))
    assert_allclose(model.score(corpus, sample_weight=weights), expected, rtol=1e-9)


def test_fit_weights_repeat_sentences(corpus, model):
    model.set_params(init="pivot", mode="sentence", validation_fraction=None)
    model.set_params(pivot_max_iter=2, max_iter=3, tol=10.0)
    weights = np.tile([1, 2], len(corpus) // 2)
    repeated = [s for s, w in zip(corpus, weights, strict=True) for _ in range(w)]
    one = clone(model).fit(corpus, sample_weight=weights)
    two = clone(model).fit(repeated)
    other = clone(model).fit(corpus)
    assert_allclose(one.score_samples(corpus), two.score_samples(corpus), rtol=1e-4)
    assert abs(one.score(corpus) - other.score(corpus)) > 1e-4


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_sentences_of_weight_zero_are_as_good_as_absent(corpus, model, mode):
    model.set_params(mode=mode, min_count=3, max_iter=3)
    weights = np.tile([0.0, 0.5, 1.5], len(corpus) // 3)
    one = clone(model).fit(corpus, sample_weight=weights)
    kept = weights > 0
    rest = [s for s, k in zip(corpus, kept, strict=True) if k]
    two = clone(model).fit(rest, sample_weight=weights[kept])
    assert one.vocabulary_.tolist() == two.vocabulary_.tolist()
    assert_array_equal(one.r_, two.r_)
    # Fractions say nothing about how often a word was seen.
    plain = clone(model).fit(rest)
    assert one.vocabulary_.tolist() == plain.vocabulary_.tolist()
    assert abs(one.score(corpus) - plain.score(corpus)) > 1e-6


def test_zero_probabilities_are_told(model):
    model.set_params(m=2, init="pivot", prior=None, validation_fraction=None)
    model.fit([["a", "b"] * 20])
    test = [["a", "b", "a"], ["a"]]
    report = model.event_report(test)
    assert report.n_zero == 1
    assert report.zero_fraction == 0.25
    assert report.perplexity == np.inf
    assert np.isneginf(model.score_samples(test)).any()
    with pytest.warns(UserWarning, match="probability 0"):
        assert model.perplexity(test) == np.inf
    model.set_params(unigram_weight=0.001)
    assert np.isfinite(model.perplexity(test))
    assert model.event_report(test).n_zero == 0


def test_held_out_data_choose_the_iterations(corpus, model):
    model.set_params(prior=None, unigram_weight=1e-3, m=12, max_iter=200)
    model.fit(corpus[:25], X_val=corpus[25:])
    assert model.converged_
    assert model.n_iter_ == int(np.argmax(model.validation_scores_))
    assert 0 < model.n_iter_ < len(model.validation_scores_) - 1
    assert_allclose(model.score(corpus[25:]), model.validation_scores_.max(), rtol=1e-6)
    assert model.zero_fraction_ == 0.0


def test_validation_fraction_refits_to_all(corpus, model):
    model.fit(corpus)
    assert model.unigram_.shape == (len(model.vocabulary_),)
    assert model.n_iter_ == len(model.lower_bounds_)
    chosen = clone(model).fit(corpus[:-12], X_val=corpus[-12:]).n_iter_
    assert model.n_iter_ == chosen


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("validation_fraction", [None, 0.2])
def test_the_best_of_several_starts_is_kept(corpus, model, validation_fraction):
    # More states than there are classes: a start decides which are split.
    options = {"prior": (0.1, 0.5), "validation_fraction": validation_fraction}
    model.set_params(m=6, max_iter=500, tol=1e-5, **options)

    def quality(fitted):
        if validation_fraction is None:
            return fitted.score(corpus)
        return fitted.validation_scores_.max()

    several = quality(clone(model).set_params(n_init=4).fit(corpus))
    # The first of the starts is the only one of n_init=1.
    one = quality(clone(model).fit(corpus))
    assert several >= one - 1e-6
    others = [
        quality(clone(model).set_params(n_init=4, random_state=k).fit(corpus))
        - quality(clone(model).set_params(random_state=k).fit(corpus))
        for k in range(1, 4)
    ]
    assert min(others) > -1e-6
    assert max(*others, several - one) > 1e-3


def test_one_start_is_the_default_and_pivots_need_no_more(corpus, model):
    model.set_params(init="pivot")
    assert model.n_init == 1
    one = clone(model).fit(corpus)
    assert_array_equal(clone(model).set_params(n_init=3).fit(corpus).r_, one.r_)


def test_one_document_can_be_held_out_in_part(corpus, model):
    document = [token for sentence in corpus for token in sentence]
    fitted = clone(model).fit([document])
    assert fitted.validation_scores_ is not None
    assert fitted.n_iter_ == int(np.argmax(fitted.validation_scores_))
    # The same tokens are held out as of many short sentences, and all are learnt from.
    cut = len(document) - round(0.1 * len(document))
    chosen = clone(model).fit([document[:cut]], X_val=[document[cut:]])
    assert_array_equal(fitted.validation_scores_, chosen.validation_scores_)
    assert fitted.unigram_.shape == (len(set(document)) + 1,)
    two = clone(model).fit([document[:-5], document[-5:]])
    assert_array_equal(two.validation_scores_, fitted.validation_scores_)
    # Too little to hold anything out.
    assert clone(model).set_params(m=1).fit([["a", "b"]]).validation_scores_ is None


def test_sklearn_manners(corpus, model):
    model.set_params(init="pivot").fit(corpus)
    assert pickle.loads(pickle.dumps(model)).score(corpus) == model.score(corpus)
    search = GridSearchCV(
        AggregateMarkovLM(min_count=1, random_state=0), {"m": [1, 4]}, cv=2
    ).fit(corpus)
    assert search.best_params_ == {"m": 4}
    again = clone(model).fit(corpus)
    assert_array_equal(again.r_, model.r_)


@pytest.mark.parametrize(
    "X, error, message",
    [
        ("a b c", TypeError, "list of token lists, got str"),
        (["a b", "c"], TypeError, r"X\[0\] is one string"),
        ([["a"], [1, 2]], TypeError, r"X\[1\]\[0\] is 1"),
        ([["a"], ["b", "c", 1]], TypeError, r"X\[1\]\[2\] is 1 of type int"),
        ([["a"], 5], TypeError, r"X\[1\] is of type int"),
        ([], ValueError, "empty list"),
        ([[], []], ValueError, "no tokens"),
        (3, TypeError, "got int"),
    ],
)
def test_bad_input_is_named(model, X, error, message):
    with pytest.raises(error, match=message):
        model.fit(X)


def test_other_errors(corpus, model):
    with pytest.raises(ValueError, match="no bigram"):
        model.fit([["a"]])
    with pytest.raises(ValueError, match="pair"):
        model.set_params(prior=(1.0,)).fit(corpus)
    with pytest.raises(ValueError, match="pair"):
        model.set_params(prior=(1.0, -2.0)).fit(corpus)
    with pytest.raises(ValueError, match="n_jobs"):
        clone(model).set_params(n_jobs=0).fit(corpus)
    model.set_params(prior=None, mode="sentence")
    with pytest.raises(ValueError, match="</s>"):
        model.fit([["a", "</s>"]])
    model.set_params(mode="stream", min_count=2).fit(corpus)
    with pytest.raises(ValueError, match="no token to score"):
        model.score([["never", "seen"]])


def test_tokens_named_like_the_unknown_word(model):
    X = [["a", "<unk>", "b", "a", "<unk>"]] * 3
    model.set_params(validation_fraction=None, m=1).fit(X)
    assert model.vocabulary_.tolist() == ["<unk>", "a", "b"]
    assert model.event_report(X).n_unknown == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "m, em, pivot_em",
    [(16, 452, 372), (32, 421, 340), (128, 370, 321), (256, 348, 318)],
)
def test_brown(brown_train, brown_dev, m, em, pivot_em):
    half = np.searchsorted(np.cumsum([len(s) for s in brown_dev]), 100_000)
    first, second = brown_dev[:half], brown_dev[half:]
    plain = AggregateMarkovLM(m, prior=None, unigram_weight=1e-3, random_state=0)
    assert plain.fit(brown_train, X_val=first).perplexity(second) <= 1.04 * em
    pivot = AggregateMarkovLM(m, init="pivot", random_state=0)
    assert pivot.fit(brown_train, X_val=first).perplexity(second) <= pivot_em
    assert pivot.n_iter_ <= 10
