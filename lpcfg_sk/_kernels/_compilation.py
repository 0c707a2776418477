"""Report that kernels are being compiled, hold Ctrl-C back, survive a full disk.

numba compiles a kernel when it is first called and stores the code on disk. It triggers
an event around each compilation, and none if the code is found on disk. The garbage
collector is switched off meanwhile: the compiler makes millions of small objects, most
of which live as long as it runs, and scanning them would take a tenth of the time.
"""

import contextlib
import gc
import os
import sys
import tempfile
import threading
import time

from numba.core import event

from lpcfg_sk._interrupts import held_back

__all__ = ["CompilationListener", "InterruptionListener", "listen"]

#: "0" never writes, "1" always does; by default tests of other programs stay quiet.
VARIABLE = "LPCFG_SK_COMPILE_MESSAGES"
#: Seconds of compilation before the first line, and between later ones.
_PATIENCE = 1.0
_INTERVAL = 5.0
#: Seconds of compilation after which its garbage is collected.
_COLLECTED_EVERY = 20.0
#: Free disk space to require, in bytes; no kernel needs as much.
_ROOM = 2**21


class CompilationListener(event.Listener):
    """Reports the compilation of this package's kernels on standard error.

    Nothing is written where all kernels are found on disk, nor if compiling takes less
    than a second.
    """

    def __init__(self):
        self.n_kernels = 0
        self.seconds = 0.0
        self._depth = 0
        self._collecting = False
        self._uncollected = 0.0
        self._begin = 0.0
        self._last_line = None

    def on_start(self, event):
        """Begin to compile a kernel."""
        dispatcher = event.data["dispatcher"]
        if not _is_own(dispatcher):
            return
        if self._depth == 0:
            self._begin = time.monotonic()
            self._collecting = gc.isenabled()
            gc.disable()
        self._depth += 1
        cache = dispatcher._cache
        if cache.cache_path is not None and not _has_room(cache.cache_path):
            # The kernel is kept for this process alone; storing it would raise.
            cache.disable()

    def on_end(self, event):
        """Count a kernel, and write a line about it from time to time."""
        if not _is_own(event.data["dispatcher"]):
            return
        self._depth -= 1
        self.n_kernels += 1
        now = time.monotonic()
        # A kernel that another one calls is part of the time of that one.
        seconds = self.seconds + now - self._begin
        if self._depth == 0:
            self.seconds = seconds
            if self._collecting:
                self._enable_collector(now - self._begin)
        if self._last_line is None:
            if seconds > _PATIENCE:
                self._say(
                    "compiling kernels for this machine, once per installation: up to "
                    "a minute"
                )
        elif now - self._last_line > _INTERVAL:
            self._say(f"compiled {self.n_kernels} kernels in {seconds:.0f} s")

    def _enable_collector(self, seconds):
        """Switch the garbage collector on without scanning all that is new.

        Freezing and unfreezing moves all objects to the oldest generation. That is
        collected here from time to time, because what a compilation leaves takes some
        10 MB per second.
        """
        self._uncollected += seconds
        if self._uncollected > _COLLECTED_EVERY:
            gc.collect()
            self._uncollected = 0.0
        elif gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        gc.enable()

    def _say(self, text):
        self._last_line = time.monotonic()
        wanted = os.environ.get(VARIABLE)
        if wanted == "0" or (wanted != "1" and "pytest" in sys.modules):
            return
        with contextlib.suppress(AttributeError, OSError, ValueError):
            # Standard error may be closed.
            sys.stderr.write(f"lpcfg_sk: {text}\n")
            sys.stderr.flush()


class InterruptionListener(event.Listener):
    """Lets Ctrl-C wait for the end of a step of the compiler.

    LLVM calls functions of Python when it has made machine code. An exception in one of
    them, which only Ctrl-C can raise, is lost, and the program would go on as if there
    had been none. numba compiles and loads under a lock, which each step takes again.
    """

    def __init__(self):
        self._steps = []

    def on_start(self, event):
        """Hold Ctrl-C back, after raising what was held back before."""
        if threading.current_thread() is threading.main_thread():
            step = held_back()
            step.__enter__()
            self._steps.append(step)

    def on_end(self, event):
        """Raise what the outermost step has held back."""
        if self._steps and threading.current_thread() is threading.main_thread():
            self._steps.pop().__exit__()


def _is_own(dispatcher):
    function = getattr(dispatcher, "py_func", None)
    # Functions that are made by `exec` have no module.
    module = getattr(function, "__module__", None) or ""
    return module.startswith(__package__)


def _has_room(folder):
    """Whether a folder has room for a kernel; it can be full, read-only or gone."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
            file.flush()
    except OSError:
        return False
    return True


def listen():
    """Report compilations, and hold Ctrl-C back in them, from now on."""
    event.register("numba:compile", CompilationListener())
    event.register("numba:compiler_lock", InterruptionListener())
