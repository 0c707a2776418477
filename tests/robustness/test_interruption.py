"""Ctrl-C in the middle of a fit."""

import inspect
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from numba.core import types
from numba.core.registry import CPUDispatcher
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from lpcfg_sk import save
from lpcfg_sk._interrupts import in_background
from tests.conftest import ROOT
from tests.persistence import models

ESTIMATORS = [name for name in models.MAKERS if name not in ("LPCFG", "WTA")]


class _Interrupter:
    """Raises KeyboardInterrupt at the n-th call of a Python function."""

    def __init__(self, n):
        self.n = n
        self.calls = 0

    def __call__(self, frame, event, arg):
        code = frame.f_code
        # What is raised while a generator is thrown away is lost.
        if event != "call" or code.co_flags & inspect.CO_GENERATOR:
            return
        if "lpcfg_sk" not in code.co_filename:
            return
        self.calls += 1
        if self.calls == self.n:
            sys.setprofile(None)
            raise KeyboardInterrupt


def _calls_of_fit(model, X):
    counter = _Interrupter(-1)
    sys.setprofile(counter)
    try:
        model.fit(*X)
    finally:
        sys.setprofile(None)
    return counter.calls


def _data(name):
    """Other data than the models were fitted to."""
    if name == "MarginEMPCFG":
        return (models.STRINGS * 2,)
    if name.endswith("LM"):
        return (models.SENTENCES[:20],)
    if name == "SVTAMinimizer":
        return ()
    if name in ("EMLPCFG", "SpectralLPCFG", "PivotLPCFG"):
        return (models.prepared(models.TRAIN)[:20],)
    return (models.TRAIN[:20],)


def _fingerprint(model):
    return {
        k: joblib.hash(v)
        for k, v in vars(model).items()
        if k.endswith("_") or k.startswith("_")
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_interrupted_fit_leaves_a_whole_model_or_none(name):
    model = models.make(name)
    if isinstance(model, Pipeline):
        pytest.skip("the steps of a pipeline are fitted one by one, in place")
    second = _data(name)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    fresh = clone(model)
    # The first fit fills caches of the treebank, which later ones find filled.
    expected = models.answers(name, clone(model).fit(*second))
    total = _calls_of_fit(clone(model), second)
    before = _fingerprint(model)
    for part in (0.05, 0.3, 0.6, 0.9):
        for victim, state in ((model, before), (fresh, {})):
            sys.setprofile(_Interrupter(max(1, int(part * total))))
            try:
                with pytest.raises(KeyboardInterrupt):
                    victim.fit(*second)
            finally:
                sys.setprofile(None)
            if name == "EMLPCFG":
                # Its promise is a better one: the model of the last iteration.
                assert _is_whole(name, victim)
                continue
            assert _fingerprint(victim) == state
    # Both can be fitted as if nothing had happened.
    assert models.answers(name, model.fit(*second)) == expected
    assert models.answers(name, fresh.fit(*second)) == expected


def _is_whole(name, model):
    try:
        return bool(models.answers(name, model))
    except NotFittedError:
        return True


@pytest.mark.filterwarnings("ignore")
def test_a_failed_fit_leaves_the_model_as_it_was():
    model = models.make("KneserNeyLM")
    before = _fingerprint(model)
    with pytest.raises(ValueError, match="whole numbers"):
        model.fit(models.SENTENCES, sample_weight=[0.5] * len(models.SENTENCES))
    assert _fingerprint(model) == before


# Python takes no notice of Ctrl-C where its parent does not, as in a background job.
# An exception in a finalizer is lost, so that such a Ctrl-C is sent once more; one that
# is lost elsewhere has a message.
_BEGIN = """
import faulthandler, os, signal, sys, threading, warnings
if hasattr(signal, "SIGUSR1"):
    faulthandler.register(signal.SIGUSR1)
def send_again(lost):
    if lost.exc_type is KeyboardInterrupt and lost.err_msg is None:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)
sys.unraisablehook = send_again
signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
"""

_LONG_FIT = """
from lpcfg_sk import EMLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
X = load_toy(200)
learner = EMLPCFG(2, max_iter=1, tol=None, validation_fraction=None, n_jobs=2)
make_parser(learner).fit(X[:20]).predict(X[:2])
learner.set_params(max_iter=10**9)
parser = make_parser(learner)
print("fitting", flush=True)
try:
    parser.fit(X)
except KeyboardInterrupt:
    trees = parser.predict(X[:2])
    print("interrupted", len(trees), flush=True)
"""


def _wait_for_work(process, seconds):
    """Wait until a process has worked for some seconds, however busy the machine is."""
    if not os.path.isdir("/proc/self"):
        time.sleep(seconds)
        return

    def worked():
        text = Path(f"/proc/{process.pid}/stat").read_text()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    begin = worked()
    while process.poll() is None and worked() < begin + seconds:
        time.sleep(0.01)


def _processes_of_group(group):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                state, _, its_group = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(int(pid))
    return found


@pytest.mark.slow_without_jit
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_ctrl_c_leaves_a_model_and_no_processes():
    process = subprocess.Popen(
        [sys.executable, "-c", _BEGIN + _LONG_FIT],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == "fitting\n"
        _wait_for_work(process, 1.0)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert out == "interrupted 2\n"
    assert process.returncode == 0
    assert _processes_of_group(process.pid) == []


# Prints what the signal became; the work takes longer than any delay.
_ENDLESS = """
from sklearn.base import clone
from lpcfg_sk import EMLPCFG, SpectralLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
X = load_toy(80)
em = EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None)
parser = make_parser(em).fit(X)
long = [X[0].words() * 12]
def work():
    make_parser(clone(em)).fit(X)
    make_parser(SpectralLPCFG(2)).fit(X)
    parser.predict(X[:40])
    parser.predict(long)
    parser.marginals(X[:5])
work()
expected = parser.predict(X[:2])
try:
    print("ready", flush=True)
    while True:
        work()
except BaseException as error:
    same = parser.predict(X[:2]) == expected
    print(type(error).__name__, "same" if same else "other", flush=True)
"""


# A process that is the first to use a kernel says so on standard error.
_QUIET = {**os.environ, "LPCFG_SK_COMPILE_MESSAGES": "0"}


def _interrupt(program, delay, arguments=()):
    """Send Ctrl-C to a process after some seconds of work since its first line."""
    command = [sys.executable, "-c", _BEGIN + program, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, cwd=ROOT, env=_QUIET, **pipes) as process,
        ThreadPoolExecutor(2) as threads,
    ):
        process.stdout.readline()
        # A full pipe would end the work.
        rest = [threads.submit(p.read) for p in (process.stdout, process.stderr)]
        try:
            _wait_for_work(process, delay)
            process.send_signal(signal.SIGINT)
            try:
                status = process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                # The failing test shows where all threads were.
                process.send_signal(signal.SIGUSR1)
                time.sleep(1.0)
                process.kill()
                status = process.wait()
            return status, *(pipe.result() for pipe in rest)
        finally:
            process.kill()


# Ctrl-C again and again in one process, at moments that the seed chooses.
_MANY = """
import random, time
from lpcfg_sk import TreeBinarizer, Treebank
from lpcfg_sk.datasets import load_toy, make_lpcfg
X, grammar = load_toy(30), make_lpcfg(2, 3, 12, m=2, random_state=0)
binarizer = TreeBinarizer().fit(X)
def work():
    binarizer.inverse_transform(binarizer.transform(X))
    grammar.log_prob(grammar.sample(5, 0))
    Treebank(["(S (A a) (B b))"])
work()
random.seed(int(sys.argv[1]))
def interrupt():
    time.sleep(random.uniform(0.001, 0.01))
    os.kill(os.getpid(), signal.SIGINT)
for _ in range(int(sys.argv[2])):
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        while True:
            work()
    except KeyboardInterrupt:
        pass
    thread.join()
print("interrupted")
"""


@pytest.mark.slow_without_jit
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("n", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_many_interruptions_are_keyboard_interrupts(n, seed):
    command = [sys.executable, "-c", _BEGIN + _MANY, str(seed), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_QUIET)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


# LLVM calls functions of Python at the end of a step, where Ctrl-C was lost once.
_COMPILING = """
import random, time
from lpcfg_sk._kernels._shared import KERNEL
from numba import njit
def kernel(number):
    names = {}
    exec(f"def f(x):\\n for i in x:\\n  x[0] += {number}\\n return x.sum()", names)
    return njit(names["f"])
import numpy as np
x = np.ones(3)
kernel(0)(x)
begin = time.perf_counter()
kernel(1)(x)
seconds = time.perf_counter() - begin
random.seed(0)
found = []
for number in range(2, 17):
    delay = random.uniform(0.0, seconds)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        kernel(number)(x)
        timer.join()
        time.sleep(1.0)
        found.append("lost")
    except KeyboardInterrupt:
        found.append("interrupted")
    timer.join()
print(*set(found))
"""


@pytest.mark.slow_without_jit
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_while_a_kernel_is_compiled_is_not_lost():
    command = [sys.executable, "-c", _BEGIN + _COMPILING]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_QUIET)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


_LONG_SENTENCE = """
from lpcfg_sk import PCFG, make_parser
from lpcfg_sk.datasets import load_toy
X = load_toy(60)
words = [word for tree in X for word in tree.words()] * 2
parser = make_parser(PCFG(prune=None, max_memory=2**40)).fit(X)
short = parser.predict([words[:20]])
try:
    print("ready", flush=True)
    parser.{method}([words[:500]])
except KeyboardInterrupt:
    # The thread of the chart has not ended.
    print(threading.active_count() > 1, parser.predict([words[:20]]) == short)
"""


@pytest.mark.slow_without_jit
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("method", ["predict", "sentence_log_prob"])
def test_ctrl_c_does_not_wait_for_a_long_sentence(method):
    # To the end it takes minutes.
    program = _LONG_SENTENCE.replace("{method}", method)
    assert _interrupt(program, 1.0) == (0, "True True\n", "")


def test_what_fails_in_the_background_fails_here():
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        in_background(lambda: np.full(1, 1e300) * 1e300)


def _holds_arrays(numba_type):
    if isinstance(numba_type, types.BaseTuple):
        return any(map(_holds_arrays, numba_type))
    return isinstance(numba_type, types.Array)


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore")
def test_kernels_that_return_arrays_hold_ctrl_c_back():
    for name in ("VotingParser", "SpectralLPCFG", "MarginEMPCFG", "SVTAMinimizer"):
        models.answers(name, models.make(name))
    sources = [
        path.read_text()
        for path in (ROOT / "lpcfg_sk").rglob("*.py")
        if path.parent.name != "_kernels"
    ]
    called = set(re.findall(r"\w+", " ".join(sources)))
    kernels = [
        kernel
        for name, module in sys.modules.items()
        if name.startswith("lpcfg_sk._kernels.")
        for kernel in vars(module).values()
        if isinstance(kernel, CPUDispatcher) and kernel.__name__ in called
    ]
    returning = {
        kernel
        for kernel in kernels
        if any(
            _holds_arrays(o.signature.return_type) for o in kernel.overloads.values()
        )
    }
    assert len(returning) > 10 or os.environ.get("NUMBA_DISABLE_JIT") == "1"
    assert {k.__name__ for k in returning if type(k) is CPUDispatcher} == set()


def _moments(n):
    return [random.Random(number).uniform(0.0, 2.0) for number in range(n)]


_FEW_OR_MANY = pytest.mark.parametrize(
    "delay",
    [
        pytest.param(delay, marks=[pytest.mark.slow] if number > 1 else [])
        for number, delay in enumerate(_moments(30))
    ],
)


@pytest.mark.slow_without_jit
@pytest.mark.skipif(os.name != "posix", reason="signals")
@_FEW_OR_MANY
def test_ctrl_c_at_any_moment_is_a_keyboard_interrupt(delay):
    status, out, err = _interrupt(_ENDLESS, delay)
    assert (status, out, err) == (0, "KeyboardInterrupt same\n", "")


_COMMAND_LINE = """
import runpy
runpy.run_module("lpcfg_sk", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow_without_jit
@pytest.mark.skipif(os.name != "posix", reason="signals")
@_FEW_OR_MANY
def test_ctrl_c_at_any_moment_ends_the_command_line_with_130(delay, tmp_path):
    sentences = tmp_path / "sentences"
    parser = models.make("Pipeline")
    save(parser, tmp_path / "model")
    line = " ".join(models.TEST.sentences()[0])
    sentences.write_text(f"{line}\n" * 100_000)
    arguments = ["parse", tmp_path / "model", sentences]
    status, _, err = _interrupt(_COMMAND_LINE, delay, arguments)
    assert status == 130
    assert err.splitlines()[-1] == "lpcfg-sk: interrupted"
    assert "Traceback" not in err
