"""Files that are not what they should be, and writes that do not come to an end."""

import io
import os
import signal
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

from lpcfg_sk import LPCFG, WTA, TreeBinarizer, load, save
from lpcfg_sk._files import load_arrays, save_arrays
from tests.persistence import models

KINDS = ("MarginEMPCFG", "KneserNeyLM", "PCFG", "LPCFG", "WTA")


@pytest.fixture(scope="module", params=KINDS)
def stored(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "model"
    models.write(request.param, models.make(request.param), path)
    return request.param, path.read_bytes()


def assert_refused(name, path):
    with pytest.raises(ValueError) as caught:
        models.read(name, path)
    assert str(path) in str(caught.value)


def test_files_cut_short_anywhere_are_refused(stored, tmp_path, seed):
    name, content = stored
    places = np.random.default_rng(seed).integers(len(content), size=80)
    for cut in {*range(40), *places.tolist(), *range(len(content) - 40, len(content))}:
        path = tmp_path / "cut"
        path.write_bytes(content[:cut])
        assert_refused(name, path)


def test_flipped_bits_are_found_or_harmless(stored, tmp_path, seed):
    name, content = stored
    path = tmp_path / "flipped"
    path.write_bytes(content)
    expected = models.answers(name, models.read(name, path))
    rng = np.random.default_rng(seed)
    harmless = 0
    for place in rng.integers(len(content), size=150).tolist():
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            value = models.read(name, path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            # Dates and the like, which nobody reads.
            harmless += 1
            if harmless <= 5:
                assert models.answers(name, value) == expected
    assert harmless < 75


def test_more_bytes_before_or_after_do_no_harm(stored, tmp_path):
    name, content = stored
    path = tmp_path / "longer"
    path.write_bytes(content)
    expected = models.answers(name, models.read(name, path))
    for changed in (content + b"x", b"x" + content, content + content):
        path.write_bytes(changed)
        try:
            value = models.read(name, path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert models.answers(name, value) == expected


def _archive(path, arrays, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)


def _npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_compressed_archives_are_refused_before_they_unfold(tmp_path):
    path = tmp_path / "bomb"
    bomb = _npy(np.zeros(2**24))
    _archive(path, {"header.npy": bomb}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**18
    for read in (load, LPCFG.load, WTA.load):
        with pytest.raises(ValueError, match="compressed"):
            read(path)


def test_members_that_share_bytes_are_refused(tmp_path):
    path = tmp_path / "overlap"
    _archive(path, {f"a{i}.npy": _npy(np.zeros(1000)) for i in range(9)})
    content = path.read_bytes()
    # All entries of the directory point at the first member.
    start = content.index(b"PK\x01\x02")
    changed = bytearray(content[: content.index(b"PK\x03\x04", 10)])
    directory = bytearray(content[start:])
    place = 0
    while (place := directory.find(b"PK\x01\x02", place)) >= 0:
        directory[place + 42 : place + 46] = bytes(4)
        place += 4
    end = directory.rindex(b"PK\x05\x06")
    directory[end + 16 : end + 20] = len(changed).to_bytes(4, "little")
    path.write_bytes(changed + directory)
    with pytest.raises(ValueError, match=r"larger than the file|damaged"):
        load(path)


def _npy_with_header(header):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2**99,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,), }",
        "[" * 100,
        "__import__('os').getcwd()",
    ],
)
def test_headers_that_lie_are_refused_before_memory_is_taken(header, tmp_path):
    path = tmp_path / "liar"
    _archive(path, {"header.npy": _npy_with_header(header)})
    with pytest.raises(ValueError, match="not a readable lpcfg_sk file"):
        load(path)


def test_deep_data_is_refused(tmp_path):
    deep = []
    for _ in range(500):
        deep = [deep]
    save_arrays(tmp_path / "deep", "estimator", 2, deep, {})
    with pytest.raises(ValueError, match=r"no estimator|describe an estimator"):
        load(tmp_path / "deep")
    text = b'{"format": "lpcfg_sk", "meta": ' + b"[" * 10**6
    array = np.frombuffer(text, dtype=np.uint8)
    _archive(tmp_path / "deeper", {"header.npy": _npy(array)})
    with pytest.raises(ValueError, match="header"):
        load(tmp_path / "deeper")


def test_other_members_are_refused(tmp_path):
    path = tmp_path / "more"
    _archive(path, {"../../evil": _npy(np.zeros(1))})
    with pytest.raises(ValueError, match="other files"):
        load(path)
    assert os.listdir(tmp_path) == ["more"]


def test_damaged_automata_are_refused(tmp_path):
    path = tmp_path / "wta"
    models.write("WTA", models.make("WTA"), path)
    _, meta, arrays = load_arrays(path, "WTA", 1)
    sparse = next(name for name in arrays if name.endswith("_i"))
    for change in (
        {sparse: arrays[sparse] + 1000},
        {sparse: arrays[sparse][:-1]},
        {"alpha": arrays["alpha"] * np.nan},
        {"alpha": arrays["alpha"][None]},
        {"omega": arrays["omega"][1:]},
    ):
        save_arrays(path, "WTA", 1, meta, {**arrays, **change})
        with pytest.raises(ValueError, match="valid automaton"):
            WTA.load(path)
    for change in (
        {"words": meta["words"][:1] * len(meta["words"])},
        {"words": [3] * len(meta["words"])},
        {"kinds": []},
        {"kinds": ["cp"]},
        {"labels": ["X", "Y"]},
        {"states": ["one"]},
        {"unknown_word": "nobody"},
        {"unknown_word": []},
    ):
        save_arrays(path, "WTA", 1, {**meta, **change}, arrays)
        with pytest.raises(ValueError, match="valid automaton"):
            WTA.load(path)


_KILLED = """
import os, signal, sys
import lpcfg_sk._files as persistence
from lpcfg_sk import TreeBinarizer, save
step, path = sys.argv[1:]
die = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
if step == "half":
    import zipfile
    zipfile.ZipFile.close = die
elif step == "flush":
    os.fsync = die
else:
    os.replace = die
save(TreeBinarizer(), path)
"""


@pytest.mark.parametrize("step", ["half", "flush", "move"])
def test_a_killed_save_leaves_the_old_file(step, tmp_path):
    path = tmp_path / "model"
    save(TreeBinarizer(direction="left"), path)
    old = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", _KILLED, step, str(path)])
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == old
    assert load(path).direction == "left"


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(TreeBinarizer(direction="left"), path)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        save(TreeBinarizer(), path)
    assert load(path).direction == "left"
    assert os.listdir(tmp_path) == ["model"]


def test_checksums_are_checked(tmp_path):
    path = tmp_path / "model"
    models.write("LPCFG", models.make("LPCFG"), path)
    content = path.read_bytes()
    value = models.GRAMMAR.arrays.binary[0].tobytes()
    place = content.index(value)
    changed = content[:place] + bytes(8) + content[place + 8 :]
    assert zlib.crc32(changed) != zlib.crc32(content)
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="CRC"):
        LPCFG.load(path)
