"""Streams of text, fixed vocabularies, cut-offs, samples, and mixtures of models."""

import gzip
import io
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

import lpcfg_sk
from lpcfg_sk.language_model import (
    AggregateMarkovLM,
    InterpolatedLM,
    KneserNeyLM,
    SentenceFile,
)
from lpcfg_sk.language_model._counting import _distinct
from tests.language_model.test_kneser_ney import text
from tests.tolerances import EXACT, SUM


@pytest.fixture
def corpus(seed):
    return text(np.random.default_rng(seed), 60)


def same(one, two):
    assert_array_equal(one.vocabulary_, two.vocabulary_)
    for a, b in zip(one._levels, two._levels, strict=True):
        for name in ("history_keys", "keys", "proba", "backoff", "offsets"):
            assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_stream_in_pieces_gives_the_same_bits(corpus, mode, order, monkeypatch):
    options = {"order": order, "mode": mode, "start_symbols": "full"}
    whole = KneserNeyLM(**options).fit(corpus)
    monkeypatch.setattr("lpcfg_sk.language_model._counting._CHUNK_TOKENS", 20)
    same(KneserNeyLM(**options).fit(iter(corpus)), whole)
    weights = np.random.default_rng(0).integers(0, 3, len(corpus))
    pieces = KneserNeyLM(**options).fit(corpus, sample_weight=weights)
    monkeypatch.undo()
    same(KneserNeyLM(**options).fit(corpus, sample_weight=weights), pieces)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_the_aggregate_model_reads_streams_too(corpus, mode, monkeypatch):
    options = {"mode": mode, "tol": 0.1, "random_state": 0}
    monkeypatch.setattr("lpcfg_sk.language_model._counting._CHUNK_TOKENS", 20)
    for kind in ({"validation_fraction": None}, {}):
        X_val = corpus[:10] if not kind else None
        whole = AggregateMarkovLM(2, **options, **kind).fit(corpus, X_val=X_val)
        stream = AggregateMarkovLM(2, **options, **kind).fit(iter(corpus), X_val=X_val)
        assert_array_equal(stream.vocabulary_, whole.vocabulary_)
        assert_array_equal(stream.r_, whole.r_)
        assert_array_equal(stream.s_, whole.s_)
    # Where a part is held out, the sentences have to be kept.
    held = AggregateMarkovLM(2, **options).fit(iter(corpus))
    assert_array_equal(held.r_, AggregateMarkovLM(2, **options).fit(corpus).r_)


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_files_are_read_line_by_line(corpus, name, tmp_path):
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name, "wt", encoding="utf-8") as file:
        file.writelines(f"{' '.join(sentence)}\n" for sentence in corpus)
    sentences = SentenceFile(tmp_path / name)
    assert list(sentences) == list(sentences) == corpus
    same(KneserNeyLM(3).fit(sentences), KneserNeyLM(3).fit(corpus))


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_a_text_without_lines_is_read_in_pieces(corpus, block, monkeypatch):
    monkeypatch.setattr("lpcfg_sk.language_model._counting._BLOCK", block)
    stream = [word for sentence in corpus for word in sentence]
    for written in (" ".join(stream), "\n".join(map(" ".join, corpus)) + " \n"):
        pieces = list(SentenceFile(io.StringIO(written), lines=False))
        assert [word for piece in pieces for word in piece] == stream
        assert max(map(len, pieces)) <= block
        one_line = KneserNeyLM(3).fit(SentenceFile(io.StringIO(written), lines=False))
        same(one_line, KneserNeyLM(3).fit(corpus))


def test_memory_is_that_of_the_distinct_ngrams(corpus, monkeypatch):
    monkeypatch.setattr("lpcfg_sk.language_model._counting._CHUNK_TOKENS", 3000)

    def peak(times):
        tracemalloc.start()
        KneserNeyLM(2).fit(sentence for _ in range(times) for sentence in corpus)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(10)
    assert peak(400) < 1.5 * peak(40)


@pytest.mark.parametrize("largest", [5, 2**30])
def test_rows_of_any_size_are_counted(largest):
    """Small ids are packed into one number, large ones are not."""
    rng = np.random.default_rng(0)
    rows = rng.choice([-3, -1, 0, 2, largest], size=(200, 3)).astype(np.int32)
    counts = rng.integers(1, 4, 200).astype(float)
    expected = Counter()
    for row, count in zip(rows.tolist(), counts, strict=True):
        expected[tuple(row)] += count
    found, sums = _distinct(rows, counts)
    assert len(found) == len(expected)
    assert dict(zip(map(tuple, found.tolist()), sums, strict=True)) == expected


def test_errors_name_rows_of_the_whole_stream(monkeypatch):
    monkeypatch.setattr("lpcfg_sk.language_model._counting._CHUNK_TOKENS", 4)
    with pytest.raises(TypeError, match=r"X\[4\] is one string"):
        KneserNeyLM().fit([["a"], ["b"], ["a"], ["b"], "a b"])
    with pytest.raises(ValueError, match="sentence 3 contains"):
        KneserNeyLM(mode="sentence").fit([["a"], ["b"], ["a"], ["<s>"]])
    with pytest.raises(ValueError, match="no tokens"):
        KneserNeyLM().fit(iter([]))


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_a_fixed_vocabulary_is_kept(corpus, mode):
    words = ["w5", "w0", "other"]
    first = 1 + (mode == "sentence")
    for model in (
        KneserNeyLM(mode=mode, vocabulary=words),
        AggregateMarkovLM(2, mode=mode, vocabulary=words, tol=0.1, random_state=0),
    ):
        model.fit(corpus)
        assert model.vocabulary_[first:].tolist() == words
        proba = model.predict_proba([["w0"], ["w7"]])
        assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    # As if the other words had been unknown in the text.
    masked = [[w if w in words else "<unk>" for w in s] for s in corpus]
    model = KneserNeyLM(mode=mode, vocabulary=words, score_unk=True).fit(corpus)
    other = KneserNeyLM(mode=mode, vocabulary=words, score_unk=True).fit(masked)
    assert_array_equal(model.score_samples(corpus), other.score_samples(masked))
    with pytest.raises(TypeError, match="words of a vocabulary are strings, got 1"):
        KneserNeyLM(vocabulary=[1, 2]).fit(corpus)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_cut_off_ngrams_leave_their_share_to_shorter_ones(corpus, mode):
    model = KneserNeyLM(3, mode=mode, cutoffs=[1, 3]).fit(corpus)
    whole = KneserNeyLM(3, mode=mode).fit(corpus)
    proba = model.predict_proba([[], ["w0"], ["w1", "w0"], ["w2", "w1"]])
    assert_allclose(proba.sum(axis=1), 1, rtol=EXACT)
    grams = Counter()
    padded = [[w for s in corpus for w in s]]
    if mode == "sentence":
        padded = [["<s>", *s, "</s>"] for s in corpus]
    for line in padded:
        grams.update(tuple(line[i : i + 3]) for i in range(len(line) - 2))
    assert len(whole._levels[2].keys) == len(grams)
    assert len(model._levels[2].keys) == sum(c >= 3 for c in grams.values())
    assert len(model._levels[1].keys) == len(whole._levels[1].keys)
    same(KneserNeyLM(3, mode=mode, cutoffs=[1, 1]).fit(corpus), whole)
    for wrong in ([1], [1, 0], [1, 1.5]):
        with pytest.raises(ValueError, match="cutoffs holds 2 whole numbers"):
            KneserNeyLM(3, cutoffs=wrong).fit(corpus)


def test_token_scores_and_both_perplexities(corpus):
    model = KneserNeyLM(2, mode="sentence").fit(corpus)
    test = [["w0", "new", "w1"], ["w2"]]
    table = model.token_scores(test)
    assert table["token"].tolist() == ["w0", "new", "w1", "</s>", "w2", "</s>"]
    assert table["unknown"].tolist() == [False, True, False, False, False, False]
    log = table["log10_prob"].to_numpy() * np.log(10)
    known = ~table["unknown"].to_numpy()
    assert_allclose(
        np.bincount(table["sentence"][known], log[known]), model.score_samples(test)
    )
    report = model.event_report(test)
    assert report["perplexity_with_unknown"] == pytest.approx(np.exp(-log.mean()))
    without = np.exp(-log[known].mean())
    assert report["perplexity_without_unknown"] == pytest.approx(without)
    assert report["perplexity"] == report["perplexity_without_unknown"]
    every = KneserNeyLM(2, mode="sentence", score_unk=True).fit(corpus)
    assert every.perplexity(test) == pytest.approx(report["perplexity_with_unknown"])


def test_samples_follow_the_model(corpus):
    model = KneserNeyLM(2, mode="sentence", min_count=1).fit(corpus)
    drawn = model.sample(2000, random_state=0)
    assert model.sample(5, random_state=0) == drawn[:5]
    first = Counter(s[0] if s else "</s>" for s in drawn)
    p = dict(zip(model.vocabulary_, model.predict_proba([[]])[0], strict=True))
    for word, share in p.items():
        # Five standard deviations.
        assert abs(first[word] / 2000 - share) < 5 * np.sqrt(share / 2000) + 1e-9
    assert all(len(s) == 7 for s in model.sample(3, length=7, random_state=0))
    with pytest.warns(UserWarning, match="cut off at max_length=1"):
        model.sample(20, max_length=1, random_state=0)
    stream = KneserNeyLM(2).fit(corpus)
    assert len(stream.sample(length=4, random_state=0)[0]) == 4
    with pytest.raises(ValueError, match="give a length"):
        stream.sample()


def models(mode="sentence"):
    return [
        KneserNeyLM(3, mode=mode),
        AggregateMarkovLM(2, mode=mode, tol=0.1, random_state=0),
    ]


@pytest.mark.parametrize("mode", ["stream", "sentence"])
def test_mixtures_mix_probabilities(corpus, mode):
    model = InterpolatedLM(models(mode), weights=[0.6, 0.4]).fit(corpus)
    histories = [[], ["w0"], ["w1", "w0"]]
    parts = [m.fit(corpus).predict_proba(histories) for m in models(mode)]
    assert_allclose(
        model.predict_proba(histories), 0.6 * parts[0] + 0.4 * parts[1], rtol=SUM
    )
    scores = [np.exp(m.fit(corpus).score_samples([["w2"]])) for m in models(mode)]
    if mode == "stream":
        found = np.exp(model.score_samples([["w2"]]))
        assert_allclose(found, 0.6 * scores[0] + 0.4 * scores[1], rtol=1e-6)
    assert np.isfinite(model.perplexity(corpus))
    assert len(model.sample(2, length=3, random_state=0)) == 2


def test_weights_maximise_the_likelihood_of_held_out_data(corpus):
    model = InterpolatedLM(models()).fit(corpus[:40], X_val=corpus[40:])
    assert model.weights_.sum() == pytest.approx(1)

    def loss(share):
        mixed = InterpolatedLM(models(), weights=[share, 1 - share])
        mixed.weights_, mixed.estimators_ = np.array([share, 1 - share]), fitted
        mixed.vocabulary_, mixed._index = model.vocabulary_, model._index
        return -mixed.score(corpus[40:])

    fitted = model.estimators_
    best = minimize_scalar(loss, bounds=(0, 1), method="bounded")
    assert loss(model.weights_[0]) <= best.fun + 1e-9
    split = InterpolatedLM(models(), validation_fraction=0.25).fit(corpus)
    assert split.weights_.shape == (2,)


def test_mixtures_are_estimators(corpus, tmp_path):
    model = InterpolatedLM(models(), weights=[0.5, 0.5]).fit(corpus)
    lpcfg_sk.save(model, tmp_path / "model")
    again = lpcfg_sk.load(tmp_path / "model")
    assert_array_equal(again.score_samples(corpus), model.score_samples(corpus))
    different = [KneserNeyLM(2), KneserNeyLM(2, min_count=20)]
    with pytest.raises(ValueError, match="different outcomes"):
        InterpolatedLM(different, weights=[0.5, 0.5]).fit(corpus)
    for wrong in ([0.5], [0.7, 0.7], [-0.5, 1.5]):
        with pytest.raises(ValueError, match="weights holds 2 numbers"):
            InterpolatedLM(models(), weights=wrong).fit(corpus)
    with pytest.raises(ValueError, match="at least one"):
        InterpolatedLM([]).fit(corpus)
    with pytest.raises(ValueError, match="none to hold out"):
        InterpolatedLM(models()).fit(corpus[:1])
