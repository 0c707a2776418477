import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg_sk import Treebank, TreebankFormatError, read_treebank
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.treebank import _reader, write_treebank
from tests.reference.scanner import bracketed, export_sentence

pytestmark = pytest.mark.kernels

HEAD = """%% a comment
#FORMAT 3
#BOT ORIGIN
0\tnews.txt\tx
#EOT ORIGIN
"""
FIRST = """#BOS 1 2 899973978 1  %% from the news
Mögen\tVMFIN\t\t3.Pl\tHD\t502
Puristen\tNN\t--\tNK\t500
aller\tPIAT\t--\tNK\t501 SB 502
Länder\tNN\t--\tNK\t501\t%% note
.\t$.\t--\t--\t0
#500\tNP\t--\tSB\t502
#501\tNP\t--\tAG\t500
#502\tS\t--\t--\t0
#EOS 1
"""
TREE = (
    "(ROOT (S (VMFIN Mögen) (NP (NN Puristen) (NP (PIAT aller) (NN Länder)))) ($. .))"
)


def sentence(*lines):
    body = "\n".join("\t".join(line.split()) for line in lines)
    return f"#BOS 7\n{body}\n#EOS 7\n"


def read(text, **options):
    return read_treebank(io.BytesIO(text.encode()), format="export", **options)


def strings(treebank):
    return [str(tree) for tree in treebank]


@pytest.mark.parametrize("block", [None, 1, 10, 57])
def test_format_3(block, monkeypatch):
    if block:
        monkeypatch.setattr(_reader, "BLOCK_SIZE", block)
    text = HEAD + FIRST + "\n" + sentence("ja ITJ -- -- 0")
    assert strings(read(text)) == [TREE, "(ROOT (ITJ ja))"]
    assert strings(read(text.replace("\n", "\r\n"))) == [TREE, "(ROOT (ITJ ja))"]


def test_format_4_has_lemmas():
    text = "#FORMAT 4\n" + sentence(
        "Hunde Hund NN Pl SB 500",
        "bellen bellen VVFIN 3.Pl HD 500",
        "#500 -- S -- -- 0",
    )
    assert strings(read(text)) == ["(ROOT (S (NN Hunde) (VVFIN bellen)))"]


def test_edge_labels_are_functions():
    treebank = read(FIRST, keep_functions=True)
    assert strings(treebank) == [
        "(ROOT (S (VMFIN-HD Mögen) (NP-SB (NN-NK Puristen) (NP-AG (PIAT-NK aller) "
        "(NN-NK Länder)))) ($. .))"
    ]


def test_traces_go():
    text = sentence("* -NONE- -- -- 500", "a A -- -- 501", "#500 NP -- -- 501") + (
        sentence("b B -- -- 0")
    )
    text = text.replace(
        "a\tA\t--\t--\t501\n", "a\tA\t--\t--\t501\n#501\tS\t--\t--\t0\n"
    )
    assert strings(read(text)) == ["(ROOT (S (A a)))", "(ROOT (B b))"]
    assert strings(read(text, keep_traces=True))[0] == (
        "(ROOT (S (NP (-NONE- *)) (A a)))"
    )


def test_words_without_a_tag():
    text = sentence("a -- -- -- 500", "b B -- -- 500", "#500 S -- -- 0") + sentence(
        "a -- -- -- 500", "b B -- -- 0", "#500 S -- -- 0"
    )
    assert strings(read(text)) == ["(ROOT (S a (B b)))", "(ROOT (S a) (B b))"]


def test_words_that_look_like_numbers():
    text = sentence("500 CARD -- -- 500", "#1 NN -- -- 500", "#500 NP -- -- 0")
    assert strings(read(text)) == ["(ROOT (NP (CARD 500) (NN #1)))"]


CROSSING = sentence(
    "a A -- -- 500", "b B -- -- 501", "c C -- -- 500", "#500 X -- -- 501",
    "#501 S -- -- 0",
)  # fmt: skip
FAULTS = [
    (CROSSING, "discontinuous", 5),
    (sentence("a A -- -- 500"), "not the number of a node", 2),
    (sentence("a A -- -- X"), "not the number of a node", 2),
    (sentence("a A -- --"), "too few fields", 2),
    (sentence("a"), "too few fields", 2),
    (sentence("a A -- -- 0", "#500 X -- -- 0"), "without words", 3),
    (sentence("a A -- -- 500", "#500 X -- -- 500"), "own ancestor", 3),
    (
        sentence("a A -- -- 0", "#500 X -- -- 501", "#501 X -- -- 500"),
        "without words",
        3,
    ),
    (sentence("a A -- -- 500", "#500 X -- -- 0", "#500 Y -- -- 0"), "twice", 4),
    (sentence(), "without words", 1),
    (sentence("#500 X -- -- 0"), "without words", 2),
    (sentence("a -- -- ROOT 0"), "without a tag", 2),
    ("#BOS 1\na\tA\t--\t--\t0\n", "no #EOS", 1),
    ("stray\n", "outside of sentences", 1),
    ("#EOS 1\n", "outside of sentences", 1),
    (sentence("a A\0 -- -- 0"), "NUL", 2),
]


@pytest.mark.parametrize("text, message, line", FAULTS)
def test_faults_have_a_place(text, message, line):
    with pytest.raises(TreebankFormatError, match=message) as caught:
        read(FIRST + text)
    lines = FIRST.count("\n")
    assert (caught.value.line, caught.value.tree) == (lines + line, 2)
    assert caught.value.file == "<file>"


@pytest.mark.parametrize("text, message, line", FAULTS)
@pytest.mark.parametrize("block", [None, 9])
def test_skipping_counts_and_goes_on(text, message, line, block, monkeypatch):
    if block:
        monkeypatch.setattr(_reader, "BLOCK_SIZE", block)
    good = sentence("b B -- -- 0")
    with pytest.warns(TreebankWarning, match=f"^2 malformed.*{message}"):
        treebank = read(FIRST + text + good + text + good, on_error="skip")
    assert strings(treebank) == [TREE, "(ROOT (B b))", "(ROOT (B b))"]


def test_undecodable_bytes():
    text = (FIRST + sentence("a A -- -- 0")).encode("latin-1")
    with pytest.raises(TreebankFormatError, match="line 2, column 2, tree 1"):
        read_treebank(io.BytesIO(text), format="export")
    treebank = read_treebank(io.BytesIO(text), format="export", encoding="latin-1")
    assert strings(treebank) == [TREE, "(ROOT (A a))"]


def test_depth_has_a_limit():
    assert len(read(FIRST, max_depth=5)) == 1
    with pytest.raises(TreebankFormatError, match="max_depth"):
        read(FIRST, max_depth=4)


@st.composite
def sentences(draw):
    """Rows of a sentence whose nodes may cross, with every node above a word."""
    n_words = draw(st.integers(1, 6))
    n_nodes = draw(st.integers(0, 4))
    ups = [0, *range(500, 500 + n_nodes)]
    rows = [(f"w{i}", f"T{i}", draw(st.sampled_from(ups))) for i in range(n_words)]
    for k in range(n_nodes):
        rows.append((500 + k, f"N{k}", draw(st.sampled_from([0, *ups[k + 2 :]]))))
    return rows


@given(sentences())
@settings(deadline=None, max_examples=200)
def test_trees_equal_the_reference(rows):
    lines = [
        f"{'#' if isinstance(name, int) else ''}{name} {label} -- -- {parent}"
        for name, label, parent in rows
    ]
    expected = export_sentence(rows)
    if expected is None:
        with pytest.raises(TreebankFormatError, match=r"discontinuous|without words"):
            read(sentence(*lines))
    else:
        assert strings(read(sentence(*lines))) == [bracketed(expected)]


ROUND_TRIPS = [
    "(ROOT (S (A a) (B b)))",
    "(ROOT (ROOT (A a)))",
    "(ROOT (ROOT a b))",
    "(S (A a) (B b))",
    "(X x)",
    "(ROOT x)",
    "(ROOT (X x))",
    "(S a b (C c))",
    "(X (X (X x)))",
    "(VROOT (X (X x)) y)",
]


def test_round_trips():
    treebank = Treebank(ROUND_TRIPS)
    file = io.StringIO()
    write_treebank(treebank, file, format="export")
    file.seek(0)
    assert strings(read_treebank(file, format="export")) == ROUND_TRIPS


@pytest.mark.parametrize(
    "tree, message",
    [("(S #500)", "'#500'"), ("(S #EOS)", "'#EOS'"), ("(S (-- a) b)", "'--'")],
)
def test_what_the_format_cannot_hold(tree, message):
    with pytest.raises(ValueError, match=message):
        write_treebank(Treebank([tree]), io.StringIO(), format="export")
