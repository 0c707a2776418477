"""Parse many sentences with one parser, or fit many parsers, and watch the memory.

``python -m tests.robustness.soak --n 1000000 --fits 1000``
"""

import argparse
import sys
import time
import warnings

from lpcfg_sk import EMLPCFG, SpectralLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from tests.robustness.fuzz import resident_bytes

#: Bytes that memory may grow by after the first tenth.
GROWTH_LIMIT = 20 * 2**20

_BATCH = 500
_LONGEST = 8


def _em(m):
    fixed = {"max_iter": 3, "tol": None, "validation_fraction": None}
    return make_parser(EMLPCFG(m, random_state=0, **fixed))


def _watched(n, step, work, report):
    """Call `work` for every `step` of `n`; bytes that memory grew by."""
    begin, base = time.perf_counter(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for done in range(0, n, step):
            work(done)
            if base is None and done >= n // 10:
                base = resident_bytes()
            if done % max(step, n // 10 // step * step) == 0:
                report(
                    f"{done} of {n}, {time.perf_counter() - begin:.0f} s, "
                    f"{resident_bytes() / 2**20:.1f} MiB\n"
                )
    return resident_bytes() - base


def run(n, report=lambda text: None):
    """Parse `n` sentences; bytes that memory grew by after the first tenth."""
    trees = load_toy(2000)
    sentences = [s for s in trees.sentences() if len(s) <= _LONGEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = _em(4).fit(trees[:500])

    def parse(done):
        start = done % (len(sentences) - _BATCH)
        parser.predict(sentences[start : start + _BATCH])

    return _watched(n, _BATCH, parse, report)


def run_fits(n, report=lambda text: None):
    """Fit and delete `n` parsers; bytes that memory grew by after the first tenth."""
    trees = load_toy(60)

    def fit(done):
        # No two fits are of the same trees, for no cache of any library may keep them.
        X = trees[done % 20 : done % 20 + 30]
        make_parser(SpectralLPCFG(2, random_state=done)).fit(X).predict(X[:2])
        _em(2).fit(X).predict(X[:2])

    return _watched(n, 1, fit, report)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=0, help="number of sentences")
    parser.add_argument("--fits", type=int, default=0, help="number of fits")
    a = parser.parse_args(argv)
    grown = []
    for work, n in ((run_fits, a.fits), (run, a.n)):
        if n:
            grown.append(
                work(n, lambda text: (sys.stdout.write(text), sys.stdout.flush()))
            )
            sys.stdout.write(f"memory grew by {grown[-1] / 2**20:.1f} MiB\n")
    return int(max(grown, default=0) > GROWTH_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
