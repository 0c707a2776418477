"""Compilation says that it happens, and survives a full disk."""

import os
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest

from lpcfg_sk._kernels import _compilation, kernel_folder
from lpcfg_sk._kernels._compilation import VARIABLE, CompilationListener

PROGRAM = """
import numba, lpcfg_sk._kernels
from lpcfg_sk._kernels import _compilation
_compilation._PATIENCE = {patience}
def kernel(x):
    return x + 1
kernel.__module__ = {module!r}
numba.njit(kernel)(1)
"""


def stderr_of(patience=0.0, module="lpcfg_sk._kernels._test", **environment):
    program = PROGRAM.format(patience=patience, module=module)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.slow_without_jit
@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)
def test_compilation_is_announced():
    assert stderr_of().startswith("lpcfg_sk: compiling kernels")
    assert stderr_of(**{VARIABLE: "0"}) == ""
    assert stderr_of(patience=60.0) == ""
    assert stderr_of(module="elsewhere") == ""


def event(cache=None, module="lpcfg_sk._kernels._test"):
    cache = cache or SimpleNamespace(cache_path=None)
    kernel = SimpleNamespace(__module__=module)
    return SimpleNamespace(
        data={"dispatcher": SimpleNamespace(py_func=kernel, _cache=cache)}
    )


def test_progress_is_counted_by_outer_kernels(capsys, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    clock = iter([0.0, 4.0, 4.0, 4.0, 14.0, 14.0])
    monkeypatch.setattr(_compilation.time, "monotonic", lambda: next(clock))
    listener = CompilationListener()
    for step in ("start", "start", "end", "end", "start", "end"):
        getattr(listener, f"on_{step}")(event())
    listener.on_start(event(module="numpy"))
    listener.on_end(event(module="numpy"))
    first, second = capsys.readouterr().err.splitlines()
    assert "compiling kernels" in first
    assert "compiled 3 kernels in 14 s" in second


def test_tests_of_others_stay_quiet(capsys, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(_compilation, "_PATIENCE", -1.0)
    listener = CompilationListener()
    listener.on_start(event())
    listener.on_end(event())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [28, 30, 122])
def test_kernels_are_not_stored_where_there_is_no_room(number, monkeypatch, tmp_path):
    def full(**options):
        raise OSError(number, "no room")

    disabled = []
    cache = SimpleNamespace(
        cache_path=str(tmp_path / "cache"), disable=lambda: disabled.append(True)
    )
    CompilationListener().on_start(event(cache))
    assert disabled == []
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    CompilationListener().on_start(event(cache))
    assert disabled == [True]


def test_the_folder_is_that_of_numba():
    assert kernel_folder().startswith(os.environ["NUMBA_CACHE_DIR"])
