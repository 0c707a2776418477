import pytest

from lpcfg_sk import Tree


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
