"""A small part of what ``python -m tests.robustness.mutate`` runs."""

import os
import random
import signal
import time

import pytest

from tests.robustness import mutate, zoo

SCALE = 20 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1


@pytest.mark.kernels
@pytest.mark.filterwarnings("ignore")
def test_files_with_values_replaced_do_no_harm(tmp_path, seed):
    # In this process, which has compiled what it needs.
    cases = mutate.Cases(tmp_path, seed)
    numbers = range(1, 1 + max(1, 15 // SCALE))
    names = list(zoo.MAKERS)[:: max(1, SCALE // 5)]
    endings = [cases.run(name, number) for name in names for number in numbers]
    assert not [case for case in endings if case[0].startswith(mutate.HARM)]
    assert len({ended.partition(":")[0] for ended, _ in endings}) > 2


def test_every_array_and_every_kind_of_scalar_is_a_place(tmp_path):
    zoo.write("toy spectral", tmp_path / "model")
    file = mutate.File(tmp_path / "model")
    places = file.places
    assert len(places["array"]) == sum(a.size > 0 for a in file.arrays.values()) > 100
    assert len(places["scalar"]) > 50
    before = mutate.json.dumps(file.meta)
    for number in range(50):
        _, _, what = file.mutate(random.Random(number))
        assert what.startswith(("array", "scalar"))
    assert mutate.json.dumps(file.meta) == before


class _Deadly:
    """Cases of which the third kills its process, or does not end."""

    def __init__(self, folder, third):
        self.folder, self.third = folder, third

    def run(self, name, number):
        if number == 3:
            self.third()
        return "same", "nothing"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "third, ended, patience",
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "crash", 300.0),
        # Even on a busy machine a process makes its first report within that time.
        (lambda: time.sleep(600), "hang", 10.0),
        (lambda: 1 / 0, "crash", 300.0),
    ],
)
def test_a_case_that_kills_its_process_or_hangs_is_known(
    tmp_path, third, ended, patience
):
    cases = _Deadly(tmp_path, third)
    found = list(mutate.run_batch(cases, "any", range(1, 9), patience=patience))
    assert [number for number, _, _ in found] == [1, 2, 3]
    assert found[2][1].startswith(ended)
    rest = list(mutate.run_batch(cases, "any", range(4, 9)))
    assert [case[:2] for case in rest] == [(n, "same") for n in range(4, 9)]
