"""
What latent states mean: pivots
===============================

Latent states learnt by EM or by the spectral method have no names. The pivot method
gives each state one: the *pivot* is a feature of inside trees that occurs with this
state (almost) only. This example learns a grammar of a small treebank, prints the
pivots, and shows how states differ in the words that they emit.
"""

# %%
# A treebank, and a parser with up to four states a nonterminal.

import matplotlib.pyplot as plt
import numpy as np

from lpcfg_sk import EMLPCFG, PivotLPCFG, make_parser
from lpcfg_sk.datasets import load_toy

treebank = load_toy(900)
train, test = treebank[:700], treebank[700:]
parser = make_parser(PivotLPCFG(m=4)).fit(train)
learner = parser[-1]

# %%
# The pivots of the most frequent nonterminals. A name says which template made the
# feature and what it saw.

frequent = sorted(learner.m_, key=learner.counts_.get, reverse=True)
for nonterminal in frequent[:5]:
    print(nonterminal)
    for state, pivot in enumerate(learner.pivots_[nonterminal]):
        print(f"    {state}: {pivot}")

# %%
# Words of the most frequent pre-terminal with several states.

grammar = learner.grammar_
preterminals = {a for a, _ in grammar.lexical}
tag = next(a for a in frequent if a in preterminals and learner.m_[a] > 1)
words = [x for a, x in grammar.lexical if a == tag]
emissions = np.array([grammar.lexical[tag, x] for x in words])
top = np.argsort(-emissions.max(axis=1))[:12]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
image = ax.imshow(emissions[top], cmap="Blues", aspect="auto")
ax.set_yticks(range(len(top)), [words[i] for i in top])
ax.set_xticks(range(learner.m_[tag]))
ax.set(xlabel="latent state", title=f"Words of {tag} given its state")
figure.colorbar(image, ax=ax, label="probability")

# %%
# The grammar is a true probability distribution: it can be sampled from, and EM can go
# on from it. Few iterations are needed, and held-out trees say how many.

print(learner.sample(1, random_state=0)[0])
refined = make_parser(EMLPCFG(init=PivotLPCFG(m=4), random_state=0)).fit(train)
print("pivot F1      ", round(parser.score(test), 4))
print("pivot + EM F1 ", round(refined.score(test), 4), "after", refined[-1].n_iter_)
plt.show()
