"""One model in many threads and processes."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import ROOT
from tests.persistence import models

pytestmark = pytest.mark.slow_without_jit

NAMES = ("Pipeline", "VotingParser", "SpectralLPCFG", "KneserNeyLM", "MarginEMPCFG")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_many_threads_say_what_one_says(name):
    model = models.make(name)
    expected = models.answers(name, models.make(name))
    # The first use is concurrent, too: caches are filled by whoever comes first.
    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(lambda _: models.answers(name, model), range(24)))
    assert all(answer == expected for answer in said)


@pytest.mark.filterwarnings("ignore")
def test_fits_in_many_threads_do_not_disturb_each_other():
    def fitted(name):
        return models.answers(name, models.make(name))

    names = ["Pipeline", "SpectralLPCFG", "AggregateMarkovLM"] * 3
    expected = {name: fitted(name) for name in set(names)}
    with ThreadPoolExecutor(8) as threads:
        for name, said in zip(names, threads.map(fitted, names), strict=True):
            assert said == expected[name]


# Processes started by spawn import the script.
_PROCESSES = """
import multiprocessing, warnings
warnings.simplefilter("ignore")
from tests.persistence import models

def said(model):
    return models.answers("Pipeline", model)

if __name__ == "__main__":
    model = models.make("Pipeline")
    expected = said(model)
    for method in {"fork", "spawn"} & set(multiprocessing.get_all_start_methods()):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(said, [model] * 4) == [expected] * 4, method
    print("same")
"""


def test_processes_of_both_kinds_say_the_same(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_PROCESSES)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"
