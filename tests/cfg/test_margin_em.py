import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from lpcfg_sk import CFG, MarginEMPCFG, Treebank
from lpcfg_sk.cfg._binomials import BinomialChains
from lpcfg_sk.cfg._empirical_risk import normalised
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.exceptions import ConvergenceWarning, ParseError, ParseFailureWarning
from lpcfg_sk.metrics import log_likelihood_scorer
from tests.reference import cfg as reference
from tests.tolerances import EXACT, SUM

# Wide margins are quick to see in small samples.
SMALL_S = pytest.mark.filterwarnings("ignore:.*the paper needs s > 1")

MIXED = """
S -> NP VP | S 'and' S
NP -> N | 'the' N | NP PP
VP -> V NP | VP PP | V
PP -> P NP
N -> 'dog' | 'park' | 'girl' | 'boy'
V -> 'sees' | 'barks'
P -> 'on' | 'in' | 'at'
"""


@pytest.fixture
def grammar():
    return CFG.from_string(MIXED)


def draw(grammar, theta, n, seed):
    rng = np.random.default_rng(seed)
    trees = []
    while len(trees) < n:
        derivation = reference.sample(grammar, theta, rng)
        if derivation is not None:
            trees.append(derivation)
    return trees


@pytest.fixture
def trees(grammar):
    theta = normalised(grammar, np.arange(1, len(grammar.rules) + 1.0) ** -1)
    return draw(grammar, theta, 60, seed=0)


def as_treebank(grammar, derivations):
    return Treebank([reference.bracketed(grammar, d) for d in derivations])


@SMALL_S
def test_supervised_solution_is_the_constrained_minimum(grammar, trees):
    X = as_treebank(grammar, trees)
    model = MarginEMPCFG(grammar, s=0.6).fit(X)
    assert model.gamma_ == pytest.approx(60**-0.6)
    chain = model.binomials_
    counts = model.transform(X).toarray().sum(axis=0)
    count_of = dict(zip(model.theta_.index, counts, strict=True))
    for _, links in chain.groupby("nonterminal"):
        own = links["rule"].map(count_of).to_numpy()
        for place in range(len(links) - 1):
            stop, go = own[place], own[place + 1 :].sum()
            if stop + go == 0:
                continue

            # An independent solver: the zero of the derivative of equation 21, or
            # the end of the interval that it points to.
            def slope(b, stop=stop, go=go):
                return go / (1 - b) - stop / b

            low, high = model.gamma_, 1 - model.gamma_
            if slope(low) >= 0:
                best = low
            elif slope(high) <= 0:
                best = high
            else:
                best = brentq(slope, low, high, xtol=1e-14)
            value = links["stop"].to_numpy()[place]
            np.testing.assert_allclose(value, best, rtol=0, atol=1e-10)
    assert model.converged_
    assert model.n_iter_ == 0


@SMALL_S
def test_joint_constrained_minimum_by_slsqp(grammar, trees):
    """All binomials at once, by another solver, agree in the loss to 1e-8."""
    X = as_treebank(grammar, trees)
    model = MarginEMPCFG(grammar, s=0.6).fit(X)
    counts = model.transform(X).toarray().sum(axis=0)
    names = list(model.theta_.index)
    groups = [
        np.array([names.index(r) for r in g["rule"]])
        for _, g in model.binomials_.groupby("nonterminal", sort=False)
    ]
    chains = BinomialChains(groups, len(names))
    free = np.concatenate([g[:-1] for g in groups])

    def loss(values):
        stop, go = np.ones(len(names)), np.zeros(len(names))
        stop[free], go[free] = values, 1 - values
        return -counts @ np.log(chains.join(stop, go)) / len(X)

    gamma = model.gamma_
    found = minimize(
        loss,
        np.full(len(free), 0.5),
        method="SLSQP",
        bounds=[(gamma, 1 - gamma)] * len(free),
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert model.log_losses_[-1] == pytest.approx(found.fun, abs=1e-8)
    assert model.log_losses_[-1] <= found.fun + 1e-12


@SMALL_S
@pytest.mark.parametrize("rule_order", ["frequency", "grammar"])
def test_binomials_keep_their_margin(grammar, trees, rule_order):
    X = as_treebank(grammar, trees).unparsed()
    model = MarginEMPCFG(grammar, s=0.7, rule_order=rule_order).fit(X)
    chain = model.binomials_
    last = chain.groupby("nonterminal")["place"].transform("max") == chain["place"]
    stop, go = chain.loc[~last, "stop"], chain.loc[~last, "go"]
    assert stop.between(model.gamma_, 1 - model.gamma_).all()
    assert go.between(model.gamma_, 1 - model.gamma_).all()
    np.testing.assert_allclose(stop + go, 1.0, rtol=EXACT)
    assert (chain.loc[last, "stop"] == 1).all()
    sums = model.theta_.groupby([r.lhs for r in grammar.rules]).sum()
    np.testing.assert_allclose(sums, 1.0, rtol=EXACT)


@SMALL_S
@pytest.mark.slow_without_jit
@pytest.mark.parametrize("s", [0.4, 1.0, 3.0])
def test_log_loss_never_rises(grammar, trees, s, seed):
    X = as_treebank(grammar, trees).unparsed()
    model = MarginEMPCFG(
        grammar, s=s, init="random", max_iter=25, tol=0, random_state=seed
    )
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model.fit(X)
    assert len(model.log_losses_) == 26
    assert np.diff(model.log_losses_).max() <= 1e-12
    assert model.score(X) == pytest.approx(-model.log_losses_[-1], rel=EXACT)


def test_large_s_is_maximum_likelihood(grammar, trees):
    X = as_treebank(grammar, trees)
    counts = MarginEMPCFG(grammar).fit(X).transform(X).toarray().sum(axis=0)
    model = MarginEMPCFG(grammar, s=200.0).fit(X)
    for group in rules_by_lhs(grammar.rules).values():
        expected = counts[group] / counts[group].sum()
        np.testing.assert_allclose(
            model.theta_.to_numpy()[group], expected, rtol=SUM, atol=EXACT
        )


def test_dirichlet_smoothing_is_equation_26(grammar, trees):
    X = as_treebank(grammar, trees)
    model = MarginEMPCFG(grammar, smoothing="dirichlet", alpha=3.0).fit(X)
    assert model.gamma_ == 0
    counts = dict(
        zip(
            model.theta_.index,
            model.transform(X).toarray().sum(axis=0),
            strict=True,
        )
    )
    for _, links in model.binomials_.groupby("nonterminal"):
        own = links["rule"].map(counts).to_numpy()
        for place in range(len(links) - 1):
            later = own[place + 1 :].sum()
            np.testing.assert_allclose(
                links["stop"].to_numpy()[place],
                (own[place] + 2) / (own[place] + later + 4),
                rtol=EXACT,
            )


@SMALL_S
def test_rule_order_changes_the_floor():
    grammar = CFG.from_string("S -> a | b | c | d")
    X = Treebank([["d"]] * 100)
    first = MarginEMPCFG(grammar, s=1.0).fit(X)
    last = MarginEMPCFG(grammar, s=1.0, rule_order="grammar").fit(X)
    gamma = first.gamma_
    assert gamma == pytest.approx(0.01)
    # d is last: three links at their margin come before it.
    assert last.theta_["S -> 'd'"] == pytest.approx((1 - gamma) ** 3)
    # Sentences: the order comes from expectations, d is first.
    assert first.binomials_["rule"][0] == "S -> 'd'"
    assert first.theta_["S -> 'd'"] == pytest.approx(1 - gamma)
    assert first.theta_.min() < gamma


def test_mixed_data_adds_both_losses(grammar, trees):
    short = [d for d in trees if reference.constituents(grammar, d)[1] <= 7]
    labelled, open_rows = short[:10], short[10:30]
    X = Treebank(
        [
            *as_treebank(grammar, labelled).tolist(),
            *as_treebank(grammar, open_rows).unparsed().tolist(),
        ]
    )
    model = MarginEMPCFG(grammar, unlabeled_weight=0.5, tol=1e-9, max_iter=500).fit(X)
    theta = model.theta_.to_numpy()
    loss = -sum(np.log(reference.probability(d, theta)) for d in labelled)
    sentences = as_treebank(grammar, open_rows).sentences()
    loss -= 0.5 * sum(
        np.log(reference.expected_counts(grammar, s, theta)[0]) for s in sentences
    )
    assert model.log_losses_[-1] == pytest.approx(loss / (10 + 0.5 * 20), rel=SUM)


@pytest.mark.slow_without_jit
def test_implicit_chain_equals_explicit_normal_form(grammar, seed):
    """Theorem 1 on 2,000 derivations, with zero and tiny probabilities."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_exponential(len(grammar.rules))
    weights[rng.integers(len(weights), size=5)] *= 1e-14
    # The last rule of N is impossible, and a middle one of P.
    names = [str(r) for r in grammar.rules]
    weights[names.index("N -> 'boy'")] = 0.0
    weights[names.index("P -> 'in'")] = 0.0
    theta = normalised(grammar, weights)
    form = grammar.to_binary_normal_form()
    binary = form.to_binary(theta)
    np.testing.assert_allclose(form.from_binary(binary), theta, rtol=EXACT)
    uniform = normalised(grammar, np.ones(len(weights)))
    derivations = draw(grammar, uniform, 2_000, seed)
    X = as_treebank(grammar, derivations)
    Y = form.transform(X)
    assert form.inverse_transform(Y) == X
    implicit = MarginEMPCFG(grammar).fit(X)
    implicit.theta_[:] = theta
    explicit = MarginEMPCFG(form.grammar).fit(Y)
    explicit.theta_[:] = binary.to_numpy()
    a, b = implicit.score_samples(X), explicit.score_samples(Y)
    np.testing.assert_array_equal(np.isneginf(a), np.isneginf(b))
    finite = np.isfinite(a)
    assert 100 < finite.sum() < 2_000
    np.testing.assert_allclose(a[finite], b[finite], rtol=EXACT)


def test_recovers_the_truth_from_many_trees(grammar):
    rng = np.random.default_rng(3)
    weights = rng.standard_exponential(len(grammar.rules)) + 0.3
    # Few conjunctions: deep derivations, which `draw` leaves out, are then rare.
    weights[0] *= 20
    theta = normalised(grammar, weights)
    model = MarginEMPCFG(grammar).fit(
        as_treebank(grammar, draw(grammar, theta, 1_000, 3))
    )
    np.testing.assert_allclose(model.theta_, theta, atol=0.03)


def test_errors_and_counted_warnings(grammar):
    with pytest.raises(ValueError, match="n_jobs"):
        MarginEMPCFG(grammar, n_jobs=0).fit([["dog", "barks"]] * 3)
    with pytest.raises(ValueError, match="exceeds 1/2"):
        MarginEMPCFG(grammar).fit([["dog", "barks"]])
    with pytest.raises(ValueError, match="needs a grammar"):
        MarginEMPCFG().fit([["dog", "barks"]])
    with pytest.raises(ValueError, match=r"none of the 2 rows.*'?cat"):
        MarginEMPCFG(grammar).fit([["cat", "barks"], ["cat"]])
    X = [["dog", "barks"]] * 3 + [["cat", "barks"], ["barks"]]
    model = MarginEMPCFG(grammar)
    with pytest.warns(UserWarning, match="2 of 5 rows .* row 3; unknown.*: cat"):
        model.fit(X)
    assert model.n_zero_probability_ == 2
    assert model.gamma_ == pytest.approx(3**-1.5)
    np.testing.assert_array_equal(np.isfinite(model.score_samples(X)), [1, 1, 1, 0, 0])
    with pytest.warns(UserWarning, match="2 of 5 rows are not in the language"):
        assert np.isfinite(model.score(X))
    with pytest.warns(UserWarning, match="1 of 2 rows are not in the language"):
        assert model.score([["cat"], ["dog", "barks"]], sample_weight=[1, 0]) == -np.inf
    with pytest.warns(ParseFailureWarning, match="2 of 5"):
        trees = model.predict(X)
    assert str(trees[3]) == "(S cat barks)"
    assert str(trees[4]) == "(S barks)"
    assert model.predict([[], ["dog", "barks"]]).is_parsed.tolist() == [False, True]
    with pytest.raises(ParseError, match="row 1 has no parse"):
        model.set_params(on_failure="raise").predict([[], ["cat", "barks"]])


def test_impossible_under_these_probabilities_is_minus_infinity(grammar):
    model = MarginEMPCFG(grammar, smoothing="dirichlet", alpha=1.0)
    trees = ["(S (NP (N dog)) (VP (V barks)))"] * 3
    model.fit(Treebank(trees))
    assert np.isneginf(model.score([["girl", "barks"]]))


def test_treebank_grammar_with_several_roots():
    trees = ["(S (A x) (B y))", "(T (A x) y)", "(S (B y))"]
    model = MarginEMPCFG().fit(Treebank(trees))
    predicted = model.predict(Treebank(trees).sentences())
    assert [t.label for t in predicted] == ["S", "S", "S"]
    assert np.isfinite(model.score_samples(Treebank(trees))).all()


@pytest.mark.filterwarnings("ignore:.* left out")
def test_grammars_are_compared_by_the_likelihood_of_all_rows():
    narrow, wide = map(CFG.from_string, ("S -> 'c'", "S -> 'a' S | 'c'"))
    X = [["c"], ["a", "c"]] * 4
    own, fair = (
        [
            cross_val_score(MarginEMPCFG(g), X, cv=2, scoring=scoring).mean()
            for g in (narrow, wide)
        ]
        for scoring in (None, log_likelihood_scorer)
    )
    assert own[0] > own[1]
    assert -np.inf == fair[0] < fair[1]


def test_without_a_tolerance_all_iterations_are_run(grammar, trees):
    X = as_treebank(grammar, trees).unparsed()
    model = MarginEMPCFG(grammar, tol=None, max_iter=4).fit(X)
    assert model.n_iter_ == 4
    assert not model.converged_


@pytest.mark.slow_without_jit
def test_grid_search_over_s(grammar, trees):
    X = as_treebank(grammar, trees).unparsed()
    search = GridSearchCV(
        MarginEMPCFG(grammar, max_iter=20, tol=1e-3), {"s": [1.2, 1.5, 2.0]}, cv=3
    ).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert clone(search.best_estimator_).get_params()["s"] == search.best_params_["s"]


@pytest.mark.slow_without_jit
def test_restarts_keep_the_best(grammar, trees):
    X = as_treebank(grammar, trees).unparsed()
    one = MarginEMPCFG(grammar, random_state=0, tol=1e-3).fit(X)
    many = MarginEMPCFG(grammar, random_state=0, tol=1e-3, n_init=4).fit(X)
    again = MarginEMPCFG(grammar, random_state=0, tol=1e-3, n_init=4, n_jobs=2).fit(X)
    assert many.log_losses_[-1] <= one.log_losses_[-1]
    np.testing.assert_array_equal(many.theta_, again.theta_)


def test_sample_weight_is_repetition(grammar, trees):
    X = as_treebank(grammar, trees)
    weights = np.arange(len(X)) % 3
    weighted = MarginEMPCFG(grammar).fit(X, sample_weight=weights)
    repeated = MarginEMPCFG(grammar).fit(X[np.repeat(np.arange(len(X)), weights)])
    np.testing.assert_allclose(weighted.theta_, repeated.theta_, rtol=EXACT)
    assert weighted.gamma_ == repeated.gamma_


PENALISED = CFG.from_string(
    "S -> A B | B A | A | 'a'\nA -> 'a' | 'b' | 'a' 'b'\nB -> 'b' | 'a' | 'a' 'b'"
)
STRINGS = [x.split() for x in ("a a", "a b", "a", "a a", "b a", "b a b", "a b", "b")]


@pytest.mark.slow_without_jit
def test_dirichlet_em_stops_at_a_minimum_of_its_penalised_objective():
    settings = {"smoothing": "dirichlet", "alpha": 1.5, "rule_order": "grammar"}
    model = MarginEMPCFG(PENALISED, **settings, max_iter=3000, tol=1e-10).fit(STRINGS)
    longest = MarginEMPCFG(PENALISED, **settings, max_iter=3000, tol=None).fit(STRINGS)
    assert model.converged_
    assert np.diff(model.objectives_).max() <= 1e-12
    # The unpenalised loss does rise, which is no reason to stop.
    assert np.diff(model.log_losses_).max() > 1e-6
    np.testing.assert_allclose(model.theta_, longest.theta_, atol=1e-3)
    # Equation 26: the objective holds the prior of each binomial with two events.
    chain = model.binomials_
    links = chain[chain["go"] > 0]
    penalty = -0.5 * np.log(links[["stop", "go"]]).to_numpy().sum() / len(STRINGS)
    assert len(links) == 3 + 2 + 2
    assert model.objectives_[-1] == pytest.approx(model.log_losses_[-1] + penalty)


@pytest.mark.slow_without_jit
def test_restarts_of_dirichlet_em_are_compared_by_the_penalised_objective():
    settings = {"smoothing": "dirichlet", "alpha": 2.0, "init": "random", "tol": None}
    settings |= {"rule_order": "grammar", "max_iter": 3}
    rng = np.random.RandomState(0)
    single = [
        MarginEMPCFG(PENALISED, **settings, random_state=rng).fit(STRINGS)
        for _ in range(8)
    ]
    objectives = [model.objectives_[-1] for model in single]
    losses = [model.log_losses_[-1] for model in single]
    assert np.argmin(objectives) != np.argmin(losses)
    rng = np.random.RandomState(0)
    best = MarginEMPCFG(PENALISED, **settings, n_init=8, random_state=rng).fit(STRINGS)
    assert best.objectives_[-1] == min(objectives)


def test_gamma_is_the_margin_itself():
    X = [["d"]] * 8 + [["c"]] * 2
    grammar = CFG.from_string("S -> a | b | c | d")
    model = MarginEMPCFG(grammar, s=0.5, gamma=0.1).fit(X)
    assert model.gamma_ == 0.1
    assert model.theta_["S -> 'd'"] == pytest.approx(0.8)
    one_row = MarginEMPCFG(grammar, gamma=0.25).fit([["a"]])
    assert one_row.theta_["S -> 'a'"] == pytest.approx(0.75)
    likely = MarginEMPCFG(grammar, gamma=0).fit(X)
    assert likely.theta_.tolist() == pytest.approx([0, 0, 0.2, 0.8])
    for gamma in (-0.1, 0.6):
        with pytest.raises(ValueError, match="'gamma' parameter"):
            MarginEMPCFG(grammar, gamma=gamma).fit(X)


@pytest.mark.parametrize("s", [0.5, 1.0])
def test_s_of_at_most_one_is_warned_of(s):
    X = [["d"]] * 8 + [["c"]] * 2
    grammar = CFG.from_string("S -> a | b | c | d")
    with pytest.warns(UserWarning, match="the paper needs s > 1") as caught:
        MarginEMPCFG(grammar, s=s).fit(X)
    assert caught[0].filename == __file__
    # Warnings are errors here: none where s is not used.
    MarginEMPCFG(grammar, s=s, smoothing="dirichlet").fit(X)
    MarginEMPCFG(grammar, s=s, gamma=0.1).fit(X)


@pytest.mark.parametrize("rule_order", ["frequency", "grammar"])
def test_binary_normal_form_in_the_order_of_the_model_keeps_the_margin(rule_order):
    X = [["d"]] * 8 + [["c"]] * 2
    grammar = CFG.from_string("S -> a | b | c | d")
    model = MarginEMPCFG(grammar, gamma=0.1, rule_order=rule_order).fit(X)
    form = model.to_binary_normal_form()
    binary = form.to_binary(model.theta_)
    pairs = binary[[str(r) for r in form.grammar.rules if r.lhs != "S3"]]
    assert pairs.between(0.1 - 1e-12, 0.9 + 1e-12).all()
    np.testing.assert_allclose(form.from_binary(binary), model.theta_, rtol=EXACT)
    of_grammar = grammar.to_binary_normal_form().to_binary(model.theta_)
    # By frequency, the class Θ(γ) is that of the data's order, not the grammar's.
    assert (of_grammar.min() < 0.09) == (rule_order == "frequency")
    assert "theorems 2 and 3" in MarginEMPCFG.__doc__


def test_max_marginal_compares_all_chains_of_unary_rules():
    trees = ["(S (C x))"] * 40 + ["(S (A (C x)))"] * 35 + ["(S (B (C x)))"] * 25
    model = MarginEMPCFG(gamma=0, decoder="max-marginal").fit(Treebank(trees))
    assert str(model.predict([["x"]])[0]) == "(S (A (C x)))"
    frame = model.marginals([["x"]], normalize=True)[0].set_index("label")["marginal"]
    assert frame[["S", "A", "C"]].sum() == pytest.approx(2.35)
