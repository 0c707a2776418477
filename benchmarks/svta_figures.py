"""Figures 2 and 3 of Rabusseau, Balle and Cohen (2016) on the PTB sample.

The grammar is the maximum-likelihood PCFG of the tags of the WSJ training trees: words
are replaced by their tags, of which -LRB- and -RRB- are one, the unlabelled root is
dropped, unary chains are collapsed to one label in which no label is repeated, a chain
above a tag is a pre-terminal with the tag as its word (so a nonterminal may have both
kinds of rules), and trees are binarised to the right without horizontal memory. It has
114 nonterminals, and its Hankel matrix rank 107. It is approximated by SVTA, SVTA* and
nonnegative CP at equal numbers of parameters (n̂³ and 3Rn), and compared by ℓ2
distance, by the paper's perplexity and by bracketing. Brackets are spans without
labels; that of the whole sentence counts, too, and is always right.

    python benchmarks/svta_figures.py --out /tmp/svta
"""

import argparse
import os
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from lpcfg_sk import (
    PCFG,
    WTA,
    CPCompressor,
    SVTAMinimizer,
    TreeBinarizer,
    read_treebank,
)
from lpcfg_sk.automata import bracketing_counts
from lpcfg_sk.exceptions import (
    ConvergenceWarning,
    NotStronglyConvergentError,
    ParseFailureWarning,
)
from lpcfg_sk.treebank import SymbolTable, decode_label


def tag_trees(treebank):
    """Binary trees over tags, with the labels that the module's text describes."""
    names = ["BRACKET" if x in ("-LRB-", "-RRB-") else x for x in treebank.labels]
    table = SymbolTable(dict.fromkeys(names))
    label = np.array([table.index(x) for x in names])[treebank.label]
    tags = label[treebank.size == 1]
    treebank = treebank.replace(
        label=label, labels=table, token=tags, tokens=table, word=tags, words=table
    )
    trees = TreeBinarizer(direction="right", horizontal=0).fit_transform(treebank)
    inner, leaf = [], []
    for label in trees.labels:
        parts = decode_label(label)
        chain = [x.split("|")[0] for x in parts.chain if x != "ROOT"] or ["ROOT"]
        chain = [x for i, x in enumerate(chain) if i == 0 or x != chain[i - 1]]
        inner.append("@" + chain[-1] if parts.intermediate else "+".join(chain))
        leaf.append("+".join(chain[:-1]) or chain[-1])
    table = SymbolTable(dict.fromkeys([*inner, *leaf]))
    ids = np.array([[table.index(x) for x in names] for names in (inner, leaf)])
    label = np.where(trees.size == 1, ids[1][trees.label], ids[0][trees.label])
    return trees.replace(label=label, labels=table, tag=np.full(trees.n_tokens, -1))


def perplexity(log_f, sign, log_g):
    """The paper's perplexity, with the count and mass of clipped trees.

    Both functions are normalised over the test trees; values of the approximation
    that are not positive become its smallest positive one.
    """
    f = np.exp(log_f - log_f.max())
    f /= f.sum()
    positive = sign > 0
    clipped = ~positive & (f > 0)
    if not positive.any():
        return np.inf, int(clipped.sum()), 1.0
    log_g = np.where(positive, log_g, log_g[positive].min())
    log_g = log_g - log_g.max()
    log_g -= np.log(np.exp(log_g).sum())
    value = 2 ** -(f @ (log_g / np.log(2)))
    return value, int(clipped.sum()), float(f[clipped].sum())


def length_bins(lengths, max_length):
    """Ranges of lengths that hold sentences, the last one up to the longest allowed."""
    edges = [*range(0, min(max_length, 40), 10)[:4], max_length]
    return [
        (low, high)
        for low, high in pairwise(edges)
        if ((lengths > low) & (lengths <= high)).any()
    ]


def distance(original, other):
    try:
        return original.distance(other) / original.norm()
    except NotStronglyConvergentError:
        return np.inf


def measure(name, n_parameters, model, original, test, bins):
    begin = time.process_time()
    sign_f, log_f = original.log_value(test)
    known = sign_f > 0
    sign, log = model.wta_.log_value(test)
    ppl, n_clipped, mass = perplexity(log_f[known], sign[known], log[known])
    both = known & (sign > 0)
    ratio = np.median(np.abs(log[both] - log_f[both])) if both.any() else np.nan
    row = {
        "method": name,
        "n_parameters": n_parameters,
        "l2": distance(original, model.wta_),
        "perplexity": ppl,
        "n_clipped": n_clipped,
        "mass_clipped": mass,
        "median_log_ratio": ratio,
    }
    matched, n_gold, n_predicted = bracketing_counts(test, model.predict(test))
    for low, high in bins:
        rows = (test.lengths > low) & (test.lengths <= high)
        total = (n_gold + n_predicted)[rows].sum()
        row[f"F1 {low + 1}-{high}"] = 2 * matched[rows].sum() / total
    row["F1"] = 2 * matched.sum() / (n_gold + n_predicted).sum()
    row["seconds"] = time.process_time() - begin
    return row


def plot(table, bins, out):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    original = table[table.method == "original"].iloc[0]
    panels = {
        "figure2.png": ["l2", "perplexity", "median_log_ratio"],
        "figure3.png": [f"F1 {low + 1}-{high}" for low, high in bins] + ["F1"],
    }
    for name, columns in panels.items():
        figure, axes = plt.subplots(1, len(columns), figsize=(4 * len(columns), 3.5))
        for ax, column in zip(axes, columns, strict=True):
            for method, rows in table.groupby("method"):
                if method != "original":
                    ax.plot(rows.n_parameters, rows[column], marker="o", label=method)
            if column != "l2" and column != "median_log_ratio":
                ax.axhline(original[column], ls=":", color="k", label="original")
            # Values of divergent automata are infinite, which scales cannot be made of.
            shown = table[column][np.isfinite(table[column]) & (table[column] > 0)]
            if len(shown) == 0:
                ax.set(xlabel="parameters", title=f"{column} (nothing finite)")
                continue
            ax.set(xscale="log", xlabel="parameters", title=column)
            if not column.startswith("F1"):
                ax.set_yscale("log")
        axes[0].legend()
        figure.tight_layout()
        figure.savefig(Path(out) / name, dpi=120)
        plt.close(figure)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("LPCFG_SK_DATA", "data"))
    parser.add_argument("--out", default="svta_figures", help="folder of the plots")
    parser.add_argument(
        "--states", type=int, nargs="+", default=[8, 12, 16, 24, 32, 48]
    )
    parser.add_argument("--max-length", type=int, default=40)
    args = parser.parse_args(argv)
    Path(args.out).mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ParseFailureWarning)

    train = tag_trees(read_treebank(Path(args.data) / "wsj" / "train"))
    test = tag_trees(read_treebank(Path(args.data) / "wsj" / "dev"))
    test = test[test.lengths <= args.max_length]
    bins = length_bins(test.lengths, args.max_length)
    if not bins:
        parser.error(f"no dev tree has at most {args.max_length} words")
    original = WTA.from_pcfg(PCFG(smoothing=0).fit(train))
    whole = SVTAMinimizer(original).fit()
    n = original.n_states
    print(original, "rank", len(whole.singular_values_), "dev trees", len(test))
    whole.wta_ = original
    rows = [measure("original", original.n_parameters, whole, original, test, bins)]
    gamma = SVTAMinimizer(original, 1, gamma="max").fit().gamma_
    print(f"gamma {gamma:.4f}")
    for states in args.states:
        size = states**3
        rank = max(1, round(size / (3 * n)))
        models = {
            "SVTA": SVTAMinimizer(original, states),
            "SVTA*": SVTAMinimizer(original, states, gamma=gamma),
            "CP": CPCompressor(original, rank, random_state=0),
        }
        for name, model in models.items():
            model.fit()
            count = model.wta_.n_parameters
            rows.append(measure(name, count, model, original, test, bins))
            print(pd.Series(rows[-1]).to_frame().T.to_string(header=False), flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(Path(args.out) / "svta_figures.csv", index=False)
    plot(table, bins, args.out)
    print(table.round(4).to_string(index=False))
    svta, star, cp = (
        table[table.method == name].reset_index(drop=True)
        for name in ("SVTA", "SVTA*", "CP")
    )
    wins, star = svta.l2 < cp.l2, star.F1 >= svta.F1
    print(f"SVTA below CP in l2 at {wins.sum()} of {len(args.states)} sizes")
    print(f"SVTA* at least SVTA in F1 at {star.sum()} of {len(args.states)} sizes")


if __name__ == "__main__":
    main()
