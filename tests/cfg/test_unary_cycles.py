"""Cycles of unary rules that no derivation of a sentence contains."""

import numpy as np
import pytest

from lpcfg_sk import CFG, MarginEMPCFG
from lpcfg_sk.cfg._rules import rule_weights, useful_nonterminals
from tests.tolerances import EXACT

SENTENCES = [["a"], ["a", "a"], ["a"]]
PLAIN = "S -> 'a' S | 'a'"

CYCLES = {
    "derives nothing": PLAIN + "\nA -> B\nB -> A",
    "derives nothing, from the start": PLAIN + " | A\nA -> B\nB -> A",
    "is not reached": PLAIN + "\nA -> A",
    "is reached beside what derives nothing": PLAIN
    + " | C B\nC -> C C\nB -> B | B 'b'",
}


@pytest.mark.filterwarnings("ignore:.*useless:UserWarning")
@pytest.mark.parametrize("name", CYCLES)
def test_a_useless_cycle_of_unary_rules_does_not_stop_a_fit(name):
    grammar = CFG.from_string(CYCLES[name], unary_cycles="allow")
    model = MarginEMPCFG(grammar).fit(SENTENCES)
    assert np.isfinite(model.score(SENTENCES))
    assert str(model.predict([["a", "a"]])[0]) == "(S a (S a))"


def test_cycles_that_diverge_are_refused_still():
    grammar = CFG.from_string("S -> A | 'a'\nA -> S", unary_cycles="allow")
    tables = grammar.tables()
    with pytest.raises(ValueError, match="remove the cycle"):
        rule_weights(tables, np.array([1.0, 1e-300, 1.0]))


def test_useful_nonterminals_depend_on_the_probabilities():
    text = "S -> 'a' S | A 'b' 'c' | 'a'\nA -> B | 'a'\nB -> A | B"
    tables = CFG.from_string(text, unary_cycles="allow").tables()
    theta = np.array([0.3, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5])
    np.testing.assert_array_equal(useful_nonterminals(tables, theta), [1, 1, 1])
    theta[4] = 0.0  # A derives nothing any more
    np.testing.assert_array_equal(useful_nonterminals(tables, theta), [1, 0, 0])
    theta[:] = [0.3, 0.0, 0.7, 0.0, 1.0, 0.0, 1.0]  # neither is reached
    np.testing.assert_array_equal(useful_nonterminals(tables, theta), [1, 0, 0])
    weights = rule_weights(tables, theta)
    np.testing.assert_allclose(weights.chain[weights.chain_top == 0], 1.0, rtol=EXACT)
