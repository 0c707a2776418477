"""All parsers side by side: accuracy, speed, memory.

    python benchmarks/parser.py TRAIN DEV [--models PCFG EM ...]

Each parser runs in a process of its own, once on a few trees to compile, then on all.
Times are CPU seconds of one thread. F1 counts all sentences and not the root; EVALB
leaves out sentences whose words differ, as when a tag makes a word punctuation on one
side only.
"""

import argparse
import multiprocessing
import os
import pickle
import resource
import time

import pandas as pd

MODELS = ("PCFG", "EM", "Spectral", "Pivot", "Pivot + EM", "fast", "accurate", "best")


def make(name):
    from lpcfg_sk import (
        EMLPCFG,
        PCFG,
        PivotLPCFG,
        SpectralLPCFG,
        make_ensemble,
        make_parser,
    )

    if name in ("fast", "accurate", "best"):
        return make_ensemble(name)
    learner = {
        "PCFG": lambda: PCFG(),
        "EM": lambda: EMLPCFG(16, random_state=0),
        "Spectral": lambda: SpectralLPCFG(16, random_state=0),
        "Pivot": lambda: PivotLPCFG(16),
        "Pivot + EM": lambda: EMLPCFG(
            16,
            init=PivotLPCFG(16),
            max_iter=2,
            tol=None,
            validation_fraction=None,
            random_state=0,
        ),
    }[name]()
    # Cross-validation on training trees, see docs/model_selection.rst.
    memory = 1 if name == "PCFG" else 20
    return make_parser(learner, horizontal=1, memory_min_count=memory)


def measure(name, train_path, dev_path, pipe):
    from lpcfg_sk import read_treebank

    train, dev = read_treebank(train_path), read_treebank(dev_path)
    make(name).fit(train[:300]).predict(dev[:10])
    begin = time.process_time()
    parser = make(name).fit(train)
    fitted = time.process_time()
    predicted = parser.predict(dev)
    parsed = time.process_time()
    pipe.send_bytes(
        pickle.dumps(
            (
                predicted,
                fitted - begin,
                len(dev) / (parsed - fitted),
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            )
        )
    )
    pipe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("dev")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    arguments = parser.parse_args()
    from lpcfg_sk import read_treebank
    from lpcfg_sk.metrics import bootstrap_ci, paired_bootstrap, parseval_summary

    gold = read_treebank(arguments.dev)
    context = multiprocessing.get_context("spawn")
    rows, trees = {}, {}
    for name in arguments.models:
        here, there = context.Pipe(duplex=False)
        job = context.Process(
            target=measure, args=(name, arguments.train, arguments.dev, there)
        )
        job.start()
        there.close()
        predicted, fit, speed, memory = pickle.loads(here.recv_bytes())
        job.join()
        interval = bootstrap_ci(gold, predicted, random_state=0)
        summary = parseval_summary(gold, predicted)
        trees[name] = predicted
        rows[name] = {
            "F1": 100 * interval.estimate,
            "low": 100 * interval.low,
            "high": 100 * interval.high,
            "EVALB": summary.iloc[0]["f1"],
            "EVALB <=40": summary.iloc[-1]["f1"],
            "fit CPU s": fit,
            "sentences / CPU s": speed,
            "peak MB": memory,
        }
        print(pd.DataFrame(rows).T.round(2).to_string(), flush=True)
    best = max(rows, key=lambda name: rows[name]["F1"])
    for name, predicted in trees.items():
        if name != best:
            difference = paired_bootstrap(gold, trees[best], predicted, random_state=0)
            rows[name][f"p against {best}"] = difference.p_value
    print()
    print(pd.DataFrame(rows).T.round(4).to_string())


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    main()
