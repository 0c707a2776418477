"""Parsing: speed by phase, F1 by decoder, and what pruning costs.

``python benchmarks/parse.py train dev`` (paths of treebanks in brackets) prints three
tables, all times in CPU seconds on one thread after compilation:

* sentences per second and the phases of a parse (coarse pass and forest, inside-outside
  of the model, decoding and building of trees), for a plain PCFG and for spectral
  models of several numbers of states, relative to the PCFG of the same run, and how
  much sooner (by the clock, on an idle machine) two threads are done;
* F1 of each decoder, without the root, for PCFG, EM and spectral models;
* F1 and time with pruning, without, and with other thresholds, on the sentences of at
  most ``--length`` words (full charts of long sentences take minutes).
"""

import argparse
import time
import warnings

import pandas as pd

from lpcfg_sk import EMLPCFG, PCFG, SpectralLPCFG, make_parser, read_treebank
from lpcfg_sk._base import DECODERS
from lpcfg_sk.exceptions import ConvergenceWarning, ParseFailureWarning
from lpcfg_sk.metrics import f1_score


def timed(function, *args):
    begin = time.process_time()
    result = function(*args)
    return result, time.process_time() - begin


def phases(parser, dev):
    """Times of the phases of one learner, the best of three runs."""
    learner = parser[-1]
    words = parser[:-1].transform(dev)
    learner.predict(words[:2])
    chunks = [(i, min(i + 8, len(dev))) for i in range(0, len(dev), 8)]
    rows = []
    for _ in range(3):
        charts = learner._parser().charts(words, quick=True)
        pruned, coarse = timed(lambda c=charts: [c.pruned_rows(*x) for x in chunks])
        _, fine = timed(
            lambda c=charts, p=pruned: [
                c.posteriors(*x, y) for x, y in zip(chunks, p, strict=True)
            ]
        )
        trees, total = timed(learner.predict, words)
        rows.append((total, coarse, fine))
    total, coarse, fine = (min(column) for column in zip(*rows, strict=True))
    return {
        "sentences/s": len(dev) / total,
        "total": total,
        "coarse": coarse,
        "inside-outside": fine,
        "decode": max(total - coarse - fine, 0.0),
        "items": sum(len(p.forest.item_label) for p in pruned),
        "two threads": best_wall(learner, words, 1) / best_wall(learner, words, 2),
        "F1": 100 * f1_score(dev, trees),
    }


def best_wall(learner, words, n_jobs):
    """Return the seconds by the clock that a parse takes, the best of three."""
    learner.set_params(n_jobs=n_jobs)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        learner.predict(words)
        seconds.append(time.perf_counter() - begin)
    learner.set_params(n_jobs=None)
    return min(seconds)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("train")
    options.add_argument("dev")
    options.add_argument("--horizontal", type=int, default=0)
    options.add_argument("--states", type=int, nargs="*", default=[8, 16, 32])
    options.add_argument("--length", type=int, default=15)
    args = options.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ParseFailureWarning)
    train, dev = read_treebank(args.train), read_treebank(args.dev)

    learners = {"PCFG": PCFG()}
    learners |= {f"spectral m={m}": SpectralLPCFG(m) for m in args.states}
    parsers = {
        name: make_parser(learner, horizontal=args.horizontal).fit(train)
        for name, learner in learners.items()
    }
    table = pd.DataFrame({name: phases(p, dev) for name, p in parsers.items()}).T
    table["time / PCFG"] = table["total"] / table.loc["PCFG", "total"]
    print(table.round(2).to_string(), "\n")

    em = EMLPCFG(8, max_iter=20, random_state=0)
    parsers["EM m=8"] = make_parser(em, horizontal=args.horizontal).fit(train)
    scores = {}
    for name, parser in parsers.items():
        signed = (parser[-1].grammar_.arrays.binary < 0).any()
        scores[name] = {
            decoder: 100 * parser.set_params(learner__decoder=decoder).score(dev)
            for decoder in DECODERS
            if not (signed and decoder == "viterbi")
        }
        parser.set_params(learner__decoder="auto")
    print(pd.DataFrame(scores).T.round(2).to_string(), "\n")

    short = dev[dev.lengths <= args.length]
    rows = {}
    for name in ("PCFG", f"spectral m={args.states[0]}", "EM m=8"):
        for prune in (None, 5e-5, 3e-4, 3e-3):
            parser = parsers[name].set_params(learner__prune=prune)
            parser.predict(short[:2])
            f1, cpu = timed(parser.score, short)
            rows[name, str(prune)] = {"F1": 100 * f1, "CPU s": cpu}
    table = pd.DataFrame(rows).T.rename_axis(["model", "prune"])
    full = table["CPU s"].groupby("model", sort=False).transform("first")
    table["time / full"] = table["CPU s"] / full
    print(f"{len(short)} sentences of at most {args.length} words")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
