"""A small part of what ``python -m tests.robustness.mutate`` runs."""

import os
import random

import pytest

from tests.robustness import mutate, zoo

SCALE = 20 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1


@pytest.mark.kernels
@pytest.mark.filterwarnings("ignore")
def test_files_with_values_replaced_do_no_harm(tmp_path, seed):
    # Workers would compile everything again, with bounds checks.
    cases = mutate.Cases(tmp_path, seed, list(zoo.MAKERS))
    endings = [cases.run(number) for number in range(15 * len(zoo.MAKERS) // SCALE)]
    assert not [case for case in endings if case[0].startswith(mutate.HARM)]
    assert len({ended.partition(":")[0] for ended, _ in endings}) > 2


def test_every_array_and_every_kind_of_scalar_is_a_place(tmp_path):
    zoo.write("toy spectral", tmp_path / "model")
    file = mutate.File(tmp_path / "model")
    sorts = [sort for sort, _ in file.places]
    assert sorts.count("array") == sum(a.size > 0 for a in file.arrays.values()) > 100
    assert sorts.count("scalar") > 50
    for number in range(50):
        what = file.mutate(random.Random(number), tmp_path / "mutated")
        assert what.startswith(("array", "scalar"))


def test_a_worker_that_dies_is_a_crash_and_is_replaced(tmp_path):
    worker = mutate.Worker(["--seed", "0", "--names", "no such model"], tmp_path)
    for _ in range(2):
        ended, what = worker.run(0)
        assert ended == "crash: status 1"
        assert "no such model" in what
    worker.close()
