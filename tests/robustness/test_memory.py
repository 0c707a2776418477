"""Limits of memory hold, and memory does not grow."""

import subprocess
import sys

import pytest

from lpcfg_sk import PCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ChartMemoryError

pytestmark = pytest.mark.slow_without_jit

# The chart of one sentence is measured in a process of its own, where nothing else
# makes the peak.
_PEAK = """
import resource, sys, warnings
warnings.simplefilter("ignore")
from lpcfg_sk import PCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ChartMemoryError, ParseError
trees = load_toy(300)
prune, limit = eval_prune, int(sys.argv[1])
parser = make_parser(PCFG(max_memory=limit, prune=prune, on_failure="raise")).fit(trees)
words = [w for tree in trees for w in tree.words()]
parser.predict([trees[0].words()])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
for length in (20, 40, 80, 120, 160, 240, 400, 800):
    try:
        parser.predict([words[:length]])
    except ChartMemoryError as error:
        assert "max_memory" in str(error)
        print("refused", length, peak() - before)
        break
    except ParseError:
        pass
    print("parsed", length, peak() - before)
"""


@pytest.mark.parametrize("prune", [None, 3e-4])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="unit of ru_maxrss")
def test_parsing_stays_below_max_memory(prune):
    limit = 24 * 2**20
    program = _PEAK.replace("eval_prune", repr(prune))
    done = subprocess.run(
        [sys.executable, "-c", program, str(limit)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[-1][0] == "refused"
    assert lines[0][0] == "parsed"
    # Words, trees and the allocator's own slack come on top of the chart.
    assert all(int(grown) < limit + 16 * 2**20 for _, _, grown in lines), lines


_LIMITED = """
import resource, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from lpcfg_sk import PCFG, make_parser
from lpcfg_sk.datasets import load_toy
trees = load_toy(60)
parser = make_parser(PCFG(max_memory=2**40, prune=None)).fit(trees)
expected = parser.predict(trees[:3])
size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + 2**27, hard))
for _ in range(3):
    try:
        parser.predict([trees[0].words() * 100])
    except MemoryError:
        print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(parser.predict(trees[:3]) == expected)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_limit_of_the_system_is_a_memory_error():
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED], capture_output=True, text=True
    )
    assert done.stdout == "MemoryError\n" * 3 + "True\n", done.stderr


def test_a_refused_sentence_does_not_spoil_the_parser():
    trees = load_toy(60)
    parser = make_parser(PCFG(max_memory=300_000, on_failure="raise")).fit(trees)
    expected = parser.predict(trees[:3])
    with pytest.raises(ChartMemoryError, match="max_memory"):
        parser.predict([trees[0].words() * 60])
    assert parser.predict(trees[:3]) == expected


@pytest.mark.slow
def test_soak():
    from tests.robustness import soak

    assert soak.run(20_000) < soak.GROWTH_LIMIT
    assert soak.run_fits(100) < soak.GROWTH_LIMIT
