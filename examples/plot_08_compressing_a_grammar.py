"""
Compressing a grammar by its singular values
============================================

A PCFG is a weighted tree automaton with one state per nonterminal. The singular values
of its Hankel matrix say how many states are worth keeping: the automaton is cut to
its leading states, and the distance to the original falls with the singular values
that are left out.
"""

# %%
# A random grammar with thirty nonterminals, of which many behave alike.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import LPCFG, WTA, SVTAMinimizer, TreeBinarizer
from lpcfg_sk.datasets import load_toy, make_treebank
from lpcfg_sk.inspection import results_table
from lpcfg_sk.treebank import delexicalize

rng = np.random.default_rng(0)
kinds = rng.random((5, 5, 5)) ** 6  # rules between five kinds of nonterminals
words = rng.random((5, 12)) ** 4
kind = np.arange(30) % 5
names = [f"A{i}" for i in range(30)]


def noisy(values):
    return values * np.exp(0.1 * rng.standard_normal(values.shape))


rules = noisy(kinds[np.ix_(kind, kind, kind)])
rules *= 0.4 / rules.sum(axis=(1, 2), keepdims=True)
emissions = noisy(words[kind])
emissions *= 0.6 / emissions.sum(axis=1, keepdims=True)
grammar = LPCFG.from_parameters(
    binary={
        (names[a], names[b], names[c]): rules[a, b, c].reshape(1, 1, 1)
        for a, b, c in np.ndindex(30, 30, 30)
    },
    lexical={
        (names[a], f"w{x}"): emissions[a, x : x + 1] for a, x in np.ndindex(30, 12)
    },
    root={names[a]: [1 / 30] for a in range(30)},
)
wta = WTA.from_pcfg(grammar)
print(wta)

# %%
# Five singular values stand out. An automaton with fewer states is further away, and by
# how much is told by the singular values that were left out (theorem 7).

values = wta.singular_values()
states = np.arange(1, 13)
minimized = [SVTAMinimizer(wta, int(n)).fit().wta_ for n in states]
errors = np.array([wta.distance(small) for small in minimized]) / wta.norm()

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
axes[0].semilogy(np.arange(1, len(values) + 1), values / values[0], "o-", markersize=3)
axes[0].set(
    xlabel="rank",
    ylabel="singular value over the largest",
    title="Singular values of the Hankel matrix",
)
axes[1].semilogy(states, errors, "o-", markersize=3)
axes[1].set(
    xlabel="states kept",
    ylabel="relative l2 distance",
    title="Distance to the grammar",
)

# %%
# Values of single trees show the same: with five states they agree to a few digits.

trees = make_treebank(grammar, 5, random_state=0)
table = pd.DataFrame({"grammar": wta.log_value(trees)[1]})
for n in (2, 5, 10):
    table[f"{n} states"] = minimized[n - 1].log_value(trees)[1]
print(table.round(4).to_string())

# %%
# For parsing with few states, brackets matter more than values. ``SVTAMinimizer`` is an
# estimator over trees, so the number of states can be searched like any other
# parameter. Its score is the F1 of unlabelled brackets, that of the whole sentence
# among them. ``gamma`` above 1 is the variant SVTA*, which spends the states on longer
# sentences. The trees of an automaton are binary, so the binarised treebank is what it
# learns from, with tags for words.

toy = TreeBinarizer().fit_transform(delexicalize(load_toy(500)))
toy = toy[toy.lengths <= 20]
search = GridSearchCV(
    SVTAMinimizer(), {"n_states": [2, 5, 10, 20], "gamma": [None, 1.1]}, cv=2
).fit(toy)
print(results_table(search).round(3).to_string())
plt.show()
