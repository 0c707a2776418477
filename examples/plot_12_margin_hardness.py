"""
Why learning from strings is hard: 3-SAT as a grammar
=====================================================

Minimising the log-loss of a grammar over strings, with or without a margin, is NP-hard
(Cohen and Smith, 2012, section 6.2.1). A formula of 3-SAT becomes a grammar and one
string. If the formula is satisfiable, then some probabilities give the string almost
all mass; if not, none give it more than a half. EM with a margin, which is only a local
search, is run here on both kinds.
"""

# %%
# The start symbol is ``S<m>`` for m clauses (the paper writes S_n where it means S_m).
# ``A<j>`` has a rule for each assignment that satisfies clause j, ``U<r>=<y>`` says
# that variable r has the value y, and derives ``10`` by ``V<r>`` and ``V-<r>``, which
# stand for the variable and its negation.
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lpcfg_sk import CFG, MarginEMPCFG


def sat_grammar(clauses):
    """Return the grammar G_φ and the string s_φ = (10)^{3m} of a formula of 3-SAT.

    A clause is a tuple of three literals: r for the variable Y_r, -r for its negation,
    r = 1, 2, ...
    """
    clauses = checked_clauses(clauses)
    rules = []
    for j in range(len(clauses), 1, -1):
        rules.append((f"S{j}", (f"S{j - 1}", f"A{j}")))
    rules.append(("S1", ("A1",)))
    used = {}
    for j, clause in enumerate(clauses, start=1):
        variables = sorted({abs(literal) for literal in clause})
        for values in product((0, 1), repeat=len(variables)):
            value = dict(zip(variables, values, strict=True))
            if any(value[abs(literal)] == (literal > 0) for literal in clause):
                pairs = [(abs(literal), value[abs(literal)]) for literal in clause]
                used.update(dict.fromkeys(pairs))
                rules.append((f"A{j}", tuple(f"U{r}={y}" for r, y in pairs)))
    for r, y in sorted(used):
        sides = (f"V{r}", f"V-{r}") if y else (f"V-{r}", f"V{r}")
        rules.append((f"U{r}={y}", sides))
    for r in sorted({r for r, _ in used}):
        for sign in ("", "-"):
            rules += [(f"V{sign}{r}", ("0",)), (f"V{sign}{r}", ("1",))]
    return CFG(rules, f"S{len(clauses)}"), ["1", "0"] * (3 * len(clauses))


def assignment_of_tree(tree):
    """Read the values of the variables off a parse of the string.

    The result is None where the tree contradicts itself, by two rules of one ``V``.
    """
    assignment = {}
    for label, word in zip(tree.tags(), tree.words(), strict=True):
        if label is None or not label.startswith("V"):
            raise ValueError(f"{label!r} is no nonterminal V of a grammar of 3-SAT")
        r = int(label[1:])
        value = (word == "1") == (r > 0)
        if assignment.setdefault(abs(r), value) != value:
            return None
    return dict(sorted(assignment.items()))


def checked_clauses(clauses):
    clauses = [tuple(clause) for clause in clauses]
    if not clauses:
        raise ValueError("a formula needs at least one clause, got none")
    for j, clause in enumerate(clauses):
        if len(clause) != 3 or not all(
            isinstance(literal, int) and literal != 0 for literal in clause
        ):
            raise ValueError(
                f"clause {j} is {clause}; expected three integers r or -r, r ≥ 1"
            )
    return clauses


# %%
# Lemma 5: there are probabilities that give the string probability 1 if and only if the
# formula is satisfiable. More is true: for an unsatisfiable formula no probabilities
# give it more than 1/2. To see this, round the probabilities of ``V<r> -> 1`` to an
# assignment. It misses some clause j, so every rule of ``A<j>`` has a ``U`` that
# disagrees with it, and that ``U`` derives ``10`` with probability at most 1/2.
#
# This repairs the proof of theorem 4 for a margin γ > 0, which sets α = γ and claims
# that an unsatisfiable formula has probability at most γ: three uses each of
# ``V<r> -> 1`` and ``V<r> -> 0`` at probability 1/2 have much more. With at most 12
# binomial events per clause (6 of ``V``, 6 of the chain of ``A<j>``), a satisfiable
# formula reaches :math:`(1 - γ)^{12m}`, which is more than 1/2 for γ < 1/(24m): any α
# between the two tells the formulas apart.
#
# Seven random formulas, of which the longest (28 clauses) is unsatisfiable, and two
# small ones by hand. Whether they are satisfiable is found by brute force.
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
