from xml.dom.minidom import parseString

import pytest

from lpcfg_sk import Tree, Treebank


def test_construction_from_parts():
    tree = Tree("S", [Tree("NP", ["a"]), "b", Tree("VP", [Tree("V", ["c"]), "d"])])
    assert str(tree) == "(S (NP a) b (VP (V c) d))"
    assert tree.children[1] == "b"
    assert tree[2].words() == ["c", "d"]
    assert tree.tags() == ["NP", None, "V", None]
    assert len(tree) == 3
    assert [c if isinstance(c, str) else c.label for c in tree] == ["NP", "b", "VP"]


def test_subtrees_compare_as_whole_trees():
    tree = Tree.from_string(
        "(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N dog))))"
    )
    first, second = tree[0], tree[1][1]
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second, tree}) == 2
    assert first != tree
    assert first != "(NP (D the) (N dog))"


def test_unparsed_sentence():
    sentence = Tree(None, ["no", "tree"])
    assert sentence.label is None
    assert sentence.words() == ["no", "tree"]
    assert str(sentence) == "no tree"
    assert Tree(None, ["one"]).words() == ["one"]
    assert "·" in sentence.draw()


@pytest.mark.parametrize(
    ("label", "children", "error"),
    [
        ("S", [], ValueError),
        (3, ["a"], TypeError),
        ("S", [3, "a"], TypeError),
        (None, [Tree("A", ["a"])], ValueError),
        ("S", [Tree(None, ["a", "b"])], ValueError),
    ],
)
def test_bad_parts_are_refused(label, children, error):
    with pytest.raises(error):
        Tree(label, children)


def test_drawings():
    tree = Tree.from_string("(S (NP (NNS dogs)) (VP (VBP bark) (ADVP <&>)))")
    lines = tree.draw().splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("ADVP <&>")
    svg = tree._repr_svg_()
    assert svg.startswith("<svg")
    assert svg.count("<line") == 8
    assert "&lt;&amp;&gt;" in svg


def test_repr_is_short():
    tree = Tree("S", [Tree("A", ["word"])] * 100)
    assert len(repr(tree)) < 80


def test_a_drawing_without_bounds_is_refused():
    depth = 100_000
    deep = Tree.from_string("(S " * depth + "x" + ")" * depth)
    with pytest.raises(ValueError, match=r"20,000,.*str\(tree\), or draw a subtree"):
        deep.draw()
    flat = Tree("S", ["x"] * depth)
    assert flat.draw().count("\n") == depth
    assert Tree(None, ["a", "b"]).draw().endswith("b")


def test_pictures_are_well_formed_whatever_the_words():
    svg = Tree("S", ["bell\x07", "half\ud800", "<&>"])._repr_svg_()
    assert "bell\ufffd" in svg
    parseString(svg)


@pytest.mark.parametrize(
    "text",
    [
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))",
        "(X a)",
        "(S (NP a) b (VP (V c) d))",
        "(A (B (C (D x))))",
    ],
)
def test_methods_of_nltk_mean_the_same(text):
    tree = Tree.from_string(text)
    theirs = tree.to_nltk()
    assert tree.leaves() == theirs.leaves()
    assert tree.height() == theirs.height()
    assert [t.to_nltk() for t in tree.subtrees()] == list(theirs.subtrees())
    assert tree.productions() == [str(p) for p in theirs.productions()]
    if None not in tree.tags():
        assert tree.pos() == theirs.pos()
    for subtree in tree.subtrees():
        assert subtree.spans()[0] == (subtree.label, 0, len(subtree.leaves()))


def test_methods_do_not_recurse(capsys):
    depth = 20_000
    deep = Tree.from_string("(S " * depth + "x" + ")" * depth)
    assert deep.height() == depth + 1
    assert len(deep.spans()) == depth
    assert sum(1 for _ in deep.subtrees()) == depth
    Tree("S", ["a", "b"]).pretty_print()
    assert capsys.readouterr().out.startswith("S\n")
    assert Tree(None, ["a", "b"]).pos() == [("a", None), ("b", None)]
    assert Tree(None, ["a", "b"]).spans() == []


@pytest.mark.parametrize(
    "words", [["(", ")"], ["\\"], ["\\", "("], ["a\\", "(b)", "\\)"], [")("], ["\\/"]]
)
def test_words_with_brackets_are_read_back(words):
    for tree in (Tree("S", [Tree("A(", [w]) for w in words]), Tree("S", words)):
        assert Tree.from_string(str(tree)) == tree
        assert Treebank([str(tree)])[0] == tree
