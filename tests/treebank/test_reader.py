import gzip
import io
import os
import sys
import time
import tracemalloc
import warnings

import numpy as np
import pytest

from lpcfg_sk import Treebank, TreebankFormatError, read_treebank
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.treebank import _reader
from lpcfg_sk.treebank._reader import strip_functions

TEXT = """

( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (NP-PRD=2 (-LRB- -LRB-) (NN chairman) (-RRB- -RRB-)
        (SBAR (WHNP-3 (-NONE- 0) )
          (S (NP-SBJ (-NONE- *T*-3) ) (VP (-NONE- *?*) )))))
    (. .) ))
(S (ADVP|PRT up)) ( (X (IN @)))
"""
TREES = [
    "(ROOT (S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ is) "
    "(NP (-LRB- -LRB-) (NN chairman) (-RRB- -RRB-))) (. .)))",
    "(S (ADVP|PRT up))",
    "(ROOT (X (IN @)))",
]


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return read_treebank(io.BytesIO(data), **options)


def strings(treebank):
    return [str(tree) for tree in treebank]


def error_of(text, **options):
    with pytest.raises(TreebankFormatError) as caught:
        read(text, **options)
    return caught.value


# -- corpora -------------------------------------------------------------------


@pytest.mark.parametrize(
    "corpus, trees, tokens",
    [
        ("wsj_train", 3396, 81793),
        ("wsj_dev", 273, 6327),
        ("gum_train", 10224, 177410),
        ("gum_dev", 1575, 28119),
    ],
)
def test_corpora_have_the_documented_sizes(corpus, trees, tokens, request):
    treebank = request.getfixturevalue(corpus)
    assert (len(treebank), treebank.n_tokens) == (trees, tokens)
    assert "-NONE-" not in treebank.labels
    assert not [label for label in treebank.labels if "-" in label.strip("-")]


def test_nltk_reads_the_same_trees(wsj_train):
    nltk = pytest.importorskip("nltk")
    from tests.conftest import DATA

    folder = DATA / "wsj" / "train"
    others = []
    for path in sorted(folder.glob("*.mrg"))[:60]:
        for text in nltk.tokenize.sexpr_tokenize(path.read_text().strip()):
            tree = nltk.Tree.fromstring(text)
            tree.set_label(tree.label() or "ROOT")
            others.append(tree)
    ours = read_treebank(folder, keep_traces=True, keep_functions=True)
    assert len(ours) == len(wsj_train)
    assert ours[: len(others)] == Treebank(others)


# -- shapes of good text ---------------------------------------------------------


def test_penn_treebank_text():
    treebank = read(TEXT)
    assert strings(treebank) == TREES
    assert treebank.labels.strings[:2] == ("ROOT", "S")
    assert treebank.words is treebank.tokens


def test_traces_and_functions_can_be_kept():
    kept = read(TEXT, keep_traces=True, keep_functions=True)
    first = str(kept[0])
    assert first.startswith("(ROOT (S (NP-SBJ-1 (NNP Mr.)")
    assert "(SBAR (WHNP-3 (-NONE- 0)) (S (NP-SBJ (-NONE- *T*-3))" in first
    assert "(NP (-NONE- *T*-3))" in str(read(TEXT, keep_traces=True)[0])
    assert "-NONE-" not in read(TEXT, keep_functions=True).labels


@pytest.mark.parametrize(
    "label, category",
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("PP-LOC-PRD-TPC-3=4", "PP"),
        ("NP-P_OBJ", "NP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-LRB--1", "-LRB--1"),
        ("=", "="),
        ("--", "--"),
        ("ADVP|PRT", "ADVP|PRT"),
        ("PRP$", "PRP$"),
        ("X-bar", "X-bar"),
        ("X-bar-SBJ", "X-bar"),
        ("NP-", "NP-"),
        ("A<B+C", "A<B+C"),
    ],
)
def test_function_tags_are_cut(label, category):
    assert strip_functions(label) == category


def test_cutting_function_tags_takes_linear_time():
    begin = time.process_time()
    assert strip_functions("A" + "-B" * 200_000 + "-c").endswith("-c")
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        (" \n\t\r\n ", []),
        ("\ufeff", []),
        ("\ufeff(S a)\ufeff\n(S b)", ["(S a)", "(S b)"]),
        ("(S\r\n a)\r\n(S b)\r\n", ["(S a)", "(S b)"]),
        ("(S a)(S b)  (S c)", ["(S a)", "(S b)", "(S c)"]),
        ("( S ( NP a )b)", ["(S (NP a) b)"]),
        ("((S a) (S b))", ["(ROOT (S a) (S b))"]),
        ("(S a b c)", ["(S a b c)"]),
        ("(S a (NP b) c)", ["(S a (NP b) c)"]),
        ("(X (X (X x)))", ["(X (X (X x)))"]),
        ("(S a\u00a0b\u2028c)", ["(S a\u00a0b\u2028c)"]),
        ("(S\u00a0T a)", ["(S\u00a0T a)"]),
        ("(S \x1c\x85)", ["(S \x1c\x85)"]),
        ("(ü ß)(𝔛 😀)", ["(ü ß)", "(𝔛 😀)"]),
        ("(NP (-NONE- *) dog)", ["(NP dog)"]),
    ],
)
def test_ordinary_text(text, expected):
    assert strings(read(text)) == expected
    assert strings(read_treebank(io.StringIO(text))) == expected


def test_trees_of_traces_only_are_left_out_and_counted():
    text = "(S (-NONE- *)) (S a) (-NONE- 0)"
    with pytest.warns(TreebankWarning, match="^2 trees hold nothing but traces"):
        treebank = read(text)
    assert strings(treebank) == ["(S a)"]
    with pytest.warns(TreebankWarning, match="^1 tree holds nothing but traces"):
        read("(S (-NONE- *))")
    assert len(read(text, keep_traces=True)) == 3


def test_comments_between_trees():
    text = "%% file (1)\n(S a) %% (X y)\n  %%\n(S %%b)\n%% end"
    assert strings(read(text, comments="%%")) == ["(S a)", "(S %%b)"]
    assert error_of(text).line == 1
    with pytest.warns(TreebankWarning, match="^1 malformed tree .* was left out"):
        treebank = read("x\n%% (S a)\n(S b)", comments="%%", on_error="skip")
    assert strings(treebank) == ["(S b)"]


# -- faults ----------------------------------------------------------------------

FAULTS = [
    ("(", "never closed", 1, 1, 1),
    ("(S", "never closed", 1, 1, 1),
    ("(S a)\n (S (NP b)", "never closed", 2, 2, 2),
    ("(S a))", "closes nothing", 1, 6, 2),
    (")", "closes nothing", 1, 1, 1),
    ("()", "empty brackets", 1, 1, 1),
    ("(S a)\n( )", "empty brackets", 2, 1, 2),
    ("(S (NP ()) b)", "empty brackets", 1, 8, 1),
    ("(NN )", "without a word", 1, 5, 1),
    ("(S (NN) b)", "without a word", 1, 7, 1),
    ("(S (NP a) ((VP b)))", "without a label", 1, 11, 1),
    ("(((S a)))", "without a label", 1, 2, 1),
    ("# a comment\n(S a)", "outside of brackets", 1, 1, 1),
    ("(S a)\n\n  word (S b)", "outside of brackets", 3, 3, 2),
    ("(S é\0)", "NUL", 1, 5, 1),
    (b"(S a)\n(S \xc3\xa9\xe9)", "do not decode", 2, 5, 2),
    (b"(S \xed\xa0\x80)", "do not decode", 1, 4, 1),
    (b"\xff\xfe(\0S\0 \0a\0)\0", "do not decode", 1, 1, 1),
    ("(A (B (C (D d))))", "max_depth", 1, 10, 1),
]


@pytest.mark.parametrize("text, message, line, column, tree", FAULTS)
@pytest.mark.parametrize("block", [None, 1, 7])
def test_faults_have_a_place(
    text, message, line, column, tree, block, monkeypatch, tmp_path
):
    if block:
        monkeypatch.setattr(_reader, "BLOCK_SIZE", block)
    path = tmp_path / "bad.mrg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TreebankFormatError, match=message) as caught:
        read_treebank(path, max_depth=3)
    error = caught.value
    assert error.file == str(path)
    assert (error.line, error.column, error.tree) == (line, column, tree)
    assert f"line {line}, column {column}, tree {tree}" in str(error)


def test_lone_surrogates_are_faults():
    with pytest.raises(TreebankFormatError, match="do not decode") as caught:
        read_treebank(io.StringIO("(S a)\n(S \udcff)"))
    assert (caught.value.line, caught.value.column) == (2, 4)
    with pytest.raises(TreebankFormatError, match="item 1, line 1, column 4"):
        Treebank(["(S a)", "(S \ud800)"])


@pytest.mark.parametrize("fault", [case[0] for case in FAULTS])
def test_no_good_tree_is_lost_after_a_fault(fault):
    fault = fault if isinstance(fault, bytes) else fault.encode()
    text = b"(S (A good))\n" + fault + b"\n(S (A better))\n(S (A best))\n"
    with pytest.warns(TreebankWarning, match="^[123] malformed.*line [234]") as caught:
        treebank = read(text, on_error="skip", max_depth=3)
    assert len(caught) == 1
    found = strings(treebank)
    assert found[0] == "(S (A good))"
    assert found[-2:] == ["(S (A better))", "(S (A best))"]


@pytest.mark.parametrize(
    "text, expected, count",
    [
        ("(S a)))) x ) (S b)", ["(S a)", "(S b)"], 1),
        ("x (S a) y (S b) z", ["(S a)", "(S b)"], 3),
        ("(S (A) (B b)) (S c)", ["(S c)"], 1),
        ("(S (NP a)\n(S b)\n (X\n(S c)", ["(S b)", "(S c)"], 2),
        ("(S\n(S\n(S a)\n(S\n(S b)\n", ["(S a)", "(S b)"], 3),
        ("  (S (A a)\n  (S b)\n    (X c)\n", ["(S b)", "(X c)"], 1),
        ("(S \0 (A a))\n(S b)", ["(S b)"], 1),
        ("(S a) (", ["(S a)"], 1),
    ],
)
@pytest.mark.parametrize("block", [None, 3, 8])
def test_skipping_counts_and_goes_on(text, expected, count, block, monkeypatch):
    if block:
        monkeypatch.setattr(_reader, "BLOCK_SIZE", block)
    with pytest.warns(TreebankWarning, match=f"^{count} malformed"):
        treebank = read(text, on_error="skip")
    assert strings(treebank) == expected


def test_good_text_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert strings(read(TEXT, on_error="skip")) == TREES


@pytest.mark.parametrize("block", range(1, 40, 3))
def test_blocks_do_not_show(block, monkeypatch):
    text = f"\ufeff{TEXT}(ü é𝔛)"
    monkeypatch.setattr(_reader, "BLOCK_SIZE", block)
    for encoding in ("utf-8", "utf-16", "gb18030"):
        treebank = read(text.encode(encoding), encoding=encoding)
        assert strings(treebank) == [*TREES, "(ü é𝔛)"]
    assert read(text) == read_treebank(io.StringIO(text))


# -- limits ------------------------------------------------------------------------


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000_000,
        "(S " * 300_000,
        "(S\n" * 300_000,
        "(S\n(S a)\n" * 100_000,
        "(S a\n" * 200_000 + ")" * 5,
        ")" * 1_000_000,
        "a " * 500_000,
        "(S (A))\n" * 100_000,
        " " * 1_000_000,
        "%" * 1_000_000,
    ],
    ids=lambda text: repr(text[:10]),
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_hostile_text_takes_linear_time(text, on_error):
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(text, on_error=on_error)
    except TreebankFormatError:
        assert on_error == "raise"
    assert time.process_time() - begin < 20


def test_a_file_of_unclosed_trees_keeps_the_closed_ones():
    with pytest.warns(TreebankWarning, match="^100000 malformed"):
        treebank = read("(S\n(S a)\n" * 100_000, on_error="skip")
    assert len(treebank) == 100_000


def test_deep_and_wide_trees(tmp_path):
    depth, width = 100_000, 50_000
    deep = "(X " * depth + "x" + ")" * depth
    wide = "(X" + " (Y y)" * width + ")"
    treebank = read(deep + "\n" + wide)
    assert (len(treebank), treebank.n_nodes) == (2, depth + width + 1)
    assert treebank.parent[depth - 1] == depth - 2
    treebank.write(tmp_path / "odd.mrg")
    assert (tmp_path / "odd.mrg").read_text() == f"{deep}\n{wide}\n"
    assert read_treebank(tmp_path / "odd.mrg") == treebank
    error = error_of(deep, max_depth=1000)
    assert "max_depth" in error.message
    assert error.column == 3001


def test_a_tree_as_deep_as_allowed_is_read():
    assert len(read("(A (B (C c)))", max_depth=3)) == 1


@pytest.mark.slow_without_jit
def test_memory_stays_below_64_bytes_a_node():
    text = (TEXT * 20_000).encode()
    read(TEXT)
    file = io.BytesIO(text)
    tracemalloc.start()
    try:
        treebank = read_treebank(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * treebank.n_nodes
    assert treebank.nbytes < 40 * treebank.n_nodes


# -- sources -----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.mrg").write_text("(S c)")
    (tmp_path / "a.ptb").write_text("(S a)\n")
    (tmp_path / "b.PTB.gz").write_bytes(gzip.compress(b"(S b)\n"))
    (tmp_path / "notes.md").write_text("not a tree")
    (tmp_path / ".hidden.mrg").write_text("not a tree")
    return tmp_path


def test_sources(folder):
    everything = ["(S a)", "(S b)", "(S c)"]
    assert strings(read_treebank(folder)) == ["(S a)", "(S b)", "(S c)"]
    assert strings(read_treebank(str(folder / "**" / "*.mrg"))) == ["(S c)"]
    assert strings(read_treebank(folder / "a.ptb")) == ["(S a)"]
    mixed = [folder / "a.ptb", str(folder / "b.PTB.gz"), io.StringIO("(S c)")]
    assert strings(read_treebank(mixed)) == everything
    assert strings(read_treebank(iter(mixed[:2]))) == everything[:2]
    assert len(read_treebank([])) == 0
    with open(folder / "a.ptb", encoding="utf-8") as file:
        assert strings(read_treebank(file)) == ["(S a)"]
        assert not file.closed
    with open(folder / "b.PTB.gz", "rb") as file:
        assert strings(read_treebank(file)) == ["(S b)"]


def test_glob_characters_in_a_name_that_exists(tmp_path):
    (tmp_path / "[1].mrg").write_text("(S a)")
    assert len(read_treebank(tmp_path / "[1].mrg")) == 1


def test_tree_numbers_start_anew_with_each_file(folder):
    (folder / "z.ptb").write_text("(S a)\n(S")
    with pytest.raises(TreebankFormatError, match="tree 2") as caught:
        read_treebank(folder)
    assert caught.value.file == str(folder / "z.ptb")


def test_a_fault_at_the_end_of_a_file_does_not_reach_into_the_next(folder):
    (folder / "aa.ptb").write_text("(S (NP x)")
    with pytest.warns(TreebankWarning, match=r"^1 malformed.*aa\.ptb"):
        assert len(read_treebank(folder, on_error="skip")) == 3


@pytest.mark.parametrize(
    "source, error, message",
    [
        ("no such file.mrg", FileNotFoundError, "no such file"),
        ("nothing*.mrg", FileNotFoundError, "no file matches"),
        ("(S (NP a) (VP b))", FileNotFoundError, "looks like a tree"),
        (b"(S a)", TypeError, "io.StringIO"),
        (3, TypeError, "got int"),
        ([3], TypeError, "got int"),
        (None, TypeError, "NoneType"),
    ],
)
def test_wrong_sources_are_named(source, error, message):
    with pytest.raises(error, match=message):
        read_treebank(source)


def test_a_directory_without_treebanks_is_an_error(tmp_path):
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"\.mrg"):
        read_treebank(tmp_path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file"
)
def test_an_unreadable_file_is_an_error(tmp_path):
    path = tmp_path / "a.mrg"
    path.write_text("(S a)")
    path.chmod(0)
    with pytest.raises(PermissionError, match=r"a\.mrg"):
        read_treebank(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
def test_links_and_loops(folder):
    (folder / "link.mrg").symlink_to(folder / "a.ptb")
    (folder / "b" / "loop").symlink_to(folder)
    (folder / "dangling.mrg").symlink_to(folder / "gone")
    os.mkfifo(folder / "pipe.mrg")
    assert strings(read_treebank(folder)) == ["(S a)", "(S b)", "(S c)", "(S a)"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"format": "conll"}, "format"),
        ({"on_error": "ignore"}, "on_error"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": True}, "max_depth"),
        ({"max_bytes": -1}, "max_bytes"),
        ({"encoding": "klingon"}, "encoding"),
        ({"encoding": "base64"}, "encoding"),
        ({"comments": ""}, "comments"),
        ({"comments": "( "}, "comments"),
        ({"comments": "#", "format": "export"}, "comments"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        read("(S a)", **options)


# -- encodings and compression -------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["latin-1", "utf-16", "utf-32-be", "utf-8-sig", "cp1252", "utf-7"]
)
def test_encodings(encoding):
    text = "(S (NÉ é) (B b))\n(S naïve)"
    treebank = read(text.encode(encoding), encoding=encoding)
    assert strings(treebank) == text.split("\n")


@pytest.mark.parametrize("encoding", ["iso2022_jp", "shift_jis", "gb18030", "big5"])
def test_encodings_whose_bytes_look_like_brackets(encoding):
    text = "(名 日本) (名 表)"
    assert len(read(text.encode(encoding), encoding=encoding)) == 2


def test_undecodable_bytes_of_other_encodings_have_a_place():
    error = error_of(b"(S a)\n(S \x81b)", encoding="cp1252")
    assert (error.line, error.column, error.tree) == (2, 4, 2)
    with pytest.warns(TreebankWarning, match="^1 malformed"):
        treebank = read(b"(S \xe9)\n(S b)", encoding="ascii", on_error="skip")
    assert strings(treebank) == ["(S b)"]


def test_a_text_file_opened_with_the_wrong_encoding(tmp_path):
    (tmp_path / "a.mrg").write_bytes(b"(S a)\n(S \xe9)")
    with (
        open(tmp_path / "a.mrg", encoding="utf-8") as file,
        pytest.raises(TreebankFormatError, match="wrong encoding"),
    ):
        read_treebank(file)


def test_compressed_text_unfolds_no_further_than_allowed():
    bomb = gzip.compress(b" " * 3_000_000)
    with pytest.raises(TreebankFormatError, match="max_bytes=2000000"):
        read(bomb, max_bytes=2_000_000)
    with pytest.raises(TreebankFormatError, match="max_bytes"):
        read(bomb, max_bytes=2_000_000, on_error="skip")
    assert len(read(bomb, max_bytes=3_000_000)) == 0
    assert len(read(bomb, max_bytes=None)) == 0
    assert len(read("(S a)" * 10, max_bytes=1)) == 10


def test_damaged_compressed_text():
    data = gzip.compress(b"(S (NP a) (VP b))\n" * 1000)
    for damaged in (data[:-20], data[:40] + b"\0\0\0\0" + data[44:], data[:3]):
        with pytest.raises(TreebankFormatError, match="damaged gzip"):
            read(damaged)
    with pytest.warns(TreebankWarning, match="malformed"):
        read(data[:-20], on_error="skip")


def test_members_of_a_compressed_file_follow_each_other():
    data = gzip.compress(b"(S a)\n(S ") + gzip.compress(b"b)")
    assert strings(read(data)) == ["(S a)", "(S b)"]


def test_columns_are_compact_and_read_only():
    treebank = read(TEXT)
    for name in ("label", "size", "parent", "start", "stop", "token"):
        column = getattr(treebank, name)
        assert column.dtype == np.int32
        assert not column.flags.writeable
    assert set(treebank.tokens) == {w for s in treebank.sentences() for w in s}
