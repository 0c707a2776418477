"""Loops that end whatever the numbers, and charts that stay within their memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

from lpcfg_sk import CFG, MarginEMPCFG, Treebank
from lpcfg_sk._kernels._cfg_best import cfg_best_tree
from lpcfg_sk.cfg._derivations import _best_charts, best_trees, expected_rule_counts
from lpcfg_sk.cfg._rules import best_chains, rewarded_chains
from lpcfg_sk.exceptions import ChartMemoryError

pytestmark = pytest.mark.kernels

CYCLES = CFG.from_string(
    "S -> A B | A | S S\nA -> B | C | 'x'\nB -> A | C\nC -> B | 'y' | 'x' 'y' C",
    unary_cycles="allow",
)
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.3, 5.0, 1e308)


@pytest.mark.parametrize("chains_of", [best_chains, rewarded_chains])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_best_trees_end_whatever_the_scores(chains_of, seed):
    rng = np.random.RandomState(seed)
    tables, n = CYCLES.tables(), 5
    words = rng.randint(tables.n_terminals, size=n).astype(np.int32)
    n_trees = 0
    for _ in range(200):
        scores = np.where(
            rng.uniform(size=len(CYCLES.rules)) < 0.5,
            -1.0,
            rng.choice(NUMBERS, size=len(CYCLES.rules)),
        )
        weights, chains = chains_of(tables, scores)
        bonus = np.zeros((0, 0))
        if chains_of is rewarded_chains:
            bonus = np.full((n * (n + 1) // 2, tables.n_nonterminals), 0.3)
            bonus.flat[rng.randint(bonus.size, size=3)] = rng.choice(NUMBERS, size=3)
        chart = next(_best_charts(n, tables, 2**20))
        fits, label, size, _ = cfg_best_tree(
            words, tables, weights, chains, bonus, chart
        )
        n_trees += len(label) > 0
        assert fits and (len(label) == 0 or (size == 1).sum() == n)
    assert 0 < n_trees < 200


@pytest.mark.parametrize("value", [np.nan, -0.5, 2.0])
def test_probabilities_set_by_hand_are_checked(value):
    model = MarginEMPCFG(CFG.from_string("S -> 'a' S | 'b'")).fit([["a", "b"], ["b"]])
    model.theta_ = model.theta_ * 0 + value
    for method in (model.predict, model.sentence_log_prob, model.marginals):
        with pytest.raises(ValueError, match="one probability between 0 and 1"):
            method([["b"]])


def test_charts_grow_as_far_as_the_memory_goes():
    rules = [f"A{i} -> 'a' | 'a' 'a'" for i in range(60)]
    many = "S -> 'a' | " + " | ".join(f"A{i} S | S A{i} 'a'" for i in range(60))
    grammar = CFG.from_string("\n".join([many, *rules]))
    X, one = Treebank([["a"] * 12, ["a"] * 3]), np.ones(2)
    theta = np.full(len(grammar.rules), 0.01)
    expected = expected_rule_counts(grammar, X, theta, one)
    tree = list(best_trees(grammar, X, theta, "viterbi"))
    limit = 2**10
    while True:
        try:
            found = expected_rule_counts(grammar, X, theta, one, max_memory=limit)
            trees = list(best_trees(grammar, X, theta, "viterbi", max_memory=limit))
            break
        except ChartMemoryError as error:
            assert f"max_memory={limit:,}" in str(error)
            limit *= 2
    assert limit > 2**16
    assert found[0].tobytes() == expected[0].tobytes()
    assert found[1].tobytes() == expected[1].tobytes()
    for one, two in zip(tree, trees, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("decoder", ["viterbi", "max-marginal", "mbr"])
def test_max_memory_holds_for_all_charts(decoder):
    grammar = CFG.from_string("S -> S S | 'a' S | 'b'")
    X = [["a", "b"], ["b", "b"], ["b"]]
    model = MarginEMPCFG(grammar, decoder=decoder, max_iter=5, tol=0.5).fit(X)
    model.set_params(max_memory=5000, on_failure="raise")
    long = [["a"] * 40 + ["b"]]
    assert len(model.predict(X)) == 3
    for method in (
        *(model.predict, model.sentence_log_prob, model.marginals),
        *(model.score, model.transform, model.fit),
    ):
        with pytest.raises(ChartMemoryError, match="max_memory=5,000"):
            method(long)


_LEAK = """
import resource
from pathlib import Path
from lpcfg_sk import CFG, MarginEMPCFG
symbols = [f"A{i}" for i in range(60)]
rules = "S -> S S | 'b' | " + " | ".join(symbols)
rules += "".join(f"\\n{a} -> 'a' S | S 'a'" for a in symbols)
model = MarginEMPCFG(CFG.from_string(rules), max_iter=1, tol=None, max_memory=2**40)
model.fit([["a", "b"], ["b", "b"], ["b"]])
methods = model.predict, model.sentence_log_prob, model.marginals
for method in methods:
    method([["a", "b"]])
def size():
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096
limit = size() + 2**28
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = size()
for _ in range(3):
    for method in methods:
        try:
            method([["a"] * 1200 + ["b"]])
        except MemoryError:
            print("MemoryError")
print((size() - before) // 2**20)
"""


@pytest.mark.slow_without_jit
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_running_out_of_memory_leaks_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _LEAK],
        # Otherwise threads of long sentences reserve addresses for those after them.
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
    )
    *errors, grown = done.stdout.splitlines()
    assert errors == ["MemoryError"] * 9, done.stderr
    assert int(grown) < 32
