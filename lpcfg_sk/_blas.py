from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread():
    """Context in which matrix products run on one thread.

    The number of threads, which differs between processes, changes the last bits of
    a product. :func:`lpcfg_sk._parallel.map_chunks` enters the context around all
    chunks, because leaving it in one thread would end it for the others, and again
    within each chunk, which may run in another process.

    Returns
    -------
    context : context manager
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller():
    # Looking for the libraries takes milliseconds, too long for every chunk.
    return ThreadpoolController()
