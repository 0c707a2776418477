"""Automata at the limits: without recursion, of extreme weights, with odd names."""

import pickle

import numpy as np
import pytest

from lpcfg_sk import PCFG, WTA, SVTAMinimizer, Treebank
from lpcfg_sk.automata import critical_gamma
from lpcfg_sk.automata._gram_matrices import find_recursion, spectral_radius
from lpcfg_sk.automata._tensors import CPTensor, DenseTensor, SparseTensor
from lpcfg_sk.exceptions import NotStronglyConvergentError
from tests.reference.wta import all_trees, random_wta
from tests.tolerances import ITERATIVE, SUM

TREES = Treebank(["(X (X a) (X b))", "(X (X (X a) (X a)) (X b))"])


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def chain(n, word="w"):
    """A tree that branches to the right, each label of its own."""
    tree = f"(P{n} {word}{n})"
    for k in reversed(range(n)):
        tree = f"(N{k} (P{k} {word}{k}) {tree})"
    return tree


def comb(k):
    """One tree of k inner nodes has the value 1, all others 0."""
    i = np.arange(k)
    leaf = np.eye(k + 1)[k]
    return WTA(np.eye(k + 1)[0], (i, i + 1, np.full(k, k), np.ones(k)), {"a": leaf})


# -- recursion -----------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 5, 12, 40])
def test_automata_of_finitely_many_trees(k):
    wta = comb(k)
    assert wta.spectral_radius() == 0
    assert wta.is_convergent
    assert critical_gamma(wta) == np.inf
    np.testing.assert_allclose(wta.norm(), 1.0, rtol=SUM)
    np.testing.assert_allclose(wta.gram_matrices().tree, np.eye(k + 1), atol=SUM)


@pytest.mark.parametrize("n", [5, 22, 32, 60])
def test_grammars_of_deep_trees_without_recursion(n):
    trees = Treebank([chain(n), chain(n - 1, "v")])
    svta = SVTAMinimizer(PCFG(smoothing=0)).fit(trees)
    np.testing.assert_allclose(
        svta.score_samples(trees),
        PCFG(smoothing=0).fit(trees).score_samples(trees),
        rtol=ITERATIVE,
    )


def test_deep_trees_over_a_recursion():
    """Newton's method overshoots a little; that is no sign of divergence."""
    n = 30
    loop = "(N0 (P0 w0) (N0 (P0 w0) (P1 x)))"
    trees = Treebank([chain(n), chain(n - 1, "v"), loop, f"(N0 {chain(n)} (P0 w0))"])
    wta = WTA.from_pcfg(PCFG(smoothing=0).fit(trees))
    assert 0 < wta.spectral_radius() < 1
    _, log = wta.minimize().log_value(trees)
    np.testing.assert_allclose(log, wta.log_value(trees)[1], rtol=ITERATIVE)


def test_recursion_of_a_small_pattern():
    # 0 -> 1 2, 1 -> 2 3, 2 -> 1 4, 3 -> 3 4, and 4 and 5 are leaves.
    array = np.zeros((6, 6, 6))
    for i, j, k in ((0, 1, 2), (1, 2, 3), (2, 1, 4), (3, 3, 4)):
        array[i, j, k] = 1.0
    i, j, k = np.nonzero(array)
    states = np.eye(6)
    forms = {
        "dense": DenseTensor(array),
        "sparse": SparseTensor(i, j, k, np.ones(4), 6),
        "cp": CPTensor(states[:, i], states[:, j], states[:, k]),
    }
    expected = np.zeros((6, 6), dtype=bool)
    expected[1:3, 1:3] = expected[3, 3] = True
    for kind, tensor in forms.items():
        assert tensor.kind == kind
        found = find_recursion([tensor])
        np.testing.assert_array_equal(found.pairs, expected, kind)
        assert found.depth == 3
    # Of two labels, one may hold what closes a cycle of the other.
    parts = [
        SparseTensor([0], [1], [2], [1.0], 3),
        SparseTensor([1], [0], [2], [1.0], 3),
    ]
    assert find_recursion(parts).pairs.sum() == 4
    assert not find_recursion(parts[:1]).pairs.any()


@pytest.mark.parametrize("n", [3, 9, 14])
@pytest.mark.parametrize("density", [0.05, 0.2, 1.0])
def test_spectral_radius_of_the_explicit_matrix(rng, n, density):
    wta = random_wta(rng, n, density=density)
    array = wta.tensors[0].to_dense()
    s = rng.standard_normal((n, n))
    s = s @ s.T
    matrix = np.einsum("ijk,abc,kc->iajb", array, array, s).reshape(n * n, -1)
    matrix += np.einsum("ijk,abc,jb->iakc", array, array, s).reshape(n * n, -1)
    expected = np.abs(np.linalg.eigvals(matrix)).max()
    recursion = find_recursion(wta.tensors)
    found = [spectral_radius(wta.tensors, s, recursion) for _ in range(2)]
    assert found[0] == found[1]
    if not recursion.pairs.any():
        assert found[0] == 0
    else:
        np.testing.assert_allclose(found[0], expected, rtol=1e-7)


def test_hidden_states_do_not_limit_gamma(rng):
    f, hidden = random_wta(rng, 2, scale=0.1), random_wta(rng, 2, scale=5.0)
    both = f + 0.0 * hidden
    turned = both.conjugate(np.linalg.qr(rng.standard_normal((4, 4)))[0])
    np.testing.assert_allclose(critical_gamma(turned), critical_gamma(f), rtol=1e-2)


@pytest.mark.parametrize("kind", ["unreached", "unobserved"])
def test_hidden_states_in_a_bad_basis(rng, kind):
    """The rank is that of f where states are a thousand times smaller than others."""
    f, n_hidden = random_wta(rng, 4, scale=0.1), 10
    n = 4 + n_hidden
    array, alpha = rng.standard_normal((n, n, n)) * 0.01, np.zeros(n)
    omega = {
        word: np.concatenate([v, np.zeros(n_hidden)]) for word, v in f.omega.items()
    }
    alpha[:4] = f.alpha
    if kind == "unreached":
        # Hidden states have no words, and no transitions to others alone.
        alpha[4:] = rng.standard_normal(n_hidden)
        array[:, :4, :4] = 0.0
    else:
        # Nothing but hidden states leads to hidden ones.
        array[:4, 4:, :] = array[:4, :, 4:] = 0.0
        omega = {
            word: v + np.r_[np.zeros(4), rng.random(n_hidden)]
            for word, v in omega.items()
        }
    array[:4, :4, :4] = f.tensors[0].to_dense()
    turn, back = np.linalg.qr(rng.standard_normal((2, n, n)))[0]
    wta = WTA(alpha, array, omega).conjugate(turn * np.logspace(0, -3, n) @ back)
    small = wta.minimize()
    assert small.n_states == f.minimize().n_states
    trees = Treebank(all_trees(4, "ab"))
    size = np.abs(f.value(trees)).max()
    np.testing.assert_allclose(small.value(trees), f.value(trees), atol=1e-7 * size)


@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e12, 1e100])
def test_critical_gamma_is_found_at_any_size(size):
    # Σ_t γ^2|t| converges for T γ < ½ (Catalan numbers).
    wta = WTA([1.0], np.full((1, 1, 1), size), {"a": [1.0]})
    np.testing.assert_allclose(critical_gamma(wta) * size, 0.5, rtol=2e-3)


def test_bad_arguments_of_critical_gamma(rng):
    with pytest.raises(TypeError, match="got int"):
        critical_gamma(3)
    with pytest.raises(ValueError, match="rtol"):
        critical_gamma(random_wta(rng, 2), rtol=-1.0)


# -- extreme weights -----------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-160, 1e160, 1e300])
def test_the_size_of_f_does_not_matter(rng, size):
    f = random_wta(rng, 3)
    g = f * size
    assert g.is_convergent
    np.testing.assert_allclose(g.norm() / size, f.norm(), rtol=SUM)
    np.testing.assert_allclose(g.distance(3 * g) / size, 2 * f.norm(), rtol=SUM)
    np.testing.assert_allclose(
        g.singular_values() / size, f.singular_values(), rtol=ITERATIVE
    )
    _, log = g.minimize().log_value(TREES)
    np.testing.assert_allclose(log, g.log_value(TREES)[1], rtol=ITERATIVE)
    small = g.truncate(2)
    np.testing.assert_allclose(
        g.distance(small) / size, f.distance(f.truncate(2)), rtol=1e-6
    )


@pytest.mark.parametrize(
    "sizes", [(1e-100,) * 3, (1e100,) * 3, (1e60, 1.0, 1e-60)], ids=str
)
def test_the_units_of_states_do_not_matter(rng, sizes):
    f = random_wta(rng, 3)
    g = f.conjugate(np.diag(sizes))
    np.testing.assert_allclose(g.norm(), f.norm(), rtol=ITERATIVE)
    _, log = g.minimize().log_value(TREES)
    np.testing.assert_allclose(log, f.log_value(TREES)[1], rtol=ITERATIVE)


def test_values_of_the_largest_weights():
    wta = WTA([1e308] * 3, np.full((3, 3, 3), 1e308), {"a": [1e308] * 3})
    # α sums 3 states; a tree of two words has 9 terms in each of them.
    expected = np.log(27) + 4 * np.log(1e308)
    sign, log = wta.log_value(["(X (X a) (X a))"])
    assert sign == 1
    np.testing.assert_allclose(log, expected, rtol=SUM)
    sign, log = wta.sentence_log_value([["a", "a"]])
    assert sign == 1
    np.testing.assert_allclose(log, expected, rtol=SUM)
    assert np.isfinite(wta.condition_numbers(["(X (X a) (X a))"])).all()


@pytest.mark.parametrize("sizes", [(1e300, 1e-200, 1e-200), (1e-300, 1e200, 1e200)])
def test_factors_of_extreme_sizes(sizes):
    factors = tuple(np.full((1, 1), size) for size in sizes)
    wta = WTA([1.0], factors, {"a": [1.0]})
    expected = np.log(sizes).sum()
    np.testing.assert_allclose(wta.log_value(TREES[:1])[1], -np.inf)
    for found in (
        wta.log_value(["(X (X a) (X a))"]),
        wta.sentence_log_value([["a", "a"]]),
    ):
        np.testing.assert_allclose(found[1], expected, rtol=SUM)


@pytest.mark.parametrize("gamma", [1e-100, 1e-8, 1e-4, 1e4, 1e8, 1e100])
def test_minimisation_at_any_weight_of_inner_nodes(rng, gamma):
    f = random_wta(rng, 4)
    g = f.reweight(gamma)
    wide = g.conjugate(np.linalg.qr(rng.standard_normal((4, 4)))[0]) + 0.0 * g
    trees = Treebank(all_trees(4, "ab"))
    for wta in (g, wide):
        small = wta.minimize()
        assert small.n_states == 4
        sign, log = small.log_value(trees)
        np.testing.assert_array_equal(sign, g.log_value(trees)[0])
        np.testing.assert_allclose(log, g.log_value(trees)[1], rtol=0, atol=1e-8)


def test_posteriors_do_not_depend_on_the_size_of_weights(rng):
    f = random_wta(rng, 2)
    g = WTA(f.alpha * 1e200, f.T * 1e150, {w: v * 1e-150 for w, v in f.omega.items()})
    sentence = [["a", "b", "a", "b"]]
    one, other = (next(w.span_charts(sentence)).posteriors() for w in (f, g))
    np.testing.assert_allclose(other, one, rtol=ITERATIVE, atol=ITERATIVE)


@pytest.mark.parametrize("factor", [np.nan, np.inf])
def test_factors_are_finite(rng, factor):
    f = random_wta(rng, 2)
    for change in (f.__mul__, f.reweight):
        with pytest.raises(ValueError, match="finite"):
            change(factor)
    with pytest.raises(ValueError, match="alpha"):
        (f * 1e308) * 1e308


def test_rank_tolerances_are_shares(rng):
    f = random_wta(rng, 2)
    for tol in (-1.0, 2.0, np.nan):
        for method in (f.minimize, f.singular_values):
            with pytest.raises(ValueError, match="rank_tol"):
                method(rank_tol=tol)


# -- names and immutability ------------------------------------------------------


def test_automata_do_not_change():
    array = np.full((1, 1, 1), 0.3)
    factors = tuple(np.ones((1, 1)) for _ in range(3))
    for T in (array, factors):
        wta = WTA([1.0], T, {"a": [1.0]})
        before = wta.value(["(X (X a) (X a))"])
        for part in (array, *factors):
            part[:] = 5.0
        np.testing.assert_array_equal(wta.value(["(X (X a) (X a))"]), before)
        for copy in (wta, pickle.loads(pickle.dumps(wta))):
            arrays = [copy.alpha, copy.omega_matrix]
            arrays += [a for t in copy.tensors for a in t.arrays().values()]
            assert not any(a.flags.writeable for a in arrays)
            with pytest.raises(AttributeError, match="immutable"):
                copy.alpha = 3
            with pytest.raises(AttributeError, match="immutable"):
                del copy.alpha


def test_states_of_the_same_name_stay_apart():
    wta = WTA([1.0, 2.0], np.full((2, 2, 2), 0.1), {"a": [1.0, 3.0]}, states="ss")
    (log,) = wta.to_wcfg().sentence_log_prob([["a", "a"]])
    np.testing.assert_allclose(log, wta.sentence_log_value([["a", "a"]])[1], rtol=SUM)


@pytest.mark.parametrize("other", ["<u>", "<v>", None])
def test_unknown_words_of_sums_and_products(other):
    def make(unknown, weight):
        omega = {"a": [1.0], **({unknown: [weight]} if unknown else {})}
        return WTA([1.0], np.full((1, 1, 1), 0.3), omega, unknown_word=unknown)

    f, g = make("<u>", 0.5), make(other, 0.25)
    trees = ["(X (X b) (X a))", "(X (X <u>) (X a))", "(X (X <v>) (X a))"]
    np.testing.assert_allclose((f + g).value(trees), f.value(trees) + g.value(trees))
    np.testing.assert_allclose((f * g).value(trees), f.value(trees) * g.value(trees))


def test_an_unknown_word_that_the_other_names():
    f = WTA([1.0], np.ones((1, 1, 1)), {"a": [1.0], "b": [0.5]}, unknown_word="b")
    g = WTA([1.0], np.ones((1, 1, 1)), {"b": [3.0]})
    trees = ["(X a)", "(X b)", "(X c)"]
    np.testing.assert_allclose((f + g).value(trees), [1.0, 3.5, 0.5])
    np.testing.assert_allclose((f * g).value(trees), [0.0, 1.5, 0.0])


def test_distances_take_words_literally():
    f, g = (
        WTA([1.0], np.full((1, 1, 1), 0.01), {"a": [1.0], u: [0.5]}, unknown_word=u)
        for u in ("<u>", "<v>")
    )
    trees = Treebank(all_trees(4, ["a", "<u>", "<v>"]))
    values = []
    for wta in (f, g):
        literal = WTA(wta.alpha, wta.T, wta.omega)
        values.append(literal.value(trees))
    expected = np.linalg.norm(values[0] - values[1])
    for method in ("inner", "difference"):
        np.testing.assert_allclose(f.distance(g, method=method), expected, rtol=1e-6)


def test_automata_without_a_common_label_or_word(rng):
    f = random_wta(rng, 2, labels="X")
    for g in (
        random_wta(rng, 2, labels="Y"),
        random_wta(rng, 2, words="c", labels="X"),
    ):
        # Trees of one word have no label.
        words = sum(f.omega[w] @ f.alpha * g.value([f"(P {w})"])[0] for w in "ab")
        np.testing.assert_allclose(f.inner_product(g), words, atol=1e-15)
        squared = f.norm() ** 2 + g.norm() ** 2 - 2 * words
        np.testing.assert_allclose(f.distance(g) ** 2, squared, rtol=SUM)
        trees = Treebank(all_trees(3, "abc", "XY"))
        np.testing.assert_allclose(
            (f * g).value(trees), f.value(trees) * g.value(trees), atol=1e-15
        )
    assert (f * WTA([0.0], {"X": np.zeros((1, 1, 1))}, {"a": [1.0]})).norm() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], {1: np.ones((1, 1, 1))}, {"a": [1.0]}), "labels of T.*1 of type int"),
        (([1.0], np.ones((1, 1, 1)), {1: [1.0]}), "words of omega.*1 of type int"),
    ],
)
def test_names_are_strings(arguments, message):
    with pytest.raises(TypeError, match=message):
        WTA(*arguments)


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (((1.0, 2.0), (3.0, 4.0)), "a pair"),
        ((np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 3))), "one shape"),
        ({"X": np.ones((3, 3, 3))}, r"T\['X'\]"),
    ],
    ids=["pair", "factors", "label"],
)
def test_tensors_that_cannot_be_read(T, message):
    with pytest.raises(ValueError, match=message):
        WTA([1.0, 1.0], T, {"a": [1.0, 1.0]})


def test_an_empty_sentence_is_named(rng):
    with pytest.raises(ValueError, match="row 1 is an empty sentence"):
        random_wta(rng, 2).sentence_value([["a"], []])


def test_near_critical_sums_are_refused_with_their_gap():
    # One state with ω = 1: 1 − ρ = √(1 − 4T²).
    T = np.full((1, 1, 1), 0.5 * np.sqrt(1 - 1e-14))
    with pytest.raises(NotStronglyConvergentError, match="1 − ρ = "):
        WTA([1.0], T, {"a": [1.0]}).gram_matrices()
