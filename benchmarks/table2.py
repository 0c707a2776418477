"""Table 2 of Cohen and Collins (2014) on Brown, beside the paper's own figures.

Perplexities on the second half of dev, one running stream of tokens, words seen once
in training are unknown, unknown outcomes are skipped and nothing else.  The number of
iterations is chosen on the first half of dev.

Usage: python benchmarks/table2.py [--data DIR] [--m 2 4 8 16 32 128 256]
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

from lpcfg_sk.language_model import AggregateMarkovLM, KneserNeyLM

SIZES = [2, 4, 8, 16, 32, 128, 256]
PAPER = {
    "EM": dict(zip(SIZES, [737, 599, 488, 468, 430, 388, 365], strict=True)),
    "pivot": dict(zip(SIZES, [852, 718, 605, 559, 537, 426, 597], strict=True)),
    "pivot+EM": dict(zip(SIZES, [758, 582, 502, 425, 374, 310, 327], strict=True)),
}
PAPER_KN = {2: 408, 3: 386}
MAXIMUM_LIKELIHOOD = {"prior": None, "unigram_weight": 1e-3}
# Held-out data ends EM long before this.
ENOUGH = {"max_iter": 500}
MODELS = {
    "EM": {"init": "random", **ENOUGH, **MAXIMUM_LIKELIHOOD},
    "EM, priors": {"init": "random", **ENOUGH},
    "pivot": {"init": "pivot", "max_iter": 0, **MAXIMUM_LIKELIHOOD},
    "pivot+EM": {"init": "pivot", **ENOUGH, **MAXIMUM_LIKELIHOOD},
    "pivot+EM, priors": {"init": "pivot", **ENOUGH},
}


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split() for line in lines]


def evaluate(name, m, model, train, first, second, paper):
    begin = time.process_time()
    if isinstance(model, KneserNeyLM):
        model.fit(train)
    else:
        model.fit(train, X_val=first)
    seconds = time.process_time() - begin
    perplexity = model.perplexity(second)
    return {
        "model": name,
        "m": m,
        "perplexity": perplexity,
        "paper": paper,
        "ratio": perplexity / paper if paper else np.nan,
        "zero events": model.event_report(second).n_zero,
        "concave steps": getattr(model, "n_pivot_iter_", None),
        "EM iterations": getattr(model, "n_iter_", None),
        "CPU seconds": seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.environ.get("LPCFG_SK_DATA", "data"))
    parser.add_argument("--m", nargs="+", type=int, default=SIZES)
    arguments = parser.parse_args()
    folder = Path(arguments.data) / "brown"
    train, dev = read(folder / "train.txt"), read(folder / "dev.txt")
    half = np.searchsorted(np.cumsum([len(s) for s in dev]), 100_000)
    first, second = dev[:half], dev[half:]
    for options in MODELS.values():  # compile before timing
        AggregateMarkovLM(2, random_state=0, **options).fit(train[:200])
    rows = []
    for m in arguments.m:
        for name, options in MODELS.items():
            model = AggregateMarkovLM(m, random_state=0, **options)
            paper = PAPER.get(name, {}).get(m)
            rows.append(evaluate(name, m, model, train, first, second, paper))
    for min_count, what in ((2, "UNK a word, as above"), (1, "singletons kept")):
        for order in (2, 3):
            model = KneserNeyLM(order, min_count=min_count)
            # only a vocabulary with singletons fits the paper's Kneser-Ney rows
            paper = PAPER_KN[order] if min_count == 1 else None
            name = f"Kneser-Ney {order}-gram, {what}"
            rows.append(evaluate(name, None, model, train, first, second, paper))
    table = pd.DataFrame(rows)
    with pd.option_context("display.width", 140, "display.max_rows", None):
        print(table.to_string(index=False, float_format="%.2f", na_rep=""))
    print()
    wide = table.dropna(subset="m").pivot(
        index="model", columns="m", values="perplexity"
    )
    print(wide.round(0).astype(int).to_string())


if __name__ == "__main__":
    main()
