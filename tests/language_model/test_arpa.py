import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

import lpcfg_sk
from lpcfg_sk.language_model import KneserNeyLM, read_arpa, write_arpa
from tests.language_model.test_kneser_ney import text
from tests.reference import arpa as reference
from tests.tolerances import SUM

TEST = [["w0", "w1", "w2", "w0"], ["w3"], ["w8", "new", "w0", "w5", "w1"], []]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("starts", ["one", "full"])
@pytest.mark.parametrize("cutoff", [None, 2])
def test_files_say_what_the_model_says(seed, order, starts, cutoff, tmp_path):
    X = text(np.random.default_rng(seed))
    cutoffs = None if cutoff is None else [cutoff] * (order - 1)
    model = KneserNeyLM(
        order, mode="sentence", start_symbols=starts, min_count=2, cutoffs=cutoffs
    ).fit(X)
    write_arpa(model, tmp_path / "model.arpa")
    file = reference.read(tmp_path / "model.arpa")
    n_starts = 1 if starts == "one" else max(order - 1, 1)
    for row, sentence in enumerate(TEST):
        expected = reference.sentence_log10(file, sentence, n_starts)
        table = model.token_scores(TEST)
        found = table.loc[table["sentence"] == row, "log10_prob"]
        assert_allclose(found, expected, rtol=SUM)
        assert reference.total_mass(file, sentence) == pytest.approx(1, abs=SUM)


@pytest.mark.parametrize("mode", ["stream", "sentence"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_models_come_back(seed, mode, order, name, tmp_path):
    X = text(np.random.default_rng(seed))
    model = KneserNeyLM(order, mode=mode, min_count=2, score_unk=True).fit(X)
    write_arpa(model, tmp_path / name)
    again = read_arpa(tmp_path / name, score_unk=True)
    assert (again.mode, again.order) == (mode, order)
    assert set(again.vocabulary_) == set(model.vocabulary_)
    sentences = TEST if mode == "sentence" else TEST[:3]
    assert_allclose(
        again.score_samples(sentences), model.score_samples(sentences), rtol=SUM
    )
    histories = [[], ["w0"], ["w1", "w0"], ["new"]]
    place = [list(again.vocabulary_).index(w) for w in model.vocabulary_]
    assert_allclose(
        again.predict_proba(histories)[:, place],
        model.predict_proba(histories),
        atol=SUM,
    )


BACKOFF = """made by hand

\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99 <s> -0.2
-1.0 <unk>
-0.4 </s>
-0.5 a -0.1
-0.7 b

\\2-grams:
-0.9 <s> a
-0.3 a b
-1.5 a a

\\end\\
"""


def test_any_smoothing_is_read(tmp_path):
    """A listed bigram may be less likely than backing off would make it."""
    path = tmp_path / "hand.arpa"
    path.write_text(BACKOFF)
    model = read_arpa(path, score_unk=True)
    table = model.token_scores([["a", "a", "b", "z"]])
    # z after b, and the end after an unknown word, back off without a weight.
    expected = [-0.9, -1.5, -0.3, -1.0, -0.4]
    assert_allclose(table["log10_prob"], expected, rtol=SUM)
    assert_allclose(model.token_scores([["b"]])["log10_prob"], [-0.9, -0.4], rtol=SUM)
    lpcfg_sk.save(model, tmp_path / "model")
    again = lpcfg_sk.load(tmp_path / "model")
    assert_allclose(
        again.score_samples([["a", "a"]]), model.score_samples([["a", "a"]])
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\end\\\n", "", "not a whole ARPA file"),
        ("ngram 1=5", "ngram 1=6", "5 1-grams, announced 6"),
        ("-0.3 a b", "-0.3 a c", "line 16: 'c' is not among"),
        ("-0.3 a b", "x a b", "line 16: expected a number"),
        ("-0.3 a b", "-0.3 a", "line 16: expected a probability and 2 words"),
        ("-0.7 b", "-0.7 a", "listed twice"),
        ("-1.5 a a", "-1.5 a b", "a 2-gram is listed twice"),
        ("\\2-grams:", "\\3-grams:", "expected the 2-grams"),
        ("ngram 2=3", "grams", "expected 'ngram"),
    ],
)
def test_damaged_files_are_located(old, new, message, tmp_path):
    path = tmp_path / "bad.arpa"
    path.write_text(BACKOFF.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_arpa(path)


def test_words_that_the_format_cannot_write(tmp_path):
    with pytest.raises(ValueError, match="white space"):
        write_arpa(KneserNeyLM(min_count=1).fit([["a b", "c"]]), tmp_path / "x")
    model = KneserNeyLM(min_count=1, unk_token="UNK").fit([["<unk>", "c"]])
    with pytest.raises(ValueError, match="<unk> is a symbol of the ARPA format"):
        write_arpa(model, tmp_path / "x")
    model = KneserNeyLM(min_count=1).fit([["<s>", "c"]])
    with pytest.raises(ValueError, match="<s> is a symbol of the ARPA format"):
        write_arpa(model, tmp_path / "x")
    (tmp_path / "hand").write_text(BACKOFF)
    with pytest.raises(ValueError, match="give another unk_token"):
        read_arpa(tmp_path / "hand", unk_token="a")
    assert read_arpa(tmp_path / "hand", unk_token="UNK").vocabulary_[0] == "UNK"


def test_compressed_files_are_compressed(tmp_path):
    write_arpa(KneserNeyLM(min_count=1).fit([["a", "b"]]), tmp_path / "m.gz")
    with gzip.open(tmp_path / "m.gz", "rt") as file:
        assert file.readline() == "\\data\\\n"
