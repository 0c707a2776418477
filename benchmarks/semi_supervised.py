"""Accuracy against the amount of raw text, and memory against it.

    python benchmarks/semi_supervised.py TRAIN RAW [--dev DEV] [--amounts 0 1000 ...]
        [--parsers self-trained accurate best] [--plot FILE]
    python benchmarks/semi_supervised.py --scaling [--sizes 10000 100000 1000000]

RAW has one sentence per line. Without DEV the last fifth of TRAIN is held out and
parsed instead. One ensemble "accurate", fitted to the trees, is the teacher of all:
it parses the raw text once, and each parser is fitted to the trees and to random
subsets of the automatic trees, each of which contains the smaller ones, as
``SelfTrainingParser`` does. The table has F1 (without the root), its 95% bootstrap
interval over sentences, the gain over the same parser without raw text with the
interval of the paired bootstrap, and CPU seconds of one thread. The parsers are

- self-trained: one grammar (pivot + EM, 24 states);
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
from lpcfg_sk.metrics import bootstrap_ci, paired_bootstrap
from lpcfg_sk.treebank import concatenate

SHARD = 10_000
N_TREES = 2_000
UNLABELED_WEIGHT = 0.5
FIXED = {"max_iter": 4, "tol": None, "validation_fraction": None, "random_state": 0}


def one_grammar():
    learner = EMLPCFG(24, init=PivotLPCFG(24), **FIXED)
    return make_parser(learner, horizontal=1, memory_min_count=20)


PARSERS = {
    "self-trained": one_grammar,
    "accurate": lambda: make_ensemble("accurate").teacher,
    "best": lambda: make_ensemble("best").student,
}


def read_sentences(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return Treebank([line.split() for line in lines if line.strip()])


def read_parts(args):
    """Read the trees to train on and those to score."""
    train = read_treebank(args.train)
    if args.dev is not None:
        return train, read_treebank(args.dev)
    cut = len(train) * 4 // 5
    return train[:cut], train[cut:]


def automatic_trees(train, raw):
    """Parse raw text with the teacher, and put the trees into a random order."""
    teacher = make_ensemble("accurate").teacher.fit(train)
    trees, status = teacher.predict(raw, return_status=True)
    parsed = np.flatnonzero(status["status"].isin(["parsed", "coarser"]))
    return trees[np.random.default_rng(0).permutation(parsed)]


def fit(parser, train, automatic):
    """Fit a parser to trees and to automatic trees of half their weight."""
    X = concatenate([train, automatic])
    weight = np.repeat([1.0, UNLABELED_WEIGHT], [len(train), len(automatic)])
    step = "learner__" if hasattr(parser, "steps") else ""
    return parser.fit(X, **{f"{step}sample_weight": weight})


def accuracy(args):
    train, dev = read_parts(args)
    automatic = automatic_trees(train, read_sentences(args.raw))
    amounts = sorted({min(n, len(automatic)) for n in args.amounts})
    rows = []
    for name in args.parsers:
        without = None
        for n in amounts:
            begin = time.process_time()
            parser = fit(PARSERS[name](), train, automatic[:n])
            fitted = time.process_time()
            predicted = parser.predict(dev)
            done = time.process_time()
            f1, low, high, _ = bootstrap_ci(dev, predicted, random_state=0)
            row = {"parser": name, "raw sentences": n, "F1": f1}
            row |= {"low": low, "high": high}
            if without is None:
                without = predicted
            else:
                gain = paired_bootstrap(dev, predicted, without, random_state=0)
                row |= {"gain": gain.difference, "from": gain.low, "to": gain.high}
            row |= {"fit s": fitted - begin, "sentences/s": len(dev) / (done - fitted)}
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    scores = ["F1", "low", "high", "gain", "from", "to"]
    table[scores] = 100 * table.reindex(columns=scores)
    return table


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
    figure.legend(loc="outside upper center", ncols=len(ax.containers))
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
    parser.add_argument("raw", nargs="?", help="raw text, one sentence per line")
    parser.add_argument("--dev", help="treebank to score; a fifth of TRAIN if absent")
    amounts = (0, 1_000, 5_000, 20_000, 2**31)
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
        parser.error("TRAIN and RAW are needed, or --scaling")
    table = scaling(args.sizes) if args.scaling else accuracy(args)
    if args.plot and not args.scaling:
        plot(table, args.plot)
    print(table.round(2).to_string(index=args.scaling))


if __name__ == "__main__":
    main()
