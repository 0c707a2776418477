"""What a replication is: an id, a function that makes a table, and a check of it."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk import read_treebank
from lpcfg_sk.datasets import (
    load_brown,
    load_cess_esp,
    load_penn_sample,
    load_sinica,
    load_toy,
)

#: Replications by id.
REPLICATIONS = {}


#: Files of the training and dev trees of a treebank, its loader if NLTK has it, and
#: where it is to be had if not.
TREEBANKS = {
    "WSJ": (("wsj/train", "wsj/dev"), load_penn_sample, None),
    "GUM": (
        ("gum/train.ptb", "gum/dev.ptb"),
        None,
        "take the constituency trees (folder const) of github.com/amir-zeldes/gum, and "
        "join them by its split",
    ),
    "CESS-ESP": (("cess_esp/train.ptb", "cess_esp/dev.ptb"), load_cess_esp, None),
    "Sinica": (("sinica/train.ptb", "sinica/dev.ptb"), load_sinica, None),
}


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
    draw : callable
        ``draw(table, figure)`` draws the table.
    """

    id: str
    title: str
    run: Callable
    claim: str
    holds: Callable
    draw: Callable


def replicates(id, title, *, claim, holds, draw):
    """Register a function as the replication of something in a paper."""

    def register(run):
        REPLICATIONS[id] = Replication(id, title, run, claim, holds, draw)
        return run

    return register


def draw_rows_of(xlabel, **axes):
    """Make a function that draws a dot per row, and a cross for the paper's number.

    Parameters
    ----------
    xlabel : str
        What the numbers are.
    **axes
        Properties of the axes. With ``xscale="log"``, a zero of ours is drawn at the
        rounding error of one.
    """

    def draw(table, figure):
        ax, rows, ours = figure.subplots(), np.arange(len(table)), table["ours"]
        if axes.get("xscale") == "log":
            ours = ours.clip(lower=np.finfo(float).eps)
        ax.plot(ours, rows, "o", label="ours")
        if pd.api.types.is_numeric_dtype(table["paper"]) and table["paper"].any():
            ax.plot(table["paper"], rows, "x", color="black", label="paper")
            figure.legend(loc="outside right upper")
        names = [c for c in table if c not in ("paper", "ours", "differs")]
        # What is the same in all rows does not tell them apart.
        names = [c for c in names if table[c].nunique() > 1]
        if names and len(rows) <= 20:
            texts = table[names].map(
                lambda v: f"{v:.4g}" if isinstance(v, float) else v
            )
            labels = [", ".join(map(str, row)) for row in texts.to_numpy()]
            ax.set_yticks(rows, labels=labels, fontsize="small")
        ax.set(xlabel=xlabel, ylim=(len(rows) - 0.5, -0.5), **axes)

    return draw


def curves(x, *columns, by=None, label="{}", names=None, **axes):
    """Make a function that draws columns against `x`, one colour per group.

    Parameters
    ----------
    x : str
        Column of the horizontal axis; numbers of states ``"m"`` have one of their own.
    *columns : str
        Columns to draw, the first one solid and the second one dotted; "ours" where
        there are none.
    by : str or list of str, default=None
        Columns whose values make the groups.
    label : str, default="{}"
        What the legend says of a group, after the column where there are several.
    names : dict of str to str, default=None
        What the legend says of columns in place of their names.
    **axes
        Properties of the axes, such as ``yscale="log"``.
    """

    def draw(table, figure):
        ax = figure.subplots()
        groups = [(None, table)] if by is None else table.groupby(by)
        for group, (value, rows) in enumerate(groups):
            values = value if isinstance(value, tuple) else (value,)
            for place, column in enumerate(columns or ("ours",)):
                texts = [] if by is not None and len(columns) < 2 else [column]
                texts = [(names or {}).get(text, text) for text in texts]
                texts += [] if by is None else [label.format(*values)]
                color = f"C{place if by is None else group}"
                style = {"linestyle": "-:"[place], "color": color, "marker": "."}
                ax.plot(rows[x], rows[column], label=", ".join(texts), **style)
        if x == "m":
            label_states(ax, table["m"])
        else:
            ax.set_xlabel(x)
            ax.xaxis.get_major_locator().set_params(
                integer=pd.api.types.is_integer_dtype(table[x])
            )
        ax.set(**axes)
        plain_ticks(ax)
        if len(ax.lines) > 1:
            ax.legend()

    return draw


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
        Folder of corpora; ``$LPCFG_SK_DATA`` where None. What NLTK distributes is
        looked for among its data, too.

    Attributes
    ----------
    notes : list of str
        What was left out, such as corpora that are absent.
    """

    def __init__(self, size="quick", *, treebank=None, format="ptb", data=None):
        self.size = size
        self.notes = []
        self.treebank = treebank
        self._format = format
        default = Path(__file__).resolve().parents[3] / "shared" / "data"
        self._data = Path(data or os.environ.get("LPCFG_SK_DATA", default))

    def pick(self, tiny, quick, full):
        """Return the value for the size of this run."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.size]

    def trees(self, name="WSJ"):
        """Training and test trees, and where they are from."""
        if self.treebank is not None:
            # Trees with crossing branches, of which NEGRA has many, are left out.
            on_error = "skip" if self._format == "export" else "raise"
            options = {"format": self._format, "on_error": on_error}
            trees = [read_treebank(path, **options) for path in self.treebank]
            return (*trees, str(self.treebank[0]))
        if self.size == "tiny":
            toy = load_toy(400)
            return toy[:300], toy[300:], "toy"
        train, dev = (self.part(name, part) for part in PARTS)
        n = self.pick(None, min(1000, len(train)), len(train))
        return train[:n], dev[: self.pick(None, 120, len(dev))], f"{name} ({n})"

    def each_treebank(self, *names):
        """Training and test trees of all treebanks that are here, see `trees`."""
        if self.treebank is not None or self.size == "tiny":
            return [self.trees()]
        found = []
        for name in names:
            try:
                found.append(self.trees(name))
            except FileNotFoundError as error:
                self.notes.append(f"without {name}: {error}")
        if not found:
            raise FileNotFoundError("; ".join(self.notes))
        return found

    def part(self, name, part="train"):
        """Trees of one part of a treebank by name, see `TREEBANKS`."""
        files, load, source = TREEBANKS[name]
        path = self._data / files[PARTS.index(part)]
        if path.exists():
            return read_treebank(path)
        if load is load_penn_sample:
            return load(part)
        if load is not None:
            return load()
        raise FileNotFoundError(
            f"{name} is not on this machine: {source}, save them as "
            f"{' and '.join(files)} below a folder, and give that folder by --data or "
            f"LPCFG_SK_DATA (looked for {path})"
        )

    def brown(self):
        """Training sentences and the two halves of dev, as in paper 001, section 8."""
        if self.size == "tiny":
            sentences = load_toy(600).sentences()
            return sentences[:400], sentences[400:500], sentences[500:]
        if (self._data / "brown").exists():
            parts = [self._lines(f"brown/{part}.txt") for part in PARTS]
        else:
            parts = [load_brown(part) for part in PARTS]
        return (parts[0], *halves(parts[1]))

    def new_york_times(self):
        """The same of the New York Times portion of Gigaword."""
        if self.size == "tiny":
            return self.brown()
        try:
            train, dev = (self._lines(f"nyt/{part}.txt") for part in PARTS)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                "the Gigaword corpus is licensed by the LDC (LDC2011T07): save 1.31 "
                "billion tokens of its New York Times portion as nyt/train.txt and 159 "
                "million as nyt/dev.txt, one sentence per line, and give their folder "
                f"by --data or LPCFG_SK_DATA ({error})"
            ) from error
        return (train, *halves(dev))

    def _lines(self, name):
        with open(self._data / name, encoding="utf-8") as lines:
            return [line.split() for line in lines]


def halves(sentences):
    """Split sentences where half of the tokens are over."""
    n_tokens = np.cumsum([len(sentence) for sentence in sentences])
    half = int(np.searchsorted(n_tokens, n_tokens[-1] // 2))
    return sentences[:half], sentences[half:]


PARTS = ("train", "dev")


def progress(items, title):
    """Yield the items, and draw a bar on standard error of how many are done."""
    items, begin = list(items), time.monotonic()
    for done in range(len(items) + 1):
        bar = "#" * (20 * done // len(items))
        seconds = time.monotonic() - begin
        line = f"{title} [{bar:.<20}] {done} of {len(items)}, {seconds:.0f} s"
        last = done == len(items)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line}" + "\n" * last)
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        if not last:
            yield items[done]


def plain_ticks(ax):
    """Write out the numbers of a logarithmic axis with few powers of ten."""
    if ax.get_yscale() == "log" and np.ptp(np.log10(ax.get_ylim())) < 2:
        ax.yaxis.set_minor_formatter("{x:.3g}")
        ax.yaxis.set_major_formatter("{x:.3g}")


def label_states(ax, m):
    """Give numbers of states a logarithmic axis that says them."""
    m = sorted({int(value) for value in m})
    ax.set_xscale("log", base=2)
    ax.set_xticks(m, labels=m)
    ax.minorticks_off()
    ax.set_xlabel("states m")


def cpu(call, *args, **options):
    """Return the result of a call and its CPU seconds."""
    begin = time.process_time()
    result = call(*args, **options)
    return result, time.process_time() - begin
