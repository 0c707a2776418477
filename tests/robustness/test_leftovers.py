"""What killed processes leave behind, full disks, and several processes at one file."""

import os
import signal
import subprocess
import sys

import pytest

from lpcfg_sk import Treebank, TreeBinarizer, load, save
from lpcfg_sk._parallel import Spool
from tests.conftest import ROOT
from tests.persistence import models

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and file locks")

_HOLDING = """
import sys, time
from lpcfg_sk._files import written_in_one_step
from lpcfg_sk._parallel import Spool
folder = sys.argv[1]
with Spool(on_disk=True, folder=folder) as spool, written_in_one_step(
    f"{folder}/model"
) as file:
    spool.keep([1, 2])
    file.write(b"half")
    print("ready", flush=True)
    time.sleep(600)
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def make_old(folder):
    for name in os.listdir(folder):
        os.utime(folder / name, (0, 0))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_leaves_is_removed_by_the_next(number, tmp_path):
    process = start(_HOLDING, tmp_path)
    assert process.stdout.readline() == "ready\n"
    assert len(os.listdir(tmp_path)) == 2
    make_old(tmp_path)
    # What a live process uses stays.
    with Spool(on_disk=True, folder=tmp_path):
        save(TreeBinarizer(), tmp_path / "model")
        assert len(os.listdir(tmp_path)) == 4
    process.send_signal(number)
    process.communicate()
    assert len(os.listdir(tmp_path)) == 3
    make_old(tmp_path)
    with Spool(on_disk=True, folder=tmp_path) as spool:
        assert os.path.isdir(spool.path)
        save(TreeBinarizer(), tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


def test_what_is_new_or_of_others_stays(tmp_path):
    with Spool(on_disk=True, folder=tmp_path) as spool:
        begin = os.path.basename(spool.path)[: len("lpcfg_sk-01234567-")]
    (tmp_path / f"{begin}new").mkdir()
    (tmp_path / "lpcfg_sk-of-another-machine").mkdir()
    os.utime(tmp_path / "lpcfg_sk-of-another-machine", (0, 0))
    (tmp_path / f"{begin}link").symlink_to(tmp_path / "target")
    with Spool(on_disk=True, folder=tmp_path):
        assert len(os.listdir(tmp_path)) == 4
    assert len(os.listdir(tmp_path)) == 3


# Writing beyond the limit fails as on a full disk, with another number.
_FULL = """
import resource, sys
from lpcfg_sk import ShardedTreebank, SpectralLPCFG, make_parser, save, load
from lpcfg_sk.language_model import write_arpa
from tests.persistence import models
task, folder = sys.argv[1:]
model, trees = models.make("Pipeline"), models.TRAIN
small = models.make("TreeBinarizer")
for i in range(4):
    trees[7 * i : 7 * i + 7].save(f"{folder}/shards/{i}.tb")
learner = make_parser(SpectralLPCFG(1))
language_model = models.make("KneserNeyLM")
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
try:
    if task == "model":
        save(model, f"{folder}/model")
    elif task == "treebank":
        trees.save(f"{folder}/model")
    elif task == "text":
        trees.write(f"{folder}/model")
    elif task == "arpa":
        write_arpa(language_model, f"{folder}/model")
    else:
        learner.fit(ShardedTreebank(f"{folder}/shards"))
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("task", ["model", "treebank", "text", "arpa", "shards"])
def test_a_full_disk_is_one_clear_error(task, tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    for folder in (temporary, tmp_path / "shards"):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    # Kernels that are compiled here could not be stored either.
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    (tmp_path / "model").write_text("old")
    out, _ = start(_FULL, task, tmp_path).communicate()
    (line,) = out.splitlines()
    assert "File too large" in line
    assert str(temporary if task == "shards" else tmp_path / "model") in line
    assert ("TMPDIR" if task == "shards" else "the old file") in line
    assert (tmp_path / "model").read_text() == "old"
    assert os.listdir(temporary) == []
    assert sorted(os.listdir(tmp_path)) == ["model", "shards", "tmp"]


# Until its input is closed.
_SAVING = """
import select, sys
from lpcfg_sk import Treebank, TreeBinarizer, save
path, direction, kind = sys.argv[1:]
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    if kind == "model":
        save(TreeBinarizer(direction=direction), path)
    else:
        Treebank(["(S (A a) (B b))"] * (1 if direction == "left" else 500)).save(path)
"""


@pytest.mark.parametrize("kind", ["model", "treebank"])
def test_two_processes_that_save_and_one_that_reads_see_whole_files(kind, tmp_path):
    path = tmp_path / "file"
    if kind == "model":
        first, saved = "head", {"left", "right"}
        save(TreeBinarizer(direction="head"), path)
    else:
        first, saved = len(models.TEST), {1, 500}
        models.TEST.save(path)
    processes = [start(_SAVING, path, way, kind) for way in ("left", "right")]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    seen = []
    while len(seen) < 100 or len(set(seen) & saved) < 2:
        assert [process.poll() for process in processes] == [None, None]
        seen.append(load(path).direction if kind == "model" else _length(path))
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert set(seen) <= {first, *saved}
    assert os.listdir(tmp_path) == ["file"]


def _length(path):
    return len(Treebank.open(path))
