"""The command line: ``lpcfg-sk`` and ``python -m lpcfg_sk``.

Only the module of the chosen command is imported, so that help and usage errors
appear at once.
"""

import contextlib
import os
import sys
import warnings
from importlib import import_module

from lpcfg_sk._cli._arguments import make_argument_parser
from lpcfg_sk._interrupts import interruptible

__all__ = ["main"]


def main(argv=None):
    """Run a command.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; by default those of the process.

    Returns
    -------
    status : int
        0 on success, 1 after an error in the input, 2 after a usage error, 130 after
        an interruption.
    """
    _open_streams()
    try:
        arguments = make_argument_parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code or 0
    try:
        with interruptible(), warnings.catch_warnings():
            run = getattr(import_module(arguments.module), arguments.command)
            warnings.simplefilter("default")
            warnings.showwarning = _show_warning
            run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # The reader closed the pipe early, as ``head`` does.
        _discard_output()
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        _complain(error)
        _flush_or_discard()
        return 1
    return 0


def _flush_or_discard():
    """Flush the output; discard what cannot be written."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _discard_output()


def _discard_output():
    """Keep Python from failing again at exit, when it writes the rest."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams():
    """Open streams that the caller closed, or another file would get their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Open until the process ends, as the stream itself would be.
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


def _show_warning(message, category, filename, lineno, file=None, line=None):
    _complain(f"warning: {message}")


def _complain(message):
    if isinstance(message, OSError) and message.filename and message.strerror:
        # Leave out the number of the error.
        message = f"{message.filename}: {message.strerror}"
    text = " ".join(str(message).split())
    # Standard error may be closed, too.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"lpcfg-sk: {text}\n")
