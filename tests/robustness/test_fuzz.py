"""A small part of what ``python -m tests.robustness.fuzz`` runs."""

import os
import time

import pytest
from numba.core import event

from tests.robustness import fuzz

# The command line and the loader fit and use models, which is slow uncompiled.
SCALE = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("name", "count"), [("reader", 500), ("loader", 400), ("cli", 100)]
)
def test_nothing_but_documented_errors(name, count, seed):
    counts, failures, growth, slowest = fuzz.run_target(
        name, range(count // SCALE), seed, warm_up=50 // SCALE
    )
    assert not failures, f"{name}:{failures[0][0]}\n{failures[0][1]}"
    assert growth < fuzz.GROWTH_LIMIT
    assert slowest < fuzz.CPU_LIMIT
    assert sum(counts.values()) == count // SCALE
    assert len(counts) > 1


def test_failures_are_reported(monkeypatch):
    class Broken:
        def __init__(self, folder):
            pass

        def run(self, rng):
            if rng.random() < 0.5:
                raise KeyError("undocumented")
            while True:
                pass

    monkeypatch.setitem(fuzz.TARGETS, "reader", Broken)
    monkeypatch.setattr(fuzz, "CPU_LIMIT", 0.05)
    counts, failures, *_ = fuzz.run_target("reader", range(8), 0, warm_up=0)
    assert set(counts) == {"FAILED: KeyError", "FAILED: HangError"}
    assert len(failures) == 8


def test_compilation_is_no_work(monkeypatch):
    class Compiling:
        def __init__(self, folder):
            pass

        def run(self, rng):
            data = {"dispatcher": None}
            with event.trigger_event("numba:compile", data=data):
                begin = time.process_time()
                while time.process_time() - begin < 0.5:
                    pass
            return "compiled"

    monkeypatch.setitem(fuzz.TARGETS, "reader", Compiling)
    monkeypatch.setattr(fuzz, "CPU_LIMIT", 0.2)
    counts, failures, _, slowest = fuzz.run_target("reader", range(3), 0, warm_up=0)
    assert not failures
    assert counts == {"compiled": 3}
    assert slowest < 0.2
