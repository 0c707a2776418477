"""Time and memory of learners against the number of trees, in memory and in shards.

Usage: ``python benchmarks/scaling.py [--min N] [--max N] [--loaded-max N]
[--learners ...] [--paths ...] [--folder FOLDER]``. Trees are drawn from a random L-PCFG
once (files in FOLDER are used again) and saved in shards of 10,000 and in one file.
Each row is measured in a process of its own after a fit of a few trees, which
compiles: seconds of the clock and of the processor, peak memory above that of the
small fit, and peak anonymous memory, which leaves out mapped pages that the system can
take back (Linux only). Paths:

- memory: all trees are read into memory;
- mapped: one file, opened by ``Treebank.open``;
- sharded: a ``ShardedTreebank``, whose shards are opened one at a time.

The second table has the slopes of time and memory on a log-log scale, from 10,000 trees
on: 1 is proportional, 0 is flat.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    InsideFeatures,
    MarginEMPCFG,
    OutsideFeatures,
    ShardedTreebank,
    SpectralLPCFG,
    Treebank,
)
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.treebank import concatenate

SHARD = 10_000
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
PATHS = ("memory", "mapped", "sharded")
EM_ITERATIONS = 3


# The features of trees of a large random grammar are without number, and so would be
# the parameters of the spectral learner; those of a small one are soon all seen.
GRAMMARS = {"large": (10, 20, 2_000), "small": (3, 5, 100)}


def grammar_of(learner):
    return "small" if learner == "spectral" else "large"


def fit_pcfg(X):
    PCFG().fit(X)


def fit_em(X):
    EMLPCFG(
        4, max_iter=EM_ITERATIONS, tol=None, validation_fraction=None, random_state=0
    ).fit(X)


def fit_spectral(X):
    X = OutsideFeatures().fit_transform(InsideFeatures().fit_transform(X))
    SpectralLPCFG(4).fit(X)


def fit_margin(X):
    MarginEMPCFG(CFG.from_treebank(X)).fit(X)


LEARNERS = {
    "pcfg": fit_pcfg,
    "em": fit_em,
    "spectral": fit_spectral,
    "margin": fit_margin,
}


def open_trees(folder, n, path, learner):
    """Trees of one of the paths, and a few of them to compile with."""
    folder = folder / grammar_of(learner)
    shards = [folder / f"{i:05d}.tb" for i in range(-(-n // SHARD))]
    X = ShardedTreebank(shards, verify=False)[:n]
    small = X[:300]
    if path == "sharded":
        return X, X[:300]
    if path == "memory":
        return (lambda: concatenate(X.chunks())), small.load()
    return (lambda: Treebank.open(folder / f"all-{n}.tb")), small.load()


class AnonymousMemory(threading.Thread):
    """Watches the anonymous memory of this process, in MB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.now()
        self.done = threading.Event()

    @staticmethod
    def now():
        """Anonymous memory at this moment."""
        try:
            with open("/proc/self/status") as status:
                lines = dict(line.split(":", 1) for line in status)
            return int(lines["RssAnon"].split()[0]) / 1024
        except (OSError, KeyError):
            return float("nan")

    def run(self):
        """Look fifty times a second."""
        while not self.done.wait(0.02):
            self.peak = max(self.peak, self.now())


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder, n, path, learner):
    X, small = open_trees(Path(folder), n, path, learner)
    LEARNERS[learner](small)
    before, anonymous = peak(), AnonymousMemory()
    before_anonymous = anonymous.now()
    anonymous.start()
    clock, processor = time.perf_counter(), time.process_time()
    if callable(X):
        X = X()
    LEARNERS[learner](X)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    anonymous.done.set()
    return {
        "learner": learner,
        "path": path,
        "trees": n,
        "clock_s": clock,
        "cpu_s": processor,
        "us_a_tree": 1e6 * processor / n,
        "peak_MB": peak() - before,
        "anonymous_MB": anonymous.peak - before_anonymous,
    }


def in_own_process(*arguments):
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(output.stdout.splitlines()[-1])


def make_files(folder, name, sizes, loaded_max):
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    model = make_lpcfg(*GRAMMARS[name], m=2, mean_length=8.0, random_state=0)
    for i in range(-(-max(sizes) // SHARD)):
        if not (folder / f"{i:05d}.tb").exists():
            make_treebank(model, SHARD, random_state=i).save(folder / f"{i:05d}.tb")
    X = ShardedTreebank(sorted(folder.glob("0*.tb")), verify=False)
    for n in sizes:
        if n <= loaded_max and not (folder / f"all-{n}.tb").exists():
            X[:n].load().save(folder / f"all-{n}.tb")


def slope(frame, column):
    frame = frame[(frame["trees"] >= 10_000) & (frame[column] > 1e-3)]
    if len(frame) < 2:
        return float("nan")
    return np.polyfit(np.log(frame["trees"]), np.log(frame[column]), 1)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--min", type=int, default=1_000)
    parser.add_argument("--max", type=int, default=100_000)
    parser.add_argument(
        "--loaded-max", type=int, default=100_000, help="of the other paths"
    )
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=[*LEARNERS])
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=PATHS)
    parser.add_argument("--folder", help="where to keep the trees")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, n, path, learner = options.child
        print(json.dumps(measure(folder, int(n), path, learner)))
        return
    sizes = [n for n in SIZES if options.min <= n <= options.max]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        for name in {grammar_of(learner) for learner in options.learners}:
            make_files(Path(folder), name, sizes, options.loaded_max)
        for learner in options.learners:
            for path in options.paths:
                for n in sizes:
                    if path == "sharded" or n <= options.loaded_max:
                        rows.append(in_own_process(folder, n, path, learner))
                        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    print(frame.round(2).to_string(index=False))
    columns = ["clock_s", "cpu_s", "peak_MB", "anonymous_MB"]
    slopes = pd.DataFrame(
        {column: slope(part, column) for column in columns}
        | {"learner": learner, "path": path}
        for (learner, path), part in frame.groupby(["learner", "path"], sort=False)
    )
    print()
    print(slopes[["learner", "path", *columns]].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
