"""The aggregate model as an L-PCFG, and from a matrix of counts."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from lpcfg_sk.language_model import AggregateMarkovLM
from tests.tolerances import EXACT, SUM

WORDS = [f"w{i}" for i in range(6)]
OPTIONS = {
    "m": 2,
    "min_count": 1,
    "tol": 0.1,
    "random_state": 0,
    "validation_fraction": None,
}


@pytest.fixture
def corpus(seed):
    rng = np.random.default_rng(seed)
    return [list(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(40)]


def tree(sentence):
    *before, last = sentence
    return "".join(f"(A (W {w}) " for w in before) + f"(E {last})" + ")" * len(before)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("unigram_weight", [0.0, 0.3])
def test_sentences_have_the_probabilities_of_the_model(corpus, mode, unigram_weight):
    options = {**OPTIONS, "mode": mode, "unigram_weight": unigram_weight}
    model = AggregateMarkovLM(**{**options, "min_count": 2, "score_unk": True})
    model.fit([*corpus, ["w1", "once", "w2"]])
    grammar = model.to_lpcfg()
    test = [["w0"], ["w3", "w3"], ["w1", "new", "w5", "w0"]]
    expected = []
    for sentence in test:
        tokens = [*sentence, "</s>"] if mode == "sentence" else sentence
        outcome = [model._index.get(token, 0) for token in tokens]
        histories = [sentence[:i] for i in range(len(tokens))]
        # In double precision, which score_samples does not have.
        proba = model.predict_proba(histories)
        expected.append(np.log(proba[np.arange(len(tokens)), outcome]).sum())
    found = grammar.log_prob([tree(sentence) for sentence in test])
    assert_allclose(found, expected, rtol=SUM)
    assert_allclose(grammar.sentence_log_prob(test), found, rtol=SUM)
    if mode == "sentence":
        assert_allclose(model.score_samples(test), found, rtol=1e-5)


def test_trees_sum_to_the_probability_of_a_word(corpus):
    """All sentences of one and two words, and the mass of longer ones."""
    model = AggregateMarkovLM(mode="sentence", prior=(1.0, 1.0), **OPTIONS).fit(corpus)
    grammar = model.to_lpcfg()
    words = [*WORDS, "<unk>"]
    short = [tree([w]) for w in words] + [tree([v, w]) for v in words for w in words]
    total = np.exp(grammar.log_prob(short)).sum()
    p = model.predict_proba([[], *([w] for w in words)])
    first = p[0][[model._index[w] for w in words]]
    step = p[1:][:, [model._index[w] for w in words]]
    end = p[1:, 1]
    assert total == pytest.approx(first @ end + first @ step @ end, rel=SUM)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_counts_are_as_good_as_sentences(corpus, mode, form):
    model = AggregateMarkovLM(mode=mode, **OPTIONS).fit(corpus)
    words = [*WORDS, "</s>"] if mode == "sentence" else WORDS
    place = {w: i for i, w in enumerate(words)}
    counts = np.zeros((len(words) + (mode == "sentence"), len(words)))
    stream = [w for sentence in corpus for w in sentence]
    lines = [stream] if mode == "stream" else [["<s>", *s, "</s>"] for s in corpus]
    for line in lines:
        for v, w in pairwise(line):
            counts[place.get(v, len(words)), place[w]] += 1
    other = AggregateMarkovLM(mode=mode, **OPTIONS)
    # The order of words decides where the noise of the start goes.
    order = [place[w] for w in model.vocabulary_ if w in place]
    names = [words[i] for i in order]
    rows = [*order, len(words)] if mode == "sentence" else order
    other.fit_counts(form(counts[np.ix_(rows, order)]), names)
    assert_array_equal(other.vocabulary_, model.vocabulary_)
    assert_array_equal(other.r_, model.r_)
    assert_array_equal(other.s_, model.s_)
    assert_allclose(other.perplexity(corpus), model.perplexity(corpus), rtol=EXACT)


def test_bad_counts_are_refused():
    model = AggregateMarkovLM(**OPTIONS)
    with pytest.raises(ValueError, match="shape"):
        model.fit_counts(np.ones((2, 3)), ["a", "b"])
    with pytest.raises(ValueError, match="1 different"):
        model.fit_counts(np.ones((2, 2)), ["a", "a"])
    with pytest.raises(ValueError, match="negative"):
        model.fit_counts([[-1, 2], [1, 1]], ["a", "b"])
    with pytest.raises(ValueError, match="no events"):
        model.fit_counts(np.zeros((2, 2)), ["a", "b"])
