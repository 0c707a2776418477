"""Files of treebanks that another program made, or replaces while they are read."""

import json
import pickle
import threading
import zlib

import numpy as np
import pytest
import scipy.sparse

from lpcfg_sk import Treebank, TreeBinarizer
from lpcfg_sk.exceptions import TreebankFormatError
from lpcfg_sk.treebank import _storage
from lpcfg_sk.treebank._storage import _MAGIC, _START, _VERSION

TREES = Treebank(["(S (NP a) (VP (VB b) (NP c)))", "(S (NP (NP d)) (VP b))"])


def rewritten(path, header):
    """Put another header into a file of a treebank."""
    content = path.read_bytes()
    *_, length = _START.unpack(content[: _START.size])
    text = header(content[_START.size : _START.size + length])
    start = _START.pack(_MAGIC, _VERSION, zlib.crc32(text), len(text))
    path.write_bytes(start + text + content[_START.size + length :])


def assert_refused(path, match):
    with pytest.raises(TreebankFormatError, match=match):
        Treebank.open(path)


@pytest.mark.parametrize("labels", [(), TREES.labels.strings])
def test_inner_nodes_without_a_label_are_refused(labels, tmp_path):
    path = tmp_path / "trees"
    changes = {"label": np.full(TREES.n_nodes, -1), "labels": labels}
    TREES.replace(**changes, check=False).save(path)
    assert_refused(path, "has no label")
    with pytest.raises(ValueError, match="has no label"):
        TREES.replace(**changes)


@pytest.mark.parametrize("name", ["label", "size", "parent", "start", "token", "word"])
def test_columns_that_are_no_trees_make_no_treebank(name):
    column = np.full_like(getattr(TREES, name), 2**20)
    damaged = TREES.replace(**{name: column}, check=False)
    for make in (
        lambda: TREES.replace(**{name: column}),
        lambda: Treebank.from_columns(**damaged._state()),
        lambda: pickle.loads(pickle.dumps(damaged)),
    ):
        with pytest.raises((ValueError, IndexError)):
            make()


def _with_block(**parts):
    block = scipy.sparse.csr_matrix(np.eye(TREES.n_nodes))
    arrays = {name: getattr(block, name) for name in ("data", "indices", "indptr")}
    for name, array in {**arrays, **parts}.items():
        setattr(block, name, array)
    return TREES.replace(blocks={"features": block})


def _indptr(*changes):
    indptr = np.arange(TREES.n_nodes + 1, dtype=np.int32)
    for place, value in changes:
        indptr[place] = value
    return indptr


@pytest.mark.parametrize(
    "indptr",
    [
        _indptr((slice(1, -1), 10**9), (-1, 0)),
        _indptr((-1, -1)),
        _indptr((1, 5)),
        _indptr((0, -1)),
        _indptr((-1, 1)),
    ],
)
def test_offsets_of_feature_blocks_are_checked(indptr, tmp_path, monkeypatch):
    path = tmp_path / "trees"
    _with_block().save(path)
    assert len(Treebank.open(path)) == 2
    # scipy cannot hold such a matrix, so the bytes are put in their place.
    arrays = _storage._arrays

    def hostile(treebank):
        found, blocks = arrays(treebank)
        return {**found, "block0.indptr": indptr}, blocks

    monkeypatch.setattr(_storage, "_arrays", hostile)
    _with_block().save(path)
    assert_refused(path, "sparse matrix")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("block0.indices", np.full(TREES.n_nodes, 2**30, np.int32)),
        ("block0.indices", np.arange(TREES.n_nodes, dtype=np.float32)),
        ("block0.data", np.ones(3)),
        ("labels.ends", np.array([8, 0, 8, 0], np.int64)),
        ("labels.ends", np.array([1.0, 2.0])),
        ("tokens.ends", np.array([-1, 3], np.int64)),
    ],
)
def test_parts_of_blocks_and_tables_are_checked(name, array, tmp_path, monkeypatch):
    arrays = _storage._arrays

    def hostile(treebank):
        found, blocks = arrays(treebank)
        return {**found, name: array}, blocks

    monkeypatch.setattr(_storage, "_arrays", hostile)
    _with_block().save(tmp_path / "trees")
    assert_refused(tmp_path / "trees", "describe a treebank")


@pytest.mark.parametrize("value", ["Infinity", "NaN", "1e400", "[]"])
def test_numbers_of_trees_that_are_none_are_refused(value, tmp_path):
    path = tmp_path / "trees"
    TREES.save(path)

    def header(text):
        fields = json.loads(text)
        fields["n_trees"] = "here"
        return json.dumps(fields).replace('"here"', value).encode()

    rewritten(path, header)
    assert_refused(path, "header is not that of a treebank")


def test_a_file_that_is_replaced_while_it_is_opened_is_the_old_one(
    tmp_path, monkeypatch
):
    path = tmp_path / "trees"
    TREES.save(path)
    read = _storage._read_header

    def read_and_replace(*arguments):
        header = read(*arguments)
        Treebank(["(A (B x) (C y))"] * 50).save(path)
        return header

    monkeypatch.setattr(_storage, "_read_header", read_and_replace)
    assert Treebank.open(path) == TREES


def test_opening_while_another_thread_saves_never_fails(tmp_path):
    path, done = tmp_path / "trees", threading.Event()
    others = [TREES, Treebank(["(A (B x) (C y))"] * 50)]
    TREES.save(path)

    def save():
        for i in range(60):
            others[i % 2].save(path)
        done.set()

    thread = threading.Thread(target=save)
    thread.start()
    while not done.is_set():
        assert len(Treebank.open(path)) in (2, 50)
    thread.join()


@pytest.mark.parametrize("parameter", ["horizontal", "vertical"])
def test_a_memory_of_any_size_binarizes(parameter):
    huge = TreeBinarizer(**{parameter: 2**70}).fit_transform(TREES)
    assert huge == TreeBinarizer(**{parameter: 1000}).fit_transform(TREES)
