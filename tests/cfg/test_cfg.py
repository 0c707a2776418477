import pickle

import pytest

from lpcfg_sk import CFG, Treebank
from lpcfg_sk.cfg import Rule

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


def test_binary_normal_form_is_figure_2():
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
    # Figure 2 leaves pairs as they are; here their second rule is a link of its own.
    found = {str(r) for r in form.grammar.rules}
    pairs = {"NP -> DET N": "NP1 -> DET N", "DET -> 'the'": "DET1 -> 'the'"}
    wanted = {
        pairs.get(str(r), str(r)) for r in CFG.from_string(expected, start="S").rules
    } | {"NP -> NP1", "DET -> DET1"}
    assert found == wanted
    assert form.grammar.degree == 2


def test_new_names_do_not_clash():
    form = CFG.from_string("S -> a | b | S1\nS1 -> c").to_binary_normal_form()
    assert "S2" in form.grammar.nonterminals
    assert len(set(form.grammar.nonterminals)) == 4
