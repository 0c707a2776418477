import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from lpcfg_sk.language_model import AggregateMarkovLM, KneserNeyLM
from tests.reference import language_model as reference
from tests.tolerances import EXACT


def text(rng, n_sentences=40, n_words=9):
    weights = 1.0 / np.arange(1, n_words + 1)
    return [
        [
            f"w{i}"
            for i in rng.choice(n_words, rng.integers(0, 8), p=weights / weights.sum())
        ]
        for _ in range(n_sentences)
    ]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("discount", ["kn", "modified"])
def test_probabilities_follow_the_recursion(seed, order, discount):
    rng = np.random.default_rng(seed)
    X = text(rng)
    model = KneserNeyLM(order, discount=discount, min_count=1).fit(X)
    tokens = [token for sentence in X for token in sentence]
    proba = reference.kneser_ney(tokens, order, model.discounts_, model.vocabulary_)
    test = [token for sentence in text(rng, 5) for token in sentence]
    expected = [
        np.log(proba(word, test[max(0, i - order + 1) : i]))
        for i, word in enumerate(test)
    ]
    assert_allclose(model.score_samples([test]), [sum(expected)], rtol=EXACT)
    assert_allclose(model.score([test]), np.mean(expected), rtol=EXACT)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("discount", ["kn", "modified"])
def test_distributions_sum_to_one(seed, mode, order, discount):
    X = text(np.random.default_rng(seed))
    model = KneserNeyLM(order, discount=discount, mode=mode, min_count=3).fit(X)
    histories = [[], ["w0"], ["w1", "w0"], ["w8", "w3", "w0"], ["never", "seen"]]
    proba = model.predict_proba(histories)
    assert proba.shape == (5, len(model.vocabulary_))
    assert proba.min() > 0
    assert_allclose(proba.sum(axis=1), 1.0, rtol=EXACT)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_scores_agree_with_distributions(seed, mode):
    X = text(np.random.default_rng(seed))
    model = KneserNeyLM(3, mode=mode, min_count=2, score_unk=True).fit(X)
    sentence = ["w2", "w0", "new", "w1"]
    if mode == "sentence":
        outcomes = [*sentence, "</s>"]
    else:
        outcomes = sentence
    names = model.vocabulary_.tolist()
    index = [names.index(word) if word in names else 0 for word in outcomes]
    rows = model.predict_proba([sentence[:i] for i in range(len(outcomes))])
    expected = np.log(rows[np.arange(len(index)), index]).sum()
    assert_allclose(model.score_samples([sentence]), [expected], rtol=EXACT)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sentences_have_the_probabilities_of_kenlm(seed, order):
    rng = np.random.default_rng(seed)
    X = text(rng, 1500, 400)
    test = text(rng, 12, 400)
    log_prob = reference.kneser_ney_of_sentences(X, order)
    model = KneserNeyLM(order, mode="sentence", min_count=1).fit(X)
    known = set(model.vocabulary_)
    test = [[word for word in sentence if word in known] for sentence in test]
    expected = [log_prob(sentence) for sentence in test]
    assert_allclose(model.score_samples(test), expected, rtol=1e-9)


def test_sentences_can_have_as_many_starts_as_the_order_asks_for(seed):
    X = text(np.random.default_rng(seed), 100, 20)
    one, full = (
        KneserNeyLM(3, mode="sentence", min_count=1, start_symbols=start).fit(X)
        for start in ("one", "full")
    )
    assert abs(one.score(X) - full.score(X)) > 1e-6
    proba = full.predict_proba([[], ["w0"], ["w0", "w1"]])
    assert_allclose(proba.sum(axis=1), 1.0, rtol=EXACT)
    # With one start the first word has the distribution of a bigram model.
    two, all_two = (
        KneserNeyLM(2, mode="sentence", min_count=1, start_symbols=start).fit(X)
        for start in ("one", "full")
    )
    assert two.score(X) == all_two.score(X)
    assert np.abs(one.predict_proba([[]]) - full.predict_proba([[]])).max() > 1e-6


@pytest.mark.parametrize("token", ["<s>", "</s>"])
def test_start_and_end_tokens_are_refused_alike(token):
    X = [["a", "b"], ["b", "a"]] * 3
    bad = [["a"], ["b", token]]
    model = KneserNeyLM(3, mode="sentence", min_count=1).fit(X)
    for method in (
        KneserNeyLM(mode="sentence").fit,
        AggregateMarkovLM(2, mode="sentence").fit,
        model.score,
        model.score_samples,
        model.perplexity,
        model.predict_proba,
        model.event_report,
        model.scored_tokens,
    ):
        with pytest.raises(ValueError, match=f"sentence 1 contains '{token}'"):
            method(bad)
    # A stream has no symbols of its own.
    stream = KneserNeyLM(min_count=1).fit([["a", token, "b", token]])
    assert token in stream.vocabulary_


def test_sentence_starts_keep_their_counts():
    # "a" always begins; as a continuation it would count as little as "b"
    X = [["a", "b"], ["a", "c"], ["a", "b"], ["b", "a"]] * 5
    model = KneserNeyLM(3, mode="sentence", min_count=1).fit(X)
    a, b = (model.vocabulary_.tolist().index(word) for word in "ab")
    start = model.predict_proba([[]])[0]
    assert start[a] > 2 * start[b]


def test_a_single_discount_is_the_share_of_singletons(seed):
    X = text(np.random.default_rng(seed))
    model = KneserNeyLM(2, discount="kn", min_count=1).fit(X)
    tokens = [token for sentence in X for token in sentence]
    counts = np.unique(
        [f"{a} {b}" for a, b in pairwise(tokens)],
        return_counts=True,
    )[1]
    n1, n2 = (counts == 1).sum(), (counts == 2).sum()
    assert_allclose(model.discounts_[1], n1 / (n1 + 2 * n2), rtol=EXACT)


def test_weights_repeat_sentences(seed):
    X = text(np.random.default_rng(seed), 15)
    weights = 1 + np.arange(15) % 3
    repeated = [s for s, w in zip(X, weights, strict=True) for _ in range(w)]
    one = KneserNeyLM(mode="sentence", min_count=1).fit(X, sample_weight=weights)
    two = KneserNeyLM(mode="sentence", min_count=1).fit(repeated)
    assert_allclose(one.score_samples(X), two.score_samples(X), rtol=EXACT)
    with pytest.raises(ValueError, match="whole numbers"):
        KneserNeyLM().fit(X, sample_weight=weights + 0.5)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_weights_count_words(seed, mode):
    X = text(np.random.default_rng(seed), 15)
    weights = np.arange(15) % 3
    repeated = [s for s, w in zip(X, weights, strict=True) for _ in range(w)]
    one = KneserNeyLM(mode=mode, min_count=4).fit(X, sample_weight=weights)
    two = KneserNeyLM(mode=mode, min_count=4).fit(repeated)
    once = KneserNeyLM(mode=mode, min_count=4).fit(X)
    assert one.vocabulary_.tolist() == two.vocabulary_.tolist()
    assert one.vocabulary_.tolist() != once.vocabulary_.tolist()
    if mode == "sentence":
        for level, other in zip(one.discounts_, two.discounts_, strict=True):
            assert_allclose(level, other, rtol=EXACT)
        assert_allclose(one.score_samples(X), two.score_samples(X), rtol=EXACT)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_sentences_of_weight_zero_are_as_good_as_absent(seed, mode):
    X = text(np.random.default_rng(seed), 15)
    weights = np.arange(15) % 2
    # A sentence that is left out may contain anything.
    X[0] = ["</s>", "only", "only"]
    one = KneserNeyLM(3, mode=mode).fit(X, sample_weight=weights)
    two = KneserNeyLM(3, mode=mode).fit(X[1::2])
    assert one.vocabulary_.tolist() == two.vocabulary_.tolist()
    assert_allclose(one.score_samples(X[1:]), two.score_samples(X[1:]), rtol=0)
    with pytest.raises(ValueError, match=r"no tokens.*weight 0"):
        KneserNeyLM(mode=mode).fit([["a"], []], sample_weight=[0, 1])


def test_scored_tokens():
    X = [["a", "new", "b"], [], ["new"]]
    training = [["a", "b", "a"], ["b", "a"]]
    for options, expected in (
        ({}, [2, 0, 0]),
        ({"score_unk": True}, [3, 0, 1]),
        ({"mode": "sentence"}, [3, 1, 1]),
        ({"mode": "sentence", "score_unk": True}, [4, 1, 2]),
    ):
        counts = KneserNeyLM(**options).fit(training).scored_tokens(X)
        assert counts.tolist() == expected
        assert np.issubdtype(counts.dtype, np.integer)


def test_scores_of_nothing_are_floats():
    model = KneserNeyLM().fit([["a", "b", "a"], ["b", "a"]])
    scores = model.score_samples([["new"], []])
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.0, 0.0]


def test_clone_and_pickle(seed):
    X = text(np.random.default_rng(seed))
    model = clone(KneserNeyLM(3, discount="kn", min_count=1)).fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert again.score(X) == model.score(X)


def test_tiny_corpora():
    model = KneserNeyLM(3, min_count=1).fit([["a"]])
    assert_allclose(model.predict_proba([[]]).sum(), 1.0)
    assert np.isfinite(model.perplexity([["a", "b", "a"]]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "min_count, order, expected", [(2, 2, 334), (2, 3, 318), (1, 2, 389), (1, 3, 369)]
)
def test_brown(brown_train, brown_dev, min_count, order, expected):
    half = np.searchsorted(np.cumsum([len(s) for s in brown_dev]), 100_000)
    model = KneserNeyLM(order, min_count=min_count).fit(brown_train)
    assert_allclose(model.perplexity(brown_dev[half:]), expected, rtol=0.02)
