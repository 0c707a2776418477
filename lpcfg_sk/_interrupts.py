"""Interruptions that always arrive as KeyboardInterrupt."""

import contextlib


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
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
