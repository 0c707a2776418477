"""The one place that knows how work is spread over threads and machines.

Work is cut into chunks by its amount, never by the number of jobs, and results
are joined in the order of the chunks: the same bits come out on one core, on two,
or on a cluster (``joblib.parallel_config(backend="dask")``).
"""

import os
import tempfile
import time
import uuid
from concurrent.futures import CancelledError
from functools import cache
from threading import Event, Lock
from typing import NamedTuple

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from lpcfg_sk._files import (
    clear_error_of_full_disk,
    mark_as_used,
    remove_abandoned,
    temporary_prefix,
)
from lpcfg_sk._interrupts import held_back, in_background, interruptible
from lpcfg_sk.exceptions import WorkerLossError

__all__ = [
    "CHUNK_WORK",
    "Resident",
    "Spool",
    "cut_by_work",
    "map_chunks",
    "run_apart",
]

#: Nodes (or units of similar cost) in a chunk: large enough that the cost of starting
#: a task is negligible, small enough that two cores share even a small treebank.
CHUNK_WORK = 20_000

# How often chunks are sent to a cluster whose workers die, and after how many seconds
# a result that does not arrive counts as lost. A busy worker takes some to send it.
_ATTEMPTS = 4
_PATIENCE = 60


def cut_by_work(work, target=CHUNK_WORK):
    """Cut rows into runs of about equal work.

    Parameters
    ----------
    work : array-like of float, shape (n_rows,)
        Cost of each row.
    target : float, default=CHUNK_WORK
        Cost of a chunk; a row that costs more is a chunk of its own.

    Returns
    -------
    chunks : list of tuple (begin, end)
        Row ranges that cover all rows in order.

    Examples
    --------
    >>> from lpcfg_sk._parallel import cut_by_work
    >>> cut_by_work([3, 3, 3, 9, 1], target=6)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    chunks, begin, load = [], 0, 0.0
    for row, cost in enumerate(np.asarray(work, dtype=float).tolist()):
        if row > begin and load + cost > target:
            chunks.append((begin, row))
            begin, load = row, 0.0
        load += cost
    if begin < len(work):
        chunks.append((begin, len(work)))
    return chunks


class Resident:
    """Data that a cluster keeps between calls of :func:`map_chunks`.

    As an item of a chunk it stands for its value. Threads share it; a Dask cluster
    is sent it once, where it is first needed, and keeps it as long as this object
    lives. It is meant for data that many iterations go through; what only one call
    needs should be part of the function or the chunk.

    Parameters
    ----------
    value : object
        Anything that can be pickled.

    Examples
    --------
    >>> from lpcfg_sk._parallel import Resident, map_chunks
    >>> table = Resident([10, 20, 30])
    >>> list(map_chunks(lambda t, i: t[i], [(table, 0), (table, 2)]))
    [10, 30]
    """

    def __init__(self, value):
        self.value = value
        self._kept = None

    def __getstate__(self):
        return {"value": self.value, "_kept": None}

    def load(self, mmap_mode=None):
        """Return the value."""
        return self.value

    def forget(self):
        """Have the value sent again, because the worker that kept it has died."""
        self._kept = None

    def on(self, client):
        """Return what stands for the value in calls on a cluster."""
        if self._kept is None or self._kept[0] is not client:
            # Keys by content would let nested calls cancel each other's data.
            # In a list, because the items of a collection are scattered one by one.
            (future,) = client.scatter([self.value], hash=False)
            self._kept = client, future
        return self._kept[1]


class _Stored(NamedTuple):
    """A value in a temporary file; as an item of a chunk it stands for the value."""

    path: str

    def load(self, mmap_mode=None):
        """Read the value, or map its arrays."""
        return joblib.load(self.path, mmap_mode=mmap_mode)


class Spool:
    """Store for values that one pass over a corpus leaves for later passes.

    Values are kept in memory, or in temporary files that are removed at the end. Files
    of a process that was killed are removed when the next spool is made.

    Parameters
    ----------
    on_disk : bool
        Whether to use files, which workers must be able to see.
    folder : str, default=None
        Where to create the folder of the files; the system's temporary folder where
        None.

    Examples
    --------
    >>> from lpcfg_sk._parallel import Spool, map_chunks
    >>> with Spool(on_disk=True) as spool:
    ...     kept = [spool.keep([1, 2]), spool.keep([3])]
    ...     list(map_chunks(sum, [(value,) for value in kept]))
    [3, 3]
    """

    def __init__(self, on_disk, folder=None):
        self._folder = self._lock = None
        if on_disk:
            prefix = f"lpcfg_sk-{temporary_prefix()}"
            remove_abandoned(folder or tempfile.gettempdir(), prefix)
            self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=folder)
            if os.name == "posix":  # elsewhere folders cannot be opened
                self._lock = os.open(self._folder.name, os.O_RDONLY)
                mark_as_used(self._lock)
        self.path = None if self._folder is None else self._folder.name

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._folder is not None:
            self._folder.cleanup()
            if self._lock is not None:
                os.close(self._lock)

    def __getstate__(self):
        # A worker writes to the folder, and does not remove it.
        return {"path": self.path, "_folder": None, "_lock": None}

    def keep(self, value):
        """Keep a value.

        Parameters
        ----------
        value : object
            Anything that can be pickled.

        Returns
        -------
        item : object
            Stands for the value in calls of :func:`map_chunks`; ``item.load()``
            returns it.
        """
        if self.path is None:
            return Resident(value)
        stored = _Stored(os.path.join(self.path, uuid.uuid4().hex))
        advice = "set TMPDIR to a folder on a larger disk"
        with clear_error_of_full_disk(self.path, advice):
            joblib.dump(value, stored.path)
        return stored


def _run(func, *chunk):
    chunk = [item.load() if isinstance(item, _Stored) else item for item in chunk]
    with one_blas_thread(), held_back():
        return func(*chunk)


def run_apart(func, *arguments, **options):
    """Call a function of long kernels so that Ctrl-C need not wait for them.

    Parameters
    ----------
    func : callable
        Runs in a thread of its own, with matrix products on one thread.
    *arguments, **options
        What to call it with.

    Returns
    -------
    result : object

    Examples
    --------
    >>> from lpcfg_sk._parallel import run_apart
    >>> run_apart(sorted, [2, 1], reverse=True)
    [2, 1]
    """

    def call():
        with one_blas_thread():
            return func(*arguments, **options)

    return in_background(call)


def map_chunks(func, chunks, *, n_jobs=None):
    """Yield ``func(*chunk)`` for each chunk, in the order of the chunks.

    Parameters
    ----------
    func : callable
        Called with the items of a chunk; releases the GIL in its kernels. It may run
        in another process, so it must return its results. Objects that it refers to
        are sent once per call.
    chunks : iterable of tuple
        Arguments of each call; a :class:`Resident`, or what a :class:`Spool` keeps,
        is replaced by its value.
    n_jobs : int, default=None
        As in joblib; None means 1 unless a ``joblib.parallel_config`` sets it.

    Yields
    ------
    result : object

    Raises
    ------
    WorkerLossError
        If workers of a cluster died again and again.
    """
    with interruptible():
        yield from _map_chunks(func, list(chunks), n_jobs)


def _map_chunks(func, chunks, n_jobs):
    # Only Dask's backend has a client.
    backend = get_active_backend()[0]
    client = getattr(backend, "client", None)
    if client is not None and len(chunks) > 1:
        yield from _map_on_cluster(func, chunks, backend)
        return
    chunks = [
        tuple(item.value if isinstance(item, Resident) else item for item in chunk)
        for chunk in chunks
    ]
    if len(chunks) == 1:
        # A single chunk is not worth sending to another process.
        yield _run(func, *chunks[0])
        return
    # Joblib's pools of plain processes can only return everything at the end.
    return_as = "generator" if backend.supports_return_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    with one_blas_thread():
        yield from parallel(delayed(_run)(func, *chunk) for chunk in chunks)


def _map_on_cluster(func, chunks, backend):
    """Yield the results of a Dask cluster, in the order of the chunks.

    Joblib's own way of waiting does not end when a worker dies with data that tasks
    need. Here such tasks are submitted again, with the data.
    """
    done = 0
    # If this runs in a task of the cluster, free its slot for the tasks it waits for.
    with backend.retrieval_context():
        for attempt in range(_ATTEMPTS):
            try:
                for future in _submit(func, chunks[done:], backend.client):
                    yield _result(future)
                    done += 1
                return
            except _LostDataError as error:
                lost = error
            for chunk in chunks[done:]:
                for item in chunk:
                    if isinstance(item, Resident):
                        item.forget()
            # The scheduler may not know of the death yet.
            time.sleep(2.0**attempt / 2)
        raise WorkerLossError(
            f"workers of the cluster died during {_ATTEMPTS} attempts; look at their "
            "logs, they may have run out of memory"
        ) from lost


def _submit(func, chunks, client):
    """Submit all chunks to the cluster; return the futures of the results."""
    try:
        func = Resident(func).on(client)
        chunks = [
            [item.on(client) if isinstance(item, Resident) else item for item in chunk]
            for chunk in chunks
        ]
        return [
            client.submit(_run_on_worker, get_config(), func, *chunk, pure=False)
            for chunk in chunks
        ]
    except OSError as error:
        # Data went to a worker that was dying.
        raise _LostDataError from error


def _run_on_worker(config, func, *chunk):
    # Nested calls within a chunk go to the same cluster.
    with config_context(**config), joblib.parallel_config(backend="dask"):
        return _run(func, *chunk)


class _LostDataError(Exception):
    """A worker died with data that a task needs."""


def _result(future):
    """Wait for the result of a task on a cluster."""
    while True:
        done = Event()
        future.add_done_callback(lambda _, done=done: done.set())
        while not done.wait(1.0):
            # Ctrl-C is looked for in between.
            pass
        try:
            return future.result(timeout=_PATIENCE)
        except (CancelledError, OSError, UnboundLocalError) as error:
            # What the function raises is raised here, too. A timeout is an OSError, or,
            # where it cancels the transfer of the result, an error of Dask's variables.
            if future.status == "error":
                raise
            # The result can have died with its worker; then it is computed again.
            if future.status != "pending":
                raise _LostDataError(future.status) from error


def one_blas_thread():
    """Context in which matrix products run on one thread.

    The number of threads, which differs between processes, changes the last bits of
    a product. :func:`lpcfg_sk._parallel.map_chunks` enters the context around all
    chunks, and again within each chunk, which may run in another process. Several
    Python threads may be in the context at once; the last one to leave ends it.

    Returns
    -------
    context : context manager
    """
    return _OneBlasThread()


class _OneBlasThread:
    """Limits of threads, which some BLAS libraries keep per process, others per thread.

    Each thread therefore sets them, and only the last one to leave restores them.
    """

    _lock = Lock()
    _n_inside = 0
    _first = None

    def __enter__(self):
        cls = _OneBlasThread
        with cls._lock:
            limits = _controller().limit(limits=1, user_api="blas")
            if cls._n_inside == 0:
                cls._first = limits
            cls._n_inside += 1

    def __exit__(self, *error):
        cls = _OneBlasThread
        with cls._lock:
            cls._n_inside -= 1
            if cls._n_inside == 0:
                cls._first.restore_original_limits()


@cache
def _controller():
    # Looking for the libraries takes milliseconds, too long for every chunk.
    return ThreadpoolController()
