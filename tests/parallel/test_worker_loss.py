"""Workers of a cluster that die in the middle of the work."""

import contextlib
import logging
import os
import signal
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from lpcfg_sk import EMLPCFG, PCFG, make_parser
from lpcfg_sk._parallel import Resident, _LostDataError, _result, map_chunks
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import WorkerLossError

pytestmark = [
    pytest.mark.slow_without_jit,
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ConvergenceWarning"),
]

TREES = load_toy(120)


distributed = pytest.importorskip("distributed")


@pytest.fixture
def own_cluster():
    """Two workers that a test may kill."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        yield client


@contextlib.contextmanager
def a_worker_dies(client, after):
    """Kill a worker in the middle of a task.

    Parameters
    ----------
    client : Client
        The cluster.
    after : int
        How often tasks of the work in this context must have changed their state on
        the scheduler before; each does about five times.
    """
    address, victim = min(client.run(os.getpid).items())
    scheduler, ended = client.cluster.scheduler, threading.Event()
    worker, begin = scheduler.workers[address], scheduler.transition_counter

    def kill():
        while not ended.wait(0.001):
            if scheduler.transition_counter >= begin + after and worker.processing:
                os.kill(victim, signal.SIGKILL)
                return True
        return False

    with ThreadPoolExecutor(1) as threads:
        killed = threads.submit(kill)
        try:
            yield
        finally:
            ended.set()
    assert killed.result()


def test_chunks_of_a_dead_worker_are_sent_again(own_cluster):
    data = Resident(list(range(100)))

    def slow(values, i):
        time.sleep(0.1)
        return values[i]

    with a_worker_dies(own_cluster, 25):
        found = list(map_chunks(slow, [(data, i) for i in range(20)]))
    assert found == list(range(20))


class _Lost:
    """A result that does not arrive; Dask says so in one of these ways."""

    def __init__(self, status, error):
        self.status, self.error = status, error

    def add_done_callback(self, function):
        function(self)

    def result(self, timeout):
        raise self.error


@pytest.mark.parametrize("status", ["finished", "cancelled"])
@pytest.mark.parametrize("error", [TimeoutError(), CancelledError()])
def test_a_result_that_does_not_arrive_is_lost(status, error):
    with pytest.raises(_LostDataError):
        _result(_Lost(status, error))
    # On a busy machine Dask's timeout is this one.
    with pytest.raises(_LostDataError):
        _result(_Lost(status, UnboundLocalError("result")))
    # The same errors of the function itself are raised as they are.
    with pytest.raises(type(error)):
        _result(_Lost("error", error))


def test_data_of_a_dead_worker_is_sent_again(own_cluster):
    data = Resident([1, 2])
    chunks = [(data, 0), (data, 1)]
    assert list(map_chunks(lambda d, i: d[i], chunks)) == [1, 2]
    keepers = own_cluster.who_has()[data.on(own_cluster).key]
    for worker in own_cluster.run(os.getpid, workers=list(keepers)).values():
        os.kill(worker, signal.SIGKILL)
    assert list(map_chunks(lambda d, i: d[i], chunks)) == [1, 2]


def test_a_chunk_that_kills_every_worker_is_an_error(own_cluster):
    def die(i):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises((WorkerLossError, distributed.KilledWorker)):
        list(map_chunks(die, [(0,), (1,)]))


def bytes_of(model):
    return [a.tobytes() for a in model[-1].grammar_.arrays]


def test_a_fit_survives_the_death_of_a_worker(own_cluster, small_chunks):
    model = make_parser(EMLPCFG(2, max_iter=12, tol=None, random_state=0))
    with joblib.parallel_config(backend="threading"):
        expected = bytes_of(clone(model).fit(TREES))
    with a_worker_dies(own_cluster, 500):
        assert bytes_of(clone(model).fit(TREES)) == expected


def test_predictions_survive_the_death_of_a_worker(own_cluster, small_chunks):
    with joblib.parallel_config(backend="threading"):
        parser = make_parser(PCFG()).fit(TREES)
        expected = parser.predict(TREES)
    with a_worker_dies(own_cluster, 100):
        for _ in range(3):
            assert parser.predict(TREES) == expected


@pytest.mark.parametrize("after", [20, 400])
def test_a_search_survives_the_death_of_a_worker(own_cluster, small_chunks, after):
    # joblib keeps one copy of what it spreads by itself, arrays of rows among it, and
    # waits forever for a copy that died. Lists travel with each task.
    X = load_toy(200)
    folds = [(a.tolist(), b.tolist()) for a, b in KFold(3).split(np.zeros(len(X)))]
    model = make_parser(EMLPCFG(2, max_iter=3, tol=None, random_state=0))
    search = GridSearchCV(model, {"learner__m": [1, 2]}, cv=folds)
    with joblib.parallel_config(backend="threading"):
        expected = clone(search).fit(X)
    with (
        joblib.parallel_config(backend="dask", scatter=[X]),
        a_worker_dies(own_cluster, after),
    ):
        found = clone(search).fit(X)
    for i in range(3):
        name = f"split{i}_test_score"
        one, two = found.cv_results_[name], expected.cv_results_[name]
        assert one.tobytes() == two.tobytes()
    assert bytes_of(found.best_estimator_) == bytes_of(expected.best_estimator_)
