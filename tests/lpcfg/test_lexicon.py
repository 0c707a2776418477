import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import Treebank
from lpcfg_sk.lpcfg import smooth_lexicon
from lpcfg_sk.treebank import RuleIndex, SymbolTable
from tests.reference import lpcfg as reference
from tests.tolerances import EXACT

WORDS = ["the", "dog", "cat", "runs", "LOW", "LOW-t", "CAP", "NEVER"]
CLASS = {
    "the": "LOW",
    "dog": "LOW",
    "cat": "LOW-t",
    "LOW-t": "LOW",
    "runs": "NEVER",
    "NEVER": "CAP",
}
TAG = {"A": "A", "B": "B", "S+A": "A"}


def random_trees(rng, n=60):
    """Return one-word trees, with classes of words or not."""
    labels = rng.choice(list(TAG), size=n)
    p = [0.3, 0.2, 0.15, 0.05, 0.1, 0.1, 0.1]
    words = rng.choice(WORDS[:-1], size=n, p=p)
    trees = [f"({a} {x})" for a, x in zip(labels, words, strict=True)]
    return trees, list(zip(labels.tolist(), words.tolist(), strict=True))


def with_classes(trees):
    treebank = Treebank(trees)
    strings = sorted({*treebank.words.strings, *WORDS})
    ids = {x: i for i, x in enumerate(strings)}
    backoff = [ids[CLASS.get(x, x)] for x in strings]
    word = treebank.words.map_to(strings)[treebank.word]
    words = SymbolTable(strings, backoff)
    return treebank.replace(words=words, word=word)


def entries_of(lexicon, names):
    """Map (label, word) to its vector."""
    found = {}
    for x, word in enumerate(lexicon.words):
        for e in range(lexicon.word_offset[x], lexicon.word_offset[x + 1]):
            lo, hi = lexicon.lex_offset[e : e + 2]
            found[names[lexicon.lex_label[e]], word] = lexicon.lexical[lo:hi]
    return found


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 7.0])
def test_smoothing_follows_the_formula(seed, classes, signed, alpha):
    rng = np.random.default_rng(seed)
    trees, tokens = random_trees(rng)
    treebank = with_classes(trees) if classes else Treebank(trees)
    index = RuleIndex.from_treebank(treebank)
    names, words = index.nonterminals, index.words
    m = rng.integers(1, 4, size=len(names))
    lengths = m[index.lex_label]
    values = rng.standard_normal(lengths.sum()) if signed else rng.random(lengths.sum())
    pieces = np.split(values, np.cumsum(lengths)[:-1])
    vectors = {
        (names[a], words[x]): v
        for a, x, v in zip(index.lex_label, index.lex_word, pieces, strict=True)
    }
    backoff = {x: CLASS.get(x, x) for x in words} if classes else None
    expected = reference.smooth_lexicon(tokens, vectors, backoff, alpha, TAG)
    rules = index.count(binarized=classes)
    lexicon = smooth_lexicon(rules, m, values, alpha=alpha)
    found = entries_of(lexicon, names)
    assert found.keys() == expected.keys()
    for key, vector in expected.items():
        assert_allclose(found[key], vector, rtol=1e-10, atol=EXACT, err_msg=str(key))
    assert lexicon.unknown_word == "<UNK>"


def test_closed_form_of_a_small_example():
    trees = ["(N dog)"] * 2 + ["(N cat)", "(V run)"]
    strings = ["cat", "dog", "run", "LOW", "LOW-t"]
    words = SymbolTable(strings, [4, 3, 3, 3, 3])
    treebank = Treebank(trees)
    word = treebank.words.map_to(strings)[treebank.word]
    rules = RuleIndex.from_treebank(treebank.replace(words=words, word=word)).count()
    lexicon = smooth_lexicon(rules, np.ones(2, dtype=int), rules.lexical_count)
    found = {k: v[0] for k, v in entries_of(lexicon, rules.nonterminals).items()}
    # Three words, two of them nouns; LOW is mixed with the class of all words, which
    # has the same words, and LOW-t has one noun and six words of LOW.
    low, low_t = 2 / 3, (1 + 6 * 2 / 3) / 7
    expected = {
        ("N", "LOW"): low,
        ("V", "LOW"): 1 - low,
        ("N", "LOW-t"): low_t / 2,
        ("V", "LOW-t"): (1 - low_t) / 2,
        ("N", "<UNK>"): low,
        ("V", "<UNK>"): 1 - low,
        ("N", "dog"): 2 * (2 + low) / 3,
        ("V", "dog"): 2 * (1 - low) / 3,
        ("N", "cat"): (1 + low_t) / 2,
        ("V", "cat"): (1 - low_t) / 2,
        ("N", "run"): low / 2,
        ("V", "run"): (1 + 1 - low) / 2,
    }
    assert found == pytest.approx(expected, rel=EXACT)


def test_trees_of_weight_zero_count_nothing():
    trees = ["(N dog)"] * 2 + ["(N cat)", "(V run)"]
    strings = ["cat", "dog", "run", "LOW", "LOW-t"]
    words = SymbolTable(strings, [4, 3, 3, 3, 3])
    treebank = Treebank(trees)
    word = treebank.words.map_to(strings)[treebank.word]
    index = RuleIndex.from_treebank(treebank.replace(words=words, word=word))
    rules = index.count(np.array([1.0, 1.0, 1.0, 0.0]))
    lexicon = smooth_lexicon(rules, np.ones(2, dtype=int), rules.lexical_count)
    found = {k: v[0] for k, v in entries_of(lexicon, rules.nonterminals).items()}
    # Nouns are all there is. One of the two words belongs to LOW-t.
    nouns = {"dog": 2.0, "cat": 1.0, "run": 1.0, "LOW": 1.0, "LOW-t": 2 / 3, "<UNK>": 1}
    expected = {("N", name): value for name, value in nouns.items()}
    assert found == pytest.approx({**expected, ("V", "run"): 0.0})


def test_tokens_are_spread_over_the_labels_of_their_tag():
    trees = ["(A x)"] * 5 + ["(S+A y)"] * 5 + ["(B z)"] * 5
    strings = ["x", "y", "z", "UNK"]
    treebank = Treebank(trees)
    word = treebank.words.map_to(strings)[treebank.word]
    treebank = treebank.replace(words=SymbolTable(strings, [3] * 4), word=word)
    ones = np.ones(3, dtype=int)
    rules = RuleIndex.from_treebank(treebank).count(binarized=True)
    spread = entries_of(
        smooth_lexicon(rules, ones, rules.lexical_count), rules.nonterminals
    )
    assert spread["S+A", "x"][0] == pytest.approx(5 / 6 * (20 / 9 / 2 + 1 / 3))
    assert spread["B", "x"][0] == pytest.approx(5 / 6 / 3)
    # Labels of other trees are tags.
    rules = RuleIndex.from_treebank(treebank).count()
    plain = entries_of(
        smooth_lexicon(rules, ones, rules.lexical_count), rules.nonterminals
    )
    assert plain["S+A", "x"][0] == pytest.approx(5 / 6 / 3)


def test_negligible_labels_are_left_out():
    trees = ["(A x)"] * 5000 + ["(B y)"]
    strings = ["x", "y", "UNK"]
    treebank = Treebank(trees)
    word = treebank.words.map_to(strings)[treebank.word]
    treebank = treebank.replace(words=SymbolTable(strings, [2] * 3), word=word)
    rules = RuleIndex.from_treebank(treebank).count()
    lexicon = smooth_lexicon(rules, np.ones(2, dtype=int), rules.lexical_count)
    found = entries_of(lexicon, rules.nonterminals)
    assert ("B", "x") not in found
    assert found["A", "x"][0] == pytest.approx(5000)
    assert ("A", "y") in found


def test_totals_of_words_are_kept(seed):
    trees, tokens = random_trees(np.random.default_rng(seed))
    index = RuleIndex.from_treebank(with_classes(trees))
    rules = index.count()
    counts = rules.lexical_count
    lexicon = smooth_lexicon(rules, np.ones(3, dtype=int), counts, alpha=2.0)
    totals = np.add.reduceat(lexicon.lexical, lexicon.word_offset[:-1])
    words = [x for _, x in tokens]
    for word, total in zip(lexicon.words, totals, strict=True):
        if word in words or word == "<UNK>":
            expected = words.count(word) or 1.0
            assert_allclose(total, expected, rtol=EXACT, atol=0, err_msg=word)
        else:
            assert 0 < total <= 1


def test_without_smoothing_nothing_changes(seed):
    trees, _ = random_trees(np.random.default_rng(seed))
    index = RuleIndex.from_treebank(with_classes(trees))
    rules = index.count()
    counts = rules.lexical_count
    lexicon = smooth_lexicon(rules, np.ones(3, dtype=int), counts, alpha=0)
    assert lexicon.unknown_word is None
    assert lexicon.words == index.words
    assert np.array_equal(lexicon.lexical, counts)
    assert np.array_equal(lexicon.word_offset, index.word_offset)


def test_weights_mean_repetition(seed):
    rng = np.random.default_rng(seed)
    trees, _ = random_trees(rng)
    weight = rng.integers(1, 4, size=len(trees))
    once = RuleIndex.from_treebank(with_classes(trees))
    often = RuleIndex.from_treebank(with_classes(np.repeat(trees, weight).tolist()))
    ones = np.ones(3, dtype=int)
    one, two = once.count(weight), often.count()
    one = smooth_lexicon(one, ones, one.lexical_count)
    two = smooth_lexicon(two, ones, two.lexical_count)
    assert one.words == two.words
    assert_allclose(one.lexical, two.lexical, rtol=EXACT, atol=0)


def test_a_word_spelled_like_the_unknown_one_serves_as_it():
    index = RuleIndex.from_treebank(Treebank(["(A x)", "(B <UNK>)", "(A x)"]))
    rules = index.count()
    lexicon = smooth_lexicon(rules, np.ones(2, dtype=int), rules.lexical_count)
    assert lexicon.words == ("<UNK>", "x")
    assert lexicon.lexical.tolist() == [1.0, 2.0]
