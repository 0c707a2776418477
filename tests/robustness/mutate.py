"""Saved models and treebanks with one value replaced: refused, or used without harm.

``python -m tests.robustness.mutate --n 1000000 --seed 0`` takes files of every class
that can be saved, replaces an entry of an array or a scalar of the header, loads the
result and uses its methods under ``NUMBA_BOUNDSCHECK=1``. It prints how the cases
ended, by class:

* refused: loading raised the documented error;
* same, other: the methods gave the same answers, or other ones;
* error: a method raised, for the model may be useless;
* nan: a method gave nan where it did not before;
* memory: loading took more than four times the file and the model that it holds;
* out-of-bounds, crash, hang, undocumented (another error in loading): what, like the
  two before, must not happen.

A parent that has compiled everything forks a process for a few hundred cases of one
class. It reports each case when it is done, so that one that kills it or does not end
is known, and the next process goes on after it. What changes is put where a reader of
files would put it; every sixteenth case goes through a file. Classes whose cases take
long get fewer of them. A case is made from the seed, the name of its class and its
number alone: ``--names "toy EM" --only 1234`` repeats it.
"""

import argparse
import collections
import contextlib
import copy
import faulthandler
import gc
import json
import math
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from lpcfg_sk import LPCFG, WTA, ShardedTreebank, Treebank, load
from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.automata import _wta
from lpcfg_sk.lpcfg import _lpcfg
from lpcfg_sk.persistence import _codec
from lpcfg_sk.treebank._storage import _map, _read_header, write_columns
from tests.conftest import ROOT
from tests.robustness import zoo
from tests.robustness.fuzz import HangError, Stopwatch
from tests.treebank.test_hostile_files import rewritten

#: What takes the place of a value; n is one more than the largest of its array.
VALUES = ("-1", "0", "n", "n+1", "2**31-1", "2**62", "nan", "inf", "-0.5", "1e308")

#: The same for scalars of a header, which can have any type.
SCALARS = (*VALUES, "2**70", "None", "''", "'x'", "True", "[]")

#: Bytes that loading may take beside four times the file and its model: what the
#: allocator and the interpreter take at once.
SLACK = 24 * 2**20

#: Bytes that using a model may take.
MEMORY = 2**30

#: Numbers in memory for each one in a file, see "Model files" in the user guide.
EXPANSION = 32

#: Cases in a process, and seconds without a report after which it is taken to hang;
#: enough to compile.
BATCH, PATIENCE = 400, 300.0

#: Seconds that a process works before the next class has its turn.
TURN = 4.0

#: How no case may end.
HARM = ("out-of-bounds", "crash", "hang", "undocumented", "memory", "nan")

_SORTS = ("array", "array", "array lengths", "scalar", "scalar")
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
        #: Places by sort and by kind of place: a list of a hundred words is one kind.
        self.places = {"array": [[k] for k, a in self.arrays.items() if a.size]}
        patterns = collections.defaultdict(list)
        for steps in _scalars(self.meta):
            pattern = tuple(s if isinstance(s, str) else "*" for s in steps)
            patterns[pattern].append(steps)
        self.places["scalar"] = list(patterns.values())
        # Treebanks are views of their file, and are not compact.
        expansion = 0 if self.is_treebank else EXPANSION
        content = sum(array.nbytes for array in self.arrays.values())
        self.allowed = 4 * path.stat().st_size + expansion * content + SLACK

    def mutate(self, rng):
        """Header and arrays with something replaced, and what was done."""
        arrays, meta, done = dict(self.arrays), self.meta, []
        for _ in range(rng.choice((1, 1, 1, 2))):
            sort = rng.choice(_SORTS if self.places["array"] else ("scalar",))
            place = rng.choice(rng.choice(self.places[sort.split()[0]]))
            value = rng.choice(SCALARS if sort == "scalar" else VALUES)
            if sort == "scalar":
                meta = _with(meta, place, _number(value, _scalar(self.meta, place)))
                done.append(f"scalar {place} = {value}")
            elif arrays[place].size == 0:
                # The first change left nothing to change.
                continue
            elif sort == "array":
                size = arrays[place].size
                entry = rng.choice((0, rng.randrange(size), size - 1, slice(None)))
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
        return meta, arrays, "; ".join(done)

    def write(self, path, meta, arrays):
        """Write a file of the same kind."""
        if not self.is_treebank:
            save_arrays(path, self.kind, self.version, meta, arrays)
            return
        write_columns(path, meta, arrays)
        if meta is not self.meta:
            # Columns are described as they are, unless the description was changed.
            path.write_bytes(self.path.read_bytes())
            rewritten(path, lambda _: json.dumps(meta).encode())

    def read(self, path, *, sharded=False):
        """Load a file of the same kind."""
        if self.is_treebank:
            return ShardedTreebank([path]) if sharded else Treebank.open(path)
        return {"LPCFG": LPCFG.load, "WTA": WTA.load}.get(self.kind, load)(path)

    @contextlib.contextmanager
    def in_memory(self, meta, arrays):
        """Context in which loading finds these instead of reading a file."""
        module = {"LPCFG": _lpcfg, "WTA": _wta}.get(self.kind, _codec)
        # Models keep the arrays that they are given.
        arrays = {name: array.copy() for name, array in arrays.items()}
        module.load_arrays = lambda *_: (self.version, meta, arrays)
        try:
            yield
        finally:
            module.load_arrays = load_arrays


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


def _with(data, steps, value):
    """JSON data with a scalar replaced; what is not on the way to it is shared."""
    if not steps:
        return value
    data = copy.copy(data)
    data[steps[0]] = _with(data[steps[0]], steps[1:], value)
    return data


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
    """Makes and runs cases; files and first answers are made when they are needed.

    Parameters
    ----------
    folder : str or path-like
        Where to put files.
    seed : int
        Where the cases come from.
    n_uses : int, default=None
        Number of methods of an accepted model that a case calls, drawn at random; None
        calls all.
    limited : bool, default=False
        Whether to limit the memory of this process.
    """

    def __init__(self, folder, seed, *, n_uses=None, limited=False):
        self.folder, self.seed = Path(folder), seed
        self.n_uses, self.limited = n_uses, limited
        self.files, self.answers = {}, {}

    def prepare(self, name):
        """Make the file of a class, and compile what its cases need."""
        if name in self.files:
            return
        path = self.folder / f"{name}.file"
        zoo.write(name, path)
        self.files[name] = file = File(path)
        value = file.read(path, sharded=name == "shards")
        self.answers[name] = zoo.ask(name, value)
        for method, (error, _) in self.answers[name].items():
            assert error is None, f"{name}.{method}: {error!r}"

    def run(self, name, number):
        """How a case ended, and what it was."""
        self.prepare(name)
        rng = random.Random(f"{self.seed} {name} {number}")
        meta, arrays, what = self.files[name].mutate(rng)
        try:
            with Stopwatch().running():
                return self._use(name, meta, arrays, number % 16 == 0, rng), what
        except HangError:
            return "hang", what

    def _use(self, name, meta, arrays, through_file, rng):
        file, path = self.files[name], self.folder / "mutated"
        context = contextlib.nullcontext()
        if file.is_treebank or through_file:
            file.write(path, meta, arrays)
        else:
            context = file.in_memory(meta, arrays)
        try:
            with context, self._limit(file.allowed):
                value = file.read(path, sharded=name == "shards")
        except ValueError:
            return "refused"
        except MemoryError:
            return "memory: loading"
        except Exception as error:
            return _ending("loading", error)

        def draw(methods):
            n = len(methods) if self.n_uses is None else self.n_uses
            return rng.sample(methods, min(n, len(methods)))

        ended = "same"
        with self._limit(MEMORY):
            answers = zoo.ask(name, value, draw)
        for method, (error, answer) in answers.items():
            before = self.answers[name][method][1]
            if error is not None:
                ended = _worse(ended, _ending(method, error))
            elif zoo.n_nan(answer) > zoo.n_nan(before):
                ended = _worse(ended, f"nan: {method}")
            elif not zoo.equal(answer, before):
                ended = _worse(ended, "other")
        return ended

    @contextlib.contextmanager
    def _limit(self, n_bytes):
        """Context in which the process may take that much more memory."""
        if not self.limited:
            yield
            return
        used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, most))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _ending(method, error):
    if "out of bounds" in str(error) and type(error) is IndexError:
        frames = traceback.extract_tb(error.__traceback__)
        # numpy checks by itself; kernels only under bounds checks, in these words.
        if str(error) == "index is out of bounds":
            return f"out-of-bounds: {method} ({Path(frames[-1].filename).name})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    kind = "undocumented" if method == "loading" else "error"
    return f"{kind}: {type(error).__name__} in {method} ({place})"


_ORDER = ("same", "other", "error", "nan", "undocumented", "out-of-bounds")


def _worse(one, two):
    return max(one, two, key=lambda ended: _ORDER.index(ended.partition(":")[0]))


# -- processes -----------------------------------------------------------------------


def run_batch(cases, name, numbers, *, turn=TURN, patience=PATIENCE):
    """Run cases of one class in a process of their own.

    Parameters
    ----------
    cases : Cases
        Makes and runs them; has prepared the class.
    name : str
        Name of the class.
    numbers : range
        Numbers of the cases.
    turn, patience : float
        Seconds after which no further case begins, and within which one must end.

    Yields
    ------
    number, ended, what : int, str and str
        The cases that were run; one that killed the process or hung is the last.
    """
    errors = cases.folder / "errors"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _work(cases, name, numbers, write, errors, turn)
    os.close(write)
    number, rest = numbers.start, b""
    while True:
        ready, _, _ = select.select([read], [], [], patience)
        content = os.read(read, 2**16) if ready else b""
        if not content:
            break
        *lines, rest = (rest + content).split(b"\n")
        for line in lines:
            number, ended, what = json.loads(line)
            if ended is not None:
                yield number, ended, what
                number += 1
    os.close(read)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ready:
        yield number, "hang", "no report"
    elif status:
        yield number, f"crash: status {status}", errors.read_text()[-2000:]


def _work(cases, name, numbers, write, errors, turn):
    """Run cases, and end this process."""
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable(all_threads=False)
    status = 1
    try:
        warnings.simplefilter("ignore")
        begin = time.monotonic()
        for number in numbers:
            ended, what = cases.run(name, number)
            shown = what if ended.startswith((*HARM, "error")) else ""
            os.write(write, json.dumps([number, ended, shown]).encode() + b"\n")
            if time.monotonic() - begin > turn:
                break
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


class Counts:
    """Cases by class and by how they ended, and the time that they took."""

    def __init__(self, names):
        self.endings = {name: collections.Counter() for name in names}
        self.details = collections.Counter()
        self.examples, self.seconds = {}, dict.fromkeys(names, 0.0)

    def add(self, name, number, ended, what):
        self.endings[name][ended.partition(":")[0]] += 1
        if ":" in ended or ended.startswith(HARM):
            self.details[name, ended] += 1
            self.examples.setdefault((name, ended), (number, what))

    def total(self):
        """Number of cases."""
        return sum(c.total() for c in self.endings.values())

    def next(self):
        """Name of the next class; cases that take t seconds get 1 / sqrt(t) turns."""

        def turns(name):
            n = self.endings[name].total()
            return n * math.sqrt(self.seconds[name] / n) if n else 0.0

        return min(self.endings, key=turns)

    def harmful(self):
        """Endings that must not happen, with their numbers and an example."""
        return [
            (name, ended, n, *self.examples[name, ended])
            for (name, ended), n in self.details.items()
            if ended.startswith(HARM)
        ]

    def table(self):
        """The counts in Markdown."""
        kinds = ("refused", "same", "other", "error", *HARM)
        sums = collections.Counter()
        for counter in self.endings.values():
            sums.update(counter)
        lines = [f"| class | cases | {' | '.join(kinds)} |", "|---" * 12 + "|"]
        for name, c in [*sorted(self.endings.items()), ("all", sums)]:
            numbers = " | ".join(str(c[kind]) for kind in kinds)
            lines.append(f"| {name} | {c.total()} | {numbers} |")
        for case in self.harmful():
            lines.append(f"* {str(case)[:1500]}")
        return "\n".join(lines) + "\n"


def run(n, seed, names, *, n_uses=None, report=lambda counts: None):
    """Run cases of all classes, each in a forked process.

    Returns
    -------
    counts : Counts
    """
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="lpcfg_sk-mutate-", dir=folder) as folder:
        cases = Cases(folder, seed, n_uses=n_uses, limited=True)
        counts, first = Counts(names), dict.fromkeys(names, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in names:
                cases.prepare(name)
        # Children need not look at, and so copy, what they share.
        gc.collect()
        gc.freeze()
        while (left := n - counts.total()) > 0:
            name, begin = counts.next(), time.monotonic()
            numbers = range(first[name], first[name] + min(BATCH, left))
            for number, ended, what in run_batch(cases, name, numbers):
                counts.add(name, number, ended, what)
                first[name] = number + 1
            counts.seconds[name] += time.monotonic() - begin
            report(counts)
        gc.unfreeze()
    return counts


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", nargs="*", default=list(zoo.MAKERS))
    parser.add_argument("--uses", type=int, help="methods per case; default: all")
    parser.add_argument("--only", type=int, help="repeat one case of each name")
    parser.add_argument("--report", help="file for the counts so far")
    a = parser.parse_args(argv)
    if os.environ.get("NUMBA_BOUNDSCHECK") != "1":
        # numba reads it once, and does not tell kernels with checks from those without.
        os.environ["NUMBA_BOUNDSCHECK"] = "1"
        folder = os.environ.get("NUMBA_CACHE_DIR", "/tmp/lpcfg_sk-numba-mutate")
        os.environ["NUMBA_CACHE_DIR"] = f"{folder}-bounds"
        os.chdir(ROOT)
        given = sys.argv[1:] if argv is None else argv
        command = [sys.executable, "-m", "tests.robustness.mutate", *given]
        os.execv(sys.executable, command)
    if a.only is not None:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = Cases(folder, a.seed, n_uses=a.uses)
            for name in a.names:
                sys.stdout.write(f"{name}: {cases.run(name, a.only)}\n")
        return 0
    last = [time.monotonic()]

    def report(counts):
        if a.report and time.monotonic() - last[0] > 20.0:
            Path(a.report).write_text(counts.table())
            last[0] = time.monotonic()

    counts = run(a.n, a.seed, a.names, n_uses=a.uses, report=report)
    if a.report:
        Path(a.report).write_text(counts.table())
    sys.stdout.write(counts.table())
    return int(bool(counts.harmful()))


if __name__ == "__main__":
    sys.exit(main())
