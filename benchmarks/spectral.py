"""Spectral learning against the size of the corpus, and the cost of a search over m.

Usage: ``python benchmarks/spectral.py [path] [--trees N ...] [--m M]``; the default is
the training part of the sample of the Penn Treebank under ``$LPCFG_SK_DATA``. A larger
corpus than there is is made of copies. Each row is measured in a process of its own,
after a warm-up fit that compiles: CPU seconds, and peak memory above that of the
warm-up. The last table compares the fits of a ``GridSearchCV`` over m in 4, 8, 16, 32,
which share features and decompositions through a cache, with one over m = 32 alone.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import SpectralLPCFG, make_parser, read_treebank

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("LPCFG_SK_DATA", DEFAULT))


def peak():
    """Peak resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu(call, *args):
    begin = time.process_time()
    result = call(*args)
    return result, time.process_time() - begin


def warm_up(treebank):
    make_parser(SpectralLPCFG(m=4)).fit(treebank[:200])


def measure_size(path, n_trees, m):
    treebank = read_treebank(path)
    warm_up(treebank)
    before = peak()
    X = treebank[np.arange(n_trees) % len(treebank)]
    parser = make_parser(SpectralLPCFG(m=m))
    X, _ = cpu(parser[:2].fit_transform, X)
    X, features = cpu(parser[2:4].fit_transform, X)
    _, learning = cpu(parser[-1].fit, X)
    memory = peak() - before
    return {
        "trees": n_trees,
        "nodes": X.n_nodes,
        "features_s": features,
        "learning_s": learning,
        "us_a_node": 1e6 * (features + learning) / X.n_nodes,
        "peak_MB": memory,
        "model_MB": sum(a.nbytes for a in parser[-1].grammar_.arrays) / 2**20,
        "bytes_a_node": 2**20 * memory / X.n_nodes,
    }


def no_score(estimator, X, y=None):
    """Leave decoding out of the comparison."""
    return 0.0


def search_time(treebank, parser, states):
    """CPU seconds of the fits of a search over m, three folds."""
    search = GridSearchCV(
        parser, {"learner__m": states}, cv=3, scoring=no_score, refit=False
    )
    return cpu(search.fit, treebank)[1]


def measure_single(path, n_trees, m):
    treebank = read_treebank(path)
    warm_up(treebank)
    seconds = search_time(treebank, make_parser(SpectralLPCFG()), [m])
    return {"search": f"m={m}", "cpu_s": seconds}


def measure_search(path, n_trees, m):
    treebank = read_treebank(path)
    warm_up(treebank)
    with tempfile.TemporaryDirectory() as cache:
        learner = SpectralLPCFG(m_max=m, memory=cache)
        parser = make_parser(learner, memory=cache)
        seconds = search_time(treebank, parser, [4, 8, 16, m])
    return {"search": f"m=4, 8, 16, {m}, cached", "cpu_s": seconds}


MEASURES = {f.__name__: f for f in (measure_size, measure_single, measure_search)}


def in_own_process(name, path, n_trees, m):
    command = [sys.executable, __file__, str(path), "--child", name]
    command += ["--trees", str(n_trees), "--m", str(m)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(output.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default=DATA / "wsj" / "train")
    parser.add_argument(
        "--trees", type=int, nargs="+", default=[3750, 7500, 15000, 30000, 60000]
    )
    parser.add_argument("--m", type=int, default=16)
    parser.add_argument("--child", choices=MEASURES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        result = MEASURES[options.child](options.path, options.trees[0], options.m)
        print(json.dumps(result))
        return
    rows = [
        in_own_process("measure_size", options.path, n, options.m)
        for n in options.trees
    ]
    frame = pd.DataFrame(rows)
    frame["nodes_ratio"] = frame["nodes"] / frame["nodes"].iloc[0]
    frame["memory_ratio"] = frame["peak_MB"] / frame["peak_MB"].iloc[0]
    print(frame.round(2).to_string(index=False))
    rows = [
        in_own_process(name, options.path, 0, 32)
        for name in ("measure_single", "measure_search")
    ]
    frame = pd.DataFrame(rows)
    frame["ratio"] = frame["cpu_s"] / frame["cpu_s"].iloc[0]
    print()
    print(frame.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
