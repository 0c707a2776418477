import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import Treebank
from lpcfg_sk._kernels._em_batches import add_product, multiply_rows, schedule
from lpcfg_sk._kernels._lpcfg_trees import contract, contract_down
from lpcfg_sk._kernels._shared import rescale
from lpcfg_sk.em._expectation import ExpectedCounts
from lpcfg_sk.lpcfg import Estimates, Layout, grammar_of_parameters, maximize
from lpcfg_sk.treebank import RuleIndex
from tests.em.training import training_trees
from tests.reference import lpcfg as reference
from tests.tolerances import EXACT


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("n_x", [1, 3, 4, 7])
@pytest.mark.parametrize("n_y", [1, 2, 5, 9])
@pytest.mark.parametrize("length", [1, 6, 17])
def test_multiply_rows(n_x, n_y, length):
    rng = np.random.default_rng(n_x * 100 + n_y * 10 + length)
    x, y = rng.standard_normal((n_x, length)), rng.standard_normal((n_y, length))
    out = np.full((n_x + 1, n_y + 1), 7.0)
    multiply_rows(frozen(x.ravel()), frozen(y.ravel()), n_x, n_y, length, out)
    assert_allclose(out[:n_x, :n_y], x @ y.T, rtol=0, atol=EXACT)
    assert np.all(out[n_x] == 7.0)
    assert np.all(out[:, n_y] == 7.0)


@pytest.mark.parametrize("n_out", [1, 2, 5])
@pytest.mark.parametrize("n_x", [1, 3, 4, 7, 9])
@pytest.mark.parametrize("length", [1, 6, 17])
def test_add_product(n_out, n_x, length):
    rng = np.random.default_rng(n_out * 100 + n_x * 10 + length)
    weights = rng.standard_normal((n_out, n_x + 2))
    x = rng.standard_normal((n_x, length))
    out = rng.standard_normal((n_out, length))
    expected = out + weights[:, :n_x] @ x
    flat = out.ravel()
    add_product(frozen(weights), frozen(x.ravel()), n_out, n_x, length, flat)
    assert_allclose(flat.reshape(out.shape), expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 1, 2), (4, 4, 4)])
def test_contractions(shape):
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal(shape)
    above, left, right = (rng.standard_normal(n) for n in shape)
    pairs = np.empty(shape[1] * shape[2])
    out = np.empty(shape[0])
    contract(frozen(tensor.ravel()), left, right, pairs, out)
    assert_allclose(
        out, np.einsum("hjk,j,k->h", tensor, left, right), rtol=0, atol=EXACT
    )
    out_left, out_right = np.empty(shape[1]), np.empty(shape[2])
    contract_down(tensor.ravel(), above, left, right, pairs, out_left, out_right)
    assert_allclose(
        out_left, np.einsum("hjk,h,k->j", tensor, above, right), rtol=0, atol=EXACT
    )
    assert_allclose(
        out_right, np.einsum("hjk,h,j->k", tensor, above, left), rtol=0, atol=EXACT
    )


def test_rescale():
    vector = np.array([1.0, -4.0, 2.0])
    assert rescale(vector) == 4.0
    assert vector.tolist() == [0.25, -1.0, 0.5]
    zero = np.zeros(2)
    assert rescale(zero) == 0.0
    assert not zero.any()


def random_index(seed, n=40, size=6):
    rng = np.random.default_rng(seed)
    grammar = reference.random_grammar(rng, density=0.4)
    trees = [reference.random_tree(rng, grammar, size=size) for _ in range(n)]
    return RuleIndex.from_treebank(Treebank(trees)), trees


def statistics_of(index, layout, weight, **options):
    return ExpectedCounts(training_trees(index, weight), layout, **options)


def test_schedule_is_bottom_up_and_by_rule(seed):
    index, _ = random_index(seed)
    order, bounds = schedule(
        index.node_offsets, index.size, index.parent, index.rule, index.n_rules
    )
    assert sorted(order) == np.flatnonzero(index.size > 1).tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(order)
    batch = np.full(index.n_nodes, -1)
    for g, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        assert len(set(index.rule[order[lo:hi]])) == 1
        batch[order[lo:hi]] = g
    for i in order:
        left = i + 1
        right = left + index.size[left]
        assert batch[left] < batch[i]
        assert batch[right] < batch[i]
    assert len(bounds) - 1 < len(order)


def random_estimates(rng, index, m=4):
    layout = Layout.build(index, rng.integers(1, m + 1, size=len(index.nonterminals)))
    estimates = Estimates(
        rng.random(layout.rule_offset[-1]),
        rng.random(layout.lex_offset[-1]),
        rng.random(layout.root_offset[-1]),
    )
    return layout, estimates


@pytest.mark.parametrize("case", range(3))
def test_expected_counts_equal_the_sum_over_annotations(case):
    rng = np.random.default_rng(case)
    index, trees = random_index(case, n=12, size=3)
    layout, estimates = random_estimates(rng, index)
    weight = rng.random(len(trees)) + 0.5
    counts, log_likelihood, lost = statistics_of(index, layout, weight)(estimates)
    grammar = reference.as_grammar(index, layout, estimates)
    *expected, expected_log = reference.expected_counts(grammar, trees, weight)
    found = reference.as_grammar(
        index, layout, counts._replace(binary=counts.binary * estimates.binary)
    )
    assert lost == 0
    assert_allclose(log_likelihood, expected_log, rtol=EXACT, atol=0)
    for view, table in zip(
        (found.binary, found.lexical, found.root), expected, strict=True
    ):
        for key, value in table.items():
            assert_allclose(view[key], value, rtol=1e-11, atol=EXACT)


def test_expected_counts_are_the_gradient_of_the_log_likelihood(seed):
    # d log L / d θ = count / θ, by central differences.
    rng = np.random.default_rng(seed)
    index, trees = random_index(seed, n=20)
    layout, estimates = random_estimates(rng, index)
    statistics = statistics_of(index, layout, np.ones(len(trees)))
    counts, _, _ = statistics(estimates)
    step = 1e-6
    for name in estimates._fields:
        values = getattr(estimates, name)
        count = getattr(counts, name)
        gradient = count if name == "binary" else count / values
        for at in rng.integers(len(values), size=8):
            logs = []
            for sign in (1, -1):
                moved = values.copy()
                moved[at] += sign * step
                logs.append(statistics(estimates._replace(**{name: moved}))[1])
            difference = (logs[0] - logs[1]) / (2 * step)
            assert_allclose(gradient[at], difference, rtol=1e-5, atol=1e-6)


def test_many_states_and_large_batches(seed):
    # 70 equal trees fill more than one slab of nodes of the same rule.
    rng = np.random.default_rng(seed)
    trees = ["(S (A x) (S (A y) (A x)))"] * 70 + ["(S (A x) (A x))"] * 3
    index = RuleIndex.from_treebank(Treebank(trees))
    layout = Layout.build(index, [13, 9])
    estimates = Estimates(
        rng.random(layout.rule_offset[-1]),
        rng.random(layout.lex_offset[-1]),
        rng.random(layout.root_offset[-1]),
    )
    counts, log_likelihood, _ = statistics_of(index, layout, np.ones(len(trees)))(
        estimates
    )
    grammar = reference.as_grammar(index, layout, estimates)
    assert_allclose(log_likelihood, grammar.log_prob(trees).sum(), rtol=EXACT, atol=0)
    n_inner = (index.rule >= 0).sum()
    assert_allclose((counts.binary * estimates.binary).sum(), n_inner, rtol=1e-11)
    assert_allclose(counts.lexical.sum(), (index.rule < 0).sum(), rtol=1e-11)
    assert_allclose(counts.root.sum(), len(trees), rtol=1e-11)


def test_chunks_and_jobs_change_nothing(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    index, trees = random_index(seed, n=60)
    layout, estimates = random_estimates(rng, index)
    weight = rng.random(len(trees))
    whole = statistics_of(index, layout, weight)(estimates)
    monkeypatch.setattr("lpcfg_sk.em._expectation.CHUNK_WORK", 50)
    monkeypatch.setattr("lpcfg_sk.em._expectation._NODES_PER_RULE", 0)
    cut = statistics_of(index, layout, weight)
    assert len(cut.chunks) > 3
    one = cut(estimates)
    two = statistics_of(index, layout, weight, n_jobs=2)(estimates)
    for a, b, c in zip(whole[0], one[0], two[0], strict=True):
        assert np.array_equal(b, c)
        assert_allclose(a, b, rtol=1e-11, atol=EXACT)
    assert one[1:] == two[1:]
    # Recycled arrays must be as good as new ones.
    cut.recycle(two[0])
    again = cut(estimates)
    for a, b in zip(one[0], again[0], strict=True):
        assert np.array_equal(a, b)


def test_trees_of_probability_zero_are_left_out_and_weighed(seed):
    index = RuleIndex.from_treebank(Treebank(["(S (A x) (A y))", "(S (A x) (A x))"]))
    layout = Layout.build(index, [1, 1])
    y = index.words.index("y")
    lexical = np.where(index.lex_word == y, 0.0, 0.5)
    estimates = Estimates(np.ones(1), lexical, np.ones(1))
    counts, log_likelihood, lost = statistics_of(index, layout, np.array([3.0, 2.0]))(
        estimates
    )
    assert lost == 3.0
    assert_allclose(log_likelihood, 2 * np.log(0.25), rtol=EXACT)
    assert counts.root.sum() == 2.0
    assert np.all(np.isfinite(counts.binary))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_maximize_equals_the_formula(seed, smoothing):
    rng = np.random.default_rng(seed)
    index, _ = random_index(seed)
    layout, counts = random_estimates(rng, index)
    grammar = reference.as_grammar(index, layout, counts)
    expected = reference.maximize(
        (dict(grammar.binary), dict(grammar.lexical)), smoothing, 0.5, 10.0
    )
    expected = tuple(
        {key: value.copy() for key, value in table.items()} for table in expected
    )
    totals = maximize(index, layout, counts, smoothing=smoothing)
    found = reference.as_grammar(index, layout, counts)
    for view, table in zip((found.binary, found.lexical), expected, strict=True):
        for key, value in table.items():
            assert_allclose(view[key], value, rtol=1e-11, atol=EXACT)
    assert found.is_probabilistic
    assert len(totals) == layout.state_offset[-1]


def test_a_label_with_words_and_children_stays_normalised(seed):
    rng = np.random.default_rng(seed)
    trees = ["(X (X x) (X y))", "(X (X (X x) (X x)) (X z))", "(X x)"] * 3
    index = RuleIndex.from_treebank(Treebank(trees))
    layout = Layout.build(index, [3])
    counts = Estimates(
        rng.random(layout.rule_offset[-1]),
        rng.random(layout.lex_offset[-1]),
        rng.random(layout.root_offset[-1]),
    )
    totals = maximize(index, layout, counts)
    rules = index.count()
    grammar = grammar_of_parameters(rules, layout, counts, totals, alpha=1.0)
    assert grammar.is_probabilistic
    assert grammar.unknown_word == "<UNK>"
