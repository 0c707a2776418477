"""Treebanks in mapped files."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zlib

import joblib
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    SpectralLPCFG,
    Treebank,
    TreebankFormatError,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.treebank import _storage
from lpcfg_sk.treebank._columns import check_columns

COLUMNS = (
    *("label", "size", "parent", "start", "stop", "node_offsets"),
    *("token", "word", "tag", "token_offsets"),
)


def assert_same(one, two):
    for name in COLUMNS:
        a, b = getattr(one, name), getattr(two, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    for name in ("labels", "tokens", "words"):
        assert getattr(one, name) == getattr(two, name)
    assert one.binarized == two.binarized
    assert one.blocks.keys() == two.blocks.keys()
    for name, block in one.blocks.items():
        other = two.blocks[name]
        if isinstance(block, np.ndarray):
            assert block.tobytes() == other.tobytes()
        else:
            assert block.shape == other.shape
            for part in ("data", "indices", "indptr"):
                assert np.array_equal(getattr(block, part), getattr(other, part))
        names = one.block_names[name]
        assert (names is None) == (two.block_names[name] is None)
        assert names is None or list(names) == list(two.block_names[name])


@pytest.fixture(scope="module")
def featured():
    parser = make_parser(SpectralLPCFG(2))
    trees = parser[:-1].fit_transform(load_toy(40))
    vectors = np.arange(3.0 * trees.n_nodes, dtype=np.float32).reshape(-1, 3)
    return trees.replace(
        blocks={**trees.blocks, "vectors": vectors},
        block_names={**trees.block_names, "vectors": None},
    )


MIXED = Treebank(
    [
        "(S (NP (DT das) (NN Mädchen)) (VP (V schläft) ruhig))",
        [("日本", "NNP"), "\udce4x", "𝔾"],
        "(A (B (C c)))",
        [],
    ]
)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "treebank", [MIXED, MIXED[1:2], Treebank(), load_toy(30)[::3]], ids=repr
)
def test_a_saved_treebank_is_opened_as_it_was(tmp_path, treebank, verify):
    treebank.save(tmp_path / "a.tb")
    opened = Treebank.open(tmp_path / "a.tb", verify=verify)
    assert_same(treebank, opened)
    assert opened == treebank
    assert [str(t) for t in opened] == [str(t) for t in treebank]


def test_blocks_vocabularies_and_names_are_saved_too(tmp_path, featured):
    featured.save(tmp_path / "a.tb")
    opened = Treebank.open(str(tmp_path / "a.tb"))
    assert_same(featured, opened)
    opened.save(tmp_path / "b.tb")
    assert (tmp_path / "b.tb").read_bytes() == (tmp_path / "a.tb").read_bytes()
    assert opened.block_names["inside"][-2:] == featured.block_names["inside"][-2:]
    with pytest.raises(IndexError, match="name"):
        opened.block_names["inside"][10**7]


def shares(array, other):
    return np.shares_memory(array, other) or array.size == 0


def test_columns_and_slices_are_views_of_the_file(tmp_path, featured):
    featured.save(tmp_path / "a.tb")
    opened = Treebank.open(tmp_path / "a.tb")
    whole = np.frombuffer(_base(opened.label), np.uint8)
    part = opened[5:9]
    for name in COLUMNS:
        assert shares(getattr(opened, name), whole)
        assert not getattr(opened, name).flags.writeable
        if not name.endswith("offsets"):
            assert shares(getattr(part, name), whole)
    for name in ("inside", "outside"):
        assert shares(opened.blocks[name].data, whole)
        assert shares(opened.blocks[name].indices, whole)
    assert shares(part.blocks["vectors"], whole)


def _base(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_pickles_and_hashes_are_those_of_the_content(tmp_path, featured):
    featured.save(tmp_path / "a.tb")
    opened = Treebank.open(tmp_path / "a.tb")
    plain = featured.replace(block_names={})
    assert joblib.hash(opened.replace(block_names={})) == joblib.hash(plain)
    data = pickle.dumps(opened)
    os.remove(tmp_path / "a.tb")
    assert pickle.loads(data) == featured


@pytest.mark.parametrize(
    "learner",
    [PCFG(), EMLPCFG(2, max_iter=2, tol=None, random_state=0), SpectralLPCFG(2)],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_do_not_notice_that_a_treebank_is_mapped(tmp_path, learner):
    trees = load_toy(80)
    trees.save(tmp_path / "a.tb")
    one, two = (
        make_parser(learner).fit(X)[-1].grammar_.arrays
        for X in (trees, Treebank.open(tmp_path / "a.tb"))
    )
    for a, b in zip(one, two, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_mapped_file_may_be_replaced(tmp_path):
    MIXED.save(tmp_path / "a.tb")
    opened = Treebank.open(tmp_path / "a.tb")
    load_toy(5).save(tmp_path / "a.tb")
    assert opened == MIXED
    assert Treebank.open(tmp_path / "a.tb") == load_toy(5)
    opened[:2].save(tmp_path / "a.tb")
    assert Treebank.open(tmp_path / "a.tb") == MIXED[:2]


# -- files that are not what they should be ----------------------------------------


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.tb"):
        Treebank.open(tmp_path / "no.tb")


@pytest.mark.parametrize("content", [b"", b"(S (A a))\n", b"PK\x03\x04" * 20])
def test_a_foreign_file(tmp_path, content):
    (tmp_path / "a.tb").write_bytes(content)
    with pytest.raises(TreebankFormatError, match=r"a\.tb: .*read_treebank"):
        Treebank.open(tmp_path / "a.tb")


def test_a_later_version(tmp_path):
    MIXED.save(tmp_path / "a.tb")
    data = bytearray((tmp_path / "a.tb").read_bytes())
    data[8:12] = struct.pack("<I", 9)
    (tmp_path / "a.tb").write_bytes(data)
    with pytest.raises(TreebankFormatError, match="version 9"):
        Treebank.open(tmp_path / "a.tb")


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_cut_short_or_made_longer(tmp_path, verify):
    MIXED.save(tmp_path / "a.tb")
    data = (tmp_path / "a.tb").read_bytes()
    for wrong in (*(data[:n] for n in (8, 20, 30, 200, len(data) - 1)), data + b"x"):
        (tmp_path / "a.tb").write_bytes(wrong)
        with pytest.raises(TreebankFormatError, match=r"cut short"):
            Treebank.open(tmp_path / "a.tb", verify=verify)


def test_every_changed_byte_is_noticed(tmp_path):
    treebank = Treebank(["(S (A a) (B (C c) d))"])
    treebank.save(tmp_path / "a.tb")
    data = (tmp_path / "a.tb").read_bytes()
    missed = 0
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 + place % 255
        (tmp_path / "a.tb").write_bytes(wrong)
        try:
            opened = Treebank.open(tmp_path / "a.tb")
        except TreebankFormatError:
            continue
        # Only the padding between columns is of no account.
        assert_same(opened, treebank)
        missed += 1
    assert missed < 64 * 18


def with_header(path, change):
    """Rewrite the header of a file, with a right checksum."""
    data = path.read_bytes()
    length = _storage._START.unpack(data[:24])[3]
    header = json.loads(data[24 : 24 + length])
    text = json.dumps(change(header)).encode()
    start = _storage._START.pack(_storage._MAGIC, 1, zlib.crc32(text), len(text))
    path.write_bytes(start + text + data[24 + length :])


CRAFTED = {
    "no dict": lambda h: [],
    "no columns": lambda h: {k: h[k] for k in h if k != "columns"},
    "one column less": lambda h: {
        **h,
        "columns": {k: v for k, v in h["columns"].items() if k != "label"},
    },
    "objects": lambda h: _with_column(h, type="|O"),
    "beyond the end": lambda h: _with_column(h, offset=h["n_bytes"]),
    "huge": lambda h: _with_column(h, shape=[2**62, 2**62]),
    "negative": lambda h: _with_column(h, shape=[-1]),
    "no number": lambda h: _with_column(h, offset="1"),
    "trees": lambda h: {**h, "n_trees": 7},
    "blocks": lambda h: {**h, "blocks": [{"name": "inside", "sparse": True}]},
    "type": lambda h: _with_column(h, type="<f4"),
}


def _with_column(header, **change):
    columns = dict(header["columns"])
    columns["label"] = {**columns["label"], **change}
    return {**header, "columns": columns}


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_headers_are_not_trusted(tmp_path, change):
    path = tmp_path / "a.tb"
    Treebank(["(S (A a) (B b))"]).save(path)
    with_header(path, change)
    with pytest.raises(TreebankFormatError, match=r"a\.tb"):
        Treebank.open(path)


WRONG = {
    "label": [9, -2],
    "tag": [9, -2],
    "token": [9, -1],
    "word": [9, -1],
    "size": [0, 2, 9, -1],
    "parent": [7, -1, -2],
    "start": [5, -1],
    "stop": [0, 5],
    "node_offsets": [-1, 6, 1],
    "token_offsets": [-1, 2, 4],
}


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_columns_with_a_wrong_number_are_no_trees(data):
    treebank = Treebank(["(S (A a) (B (C c) (D d)))", "(X (Y y) (Z z))"])
    name = data.draw(st.sampled_from(list(WRONG)))
    column = np.array(getattr(treebank, name))
    place = data.draw(st.integers(0, len(column) - 1))
    value = data.draw(st.sampled_from(WRONG[name]))
    if column[place] == value:
        return
    column[place] = value
    with pytest.raises(ValueError, match=r"."):
        check_columns({**vars(treebank), name: column})


def test_trees_are_checked_part_by_part(monkeypatch):
    monkeypatch.setattr("lpcfg_sk.treebank._columns._PART", 7)
    trees = load_toy(20)
    check_columns(vars(trees))
    check_columns(vars(MIXED))
    size = np.array(trees.size)
    size[-3] += 1
    with pytest.raises(ValueError, match=r"size|cover|nest|span"):
        check_columns({**vars(trees), "size": size})


def test_blocks_are_checked():
    treebank = Treebank(["(S (A a) (B b))"])
    block = scipy.sparse.csr_matrix(np.eye(3))
    block.indices = np.array([0, 1, 9], dtype=np.int32)
    with pytest.raises(ValueError, match="column of a sparse matrix"):
        check_columns({**vars(treebank), "blocks": {"inside": block}})
    with pytest.raises(ValueError, match="one row per node"):
        check_columns({**vars(treebank), "blocks": {"vectors": np.zeros((2, 1))}})


def test_a_block_of_objects_cannot_be_saved(tmp_path):
    treebank = Treebank(["(S (A a) (B b))"])
    block = np.array([[None], [1], ["x"]], dtype=object)
    with pytest.raises(TypeError, match="block0"):
        treebank.replace(blocks={"vectors": block}).save(tmp_path / "a.tb")
    assert os.listdir(tmp_path) == []


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    MIXED.save(tmp_path / "a.tb")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_toy(10).save(tmp_path / "a.tb")
    assert os.listdir(tmp_path) == ["a.tb"]
    assert Treebank.open(tmp_path / "a.tb") == MIXED


KILLED = """
import os, signal, sys
from lpcfg_sk.datasets import load_toy
os.fsync = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
load_toy(10).save(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.tb"
    MIXED.save(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode < 0
    assert Treebank.open(path) == MIXED
