"""
=====================================================
Shrinking a grammar by its singular values
=====================================================

A PCFG is a weighted tree automaton with one state a nonterminal. The singular values
of its Hankel matrix say how many states are worth keeping: the automaton is cut to
its leading states, and the distance to the original falls with the singular values
that are left out.
"""

# %%
# A random grammar with thirty nonterminals, of which many behave alike.

import matplotlib.pyplot as plt
import numpy as np

from lpcfg_sk import LPCFG, WTA, SVTAMinimizer

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
# Five singular values stand out; the distances follow them.

values = wta.singular_values()
states = np.arange(1, 21)
norm = wta.norm()
errors = {
    "SVTA": [wta.distance(SVTAMinimizer(wta, int(n)).fit().wta_) for n in states],
    "SVTA*": [
        wta.distance(SVTAMinimizer(wta, int(n), gamma=1.3).fit().wta_) for n in states
    ],
}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
axes[0].semilogy(np.arange(1, len(values) + 1), values / values[0], marker=".")
axes[0].set(xlabel="state", title="singular values of the Hankel matrix")
for name, error in errors.items():
    axes[1].semilogy(states, np.array(error) / norm, marker=".", label=name)
axes[1].set(xlabel="states kept", title="relative l2 distance to the grammar")
axes[1].legend()
figure.tight_layout()
plt.show()
