r"""
Pivot learning step by step
===========================

The heart of Cohen and Collins (2014) is a matrix. Rows f are features of inside trees,
columns g of outside trees, and their joint distribution is a mixture over the latent
states,

.. math:: Q_{f,g} = \sum_h π(h)\, r(f|h)\, s(g|h).

If every state has a *pivot*, a row (and a column) that no other state has, then π, r
and s can be found, not just fitted. This page does the steps of figure 2 one by one and
then lets :func:`~lpcfg_sk.pivot.pivot_decomposition` do them.
"""

# %%
# A model with three states. The first three rows and columns are the pivots.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lpcfg_sk.pivot import (
    cca,
    fast_anchor_words,
    pivot_decomposition,
    simplex_least_squares,
)

rng = np.random.default_rng(0)
m, d = 3, 40
pi = np.array([0.5, 0.3, 0.2])
r, s = (rng.dirichlet(np.full(d, 0.5), m).T for _ in range(2))
for side in (r, s):
    side[:m] = 0.2 * np.eye(m)
    side /= side.sum(axis=0)
Q = r @ np.diag(pi) @ s.T

# %%
# **Step 1: project.** Canonical correlation analysis maps each column g to a short
# vector φ(g), and each row f to the mean of the φ(g) that occur with it. There are as
# many correlations as states.

projection = cca(Q, 6)
print("canonical correlations:", projection.singular_values.round(4))
projection = projection.truncate(m)
means = (Q @ projection.right) / Q.sum(axis=1, keepdims=True)

# %%
# **Step 2: find the corners.** A row that occurs with several states is a mixture of
# what the states look like, so all rows lie in a triangle whose corners are the pivots.
# FastAnchorWords picks corners greedily.

corners = fast_anchor_words(means, m)
print("pivots:", sorted(corners.tolist()))
assert sorted(corners.tolist()) == [0, 1, 2]

# The first direction is the same for all; the triangle lies in the other two.
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.fill(*means[corners, 1:].T, color="C1", alpha=0.15)
ax.plot(*means[:, 1:].T, "o", markersize=4, label="features")
ax.plot(*means[corners, 1:].T, "s", color="C1", label="pivots found")
ax.set(
    xlabel="second direction",
    ylabel="third direction",
    title="Features lie in the hull of the pivots",
)
ax.legend()

# %%
# **Step 3: mix.** The weights of the corners in each point are p(h | f), a least
# squares problem on a simplex, and Bayes' rule turns them into r(f | h).

weights, gap = simplex_least_squares(means, means[corners])
posterior = weights * Q.sum(axis=1, keepdims=True)
found = posterior / posterior.sum(axis=0)
order = np.argsort(corners)
print("largest error of r:", np.abs(found[:, order] - r).max())

# %%
# The same for the columns, and a concave problem to match both orders of the states:
# all of it is one call.

result = pivot_decomposition(Q, m)
print("π:", result.pi[np.argsort(result.row_anchors)].round(6))


# %%
# **From samples.** Q is known only from counts. The error falls with the root of their
# number, whatever the start: there is none. (The states come in any order, so the error
# is that of the best order.)
def error(result):
    cost = np.abs(result.r[:, :, None] - r[:, None, :]).sum(axis=0)
    cost += np.abs(result.s[:, :, None] - s[:, None, :]).sum(axis=0)
    return cost[linear_sum_assignment(cost)].sum() / m


sizes = 10 ** np.arange(3, 10)
errors = [
    error(
        pivot_decomposition(rng.multinomial(n, Q.ravel()).reshape(Q.shape), m, kappa=5)
    )
    for n in sizes
]
figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.loglog(sizes, errors, "o-", label="pivot decomposition")
ax.loglog(sizes, errors[-1] * np.sqrt(sizes[-1] / sizes), "k:", label="$M^{-1/2}$")
ax.set(xlabel="number of samples M", ylabel="error of r and s")
ax.legend()

# %%
# :class:`~lpcfg_sk.PivotLPCFG` does this for each nonterminal of a treebank and then
# estimates the rules between the states; the next page,
# :ref:`sphx_glr_auto_examples_plot_07_pivot_states.py`, reads what it finds.
plt.show()
