"""
What latent states mean: pivots
===============================

Latent states learnt by EM or by the spectral method have no names. The pivot method
gives each state one: the *pivot* is a feature of inside trees that occurs with this
state (almost) only. This page learns a grammar of a small treebank, reads its states,
and checks them against words that they should tell apart.
"""

# %%
# A treebank, and a parser with up to four states per nonterminal.

import matplotlib.pyplot as plt

from lpcfg_sk import EMLPCFG, PivotLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import LatentStateDisplay, state_table

treebank = load_toy(1500)
train, test = treebank[:1200], treebank[1200:]
parser = make_parser(PivotLPCFG(m=4)).fit(train)
learner = parser[-1]

# %%
# The pivots of the most frequent nonterminals. A name says which template made the
# feature and what it saw: ``inside:word=DT->all`` is the word *all*,
# ``inside:rule+left=...`` a rule with the rule below its left child.

frequent = sorted(learner.m_, key=learner.counts_.get, reverse=True)
for nonterminal in frequent[:5]:
    print(nonterminal)
    for state, pivot in enumerate(learner.pivots_[nonterminal]):
        print(f"    {state}: {pivot}")

# %%
# All states in one table, with their words or rules and the entropy of what they
# rewrite to: a state of low entropy is a specialist.

table = state_table(parser, top=4)
shown = table[table["nonterminal"].isin(["DT", "IN", "VBZ", "VP"])]
print(shown.round(2).to_string(index=False))

# %%
# The states of the determiners. *a* and *another* go with singular nouns, *all* and
# *these* with plural ones, though both have the tag DT: number has become a state.

LatentStateDisplay.from_estimator(parser, "DT", top=5)

# %%
# One state in numbers. The lift says how much more probable an expansion is in this
# state than in the mean state of its nonterminal.

print(learner.grammar_.describe_state("DT", 0, top=5).round(3).to_string(index=False))

# %%
# The verbs of the past: states are classes of verbs that take the same complements.

LatentStateDisplay.from_estimator(parser, "VBD", top=5)

# %%
# The grammar is a true probability distribution: it can be sampled from, and EM can go
# on from it for a few iterations, in which the states keep their meaning.

print(" ".join(learner.sample(1, random_state=0)[0].words()))
refined = make_parser(
    EMLPCFG(
        init=PivotLPCFG(m=4),
        max_iter=10,
        tol=None,
        validation_fraction=None,
        random_state=0,
    )
).fit(train)
print(f"F1 of pivot {parser.score(test):.3f}, of pivot + EM {refined.score(test):.3f}")
plt.show()
