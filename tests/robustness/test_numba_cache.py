"""A place for numba's cache that cannot be written to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lpcfg_sk

_PROGRAM = """
import sys
import lpcfg_sk, numba, numpy as np
from lpcfg_sk._kernels._columns import first_other_head
assert lpcfg_sk.__file__.startswith(sys.argv[1]), lpcfg_sk.__file__
found = first_other_head(np.array([-1, 0, 0]), np.array([1, 0, 1]))
print(found.tolist()[1], numba.config.CACHE_DIR)
"""


def _run(package_parent, environment):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(package_parent)],
        env={
            **os.environ,
            "PYTHONPATH": str(package_parent),
            "NUMBA_DISABLE_JIT": "0",
            **environment,
        },
        cwd=package_parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer, folder = done.stdout.split(maxsplit=1)
    assert answer == "1"
    return Path(folder.strip())


def _copy_of_package(tmp_path):
    """A package whose folders for caches are files, which even root cannot use."""
    source = Path(lpcfg_sk.__file__).parent
    copy = tmp_path / "site" / "lpcfg_sk"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in copy.rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    return copy.parent


def test_without_any_folder_kernels_live_as_long_as_the_process(tmp_path):
    parent = _copy_of_package(tmp_path)
    nowhere = str(tmp_path / "home" / "cache")
    folder = _run(
        parent,
        {"NUMBA_CACHE_DIR": nowhere, "HOME": nowhere, "XDG_CACHE_HOME": nowhere},
    )
    assert folder.name.startswith("lpcfg_sk-numba-")
    assert not folder.exists()


def test_a_cache_folder_that_cannot_be_used_is_passed_over(tmp_path):
    parent = _copy_of_package(tmp_path)
    nowhere = str(tmp_path / "home" / "cache")
    user = tmp_path / "user"
    user.mkdir()
    folder = _run(
        parent,
        {"NUMBA_CACHE_DIR": nowhere, "HOME": str(user), "XDG_CACHE_HOME": str(user)},
    )
    assert str(folder) == nowhere
    assert list(user.rglob("*.nbi"))


def test_two_processes_fill_one_cache(tmp_path):
    parent = str(Path(lpcfg_sk.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": parent,
        "NUMBA_DISABLE_JIT": "0",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", _PROGRAM, parent]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, env=environment, **pipes) for _ in range(2)]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert out.startswith("1 ")
    # A third one reads what they wrote.
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == out


_FULL = """
import os, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
from lpcfg_sk._kernels._columns import first_other_head
import numpy as np
print(first_other_head(np.array([-1, 0, 0]), np.array([1, 0, 1])).tolist()[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
def test_a_full_disk_under_the_cache_does_not_stop_a_kernel(tmp_path):
    environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", _FULL],
        env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=Path(lpcfg_sk.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert not list(tmp_path.rglob("*.nbi"))
