"""Accuracy against the amount of raw text, and memory against it.

    python benchmarks/semi_supervised.py TRAIN DEV RAW [--amounts 0 1000 ...]
        [--parsers self-trained accurate best] [--plot FILE]
    python benchmarks/semi_supervised.py --scaling [--sizes 10000 100000 1000000]

RAW has one sentence per line. The first table has F1 (without the root) with a 95%
bootstrap interval over sentences, and CPU seconds of one thread:

- self-trained: one grammar (pivot + EM), with the ensemble "accurate" as its teacher;
- accurate, best: the presets of ``make_ensemble``.

With ``--scaling``, a PCFG teaches itself on short sentences of a random grammar, in
shards of 10,000. Each size runs in a process of its own after a small fit, which
compiles; the table has CPU seconds and the growth of the peak memory, the last line
their slopes on a log-log scale: 1 is proportional, 0 is flat.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    PivotLPCFG,
    SelfTrainingParser,
    ShardedTreebank,
    Treebank,
    make_ensemble,
    make_parser,
    read_treebank,
)
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.metrics import bootstrap_ci
from lpcfg_sk.treebank import concatenate

SHARD = 10_000
N_TREES = 2_000
FIXED = {"max_iter": 4, "tol": None, "validation_fraction": None, "random_state": 0}


def self_trained():
    learner = EMLPCFG(24, init=PivotLPCFG(24), **FIXED)
    student = make_parser(learner, horizontal=1)
    return SelfTrainingParser(make_ensemble("accurate").teacher, student)


PARSERS = {
    "self-trained": self_trained,
    "accurate": lambda: make_ensemble("accurate"),
    "best": lambda: make_ensemble("best"),
}


def read_sentences(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return Treebank([line.split() for line in lines if line.strip()])


def accuracy(args):
    train, dev = read_treebank(args.train), read_treebank(args.dev)
    raw = read_sentences(args.raw)
    order = np.random.default_rng(0).permutation(len(raw))
    amounts = sorted({min(n, len(raw)) for n in args.amounts} | {len(raw)})
    rows = []
    for name in args.parsers:
        for n in amounts:
            begin = time.process_time()
            X = concatenate([train, raw[np.sort(order[:n])]])
            parser = PARSERS[name]().fit(X)
            fitted = time.process_time()
            predicted = parser.predict(dev)
            done = time.process_time()
            f1, low, high, _ = bootstrap_ci(dev, predicted, random_state=0)
            rows.append(
                {
                    "parser": name,
                    "raw sentences": n,
                    "F1": 100 * f1,
                    "low": 100 * low,
                    "high": 100 * high,
                    "fit s": fitted - begin,
                    "sentences/s": len(dev) / (done - fitted),
                }
            )
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def plot(table, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(layout="constrained")
    for name, rows in table.groupby("parser", sort=False):
        error = [rows["F1"] - rows["low"], rows["high"] - rows["F1"]]
        ax.errorbar(
            rows["raw sentences"], rows["F1"], error, marker="o", capsize=3, label=name
        )
    ax.set(xlabel="raw sentences", ylabel="F1")
    ax.legend()
    figure.savefig(path)


def write_shards(folder, n):
    grammar = make_lpcfg(4, 8, 200, m=1, mean_length=6.0, random_state=0)
    make_treebank(grammar, N_TREES, random_state=0).save(folder / "00000.tb")
    for number, begin in enumerate(range(0, n, SHARD), start=1):
        size = min(SHARD, n - begin)
        shard = make_treebank(grammar, size, random_state=number)
        shard.unparsed().save(folder / f"{number:05d}.tb")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit_shards(folder):
    """Measure one fit; runs in a process of its own."""
    X = ShardedTreebank(folder, verify=False)
    parser = SelfTrainingParser(make_parser(PCFG()))
    parser.fit(X[: N_TREES + 2_000])
    before, begin = peak(), time.process_time()
    parser.fit(X)
    return {"CPU s": time.process_time() - begin, "memory MB": peak() - before}


def scaling(sizes):
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_shards(Path(folder), n)
            command = [sys.executable, __file__, "--measure", folder]
            answer = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append({"raw sentences": n, **json.loads(answer.stdout)})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    table = pd.DataFrame(rows, dtype=float)
    if len(table) > 1:
        logs = np.log(table.clip(lower=0.1))
        slopes = {c: np.polyfit(logs["raw sentences"], logs[c], 1)[0] for c in logs}
        table.loc["slope"] = slopes
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", nargs="?", help="treebank to train on")
    parser.add_argument("dev", nargs="?", help="treebank to test on")
    parser.add_argument("raw", nargs="?", help="raw text, one sentence per line")
    amounts = (0, 1_000, 5_000, 20_000)
    parser.add_argument("--amounts", type=int, nargs="+", default=amounts)
    parser.add_argument("--parsers", nargs="+", choices=PARSERS, default=[*PARSERS])
    parser.add_argument("--plot", help="file of the plot")
    parser.add_argument("--scaling", action="store_true", help="measure memory")
    sizes = (10_000, 100_000, 1_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(fit_shards(args.measure)))
        return
    if not args.scaling and args.raw is None:
        parser.error("TRAIN, DEV and RAW are needed, or --scaling")
    table = scaling(args.sizes) if args.scaling else accuracy(args)
    if args.plot and not args.scaling:
        plot(table, args.plot)
    print(table.round(2).to_string(index=args.scaling))


if __name__ == "__main__":
    main()
