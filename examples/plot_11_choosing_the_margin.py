"""
Choosing the margin of a grammar
================================

:class:`~lpcfg_sk.MarginEMPCFG` keeps the binomials of a grammar at a distance γ from 0
and 1. The theory of Cohen and Smith (2012) lets it shrink as :math:`γ = n^{-s}` with
s > 1; for one sample it is a number to be chosen. A large γ smooths a lot; a small one
is maximum likelihood. It is chosen here by cross-validation, for trees (equation 22)
and for strings (algorithm 1), and compared with a Dirichlet prior, whose pseudo-counts
are α - 1 (equation 26 and section 7.2).

The part-of-speech sequences are those of the Penn Treebank sample where NLTK has it
(``nltk.download("treebank")``), else of the toy treebank.
"""

# %%
# The data: trees drawn from a small grammar, and trees over tags with the grammar that
# they make up.

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import CFG, MarginEMPCFG, Treebank, read_treebank
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.inspection import results_table
from lpcfg_sk.treebank import delexicalize


def hand_grammar():
    return CFG.from_string(
        """
        S -> NP VP | VP | S and S
        NP -> D N | D A N | NP PP | PRON
        VP -> V NP | V | VP PP | VP ADV
        PP -> P NP
        D -> the | a | every | this
        A -> old | small | red | green | quiet
        N -> dog | park | girl | boy | bird | tree | house
        V -> sees | likes | hears | knows | finds
        P -> in | on | at | near | with
        PRON -> she | he | it | they
        ADV -> often | never | here
        """
    )


def draw(grammar, rng, symbol, depth=0):
    """A tree whose rules have Zipfian probabilities, steeper as it gets deeper."""
    options = [rule for rule in grammar.rules if rule.lhs == symbol]
    weights = (1.0 + np.arange(len(options))) ** -(2.0 + depth / 2)
    rule = options[rng.choice(len(options), p=weights / weights.sum())]
    children = [
        s if terminal else draw(grammar, rng, s, depth + 1)
        for s, terminal in zip(rule.rhs, rule.terminal, strict=True)
    ]
    return f"({symbol} {' '.join(children)})"


def tag_sequences():
    try:
        from nltk.corpus import treebank

        text = io.StringIO("\n".join(map(str, treebank.parsed_sents()[:2000])))
        return "WSJ tags", delexicalize(read_treebank(text))
    except (ImportError, LookupError):
        return "toy tags", delexicalize(load_toy(1500))


rng = np.random.default_rng(0)
grammar = hand_grammar()
hand = Treebank([draw(grammar, rng, "S") for _ in range(60)])
name, tags = tag_sequences()
tags = tags[(tags.lengths <= 10) & (tags.lengths > 1)][:240]
data = {
    "hand grammar": (grammar, hand),
    name: (CFG.from_treebank(tags), tags),
}
for label, (cfg, trees) in data.items():
    print(f"{label}: {len(trees)} trees, {cfg!r}")

# %%
# Two searches for each: the score is the mean log probability of held-out rows. EM is
# stopped early, which the search does not mind.
grids = {
    "margin": {
        "smoothing": ["margin"],
        "gamma": [0.4, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-5],
    },
    "dirichlet": {
        "smoothing": ["dirichlet"],
        "alpha": [1.001, 1.01, 1.1, 1.3, 2.0, 4.0, 10.0],
    },
}
tables = []
for label, (cfg, trees) in data.items():
    for rows, X in (("trees", trees), ("strings", trees.unparsed())):
        for smoothing, grid in grids.items():
            search = GridSearchCV(
                MarginEMPCFG(cfg, max_iter=6, tol=0.02), grid, cv=3, refit=False
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                search.fit(X)
            value = "gamma" if smoothing == "margin" else "alpha"
            table = results_table(search).rename(columns={value: "value"})
            table = table[["value", "mean_score", "std_score", "rank"]]
            tables.append(
                table.assign(data=label, rows=rows, smoothing=smoothing, n=len(X))
            )
results = pd.concat(tables, ignore_index=True)

# %%
# The best of each, and the s that gives such a margin. With a margin the amount of
# smoothing is the same for all rules; a prior adds the same pseudo-counts to a rule of
# a frequent and of a rare nonterminal, and so gives way where the counts are large.
best = results[results["rank"] == 1].set_index(["data", "rows", "smoothing"])
best["s"] = -np.log(best["value"]) / np.log(2 / 3 * best["n"])
best.loc[best.index.get_level_values("smoothing") == "dirichlet", "s"] = np.nan
print(best[["value", "s", "mean_score", "std_score"]].round(4).to_string())

# %%
# Score over the parameter, with maximum likelihood to the left. Held-out rows are
# scored as what they are, trees or strings. The probability of a string sums over its
# trees, so the two curves of a picture are not to be compared with each other.
labels = {"trees": "log p(tree), from trees", "strings": "log p(string), from strings"}
fig, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained", sharey="row")
for row, label in zip(axes, data, strict=True):
    for ax, smoothing in zip(row, grids, strict=True):
        part = results[(results["data"] == label) & (results["smoothing"] == smoothing)]
        for rows, curve in part.groupby("rows"):
            curve = curve.sort_values("value")
            x = curve["value"] - (smoothing == "dirichlet")
            ax.plot(x, curve["mean_score"], "o-", label=labels[rows])
        ax.set(
            xlabel="margin γ" if smoothing == "margin" else "pseudo-counts α - 1",
            xscale="log",
            title=f"{label}, {smoothing}",
        )
    row[0].legend()
    row[0].set_ylabel("mean log probability (held out)")
plt.show()
