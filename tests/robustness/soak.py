"""Parse many sentences with one parser, and watch the memory.

``python -m tests.robustness.soak --n 100000``
"""

import argparse
import sys
import time
import warnings

from lpcfg_sk import EMLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from tests.robustness.fuzz import resident_bytes

#: Bytes that memory may grow by after the first tenth.
GROWTH_LIMIT = 16 * 2**20

_BATCH = 500


def run(n, report=lambda text: None):
    """Parse `n` sentences; bytes that memory grew by after the first tenth."""
    trees = load_toy(2000)
    fixed = {"max_iter": 3, "tol": None, "validation_fraction": None}
    sentences = [s for s in trees.sentences() if len(s) <= 12]
    begin, base = time.perf_counter(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = make_parser(EMLPCFG(4, random_state=0, **fixed)).fit(trees[:500])
        for done in range(0, n, _BATCH):
            start = done % (len(sentences) - _BATCH)
            parser.predict(sentences[start : start + _BATCH])
            if base is None and done >= n // 10:
                base = resident_bytes()
            if done % (n // 10) == 0:
                report(
                    f"{done} sentences, {time.perf_counter() - begin:.0f} s, "
                    f"{resident_bytes() / 2**20:.1f} MiB\n"
                )
    return resident_bytes() - base


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="number of sentences")
    arguments = parser.parse_args(argv)
    growth = run(arguments.n, sys.stdout.write)
    sys.stdout.write(f"memory grew by {growth / 2**20:.1f} MiB\n")
    return int(growth > GROWTH_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
