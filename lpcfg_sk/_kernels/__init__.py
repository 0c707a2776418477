"""Compiled loops over plain arrays; nothing here imports the rest of the package.

Families of modules:

- treebanks: ``_columns``, ``_text``, ``_scanner``, ``_negra``, ``_binarize``;
- bracket scores: ``_brackets_match``;
- context-free grammars: ``_cfg_inside``, ``_cfg_counts``, ``_cfg_best``;
- pruning of charts: ``_coarse_words``, ``_coarse_inside``, ``_coarse_outside``;
- charts of L-PCFGs: ``_chart_spans``, ``_chart_forest``, ``_chart_inside``;
- decoders: ``_decode``, ``_decode_brackets``, ``_kbest``;
- given trees under L-PCFGs: ``_lpcfg_trees``, ``_em``, ``_em_batches``;
- moments and convex problems: ``_moments``, ``_pivot``, ``_aggregate``;
- tree automata: ``_wta_charts``, ``_wta_tensors``;
- shared by all: ``_shared``; ``_compilation`` reports when kernels are compiled.
"""

import atexit
import shutil
import tempfile

import numba

from lpcfg_sk._kernels._compilation import listen


def _probe():
    """Stand in for the kernels of this folder when its cache is looked for."""


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


def kernel_folder():
    """Return the folder in which compiled kernels are stored."""
    return numba.njit(cache=True)(_probe)._cache.cache_path


_find_cache_folder()
listen()
