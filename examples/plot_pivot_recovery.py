"""
Recovery of a hidden factorisation
==================================

If every latent state has a pivot among the rows and one among the columns of
:math:`Q_{f,g} = \\sum_h π(h) r(f|h) s(g|h)`, then
:func:`~lpcfg_sk.pivot.pivot_decomposition` finds π, r and s, whatever they are: exactly
from the exact matrix, and with an error that falls like one over the root of the sample
size from counts. EM, and non-negative matrix factorisation, only promise a local
optimum.
"""

# %%
# A random model with pivots.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lpcfg_sk.pivot import pivot_decomposition

rng = np.random.default_rng(0)
m, d = 5, 60
pi = rng.dirichlet(np.full(m, 5.0))
r, s = (rng.dirichlet(np.full(d, 0.5), m).T for _ in range(2))
for side in (r, s):
    side[:m] = 0.2 * np.eye(m)
    side /= side.sum(axis=0)
Q = r @ np.diag(pi) @ s.T


# %%
# The states come in any order, so the error is that of the best order.
def error(result):
    cost = np.abs(result.r[:, :, None] - r[:, None, :]).sum(axis=0)
    cost += np.abs(result.s[:, :, None] - s[:, None, :]).sum(axis=0)
    return cost[linear_sum_assignment(cost)].sum() / m


print("exact matrix:", error(pivot_decomposition(Q, m)))

# %%
# Counts of more and more samples.

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
plt.show()
