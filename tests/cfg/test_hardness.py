import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lpcfg_sk import CFG, MarginEMPCFG, Tree, Treebank
from lpcfg_sk.cfg._derivations import best_trees, expected_rule_counts
from tests.reference import cfg as reference
from tests.tolerances import EXACT

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_12_margin_hardness.py"


def example_functions():
    """Define the functions of the example without running it."""
    module = ast.parse(EXAMPLE.read_text("utf-8"))
    module.body = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    names = {"CFG": CFG, "product": product}
    exec(compile(module, str(EXAMPLE), "exec"), names)
    return names


sat_grammar = example_functions()["sat_grammar"]
assignment_of_tree = example_functions()["assignment_of_tree"]

FIGURE_3 = [(1, 2, -4), (-1, -2, 3)]
SATISFIABLE = [
    FIGURE_3,
    [(1, 1, 1)],
    [(1, -1, 2)],
    [(1, 2, 2), (1, -2, -2), (-1, 2, 2)],
]
UNSATISFIABLE = [
    [(1, 1, 1), (-1, -1, -1)],
    [(1, 2, 2), (1, -2, -2), (-1, 2, 2), (-1, -2, -2)],
]


def satisfies(clauses, assignment):
    return all(any(assignment[abs(l)] == (l > 0) for l in c) for c in clauses)


def assignments(clauses):
    variables = sorted({abs(l) for clause in clauses for l in clause})
    for values in product([False, True], repeat=len(variables)):
        yield dict(zip(variables, values, strict=True))


def theta_of(grammar, clauses, assignment):
    """The probabilities of lemma 5: 1 for the rules that the assignment uses."""
    theta = np.zeros(len(grammar.rules))
    for i, rule in enumerate(grammar.rules):
        if rule.lhs.startswith("A"):
            clause = clauses[int(rule.lhs[1:]) - 1]
            wanted = tuple(f"U{abs(l)}={int(assignment[abs(l)])}" for l in clause)
            theta[i] = rule.rhs == wanted
        elif rule.lhs.startswith("V"):
            r = int(rule.lhs[1:])
            theta[i] = (rule.rhs == ("1",)) == (assignment[abs(r)] == (r > 0))
        else:
            theta[i] = 1.0
    return theta


def log_probability(grammar, sentence, theta):
    return expected_rule_counts(grammar, Treebank([sentence]), theta, np.zeros(1))[0][0]


def test_construction():
    grammar, sentence = sat_grammar(FIGURE_3)
    assert grammar.start == "S2"
    assert set(grammar.terminals) == {"0", "1"}
    assert "".join(sentence) == "10" * 6
    rules = [str(rule) for rule in grammar.rules]
    assert sum(rule.startswith("A1 ->") for rule in rules) == 7
    assert "A1 -> U1=0 U2=1 U4=0" in rules
    assert "A1 -> U1=0 U2=0 U4=1" not in rules
    assert {"S2 -> S1 A2", "S1 -> A1", "U4=0 -> V-4 V4", "V-4 -> '1'"} <= set(rules)
    # A variable twice in a clause has one value.
    rules = [str(rule) for rule in sat_grammar([(1, -1, 2)])[0].rules]
    assert sum(rule.startswith("A1 ->") for rule in rules) == 4


@pytest.mark.parametrize("clauses", SATISFIABLE)
def test_a_satisfying_assignment_gives_probability_one(clauses):
    grammar, sentence = sat_grammar(clauses)
    X = Treebank([sentence])
    n_good = 0
    for assignment in assignments(clauses):
        theta = theta_of(grammar, clauses, assignment)
        if not satisfies(clauses, assignment):
            continue
        n_good += 1
        assert log_probability(grammar, sentence, theta) == 0.0
        label, size, _ = next(best_trees(grammar, X, theta, "viterbi"))
        tree = _tree(grammar, label, size, sentence)
        assert assignment_of_tree(tree) == assignment
    assert n_good > 0


def _tree(grammar, label, size, sentence):
    words = iter(sentence)
    parts, closing = [], []
    for node, (a, n) in enumerate(zip(label, size, strict=True)):
        while closing and closing[-1] == node:
            parts.append(")")
            closing.pop()
        parts.append(f"({grammar.nonterminals[a]}")
        closing.append(node + n)
        if n == 1:
            parts.append(next(words))
    return Tree.from_string(" ".join(parts) + ")" * len(closing))


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("clauses", SATISFIABLE + UNSATISFIABLE)
def test_consistent_derivations_are_satisfying_assignments(clauses):
    """Lemma 4: a derivation with one rule a nonterminal, and no other, satisfies."""
    grammar, sentence = sat_grammar(clauses)
    found = []
    for derivation in reference.derivations(grammar, sentence):
        tree = Tree.from_string(reference.bracketed(grammar, derivation))
        assignment = assignment_of_tree(tree)
        rules = reference.rule_counts(derivation)
        consistent = len({grammar.rules[r].lhs for r in rules}) == len(rules)
        assert consistent == (assignment is not None)
        if consistent:
            assert satisfies(clauses, assignment)
            found.append(tuple(assignment.items()))
    expected = [tuple(a.items()) for a in assignments(clauses) if satisfies(clauses, a)]
    assert sorted(found) == sorted(expected)
    assert bool(found) == (clauses in SATISFIABLE)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("clauses", UNSATISFIABLE)
def test_no_probabilities_reach_a_half_without_an_assignment(clauses, seed):
    grammar, sentence = sat_grammar(clauses)
    rng = np.random.default_rng(seed)
    lhs = [rule.lhs for rule in grammar.rules]
    starts = [theta_of(grammar, clauses, a) for a in assignments(clauses)]
    for concentration in (0.05, 0.3, 1.0):
        for _ in range(60):
            theta = rng.gamma(concentration, size=len(lhs)) + 1e-12
            for a in set(lhs):
                group = np.array([b == a for b in lhs])
                theta[group] /= theta[group].sum()
            starts.append(theta)
    best = max(log_probability(grammar, sentence, theta) for theta in starts)
    assert best <= -np.log(2)
    model = MarginEMPCFG(grammar, n_init=5, init="random", random_state=seed, tol=1e-9)
    model.fit([sentence], sample_weight=[1000.0])
    assert model.log_losses_[-1] >= np.log(2)


@pytest.mark.parametrize("clauses", SATISFIABLE)
def test_margin_em_solves_small_formulas(clauses, seed):
    grammar, sentence = sat_grammar(clauses)
    model = MarginEMPCFG(
        grammar, s=2.0, n_init=10, init="random", random_state=seed, max_iter=500
    )
    model.fit([sentence], sample_weight=[100.0])
    m = len(clauses)
    assert model.gamma_ < 1 / (24 * m)
    assert model.log_losses_[-1] <= -12 * m * np.log1p(-model.gamma_)
    assert satisfies(clauses, assignment_of_tree(model.predict([sentence])[0]))


def test_probability_one_means_loss_zero_after_the_margin():
    grammar, sentence = sat_grammar([(1, 1, 1)])
    model = MarginEMPCFG(grammar).fit([sentence], sample_weight=[100.0])
    # Six events of V1 and V-1; A1 has one rule.
    assert model.log_losses_[-1] == pytest.approx(-6 * np.log1p(-1e-3), rel=EXACT)


def test_bad_input():
    for clauses in ([(1, 2)], [(1, 0, 2)], [(1, 2, 3), (1, 2, "x")]):
        with pytest.raises(ValueError, match="expected three integers"):
            sat_grammar(clauses)
    with pytest.raises(ValueError, match="at least one clause"):
        sat_grammar([])
    with pytest.raises(ValueError, match="'NN' is no nonterminal V"):
        assignment_of_tree(Tree.from_string("(S (NN dog))"))
