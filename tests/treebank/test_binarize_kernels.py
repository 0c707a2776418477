"""Binarisation and its inverse against their slow twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg_sk import Treebank, TreeBinarizer
from lpcfg_sk._kernels import _binarize as kernel
from lpcfg_sk.treebank import ENGLISH_HEAD_RULES, unbinarize
from tests.reference import binarize as reference
from tests.treebank.strategies import trees

pytestmark = pytest.mark.kernels

HEAD_OF = {
    "right": lambda node: len(node.children) - 1,
    "left": lambda node: 0,
    "head": reference.head_by_rules(ENGLISH_HEAD_RULES),
}
directions = st.sampled_from(sorted(HEAD_OF))
memories = st.sampled_from([0, 1, 2, 7, None])
several = st.lists(trees(), min_size=1, max_size=3)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(trees(), min_size=1, max_size=3), directions, memories, st.integers(1, 4)
)
def test_binarize_equals_twin_and_inverse_is_exact(
    made, direction, horizontal, vertical
):
    treebank = Treebank(made)
    binarizer = TreeBinarizer(direction, horizontal=horizontal, vertical=vertical)
    binary = binarizer.fit_transform(treebank)
    expected = [
        reference.binarize(
            tree, HEAD_OF[direction], horizontal, vertical, binarizer.preterminals_
        )
        for tree in made
    ]
    assert binary.tolist() == expected
    assert binary == Treebank(expected)
    assert binary.binarized
    for name in ("parent", "start", "stop"):
        np.testing.assert_array_equal(
            getattr(binary, name), getattr(Treebank(expected), name)
        )
    restored = unbinarize(binary)
    assert restored == treebank
    assert not restored.binarized
    for name in ("parent", "start", "stop"):
        np.testing.assert_array_equal(getattr(restored, name), getattr(treebank, name))
    # From labels alone: nothing but the text is left.
    assert unbinarize(Treebank(binary.tolist())) == treebank


@settings(deadline=None, max_examples=100)
@given(several, several, directions, memories)
def test_no_label_is_both_even_on_unseen_trees(seen, unseen, direction, horizontal):
    binarizer = TreeBinarizer(direction, horizontal=horizontal).fit(Treebank(seen))
    binary = binarizer.transform(Treebank(seen + unseen))
    leaf = binary.size == 1
    assert not set(binary.label[leaf]) & set(binary.label[~leaf])


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        trees(
            st.sampled_from(
                ["A", "@A", "@B|A", "A+B", "\\bare", "A+B~^C", "@A^B|\\bare", "@", ""]
            )
        ),
        min_size=1,
        max_size=3,
    )
)
def test_unbinarize_takes_labels_in_any_place(made):
    treebank = Treebank(made)
    restored = unbinarize(treebank)
    assert restored.tolist() == [reference.unbinarize(tree) for tree in made]
    assert restored.sentences() == treebank.sentences()
    expected = Treebank(restored.tolist())
    for name in ("parent", "start", "stop"):
        np.testing.assert_array_equal(getattr(restored, name), getattr(expected, name))


def test_kernels_take_read_only_and_empty_arrays():
    treebank = Treebank(["(S (A a) (B b) (C c))"])
    assert not treebank.label.flags.writeable
    assert str(TreeBinarizer().fit_transform(treebank)[0]) == (
        "(S (A a) (@S (B b) (C c)))"
    )
    empty = Treebank([])
    binary = TreeBinarizer().fit(treebank).transform(empty)
    assert len(binary) == 0
    assert unbinarize(binary) == empty


def test_pairs_keep_their_numbers_when_the_table_grows():
    table = kernel._PairTable(
        keys=np.empty(2, dtype=np.int64), slots=np.full(8, -1, dtype=np.int32), count=0
    )
    numbers = {}
    rng = np.random.default_rng(0)
    for first, second in rng.integers(-6, 60, size=(3000, 2)).tolist():
        pair = (first, abs(second))
        number, table = kernel._pair(table, *pair)
        assert numbers.setdefault(pair, number) == number
    keys, count = table.keys, table.count
    assert sorted(numbers.values()) == list(range(len(numbers))) == list(range(count))
    for (first, second), number in numbers.items():
        assert keys[number] >> 32 == first
        assert keys[number] & 0xFFFFFFFF == second


def test_seventy_children_by_hand():
    words = [f"(N w{i})" for i in range(70)]
    binary = TreeBinarizer("left").fit_transform(Treebank([f"(S {' '.join(words)})"]))
    nested = f"(@S {words[0]} {words[1]})"
    for word in words[2:-1]:
        nested = f"(@S {nested} {word})"
    assert str(binary[0]) == f"(S {nested} {words[-1]})"


@pytest.mark.parametrize(
    ("direction", "horizontal", "vertical", "expected"),
    [
        ("right", 0, 1, "(VP (V a) (@VP (NP+N b) (@VP (PP c) (PP d))))"),
        ("left", 0, 1, "(VP (@VP (@VP (V a) (NP+N b)) (PP c)) (PP d))"),
        ("right", 1, 1, "(VP (V a) (@VP|V (NP+N b) (@VP|NP (PP c) (PP d))))"),
        ("left", 1, 1, "(VP (@VP|PP (@VP|PP (V a) (NP+N b)) (PP c)) (PP d))"),
        ("right", None, 1, "(VP (V a) (@VP|V (NP+N b) (@VP|V|NP (PP c) (PP d))))"),
        ("right", 0, 2, "(VP (V a) (@VP (NP+N^VP b) (@VP (PP c) (PP d))))"),
    ],
)
def test_by_hand(direction, horizontal, vertical, expected):
    treebank = Treebank(["(VP (V a) (NP (N b)) (PP c) (PP d))"])
    binarizer = TreeBinarizer(direction, horizontal=horizontal, vertical=vertical)
    assert str(binarizer.fit_transform(treebank)[0]) == expected


def test_head_outward_by_hand():
    treebank = Treebank(["(NP (DT the) (JJ old) (NN dog) (PP x) (SBAR y))"])
    binary = TreeBinarizer("head", horizontal=2).fit_transform(treebank)
    assert str(binary[0]) == (
        "(NP (@NP|SBAR (@NP|SBAR|PP (DT the) (@NP|PP|DT (JJ old) (NN dog))) (PP x))"
        " (SBAR y))"
    )


def test_vertical_memory_passes_through_chains():
    treebank = Treebank(["(ROOT (S (VP (NP (DT a) (NN b)) (V c))))"])
    binary = TreeBinarizer(vertical=3).fit_transform(treebank)
    assert str(binary[0]) == "(ROOT+S+VP (NP^VP^S (DT a) (NN b)) (V c))"
    assert unbinarize(binary) == treebank


def test_trees_of_one_word():
    treebank = Treebank(["(ROOT (NP (NN dog)))", "(NN dog)", "(X (X (X dog)))"])
    binary = TreeBinarizer().fit_transform(treebank)
    assert [t.label for t in binary] == ["ROOT+NP+NN", "NN", "X+X+X"]
    assert unbinarize(binary) == treebank


def test_odd_places_by_hand():
    odd = Treebank(
        [
            "(@NP (DT a) (NN b))",
            "(S (@NP (DT a) (NN b)) (VP+VB c))",
            "(S (@NP a) (VP b))",
            "(\\bare a)",
            "(S (NP (\\bare a)) (@S (\\bare b) (\\bare c)))",
        ]
    )
    expected = [
        "(NP (DT a) (NN b))",
        "(S (DT a) (NN b) (VP (VB c)))",
        "(S (NP a) (VP b))",
        "(X a)",
        "(S (NP a) b c)",
    ]
    assert unbinarize(odd).tolist() == Treebank(expected).tolist()
