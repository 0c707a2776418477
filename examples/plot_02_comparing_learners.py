"""
Comparing learners
==================

:func:`~lpcfg_sk.inspection.compare` runs several parsers over the same folds and gives
one table: F1 with a confidence interval, whether the difference to the first row is
more than chance, perplexity, times and sizes. The toy treebank has structure that its
labels hide (agreement, verb classes, attachment), which is what latent states are for.
"""

# %%
# Six parsers. EM stops after a fixed number of iterations here, which is quicker than
# choosing it on held-out trees.

import matplotlib.pyplot as plt

from lpcfg_sk import EMLPCFG, PCFG, PivotLPCFG, SpectralLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import ComparisonDisplay, compare

trees = load_toy(1500)
em = {"tol": None, "validation_fraction": None, "random_state": 0}
parsers = {
    "PCFG": make_parser(PCFG()),
    "PCFG, parents": make_parser(PCFG(), vertical=2, horizontal=1),
    "EM": make_parser(EMLPCFG(8, max_iter=30, **em)),
    "Spectral": make_parser(SpectralLPCFG(8)),
    "Pivot": make_parser(PivotLPCFG(8)),
    "Pivot + EM": make_parser(EMLPCFG(8, init=PivotLPCFG(8), max_iter=10, **em)),
}
table = compare(parsers, trees, cv=2)
print(table.T.to_string())

# %%
# The same with intervals. All that know latent states are clearly ahead of those that
# do not; splitting labels by their parent by hand helps less.

figure, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ComparisonDisplay(table).plot(ax)
ax.set(title=f"Labelled F1, {len(trees)} toy trees, 95 % intervals")

# %%
# For a paper or a web page (with the extra ``table`` installed), all columns or some:

print(table[["f1", "low", "high", "fit_time"]].to_markdown())
plt.show()
