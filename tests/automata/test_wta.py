from itertools import product

import numpy as np
import pytest

from lpcfg_sk import LPCFG, PCFG, WTA, Treebank
from lpcfg_sk.automata._reduction import reduction
from lpcfg_sk.automata._tensors import CPTensor, SparseTensor
from lpcfg_sk.exceptions import ChartMemoryError, NotStronglyConvergentError
from tests.reference import wta as reference
from tests.reference.wta import all_trees, random_wta
from tests.tolerances import EXACT, ITERATIVE, SUM


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def dense(wta):
    arrays = [t.to_dense() for t in wta.tensors]
    return (
        arrays[0] if wta.labels is None else dict(zip(wta.labels, arrays, strict=True))
    )


def in_all_forms(wta):
    """The same automaton with sparse and with CP transitions."""
    (tensor,) = wta.tensors
    n = tensor.n
    i, j, k = np.indices((n, n, n)).reshape(3, -1)
    sparse = SparseTensor(i, j, k, tensor.to_dense().ravel(), n)
    a = np.repeat(np.eye(n), n * n, axis=1)
    b = np.tile(np.repeat(np.eye(n), n, axis=1), (1, n))
    c = np.tile(np.eye(n), (1, n * n))
    cp = CPTensor(a * sparse.weight, b, c)
    return [WTA(wta.alpha, t, dict(wta.omega)) for t in (tensor, sparse, cp)]


# -- values --------------------------------------------------------------------


@pytest.mark.parametrize("labels", [None, "XY"])
def test_values_by_recursion(rng, labels):
    wta = random_wta(rng, 4, labels=labels)
    trees = Treebank(all_trees(4, "ab", labels or "X")[::7])
    expected = [wta.alpha @ reference.vector(t, dense(wta), wta.omega) for t in trees]
    np.testing.assert_allclose(wta.value(trees), expected, rtol=0, atol=EXACT)
    sign, log = wta.log_value(trees)
    np.testing.assert_allclose(sign * np.exp(log), expected, rtol=0, atol=EXACT)


def test_values_in_all_forms(rng):
    first, *others = in_all_forms(random_wta(rng, 3))
    trees = Treebank(all_trees(4, "ab"))
    for wta in others:
        np.testing.assert_allclose(
            wta.value(trees), first.value(trees), rtol=0, atol=EXACT
        )


@pytest.mark.parametrize("labels", [None, "XY"])
def test_condition_numbers_by_recursion(rng, labels):
    wta = random_wta(rng, 3, labels=labels)
    trees = Treebank(all_trees(4, "ab", labels or "X")[::7])
    expected = [
        reference.condition_number(t, wta.alpha, dense(wta), wta.omega) for t in trees
    ]
    np.testing.assert_allclose(wta.condition_numbers(trees), expected, rtol=SUM)
    if labels is None:
        for same in in_all_forms(wta):
            np.testing.assert_allclose(
                same.condition_numbers(trees), expected, rtol=SUM
            )


def test_condition_numbers_bound_what_errors_of_the_vectors_do(rng):
    wta = random_wta(rng, 3)
    tree = Treebank(["(X (X (P a) (P b)) (X (P b) (P a)))"])
    (kappa,) = wta.condition_numbers(tree)
    value = wta.value(tree)[0]
    eps, worst = 1e-7, 0.0
    for _ in range(200):
        # A relative error of each word's vector, in a direction of its own.
        error = rng.standard_normal((2, 3))
        error *= eps / np.linalg.norm(error, axis=1, keepdims=True)
        omega = {
            word: v + e * np.linalg.norm(v)
            for (word, v), e in zip(wta.omega.items(), error, strict=True)
        }
        change = WTA(wta.alpha, wta.T, omega).value(tree)[0] - value
        worst = max(worst, abs(change / value))
    assert 0.01 * kappa * eps < worst < kappa * eps


def test_condition_numbers_of_long_and_of_impossible_trees(rng):
    wta = WTA([1.0, 0.0], np.full((2, 2, 2), 1e-200), {"a": [1e-100, 1e-100]})
    n = 500
    long = "(X (P a) " * n + "(P a)" + ")" * n
    kappa = wta.condition_numbers([long, "(P a)", "(P b)"])
    # At the root cos(45°); below it both vectors are (1, 1).
    np.testing.assert_allclose(kappa[:2], [2**0.5 + 2 * n, 2**0.5], rtol=SUM)
    assert kappa[2] == np.inf
    assert wta.condition_numbers([]).shape == (0,)


def test_unknown_labels_and_words_have_value_zero(rng):
    wta = random_wta(rng, 2, labels="XY")
    np.testing.assert_array_equal(
        wta.value(["(Z (P a) (P a))", "(X (P a) (P c))"]), [0, 0]
    )
    np.testing.assert_array_equal(wta.log_value(["(X (P a) (P c))"])[1], [-np.inf])
    known = WTA(wta.alpha, wta.T, dict(wta.omega), unknown_word="b")
    assert known.value(["(X (P a) (P c))"]) == known.value(["(X (P a) (P b))"])


def test_huge_trees_do_not_underflow():
    wta = WTA([1.0], [[[1e-200]]], {"a": [1e-100]})
    n = 5000
    tree = "(X (P a) " * n + "(P a)" + ")" * n
    sign, log = wta.log_value([tree])
    assert sign[0] == 1
    expected = -np.log(10) * (200 * n + 100 * (n + 1))
    np.testing.assert_allclose(log[0], expected, rtol=SUM)


def test_threads_change_no_bit(rng, monkeypatch):
    monkeypatch.setattr("lpcfg_sk.automata._values._CHUNK_NUMBERS", 50)
    wta = random_wta(rng, 3)
    trees = Treebank(all_trees(4, "ab"))
    np.testing.assert_array_equal(wta.value(trees, n_jobs=2), wta.value(trees))


def test_no_trees(rng):
    assert random_wta(rng, 2).value(Treebank([])).shape == (0,)


@pytest.mark.parametrize("form", [0, 1, 2])
def test_string_values_and_posteriors_by_enumeration(rng, form):
    wta = in_all_forms(random_wta(rng, 3, scale=1.0))[form]
    words = list("abbab")
    shapes = reference.topologies(5)
    trees = [
        reference.fill(s, iter(f"(P {w})" for w in words), iter("XXXX")) for s in shapes
    ]
    values = wta.value(trees)
    np.testing.assert_allclose(
        wta.sentence_value([words]), values.sum(), rtol=0, atol=EXACT
    )
    chart = next(wta.span_charts([words]))
    mu = chart.posteriors()
    for width in range(1, 6):
        for start in range(5 - width + 1):
            inside = [(start, start + width) in reference.spans(s) for s in shapes]
            np.testing.assert_allclose(
                mu[chart.first[width] + start],
                values[inside].sum() / values.sum(),
                rtol=0,
                atol=1e-10,
            )


def test_string_values_of_labelled_automata_sum_over_labels(rng):
    wta = random_wta(rng, 3, labels="XY")
    trees = [t for t in all_trees(3, "a", "XY") if t.count("a") == 3]
    np.testing.assert_allclose(
        wta.sentence_value([["a"] * 3]), wta.value(trees).sum(), rtol=0, atol=EXACT
    )


def test_long_sentences_keep_their_scale():
    wta = WTA([1.0], [[[1e-30]]], {"a": [1e-30]})
    chart = next(wta.span_charts([["a"] * 40]))
    from math import comb, log

    catalan = comb(78, 39) // 40
    expected = log(catalan) - log(10) * 30 * (39 + 40)
    np.testing.assert_allclose(chart.log_value, expected, rtol=SUM)
    mu = chart.posteriors()
    np.testing.assert_allclose(mu[:40], 1, rtol=SUM)
    np.testing.assert_allclose(mu.sum(), 79, rtol=SUM)


def test_charts_refuse_to_outgrow_memory(rng):
    with pytest.raises(ChartMemoryError, match="max_memory"):
        random_wta(rng, 4).sentence_value([["a"] * 50], max_memory=1000)


def test_sentence_of_value_zero(rng):
    wta = random_wta(rng, 2)
    sign, log = wta.sentence_log_value([["a", "zzz"], ["a"]])
    assert sign[0] == 0 and log[0] == -np.inf and sign[1] != 0


# -- algebra -------------------------------------------------------------------


@pytest.mark.parametrize("labels", [None, "XY"])
def test_algebra(rng, labels):
    f = random_wta(rng, 3, labels=labels)
    g = random_wta(rng, 2, labels=labels and "YZ", words="bc")
    trees = Treebank(all_trees(3, "abc", "XYZ" if labels else "X"))
    a, b = f.value(trees), g.value(trees)
    for wta, expected in (
        (f + g, a + b),
        (f - g, a - b),
        (-f, -a),
        (2.5 * f, 2.5 * a),
        (f * g, a * b),
        (f.conjugate(rng.standard_normal((3, 3))), a),
    ):
        np.testing.assert_allclose(wta.value(trees), expected, rtol=0, atol=SUM)
    sizes = np.array([str(t).count(" (") // 2 for t in trees])
    np.testing.assert_allclose(
        f.reweight(0.5).value(trees), 0.5**sizes * a, rtol=0, atol=EXACT
    )


def test_algebra_refuses_what_makes_no_sense(rng):
    f = random_wta(rng, 2)
    with pytest.raises(ValueError, match="labels"):
        f + random_wta(rng, 2, labels="X")
    with pytest.raises(ValueError, match="singular"):
        f.conjugate(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="shape"):
        f.conjugate(np.eye(3))
    with pytest.raises(TypeError):
        f + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[[1.0]]], {"a": [1.0]}), "alpha"),
        (([], [[[1.0]]], {"a": [1.0]}), "alpha"),
        (([np.inf], [[[1.0]]], {"a": [1.0]}), "alpha"),
        (([1.0], {}, {"a": [1.0]}), "empty mapping"),
        (([1.0], [[[1.0]]], {}), "omega"),
        (([1.0], [[[1.0]]], {"a": [1.0, 2.0]}), "omega"),
        (([1.0], [[[1.0]]], [[1.0]]), "omega"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        WTA(*arguments)


def test_round_trip_of_forms_and_files(rng, tmp_path):
    trees = Treebank(all_trees(3, "ab"))
    automata = [
        *in_all_forms(random_wta(rng, 2)),
        random_wta(rng, 2, labels=["X", "+Y", "q 1"]),
    ]
    for wta in automata:
        again = WTA(wta.alpha, wta.T, dict(wta.omega))
        wta.save(tmp_path / "wta.npz")
        loaded = WTA.load(tmp_path / "wta.npz")
        for other in (again, loaded):
            np.testing.assert_array_equal(other.value(trees), wta.value(trees))
            assert repr(other) == repr(wta)
            assert other.labels == wta.labels
    with pytest.raises(ValueError, match="LPCFG"):
        LPCFG.load(tmp_path / "wta.npz")


# -- grammars ------------------------------------------------------------------


def test_automaton_of_a_grammar_sums_over_labels(rng):
    from tests.reference.charts import random_grammar

    grammar = random_grammar(rng)
    wta = WTA.from_pcfg(grammar)
    assert wta.n_states == sum(grammar.m.values())
    for words in ("x", "xy", "yzx"):
        for shape in reference.topologies(len(words)):
            labelled = []
            for names in product("ABCDE", repeat=2 * len(words) - 1):
                inner, leaf = names[: len(words) - 1], names[len(words) - 1 :]
                leaves = (f"({a} {x})" for a, x in zip(leaf, words, strict=True))
                labelled.append(reference.fill(shape, leaves, iter(inner)))
            np.testing.assert_allclose(
                wta.value(labelled[:1]),
                np.exp(grammar.log_prob(labelled)).sum(),
                rtol=SUM,
            )
    np.testing.assert_array_equal(
        grammar.to_wta().value(["(A (B x) (C y))"]), wta.value(["(A (B x) (C y))"])
    )


def test_grammar_of_an_automaton(rng):
    wta = random_wta(rng, 3)
    grammar = wta.to_wcfg()
    again = WTA.from_pcfg(grammar)
    trees = Treebank(all_trees(4, "ab"))
    np.testing.assert_allclose(again.value(trees), wta.value(trees), rtol=0, atol=EXACT)


def test_from_pcfg_takes_learners_and_names_others():
    trees = Treebank(["(S (A a) (B b))"])
    pcfg = PCFG().fit(trees)
    assert WTA.from_pcfg(pcfg).states == ("A", "B", "S")
    with pytest.raises(TypeError, match="fit"):
        WTA.from_pcfg(PCFG())


# -- sums over all trees ---------------------------------------------------------


@pytest.mark.parametrize("labels", [None, "XY"])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_svta_equals_the_original(rng, n, labels):
    wta = random_wta(rng, n, labels=labels, scale=0.2)
    svta = wta.minimize()
    assert svta.n_states == n
    trees = Treebank(all_trees(4, "ab", labels or "X"))
    np.testing.assert_allclose(svta.value(trees), wta.value(trees), rtol=0, atol=1e-10)
    values = wta.singular_values()
    context, tree = svta.gram_matrices()
    for gram in (context, tree):
        np.testing.assert_allclose(gram, np.diag(values), rtol=0, atol=1e-8 * values[0])


@pytest.mark.parametrize("form", [0, 1, 2])
def test_gram_matrices_by_enumeration(rng, form):
    wta = in_all_forms(random_wta(rng, 3, scale=0.15, words="a"))[form]
    context, tree = wta.gram_matrices()
    T, omega = dense(wta), wta.omega
    total = np.zeros((3, 3))
    for t in Treebank(all_trees(8, "a")):
        v = reference.vector(t, T, omega)
        total += np.outer(v, v)
    np.testing.assert_allclose(tree, total, rtol=0, atol=ITERATIVE)
    # the fixed-point equation of the context Gram matrix (lemma 3)
    right = np.outer(wta.alpha, wta.alpha)
    right += np.einsum("ia,jb,ijk,abc->kc", context, tree, T, T)
    right += np.einsum("ia,kc,ijk,abc->jb", context, tree, T, T)
    np.testing.assert_allclose(context, right, rtol=0, atol=SUM)


@pytest.mark.slow_without_jit
def test_singular_values_of_an_enumerated_hankel_block(rng):
    wta = random_wta(rng, 2, scale=0.1, words="a")
    trees = all_trees(6, "a")
    contexts = reference.all_contexts(6, "a")
    whole = Treebank(
        [c.replace("(P *)", "*").replace("*", t) for c in contexts for t in trees]
    )
    block = wta.value(whole).reshape(len(contexts), len(trees))
    expected = np.linalg.svd(block, compute_uv=False)[:2]
    np.testing.assert_allclose(wta.singular_values(), expected, rtol=ITERATIVE)


def test_spectral_radius_of_the_explicit_matrix(rng):
    for n in (2, 4):
        wta = random_wta(rng, n)
        s = wta.gram_matrices().tree
        T = dense(wta)
        E = np.einsum("ijk,abc,kc->iajb", T, T, s)
        E += np.einsum("ijk,abc,jb->iakc", T, T, s)
        radius = np.abs(np.linalg.eigvals(E.reshape(n * n, n * n))).max()
        np.testing.assert_allclose(wta.spectral_radius(), radius, rtol=ITERATIVE)


def test_near_the_critical_point():
    # s = 1 + γ²s²/4 has its fold at γ = 1
    for gamma in (0.9, 0.999, 0.99999):
        wta = WTA([1.0], [[[gamma / 2]]], {"a": [1.0]})
        s = (1 - np.sqrt(1 - gamma**2)) / (gamma**2 / 2)
        np.testing.assert_allclose(wta.gram_matrices().tree, [[s]], rtol=1e-9)
        np.testing.assert_allclose(
            wta.spectral_radius(), gamma**2 * s / 2, rtol=ITERATIVE
        )
    for gamma in (1.0, 1.0001, 1.5, 1e60):
        wta = WTA([1.0], [[[gamma / 2]]], {"a": [1.0]})
        assert not wta.is_convergent
        assert wta.spectral_radius() == np.inf
        for call in (wta.gram_matrices, wta.singular_values, wta.norm):
            with pytest.raises(NotStronglyConvergentError, match="gamma"):
                call()
        with pytest.raises(NotStronglyConvergentError):
            wta.truncate(1)


def test_linear_automata_diverge_too():
    # right-branching only: f(t) = p^size, a geometric sum
    def chain(p):
        return WTA([0.0, 1.0], ([1], [0], [1], [p]), {"a": [1.0, 1.0]})

    np.testing.assert_allclose(chain(0.5).norm() ** 2, 1 / (1 - 0.25), rtol=SUM)
    assert not chain(1.0).is_convergent
    assert not chain(1.1).is_convergent


def test_automata_that_are_not_minimal(rng):
    f = random_wta(rng, 4)
    trees = Treebank(all_trees(4, "ab"))
    twice = f + 0.5 * f
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    for wta in (twice, twice.conjugate(basis)):
        small = wta.minimize()
        assert small.n_states == 4
        np.testing.assert_allclose(
            small.value(trees), 1.5 * f.value(trees), rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(
            wta.singular_values()[:4], 1.5 * f.singular_values(), rtol=ITERATIVE
        )
        assert wta.distance(1.5 * f) < 1e-9


def test_states_without_use(rng):
    f = random_wta(rng, 3)
    T = np.zeros((6, 6, 6))
    T[:3, :3, :3] = dense(f)
    T[3, 3, 3] = 50.0  # divergent, and no context observes it
    T[0, 4, 0] = 7.0  # no tree reaches 4
    T[4, 5, 5] = T[5, 4, 4] = 9.0
    omega = {w: np.append(v, [1.0, 0, 0]) for w, v in f.omega.items()}
    wta = WTA(np.append(f.alpha, [0, 1.0, 0]), T, omega)
    np.testing.assert_allclose(wta.singular_values(), f.singular_values(), rtol=SUM)
    gram = wta.gram_matrices()
    np.testing.assert_array_equal(gram.tree[3:], 0)
    np.testing.assert_allclose(
        gram.tree[:3, :3], f.gram_matrices().tree, rtol=0, atol=SUM
    )
    # the same behind a change of basis, where no single state is useless
    hidden = wta.conjugate(np.linalg.qr(rng.standard_normal((6, 6)))[0])
    assert hidden.is_convergent
    np.testing.assert_allclose(
        hidden.singular_values()[:3], f.singular_values(), rtol=ITERATIVE
    )
    assert hidden.distance(f) < 1e-9 * f.norm()


@pytest.mark.parametrize("labels", [None, "XY"])
def test_reduction_to_what_is_reached_and_observed(rng, labels):
    f = random_wta(rng, 3, labels=labels)
    wta = (f - 2.0 * f + random_wta(rng, 1, labels=labels) * 0.0).conjugate(
        rng.standard_normal((7, 7))
    )
    vectors = [
        reference.vector(t, dense(wta), wta.omega)
        for t in Treebank(all_trees(4, "ab", labels or "X"))
    ]
    assert np.linalg.matrix_rank(np.array(vectors), tol=1e-7) == 4
    small = reduction(wta.alpha, wta.tensors, wta.omega_matrix)
    assert small.rank == 3
    np.testing.assert_allclose(small.dual.T @ small.basis, np.eye(3), rtol=0, atol=SUM)
    zero = WTA([0.0, 1.0], np.zeros((2, 2, 2)), {"a": [1.0, 0.0]})
    assert reduction(zero.alpha, zero.tensors, zero.omega_matrix).rank == 0


def test_reduction_of_states_of_all_sizes(rng):
    f = random_wta(rng, 4)
    trees = Treebank(all_trees(4, "ab"))
    for form in in_all_forms(f):
        twice = (form + form).conjugate(np.diag(10.0 ** rng.permutation(8) ** 1.2))
        parts = twice.alpha, twice.tensors, twice.omega_matrix
        assert reduction(*parts).rank == 4
        np.testing.assert_allclose(
            twice.minimize().value(trees), 2 * f.value(trees), rtol=ITERATIVE
        )


@pytest.mark.slow_without_jit
def test_reduction_of_a_long_chain_and_of_huge_weights():
    n = 120
    i = np.arange(n - 1)
    # State i + 1 is reached from state i and the first one only.
    chain = SparseTensor(i + 1, i, np.zeros_like(i), np.full(n - 1, 0.5), n)
    unit = np.eye(n)
    wta = WTA(unit[-1], chain, {"a": unit[0]})
    assert reduction(wta.alpha, wta.tensors, wta.omega_matrix).rank == n
    huge = WTA([1.0, -1.0], np.full((2, 2, 2), 1.7e308), {"a": [1.0, 0.5]})
    assert reduction(huge.alpha, huge.tensors, huge.omega_matrix).rank == 1
    # What diverges cannot be observed: f is zero but for the tree of one word.
    np.testing.assert_allclose(huge.singular_values(), [0.5], rtol=SUM)


def test_divergent_automata_are_minimised_exactly(rng):
    f = random_wta(rng, 3, scale=6.0)
    assert not f.is_convergent
    small = (f + f).minimize()
    assert small.n_states == 3
    trees = Treebank(all_trees(4, "ab"))
    np.testing.assert_allclose(small.value(trees), 2 * f.value(trees), rtol=ITERATIVE)


def test_the_zero_function():
    wta = WTA([1.0, 0.0], np.zeros((2, 2, 2)), {"a": [0.0, 1.0]})
    assert wta.singular_values().shape == (0,)
    assert wta.norm() == 0
    assert wta.spectral_radius() == 0
    assert wta.minimize().n_states == 1
    assert wta.truncate(3).value(["(P a)"]) == 0
    other = WTA([2.0], [[[0.0]]], {"a": [1.0]})
    assert wta.distance(other) == 2
    np.testing.assert_array_equal(wta.gram_matrices().context, np.zeros((2, 2)))


def test_weights_that_cancel():
    # no weight is zero, but f is
    wta = WTA([1.0, -1.0], np.full((2, 2, 2), 0.1), {"a": [0.5, 0.5]})
    assert wta.singular_values().shape == (0,)
    assert wta.norm() == 0
    assert wta.truncate(2).value(["(P a)"]) == 0
    # contexts of state 1 cancel
    T = np.zeros((3, 3, 3))
    T[0, 1, 0], T[0, 1, 2] = 0.1, -0.1
    wta = WTA([1.0, 0.0, 1.0], T, {"a": [1.0, 1.0, 1.0]})
    assert wta.gram_matrices().context[1, 1] == 0
    np.testing.assert_allclose(wta.singular_values(), [2.0], rtol=SUM)
    assert wta.minimize().n_states == 1
    other = WTA([2.0], [[[0.0]]], {"a": [1.0]})
    assert wta.distance(other) < 1e-12
    strange = WTA([1.0], [[[0.1]]], {"b": [1.0]})
    np.testing.assert_allclose(
        wta.distance(strange) ** 2, 4 + strange.norm() ** 2, rtol=SUM
    )


@pytest.mark.parametrize("method", ["auto", "inner", "difference"])
@pytest.mark.parametrize("labels", [None, "XY"])
def test_distance_by_enumeration(rng, labels, method):
    # What trees of five and more inner nodes add is below 1e-10.
    f = random_wta(rng, 3, scale=0.02, labels=labels)
    g = random_wta(rng, 2, scale=0.02, labels=labels, words="bc")
    trees = Treebank(all_trees(4, "abc", labels or "X"))
    a, b = f.value(trees), g.value(trees)
    np.testing.assert_allclose(
        f.distance(g, method=method), np.linalg.norm(a - b), rtol=SUM
    )
    np.testing.assert_allclose(f.norm(), np.linalg.norm(a), rtol=SUM)
    np.testing.assert_allclose(f.inner_product(g), a @ b, rtol=SUM)


def test_small_distances_do_not_cancel(rng):
    f = random_wta(rng, 4)
    alpha = f.alpha.copy()
    alpha[0] += 1e-11
    g = WTA(alpha, f.T, dict(f.omega))
    expected = 1e-11 * np.sqrt(f.gram_matrices().tree[0, 0])
    np.testing.assert_allclose(f.distance(g), expected, rtol=1e-3)
    svta = f.minimize()
    assert f.distance(svta) < 1e-13 * f.norm()


def test_truncations(rng):
    wta = random_wta(rng, 6)
    values = wta.singular_values()
    distances = [wta.distance(wta.truncate(n)) for n in range(1, 7)]
    assert all(np.diff(distances) < 0)
    # lower bound: the Hankel matrix of the difference has rank-n error s_{n+1}, and
    # its norm is at most that of Σ|t|(f − f̂)²
    for n in range(1, 6):
        small = wta.truncate(n)
        assert small.n_states == n
        assert (wta - small).singular_values()[0] >= values[n] * (1 - 1e-9)
    assert wta.truncate(50).n_states == 6
    with pytest.raises(ValueError, match="positive"):
        wta.truncate(0)
    with pytest.raises(ValueError, match="method"):
        wta.distance(wta, method="l1")


def test_theorem_6_holds(rng):
    from lpcfg_sk.bounds import svta_weight_bounds

    for scale in (0.1, 0.3):
        wta = random_wta(rng, 5, scale=scale).minimize()
        bounds = svta_weight_bounds(wta.singular_values())
        slack = 1 + 1e-9
        assert (np.abs(wta.alpha) <= bounds.state * slack).all()
        assert (np.abs(wta.omega_matrix) <= bounds.state * slack).all()
        assert (np.abs(dense(wta)) <= bounds.transition * slack).all()
        for t in Treebank(all_trees(4, "ab")):
            v = reference.vector(t, dense(wta), wta.omega)
            assert (np.abs(v) <= bounds.state * slack).all()


# -- a treebank grammar ------------------------------------------------------------


@pytest.mark.slow
def test_svta_of_a_treebank_grammar(wsj_train):
    from lpcfg_sk import RareWords, TreeBinarizer

    trees = TreeBinarizer().fit_transform(wsj_train)
    trees = RareWords().fit_transform(trees)
    wta = WTA.from_pcfg(PCFG().fit(trees))
    svta = wta.minimize()
    small = reduction(wta.alpha, wta.tensors, wta.omega_matrix)
    assert (wta.n_states, small.rank, svta.n_states) == (229, 192, 192)
    sign, log = wta.log_value(trees)
    basis, dual = small
    tensors = [t.project(dual, basis, basis) for t in wta.tensors]
    reduced = wta._derived(basis.T @ wta.alpha, tensors, wta.omega_matrix @ dual)
    np.testing.assert_allclose(reduced.log_value(trees)[1], log, rtol=0, atol=1e-8)
    svta_sign, svta_log = svta.log_value(trees)
    np.testing.assert_array_equal(svta_sign, sign)
    # One tree is a list of ten places: each of its links is an unlikely rule, and
    # errors in the direction of the likely ones grow from link to link. The states
    # of an SVTA are unique, so no other choice of them holds its value better.
    missed = trees[np.abs(svta_log - log) > 1e-8]
    assert len(missed) <= 1
    assert (svta.condition_numbers(missed) > 1e14).all()
