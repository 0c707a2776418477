import pickle
import time

import numpy as np
import pytest
from joblib import Memory
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.base import clone

from lpcfg_sk import (
    InsideFeatures,
    OutsideFeatures,
    SpectralLPCFG,
    Treebank,
    make_parser,
)
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.spectral import _decomposition
from lpcfg_sk.spectral._moments import accumulate_moments, add_moments, solve
from lpcfg_sk.spectral._node_features import NodeFeatures
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import RuleIndex
from tests.spectral.conftest import STATES, with_features
from tests.tolerances import EXACT, SUM

LITERAL = {
    "scaling": None,
    "smoothing": None,
    "lexical_smoothing": None,
    "lexicon_alpha": 0.0,
}


def values(grammar, trees):
    sign, log_value = grammar.tree_values(trees)
    return sign * np.exp(log_value)


def same_grammar(one, two):
    return all(
        np.array_equal(a, b) for a, b in zip(one.arrays, two.arrays, strict=True)
    )


# -- theorems 3 and 6 ---------------------------------------------------------------


@pytest.mark.parametrize("scaling", [None, 0.0, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_moments_give_the_exact_distribution(finite, scaling, seed):
    from tests.spectral.conftest import finite_grammar

    _, trees, _ = finite
    grammar = finite_grammar(np.random.default_rng(seed))
    p = np.exp(grammar.log_prob(trees))
    model = SpectralLPCFG(m=STATES, **{**LITERAL, "scaling": scaling})
    model.fit(trees, sample_weight=p)
    assert model.m_ == STATES
    assert np.abs(values(model.grammar_, trees) - p).sum() <= EXACT


def test_exact_moments_give_the_exact_marginals(finite):
    grammar, trees, p = finite
    model = SpectralLPCFG(m=STATES, prune=None, **LITERAL).fit(trees, sample_weight=p)
    sentences = [list("xyz"), list("xxyz"), list("zyxzx")]
    for words, found, conventional in zip(
        sentences, model.marginals(sentences), grammar.marginals(sentences), strict=True
    ):
        keys = ["label", "start", "end"]
        found = found.set_index(keys)["marginal"]
        conventional = conventional.set_index(keys)["marginal"]
        np.testing.assert_allclose(
            found, conventional.reindex(found.index), rtol=0, atol=EXACT
        )
        rows = [r for r, s in enumerate(trees.sentences()) if s == words]
        enumerated = trees[rows].to_frame()
        enumerated["p"] = p[rows][enumerated["tree"]]
        total = enumerated.groupby(["label", "start", "stop"])["p"].sum()
        np.testing.assert_allclose(
            found, total.reindex(found.index, fill_value=0.0), rtol=0, atol=EXACT
        )
        assert found.sum() == pytest.approx(
            (2 * len(words) - 1) * p[rows].sum(), rel=SUM
        )


@pytest.mark.slow_without_jit
def test_error_falls_as_one_over_root_m(finite):
    """Multinomial counts over all trees are an i.i.d. sample of any size."""
    _, trees, p = finite
    rng = np.random.default_rng(0)
    sizes = 10 ** np.arange(3, 7)
    errors = []
    for size in sizes:
        runs = []
        for _ in range(6):
            counts = rng.multinomial(size, p / p.sum())
            model = SpectralLPCFG(m=STATES, **LITERAL).fit(trees, sample_weight=counts)
            runs.append(np.abs(values(model.grammar_, trees) - p).sum())
        errors.append(np.median(runs))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.55 <= slope <= -0.45


# -- figures 7 and 8 ----------------------------------------------------------------


def dense_features(trees, side):
    return trees.blocks[side].toarray().astype(float)


def omega_of(trees, weight):
    """Ω^a of figure 8, dense."""
    index = RuleIndex.from_treebank(trees)
    w = index.node_weight(weight)
    phi, psi = dense_features(trees, "inside"), dense_features(trees, "outside")
    omega = {}
    for a, name in enumerate(index.nonterminals):
        rows = index.label == a
        omega[name] = (phi[rows] * w[rows, None]).T @ psi[rows] / w[rows].sum()
    return omega


def test_literal_algorithm_step_by_step(sampled):
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=len(sampled))
    model = SpectralLPCFG(m=2, **LITERAL).fit(sampled, sample_weight=weight)
    omega = omega_of(sampled, weight)
    index = RuleIndex.from_treebank(sampled)
    w = index.node_weight(weight)
    phi, psi = dense_features(sampled, "inside"), dense_features(sampled, "outside")
    y, z, sigma = {}, {}, {}
    for a in index.nonterminals:
        p = model.projections_[a]
        expected = np.linalg.svd(omega[a], compute_uv=False)
        np.testing.assert_allclose(
            p.singular_values, expected[: len(p.singular_values)], rtol=SUM, atol=0
        )
        k = model.m_[a]
        U, V = np.zeros((phi.shape[1], k)), np.zeros((psi.shape[1], k))
        U[p.inside], V[p.outside] = p.U[:, :k], p.V[:, :k]
        np.testing.assert_allclose(U.T @ U, np.eye(k), rtol=0, atol=SUM)
        np.testing.assert_allclose(V.T @ V, np.eye(k), rtol=0, atol=SUM)
        sigma[a] = U.T @ omega[a] @ V
        y[a], z[a] = phi @ U, psi @ V
    names = index.nonterminals
    for r in range(index.n_rules):
        a, b, c = (
            names[ids[r]]
            for ids in (index.rule_parent, index.rule_left, index.rule_right)
        )
        D = 0.0
        for i in np.flatnonzero(index.rule == r):
            left = i + 1
            right = left + index.size[left]
            D = D + w[i] * np.einsum("i,j,k->ijk", z[a][i], y[b][left], y[c][right])
        D = D / w[index.label == names.index(a)].sum()
        C = np.einsum("ijk,il->ljk", D, np.linalg.inv(sigma[a]))
        np.testing.assert_allclose(
            model.grammar_.binary[a, b, c], C, rtol=SUM, atol=SUM
        )
    tokens = index.word
    leaves = np.flatnonzero(index.entry >= 0)
    for e, (x, a) in enumerate(zip(index.lex_word, index.lex_label, strict=True)):
        rows = leaves[index.entry[leaves] == e]
        assert np.all(tokens[np.flatnonzero(np.isin(leaves, rows))] == x)
        d = w[rows] @ z[names[a]][rows] / w[index.label == a].sum()
        np.testing.assert_allclose(
            model.grammar_.lexical[names[a], index.words[x]],
            d @ np.linalg.inv(sigma[names[a]]),
            rtol=SUM,
            atol=SUM,
        )
    tops = index.node_offsets[:-1]
    c1 = weight @ y["S"][tops] / weight.sum()
    np.testing.assert_allclose(model.grammar_.root["S"], c1, rtol=SUM, atol=SUM)


def test_moments_of_parts_add_to_those_of_the_whole(sampled):
    index = RuleIndex.from_treebank(sampled)
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=(2, index.n_nodes, 2))
    m = np.array([2, 1, 2, 2, 1])
    weight = rng.uniform(size=index.n_nodes)
    cut = index.node_offsets[80]
    first = np.arange(index.n_nodes) < cut
    parts = [
        accumulate_moments(index, inside, outside, weight * keep, m)
        for keep in (first, ~first)
    ]
    whole = accumulate_moments(index, inside, outside, weight, m)
    total = add_moments(*parts)
    for name in whole._fields:
        np.testing.assert_allclose(
            getattr(total, name), getattr(whole, name), rtol=SUM, atol=SUM
        )
    one, two = (solve(index, moments, smoothing=5.0) for moments in (total, whole))
    np.testing.assert_allclose(one.arrays.binary, two.arrays.binary, rtol=SUM, atol=SUM)
    with pytest.raises(ValueError, match="do not add"):
        add_moments(whole, whole._replace(n_states=m + 1))


@pytest.mark.slow_without_jit
def test_chunks_of_memory_add_up(sampled, monkeypatch):
    whole = SpectralLPCFG(m=2).fit(sampled)
    monkeypatch.setattr("lpcfg_sk.treebank._treebank._CHUNK_SIZE", 500)
    assert len(sampled.chunk_offsets) > 3
    for n_jobs in (None, 2):
        parts = SpectralLPCFG(m=2, n_jobs=n_jobs).fit(sampled)
        np.testing.assert_array_equal(
            parts.projections_["A"].U, whole.projections_["A"].U
        )
        for one, two in zip(whole.grammar_.arrays, parts.grammar_.arrays, strict=True):
            np.testing.assert_allclose(two, one, rtol=SUM, atol=SUM)
    one = SpectralLPCFG(m=2, node_sampling="one", random_state=0).fit(sampled)
    assert sum(one.counts_.values()) == len(sampled)


def test_rules_are_numbered_once(monkeypatch):
    built = []
    build = RuleIndex._build
    monkeypatch.setattr(
        RuleIndex, "_build", lambda trees: built.append(trees) or build(trees)
    )
    trees = with_features(Treebank(["(S (A x) (S (A y) (A y)))", "(S (A x) (A y))"]))
    SpectralLPCFG(m=2).fit(trees)
    assert len(built) == 1


# -- numbers of states --------------------------------------------------------------


def test_numbers_of_states(sampled):
    assert SpectralLPCFG(m=1).fit(sampled).m_ == dict.fromkeys("ABCDS", 1)
    # C and D have three words, hence rank 3; S stands only at roots.
    many = SpectralLPCFG(m=50).fit(sampled)
    assert many.m_["C"] == many.m_["D"] == 3
    assert many.m_["S"] == 1
    assert 3 < many.m_["A"] < 50
    chosen = SpectralLPCFG(m={"A": 3, "C": 2}).fit(sampled)
    assert chosen.m_ == {"A": 3, "B": 1, "C": 2, "D": 1, "S": 1}
    seen = {}

    def states(nonterminal, count):
        seen[nonterminal] = count
        return 2 if nonterminal == "B" else 1

    assert SpectralLPCFG(m=states).fit(sampled).m_["B"] == 2
    assert seen["S"] == len(sampled)
    assert chosen.counts_ == pytest.approx(seen)


def test_rank_tol_cuts_small_singular_values(sampled):
    plain = SpectralLPCFG(m=3, scaling=None).fit(sampled)
    s = plain.singular_values_["C"]
    tol = 0.5 * (s[1] + s[2]) / s[0]
    assert SpectralLPCFG(m=3, scaling=None, rank_tol=tol).fit(sampled).m_["C"] == 2


def only_words(node):
    return node.word


def test_nonterminal_without_features_has_one_constant_state():
    trees = Treebank(["(S (A x) (S (A y) (A y)))", "(S (A x) (A y))"] * 3)
    trees = with_features(trees)
    blind = InsideFeatures([only_words]).fit_transform(trees)
    model = SpectralLPCFG(m=2, **LITERAL).fit(blind)
    assert model.m_["S"] == 1
    assert len(model.singular_values_["S"]) == 0
    vectors = model.transform(blind).vectors
    label, _ = model.grammar_.encode(blind)
    inner = label == model.grammar_.nonterminals.index("S")
    assert np.all(vectors[inner] == [1.0] + [0.0] * (vectors.shape[1] - 1))
    assert np.all(np.isfinite(model.score_samples(blind)))


# -- decomposition ------------------------------------------------------------------


@pytest.fixture
def no_dense(monkeypatch):
    monkeypatch.setattr("lpcfg_sk._svd._DENSE_WORK", 0.0)


def decompose(trees, **options):
    index = RuleIndex.from_treebank(trees)
    settings = {"scaling": 5.0, "solver": "arpack", "seed": 0, **options}
    n_labels = len(index.nonterminals)
    nodes = NodeFeatures.from_blocks(
        trees.blocks["inside"],
        trees.blocks["outside"],
        index.label,
        np.ones(index.n_nodes),
        n_labels,
    )
    return _decomposition.decompose(nodes, np.full(n_labels, 4), **settings)


@pytest.mark.parametrize("solver", ["arpack", "randomized"])
def test_sparse_solvers_agree_with_the_dense_one(sampled, solver, monkeypatch):
    dense = decompose(sampled)
    monkeypatch.setattr("lpcfg_sk._svd._DENSE_WORK", 0.0)
    sparse = decompose(sampled, solver=solver)
    for one, two in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(
            one.singular_values, two.singular_values, rtol=SUM, atol=SUM
        )
        clear = one.singular_values > 1e-6 * one.singular_values[0]
        np.testing.assert_allclose(
            one.U[:, clear], two.U[:, clear], rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(
            one.V[:, clear], two.V[:, clear], rtol=1e-6, atol=1e-6
        )


def test_randomized_steps_in_where_arpack_gives_up(sampled, no_dense, monkeypatch):
    def give_up(*args, **kwargs):
        raise ArpackNoConvergence("too slow", np.zeros(0), np.zeros((0, 0)))

    expected = decompose(sampled, solver="randomized", seed=0)
    monkeypatch.setattr("lpcfg_sk._svd.svds", give_up)
    for one, two in zip(expected, decompose(sampled, seed=None), strict=True):
        np.testing.assert_array_equal(one.U, two.U)


def test_leading_vectors_of_a_larger_decomposition_are_the_smaller_one(sampled):
    direct = SpectralLPCFG(m=2).fit(sampled)
    nested = SpectralLPCFG(m=2, m_max=5).fit(sampled)
    assert nested.m_ == direct.m_
    assert len(nested.singular_values_["A"]) == 5
    np.testing.assert_allclose(
        nested.grammar_.arrays.binary, direct.grammar_.arrays.binary, rtol=SUM, atol=SUM
    )


def test_memory_computes_a_decomposition_once(sampled, tmp_path, monkeypatch):
    memory = Memory(tmp_path, verbose=0)
    model = SpectralLPCFG(m=3, m_max=4, memory=memory).fit(sampled)
    without = SpectralLPCFG(m=2, m_max=4).fit(sampled)

    def fail(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr(_decomposition, "_svd", fail)
    again = clone(model).set_params(m=2, smoothing=1.0, n_jobs=2).fit(sampled)
    assert again.m_["A"] == 2
    same = clone(model).set_params(m=2).fit(sampled)
    assert same_grammar(same.grammar_, without.grammar_)
    with pytest.raises(AssertionError, match="computed again"):
        clone(model).set_params(scaling=1.0).fit(sampled)


# -- weights, jobs, manners ---------------------------------------------------------


def test_integer_weights_are_copies(sampled):
    counts = np.random.default_rng(0).integers(0, 4, size=len(sampled))
    weighted = SpectralLPCFG(m=2).fit(sampled, sample_weight=counts)
    repeated = SpectralLPCFG(m=2).fit(sampled[np.repeat(np.arange(200), counts)])
    np.testing.assert_allclose(
        weighted.score_samples(sampled),
        repeated.score_samples(sampled),
        rtol=SUM,
        atol=SUM,
    )


@pytest.mark.parametrize("solver", ["arpack", "randomized"])
def test_number_of_jobs_changes_no_bit(sampled, solver, no_dense, monkeypatch):
    monkeypatch.setattr("lpcfg_sk._parallel.CHUNK_WORK", 100)
    monkeypatch.setattr("lpcfg_sk.spectral._moments._CHUNK_PRODUCTS", 100.0)
    grammars = [
        SpectralLPCFG(m=2, svd_solver=solver, n_jobs=n, random_state=0)
        .fit(sampled)
        .grammar_
        for n in (1, 2)
    ]
    assert same_grammar(*grammars)


def test_one_node_of_each_tree(sampled):
    model = SpectralLPCFG(m=2, node_sampling="one", random_state=0).fit(sampled)
    assert sum(model.counts_.values()) == len(sampled)
    again = SpectralLPCFG(m=2, node_sampling="one", random_state=0).fit(sampled)
    assert same_grammar(model.grammar_, again.grammar_)
    assert np.all(np.isfinite(model.grammar_.arrays.binary))
    single = with_features(Treebank(["(S (A x) (B y))"]))
    with pytest.raises(ValueError, match="drew no root"):
        for state in range(20):
            SpectralLPCFG(node_sampling="one", random_state=state).fit(single)


def test_one_node_of_each_tree_is_biased_where_sizes_differ(finite):
    """The weights 1/N of nodes, exactly: even exact moments miss the truth."""
    _, trees, p = finite
    index = RuleIndex.from_treebank(trees)
    weight = index.node_weight(p / np.diff(index.node_offsets))
    label = index.label
    m = np.array([STATES[a] for a in index.nonterminals])
    nodes = NodeFeatures.from_blocks(
        trees.blocks["inside"], trees.blocks["outside"], label, weight, len(m)
    )
    projections = _decomposition.decompose(nodes, m)
    y = _decomposition.project(trees.blocks["inside"], label, projections, "inside", m)
    z = _decomposition.project(
        trees.blocks["outside"], label, projections, "outside", m
    )
    grammar = solve(index, accumulate_moments(index, y, z, weight, m))
    assert np.abs(values(grammar, trees) - p).sum() > 1e-3


def test_vectors_are_projections_of_features(sampled):
    model = SpectralLPCFG(m=2).fit(sampled)
    trees = model.transform(sampled)
    y, z = trees.vectors, trees.blocks["outside_vectors"]
    phi, psi = (dense_features(sampled, side) for side in ("inside", "outside"))
    index = RuleIndex.from_treebank(sampled)
    for a, name in enumerate(index.nonterminals):
        p, k = model.projections_[name], model.m_[name]
        rows = index.label == a
        for found, expected in (
            (y, phi[rows][:, p.inside] @ p.U[:, :k]),
            (z, psi[rows][:, p.outside] @ p.V[:, :k]),
        ):
            np.testing.assert_allclose(
                found[rows, :k], expected, rtol=SUM, atol=1e-10 * np.abs(expected).max()
            )
            assert not found[rows, k:].any()
    assert trees[5:7].vectors.shape[0] == trees[5:7].n_nodes
    # With scaling=None the means of zyᵀ are the diagonal Σ^a (equation 21).
    plain = SpectralLPCFG(m=2, **LITERAL).fit(sampled)
    blocks = plain.transform(sampled).blocks
    rows = index.label == index.nonterminals.index("A")
    product = blocks["vectors"][rows].T @ blocks["outside_vectors"][rows] / rows.sum()
    sigma = np.diag(plain.singular_values_["A"][:2])
    np.testing.assert_allclose(product, sigma, rtol=1e-6, atol=1e-9)


def test_vectors_of_trees_with_inside_features_alone(sampled):
    model = SpectralLPCFG(m=2).fit(sampled)
    inside = sampled.replace(
        blocks={"inside": sampled.blocks["inside"]},
        block_names={"inside": sampled.block_names["inside"]},
    )
    found = model.transform(inside)
    assert "outside_vectors" not in found.blocks
    np.testing.assert_array_equal(found.vectors, model.transform(sampled).vectors)
    other = OutsideFeatures(["rule"]).fit_transform(inside)
    with pytest.raises(ValueError, match=r"outside features, .*use the OutsideFeat"):
        model.transform(other)


def test_scaling_is_that_of_the_feature_transformers(sampled):
    by_learner = SpectralLPCFG(m=2, scaling=5.0).fit(sampled)
    scaled = InsideFeatures(scaling=5.0).fit_transform(
        OutsideFeatures(scaling=5.0).fit_transform(sampled)
    )
    by_features = SpectralLPCFG(m=2, scaling=None).fit(scaled)
    np.testing.assert_allclose(
        by_learner.singular_values_["A"],
        by_features.singular_values_["A"],
        rtol=1e-5,  # the blocks are float32
        atol=0,
    )


def test_signed_models_never_give_nan(sampled, finite):
    _, trees, _ = finite
    model = SpectralLPCFG(m=8, smoothing=None, lexical_smoothing=None).fit(sampled[:60])
    assert model.grammar_.arrays.binary.min() < 0
    signs, logs = model.grammar_.tree_values(trees)
    message = f"{(signs < 0).sum()} of {len(trees)} trees have a negative value"
    with pytest.warns(ParseFailureWarning, match=message):
        scores = model.score_samples(trees)
    assert not np.isnan(scores).any()
    np.testing.assert_array_equal(scores == -np.inf, signs <= 0)
    np.testing.assert_array_equal(scores[signs > 0], logs[signs > 0])
    with pytest.warns(ParseFailureWarning, match="of 50 sentences have a negative"):
        assert not np.isnan(model.sentence_log_prob(trees[:50])).any()
    for frame in model.marginals(trees[:5], normalize=True):
        assert not frame["marginal"].isna().any()
    assert len(model.predict(trees[:5])) == 5


def test_sentences_without_a_positive_value_are_counted(sampled, finite):
    _, trees, _ = finite
    model = SpectralLPCFG(m=8, prune=None, **LITERAL).fit(sampled[:60])
    total = {}
    for words, value in zip(
        trees.sentences(), values(model.grammar_, trees), strict=True
    ):
        total[tuple(words)] = total.get(tuple(words), 0.0) + value
    # Of smaller sums rounding decides the sign.
    total = {words: value for words, value in total.items() if abs(value) > 1e-12}
    n_negative = sum(value < 0 for value in total.values())
    assert 0 < n_negative < len(total)
    X = Treebank([["nowhere", "x", "y"], *map(list, total)])
    message = f"{n_negative} of {len(X)} sentences have a negative value.*and 1 no tree"
    with pytest.warns(ParseFailureWarning, match=message) as caught:
        found = model.sentence_log_prob(X)
    assert len(caught) == 1
    expected = np.array([0.0, *total.values()])
    np.testing.assert_array_equal(np.isneginf(found), expected <= 0)
    model.sentence_log_prob(X[np.isfinite(found)])  # Warnings are errors.


def test_pickle_and_refit(sampled):
    model = SpectralLPCFG(m=2).fit(sampled)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        copy.score_samples(sampled), model.score_samples(sampled)
    )
    before = model.grammar_
    assert same_grammar(model.fit(sampled).grammar_, before)


def test_verbose_reports_on_standard_error(sampled, capsys):
    SpectralLPCFG(m=2).fit(sampled)
    assert capsys.readouterr().err == ""
    SpectralLPCFG(m=2, verbose=1).fit(sampled)
    report = capsys.readouterr()
    assert report.out == ""
    assert "5 nonterminals, 2 states at most" in report.err
    assert f"at {sampled.n_nodes} nodes" in report.err


def test_bad_input_is_named(sampled):
    plain = Treebank(["(S (A x) (B y))"])
    with pytest.raises(ValueError, match=r"no 'inside' block; use make_parser"):
        SpectralLPCFG().fit(plain)
    with pytest.raises(ValueError, match="no 'outside' block"):
        SpectralLPCFG().fit(InsideFeatures().fit_transform(plain))
    with pytest.raises(ValueError, match="'m' parameter"):
        SpectralLPCFG(m=0).fit(sampled)
    with pytest.raises(ValueError, match="latent states for"):
        SpectralLPCFG(m={"A": 0}).fit(sampled)
    model = SpectralLPCFG(m=2).fit(sampled)
    other = with_features(plain)
    with pytest.raises(ValueError, match="inside features"):
        model.transform(other)


CHECKS = dict(
    tree_checks(
        SpectralLPCFG(m=2),
        with_features(
            Treebank(
                [
                    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
                    "(S (NP (D a) (N cat)) (VP (V saw) (NP (D the) (N cat))))",
                    "(S (NP (D a) (N dog)) (VP (V ate) (NP (D the) (N food))))",
                ]
                * 3
            )
        ),
    )
)


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


# -- the Penn Treebank sample --------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "horizontal", "f1"),
    [
        ({"m": 8}, 0, 0.836),
        ({"m": 16}, 0, 0.854),
        # Chosen by cross-validation on the training part.
        ({"m": 16, "smoothing": 20.0}, 1, 0.860),
    ],
)
def test_f1_on_the_penn_treebank_sample(wsj_train, wsj_dev, settings, horizontal, f1):
    parser = make_parser(SpectralLPCFG(**settings), horizontal=horizontal)
    assert parser.fit(wsj_train).score(wsj_dev) >= f1


@pytest.mark.slow
def test_training_takes_seconds(wsj_train):
    make_parser(SpectralLPCFG(m=4)).fit(wsj_train[:100])
    begin = time.process_time()
    make_parser(SpectralLPCFG(m=16)).fit(wsj_train)
    assert time.process_time() - begin <= 4.0
