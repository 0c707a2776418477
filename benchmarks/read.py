"""Reading and writing treebanks: time against nltk, memory a node.

Usage: ``python benchmarks/read.py [path ...]``; the default is the sample of the Penn
Treebank under ``$LPCFG_SK_DATA``. All times are CPU seconds after one warm-up read.
"""

import os
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import pandas as pd

from lpcfg_sk import read_treebank

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("LPCFG_SK_DATA", DEFAULT))


def files_of(path):
    return sorted(path.rglob("*.mrg")) if path.is_dir() else [path]


def seconds(call, repeats=1):
    """Least CPU time of some calls."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def bracketed_trees(path):
    """The text of each tree, so that nltk is timed on parsing alone."""
    texts = []
    for file in files_of(path):
        depth, begin = 0, 0
        text = file.read_text(encoding="utf-8")
        for i, character in enumerate(text):
            if character == "(":
                if depth == 0:
                    begin = i
                depth += 1
            elif character == ")":
                depth -= 1
                if depth == 0:
                    texts.append(text[begin : i + 1])
    return texts


def measure(path):
    from nltk import Tree

    treebank = read_treebank(path)
    texts = bracketed_trees(path)
    nltk_time = seconds(lambda: [Tree.fromstring(text) for text in texts])
    read_time = seconds(lambda: read_treebank(path), repeats=5)
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "copy.mrg")
        treebank.write(target)
        write_time = seconds(lambda: treebank.write(target), repeats=5)
        copy_time = seconds(lambda: read_treebank(target), repeats=5)
    tracemalloc.start()
    traced = read_treebank(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "corpus": "/".join(path.parts[-2:]),
        "trees": len(treebank),
        "nodes": treebank.n_nodes,
        "nltk [s]": nltk_time,
        "read [s]": read_time,
        "nltk / read": nltk_time / read_time,
        "write [s]": write_time,
        "read back [s]": copy_time,
        "bytes per node": held / traced.n_nodes,
        "peak bytes per node": peak / traced.n_nodes,
    }


def main():
    paths = [Path(name) for name in sys.argv[1:]]
    paths = paths or [DATA / "wsj" / "train", DATA / "gum" / "train.ptb"]
    table = pd.DataFrame([measure(path) for path in paths]).set_index("corpus")
    print(table.T.to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
