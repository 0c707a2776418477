import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import Treebank
from lpcfg_sk.lpcfg import smooth_lexicon
from lpcfg_sk.treebank import RuleIndex, SymbolTable
from tests.reference import lpcfg as reference
from tests.tolerances import EXACT

WORDS = ["the", "dog", "cat", "runs", "LOW", "CAP", "NEVER"]
CLASS = {"the": "LOW", "dog": "LOW", "cat": "NEVER", "runs": "LOW"}


def random_trees(rng, n=60):
    """Return one-word trees, with classes of words or not."""
    labels = rng.choice(["A", "B", "C"], size=n)
    words = rng.choice(WORDS[:-1], size=n, p=[0.3, 0.2, 0.15, 0.05, 0.2, 0.1])
    return [f"({a} {x})" for a, x in zip(labels, words, strict=True)], words.tolist()


def with_classes(trees):
    treebank = Treebank(trees)
    strings = sorted({*treebank.words.strings, *WORDS})
    ids = {x: i for i, x in enumerate(strings)}
    backoff = [ids[CLASS.get(x, x)] for x in strings]
    word = treebank.words.map_to(strings)[treebank.word]
    return treebank.replace(words=SymbolTable(strings, backoff), word=word)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 7.0])
def test_smoothing_follows_the_formula(seed, classes, signed, alpha):
    rng = np.random.default_rng(seed)
    trees, tokens = random_trees(rng)
    treebank = with_classes(trees) if classes else Treebank(trees)
    index = RuleIndex.from_treebank(treebank)
    m = rng.integers(1, 4, size=3)
    lengths = m[index.lex_label]
    values = rng.standard_normal(lengths.sum()) if signed else rng.random(lengths.sum())
    pieces = np.split(values, np.cumsum(lengths)[:-1])
    names, words = index.nonterminals, index.words
    vectors = {
        (names[a], words[x]): v
        for a, x, v in zip(index.lex_label, index.lex_word, pieces, strict=True)
    }
    backoff = {x: CLASS.get(x, x) for x in set(tokens)} if classes else None
    expected = reference.smooth_lexicon(tokens, vectors, backoff, alpha)
    lexicon = smooth_lexicon(index.count(), m, values, alpha=alpha)
    found = {}
    for x, word in enumerate(lexicon.words):
        for e in range(lexicon.word_offset[x], lexicon.word_offset[x + 1]):
            lo, hi = lexicon.lex_offset[e : e + 2]
            found[names[lexicon.lex_label[e]], word] = lexicon.lexical[lo:hi]
    assert found.keys() == expected.keys()
    for key, vector in expected.items():
        assert_allclose(found[key], vector, rtol=1e-10, atol=EXACT, err_msg=str(key))
    assert lexicon.unknown_word == "<UNK>"


def test_totals_of_words_are_kept(seed):
    trees, tokens = random_trees(np.random.default_rng(seed))
    index = RuleIndex.from_treebank(with_classes(trees))
    counts = index.lexical_counts()
    lexicon = smooth_lexicon(index.count(), np.ones(3, dtype=int), counts, alpha=2.0)
    totals = np.add.reduceat(lexicon.lexical, lexicon.word_offset[:-1])
    for word, total in zip(lexicon.words, totals, strict=True):
        expected = tokens.count(word) or 1.0
        assert_allclose(total, expected, rtol=EXACT, atol=0, err_msg=word)


def test_without_smoothing_nothing_changes(seed):
    trees, _ = random_trees(np.random.default_rng(seed))
    index = RuleIndex.from_treebank(with_classes(trees))
    counts = index.lexical_counts()
    lexicon = smooth_lexicon(index.count(), np.ones(3, dtype=int), counts, alpha=0)
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
    one = smooth_lexicon(once.count(weight), ones, once.lexical_counts(weight))
    two = smooth_lexicon(often.count(), ones, often.lexical_counts())
    assert one.words == two.words
    assert_allclose(one.lexical, two.lexical, rtol=EXACT, atol=0)


def test_a_word_spelled_like_the_unknown_one_serves_as_it():
    index = RuleIndex.from_treebank(Treebank(["(A x)", "(B <UNK>)", "(A x)"]))
    rules = index.count()
    lexicon = smooth_lexicon(rules, np.ones(2, dtype=int), rules.lexical_count)
    assert lexicon.words == ("<UNK>", "x")
    assert lexicon.lexical.tolist() == [1.0, 2.0]
