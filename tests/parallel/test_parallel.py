import gc
import os
import pickle

import numpy as np
import pytest

from lpcfg_sk._parallel import Resident, Spool, cut_by_work, map_chunks


class Counted:
    """Counts how often it is pickled."""

    def __init__(self):
        self.times = 0
        self.data = np.arange(1000.0)

    def __getstate__(self):
        self.times += 1
        return vars(self)


def test_chunks_cover_all_rows_whatever_the_work(seed):
    work = np.random.RandomState(seed).exponential(size=200)
    for target in (0.1, 3.0, 1e9):
        chunks = cut_by_work(work, target)
        rows = [row for begin, end in chunks for row in range(begin, end)]
        assert rows == list(range(200))
        assert all(b - a == 1 or work[a:b].sum() <= target for a, b in chunks)


def test_results_come_in_the_order_of_the_chunks():
    assert list(map_chunks(lambda a: -a, [(i,) for i in range(9)], n_jobs=2)) == [
        -i for i in range(9)
    ]


def test_nothing_comes_of_nothing():
    assert list(map_chunks(len, [])) == []


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_spool_keeps_values_until_its_end(on_disk, on_cluster):
    with Spool(on_disk) as spool:
        kept = [(spool.keep({"x": np.arange(i)}),) for i in range(3)]
        assert list(map_chunks(lambda v: v["x"].sum(), kept)) == [0, 0, 1]
        with on_cluster():
            assert list(map_chunks(lambda v: v["x"].sum(), kept)) == [0, 0, 1]
        assert kept[2][0].load(mmap_mode="r")["x"].tolist() == [0, 1]
        assert (spool.path is not None) == on_disk
        # A worker's copy must not remove the files of the others.
        with pickle.loads(pickle.dumps(spool)):
            pass
        assert not on_disk or len(os.listdir(spool.path)) == 3
    assert not on_disk or not os.path.exists(spool.path)


def test_an_error_in_a_chunk_is_raised_here(on_cluster):
    def fail(i):
        raise ArithmeticError(f"chunk {i}")

    with pytest.raises(ArithmeticError, match="chunk"):
        list(map_chunks(fail, [(1,), (2,)], n_jobs=2))
    with on_cluster(), pytest.raises(ArithmeticError, match="chunk"):
        list(map_chunks(fail, [(1,), (2,)]))


def test_what_a_function_refers_to_is_sent_once_a_call(on_cluster):
    data = Counted()
    chunks = [(i,) for i in range(40)]
    with on_cluster():
        found = list(map_chunks(lambda i: data.data[i], chunks))
    assert found == list(range(40))
    assert data.times == 1


def test_resident_data_is_sent_once_for_all_calls(on_cluster):
    data = Counted()
    resident = Resident(data)
    with on_cluster():
        for shift in range(3):
            chunks = [(resident, i + shift) for i in range(10)]
            found = list(map_chunks(lambda d, i: d.data[i], chunks))
            assert found == list(range(shift, shift + 10))
    assert data.times == 1


def test_a_cluster_forgets_resident_data_with_its_owner(cluster, on_cluster):
    resident = Resident(np.ones(10_000))
    with on_cluster():
        list(map_chunks(lambda a, i: a[i], [(resident, 0), (resident, 1)]))
    key = resident.on(cluster).key
    assert key in cluster.scheduler_info()["workers"] or cluster.who_has()[key]
    del resident
    gc.collect()
    for _ in range(100):
        if not cluster.who_has().get(key):
            break
        cluster.sync(_pause)
    assert not cluster.who_has().get(key)


async def _pause():
    import asyncio

    await asyncio.sleep(0.02)


def test_resident_data_pickles_without_its_place_on_a_cluster(cluster):
    resident = Resident([1, 2])
    resident.on(cluster)
    copy = pickle.loads(pickle.dumps(resident))
    assert copy.value == [1, 2]
    assert copy._kept is None


def test_chunks_run_in_other_processes_of_a_cluster(on_cluster):
    with on_cluster():
        pids = set(map_chunks(lambda i: os.getpid(), [(i,) for i in range(8)]))
    assert os.getpid() not in pids
