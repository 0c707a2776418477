import pickle
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from lpcfg_sk import (
    EMLPCFG,
    LPCFG,
    InsideFeatures,
    OutsideFeatures,
    PivotLPCFG,
    ShardedTreebank,
    Treebank,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.testing import tree_checks
from tests.reference.pivot import (
    finite_grammar,
    finite_trees,
    inside_tree,
    outside_tree,
)

EXACT_SETTINGS = {
    "scaling": 0.0,
    "prior": 0.0,
    "smoothing": 0.0,
    "lexicon_alpha": 0.0,
    "anchor_min_count": 0.0,
    "tol": 1e-14,
    "max_iter": 5000,
    "matching_max_iter": 2000,
    "solver_tol": 1e-14,
    "solver_max_iter": 10000,
}


def with_features(trees):
    trees = InsideFeatures().fit_transform(Treebank(trees))
    return OutsideFeatures().fit_transform(trees)


@pytest.fixture(scope="module")
def finite():
    """A grammar, all its trees with one inside and outside feature, probabilities."""
    grammar = finite_grammar()
    trees, probabilities = finite_trees(grammar)
    trees = InsideFeatures([inside_tree]).fit_transform(Treebank(trees))
    trees = OutsideFeatures([outside_tree]).fit_transform(trees)
    return grammar, trees, probabilities


def first_word(node):
    return f"{node.label} {node.words[node.start]}"


def last_word(node):
    return f"{node.label} {node.words[node.stop - 1]}"


def next_word(node):
    """Silent at the end of a sentence."""
    return node.words[node.stop] if node.stop < len(node.words) else None


def place(node):
    return f"{node.label} {node.start} {len(node.words)}"


def some_words(node):
    """Nothing, one feature or two, which the state and the words decide."""
    if node.words[node.start] == "b2":
        return None
    return [f"{node.label} {w}" for w in set(node.words[node.start : node.stop])]


TEMPLATES = {
    "one": ([inside_tree], [outside_tree]),
    "three": ([inside_tree, first_word, last_word], [outside_tree, place, place]),
    "silent": ([inside_tree, some_words], [outside_tree, next_word, place]),
}


def finite_with(templates):
    """All trees of the finite grammar with some features, and their probabilities."""
    trees, probabilities = finite_trees(finite_grammar())
    inside, outside = TEMPLATES[templates]
    trees = InsideFeatures(inside).fit_transform(Treebank(trees))
    return OutsideFeatures(outside).fit_transform(trees), probabilities


@pytest.fixture(scope="module")
def sampled():
    """Trees drawn from the grammar, with the standard features."""
    grammar = LPCFG.from_parameters(**finite_grammar())
    return with_features(grammar.sample(400, 0))


def errors(found, grammar):
    """Largest errors of t, q and π under the best order of the states."""
    lexical, root = found.lexical, found.root
    order = {
        "S": [0],
        "A": np.argsort(root["A"]),
        "B": np.argsort(-lexical["B", "b0"]),
        "C": np.argsort(-lexical["C", "c0"]),
    }

    def error(values, parameters):
        return max(
            np.abs(
                values[key][np.ix_(*(order[a] for a in key if a in order))] - value
            ).max()
            for key, value in parameters.items()
        )

    return (
        error(found.binary, grammar["binary"]),
        error(lexical, grammar["lexical"]),
        error(_by_tuple(root), _by_tuple(grammar["root"])),
    )


def _by_tuple(root):
    return {(a,): vector for a, vector in root.items()}


def test_the_finite_grammar_is_a_distribution(finite):
    grammar, trees, probabilities = finite
    assert_allclose(probabilities.sum(), 1.0, rtol=1e-12)
    log_prob = LPCFG.from_parameters(**grammar).log_prob(trees)
    assert_allclose(np.exp(log_prob), probabilities, atol=1e-15)


def test_exact_moments_give_the_exact_grammar(finite):
    grammar, trees, probabilities = finite
    model = PivotLPCFG(2, **EXACT_SETTINGS).fit(trees, sample_weight=probabilities)
    assert model.m_ == {"A": 2, "B": 2, "C": 2, "S": 1}
    assert model.converged_
    t, q, pi = errors(model.grammar_, grammar)
    assert t < 1e-8
    assert q < 1e-8
    assert pi < 1e-8


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("templates", TEMPLATES)
def test_the_sum_is_consistent_for_any_number_of_features(templates):
    trees, probabilities = finite_with(templates)
    model = PivotLPCFG(2, objective="sum", **EXACT_SETTINGS)
    model.fit(trees, sample_weight=probabilities)
    assert model.converged_
    error = np.abs(np.exp(model.score_samples(trees)) - probabilities).sum()
    assert error <= 1e-9
    t, q, pi = errors(model.grammar_, finite_grammar())
    assert max(t, q, pi) < 1e-8
    # The product is not, unless there is one feature on each side.
    model.set_params(objective="product").fit(trees, sample_weight=probabilities)
    error = np.abs(np.exp(model.score_samples(trees)) - probabilities).sum()
    assert (error <= 1e-9) == (templates == "one")


def test_default_iterations_depend_on_the_objective(sampled):
    for objective, expected in (("product", 3), ("sum", 10)):
        model = PivotLPCFG(2, objective=objective, tol=0.0).fit(sampled)
        assert model.n_iter_ == expected
    assert PivotLPCFG(2, max_iter=1, tol=0.0).fit(sampled).n_iter_ == 1


def test_a_small_tol_does_not_change_the_least_squares():
    # Of 4 states the points are far from exact: steps of the solver can be seen.
    X = make_parser(PivotLPCFG())[:-1].fit_transform(load_toy(100))
    settings = {"anchor_min_count": 5, "solver": "frank-wolfe", "matching_max_iter": 0}
    r = [
        PivotLPCFG(4, tol=tol, max_iter=1, **settings).fit(X).r_["NP"].toarray()
        for tol in (1e-6, 1e-9)
    ]
    assert_array_equal(*r)
    more = PivotLPCFG(4, max_iter=1, solver_max_iter=2000, **settings).fit(X)
    assert np.abs(more.r_["NP"].toarray() - r[0]).max() > 0


@pytest.mark.parametrize("objective", ["sum", "product"])
def test_what_the_decomposition_found_is_kept(objective):
    grammar = finite_grammar()
    trees, probabilities = finite_with("three" if objective == "sum" else "one")
    model = PivotLPCFG(2, objective=objective, **EXACT_SETTINGS)
    model.fit(trees, sample_weight=probabilities)
    n_templates = 3 if objective == "sum" else 1
    names = trees.block_names["inside"]
    found = {names[f]: model.r_["B"].toarray()[:, f] for f in range(len(names))}
    order = np.argsort(-found["inside:inside_tree=B b0"])
    for word in ("b0", "b1", "b2"):
        vector = found[f"inside:inside_tree=B {word}"][order]
        assert_allclose(vector, grammar["lexical"]["B", word], atol=1e-9)
    for a, m in model.m_.items():
        assert model.r_[a].shape == (m, trees.blocks["inside"].shape[1])
        assert model.s_[a].shape == (m, trees.blocks["outside"].shape[1])
        assert_allclose(model.r_[a].sum(axis=1), n_templates, rtol=1e-9)
        assert_allclose(model.s_[a].sum(axis=1), n_templates, rtol=1e-9)
        assert_allclose(model.state_probabilities_[a].sum(), 1.0, rtol=1e-9)
        assert len(model.outside_pivots_[a]) == len(model.pivots_[a])
    # Pivots of B are b0 and b1, with probabilities 0.5 and 0.3.
    assert_allclose(model.alpha_["B"], 0.3, rtol=1e-9)
    assert 0 < model.beta_["B"] < 1
    # An outside pivot occurs with its state only.
    outside = trees.block_names["outside"]
    columns = {outside[g]: g for g in range(len(outside))}
    for a in "ABC":
        s = model.s_[a].toarray()
        for h, pivot in enumerate(model.outside_pivots_[a]):
            assert s[h, columns[pivot]] >= model.beta_[a] * (1 - 1e-9)
            assert s[1 - h, columns[pivot]] < 1e-9
    assert all(0 < value <= 1 for value in model.concavity_.values())
    # Two states b0 … b2 with r̂ above: the information by its definition.
    if objective == "product":
        pi = model.state_probabilities_["B"]
        r = model.r_["B"].toarray()
        r = r[:, r.sum(axis=0) > 0]
        matrix = np.sqrt(np.outer(pi, pi)) * ((r / (pi @ r)) @ r.T)
        inside = np.linalg.eigvalsh(matrix)[0]
        assert model.concavity_["B"] <= inside * (1 + 1e-9)


@pytest.mark.slow_without_jit
def test_collapsed_states_are_told(finite):
    _, trees, probabilities = finite
    settings = {**EXACT_SETTINGS, "max_iter": 3, "matching_max_iter": 3}
    # So many pseudo-counts leave nothing of the features.
    settings["prior"] = 1e9
    with pytest.warns(
        UserWarning, match=r"states of 3 nonterminals collapse \(A, B, C"
    ):
        model = PivotLPCFG(2, **settings).fit(trees, sample_weight=probabilities)
    assert max(model.concavity_[a] for a in "ABC") < 1e-8
    assert model.concavity_["S"] == 1.0


def test_states_have_the_names_of_their_pivots(finite):
    _, trees, probabilities = finite
    model = PivotLPCFG(2, **EXACT_SETTINGS).fit(trees, sample_weight=probabilities)
    prefix = "inside:inside_tree="
    named = {a: {p.removeprefix(prefix) for p in ps} for a, ps in model.pivots_.items()}
    assert named == {
        "A": {"A b0 c0", "A b1 c0"},
        "B": {"B b0", "B b1"},
        "C": {"C c0", "C c1"},
        "S": set(),
    }
    # state h of B emits its pivot, and no other state does
    for h, pivot in enumerate(model.pivots_["B"]):
        emitted = model.grammar_.lexical["B", pivot.split()[-1]]
        assert emitted[h] > 0.1
        assert emitted[1 - h] < 1e-8


@pytest.mark.slow_without_jit
def test_error_falls_with_the_sample(finite, seed):
    grammar, trees, probabilities = finite
    rng = np.random.default_rng(seed)
    settings = {**EXACT_SETTINGS, "tol": 1e-9, "max_iter": 500}
    found = []
    for size in (10**4, 10**6, 10**8):
        weight = rng.multinomial(size, probabilities)
        model = PivotLPCFG(2, **settings).fit(trees, sample_weight=weight)
        found.append(errors(model.grammar_, grammar))
    # 100 times the trees, a tenth of the error
    for large, middle, small in zip(*found, strict=True):
        assert middle < large / 4
        assert small < middle / 4


@pytest.mark.parametrize("objective", ["sum", "product"])
@pytest.mark.parametrize("m", [1, 3, {"B": 2}, lambda a, n: 2 if n > 300 else 1])
def test_parameters_are_probabilities(sampled, m, objective):
    model = PivotLPCFG(m, objective=objective).fit(sampled)
    grammar = model.grammar_
    for values in (grammar.arrays.binary, grammar.arrays.lexical, grammar.arrays.root):
        assert np.isfinite(values).all()
        assert values.min() >= 0
    totals = {a: np.zeros(k) for a, k in model.m_.items()}
    for (a, _, _), tensor in grammar.binary.items():
        totals[a] += tensor.sum(axis=(1, 2))
    for (a, _), vector in grammar.lexical.items():
        totals[a] += vector
    for total in totals.values():
        assert_allclose(total, 1.0, rtol=1e-9)
    assert_allclose(grammar.arrays.root.sum(), 1.0, rtol=1e-9)
    assert len(grammar.sample(20, 0)) == 20
    assert len(model.sample(3, 0)) == 3
    if m == {"B": 2}:
        assert model.m_ == {"A": 1, "B": 2, "C": 1, "S": 1}


def test_latent_states_raise_the_likelihood(sampled):
    plain = PivotLPCFG(1).fit(sampled)
    split = PivotLPCFG(2).fit(sampled)
    assert split.score_samples(sampled).mean() > plain.score_samples(sampled).mean()


def test_more_iterations_do_not_lose_the_objective(sampled):
    likelihoods = [
        PivotLPCFG(2, max_iter=n, smoothing=0.0).fit(sampled).score_samples(sampled)
        for n in (1, 3, 10)
    ]
    assert likelihoods[1].mean() > likelihoods[0].mean()
    assert likelihoods[2].mean() > likelihoods[0].mean()


def test_it_starts_em(sampled):
    pivot = PivotLPCFG(2).fit(sampled)
    model = EMLPCFG(
        init=pivot, max_iter=2, tol=None, smoothing=0.0, validation_fraction=None
    ).fit(sampled)
    assert model.m_ == pivot.m_
    assert model.score_samples(sampled).mean() > pivot.score_samples(sampled).mean()


def test_em_in_a_pipeline_gets_the_features_of_its_start():
    parser = make_parser(EMLPCFG(init=PivotLPCFG(2), max_iter=2, tol=None))
    assert "inside" in parser.named_steps
    assert "inside" not in make_parser(EMLPCFG()).named_steps


@pytest.mark.parametrize("objective", ["sum", "product"])
def test_n_jobs_does_not_change_a_bit(sampled, objective, monkeypatch):
    monkeypatch.setattr("lpcfg_sk.pivot._node_states._CHUNK_PRODUCTS", 10)
    one = PivotLPCFG(2, objective=objective).fit(sampled).grammar_.arrays
    two = PivotLPCFG(2, objective=objective, n_jobs=2).fit(sampled).grammar_.arrays
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("objective", ["sum", "product"])
def test_weights_repeat_trees(sampled, objective):
    trees = sampled[:60]
    weight = 1 + np.arange(60) % 3
    repeated = trees[np.repeat(np.arange(60), weight)]
    one = PivotLPCFG(2, objective=objective).fit(trees, sample_weight=weight)
    two = PivotLPCFG(2, objective=objective).fit(repeated)
    assert_allclose(one.score_samples(trees), two.score_samples(trees), rtol=1e-6)


def test_frank_wolfe_gives_nearly_the_same():
    # with two states both solvers take one exact step; with four they differ
    X = make_parser(PivotLPCFG())[:-1].fit_transform(load_toy(150))
    one, two, plain = (
        PivotLPCFG(m, anchor_min_count=5, solver=solver).fit(X).score_samples(X)
        for m, solver in ((4, "pairwise"), (4, "frank-wolfe"), (1, "pairwise"))
    )
    assert 1e-6 < np.abs(one - two).max() < 0.5
    assert np.abs(one - plain).mean() > 3


def test_contradicting_features_are_no_problem():
    # without a prior the likelihoods of two features can exclude each other
    trees = ["(S (A x) (B y))", "(S (A y) (B x))", "(S (A x) (S (A z) (B y)))"] * 5
    X = with_features(trees)
    settings = {**EXACT_SETTINGS, "max_iter": 20, "tempering": 0.0}
    for objective in ("sum", "product"):
        model = PivotLPCFG(4, objective=objective, **settings).fit(X)
        assert np.isfinite(model.score_samples(X)).all()


def test_features_are_asked_for():
    with pytest.raises(ValueError, match="InsideFeatures"):
        PivotLPCFG().fit(Treebank(["(S (A x) (B y))"]))


def shards(folder, n_trees=80):
    trees = load_toy(n_trees)
    for i, begin in enumerate(range(0, n_trees, 30)):
        trees[begin : begin + 30].save(folder / f"{i}.tb")
    return trees, ShardedTreebank(folder)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("objective", ["sum", "product"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_shards_are_never_loaded_and_give_the_same_bits(
    tmp_path, monkeypatch, n_jobs, objective
):
    trees, X = shards(tmp_path)
    whole = make_parser(PivotLPCFG(3, objective=objective)).fit(trees)[-1]
    monkeypatch.setattr(ShardedTreebank, "load", None)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    parts = make_parser(PivotLPCFG(3, objective=objective, n_jobs=n_jobs)).fit(X)[-1]
    assert list((tmp_path / "temporary").iterdir()) == []
    assert parts.m_ == whole.m_
    assert max(parts.m_.values()) == 3
    assert parts.counts_ == whole.counts_
    assert parts.binarized_ == whole.binarized_
    for one, two in zip(whole.grammar_.arrays, parts.grammar_.arrays, strict=True):
        assert_array_equal(one, two)
    # Shards number features differently, and call them by the same names.
    assert {a: sorted(p) for a, p in parts.pivots_.items()} == {
        a: sorted(p) for a, p in whole.pivots_.items()
    }


@pytest.mark.slow_without_jit
def test_chunks_of_memory_and_blocks_of_leaves(sampled, monkeypatch):
    whole = PivotLPCFG(2).fit(sampled)
    monkeypatch.setattr("lpcfg_sk.treebank._treebank._CHUNK_SIZE", 500)
    monkeypatch.setattr("lpcfg_sk.pivot._node_states._BLOCK_LEAVES", 100)
    assert len(sampled.chunk_offsets) > 3
    parts = PivotLPCFG(2).fit(sampled)
    assert parts.pivots_ == whole.pivots_
    for one, two in zip(whole.grammar_.arrays, parts.grammar_.arrays, strict=True):
        assert_allclose(one, two, rtol=1e-10, atol=1e-14)


def test_pickle(sampled):
    model = clone(PivotLPCFG(2)).fit(sampled)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.score_samples(sampled), model.score_samples(sampled))
    assert again.pivots_ == model.pivots_


CHECKS = dict(
    tree_checks(
        PivotLPCFG(2),
        with_features(LPCFG.from_parameters(**finite_grammar()).sample(60, 1)),
    )
)


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


@pytest.mark.slow
def test_the_sum_takes_no_more_than_three_times_the_product(wsj_train):
    X = make_parser(PivotLPCFG())[:-1].fit_transform(wsj_train)
    seconds = {}
    for objective in ("product", "sum"):
        PivotLPCFG(2, objective=objective).fit(X[:100])
        begin = time.process_time()
        PivotLPCFG(8, objective=objective).fit(X)
        seconds[objective] = time.process_time() - begin
    assert seconds["sum"] <= 3 * seconds["product"]


@pytest.mark.slow
def test_wsj(wsj_train, wsj_dev):
    features = make_parser(PivotLPCFG(16))[:-1]
    X, dev = features.fit_transform(wsj_train), features[:2].transform(wsj_dev)
    PivotLPCFG(2).fit(X[:100])
    begin = time.process_time()
    pivot = PivotLPCFG(16).fit(X)
    assert time.process_time() - begin <= 8
    assert pivot.score(dev, wsj_dev) >= 0.854
    model = EMLPCFG(init=PivotLPCFG(16), random_state=0).fit(X)
    assert model.n_iter_ <= 3
    assert model.score(dev, wsj_dev) >= 0.862
