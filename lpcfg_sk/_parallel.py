"""The one place that knows how work is spread over threads and machines.

Work is cut into chunks by its amount, never by the number of jobs, and results
are joined in the order of the chunks: the same bits come out on one core, on two,
or on a cluster (``joblib.parallel_config(backend="dask")``).
"""

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["CHUNK_WORK", "cut_by_work", "map_chunks", "sum_over_chunks"]

#: Nodes (or units of like cost) in a chunk: long enough that starting a task is
#: free, short enough that two cores share even a small treebank.
CHUNK_WORK = 20_000


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


def map_chunks(func, chunks, *, n_jobs=None):
    """Yield ``func(*chunk)`` for each chunk, in the order of the chunks.

    Parameters
    ----------
    func : callable
        Called with the items of a chunk; releases the GIL in its kernels.
    chunks : iterable of tuple
        Arguments of each call.
    n_jobs : int, default=None
        As in joblib; None means 1 unless a ``joblib.parallel_config`` says more.

    Yields
    ------
    result : object
    """
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    yield from parallel(delayed(func)(*chunk) for chunk in chunks)


def sum_over_chunks(func, chunks, *, n_jobs=None):
    """Add the statistics of all chunks, in the order of the chunks.

    Parameters
    ----------
    func : callable
        Returns a tuple of arrays, new for each call.
    chunks : iterable of tuple
        Arguments of each call.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    total : tuple of ndarray
        Elementwise sums; None where there is no chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk._parallel import sum_over_chunks
    >>> sum_over_chunks(lambda a, b: (np.arange(a, b).sum(),), [(0, 3), (3, 5)])
    (np.int64(10),)
    """
    total = None
    for part in map_chunks(func, chunks, n_jobs=n_jobs):
        if total is None:
            total = list(part)
        else:
            for i, array in enumerate(part):
                total[i] += array
    return None if total is None else tuple(total)
