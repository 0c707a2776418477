"""Output of the commands: results on stdout, progress on stderr."""

import json
import sys
import time

import numpy as np

_BAR = 30


def emit(text):
    """Write a line of results."""
    sys.stdout.write(f"{text}\n")


def emit_table(table, *, as_json=False, index=True):
    """Write a table as text, or as JSON."""
    if as_json:
        frame = table.reset_index() if index else table
        rows = json.loads(frame.to_json(orient="records"))
        emit(json.dumps(rows, indent=2))
        return
    rounded = table.copy()
    for column in rounded.select_dtypes("number"):
        values = rounded[column].to_numpy(dtype=float, na_value=np.nan)
        whole = np.all(np.mod(values[~np.isnan(values)], 1) == 0)
        style = ".0f" if whole else ".4g"
        rounded[column] = ["" if np.isnan(v) else format(v, style) for v in values]
    emit(rounded.to_string(index=index))


def watched():
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()


def say(text):
    """Write a line about the run that everyone should see."""
    sys.stderr.write(f"lpcfg-sk: {text}\n")


def note(text):
    """Write a line about the progress, on a terminal only."""
    if watched():
        sys.stderr.write(f"{text}\n")


class Progress:
    """A line on stderr that counts the steps of long work, on a terminal only.

    Parameters
    ----------
    what : str
        What is counted.
    total : int, default=None
        Number of steps, where it is known.
    shown : bool, default=True
        Whether to write at all.
    """

    def __init__(self, what, total=None, *, shown=True):
        self.what = what
        self.total = total
        self.shown = shown and watched()
        self.done = 0
        self.begin = time.monotonic()

    def __enter__(self):
        self.step(0)
        return self

    def __exit__(self, *_):
        if self.shown:
            sys.stderr.write("\r\033[K")

    def step(self, n=1):
        """Count finished steps."""
        self.done += n
        if not self.shown:
            return
        count, bar = str(self.done), ""
        if self.total:
            filled = min(_BAR, _BAR * self.done // self.total)
            count += f"/{self.total}"
            bar = f" [{'#' * filled}{'.' * (_BAR - filled)}]"
        seconds = time.monotonic() - self.begin
        sys.stderr.write(f"\r\033[K{self.what}{bar} {count}, {seconds:.0f} s")
        sys.stderr.flush()
