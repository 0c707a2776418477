import pickle
import re

import numpy as np
import pytest

from lpcfg_sk import CFG, RareWords, Treebank
from lpcfg_sk.cfg import (
    BinaryNormalForm,
    Rule,
    binomials_to_theta,
    theta_to_binomials,
)

FIGURE_2 = """
S -> NP VP | NP VP NP | NP VP PP
PP -> P NP
NP -> N | DET N
VP -> V
N -> park | boy | girl | I
DET -> a | the
P -> at | on | in
V -> watch
"""


def test_from_string_reads_quotes_comments_and_alternatives():
    grammar = CFG.from_string(
        """
        # a comment
        S -> 'it''s' A | A  # and another
        A -> "say \\"x\\"" | A A | 'b'
        """.replace("'it''s'", "'it\\'s'")
    )
    assert grammar.start == "S"
    assert grammar.terminals == ("it's", 'say "x"', "b")
    assert grammar.rules[0] == Rule("S", ("it's", "A"), (True, False))
    assert CFG.from_string(str(grammar)) == grammar
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    assert hash(pickle.loads(pickle.dumps(grammar))) == hash(grammar)


def test_a_terminal_may_share_its_name_with_a_nonterminal():
    grammar = CFG.from_string("S -> NN S | NN\nNN -> 'NN'")
    assert grammar.terminals == ("NN",)
    assert str(grammar.rules[2]) == "NN -> 'NN'"


def test_rules_are_kept_once_and_grouped():
    grammar = CFG([("S", ("A", "S")), ("A", "a"), ("S", ("A",)), ("A", "a")])
    assert [str(r) for r in grammar.rules] == ["S -> A S", "S -> A", "A -> 'a'"]
    assert grammar.degree == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one rule"),
        ("S a", "line 1: expected 'A -> ...'"),
        ("S -> a\n'x' -> b", "line 2"),
        ("S -> a |", "empty right-hand side"),
        ("S -> a -> b", "a second '->'"),
        ("S -> 'a", "column 6"),
        ("S -> A 'x' [0.9]\nA -> 'y'", r"line 1: '\[0.9\]' .* leave them out"),
        ("S -> 'x' | 'y' S [1e-3]", "probabilities are learnt"),
        ("S -> S S", "derives no string"),
        ("S -> A | a\nA -> B\nB -> A | b", "A -> B -> A form a cycle"),
        ("S -> S | a", "S -> S form a cycle"),
    ],
)
def test_bad_grammars_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        CFG.from_string(text)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="empty right-hand side"):
        CFG([("S", ())])
    with pytest.raises(ValueError, match="start symbol 'X'"):
        CFG.from_string("S -> a", start="X")
    with pytest.raises(ValueError, match="unary_cycles"):
        CFG.from_string("S -> a", unary_cycles="maybe")
    with pytest.raises(ValueError, match="'B' in rule S -> B has no rules"):
        CFG([Rule("S", ("B",), (False,))])


@pytest.mark.parametrize("text", ["S -> a\nB -> b", "S -> a | C\nC -> C C"])
def test_useless_symbols_are_warned_about(text):
    with pytest.warns(UserWarning, match="useless"):
        CFG.from_string(text)


def test_an_unquoted_terminal_among_quoted_ones_is_warned_about():
    with pytest.warns(UserWarning, match="not quoted as others are: VP;"):
        grammar = CFG.from_string("S -> NP VP\nNP -> 'a'")
    assert grammar.terminals == ("VP", "a")
    assert CFG.from_string("S -> '[0.9]' S | '[1]'").terminals == ("[0.9]", "[1]")


def test_cycles_can_be_allowed():
    grammar = CFG.from_string("S -> A | a\nA -> S", unary_cycles="allow")
    assert len(grammar.rules) == 3


def test_from_treebank_orders_rules_by_frequency():
    trees = ["(S (A x) (B y))", "(S (B y))", "(S (B y))", "(T (A x) y)"]
    grammar = CFG.from_treebank(Treebank(trees))
    assert grammar.implicit_start
    assert [str(r) for r in grammar.rules] == [
        "START -> S",
        "START -> T",
        "S -> B",
        "S -> A B",
        "A -> 'x'",
        "B -> 'y'",
        "T -> A 'y'",
    ]
    assert not CFG.from_treebank(Treebank(trees[:3])).implicit_start


def test_from_treebank_of_wsj(wsj_train):
    grammar = CFG.from_treebank(wsj_train[:200])
    assert grammar.start == "ROOT"
    with pytest.raises(ValueError, match="cycle"):
        CFG.from_treebank(wsj_train, unary_cycles="error")


def test_binary_normal_form_is_figure_2_and_leaves_pairs_alone():
    form = CFG.from_string(FIGURE_2).to_binary_normal_form()
    expected = """
    S -> NP VP | S1
    S1 -> NP VP NP | S2
    S2 -> NP VP PP
    PP -> P NP
    NP -> N | DET N
    VP -> V
    N -> park | N1
    N1 -> boy | N2
    N2 -> girl | N3
    N3 -> I
    DET -> a | the
    P -> at | P1
    P1 -> on | P2
    P2 -> in
    V -> watch
    """
    assert form.grammar == CFG.from_string(expected, start="S")
    assert form.grammar.degree == 2


def test_new_names_do_not_clash():
    form = CFG.from_string("S -> a | b | S1\nS1 -> c").to_binary_normal_form()
    assert "S2" in form.grammar.nonterminals
    assert len(set(form.grammar.nonterminals)) == 4


def test_pairs_of_rules_add_nothing_to_N():
    pairs = CFG.from_string("S -> A B | B A\nA -> a | c\nB -> b")
    assert pairs.to_binary_normal_form().grammar == pairs
    theta = [0.3, 0.7, 0.25, 0.75, 1.0]
    form = pairs.to_binary_normal_form()
    assert form.to_binary(theta).tolist() == pytest.approx(theta, rel=1e-15)
    assert form.from_binary(theta).tolist() == theta
    # A pair of roots has no link, so an implicit start symbol is no obstacle.
    two_roots = CFG.from_treebank(Treebank(["(S (A x) (B y))", "(T (A x) (B y))"]))
    assert two_roots.implicit_start
    assert two_roots.to_binary_normal_form().grammar.rules == two_roots.rules


FORM = CFG.from_string("S -> a S | b S | c").to_binary_normal_form()


@pytest.mark.parametrize(
    ("method", "tree", "reason"),
    [
        ("transform", "(S a (S d))", "no rule for its node 'S' over 'd'"),
        ("transform", "(S a (T c))", "no rule for its node 'S' over 'a c'"),
        ("transform", "(X c)", "no rule for its node 'X' over 'c'"),
        ("inverse_transform", "(S c)", "no rule for its node 'S' over 'c'"),
        ("inverse_transform", "(S2 c)", "its root 'S2' is not the start symbol 'S'"),
    ],
)
def test_trees_of_another_grammar_are_named_in_an_error(method, tree, reason):
    good = "(S (S1 (S2 c)))" if method == "inverse_transform" else "(S c)"
    with pytest.raises(ValueError, match=f"{method}: tree 1 .*{re.escape(reason)}"):
        getattr(FORM, method)(Treebank([good, tree]))


def test_binary_normal_form_keeps_words_and_tags():
    trees = Treebank(["(S (A x) (B y))", "(S (A z) (B y))", "(S (A w) (B y))"] * 2)
    seen = RareWords(min_count=3, min_class_count=1).fit_transform(trees)
    form = CFG.from_treebank(seen).to_binary_normal_form()
    assert any("UNK" in str(rule) for rule in form.grammar.rules)
    there = form.transform(seen)
    assert there.sentences() == trees.sentences()
    assert form.inverse_transform(there) == seen
    assert form.transform(Treebank([])).n_nodes == 0


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([0.5, 0.6, -0.1], r"theta of the rule S -> 'c' is -0\.1"),
        ([1.5, 0.0, 0.0], r"theta of the rule S -> 'a' S is 1\.5"),
        ([0.5, np.nan, 0.5], r"theta of the rule S -> 'b' S is nan"),
        ([0.5, 0.2, 0.2], "the rules of 'S' sum to 0.9"),
        ([0.5, 0.5], "shape (2,), expected one probability for each of the 3"),
    ],
)
def test_theta_outside_0_and_1_is_refused(theta, message):
    with pytest.raises(ValueError, match=message.replace("(2,)", r"\(2,\)")):
        FORM.to_binary(theta)
    with pytest.raises(ValueError, match=r"theta of the rule|sum to|shape"):
        FORM.from_binary([*theta, *theta[:2]])
    if not np.greater_equal(theta, 0).all():
        with pytest.raises(ValueError, match="numbers from 0 on"):
            theta_to_binomials(theta)


def test_binomials_outside_0_and_1_are_refused():
    with pytest.raises(ValueError, match=r"go\[0\] = 1.5"):
        binomials_to_theta([0.5, 1.0], [1.5, 0.0])
    with pytest.raises(ValueError, match=r"stop\[1\] = nan"):
        binomials_to_theta([0.5, np.nan], [0.5, 0.0])


def test_order_of_a_form_is_a_permutation_of_the_rules():
    grammar = CFG.from_string("S -> a | b | c")
    form = BinaryNormalForm(grammar, [2, 0, 1])
    assert str(form.grammar) == "S -> 'c' | S1\nS1 -> 'a' | S2\nS2 -> 'b'"
    theta = form.to_binary([0.2, 0.3, 0.5])
    assert form.from_binary(theta).tolist() == pytest.approx([0.2, 0.3, 0.5])
    for order in ([0, 1], [0, 0, 1], [1, 2, 3]):
        with pytest.raises(ValueError, match="numbers of the 3 rules, each once"):
            BinaryNormalForm(grammar, order)
