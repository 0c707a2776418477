"""Decompositions of automata that were made lately, found by their content.

A search over `n_states` fits a clone of its estimator per candidate and fold, and
clones share no objects. The automata of one fold are equal, though, and so are their
decompositions.
"""

from collections import OrderedDict
from hashlib import blake2b
from threading import Lock

import numpy as np

from lpcfg_sk.automata._svta import hankel_svd

#: Bytes of the decompositions that a process keeps.
_MAX_BYTES = 1 << 29


class RecentResults:
    """The results used last, up to a number of bytes, shared by all threads.

    Parameters
    ----------
    max_bytes : int
        Results are dropped, the one used least recently first, while they take more.
    """

    def __init__(self, max_bytes):
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries = OrderedDict()

    def clear(self):
        """Forget all results."""
        with self._lock:
            self._entries.clear()

    def get(self, key, compute):
        """Return the result of a key; compute it in one thread where it is unknown.

        Parameters
        ----------
        key : tuple
            Determines the result.
        compute : callable
            Returns the result and the bytes that it takes. Nothing is kept where it
            raises.

        Returns
        -------
        object
            Shared by all callers, who must not change it.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if not entry.known:
                try:
                    entry.result, entry.n_bytes = compute()
                    entry.known = True
                finally:
                    self._tidy(None if entry.known else key)
            return entry.result

    def _tidy(self, failed):
        with self._lock:
            self._entries.pop(failed, None)
            total = sum(entry.n_bytes for entry in self._entries.values())
            while total > self.max_bytes:
                total -= self._entries.popitem(last=False)[1].n_bytes


class _Entry:
    """A result, or the promise of one while a thread computes it."""

    def __init__(self):
        self.lock, self.known, self.result, self.n_bytes = Lock(), False, None, 0


RECENT = RecentResults(_MAX_BYTES)


def content_key(wta):
    """Hash all that an automaton consists of, except for the names of its states.

    Parameters
    ----------
    wta : WTA
        The automaton.

    Returns
    -------
    bytes
    """
    parts = [("alpha", wta.alpha), ("omega", wta.omega_matrix)]
    for tensor in wta.tensors:
        parts += tensor.arrays().items()
    shapes = [(name, array.shape, array.dtype.str) for name, array in parts]
    digest = blake2b(
        repr((wta.words, wta.labels, wta.unknown_word, shapes)).encode(
            errors="surrogatepass"
        )
    )
    for _, array in parts:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def recent_svd(wta, gamma, rank_tol):
    """Decompose t ↦ γ^size(t) f(t), or find the decomposition of an equal automaton.

    Parameters
    ----------
    wta : WTA
        The automaton of f.
    gamma : float
        Weight of an inner node.
    rank_tol : float or None
        As in `hankel_svd`.

    Returns
    -------
    HankelSVD
        Its arrays are read-only.
    """
    weighted = wta.reweight(gamma)

    def compute():
        svd = hankel_svd(weighted, rank_tol)
        arrays = [part for part in svd if isinstance(part, np.ndarray)]
        for array in arrays:
            array.flags.writeable = False
        if svd.wta is weighted:
            # The caller has an equal one, which need not be kept.
            svd = svd._replace(wta=None)
        else:
            arrays += [svd.wta.alpha, svd.wta.omega_matrix]
            arrays += [a for t in svd.wta.tensors for a in t.arrays().values()]
        return svd, sum(array.nbytes for array in arrays)

    svd = RECENT.get((content_key(wta), float(gamma), rank_tol), compute)
    return svd if svd.wta is not None else svd._replace(wta=weighted)


def recent_number(wta, function):
    """Compute a number of an automaton, or find that of an equal automaton.

    Parameters
    ----------
    wta : WTA
        The automaton.
    function : callable
        Takes the automaton and returns the number.

    Returns
    -------
    float
    """
    key = content_key(wta), function.__qualname__
    return RECENT.get(key, lambda: (function(wta), 0))
