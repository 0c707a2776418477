"""Random and mutated input for the reader, the loader and the command line.

``python -m tests.robustness.fuzz --n 1000000 --seed 0`` runs a million inputs; the
tests run a few. Nothing but the documented errors may come out, no input may take more
than five seconds, and memory must not grow. A case is made from the seed, the name of
its target and its number alone, so ``--only loader:1234`` repeats it.
"""

import argparse
import collections
import contextlib
import ctypes
import gc
import gzip
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from numba.core import event

from lpcfg_sk import Treebank, TreebankFormatError, read_treebank
from lpcfg_sk._cli import main as command_line
from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.datasets import make_treebank
from tests.persistence import models
from tests.treebank.test_fuzz_reader import BRACKETS, EXPORT, PIECES, check, mutated

#: Seconds of work, and seconds of waiting, after which an input counts as a hang.
CPU_LIMIT, WAIT_LIMIT = 5.0, 240.0

#: Bytes that memory may grow by between a tenth of the run and its end.
GROWTH_LIMIT = 64 * 2**20

#: Shares of the targets in a run.
SHARES = {"reader": 0.9, "loader": 0.09, "cli": 0.01}


class HangError(BaseException):
    """An input took too long; not an Exception, so that nobody catches it."""


class UndocumentedError(AssertionError):
    """A target ended in a way that its documentation does not mention."""


# -- the reader ------------------------------------------------------------------

_ENCODINGS = ("utf-8", "latin-1", "utf-16", "utf-8-sig", "shift_jis", "ascii")


class Reader:
    """Treebank files: brackets, export format, any bytes."""

    def __init__(self, folder):
        self.goods = [BRACKETS.encode(), EXPORT.encode()]

    def run(self, rng):
        kind = rng.randrange(10)
        format = rng.choice(("ptb", "export"))
        if kind < 6:
            data = mutated(self.goods[format == "export"], rng)
        elif kind == 6:
            data = rng.randbytes(rng.choice((0, 1, 10, 200)))
        elif kind == 7:
            data = b"".join(rng.choices(PIECES, k=rng.randrange(1, 60)))
        else:
            data = mutated(self.goods[format == "export"], rng)
            if kind == 8:
                data = mutated(gzip.compress(data, 1), rng)
            return self._with_options(data, format, rng)
        if data.startswith(b"\x1f\x8b"):
            # Damage of compressed data is found without a column to tell.
            return self._with_options(data, format, rng)
        # Reads strictly and leniently, and compares.
        check(data, format)
        if kind == 7:
            self._in_memory(data)
        return "read"

    def _with_options(self, data, format, rng):
        options = {
            "encoding": rng.choice(_ENCODINGS),
            "keep_functions": rng.random() < 0.5,
            "keep_traces": rng.random() < 0.5,
            "max_depth": rng.choice((None, 1, 3, 10)),
            "on_error": rng.choice(("raise", "skip")),
        }
        if format == "ptb":
            options["comments"] = rng.choice((None, "%%", "#"))
        try:
            read_treebank(io.BytesIO(data), format=format, **options)
        except TreebankFormatError as error:
            assert str(error)
            return "refused"
        return "read"

    def _in_memory(self, data):
        with contextlib.suppress(TreebankFormatError):
            Treebank([data.decode("utf-8", "surrogateescape")])


# -- the loader ------------------------------------------------------------------


class Loader:
    """Model files: damaged ones, and well-formed ones with another content."""

    def __init__(self, folder):
        self.path = folder / "model"
        self.goods = {}
        for name in models.MAKERS:
            value = models.make(name)
            models.answers(name, value)  # compiles what a loaded one is asked
            models.write(name, value, self.path)
            self.goods[name] = self.path.read_bytes(), self._content(name)

    def _content(self, name):
        kind = name if name in ("LPCFG", "WTA") else "estimator"
        version, meta, arrays = load_arrays(self.path, kind, 2)
        return kind, version, meta, arrays

    def run(self, rng):
        name = rng.choice(sorted(self.goods))
        content, (kind, version, meta, arrays) = self.goods[name]
        crafted = rng.random() < 0.5
        if crafted:
            meta = json.loads(json.dumps(meta))
            arrays = dict(arrays)
            for _ in range(rng.choice((1, 1, 2, 5))):
                if rng.random() < 0.5 and arrays:
                    key = rng.choice(sorted(arrays))
                    arrays[key] = _other_array(arrays[key], rng)
                else:
                    meta = _other_data(meta, rng)
            save_arrays(self.path, kind, version, meta, arrays)
        else:
            self.path.write_bytes(mutated(content, rng))
        try:
            value = models.read(name, self.path)
        except ValueError as error:
            assert str(error)
            return "refused"
        if rng.random() < 0.3:
            return _use(name, value)
        return "loaded"


def _use(name, value):
    """Whatever a loaded model says, it says it without crashing.

    Compiled loops tell of an index outside of an array only where
    ``NUMBA_BOUNDSCHECK=1``; elsewhere they would read or write what is not theirs.
    """
    try:
        models.answers(name, value)
    except Exception as error:
        if str(error) == "index is out of bounds":
            raise UndocumentedError("a compiled loop left its array") from error
        return "loaded, useless"
    return "loaded, useful"


def _other_array(array, rng):
    kind = rng.randrange(5)
    array = array.copy()
    if kind == 0 or array.size == 0:
        return array[:-1] if array.ndim else array
    if kind == 1:
        flat = array.reshape(-1)
        value = rng.choice((-1, 0, 1, 2**31 - 1, -(2**31), 2**62, 1000))
        info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        if info is not None:
            value = min(max(value, info.min), info.max)
        flat[rng.randrange(flat.size)] = value
        return array
    if kind == 2:
        return array.astype(rng.choice((np.float64, np.float32, np.int64, np.uint8)))
    if kind == 3:
        return np.concatenate([array, array])
    return array * float("nan") if array.dtype.kind == "f" else array[::-1]


_SCALARS = (None, True, -1, 0, 1, 2**70, 0.5, 1e308, "", "x", "S", [], {}, [[]])


def _other_data(data, rng):
    """Replace, remove or repeat something at a random place of JSON data."""
    for _ in range(rng.randrange(12)):
        if isinstance(data, dict) and data:
            key = rng.choice(sorted(data))
            if isinstance(data[key], dict | list) and data[key]:
                return {**data, key: _other_data(data[key], rng)}
            break
        if isinstance(data, list) and data:
            place = rng.randrange(len(data))
            return [*data[:place], _other_data(data[place], rng), *data[place + 1 :]]
    if isinstance(data, dict) and data:
        key = rng.choice(sorted(data))
        if rng.random() < 0.3:
            return {k: v for k, v in data.items() if k != key}
        return {**data, key: rng.choice(_SCALARS)}
    if isinstance(data, list) and data:
        return rng.choice((data[:-1], data + data, data[::-1]))
    return rng.choice(_SCALARS)


# -- the command line ------------------------------------------------------------

_COMMANDS = ("train", "parse", "evaluate", "select", "minimize", "inspect", "demo")
_LEARNER_OPTIONS = {
    "--learner": ("pcfg", "em", "spectral", "pivot", "pivot+em"),
    "--direction": ("left", "right", "head"),
    "--horizontal": ("0", "2", "-1"),
    "--vertical": ("1", "3", "0"),
    "--format": ("ptb", "export"),
    "--encoding": ("utf-8", "latin-1", "utf-99"),
    "--jobs": ("1", "2", "0", "-1"),
    "--seed": ("3", "-1"),
    "-m": ("1", "2", "3"),
    "--skip-errors": (),
}
_OPTIONS = {
    "train": _LEARNER_OPTIONS,
    "select": {**_LEARNER_OPTIONS, "--cv": ("2", "3", "99"), "--json": ()},
    "parse": {
        "--kbest": ("1", "5", "1000"),
        "--batch": ("1", "3"),
        "--jobs": ("1", "2", "0"),
        "--tags": (),
        "--marginals": (),
        "--json": (),
    },
    "evaluate": {
        "--params": ("none", "collins", "good.ptb", "missing"),
        "--summary": (),
        "--json": (),
    },
    "minimize": {"-n": ("1", "3", "999"), "-o": ("out", "directory"), "--json": ()},
    "inspect": {"--label": ("A0", "P0", "nobody"), "--top": ("1", "99"), "--json": ()},
}
_FLAGS = ("--help", "--nonsense", "-", "--", "-o", "-m", "--jobs", "--json", "@file")
_VALUES = (
    *("0", "1", "2", "3", "-1", "x", "", "1,2", "2.5", "pcfg", "em", "spectral"),
    *("pivot", "pivot+em", "left", "head", "ptb", "export", "utf-8", "latin-1"),
    *("utf-99", "none", "collins", "A0", "P0", "NP", "☃", "\udc80", "(", "--json"),
)


class CommandLine:
    """Commands with random arguments, files and standard input."""

    def __init__(self, folder):
        self.folder = folder
        trees = make_treebank(models.GRAMMAR, 12, random_state=1)
        trees.write(folder / "good.ptb")
        self.tree_text = (folder / "good.ptb").read_bytes()
        (folder / "empty").write_bytes(b"")
        (folder / "directory").mkdir()
        good = str(folder / "good.ptb")
        for learner in ("pcfg", "spectral"):
            model = str(folder / learner)
            status, _, err = self._main(
                ["train", good, "-o", model, "--learner", learner, "-m", "2"], ""
            )
            assert status == 0, err
        self.models = {n: (folder / n).read_bytes() for n in ("pcfg", "spectral")}
        self.names = [
            *("good.ptb", "bad.ptb", "pcfg", "spectral", "broken", "empty"),
            *("directory", "missing", "*.ptb", "missing/../good.ptb", "nul\0name"),
        ]

    def run(self, rng):
        (self.folder / "bad.ptb").write_bytes(mutated(self.tree_text, rng))
        broken = mutated(rng.choice(sorted(self.models.values())), rng)
        (self.folder / "broken").write_bytes(broken)
        text = self._text(rng)
        argv = self._arguments(rng)
        status, _, err = self._main(argv, text)
        if status not in (0, 1, 2):
            raise UndocumentedError(f"{argv}: status {status}")
        if "Traceback" in err:
            raise UndocumentedError(f"{argv}: a traceback: {err}")
        complaints = [
            line
            for line in err.splitlines()
            if not line.startswith("lpcfg-sk: warning:")
        ]
        if status == 1 and not (
            len(complaints) == 1 and complaints[0].startswith("lpcfg-sk: ")
        ):
            raise UndocumentedError(f"{argv}: not one line of complaint: {err!r}")
        return f"status {status}"

    def _arguments(self, rng):
        command = rng.choice(_COMMANDS)
        if command == "demo":
            # The demonstration is long by design: only its errors are of interest.
            return ["demo", "--trees", rng.choice(("x", "", "-3", "0", "1"))]
        argv = [command]
        good = {
            "train": ["good.ptb", "-o", "out", "--learner", "pcfg"],
            "parse": [rng.choice(("pcfg", "spectral"))],
            "evaluate": ["good.ptb", rng.choice(("good.ptb", "bad.ptb"))],
            "select": ["good.ptb", "-m", "1,2", "--learner", "spectral", "--cv", "2"],
            "minimize": ["pcfg"],
            "inspect": [rng.choice(("pcfg", "spectral"))],
        }[command]
        if rng.random() < 0.7:
            argv += good
        else:
            argv += rng.choices(self.names, k=rng.randrange(3))
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            if rng.random() < 0.8:
                flag, values = rng.choice(sorted(_OPTIONS[command].items()))
                argv += [flag, rng.choice(values)] if values else [flag]
                continue
            argv.insert(rng.randrange(1, len(argv) + 1), rng.choice(_FLAGS))
            argv.insert(rng.randrange(1, len(argv) + 1), rng.choice(_VALUES))
        if rng.random() < 0.2:
            argv[rng.randrange(len(argv))] = rng.choice(self.names)
        return argv

    def _text(self, rng):
        words = [*models.GRAMMAR.words, "never/NN", "w/P0", "(", "\0", "\u2028"]
        lines = [
            " ".join(rng.choices(words, k=rng.choice((0, 1, 3, 8))))
            for _ in range(rng.randrange(4))
        ]
        return rng.choice(("\n", "\r\n", "\n\n")).join(lines)

    def _main(self, argv, text):
        out, err = io.StringIO(), io.StringIO()
        before, stdin = os.getcwd(), sys.stdin
        sys.stdin = io.StringIO(text)
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = command_line(argv)
        finally:
            os.chdir(before)
            sys.stdin = stdin
        return status, out.getvalue(), err.getvalue()


TARGETS = {"reader": Reader, "loader": Loader, "cli": CommandLine}


# -- running ---------------------------------------------------------------------


class Stopwatch(event.Listener):
    """Seconds of work without compilation, and an alarm when they pass the limit.

    Which case has to compile, and for how long, depends on the cases before it, on the
    machine and on the bounds checks: it says nothing of the input. Work, not time, so
    that a busy machine makes no false alarms.
    """

    def __init__(self):
        self.seconds, self._compiling = 0.0, 0

    def _go(self):
        self._begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, max(CPU_LIMIT - self.seconds, 1e-3))

    def _halt(self):
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds += time.process_time() - self._begin

    def on_start(self, event):
        self._compiling += 1
        if self._compiling == 1:
            self._halt()

    def on_end(self, event):
        self._compiling -= 1
        if self._compiling == 0:
            self._go()

    @contextlib.contextmanager
    def running(self):
        def stop(*_):
            raise HangError

        signals = signal.SIGPROF, signal.SIGALRM
        old = {number: signal.signal(number, stop) for number in signals}
        signal.setitimer(signal.ITIMER_REAL, WAIT_LIMIT)
        self._go()
        try:
            with event.install_listener("numba:compile", self):
                yield
        finally:
            self._halt()
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in old.items():
                signal.signal(number, handler)


def resident_bytes():
    """Memory in use of this process; 0 where the system does not say."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        # What the allocator keeps for later is not in use: large inputs leave gaps.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def run_target(name, numbers, seed, *, warm_up=50):
    """Run cases of one target.

    Returns
    -------
    counts : Counter
        Cases by how they ended.
    failures : list of (int, str)
        Number of a case and what went wrong.
    growth : int
        Bytes that memory grew by after the first tenth.
    slowest : float
        Seconds of work of the slowest case, without compilation.
    """
    folder = Path(tempfile.mkdtemp(prefix="lpcfg_sk-fuzz-"))
    counts, failures, slowest, base = collections.Counter(), [], 0.0, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target = TARGETS[name](folder)
            # What these compile does not count as growth.
            for number in range(warm_up):
                with contextlib.suppress(Exception):
                    target.run(random.Random(f"warm {name} {number}"))
            for done, number in enumerate(numbers):
                if done == len(numbers) // 10:
                    base = resident_bytes()
                watch = Stopwatch()
                try:
                    with watch.running():
                        ended = target.run(random.Random(f"{seed} {name} {number}"))
                except (Exception, HangError) as error:
                    ended = f"FAILED: {type(error).__name__}"
                    failures.append((number, traceback.format_exc()))
                slowest = max(slowest, watch.seconds)
                counts[ended] += 1
    finally:
        shutil.rmtree(folder)
    return counts, failures, resident_bytes() - (base or 0), slowest


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="repeat one case, e.g. loader:1234")
    arguments = parser.parse_args(argv)
    if arguments.only:
        name, _, number = arguments.only.partition(":")
        plan = {name: [int(number)]}
    else:
        plan = {n: range(int(arguments.n * share)) for n, share in SHARES.items()}
    bad = 0
    for name, numbers in plan.items():
        begin = time.perf_counter()
        counts, failures, growth, slowest = run_target(name, numbers, arguments.seed)
        sys.stdout.write(
            f"{name}: {len(numbers)} inputs in {time.perf_counter() - begin:.0f} s, "
            f"slowest {slowest:.2f} s of work, memory grew by "
            f"{growth / 2**20:.1f} MiB; {dict(counts.most_common())}\n"
        )
        for number, text in failures[:20]:
            sys.stdout.write(f"--- {name}:{number}\n{text}")
        sys.stdout.flush()
        bad += len(failures) + (growth > GROWTH_LIMIT)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
