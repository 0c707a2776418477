"""Compiled loops over plain arrays; nothing here imports the rest of the package."""

import atexit
import shutil
import tempfile

import numba


def _probe():
    """Stand for the functions of this folder."""


def _find_cache_folder():
    """Keep numba from refusing to compile where it has no folder for its cache.

    Where neither ``NUMBA_CACHE_DIR`` nor the folder of the package nor that of the
    user can be written to, kernels are kept for this process alone. The folder is a
    new one, readable by the user only: numba runs what it finds in its cache.
    """
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="lpcfg_sk-numba-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder


_find_cache_folder()
