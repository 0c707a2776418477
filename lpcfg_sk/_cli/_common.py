"""What several commands share: treebanks, learners, output."""

import argparse
import json
import os
import sys
import time

import numpy as np

from lpcfg_sk.treebank import read_treebank

_BAR = 30
LEARNERS = ("pcfg", "em", "spectral", "pivot", "pivot+em")


def add_treebank_arguments(parser, *, nargs="+", name="treebank"):
    """Arguments that say which trees to read, and how."""
    parser.add_argument(
        name, nargs=nargs, help="files, folders or patterns of bracketed trees"
    )
    parser.add_argument(
        "--format", choices=("ptb", "export"), default="ptb", help="format of the trees"
    )
    parser.add_argument("--encoding", default="utf-8", help="encoding of the trees")
    parser.add_argument(
        "--skip-errors",
        action="store_true",
        help="leave malformed trees out instead of stopping",
    )


def trees_of(arguments, paths):
    """Read the trees that the arguments name, one at least."""
    treebank = read_treebank(
        paths,
        format=arguments.format,
        encoding=arguments.encoding,
        on_error="skip" if arguments.skip_errors else "raise",
    )
    if len(treebank) == 0:
        raise ValueError(
            f"{', '.join(paths)}: no trees in the format {arguments.format!r}"
        )
    return treebank


def add_learner_arguments(parser):
    """Arguments that choose a learner and its preprocessing."""
    parser.add_argument(
        "--learner", choices=LEARNERS, default="spectral", help="which learner"
    )
    parser.add_argument(
        "--direction",
        choices=("right", "left", "head"),
        default="right",
        help="direction of the binarisation",
    )
    parser.add_argument(
        "--horizontal", type=int, default=1, help="siblings that a label remembers"
    )
    parser.add_argument(
        "--vertical", type=int, default=1, help="ancestors that a label remembers"
    )
    add_jobs_argument(parser)
    parser.add_argument("--seed", type=int, default=0, help="random seed")


def add_jobs_argument(parser):
    """Argument for the number of threads."""
    parser.add_argument(
        "--jobs",
        type=n_jobs,
        help="number of threads, -1 for one a core (default: 1)",
    )


def learner_of(arguments, m, *, verbose=False):
    """Parser pipeline that the arguments describe."""
    from lpcfg_sk import EMLPCFG, PCFG, PivotLPCFG, SpectralLPCFG, make_parser

    common = {"n_jobs": arguments.jobs, "verbose": int(verbose)}
    seeded = {**common, "random_state": arguments.seed}
    learner = {
        "pcfg": lambda: PCFG(**common),
        "em": lambda: EMLPCFG(m, **seeded),
        "spectral": lambda: SpectralLPCFG(m, **seeded),
        "pivot": lambda: PivotLPCFG(m, **common),
        "pivot+em": lambda: EMLPCFG(m, init=PivotLPCFG(m, **common), **seeded),
    }[arguments.learner]()
    return make_parser(
        learner,
        direction=arguments.direction,
        horizontal=arguments.horizontal,
        vertical=arguments.vertical,
    )


def load_parser(path):
    """Parser pipeline of a file that train wrote."""
    from sklearn.pipeline import Pipeline

    from lpcfg_sk.persistence import load

    parser = load(path)
    if not isinstance(parser, Pipeline):
        raise ValueError(
            f"{path} holds a {type(parser).__name__}; expected a parser with its "
            "preprocessing, as train and save(make_parser(...)) write it"
        )
    return parser


def positive(text):
    """Whole number from 1 on."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def positive_list(text):
    """Whole numbers from 1 on, separated by commas."""
    return [positive(part) for part in text.split(",")]


def n_jobs(text):
    """Number of threads as joblib takes it."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of threads; expected one from 1 on, or -1 for one "
            "a core"
        )
    return value


def output_file(text):
    """Path of a file in a folder that exists: known before the work, not after it."""
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is a folder; expected the name of a file"
        )
    folder = os.path.dirname(text) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder!r}")
    return text


def emit(text):
    """Write a line of results."""
    sys.stdout.write(f"{text}\n")


def emit_table(table, *, as_json=False, index=True):
    """Write a table for a person, or as JSON for a program."""
    if as_json:
        frame = table.reset_index() if index else table
        rows = json.loads(frame.to_json(orient="records"))
        emit(json.dumps(rows, indent=2))
        return
    rounded = table.copy()
    for column in rounded.select_dtypes("number"):
        values = rounded[column].to_numpy(dtype=float, na_value=np.nan)
        whole = np.all(np.mod(values[~np.isnan(values)], 1) == 0)
        rounded[column] = [_number(v, whole) for v in values]
    emit(rounded.to_string(index=index))


def _number(value, whole):
    if np.isnan(value):
        return ""
    if whole:
        return f"{value:.0f}"
    return f"{value:.4g}"


def watched():
    """Whether a person sees what is written to stderr."""
    return sys.stderr.isatty()


def note(text):
    """Say something about the progress, to a person who watches."""
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
        """Count steps that are done."""
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
