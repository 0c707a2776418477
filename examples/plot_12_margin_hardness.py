"""
Why learning from strings is hard: 3-SAT as a grammar
=====================================================

Minimising the log-loss of a grammar over strings, with or without a margin, is NP-hard
(Cohen and Smith, 2012, section 6.2.1). :func:`~lpcfg_sk.cfg.sat_grammar` turns a
formula into a grammar and one string. If the formula is satisfiable, then some
probabilities give the string almost all mass; if not, none give it more than a half.
EM with a margin, which is only a local search, is run here on both kinds.
"""

# %%
# Seven random formulas, of which the longest (28 clauses) is unsatisfiable, and two
# small ones by hand. Whether they are satisfiable is found by brute force.
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lpcfg_sk import MarginEMPCFG
from lpcfg_sk.cfg import assignment_of_tree, sat_grammar


def satisfying(clauses):
    variables = sorted({abs(literal) for clause in clauses for literal in clause})
    for values in product([False, True], repeat=len(variables)):
        value = dict(zip(variables, values, strict=True))
        if satisfies(clauses, value):
            return value
    return None


def satisfies(clauses, value):
    return all(any(value[abs(l)] == (l > 0) for l in clause) for clause in clauses)


def random_formula(rng, n_variables, n_clauses):
    return [
        tuple(
            int(r) * (1 if rng.random() < 0.5 else -1)
            for r in rng.choice(np.arange(1, n_variables + 1), size=3, replace=False)
        )
        for _ in range(n_clauses)
    ]


rng = np.random.default_rng(0)
formulas = {
    "figure 3": [(1, 2, -4), (-1, -2, 3)],
    "Y1 and not Y1": [(1, 1, 1), (-1, -1, -1)],
}
sizes = [(3, 4), (3, 12), (3, 20), (3, 28), (4, 8), (4, 18), (5, 12)]
for number, (n_variables, n_clauses) in enumerate(sizes):
    formulas[f"random {number}"] = random_formula(rng, n_variables, n_clauses)

# %%
# One string, with the weight of n = 1000 samples, gives a margin γ = n^-2. A formula of
# m clauses is told to be satisfiable where the log-loss is at most
# :math:`-\log α = -12m \log(1-γ)`; an unsatisfiable one stays above log 2.
n, s, n_starts = 1000.0, 2.0, 8
rows = []
for name, clauses in formulas.items():
    grammar, sentence = sat_grammar(clauses)
    losses, found = [], None
    for seed in range(n_starts):
        model = MarginEMPCFG(
            grammar, s=s, init="random", max_iter=1000, tol=1e-7, random_state=seed
        ).fit([sentence], sample_weight=[n])
        losses.append(model.log_losses_[-1])
        if losses[-1] <= min(losses):
            found = assignment_of_tree(model.predict([sentence])[0])
    rows.append(
        {
            "formula": name,
            "variables": len({abs(l) for clause in clauses for l in clause}),
            "clauses": len(clauses),
            "satisfiable": satisfying(clauses) is not None,
            "best log-loss": min(losses),
            "-log α": -12 * len(clauses) * np.log1p(-model.gamma_),
            "starts that solve it": sum(loss < np.log(2) for loss in losses),
            "assignment satisfies": found is not None and satisfies(clauses, found),
            "losses": losses,
        }
    )
table = pd.DataFrame(rows).set_index("formula")
print(table.drop(columns="losses").round(5).to_string())

# %%
# No unsatisfiable formula falls below log 2, and where EM gets below it, its parse is a
# satisfying assignment. Satisfiable formulas need several starts, more of them as they
# grow, and eight are not enough for the one with four variables and 18 clauses: a local
# search is no way around NP-hardness.
below = table["best log-loss"] < np.log(2)
assert not (below & ~table["satisfiable"]).any()
assert table.loc[below, "assignment satisfies"].all()
assert (table.loc[below, "best log-loss"] <= table.loc[below, "-log α"]).all()

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for x, (_, row) in enumerate(table.iterrows()):
    color = "tab:blue" if row["satisfiable"] else "tab:red"
    ax.plot(np.full(n_starts, x), row["losses"], "o", color=color, alpha=0.4)
ax.axhline(np.log(2), color="black", linewidth=1, label="log 2")
ax.plot([], [], "o", color="tab:blue", label="satisfiable")
ax.plot([], [], "o", color="tab:red", label="unsatisfiable")
ax.set_xticks(range(len(table)), table.index, rotation=45, ha="right")
ax.set(ylabel="log-loss of each start", yscale="symlog", ylim=(-0.5, 300))
ax.legend(loc="upper center", ncols=3)
plt.show()
