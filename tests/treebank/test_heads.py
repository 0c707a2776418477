"""Head rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg_sk import Treebank, TreeBinarizer
from lpcfg_sk.treebank import (
    ENGLISH_HEAD_RULES,
    decode_table,
    find_heads,
    head_token,
    unbinarize,
)
from tests.reference import binarize as reference
from tests.treebank.strategies import trees

pytestmark = pytest.mark.kernels

SENTENCE = (
    "(S (NP (NP (DT the) (NN dog)) (PP (IN of) (NP (NNP John) (POS 's) (NN aunt))))"
    " (VP (MD will) (VP (VB bark) (ADVP (RB very) (RB loudly)))) (. .))"
)

penn = st.sampled_from(
    "S NP VP PP ADJP SBAR NN NNS NNP DT IN VBD JJ CD RB QP , . : CC POS FOO".split()  # noqa: SIM905
)
own_rules = st.dictionaries(
    st.sampled_from(["A", "B", None]),
    st.tuples(
        st.sampled_from(["left", "right"]),
        st.lists(st.sampled_from(["A", "B", ("C", "D"), ","]), max_size=3),
    ),
)


def test_a_known_sentence():
    treebank = Treebank([SENTENCE])
    words = treebank[0].words()
    frame = treebank.to_frame()
    heads = [words[i] for i in head_token(treebank)]
    found = [
        (label, head)
        for label, head, size in zip(frame.label, heads, treebank.size, strict=True)
        if size > 1
    ]
    assert found == [
        ("S", "will"),
        ("NP", "dog"),
        ("NP", "dog"),
        ("PP", "of"),
        ("NP", "aunt"),
        ("VP", "will"),
        ("VP", "bark"),
        ("ADVP", "loudly"),
    ]


@pytest.mark.parametrize(
    ("tree", "head"),
    [
        ("(NP (DT the) (CD two) (JJ old))", "two"),
        ("(NP (NP a) (, ,) (NP b))", "a"),
        ("(NP (DT the) (JJ rich))", "rich"),
        ("(NP (DT those))", "those"),
        ("(PP (IN out) (IN of) (NP it))", "of"),
        ("(VP (TO to) (VP (VB go)))", "to"),
        ("(QP (IN over) ($ $) (CD 5))", "$"),
        ("(SBAR (IN that) (S s))", "that"),
        ("(UNKNOWN (A a) (B b) (. .))", "b"),
        ("(UNKNOWN (. .) (, ,))", ","),
        ("(FRAG (NP a) b)", "b"),
    ],
)
def test_rules(tree, head):
    treebank = Treebank([tree])
    assert treebank[0].words()[head_token(treebank)[0]] == head


@settings(deadline=None)
@given(trees(penn))
def test_english_rules_equal_twin(tree):
    expected = reference.heads(tree, ENGLISH_HEAD_RULES)
    assert head_token(Treebank([tree])).tolist() == [head for *_, head in expected]


@settings(deadline=None)
@given(trees(st.sampled_from(["A", "B", "C", "D", ","])), own_rules)
def test_own_rules_equal_twin(tree, rules):
    expected = reference.heads(tree, rules)
    assert head_token(Treebank([tree]), rules).tolist() == [h for *_, h in expected]


@settings(deadline=None)
@given(
    st.lists(trees(penn), min_size=1, max_size=3),
    st.sampled_from(["right", "left", "head"]),
    st.sampled_from([0, 2]),
)
def test_heads_survive_binarisation(made, direction, horizontal):
    treebank = Treebank(made)
    binary = TreeBinarizer(direction, horizontal=horizontal).fit_transform(treebank)
    token, head = head_token(binary), find_heads(binary)
    tree = np.repeat(np.arange(len(binary)), np.diff(binary.node_offsets))
    base = binary.node_offsets[tree]
    assert (binary.start <= token).all() and (token < binary.stop).all()
    np.testing.assert_array_equal(token, token[base + head])

    # An intermediate node has its owner's head where it covers it.
    intermediate = decode_table(binary.labels).intermediate[binary.label]
    for i in np.flatnonzero(intermediate).tolist():
        owner = i
        while intermediate[owner]:
            owner = base[owner] + binary.parent[owner]
        if binary.start[i] <= token[owner] < binary.stop[i]:
            assert token[i] == token[owner]

    # The others have the head of the original node.
    def spans(bank, tokens, chosen):
        rows = np.repeat(np.arange(len(bank)), np.diff(bank.node_offsets))
        return {
            (t, a, b): h
            for t, a, b, h in zip(
                rows[chosen].tolist(),
                bank.start[chosen].tolist(),
                bank.stop[chosen].tolist(),
                tokens[chosen].tolist(),
                strict=True,
            )
        }

    everywhere = np.ones(treebank.n_nodes, dtype=bool)
    assert spans(binary, token, ~intermediate) == spans(
        treebank, head_token(treebank), everywhere
    )
    assert unbinarize(binary) == treebank


def test_sentences_without_trees_have_no_heads():
    treebank = Treebank([["a", "b"], "(S (NP a) (VP b))", ["c"]])
    assert head_token(treebank).tolist() == [1, 0, 1]
    assert find_heads(treebank).tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    "rules", [{"A": "left"}, {"A": ("up", [])}, {"A": ("left", "NN")}, {"A": 3}]
)
def test_bad_rules(rules):
    treebank = Treebank(["(A (B b) (C c))"])
    with pytest.raises(ValueError, match="head rule for 'A'"):
        find_heads(treebank, rules)
    with pytest.raises(ValueError, match="head rule for 'A'"):
        TreeBinarizer("head", head_rules=rules).fit(treebank).transform(treebank)
