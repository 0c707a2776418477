"""What a replication is: an id, a function that makes a table, and a check of it."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lpcfg_sk import read_treebank
from lpcfg_sk.datasets import load_brown, load_penn_sample, load_toy

#: Replications by id.
REPLICATIONS = {}


class Replication(NamedTuple):
    """A table, figure or claim of a paper.

    Attributes
    ----------
    id : str
        Number of the paper, and what it is there.
    title : str
        One line.
    run : callable
        ``run(setting)`` returns a DataFrame with the columns "paper", "ours" and
        "differs", beside others.
    claim : str
        What must hold of the table.
    holds : callable
        ``holds(table)`` says whether it does.
    draw : callable or None
        ``draw(table, figure)`` draws the table.
    """

    id: str
    title: str
    run: Callable
    claim: str
    holds: Callable
    draw: Callable | None


def replicates(id, title, *, claim, holds, draw=None):
    """Register a function as the replication of something in a paper."""

    def register(run):
        REPLICATIONS[id] = Replication(id, title, run, claim, holds, draw)
        return run

    return register


class Setting:
    """How large a replication is, and where its corpora are.

    Parameters
    ----------
    size : {"tiny", "quick", "full"}
        "tiny" runs in seconds, on trees that come with the library; "quick" in
        minutes; "full" as long as the figures of the documentation take.
    treebank : pair of paths, default=None
        Training and test trees in place of the sample of the Penn Treebank.
    format : str, default="ptb"
        Format of `treebank`, see :func:`lpcfg_sk.read_treebank`.
    data : path, default=None
        Folder of corpora; ``$LPCFG_SK_DATA`` where None. The Penn sample and Brown are
        looked for among the data of NLTK, too.
    """

    def __init__(self, size="quick", *, treebank=None, format="ptb", data=None):
        self.size = size
        self._treebank = treebank
        self._format = format
        default = Path(__file__).resolve().parents[3] / "shared" / "data"
        self._data = Path(data or os.environ.get("LPCFG_SK_DATA", default))

    def pick(self, tiny, quick, full):
        """Return the value for the size of this run."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.size]

    def trees(self):
        """Training and test trees, and where they are from."""
        if self._treebank is not None:
            train, test = self._treebank
            trees = [read_treebank(p, format=self._format) for p in (train, test)]
            return (*trees, str(train))
        if self.size == "tiny":
            toy = load_toy(400)
            return toy[:300], toy[300:], "toy"
        train, dev = (self._penn(part) for part in ("train", "dev"))
        n = self.pick(None, 1000, len(train))
        return train[:n], dev[: self.pick(None, 120, len(dev))], f"Penn sample ({n})"

    def _penn(self, part):
        if (self._data / "wsj").exists():
            return read_treebank(self.path("wsj", part))
        return load_penn_sample(part)

    def path(self, *parts):
        """Path of a corpus; FileNotFoundError with what to do where it is absent."""
        path = self._data.joinpath(*parts)
        if not path.exists():
            raise FileNotFoundError(
                f"corpus {'/'.join(parts)} not found under {self._data}; set "
                "LPCFG_SK_DATA"
            )
        return path

    def brown(self):
        """Training sentences and the two halves of dev, as in paper 001, section 8."""
        if self.size == "tiny":
            sentences = load_toy(600).sentences()
            return sentences[:400], sentences[400:500], sentences[500:]
        if (self._data / "brown").exists():
            train, dev = ([*_lines(self.path("brown", f"{p}.txt"))] for p in PARTS)
        else:
            train, dev = (load_brown(part) for part in PARTS)
        half = int(np.searchsorted(np.cumsum([len(s) for s in dev]), 100_000))
        return train, dev[:half], dev[half:]


PARTS = ("train", "dev")


def _lines(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield line.split()


def progress(items, title):
    """Yield the items, and report on standard error how many are done."""
    items, begin = list(items), time.monotonic()
    for done, item in enumerate(items):
        _report(f"{title}: {done} of {len(items)}, {time.monotonic() - begin:.0f} s")
        yield item
    _report(f"{title}: {len(items)} of {len(items)}, {time.monotonic() - begin:.0f} s")
    if sys.stderr.isatty():
        sys.stderr.write("\n")


def _report(line):
    sys.stderr.write(f"\r{line}" if sys.stderr.isatty() else f"{line}\n")
    sys.stderr.flush()


def cpu(call, *args, **options):
    """Return the result of a call and its CPU seconds."""
    begin = time.process_time()
    result = call(*args, **options)
    return result, time.process_time() - begin
