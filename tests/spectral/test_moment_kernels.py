import numpy as np
import pytest
from scipy import sparse

from lpcfg_sk._kernels import _moments as kernel
from tests.reference import moments as reference
from tests.tolerances import EXACT


def frozen(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


@pytest.fixture
def matrix(seed):
    dense = sparse.random(30, 12, density=0.2, format="csr", random_state=seed)
    frozen(dense.indptr, dense.indices, dense.data)
    return dense


ROWS = np.array([3, 4, 9, 20, 29])


def test_active_columns(matrix):
    found = kernel.active_columns(matrix.indptr, matrix.indices, ROWS, 12)
    assert 0 < len(found) < 12
    np.testing.assert_array_equal(
        found, reference.active_columns(matrix.indptr, matrix.indices, ROWS, 12)
    )


def test_local_rows_renumbers_and_drops(matrix):
    number = np.array([-1, 0, 1, -1, 4, 3, 2, 5, -1, 6, 8, 7], dtype=np.int32)
    indptr, indices, data = kernel.local_rows(
        matrix.indptr, matrix.indices, matrix.data, ROWS, number
    )
    found = sparse.csr_matrix((data, indices, indptr), shape=(len(ROWS), 9))
    expected = matrix.toarray()[ROWS][:, [1, 2, 6, 5, 4, 7, 9, 11, 10]]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_project_rows_touches_only_its_rows(matrix, seed):
    rng = np.random.default_rng(seed)
    number = np.array([-1, 0, 1, -1, 4, 3, 2, 5, -1, 6, 8, 7], dtype=np.int32)
    weights, out = rng.normal(size=(9, 3)), rng.normal(size=(30, 4))
    expected = reference.project_rows(matrix, ROWS, number, weights, out)
    frozen(weights)
    kernel.project_rows(
        matrix.indptr, matrix.indices, matrix.data, ROWS, number, weights, out
    )
    np.testing.assert_allclose(out, expected, rtol=EXACT, atol=EXACT)


# More nodes than one block holds, one node, and a rule of unequal shapes.
N_NODES, SHAPES = 900, [(3, 2, 4), (1, 4, 4), (4, 4, 1), (2, 3, 3)]


@pytest.fixture
def nodes(seed):
    rng = np.random.default_rng(seed)
    rule = rng.choice([-1, 0, 0, 0, 2, 3], size=N_NODES)
    rule[5] = 1
    left, right = rng.integers(0, N_NODES, size=(2, N_NODES))
    weight = rng.uniform(0.5, 2, size=N_NODES)
    inside, outside = rng.normal(size=(2, N_NODES, 4))
    return rule, left, right, weight, inside, outside


def sums_by_kernel(nodes, begin, end):
    rule, left, right, weight, inside, outside = nodes
    inner = np.flatnonzero(rule >= 0)
    order = inner[np.argsort(rule[inner], kind="stable")]
    start = np.searchsorted(rule[order], np.arange(len(SHAPES) + 1))
    rule_nodes = kernel.RuleNodes(*frozen(order, start, left, right, weight))
    shapes = SHAPES[begin:end]
    sums = kernel.RuleSums(
        np.zeros(sum(a + b + c for a, b, c in shapes)),
        np.zeros(sum(a * b + a * c + b * c for a, b, c in shapes)),
        np.zeros(sum(a * b * c for a, b, c in shapes)),
    )
    arrays = frozen(inside, outside, np.array(SHAPES, dtype=np.int64))
    kernel.rule_sums(begin, end, rule_nodes, *arrays, sums)
    return sums


@pytest.mark.parametrize(("begin", "end"), [(0, 4), (1, 3)])
def test_rule_sums(nodes, begin, end):
    expected = reference.rule_sums(*nodes, SHAPES)[begin:end]
    for part, found in enumerate(sums_by_kernel(nodes, begin, end)):
        np.testing.assert_allclose(
            found,
            np.concatenate([sums[part] for sums in expected]),
            rtol=1e-11,
            atol=1e-11,
        )


@pytest.mark.parametrize("strength", [0.0, 5.0])
def test_smooth_rules(nodes, strength, seed):
    rng = np.random.default_rng(seed)
    rule, _, _, weight, _, _ = nodes
    counts = np.array([weight[rule == r].sum() for r in range(4)])
    means = rng.normal(size=(3, 4, 4))
    divisor = counts + rng.uniform(1, 9, size=4)
    shapes = np.array(SHAPES, dtype=np.int64)
    sums = reference.rule_sums(*nodes, SHAPES)
    first, second, third = (
        np.concatenate([s[part] for s in sums]) for part in (0, 1, 2)
    )
    frozen(first, second)
    kernel.smooth_rules(
        counts,
        strength,
        shapes,
        kernel.RuleMeans(*means),
        kernel.RuleSums(first, second, third),
        divisor,
    )
    expected = [
        reference.smooth_rule(
            sums[r], SHAPES[r], counts[r], strength, means[:, r], divisor[r]
        ).ravel()
        for r in range(4)
    ]
    np.testing.assert_allclose(third, np.concatenate(expected), rtol=1e-11, atol=1e-13)


def test_rule_without_nodes_has_a_zero_tensor():
    third = np.full(1, np.nan)
    kernel.smooth_rules(
        np.zeros(1),
        5.0,
        np.ones((1, 3), dtype=np.int64),
        kernel.RuleMeans(*np.ones((3, 1, 1))),
        kernel.RuleSums(np.ones(3), np.ones(3), third),
        np.ones(1),
    )
    assert third[0] == 0.0


def test_leaf_sums(seed):
    rng = np.random.default_rng(seed)
    entry = rng.integers(-1, 5, size=50).astype(np.int32)
    lex_label = np.array([0, 1, 1, 0, 2], dtype=np.int32)
    m = np.array([2, 3, 1])
    weight, outside = rng.uniform(size=50), rng.normal(size=(50, 3))
    offset = np.array([0, 2, 5, 8, 10, 11])
    out = np.zeros(11)
    kernel.leaf_sums(*frozen(entry, weight, outside, lex_label, m, offset), out)
    expected = reference.leaf_sums(entry, weight, outside, lex_label, m)
    np.testing.assert_allclose(out, expected, rtol=EXACT, atol=EXACT)
