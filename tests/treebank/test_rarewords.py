"""Rare words and signatures."""

import pickle
from collections import Counter

import numpy as np
import pytest

from lpcfg_sk import RareWords, Treebank
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank._words import coarser, english_signature

SENTENCES = Treebank(
    [
        sentence.split()
        for sentence in (
            "The old dog slept on the mat .",
            "The dog walked and talked and barked .",
            "Dogs walking in the Alps are happily walking .",
            "Mary said , the old mat was in Mr. Smith-Jones 's way .",
        )
    ]
)
CHECKS = dict(tree_checks(RareWords(min_count=2), SENTENCES))


def words_of(treebank):
    return [treebank.words[i] for i in treebank.word]


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


@pytest.mark.parametrize(
    ("word", "signature"),
    [
        ("dog", "UNK-LC"),
        ("dogs", "UNK-LC-s"),
        ("glass", "UNK-LC"),
        ("virus", "UNK-LC"),
        ("John's", "UNK-CAP"),
        ("walking", "UNK-LC-ing"),
        ("ring", "UNK-LC"),
        ("government", "UNK-LC-ment"),
        ("different", "UNK-LC-ent"),
        ("nation", "UNK-LC-ion"),
        ("Paris", "UNK-CAP"),
        ("IBM", "UNK-CAPS"),
        ("McDonald", "UNK-CAP"),
        ("iPhone", "UNK-CAP"),
        ("A", "UNK-CAP"),
        ("1,000", "UNK-NUM"),
        ("80s", "UNK-LC-NUM-s"),
        ("B-52", "UNK-CAP-NUM-DASH"),
        ("first-rate", "UNK-LC-DASH-ate"),
        ("-", "UNK"),
        ("...", "UNK"),
        ("été", "UNK-LC"),
        ("東京", "UNK-LC"),
        ("", "UNK"),
    ],
)
def test_english_signature(word, signature):
    assert english_signature(word) == signature


def test_first_words():
    assert english_signature("Walking", initial=True) == "UNK-INIT-ing"
    assert (
        english_signature("Walking", initial=True, known_lower=True)
        == "UNK-INIT-KNOWN-ing"
    )
    assert english_signature("IBM", initial=True) == "UNK-CAPS"
    assert english_signature("walking", initial=True) == "UNK-LC-ing"
    assert list(coarser("UNK")) == ["UNK"]


def test_words_are_kept_or_classed():
    rare = RareWords(min_count=2, min_class_count=1).fit(SENTENCES)
    counts = Counter(w for s in SENTENCES.sentences() for w in s)
    assert rare.counts_ == dict(counts)
    kept = sorted(w for w, n in counts.items() if n >= 2)
    assert list(rare.vocabulary_) == kept
    assert rare.words_.strings == (*kept, *rare.classes_)
    assert "UNK" in rare.classes_
    new = rare.transform([["Walking", "the", "Talking", "dog", "-"]])
    assert words_of(new) == ["UNK-INIT", "the", "UNK-CAP", "dog", "UNK"]
    assert new.sentences() == [["Walking", "the", "Talking", "dog", "-"]]
    known = rare.transform([["Barked", "Barked"]])
    assert words_of(known) == ["UNK-INIT", "UNK-CAP"]


def test_first_words_known_in_lower_case_have_their_class():
    train = Treebank([["Barking", "dogs"], ["barking", "dogs"]] * 2)
    rare = RareWords(min_count=3, min_class_count=1).fit(train)
    assert words_of(rare.transform(train))[:4] == [
        "UNK-INIT-KNOWN-ing",
        "dogs",
        "UNK-LC-ing",
        "dogs",
    ]
    # A capital later in the sentence is a name.
    assert words_of(rare.transform([["dogs", "Barking"]])) == ["dogs", "UNK"]


def test_backoff_is_the_class_of_every_word():
    rare = RareWords(min_count=2, min_class_count=1).fit(SENTENCES)
    words, backoff = rare.words_, rare.words_.backoff
    n_kept = len(rare.vocabulary_)
    np.testing.assert_array_equal(backoff[n_kept:], np.arange(n_kept, len(words)))
    assert (backoff >= n_kept).all()
    assert words[backoff[words.index("The")]] == "UNK-INIT"
    assert words[backoff[words.index(".")]] == "UNK"
    assert words[backoff[words.index("walking")]] == "UNK-LC"


def test_small_classes_give_way_to_coarser_ones():
    tokens = ["walking", "talking", "barking", "said", "dog", "quickly", "12", "...."]
    rare = RareWords(min_count=2, min_class_count=3).fit(Treebank([tokens]))
    assert rare.classes_ == ("UNK", "UNK-LC", "UNK-LC-ing")
    assert words_of(rare.transform([tokens])) == [
        *["UNK-LC-ing"] * 3,
        *["UNK-LC"] * 3,
        *["UNK"] * 2,
    ]


def test_every_class_but_the_last_has_tokens(gum_train, gum_dev):
    rare = RareWords().fit(gum_train)
    word = rare.transform(gum_train).word
    seen = np.bincount(word, minlength=len(rare.words_))
    unk = rare.words_.index("UNK")
    assert (np.delete(seen, unk) >= min(rare.min_count, rare.min_class_count)).all()
    assert 50 <= len(rare.classes_) <= 200
    new = rare.transform(gum_dev)
    assert set(new.word) <= set(range(len(rare.words_)))
    assert new == gum_dev


def test_size_of_the_vocabulary(wsj_train):
    rare = RareWords().fit(wsj_train)
    assert len(rare.vocabulary_) == 3575
    assert 50 <= len(rare.classes_) <= 200


def test_one_class_for_all():
    rare = RareWords(min_count=2, signature="none").fit(SENTENCES)
    assert rare.classes_ == ("UNK",)
    assert words_of(rare.transform([["Zebras", "the"]])) == ["UNK", "the"]


def test_own_signatures():
    rare = RareWords(min_count=2, signature=lambda w: f"len{len(w)}", min_class_count=1)
    rare.fit(Treebank([["aa", "bb", "ccc", "d", "d"]]))
    assert rare.classes_ == ("UNK", "len2", "len3")
    assert words_of(rare.transform([["xx", "yyyy", "d"]])) == ["len2", "UNK", "d"]

    def levels(word):
        return [f"len{len(word)}", "long" if len(word) > 2 else "short"]

    rare = RareWords(min_count=2, signature=levels, min_class_count=2)
    rare.fit(Treebank([["aa", "bb", "ccc", "dddd", "e"]]))
    assert rare.classes_ == ("UNK", "len2", "long")
    assert words_of(rare.transform([["xx", "yyyyy", "z"]])) == ["len2", "long", "UNK"]

    with pytest.raises(TypeError, match=r"signature\('aa'\) returned"):
        RareWords(signature=lambda word: [1]).fit(Treebank([["aa"]]))


def test_a_token_spelled_like_a_class_is_rare():
    rare = RareWords(min_count=2, min_class_count=1)
    rare.fit(Treebank([["UNK", "UNK", "UNK-LC", "UNK-LC", "dog", "a", "a"]]))
    assert rare.words_.strings == ("a", "UNK", "UNK-LC")
    assert words_of(rare.transform([["UNK", "UNK-LC", "a"]])) == ["UNK", "UNK", "a"]


def test_everything_is_kept_with_min_count_1():
    rare = RareWords(min_count=1).fit(SENTENCES)
    assert rare.classes_ == ("UNK",)
    assert words_of(rare.transform(SENTENCES)) == [
        w for s in SENTENCES.sentences() for w in s
    ]
    assert words_of(rare.transform([["never"]])) == ["UNK"]


def test_trees_slices_empty_rows_and_pickles():
    treebank = Treebank(["(S (NP dogs) (VP bark))", [], ["dogs"]])
    rare = RareWords(min_count=2).fit(treebank)
    new = rare.transform(treebank)
    assert words_of(new) == ["dogs", "UNK", "dogs"]
    assert new == treebank
    assert words_of(rare.transform(treebank[2:])) == ["dogs"]
    assert len(rare.transform(treebank[:0])) == 0
    again = pickle.loads(pickle.dumps(new))
    assert words_of(again) == words_of(new)
    assert again.words == rare.words_


@pytest.mark.parametrize(
    "params", [{"min_count": 0}, {"signature": "german"}, {"min_class_count": 0}]
)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match=f"The {next(iter(params))!r} parameter"):
        RareWords(**params).fit(SENTENCES)
