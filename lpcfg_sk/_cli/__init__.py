"""The command line: ``lpcfg-sk`` and ``python -m lpcfg_sk``."""

import argparse
import os
import sys
import warnings

import lpcfg_sk
from lpcfg_sk._cli import (
    _demo,
    _evaluate,
    _inspect,
    _minimize,
    _parse,
    _select,
    _train,
)

__all__ = ["main"]

_COMMANDS = (_demo, _train, _parse, _evaluate, _select, _minimize, _inspect)


def main(argv=None):
    """Run a command.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; those of the process where None.

    Returns
    -------
    status : int
        0, or 1 after an error of the input, 2 after one of the usage, 130 after an
        interruption.
    """
    parser = argparse.ArgumentParser(
        prog="lpcfg-sk",
        description="Learn grammars with latent states from treebanks, and parse.",
    )
    parser.add_argument(
        "--version", action="version", version=f"lpcfg_sk {lpcfg_sk.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        name = module.__name__.rpartition("._")[2]
        summary = module.__doc__.strip().splitlines()[0]
        command = commands.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=_Formatter
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code or 0
    return _guarded(arguments)


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Descriptions with paragraphs, and the defaults that say something."""

    def _get_help_string(self, action):
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)

    def _fill_text(self, text, width, indent):
        fill = super()._fill_text
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(fill(part, width, indent) for part in paragraphs)


def _guarded(arguments):
    """Run a command; errors of the input are one line on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        try:
            arguments.run(arguments)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _complain("interrupted")
            return 130
        except BrokenPipeError:
            # The reader of the pipe has seen enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, TypeError, OSError, MemoryError) as error:
            _complain(error)
            return 1
    return 0


def _show_warning(message, category, filename, lineno, file=None, line=None):
    _complain(f"warning: {message}")


def _complain(message):
    text = " ".join(str(message).split())
    sys.stderr.write(f"lpcfg-sk: {text}\n")
