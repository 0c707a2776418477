r"""
Spectral learning step by step
==============================

Figures 7 and 8 of Cohen, Stratos, Collins, Foster and Ungar (2014) in NumPy, next to
:class:`~lpcfg_sk.SpectralLPCFG`, on trees drawn from a grammar that is known: features,
one singular value decomposition a nonterminal, projections, moments. At the end the
estimate is compared with the truth.
"""

# %%
# A random grammar with two latent states per nonterminal, and trees drawn from it. The
# trees show nonterminals and words; the states are hidden.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lpcfg_sk import InsideFeatures, OutsideFeatures, SpectralLPCFG
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.inspection import SingularValueDisplay

truth = make_lpcfg(3, 4, 30, m=2, mean_length=5, concentration=0.4, random_state=0)
treebank = make_treebank(truth, 20_000, random_state=0)
print(truth)
print(treebank[0])

# %%
# **Features.** A node is described by what is below it, φ, and by what is around it, ψ.
# Both are sparse blocks with one row per node. (:class:`~lpcfg_sk.InsideFeatures` has
# more templates; these few are enough here.)

inside = InsideFeatures(["rule", "word"])
outside = OutsideFeatures(["rule"])
described = outside.fit_transform(inside.fit_transform(treebank))
phi, psi = described.blocks["inside"], described.blocks["outside"]
print(phi.shape, psi.shape)
print(inside.get_feature_names_out()[:3], outside.get_feature_names_out()[:3])

# %%
# **Singular vectors** (figure 8). For nodes labelled a, the matrix
# :math:`Ω^a = E[φ ψ^⊤]` has rank m: inside and outside are independent given the state.
# Its singular vectors keep what the inside tells about the outside, and nothing else.

a = "A0"
nodes = np.flatnonzero(described.label == described.labels.index(a))
omega = (phi[nodes].T @ psi[nodes]).toarray() / len(nodes)
U, sigma, Vt = np.linalg.svd(omega)
print("singular values:", sigma[:5].round(4))

# %%
# The same by the library, without any smoothing, for all nonterminals: two values each,
# then noise.

plain = {
    "scaling": None,
    "smoothing": None,
    "lexical_smoothing": None,
    "lexicon_alpha": 0,
}
learner = SpectralLPCFG(m=2, m_max=6, **plain).fit(described)
print("library:        ", learner.singular_values_[a][:5].round(4))
SingularValueDisplay.from_estimator(learner)

# %%
# **Projections** (figure 7, step 1). Every node becomes two numbers from below,
# :math:`y = U^⊤φ`, and two from above, :math:`V^⊤ψ`, here times the :math:`Σ^{-1}` of
# step 3. The library gives both by ``learner.transform``.

projections = {}
for label, projection in learner.projections_.items():
    m = learner.m_[label]
    projections[label] = (
        projection.inside,
        projection.U[:, :m],
        projection.outside,
        projection.V[:, :m] / projection.singular_values[:m],
    )


def y_of(nodes, label):
    columns, U, _, _ = projections[label]
    return phi[nodes][:, columns] @ U


def z_of(nodes, label):
    _, _, columns, V = projections[label]
    return psi[nodes][:, columns] @ V


# %%
# **Moments** (figure 7). The parameters of a rule a → b c are the mean of z⊗y⊗y' over
# its nodes, times the share of the rule. Nodes are in preorder, so the left child
# follows its parent.

b, c = next((b, c) for x, b, c in truth.binary if x == a)
label = np.array([*described.labels.strings, None])[described.label]
left = nodes + 1
inner = described.size[nodes] > 1
parents, left = nodes[inner], left[inner]
right = left + described.size[left]
rule = (label[left] == b) & (label[right] == c)
parents, left, right = parents[rule], left[rule], right[rule]
tensor = np.einsum(
    "ni,nj,nk->ijk", z_of(parents, a), y_of(left, b), y_of(right, c)
) / len(nodes)
print(f"{a} -> {b} {c}, {len(parents)} nodes")
print("by hand:", tensor.ravel().round(4))
print("library:", learner.grammar_.binary[a, b, c].ravel().round(4))
assert np.allclose(tensor, learner.grammar_.binary[a, b, c])

# %%
# These are not the probabilities of the true grammar, some are even negative: they are
# those probabilities under an unknown change of basis. Theorem 3 says that it does not
# matter. An invertible matrix for each nonterminal changes all parameters and the value
# of no tree.

rng = np.random.default_rng(0)
bases = {a: rng.standard_normal((2, 2)) + 2 * np.eye(2) for a in truth.nonterminals}
turned = truth.conjugate(bases)
print("true:  ", truth.log_prob(treebank[:3]).round(4))
print("turned:", turned.log_prob(treebank[:3]).round(4))

# %%
# So compare values of trees that no estimate has seen. With more trees the estimates
# approach the truth, at the rate :math:`M^{-1/2}` that theorem 8 promises, and without
# any iteration.

test = make_treebank(truth, 1000, random_state=1)
true_values = np.exp(truth.log_prob(test))
rows = []
for M in (300, 1000, 3000, 10_000, 20_000):
    estimate = SpectralLPCFG(m=2, **plain).fit(described[:M])
    signs, logs = estimate.grammar_.tree_values(test)
    rows.append((M, np.abs(signs * np.exp(logs) - true_values).sum()))
errors = pd.DataFrame(rows, columns=["trees", "error"])
errors["error"] /= true_values.sum()
print(errors.to_string(index=False))

figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.loglog(errors["trees"], errors["error"], "o-", label="spectral estimate")
line = errors["error"].iloc[-1] * np.sqrt(errors["trees"].iloc[-1] / errors["trees"])
ax.loglog(errors["trees"], line, "k:", label="$M^{-1/2}$")
ax.set(xlabel="training trees M", ylabel="relative error on fresh trees")
ax.legend()
plt.show()
