"""A cluster of two processes, and small chunks, so that small data needs many."""

import logging

import joblib
import pytest

SMALL_CHUNKS = {
    "lpcfg_sk.em._expectation.CHUNK_WORK": 200,
    "lpcfg_sk.em._expectation._NODES_PER_RULE": 1,
    "lpcfg_sk.spectral._moments._CHUNK_PRODUCTS": 1e4,
    "lpcfg_sk.pivot._node_states._CHUNK_PRODUCTS": 1e5,
    "lpcfg_sk.pivot._simplex._CHUNK_ROWS": 64,
    "lpcfg_sk.cfg._derivations._CHUNK_WORK": 2_000,
    "lpcfg_sk.parsing._sentences._CHUNK_WORK": 20_000,
    "lpcfg_sk.language_model._aggregate_training._CHUNK_NONZEROS": 300,
}


@pytest.fixture
def small_chunks(monkeypatch):
    for name, value in SMALL_CHUNKS.items():
        monkeypatch.setattr(name, value)


@pytest.fixture(scope="session")
def cluster():
    """Dask workers that have nothing of this process but what they are sent."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            # Any free port: another run of the tests may have the usual one.
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def small_chunks_everywhere(small_chunks, cluster):
    """Small chunks also for work that the workers cut themselves."""
    before = cluster.run(_exchange, SMALL_CHUNKS)
    yield
    for worker, values in before.items():
        cluster.run(_exchange, values, workers=[worker])


def _exchange(values):
    from importlib import import_module

    before = {}
    for name, value in values.items():
        module, _, attribute = name.rpartition(".")
        module = import_module(module)
        before[name] = getattr(module, attribute)
        setattr(module, attribute, value)
    return before


@pytest.fixture
def on_cluster(cluster):
    """Context manager within which joblib runs on the cluster."""
    return lambda: joblib.parallel_config(backend="dask")
