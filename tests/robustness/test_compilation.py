"""Compilation says that it happens, and survives a full disk."""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from types import SimpleNamespace

import pytest
from numba import types

from lpcfg_sk._kernels import _compilation, kernel_folder
from lpcfg_sk._kernels._compilation import (
    VARIABLE,
    CompilationListener,
    InterruptionListener,
)

needs_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)

PROGRAM = """
import numba, lpcfg_sk._kernels
from lpcfg_sk._kernels import _compilation
_compilation._PATIENCE = {patience}
def kernel(x):
    return x + 1
kernel.__module__ = {module!r}
numba.njit(kernel)(1)
"""


#: The ten lines of the README, followed by what was compiled or loaded for them.
TEN_LINES = """
import json, os, sys
from numba.core import event
from numba.core.dispatcher import Dispatcher
from lpcfg_sk import SpectralLPCFG, make_parser, read_treebank
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.metrics import parseval_summary
from tests.robustness.test_compilation import plain

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("lpcfg_sk."):
            compiled.append((function.__name__, plain(event.data["args"])))

event.register("numba:compile", Listener())
load_toy(60).write(sys.argv[1])
train = read_treebank(sys.argv[1])
parser = make_parser(SpectralLPCFG(m=16), horizontal=1)
parser.fit(train)
parser.predict(["the cat sees a dog ."])
parseval_summary(train[:5], parser.predict(train[:5]))
called = [
    (name, plain(signature))
    for key, module in sorted(sys.modules.items())
    if key.startswith("lpcfg_sk._kernels.")
    for name, kernel in vars(module).items()
    if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == key
    for signature in kernel.signatures
]
print(json.dumps([called, compiled]))
"""

#: Small helpers that are compiled for arrays of several types or for a constant, too.
SEVERAL = {"_add_rows", "_add_word", "hash_step", "is_space", "lengthened"} | {
    "span_index"
}
#: Kernels and helpers of this package that the ten lines compile.
MOST_COMPILED = 100


def plain(kind):
    """Write a type without layout, mutability and the size of its numbers."""
    if isinstance(kind, types.Omitted):
        return "number"
    if isinstance(kind, types.Optional):
        return plain(kind.type)
    if isinstance(kind, types.Array):
        return f"array{kind.ndim}"
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        return f"{kind.instance_class.__name__}{plain(tuple(kind))}"
    if isinstance(kind, tuple | types.BaseTuple):
        return f"({', '.join(plain(part) for part in kind)})"
    return "number" if isinstance(kind, types.Number | types.Boolean) else str(kind)


def ten_lines(folder, **environment):
    """Return the kernels that the ten lines called, and those that they compiled."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TEN_LINES, str(folder / "toy.mrg")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def repeated(signatures):
    """Return the kernels with several signatures that are the same when plain."""
    found = Counter((name, signature) for name, signature in signatures)
    return {name for (name, _), count in found.items() if count > 1}


@pytest.fixture(autouse=True)
def _collect_garbage():
    """Wake the collector after a test that begins a compilation and never ends it."""
    yield
    gc.enable()


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


@needs_compiler
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


def test_time_is_counted_by_outer_kernels_and_progress_reported_by_all(
    capsys, monkeypatch
):
    monkeypatch.setenv(VARIABLE, "1")
    clock = iter([0.0, 4.0, 4.0, 12.0, 12.0, 14.0, 20.0, 20.0])
    monkeypatch.setattr(_compilation.time, "monotonic", lambda: next(clock))
    listener = CompilationListener()
    for step in ("start", "start", "end"):
        getattr(listener, f"on_{step}")(event())
    assert "compiling kernels" in capsys.readouterr().err
    listener.on_end(event())
    assert "compiled 2 kernels in 12 s" in capsys.readouterr().err
    listener.on_start(event())
    listener.on_end(event())
    assert "compiled 3 kernels in 18 s" in capsys.readouterr().err
    listener.on_start(event(module="numpy"))
    listener.on_end(event(module="numpy"))
    assert capsys.readouterr().err == ""


def test_functions_of_others_are_not_counted():
    listener = CompilationListener()
    for module in ("numpy", None):
        listener.on_start(event(module=module))
        listener.on_end(event(module=module))
    assert listener.n_kernels == 0


@pytest.fixture
def _ctrl_c():
    """Heed Ctrl-C, which Python ignores in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_waits_for_the_end_of_a_step_of_the_compiler():
    listener = InterruptionListener()
    listener.on_start(None)
    signal.raise_signal(signal.SIGINT)
    # The next step does not begin.
    with pytest.raises(KeyboardInterrupt):
        listener.on_start(None)
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        listener.on_end(None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


@needs_compiler
def test_the_folder_is_that_of_numba():
    assert kernel_folder().startswith(os.environ["NUMBA_CACHE_DIR"])


def test_the_garbage_collector_rests_while_kernels_are_compiled(monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    listener = CompilationListener()
    assert gc.isenabled()
    for step, collecting in (
        ("start", False),
        ("start", False),
        ("end", False),
        ("end", True),
    ):
        getattr(listener, f"on_{step}")(event())
        assert gc.isenabled() == collecting
    gc.disable()
    try:
        listener.on_start(event())
        listener.on_end(event())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_plain_types_keep_what_a_kernel_has_to_know():
    readonly = types.Array(types.int32, 1, "A", readonly=True)
    assert plain(readonly) == plain(types.int64[::1]) == "array1"
    assert plain(types.float64[:, :]) == "array2"
    assert plain((readonly, types.uint8)) == "(array1, number)"
    assert plain(types.Optional(types.boolean)) == "number"
    assert plain(types.none) == "none"


@needs_compiler
def test_no_kernel_is_called_with_two_layouts_or_dtypes(tmp_path):
    called, _ = ten_lines(tmp_path)
    assert {"scan_trees", "rule_sums", "connect_items"} <= {name for name, _ in called}
    assert repeated(called) <= SEVERAL


@needs_compiler
@pytest.mark.slow
def test_few_kernels_are_compiled_for_the_ten_lines(tmp_path):
    _, compiled = ten_lines(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert repeated(compiled) <= SEVERAL
    assert 50 < len(compiled) <= MOST_COMPILED
