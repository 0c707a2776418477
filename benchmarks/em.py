"""EM on trees: how near the E-step is to a matrix product, and to plain numpy.

``python benchmarks/em.py [treebank]`` prints one row for each number of states:

* GFlop/s of one E-step on one thread (6 m_a m_b m_c per binary node: inside, outside,
  counts), and its part of this machine's own dgemm, measured in the same run;
* time against an E-step of plain numpy (one einsum per node), on part of the trees.

Without an argument the trees are drawn from a random grammar of the size of a small
treebank. All times are CPU seconds.
"""

import argparse
import time

import numpy as np
import pandas as pd

from lpcfg_sk import RareWords, TreeBinarizer, read_treebank
from lpcfg_sk._parallel import Spool
from lpcfg_sk.datasets import make_lpcfg
from lpcfg_sk.em._expectation import ExpectedCounts
from lpcfg_sk.em._run import n_supported_states, perturbed
from lpcfg_sk.em._training_trees import TrainingTrees
from lpcfg_sk.lpcfg import Layout, maximize


def best_time(function, repeats=15):
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def dgemm_rate(n=512):
    a, b = np.random.default_rng(0).random((2, n, n))
    return 2 * n**3 / best_time(lambda: a @ b, repeats=20)


def numpy_e_step(index, layout, estimates, n_trees):
    """Expected counts as one would write them in numpy, one node at a time."""
    tensors = [
        estimates.binary[lo:hi].reshape(shape)
        for lo, hi, shape in zip(
            layout.rule_offset[:-1], layout.rule_offset[1:], layout.shapes, strict=True
        )
    ]
    emissions = np.split(estimates.lexical, layout.lex_offset[1:-1])
    roots = np.split(estimates.root, layout.root_offset[1:-1])
    counts = [np.zeros_like(t) for t in tensors]
    emission_counts = [np.zeros_like(e) for e in emissions]
    for t in range(n_trees):
        lo, hi = index.node_offsets[t], index.node_offsets[t + 1]
        inside, outside, scale = {}, {}, {}
        for i in range(hi - 1, lo - 1, -1):
            if index.rule[i] < 0:
                vector = emissions[index.entry[i]]
            else:
                left = i + 1
                right = left + index.size[left]
                vector = np.einsum(
                    "hjk,j,k->h", tensors[index.rule[i]], inside[left], inside[right]
                )
            scale[i] = vector.max()
            inside[i] = vector / scale[i]
        outside[lo] = roots[index.top[t]]
        for i in range(lo, hi):
            norm = outside[i] @ inside[i]
            if index.rule[i] < 0:
                emission_counts[index.entry[i]] += outside[i] * inside[i] / norm
                continue
            tensor = tensors[index.rule[i]]
            left = i + 1
            right = left + index.size[left]
            b, c = inside[left], inside[right]
            outside[left] = np.einsum("hjk,h,k->j", tensor, outside[i], c)
            outside[right] = np.einsum("hjk,h,j->k", tensor, outside[i], b)
            outside[left] /= outside[left].max()
            outside[right] /= outside[right].max()
            counts[index.rule[i]] += np.einsum(
                "hjk,h,j,k->hjk", tensor, outside[i] / (norm * scale[i]), b, c
            )
    return counts, emission_counts


def measure(trees, m, dgemm):
    index = next(trees.map(lambda index, weight, rows: index))
    layout = Layout.build(index, n_supported_states(m, trees.rules))
    estimates = perturbed(trees.rules, layout, np.random.RandomState(0))
    statistics = ExpectedCounts(trees, layout)

    def e_step():
        statistics.recycle(statistics(estimates)[0])

    e_step()
    e_time = best_time(e_step)

    def iteration():
        counts = statistics(estimates)[0]
        maximize(index, layout, counts, parameters=estimates, smoothing=0.1)
        statistics.recycle(counts)

    inner = index.rule[index.rule >= 0]
    flops = 6 * int(layout.shapes.prod(axis=1)[inner].sum())
    row = {
        "m": m,
        "parameters": int(layout.rule_offset[-1]),
        "E-step s": e_time,
        "iteration s": best_time(iteration, repeats=3),
        "GFlop/s": flops / e_time / 1e9,
        "of dgemm": flops / e_time / dgemm,
    }
    if m <= 8:
        n_trees = min(200, index.n_trees)
        begin = time.process_time()
        numpy_e_step(index, layout, estimates, n_trees)
        spent = time.process_time() - begin
        row["numpy s"] = spent * index.n_nodes / index.node_offsets[n_trees]
        row["numpy / ours"] = row["numpy s"] / e_time
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", nargs="?")
    parser.add_argument("--states", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    arguments = parser.parse_args()
    if arguments.treebank is None:
        grammar = make_lpcfg(
            40, 40, 2000, mean_length=24.0, density=0.02, random_state=0
        )
        trees = grammar.sample(4000, 0)
    else:
        trees = TreeBinarizer().fit_transform(read_treebank(arguments.treebank))
        trees = RareWords().fit_transform(trees)
    trees = TrainingTrees.from_corpus(trees, None, Spool(False), estimator="em.py")
    rules = trees.rules
    n_nodes = int(rules.label_count.sum())
    print(f"{rules.n_trees} distinct trees, {n_nodes} nodes, {rules.n_rules} rules")
    dgemm = dgemm_rate()
    print(f"dgemm: {dgemm / 1e9:.1f} GFlop/s")
    rows = [measure(trees, m, dgemm) for m in arguments.states]
    table = pd.DataFrame(rows).set_index("m")
    print(table.to_string(float_format=lambda v: f"{v:.3g}", na_rep=""))


if __name__ == "__main__":
    main()
