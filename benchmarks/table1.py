"""Table 1 of Cohen and Collins (2014) on the WSJ sample, beside the paper's figures.

Labelled F1 on dev, all lengths, without the root.  The paper trains on WSJ sections
2-21 (39,832 trees) and gives section 22 with iterations chosen on it; here training has
3,396 trees and the number of EM iterations is chosen on held-out training trees, so
rows compare with each other and only loosely with the paper.

Usage: python benchmarks/table1.py [--data DIR] [--m 8 16 24 32]
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import pandas as pd

from lpcfg_sk import EMLPCFG, PivotLPCFG, SpectralLPCFG, make_parser, read_treebank
from lpcfg_sk.exceptions import ConvergenceWarning

SIZES = [8, 16, 24, 32]
PAPER = {
    "EM": dict(zip(SIZES, [86.69, 88.32, 88.35, 88.56], strict=True)),
    "spectral": dict(zip(SIZES, [85.60, 87.77, 88.53, 88.82], strict=True)),
    "pivot": dict(zip(SIZES, [83.56, 86.00, 86.87, 86.40], strict=True)),
    "pivot+EM": dict(zip(SIZES, [86.83, 88.14, 88.64, 88.55], strict=True)),
}
PAPER_ITERATIONS = {
    "EM": dict(zip(SIZES, [40, 30, 30, 20], strict=True)),
    "pivot+EM": dict(zip(SIZES, [2, 6, 2, 2], strict=True)),
}


def learners(m):
    return {
        "EM": EMLPCFG(m, random_state=0),
        "spectral": SpectralLPCFG(m),
        "pivot": PivotLPCFG(m),
        "pivot+EM": EMLPCFG(init=PivotLPCFG(m), max_iter=20, random_state=0),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.environ.get("LPCFG_SK_DATA", "data"))
    parser.add_argument("--m", nargs="+", type=int, default=[8, 16])
    arguments = parser.parse_args()
    folder = Path(arguments.data) / "wsj"
    train, dev = read_treebank(folder / "train"), read_treebank(folder / "dev")
    features = make_parser(PivotLPCFG())[:-1]
    begin = time.process_time()
    X = features.fit_transform(train)
    print(f"preprocessing and features: {time.process_time() - begin:.1f} CPU seconds")
    sentences = features[:2].transform(dev)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for learner in learners(2).values():  # compile before timing
        learner.fit(X[:300]).predict(sentences[:3])
    rows = []
    for m in arguments.m:
        for name, learner in learners(m).items():
            begin = time.process_time()
            learner.fit(X)
            middle = time.process_time()
            f1 = 100 * learner.score(sentences, dev)
            iterations = getattr(learner, "n_iter_", None) if "EM" in name else None
            rows.append(
                {
                    "m": m,
                    "learner": name,
                    "F1": f1,
                    "paper": PAPER[name].get(m),
                    "EM iterations": iterations,
                    "paper iterations": PAPER_ITERATIONS.get(name, {}).get(m),
                    "training CPU s": middle - begin,
                    "parsing CPU s": time.process_time() - middle,
                }
            )
    table = pd.DataFrame(rows)
    seconds = table["training CPU s"]
    pivot = table["m"].map(seconds[table.learner == "pivot"].set_axis(arguments.m))
    table["time / pivot"] = seconds / pivot
    print(table.to_string(index=False, float_format="%.2f", na_rep=""))


if __name__ == "__main__":
    main()
