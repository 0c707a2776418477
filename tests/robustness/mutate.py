"""Saved models and treebanks with one value replaced: refused, or used without harm.

``python -m tests.robustness.mutate --n 10000 --seed 0`` takes files of every class that
can be saved, replaces an entry of an array or a scalar of the header, loads the result
and uses all its methods under ``NUMBA_BOUNDSCHECK=1``, in worker processes with limits
of time and memory. It prints how the cases ended, by class:

* refused: loading raised the documented error;
* same, other: the methods gave the same answers, or other ones;
* error: a method raised, for the model may be useless;
* nan: a method gave nan where it did not before;
* out-of-bounds, crash, hang, undocumented (another error in loading): what must not
  happen.

A case is made from the seed and its number alone, so ``--only 1234`` repeats it.
"""

import argparse
import collections
import contextlib
import copy
import json
import os
import queue
import random
import resource
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from pathlib import Path

import numpy as np

from lpcfg_sk import LPCFG, WTA, Treebank, load
from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.treebank._storage import _map, _read_header, write_columns
from tests.conftest import ROOT
from tests.robustness import zoo
from tests.robustness.fuzz import HangError, Stopwatch
from tests.treebank.test_hostile_files import rewritten

#: What takes the place of a value; n is one more than the largest of its array.
VALUES = ("-1", "0", "n", "n+1", "2**31-1", "2**62", "nan", "inf", "-0.5", "1e308")

#: The same for scalars of a header, which can have any type.
SCALARS = (*VALUES, "2**70", "None", "''", "'x'", "True", "[]")

#: Bytes that a worker may take on top of what its libraries take.
MEMORY = 3 * 2**30

#: Seconds without an answer after which a worker is taken to hang; enough to compile.
PATIENCE = 600.0

#: How no case may end.
HARM = ("out-of-bounds", "crash", "hang", "undocumented")


_SORTS = ("array", "array", "array lengths", "scalar", "scalar")


# -- files with one value replaced -------------------------------------------------


class File:
    """The content of one saved file, and the places where it can be changed."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.is_treebank = file.read(7) == b"LPCFGTB"
        if self.is_treebank:
            with open(path, "rb") as file:
                self.meta, start = _read_header(file, path)
                self.arrays = _map(file, path, self.meta, start)
        else:
            self.kind = _kind(path)
            self.version, self.meta, self.arrays = load_arrays(path, self.kind, 2)
        #: Places by kind of place: a list of a hundred words is one kind.
        self.places = collections.defaultdict(list)
        for name, array in self.arrays.items():
            if array.size:
                self.places["array", name].append(name)
        for steps in _scalars(self.meta):
            pattern = tuple(s if isinstance(s, str) else "*" for s in steps)
            self.places["scalar", pattern].append(steps)

    def mutate(self, rng, path):
        """Write the file with something replaced; what was done."""
        arrays, meta, done = dict(self.arrays), copy.deepcopy(self.meta), []
        for _ in range(rng.choice((1, 1, 1, 2))):
            sort = rng.choice(_SORTS if arrays else ("scalar",))
            places = [key for key in self.places if key[0] == sort.split()[0]]
            place = rng.choice(self.places[rng.choice(places)])
            value = rng.choice(SCALARS if sort == "scalar" else VALUES)
            if sort == "scalar":
                _set(meta, place, _number(value, _scalar(self.meta, place)))
                done.append(f"scalar {place} = {value}")
            elif arrays[place].size == 0:
                # The first change left nothing to change.
                continue
            elif sort == "array":
                size = arrays[place].size
                entry = rng.choice((0, size // 2, size - 1, slice(None)))
                arrays[place] = _replaced(arrays[place], entry, value)
                done.append(f"array {place}[{entry}] = {value}")
            else:
                # What belongs together often has one length.
                n = len(arrays[place]) if arrays[place].ndim else 0
                keep = rng.choice((n - 1, 1, 2 * n))
                for name in [k for k, a in arrays.items() if a.shape[:1] == (n,)]:
                    arrays[name] = np.resize(
                        arrays[name], (keep, *arrays[name].shape[1:])
                    )
                done.append(f"arrays of length {n} like {place} get length {keep}")
        self._write(path, meta, arrays)
        return "; ".join(done)

    def _write(self, path, meta, arrays):
        if not self.is_treebank:
            save_arrays(path, self.kind, self.version, meta, arrays)
            return
        write_columns(path, meta, arrays)
        if meta != self.meta:
            # Columns are described as they are, unless the description was changed.
            path.write_bytes(self.path.read_bytes())
            rewritten(path, lambda _: json.dumps(meta).encode())

    def read(self, path):
        """Load a file of the same kind."""
        if self.is_treebank:
            return Treebank.open(path)
        return {"LPCFG": LPCFG.load, "WTA": WTA.load}.get(self.kind, load)(path)


def _kind(path):
    for kind in ("LPCFG", "WTA"):
        with contextlib.suppress(ValueError):
            load_arrays(path, kind, 2)
            return kind
    return "estimator"


def _scalars(data, steps=()):
    """Paths to all scalars of JSON data."""
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            # Names of kinds and classes are no values of a model.
            if key not in ("$", "of", "name"):
                yield from _scalars(value, (*steps, key))
    else:
        yield steps


def _scalar(data, steps):
    for step in steps:
        data = data[step]
    return data


def _set(data, steps, value):
    for step in steps[:-1]:
        data = data[step]
    data[steps[-1]] = value


def _number(text, n):
    n = n if isinstance(n, int | float) else 1
    return eval(text, {"nan": float("nan"), "inf": float("inf"), "n": n})


def _replaced(array, entry, value):
    """A copy with an entry replaced, of another type if it does not fit."""
    n = int(array.max()) + 1 if array.dtype.kind in "iu" else 1
    value = _number(value, n)
    array = array.copy()
    info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    if info is not None and not (
        isinstance(value, int) and info.min <= value <= info.max
    ):
        array = array.astype(np.int64 if isinstance(value, int) else np.float64)
    array.reshape(-1)[entry] = value
    return array


# -- one case ------------------------------------------------------------------------


class Cases:
    """Makes and runs cases; files and first answers are made when they are needed."""

    def __init__(self, folder, seed, names):
        self.folder, self.seed, self.names = Path(folder), seed, names
        self.files, self.answers = {}, {}

    def name(self, number):
        return self.names[number % len(self.names)]

    def prepare(self, name):
        if name in self.files:
            return
        path = self.folder / f"{name}.file"
        zoo.write(name, path)
        self.files[name] = file = File(path)
        # Compiles what the cases need.
        self.answers[name] = zoo.ask(name, file.read(path))
        for method, (error, _) in self.answers[name].items():
            assert error is None, f"{name}.{method}: {error!r}"

    def run(self, number):
        """How a case ended, and what it was."""
        name = self.name(number)
        self.prepare(name)
        file, path = self.files[name], self.folder / "mutated"
        what = file.mutate(random.Random(f"{self.seed} {number}"), path)
        try:
            with Stopwatch().running():
                return self._use(name, file, path), what
        except HangError:
            return "hang", what

    def _use(self, name, file, path):
        try:
            value = file.read(path)
        except ValueError:
            return "refused"
        except Exception as error:
            return _ending("loading", error)
        ended = "same"
        for method, (error, answer) in zoo.ask(name, value).items():
            before = self.answers[name][method][1]
            if error is not None:
                ended = _worse(ended, _ending(method, error))
            elif zoo.n_nan(answer) > zoo.n_nan(before):
                ended = _worse(ended, f"nan: {method}")
            elif not zoo.equal(answer, before):
                ended = _worse(ended, "other")
        return ended


def _ending(method, error):
    if str(error) == "index is out of bounds":
        return f"out-of-bounds: {method}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    kind = "undocumented" if method == "loading" else "error"
    return f"{kind}: {type(error).__name__} in {method} ({place})"


_ORDER = ("same", "other", "error", "nan", "undocumented", "out-of-bounds")


def _worse(one, two):
    return max(one, two, key=lambda ended: _ORDER.index(ended.partition(":")[0]))


# -- workers -------------------------------------------------------------------------


def work(seed, names, folder, *, memory=MEMORY):
    """Answer numbers on standard input with endings on standard output."""
    cases, out = Cases(folder, seed, names), os.fdopen(os.dup(1), "w")
    # Nothing that a model prints is an answer.
    os.dup2(2, 1)
    limited = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in sys.stdin:
            number = int(line)
            cases.prepare(cases.name(number))
            if not limited:
                used = int(Path("/proc/self/statm").read_text().split()[0])
                limit = used * os.sysconf("SC_PAGE_SIZE") + memory
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                limited = True
            ended, what = cases.run(number)
            out.write(json.dumps([number, ended, what]) + "\n")
            out.flush()


class Worker:
    """A process that runs cases, and is replaced when it dies or hangs."""

    def __init__(self, arguments, folder):
        self._folder = tempfile.mkdtemp(dir=folder)
        self._command = [sys.executable, "-m", "tests.robustness.mutate", "--worker"]
        self._command += [*arguments, "--folder", self._folder]
        self._process = None

    def _start(self):
        environment = {
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": f"{os.environ['NUMBA_CACHE_DIR']}-bounds",
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.Popen(
            self._command,
            env=environment,
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, number):
        """How a case ended, and what it was."""
        if self._process is None:
            self._process = self._start()
        process, hung = self._process, []

        def end():
            hung.append(True)
            process.kill()

        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            _, ended, what = json.loads(line)
            return ended, what
        _, err = process.communicate()
        self._process = None
        if hung:
            return "hang", "the worker did not answer"
        return f"crash: status {process.returncode}", err[-2000:]

    def close(self):
        if self._process is not None:
            self._process.communicate()


def run(numbers, seed, names, *, jobs=1, report=lambda *case: None):
    """Run cases in workers.

    Returns
    -------
    counts : dict of str to Counter
        Cases by name of the model and by how they ended.
    harmful : list of (int, str, str, str)
        Number, name, ending and description of the cases that did harm.
    """
    waiting, lock = queue.SimpleQueue(), threading.Lock()
    for number in numbers:
        waiting.put(number)
    counts, harmful = collections.defaultdict(collections.Counter), []

    def serve(folder):
        worker = Worker(["--seed", str(seed), "--names", *names], folder)
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return worker.close()
            ended, what = worker.run(number)
            name = names[number % len(names)]
            with lock:
                counts[name][ended.partition(":")[0]] += 1
                if ended.startswith(HARM):
                    harmful.append((number, name, ended, what))
                report(number, name, ended, what)

    with tempfile.TemporaryDirectory(prefix="lpcfg_sk-mutate-") as folder:
        threads = [threading.Thread(target=serve, args=[folder]) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return counts, harmful


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="number of workers")
    parser.add_argument("--names", nargs="*", default=list(zoo.MAKERS))
    parser.add_argument("--only", type=int, help="repeat one case")
    parser.add_argument("--log", help="file for one line per case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    a = parser.parse_args(argv)
    if a.worker:
        return work(a.seed, a.names, a.folder)
    os.environ.setdefault("NUMBA_CACHE_DIR", "/tmp/lpcfg_sk-numba-mutate")
    numbers = range(a.n) if a.only is None else [a.only]
    with open(a.log or os.devnull, "a", buffering=1) as log:

        def report(*case):
            log.write(json.dumps(case) + "\n")
            if a.only is not None:
                sys.stdout.write(f"{case}\n")

        counts, harmful = run(numbers, a.seed, a.names, jobs=a.jobs, report=report)
    for name, endings in sorted(counts.items()):
        sys.stdout.write(f"{name}: {dict(endings.most_common())}\n")
    for case in harmful:
        sys.stdout.write(f"--- {str(case)[-600:]}\n")
    return int(bool(harmful))


if __name__ == "__main__":
    sys.exit(main())
