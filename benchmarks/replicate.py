"""Every table, figure and numeric claim of the five papers, by one command.

``python benchmarks/replicate.py --list`` names them; ``replicate.py 001-table1`` runs
one, ``replicate.py all`` all of them. Each prints a table with the paper's figure,
ours, and what differs and why, writes it as CSV and PNG into ``--out``, and says
whether what must hold of it does. Trees are those of the sample of the Penn Treebank,
or ``--treebank TRAIN TEST`` (``--format export`` for NEGRA); a replication whose corpus
is absent says so and is passed over.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pandas as pd
from papers import automata, margin, pivot, spectral
from papers._registry import REPLICATIONS, Setting

MODULES = (spectral, pivot, margin, automata)
_MOST_ROWS = 60


def replicate(id, setting, out=None):
    """Run one replication.

    Parameters
    ----------
    id : str
        An id of ``--list``.
    setting : Setting
        Size and corpora.
    out : path, default=None
        Folder of the CSV and the PNG.

    Returns
    -------
    table : DataFrame
        What is to be compared.
    holds : bool
        Whether the claim holds.
    warned : Counter
        The warnings of the run: literal forms of the papers often do not converge.
    """
    item = REPLICATIONS[id]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = item.run(setting)
    warned = Counter(f"{w.category.__name__}: {w.message}" for w in caught)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        table.to_csv(Path(out) / f"{id}.csv", index=False)
        _draw(item, table, Path(out) / f"{id}.png")
    return table, bool(item.holds(table)), warned


def _draw(item, table, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    item.draw(table, figure)
    figure.suptitle(item.title, fontsize="medium")
    figure.savefig(path, dpi=120)


def _show(table):
    """Print a table, with what is the same in all rows below it."""
    same = [c for c in table if len(table) > 1 and table[c].nunique(dropna=False) == 1]
    with pd.option_context("display.width", 120, "display.max_colwidth", 60):
        rows = table.drop(columns=same)
        text = rows.to_string(
            index=False, na_rep="", float_format="%.4g", max_rows=_MOST_ROWS
        )
        print(text)
        if len(rows) > _MOST_ROWS:
            print(f"{len(rows)} rows; the CSV file has all")
    for column in same:
        value = table[column].iloc[0]
        if pd.notna(value):
            text = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{column}: {text}")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help='ids, or "all"')
    parser.add_argument("--list", action="store_true", help="name all ids and stop")
    parser.add_argument("--quick", action="store_true", help="minutes, not hours")
    parser.add_argument("--out", default="benchmarks/results", help="folder of results")
    parser.add_argument("--treebank", nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--format", default="ptb", help="format of --treebank")
    parser.add_argument("--data", help="folder of corpora, else $LPCFG_SK_DATA")
    args = parser.parse_args(argv)
    if args.list or not args.ids:
        for id in sorted(REPLICATIONS):
            print(f"{id:22} {REPLICATIONS[id].title}")
        return 0
    unknown = set(args.ids) - {*REPLICATIONS, "all"}
    if unknown:
        parser.error(f"no such id: {', '.join(sorted(unknown))}; --list names them")
    ids = sorted(REPLICATIONS) if "all" in args.ids else args.ids
    size = "quick" if args.quick else "full"
    options = {"treebank": args.treebank, "format": args.format, "data": args.data}
    # One setting for all: some figures are drawn from one table.
    setting, results = Setting(size, **options), []
    for id in ids:
        item, begin = REPLICATIONS[id], time.process_time()
        setting.notes.clear()
        print(f"\n{id}: {item.title}")
        try:
            table, holds, warned = replicate(id, setting, args.out)
        except FileNotFoundError as error:
            print(f"passed over: {error}")
            results.append((id, "passed over", 0.0))
            continue
        _show(table)
        for note in setting.notes:
            print(note)
        for text, n in warned.items():
            print(f"warned {n} times of {text}")
        result = "holds" if holds else "DOES NOT HOLD"
        print(f"{result}: {item.claim}", flush=True)
        results.append((id, result, time.process_time() - begin))
    summary = pd.DataFrame(results, columns=["id", "claim", "CPU s"])
    if len(summary) > 1:
        print(f"\n{summary.round(1).to_string(index=False)}")
    return int((summary["claim"] == "DOES NOT HOLD").sum())


if __name__ == "__main__":
    sys.exit(main())
