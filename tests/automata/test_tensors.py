import numpy as np
import pytest

from lpcfg_sk._kernels._wta_charts import node_heights, rescale_rows
from lpcfg_sk._kernels._wta_tensors import contract_sparse, semidefinite_cholesky
from lpcfg_sk.automata._algebra import add_tensors, direct_sum, kronecker
from lpcfg_sk.automata._conversion import as_tensor
from lpcfg_sk.automata._tensors import CPTensor, DenseTensor, SparseTensor
from tests.reference import wta as reference
from tests.tolerances import EXACT, SUM


def forms(rng, n):
    """One tensor of each form, with its dense array."""
    dense = rng.standard_normal((n, n, n))
    holes = np.where(rng.random((n, n, n)) < 0.2, rng.standard_normal((n, n, n)), 0)
    factors = [rng.standard_normal((n, 2)) for _ in range(3)]
    i, j, k = np.nonzero(holes)
    return [
        (DenseTensor(dense), dense),
        (SparseTensor(i, j, k, holes[i, j, k], n), holes),
        (CPTensor(*factors), np.einsum("ir,jr,kr->ijk", *factors)),
    ]


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def test_each_form_agrees_with_its_array(rng):
    n = 5
    left, right = rng.standard_normal((2, 7, n))
    bases = [rng.standard_normal((n, q)) for q in (2, 3, 4)]
    for tensor, array in forms(rng, n):
        np.testing.assert_allclose(tensor.to_dense(), array, rtol=0, atol=EXACT)
        np.testing.assert_allclose(
            tensor.apply(left, right),
            np.einsum("ijk,mj,mk->mi", array, left, right),
            rtol=0,
            atol=1e-10,
        )
        np.testing.assert_allclose(
            tensor.project(*bases).to_dense()
            if tensor.kind != "cp"
            else np.einsum("ir,jr,kr->ijk", *tensor.project(*bases).arrays().values()),
            np.einsum("ijk,ia,jb,kc->abc", array, *bases),
            rtol=0,
            atol=1e-10,
        )
        for axes in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            np.testing.assert_allclose(
                tensor.permuted(axes).to_dense(),
                array.transpose(axes),
                rtol=0,
                atol=EXACT,
            )
        some = np.array([0, 3, 4])
        np.testing.assert_allclose(
            tensor.restricted(some).to_dense(),
            array[np.ix_(some, some, some)],
            rtol=0,
            atol=EXACT,
        )
        np.testing.assert_allclose(
            tensor.scaled(3).to_dense(), 3 * array, rtol=0, atol=1e-10
        )
        i, j, k, weight = tensor.entries()
        again = np.zeros_like(array)
        again[i, j, k] = weight
        np.testing.assert_allclose(again, array, rtol=0, atol=EXACT)


def test_contract_of_all_pairs_of_forms(rng):
    for first, array in forms(rng, 4):
        for second, other in forms(rng, 6):
            x, y = rng.standard_normal((2, 4, 6))
            np.testing.assert_allclose(
                first.contract(x, y, second),
                reference.contract(array, x, y, other),
                rtol=0,
                atol=1e-9,
            )


def test_features_factor_apply(rng):
    n = 4
    left, right = rng.standard_normal((2, 3, n))
    weights = rng.standard_normal((3, n))
    for tensor, _ in forms(rng, n):
        a, b = tensor.left(left), tensor.right(right)
        if tensor.pairs is None:
            sums = (a[:, :, None] * b[:, None, :]).reshape(3, -1)
        else:
            sums = a[:, tensor.pairs[0]] * b[:, tensor.pairs[1]]
        assert sums.shape[1] == tensor.n_features
        np.testing.assert_allclose(
            tensor.combine(sums), tensor.apply(left, right), rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(
            (tensor.combine(sums) * weights).sum(),
            (tensor.combine_adjoint(weights) * sums).sum(),
            rtol=0,
            atol=1e-10,
        )


def test_sparse_kernel_reads_read_only_arrays(rng):
    sparse, array = forms(rng, 4)[1]
    x, y = rng.standard_normal((2, 4, 4))
    rows, columns = sparse._by_row, sparse._by_column
    for a in (*rows, x, y, *columns):
        a.flags.writeable = False
    np.testing.assert_allclose(
        contract_sparse(rows, x, y, columns, 4),
        reference.contract(array, x, y, array),
        rtol=0,
        atol=1e-10,
    )


def test_repeated_coordinates_add_up():
    tensor = SparseTensor([0, 0], [1, 1], [0, 0], [0.25, 0.5], 2)
    assert tensor.n_parameters == 1
    assert tensor.to_dense()[0, 1, 0] == 0.75


def test_sums_and_products_of_tensors(rng):
    first, second = forms(rng, 2), forms(rng, 3)
    for a, array in first:
        for b, other in second:
            whole = direct_sum(a, b).to_dense()
            np.testing.assert_allclose(whole[:2, :2, :2], array, rtol=0, atol=EXACT)
            np.testing.assert_allclose(whole[2:, 2:, 2:], other, rtol=0, atol=EXACT)
            assert np.count_nonzero(whole) <= array.size + other.size
            np.testing.assert_allclose(
                kronecker(a, b).to_dense(), np.kron(array, other), rtol=0, atol=SUM
            )
        for b, other in forms(rng, 2):
            np.testing.assert_allclose(
                add_tensors([a, b]).to_dense(), array + other, rtol=0, atol=EXACT
            )


def test_reach_of_states():
    sparse = SparseTensor([0, 2], [1, 3], [1, 1], [1.0, 0.0], 4)
    below = np.array([False, True, False, True])
    for tensor in (sparse, DenseTensor(sparse.to_dense())):
        np.testing.assert_array_equal(tensor.above(below), [True, False, False, False])
        np.testing.assert_array_equal(
            tensor.beneath(np.ones(4, dtype=bool), below), [False, True, False, False]
        )
    cp = CPTensor([[1.0], [0.0]], [[0.0], [2.0]], [[0.0], [1.0]])
    np.testing.assert_array_equal(cp.above(np.array([False, True])), [True, False])
    np.testing.assert_array_equal(
        cp.beneath(np.array([True, False]), np.array([True, True])), [False, True]
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((2, 3, 2)), "shape"),
        (([0], [0], [2], [1.0]), "integers from 0 to 1"),
        (([0], [0], [-1], [1.0]), "integers from 0 to 1"),
        (([0, 1], [0], [0], [1.0]), "one length"),
        (np.full((2, 2, 2), np.nan), "nan"),
        (DenseTensor(np.zeros((3, 3, 3))), "3 states"),
    ],
)
def test_bad_tensors_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        as_tensor(value, 2)


def test_cholesky_of_semidefinite_matrices(rng):
    root = rng.standard_normal((6, 3))
    root[4] = root[1]
    root /= np.linalg.norm(root, axis=1)[:, None]
    gram = root @ root.T
    gram.flags.writeable = False
    lower = semidefinite_cholesky(gram, 1e-12)
    np.testing.assert_allclose(lower @ lower.T, gram, rtol=0, atol=SUM)
    np.testing.assert_allclose(lower, reference.cholesky(gram, 1e-12), rtol=0, atol=SUM)
    assert (np.diagonal(lower) > 0).sum() == 3


def test_heights_and_scales():
    # ((a b) c) and one leaf
    size = np.array([5, 3, 1, 1, 1, 1], dtype=np.int32)
    heights = node_heights(np.array([0, 5, 6]), size)
    np.testing.assert_array_equal(heights, [2, 1, 0, 0, 0, 0])
    rows = np.array([[2.0, -4.0], [0.0, 0.0], [5e-324, 0.0]])
    scale = np.zeros(3)
    rescale_rows(rows, scale)
    np.testing.assert_array_equal(rows, [[0.5, -1.0], [0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(scale, [np.log(4), -np.inf, np.log(5e-324)], rtol=EXACT)
