"""Rare words and signatures."""

import pickle
from collections import Counter

import numpy as np
import pytest

from lpcfg_sk import (
    PCFG,
    RareWords,
    Treebank,
    TreeBinarizer,
    load,
    make_parser,
    read_treebank,
    save,
)
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import SymbolTable
from lpcfg_sk.treebank._spelling import coarser, english_signature, spelling_classes
from tests.conftest import _corpus

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


@pytest.mark.parametrize(
    ("word", "shapes"),
    [
        ("dog", ("UNK-latin-lower", "UNK-latin")),
        ("McDonald", ("UNK-latin-capital", "UNK-latin")),
        ("iPhone", ("UNK-latin-mixed", "UNK-latin")),
        ("A", ("UNK-latin-capital", "UNK-latin")),
        ("IBM", ("UNK-latin-capitals", "UNK-latin")),
        ("80s", ("UNK-latin-lower-digits", "UNK-latin-lower", "UNK-latin")),
        ("in_situ", ("UNK-latin-lower-hyphen", "UNK-latin-lower", "UNK-latin")),
        ("Москва", ("UNK-cyrillic-capital", "UNK-cyrillic")),
        ("東京", ("UNK-cjk",)),
        ("كتاب", ("UNK-arabic",)),
        ("हिन्दी", ("UNK-devanagari",)),
        ("1,234", ("UNK-number-0,0", "UNK-number")),
        ("½", ("UNK-number-½", "UNK-number")),
        ("...", ("UNK-punctuation",)),
        ("؟", ("UNK-punctuation",)),
        ("。", ("UNK-punctuation",)),
        ("€", ("UNK-symbol",)),
        ("", ("UNK-symbol",)),
    ],
)
def test_shapes_of_words(word, shapes):
    endings, beginnings, found = spelling_classes(word)
    assert found == shapes
    letters = any(c.isalpha() for c in word)
    assert len(endings) == (min(4, len(word)) if letters else 0)
    assert len(beginnings) == (letters and len(word) > 1)
    for name in (*endings, *beginnings):
        assert name.startswith(f"{shapes[0]}-")


def test_endings_and_beginnings_are_in_lower_case():
    endings, beginnings, _ = spelling_classes("МОСКВА")
    assert endings[0] == "UNK-cyrillic-capitals-*сква"
    assert beginnings == ("UNK-cyrillic-capitals-м*",)
    assert spelling_classes("Walk", initial=True)[2][0] == "UNK-latin-first"
    assert spelling_classes("IBM", initial=True)[2][0] == "UNK-latin-capitals"


@pytest.mark.parametrize(
    ("words", "new", "name"),
    [
        (["книга", "рука", "зима"], "вода", "UNK-cyrillic-lower-*а"),
        (["老師", "律師", "廚師"], "法師", "UNK-cjk-*師"),
        (["老師", "老板", "老虎"], "老王", "UNK-cjk-老*"),
        (["معلمة", "طالبة", "كلمة"], "مدرسة", "UNK-arabic-*ة"),
        (["12", "7", "305"], "1999", "UNK-number-0"),
        (["?", "!?", "..."], ";", "UNK-punctuation"),
        (["dogs", "cats", "birds"], "?", "UNK"),
    ],
)
def test_classes_of_any_script(words, new, name):
    rare = RareWords().fit([words])
    assert words_of(rare.transform([[new]])) == [name]


def test_the_longest_supported_ending_counts():
    rare = RareWords().fit([["walking", "talking", "barking", "sing", "a", "king"]])
    found = words_of(rare.transform([["balking", "thing", "bag", "dog", "cat", "12"]]))
    lower = "UNK-latin-lower"
    assert found[:2] == [f"{lower}-*king", f"{lower}-*ing"]
    assert found[2:] == [f"{lower}-*g", f"{lower}-*g", lower, "UNK"]
    path = rare._path(f"{lower}-*king")
    assert path == [*(f"{lower}-*{e}" for e in ("king", "ing", "ng", "g")), *LOWER]


LOWER = ["UNK-latin-lower", "UNK-latin", "UNK"]


def test_first_words_known_in_lower_case_are_those_words():
    rare = RareWords().fit([["the", "barking", "dogs"]])
    assert words_of(rare.transform([["Barking", "Dogs"], ["DOGS"]])) == [
        "barking",
        "UNK-latin",
        "UNK-latin",
    ]


def test_all_words_are_kept_by_default(wsj_train):
    rare = RareWords().fit(wsj_train)
    assert len(rare.vocabulary_) == 11053
    assert 1000 <= len(rare.classes_) <= 3000
    assert len(RareWords(min_count=3).fit(wsj_train).vocabulary_) == 3575


def test_words_are_kept_or_classed():
    rare = RareWords(min_count=2, signature="english", min_class_count=1)
    rare.fit(SENTENCES)
    counts = Counter(w for s in SENTENCES.sentences() for w in s)
    assert rare.counts_ == dict(counts)
    kept = sorted(w for w, n in counts.items() if n >= 2)
    assert list(rare.vocabulary_) == kept
    assert rare.words_.strings == (*kept, *rare.classes_)
    assert "UNK" in rare.classes_
    new = rare.transform([["Walking", "the", "Talking", "dog", "-"]])
    assert words_of(new) == ["UNK-INIT-KNOWN", "the", "UNK-CAP", "dog", "UNK"]
    assert new.sentences() == [["Walking", "the", "Talking", "dog", "-"]]


def test_english_first_words_known_in_lower_case_have_their_class():
    train = Treebank([["Barking", "dogs"], ["barking", "dogs"]] * 2)
    rare = RareWords(min_count=3, signature="english", min_class_count=1).fit(train)
    assert words_of(rare.transform(train))[:4] == [
        "UNK-INIT-KNOWN-ing",
        "dogs",
        "UNK-LC-ing",
        "dogs",
    ]
    # A capital later in the sentence is a name.
    assert words_of(rare.transform([["dogs", "Barking"]])) == ["dogs", "UNK"]


@pytest.mark.parametrize("signature", ["suffix", "english"])
def test_backoff_leads_to_ever_coarser_classes(signature):
    rare = RareWords(signature=signature, min_class_count=1).fit(SENTENCES)
    words, backoff = rare.words_, rare.words_.backoff
    n_kept = len(rare.vocabulary_)
    assert (backoff >= n_kept).all()
    for i, name in enumerate(words.strings):
        path = rare._path(name)
        assert path[-1] == "UNK"
        assert len(path) == len(set(path))
        if i >= n_kept and signature == "english":
            assert path == list(coarser(name))
    known = SymbolTable(["UNK", "dog"]).map_to(words)
    assert known.tolist() == [words.index("UNK"), words.index("dog")]


def test_unknown_classes_give_way_to_known_coarser_ones():
    words = SymbolTable(["x", "FINE", "COARSE", "UNK"], [1, 2, 3, 3])
    assert words.known_class([-1, -1, 7, 8]).tolist() == [7, 7, 7, 8]
    assert words.known_class([-1, -1, -1, 8]).tolist() == [8, 8, 8, 8]
    assert words.known_class([5, -1, -1, -1]).tolist() == [5, -1, -1, -1]


@pytest.mark.parametrize(
    ("backoff", "message"), [([1, 2, 0], "circle"), ([0, 3, 0], "out of range")]
)
def test_impossible_trees_of_classes_are_refused(backoff, message):
    with pytest.raises(ValueError, match=message):
        SymbolTable(["a", "b", "c"], backoff)


def test_small_classes_give_way_to_coarser_ones():
    tokens = ["walking", "talking", "barking", "said", "dog", "quickly", "12", "...."]
    rare = RareWords(min_count=2, signature="english").fit(Treebank([tokens]))
    assert rare.classes_ == ("UNK", "UNK-LC", "UNK-LC-ing")
    assert words_of(rare.transform([tokens])) == [
        *["UNK-LC-ing"] * 3,
        *["UNK-LC"] * 3,
        *["UNK"] * 2,
    ]


def test_every_class_has_words(gum_train, gum_dev):
    rare = RareWords().fit(gum_train)
    frame = rare.classes_frame()
    assert (frame["n_words"].drop("UNK") >= rare.min_class_count).all()
    assert frame.loc["UNK", "n_words"] == len(rare.counts_)
    assert frame.loc["UNK", "n_tokens"] == gum_train.n_tokens
    assert frame.loc["UNK-latin-lower-*ing", "tags"].startswith("VBG 0.")
    assert frame.loc["UNK-latin-lower-*ing", "coarser"] == "UNK-latin-lower-*ng"
    new = rare.transform(gum_dev)
    assert set(new.word) <= set(range(len(rare.words_)))
    assert new == gum_dev


def test_table_of_classes():
    trees = ["(S (N dogs) (V run))", "(S (N cats) (V runs))", "(S (N dogs) (V nap))"]
    rare = RareWords(min_class_count=2).fit(trees)
    frame = rare.classes_frame()
    assert frame.index.tolist() == list(rare.classes_)
    assert frame.columns.tolist() == [
        "examples",
        "n_words",
        "n_tokens",
        "tags",
        "coarser",
    ]
    row = frame.loc["UNK-latin-lower-*s"]
    assert (row["examples"], row["n_words"], row["n_tokens"]) == (
        "dogs cats runs",
        3,
        4,
    )
    # All five words: 2/5 nouns. Three words in -s, two of them nouns.
    assert row["tags"] == f"V {(1 + 6 * 0.6) / 9:.2f}, N {(2 + 6 * 0.4) / 9:.2f}"
    assert row["coarser"] == "UNK-latin-lower"
    assert frame.loc["UNK", "coarser"] == ""
    binarized = RareWords(min_class_count=2).fit(TreeBinarizer().fit_transform(trees))
    assert binarized.classes_frame().equals(frame)
    # Words alone have classes, but no tags.
    sentences = RareWords(min_class_count=2).fit(Treebank(trees).sentences())
    assert sentences.classes_ == rare.classes_
    assert set(sentences.classes_frame()["tags"]) == {""}


def test_tables_and_words_survive_storage(tmp_path):
    rare = RareWords(min_class_count=2).fit(SENTENCES)
    save(rare, tmp_path / "rare")
    for again in (load(tmp_path / "rare"), pickle.loads(pickle.dumps(rare))):
        assert again.words_ == rare.words_
        assert again.classes_frame().equals(rare.classes_frame())
        new = [["Napping", "hounds", "?"]]
        assert words_of(again.transform(new)) == words_of(rare.transform(new))
    del again.class_words_
    with pytest.raises(ValueError, match="fit them again"):
        again.classes_frame()


def test_order_of_sentences_does_not_matter():
    one = RareWords(min_class_count=2).fit(SENTENCES)
    two = RareWords(min_class_count=2).fit(SENTENCES[::-1])
    assert one.words_ == two.words_
    assert one.classes_frame().equals(two.classes_frame())


def test_one_class_for_all():
    rare = RareWords(min_count=2, signature="none").fit(SENTENCES)
    assert rare.classes_ == ("UNK",)
    assert words_of(rare.transform([["Zebras", "the"]])) == ["UNK", "the"]


def test_own_signatures():
    rare = RareWords(min_count=2, signature=lambda w: f"len{len(w)}", min_class_count=1)
    rare.fit(Treebank([["aa", "bb", "ccc", "d", "d"]]))
    assert rare.classes_ == ("UNK", "len1", "len2", "len3")
    assert words_of(rare.transform([["xx", "yyyy", "d"]])) == ["len2", "UNK", "d"]

    def levels(word):
        return [f"len{len(word)}", "long" if len(word) > 2 else "short"]

    rare = RareWords(min_count=2, signature=levels, min_class_count=2)
    rare.fit(Treebank([["aa", "bb", "ccc", "dddd", "e"]]))
    assert rare.classes_ == ("UNK", "len2", "long", "short")
    assert words_of(rare.transform([["xx", "yyyyy", "z"]])) == ["len2", "long", "short"]


def test_classes_named_in_either_order_make_no_circle():
    rare = RareWords(signature=lambda w: ["A", "B"][:: 1 if w < "m" else -1])
    rare.fit([["a", "b", "c", "x", "y", "z"]])
    assert rare._path("A") == ["A", "B", "UNK"]
    assert rare._path("B") == ["B", "UNK"]


@pytest.mark.parametrize("bad", [None, 3, [1], ["a", None]])
def test_bad_signatures_name_the_token(bad):
    with pytest.raises(TypeError, match=r"signature\('aa'\) returned"):
        RareWords(signature=lambda word: bad).fit(Treebank([["aa"]]))


def test_a_token_spelled_like_a_class_is_unknown():
    rare = RareWords(min_count=2, signature="english", min_class_count=1)
    rare.fit(Treebank([["UNK", "UNK", "UNK-LC", "UNK-LC", "dog", "a", "a"]]))
    assert "UNK-LC" in rare.classes_
    assert list(rare.vocabulary_) == ["a"]
    assert words_of(rare.transform([["UNK-LC", "a"]]))[1] == "a"


# A plain PCFG lacks rules for a sentence or two.
@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["sinica", "cess_esp"])
def test_learnt_classes_beat_english_ones(corpus):
    trees = read_treebank(_corpus(corpus, "train.ptb"))
    rows = np.arange(len(trees))
    train, test = trees[rows % 5 != 0], trees[rows % 25 == 0]
    score = {}
    for signature in ("suffix", "english"):
        parser = make_parser(PCFG(), horizontal=1, rarewords__signature=signature)
        score[signature] = parser.fit(train).score(test)
    assert score["suffix"] > score["english"] + 0.005


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
