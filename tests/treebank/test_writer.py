import gzip
import io
import os
import stat

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lpcfg_sk import Tree, Treebank, read_treebank
from lpcfg_sk._kernels._columns import Columns
from lpcfg_sk._kernels._text import Strings, bracket_length, write_brackets
from lpcfg_sk.treebank import _writer, write_treebank
from tests.reference.scanner import bracketed

pytestmark = pytest.mark.kernels

TREES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "(ROOT (S a (NP b) c))",
    "(X x)",
    "(-NONE- *T*-1)",
    "(NP-SBJ=2 (ü é) (𝔛 a\u00a0b))",
    "(\ufdd0 (\ufdd01 \ufdd0\ufdd02) \ufdd0)",
]
LITERAL = {"keep_traces": True, "keep_functions": True}

symbols = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="() \t\n\r\v\f\0"),
    min_size=1,
    max_size=4,
)
nested = st.recursive(
    st.tuples(symbols, st.lists(symbols, min_size=1, max_size=3)),
    lambda below: st.tuples(
        symbols, st.lists(st.one_of(below, symbols), min_size=1, max_size=5)
    ),
    max_leaves=12,
)


def written(treebank, **options):
    file = io.BytesIO()
    write_treebank(treebank, file, **options)
    return file.getvalue()


def test_one_tree_a_line():
    assert written(Treebank(TREES)).decode() == "".join(f"{t}\n" for t in TREES)
    assert written(Treebank([])) == b""


@given(st.lists(nested, max_size=4))
@example([("\ufdd0", ["0", "\\"])])
@example([("\\", ["\ufdd01"])])
@settings(deadline=None)
def test_brackets_equal_the_reference_and_read_back(trees):
    lines = [bracketed(tree) for tree in trees]
    treebank = Treebank(lines)
    text = written(treebank)
    assert text.decode() == "".join(f"{line}\n" for line in lines)
    assert read_treebank(io.BytesIO(text), **LITERAL) == treebank
    assert [str(tree) for tree in treebank] == lines


@given(st.lists(nested, max_size=4))
@settings(deadline=None, max_examples=50)
def test_export_reads_back(trees):
    treebank = Treebank([bracketed(tree) for tree in trees])
    try:
        text = written(treebank, format="export")
    except ValueError as error:
        assert "another meaning" in str(error) or "no tag" in str(error)
        return
    assert read_treebank(io.BytesIO(text), format="export", **LITERAL) == treebank


def test_pieces_do_not_show(monkeypatch):
    treebank = Treebank(TREES * 20)
    expected = written(treebank)
    for size in (1, 7, 30):
        monkeypatch.setattr(_writer, "_PIECE", size)
        assert written(treebank) == expected


def test_slices_write_their_own_trees():
    treebank = Treebank(TREES)
    assert written(treebank[[3, 1]]).decode().splitlines() == [TREES[3], TREES[1]]
    assert written(treebank[1:3]).decode().splitlines() == TREES[1:3]


def test_kernel_fills_what_it_measured():
    treebank = Treebank(TREES[:2])
    ends = np.arange(20)
    pool = np.full(20, ord("x"), dtype=np.uint8)
    strings = Strings(pool, ends)
    columns = Columns(*(getattr(treebank, name) for name in Columns._fields))
    length = bracket_length(columns, strings, strings, 0, 2)
    text = np.empty(length, dtype=np.uint8)
    used = write_brackets(columns, strings, strings, 0, 2, text)
    assert used == length
    assert text.tobytes() == b"(x (x (x x) (x x)) (x (x x)))\n(x (x x (x x) x))\n"


@pytest.mark.parametrize("name", ["trees.mrg", "trees.mrg.gz"])
def test_files(name, tmp_path):
    path = tmp_path / name
    treebank = Treebank(TREES)
    path.write_text("old")
    treebank.write(path)
    assert os.listdir(tmp_path) == [name]
    data = path.read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    assert text == written(treebank)
    assert read_treebank(path, **LITERAL) == treebank
    treebank.write(str(path))
    assert path.read_bytes() == data


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "trees.mrg"
    path.write_text("old")
    monkeypatch.setattr(_writer, "_PIECE", 1)
    calls = []

    def fail(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write_brackets(*args)

    monkeypatch.setattr(_writer, "write_brackets", fail)
    with pytest.raises(KeyboardInterrupt):
        Treebank(TREES).write(path)
    assert os.listdir(tmp_path) == ["trees.mrg"]
    assert path.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="needs links and permissions of POSIX")
def test_links_permissions_and_devices(tmp_path):
    (tmp_path / "link.mrg").symlink_to(tmp_path / "real.mrg")
    Treebank(TREES).write(tmp_path / "link.mrg")
    assert (tmp_path / "link.mrg").is_symlink()
    mask = os.umask(0)
    os.umask(mask)
    mode = stat.S_IMODE((tmp_path / "real.mrg").stat().st_mode)
    assert mode == 0o666 & ~mask
    Treebank(TREES).write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(IsADirectoryError):
        Treebank(TREES).write(tmp_path)


def test_open_files():
    treebank = Treebank(TREES)
    file = io.StringIO()
    treebank.write(file)
    assert file.getvalue().encode() == written(treebank)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_encodings(encoding):
    treebank = Treebank(["(S naïve)", "(S (A é))"])
    text = written(treebank, encoding=encoding)
    assert text == b"".join([("(S naïve)\n(S (A é))\n").encode(encoding)])
    assert read_treebank(io.BytesIO(text), encoding=encoding) == treebank


@pytest.mark.parametrize(
    "tree, message",
    [
        (Tree("S", ["a(b"]), r"tree 1: the word 'a\(b'.*escape=True"),
        (Tree("S", ["a", Tree("$)", ["b"])]), r"tree 1: the label '\$\)'"),
        (Tree("S", ["a b"]), "tree 1: the word 'a b'"),
        (Tree("S", ["a\nb"]), "tree 1: the word"),
        (Tree("S", [""]), "tree 1: the word ''"),
        (Tree("S", ["\0"]), "tree 1: the word"),
        (Tree("S", ["\ud800"]), "tree 1: the word"),
        (["no", "tree"], "1 of 2 rows.*row 1"),
    ],
)
def test_what_brackets_cannot_hold(tree, message):
    with pytest.raises(ValueError, match=message):
        written(Treebank([Tree("S", ["a"]), tree]))


def test_what_the_encoding_cannot_hold():
    with pytest.raises(ValueError, match="tree 0: the word '€'"):
        written(Treebank(["(S €)"]), encoding="latin-1")


def test_brackets_within_words_can_be_escaped():
    treebank = Treebank([Tree("S", [Tree("-LRB-", ["("]), Tree("N", ["f(x)"])])])
    assert written(treebank, escape=True) == b"(S (-LRB- -LRB-) (N f-LRB-x-RRB-))\n"
    with pytest.raises(ValueError, match="white space"):
        written(Treebank([Tree("S", ["( "])]), escape=True)


@pytest.mark.parametrize(
    "options, message", [({"format": "xml"}, "format"), ({"encoding": "x"}, "encoding")]
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        written(Treebank(TREES), **options)
