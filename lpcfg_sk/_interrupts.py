"""Interruptions that always arrive as KeyboardInterrupt."""

import contextlib
import contextvars
import signal
import threading

#: Seconds between two looks for a Ctrl-C.
_WAIT = 0.1

#: Arguments of the Ctrl-C that `held_back` keeps for later.
_held = []


@contextlib.contextmanager
def interruptible():
    """Raise KeyboardInterrupt where compiled code disguised one as a SystemError.

    An interruption while numba's dispatcher is at work, for example compiling, comes
    out as "SystemError: CPUDispatcher returned a result with an exception set".

    Examples
    --------
    >>> from lpcfg_sk._interrupts import interruptible
    >>> try:
    ...     with interruptible():
    ...         raise SystemError("an exception set") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    try:
        yield
    except SystemError as error:
        below = error
        while isinstance(below, SystemError):
            below = below.__cause__ or below.__context__
        if isinstance(below, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


class held_back:
    """Let Ctrl-C wait until this context ends or the next one in it begins.

    numba turns what a kernel returns into Python objects. An exception at that moment,
    which only Ctrl-C can raise, ends the process with a segmentation fault. Signals
    come to the main thread alone, so other threads need no such care.

    Examples
    --------
    >>> import signal
    >>> from lpcfg_sk._interrupts import held_back
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("to the end")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    to the end
    interrupted
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    # A class, because kernels of microseconds are called in it.
    _before = None

    def __enter__(self):
        if threading.get_ident() != threading.main_thread().ident:
            return
        before = signal.getsignal(signal.SIGINT)
        if before is _hold:
            _release(signal.default_int_handler)
        elif callable(before):
            _held.clear()
            signal.signal(signal.SIGINT, _hold)
            self._before = before

    def __exit__(self, *error):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            _release(self._before)


def in_background(function):
    """Call a function in a thread, so that Ctrl-C need not wait for its end.

    Python answers to signals between its own instructions only, and the kernel of a
    long sentence can run for a minute. After Ctrl-C the thread goes on to the end of
    the kernel, and what it returns is lost.

    Parameters
    ----------
    function : callable
        Called without arguments, in this thread where it is not the main one.

    Returns
    -------
    result : object

    Examples
    --------
    >>> from lpcfg_sk._interrupts import in_background
    >>> in_background(lambda: 1 + 1)
    2
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    outcome = []
    context = contextvars.copy_context()

    def call():
        try:
            outcome.append((context.run(function), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # The system has no room for another thread.
        return function()
    while thread.is_alive():
        thread.join(_WAIT)
        _release(signal.default_int_handler)
    result, error = outcome.pop()
    try:
        if error is not None:
            raise error
        return result
    finally:
        # Else its traceback and this frame keep each other alive, with large arrays.
        del error


def _hold(*arguments):
    _held.append(arguments)


def _release(handler):
    """Pass the Ctrl-C that was held back to a handler."""
    if _held:
        arguments = _held[0]
        _held.clear()
        handler(*arguments)
