r"""
Grammar induction with margins
==============================

A grammar whose rules are known and whose probabilities are not, and sentences without
trees: algorithm 1 of Cohen and Smith (2012) finds probabilities by expectation and
maximisation, where the maximisation keeps every binomial of the grammar at a distance
:math:`γ = n^{-s}` from 0 and 1. Maximum likelihood may give an unseen sentence the
probability zero; a grammar with a margin cannot.
"""

# %%
# An ambiguous grammar. Adjectives, prepositional phrases and coordination nest freely,
# so a sentence has many trees.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lpcfg_sk import CFG, MarginEMPCFG
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.inspection import ConvergenceDisplay

grammar = CFG.from_string(
    """
    S -> NP VP | S CC S
    NP -> DT N | NP PP | NP CC NP
    N -> NN | JJ N
    VP -> VB | VB NP | VP PP
    PP -> IN NP
    """,
)
print(grammar)

# %%
# The words are tags here. Sentences are drawn from probabilities that prefer to attach
# phrases to verbs; the learner sees the sentences alone.

truth = {
    "S": [0.95, 0.05],
    "NP": [0.85, 0.1, 0.05],
    "N": [0.7, 0.3],
    "VP": [0.3, 0.4, 0.3],
    "PP": [1.0],
}
rules = {a: [rule for rule in grammar.rules if rule.lhs == a] for a in truth}


def draw(symbol, rng):
    if symbol not in rules:
        return [symbol]
    rule = rules[symbol][rng.choice(len(rules[symbol]), p=truth[symbol])]
    return [word for child in rule.rhs for word in draw(child, rng)]


rng = np.random.default_rng(0)
sentences = [words for words in (draw("S", rng) for _ in range(700)) if len(words) < 16]
train, test = sentences[:40], sentences[200:500]
print(" ".join(train[0]))

# %%
# Learning. The log-loss never rises, iteration by iteration.

model = MarginEMPCFG(grammar, s=1.2, max_iter=200, tol=1e-6).fit(train)
print(f"margin {model.gamma_:.4f}, {model.n_iter_} iterations")
ConvergenceDisplay.from_estimator(model)

# %%
# The probabilities, and those that made the sentences. What the sentences do not
# decide, such as where exactly a phrase attaches, differs most.

table = pd.DataFrame({"learnt": model.theta_})
table["true"] = [truth[rule.lhs][rules[rule.lhs].index(rule)] for rule in grammar.rules]
print(table.round(3).to_string())

# %%
# How much margin? The theory needs an exponent s > 1 as the sample grows; for a sample
# at hand the margin can also be set itself. A wide margin flattens the grammar; a
# narrow one is maximum likelihood, which pays for what ten sentences did not show. With
# more sentences both matter less. The curves are the mean log probability of 300 new
# ones, with crosses where s = 1.5.

margins = [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4]
figure, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
for n in (10, 40, 160):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [MarginEMPCFG(grammar, gamma=g, max_iter=50) for g in margins]
        scores = [model.fit(sentences[:n]).score(test) for model in models]
        by_theory = MarginEMPCFG(grammar, s=1.5, max_iter=50).fit(sentences[:n])
    (line,) = ax.plot(margins, scores, "o-", label=f"n = {n}")
    ax.plot(by_theory.gamma_, by_theory.score(test), "x", color=line.get_color())
ax.set(
    xlabel="margin γ",
    xscale="log",
    ylabel="mean log probability of a new sentence",
)
ax.legend(title="training sentences")

# %%
# The best tree of a sentence under the learnt grammar:

print(model.predict([["DT", "NN", "VB", "DT", "JJ", "NN", "IN", "DT", "NN"]])[0].draw())
plt.show()
