import json
import os

import numpy as np
import pytest

from lpcfg_sk import LPCFG
from lpcfg_sk._files import load_arrays, save_arrays
from tests.reference import lpcfg as reference


@pytest.fixture
def grammar(seed):
    return reference.random_grammar(np.random.default_rng(seed))


@pytest.fixture
def path(grammar, tmp_path):
    grammar.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_grammar_comes_back(grammar, path):
    assert LPCFG.load(path) == grammar
    assert os.listdir(path.parent) == ["model"]


def test_any_symbol_can_be_saved(tmp_path):
    words = ["naïve", "日本語", "a\nb", '"', "\ud800", ""]
    grammar = LPCFG.from_parameters(
        lexical={("A", x): [1.0] for x in words}, root={"A": [1.0]}, unknown_word=""
    )
    grammar.save(tmp_path / "model")
    again = LPCFG.load(tmp_path / "model")
    assert again == grammar
    assert again.unknown_word == ""


def test_nothing_is_unpickled(path):
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype.kind in "iuf" for name in archive.files)
    with pytest.raises(TypeError, match="Python objects"):
        save_arrays(path, "LPCFG", 1, {}, {"x": np.array([None])})


@pytest.mark.parametrize("part", [0, 1, 10, 100, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_refused(path, part):
    content = path.read_bytes()
    keep = int(part * len(content)) if isinstance(part, float) else part
    path.write_bytes(content[:keep])
    with pytest.raises(ValueError, match="model"):
        LPCFG.load(path)


def test_a_flipped_byte_is_found_or_harmless(grammar, path):
    content = bytearray(path.read_bytes())
    found = 0
    for at in range(0, len(content), max(len(content) // 60, 1)):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert LPCFG.load(path) == grammar
        except ValueError as error:
            assert str(path) in str(error)
            found += 1
    assert found > 20


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign"
    path.write_text("(S (NP dogs) (VP bark))")
    with pytest.raises(ValueError, match="not a readable lpcfg_sk file"):
        LPCFG.load(path)
    with open(path, "wb") as file:
        np.savez(file, x=np.arange(3))
    with pytest.raises(ValueError, match="not written by lpcfg_sk"):
        LPCFG.load(path)
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(ValueError, match="array"):
        LPCFG.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        LPCFG.load(tmp_path / "missing")


def test_other_kinds_and_newer_versions_are_refused(tmp_path):
    path = tmp_path / "other"
    save_arrays(path, "WTA", 1, {}, {})
    with pytest.raises(ValueError, match="holds a WTA; expected: LPCFG"):
        LPCFG.load(path)
    save_arrays(path, "LPCFG", 99, {}, {})
    with pytest.raises(ValueError, match="version 99"):
        LPCFG.load(path)


def test_invalid_content_is_refused(grammar, path):
    _, meta, arrays = load_arrays(path, "LPCFG", 1)
    for change in (
        {"binary": arrays["binary"] * np.nan},
        {"rule_parent": arrays["rule_parent"] + 1000},
        {"n_states": arrays["n_states"] + 1},
    ):
        save_arrays(path, "LPCFG", 1, meta, {**arrays, **change})
        with pytest.raises(ValueError, match="valid grammar"):
            LPCFG.load(path)
    del arrays["root"]
    save_arrays(path, "LPCFG", 1, meta, arrays)
    with pytest.raises(ValueError, match="valid grammar"):
        LPCFG.load(path)
    save_arrays(path, "LPCFG", 1, {}, grammar.arrays._asdict())
    with pytest.raises(ValueError, match="valid grammar"):
        LPCFG.load(path)


def test_a_header_that_disagrees_with_the_arrays_is_refused(path):
    with np.load(path) as archive:
        stored = dict(archive)
    del stored["root"]
    with open(path, "wb") as file:
        np.savez(file, **stored)
    with pytest.raises(ValueError, match="damaged: expected the arrays"):
        LPCFG.load(path)
    stored["header"] = np.frombuffer(json.dumps([1]).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **stored)
    with pytest.raises(ValueError, match="header"):
        LPCFG.load(path)


def test_a_failed_write_leaves_the_old_file(grammar, path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        grammar.conjugate({}).save(path)
    monkeypatch.undo()
    assert LPCFG.load(path) == grammar
    assert os.listdir(path.parent) == ["model"]
