import importlib
from types import MappingProxyType

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from lpcfg_sk import (
    EMLPCFG,
    LPCFG,
    PCFG,
    PivotLPCFG,
    SpectralLPCFG,
    Treebank,
    make_parser,
)
from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk.em._run import Run, n_supported_states
from lpcfg_sk.em._training_trees import HeldOut, merge_equal_trees
from lpcfg_sk.exceptions import ConvergenceWarning, TreebankWarning
from lpcfg_sk.lpcfg import grammar_of_parameters
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import RuleIndex
from tests.em.training import training_trees
from tests.reference import lpcfg as reference
from tests.tolerances import EXACT, SUM


def true_grammar():
    """A grammar whose two states of A tell the left child from the right one."""
    return LPCFG.from_parameters(
        binary={
            ("S", "A", "A"): [[[0.02, 0.60], [0.02, 0.06]]],
            ("S", "S", "A"): [[[0.05, 0.25]]],
        },
        lexical={
            ("A", "x"): [0.9, 0.1],
            ("A", "y"): [0.1, 0.2],
            ("A", "z"): [0.0, 0.7],
        },
        root={"S": [1.0]},
    )


@pytest.fixture(scope="module")
def trees():
    return true_grammar().sample(300, 0)


class Given(BaseLPCFG):
    """A learner whose grammar is given."""

    def fit(self, X, y=None, *, sample_weight=None):
        raise NotImplementedError


def plain(**options):
    return EMLPCFG(
        **{
            "m": 2,
            "smoothing": 0,
            "validation_fraction": None,
            "lexicon_alpha": 0,
            "random_state": 0,
            **options,
        }
    )


SMALL = EMLPCFG(m=2, max_iter=8, tol=10.0, random_state=0)
CHECKS = dict(tree_checks(SMALL, true_grammar().sample(80, 1)))


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


@pytest.mark.parametrize("m", [2, 3, {"A": 4}])
def test_the_likelihood_never_falls(trees, m, seed):
    model = plain(m=m, tol=0.0, max_iter=60, random_state=seed)
    with pytest.warns(ConvergenceWarning, match="60 iterations"):
        model.fit(trees)
    gains = np.diff(model.lower_bounds_)
    assert gains.min() > -1e-12
    assert gains[0] > 1e-6
    assert model.n_iter_ == 60
    assert model.lower_bound_ == model.lower_bounds_[-1]
    assert model.grammar_.is_probabilistic


def test_a_falling_likelihood_is_told():
    run = Run(None, None)
    run.lower_bounds = [-2.0, -3.0]
    with pytest.warns(ConvergenceWarning, match="fell by"):
        plain()._report(run)


def test_one_iteration_equals_counting_annotations(seed):
    rng = np.random.default_rng(seed)
    source = reference.random_grammar(rng, states=2, density=0.4)
    trees = [reference.random_tree(rng, source) for _ in range(30)]
    start = Given()
    start._set_model(source, None, Treebank(trees))
    index = RuleIndex.from_treebank(Treebank(trees))
    training = training_trees(index, np.ones(len(trees)))
    model = plain(init=start)
    grammar = reference.as_grammar(index, *model._start("learner", training))
    binary, lexical, root, log_likelihood = reference.expected_counts(
        grammar, trees, np.ones(len(trees))
    )
    new_binary, new_lexical = reference.maximize((binary, lexical), 0.0, 0.0)
    run = model._run(training, "learner", max_iter=1)
    after = reference.as_grammar(index, run.layout, run.parameters)
    assert_allclose(run.lower_bounds, [log_likelihood / len(trees)], rtol=EXACT)
    for key, value in new_binary.items():
        assert_allclose(after.binary[key], value, rtol=1e-10, atol=EXACT)
    for key, value in new_lexical.items():
        assert_allclose(after.lexical[key], value, rtol=1e-10, atol=EXACT)
    for key, value in root.items():
        if key in after.root:
            assert_allclose(after.root[key], value / len(trees), rtol=1e-10, atol=EXACT)


def test_em_finds_the_grammar_of_its_data():
    truth = true_grammar()
    trees, test = truth.sample(4000, 0), truth.sample(500, 1)
    model = EMLPCFG(
        m=2, smoothing=0, lexicon_alpha=0, n_init=3, tol=1e-3, random_state=0
    ).fit(trees)
    gap = truth.log_prob(test).mean() - model.score_samples(test).mean()
    pcfg_gap = (
        truth.log_prob(test).mean() - PCFG(0).fit(trees).score_samples(test).mean()
    )
    assert gap < 0.01
    assert pcfg_gap > 0.1


def test_one_state_is_the_pcfg(trees):
    model = plain(m=1).fit(trees)
    pcfg = PCFG(smoothing=0).fit(trees)
    assert_allclose(
        model.score_samples(trees), pcfg.score_samples(trees), rtol=EXACT, atol=0
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_warm_start_goes_on_where_it_stopped(trees, smoothing):
    long = plain(max_iter=9, tol=0.0, smoothing=smoothing, lexicon_alpha=1.0)
    long.fit(trees)
    short = plain(
        max_iter=3, tol=0.0, smoothing=smoothing, lexicon_alpha=1.0, warm_start=True
    )
    bounds = []
    for _ in range(3):
        bounds += short.fit(trees).lower_bounds_
    assert_allclose(bounds, long.lower_bounds_, rtol=EXACT, atol=0)
    assert short.grammar_ == long.grammar_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_start_on_other_trees(trees):
    model = plain(max_iter=3, tol=0.0, warm_start=True).fit(trees)
    more = Treebank([*trees.tolist(), *Treebank(["(S (B new) (A x))"]).tolist()])
    assert model.fit(more).m_ == {"A": 2, "B": 1, "S": 2}
    assert np.all(np.isfinite(model.score_samples(more)))


def test_the_best_of_several_starts_is_kept(trees):
    bounds = [
        plain(random_state=np.random.RandomState(s), n_init=1).fit(trees).lower_bound_
        for s in range(2)
    ]
    several = plain(n_init=4, random_state=0).fit(trees)
    single = plain(n_init=1, random_state=0).fit(trees)
    assert several.lower_bound_ >= single.lower_bound_ - 1e-12
    assert len(set(bounds)) == 2


def test_random_state_and_n_jobs_fix_every_bit(trees):
    first = EMLPCFG(m=3, random_state=5).fit(trees)
    again = EMLPCFG(m=3, random_state=5, n_jobs=2).fit(trees)
    other = EMLPCFG(m=3, random_state=6).fit(trees)
    assert first.grammar_ == again.grammar_
    assert first.grammar_ != other.grammar_


def test_order_of_trees_does_not_matter(trees):
    order = np.random.default_rng(0).permutation(len(trees))
    one = EMLPCFG(m=2, random_state=0).fit(trees)
    two = EMLPCFG(m=2, random_state=0).fit(trees[order])
    assert one.grammar_ == two.grammar_


def test_held_out_trees_choose_the_number_of_iterations(trees):
    model = EMLPCFG(m=2, random_state=0).fit(trees)
    assert model.converged_
    assert model.n_iter_ == np.argmax(model.validation_scores_) + 1
    assert len(model.lower_bounds_) == model.n_iter_
    assert EMLPCFG(m=2, random_state=0).fit(trees[:20]).validation_scores_ == []


@pytest.mark.parametrize("unseen", [False, True])
def test_held_out_score_is_that_of_the_final_model(trees, unseen):
    both = [*trees.tolist()]
    if unseen:
        both += Treebank(["(S (B new) (A z))", "(T (A x) (S (A x) (A z)))"]).tolist()
    index = RuleIndex.from_treebank(Treebank(both))
    training, held = np.arange(250), np.arange(250, len(both))
    training = training_trees(index.take(training), np.ones(250))
    start = n_supported_states(3, training.rules), 0
    run = plain(m=3, smoothing=0.1)._run(training, start, max_iter=1)
    weight = np.arange(len(held)) + 1.0
    held_out = HeldOut(index.take(held), weight, training.rules, run.layout, alpha=1.0)
    before = [values.copy() for values in run.parameters]
    score = held_out.score(run.parameters, run.totals)
    for values, kept in zip(run.parameters, before, strict=True):
        assert np.array_equal(values, kept)
    grammar = grammar_of_parameters(
        training.rules, run.layout, run.parameters, run.totals, alpha=1.0
    )
    logs = grammar.log_prob(Treebank(both)[held])
    if unseen:
        assert np.isneginf(logs[-2:]).all()
        assert np.isfinite(score)
    else:
        assert_allclose(score, np.average(logs, weights=weight), rtol=EXACT)


def test_equal_trees_are_merged(trees):
    index = RuleIndex.from_treebank(trees)
    weight = np.arange(len(trees)) + 1.0
    rows, merged = merge_equal_trees(index, weight)
    strings = [str(t) for t in trees]
    assert len(rows) == len(set(strings))
    expected = dict.fromkeys(strings, 0.0)
    for string, w in zip(strings, weight, strict=True):
        expected[string] += w
    assert {strings[r]: w for r, w in zip(rows, merged, strict=True)} == expected


def held_out_weights(weight, fraction, rng):
    """Weight that is held out of each of as many different trees."""
    trees = [f"(S (A w{i:04d}) (A x))" for i in range(len(weight))]
    index = RuleIndex.from_treebank(Treebank(trees))
    parts = training_trees(index, weight).hold_out(fraction, rng)
    held = np.zeros(len(weight))
    if parts is not None:
        _, (held_out, held_weight) = parts
        words = [held_out.words[i] for i in held_out.word[::2]]
        held[[int(word[1:]) for word in words]] = held_weight
    return held


def test_choice_of_held_out_trees():
    rng = np.random.RandomState(0)
    weight = np.concatenate([np.ones(2000), np.full(100, 50.0), np.full(1000, 0.25)])
    held = held_out_weights(weight, 0.1, rng)
    assert set(held[:2000]) == {0.0, 1.0}
    assert 150 < held[:2000].sum() < 250
    assert np.all(held[2000:2100] == 5.0)
    assert set(held[2100:]) == {0.0, 0.25}
    assert 70 < (held[2100:] > 0).sum() < 130
    assert not held_out_weights(np.ones(20), 0.1, np.random.RandomState(0)).any()
    assert not held_out_weights(np.ones(8), 0.999, np.random.RandomState(0)).any()


def test_numbers_of_states(trees):
    assert plain(m=5).fit(trees).m_ == {"A": 5, "S": 5}
    assert plain(m={"A": 3}).fit(trees).m_ == {"A": 3, "S": 1}
    assert plain(m=lambda a, n: 2 if a == "S" else 4).fit(trees).m_ == {"A": 4, "S": 2}
    few = Treebank(["(S (A x) (A y))"] * 10)
    assert plain(m=9).fit(few).m_ == {"A": 2, "S": 1}
    with pytest.raises(ValueError, match="latent states for 'A'"):
        plain(m={"A": 0}).fit(trees)


def test_start_from_a_learner(trees):
    fitted = plain(m=2).fit(trees)
    fast = plain(init=fitted, tol=1e-3, n_iter_no_change=1).fit(trees)
    assert fast.m_ == fitted.m_
    assert fast.lower_bounds_[-1] >= fitted.lower_bounds_[-1] - 0.01
    assert fast.n_iter_ < fitted.n_iter_
    assert EMLPCFG(init=PCFG(), random_state=0).fit(trees).m_ == {"A": 1, "S": 1}
    unfitted = EMLPCFG(init=plain(m=2), random_state=0).fit(trees)
    assert unfitted.m_ == {"A": 2, "S": 2}
    assert clone(unfitted).init is not unfitted.init


def test_a_start_without_probabilities_is_refused(trees):
    start = Given()
    grammar = true_grammar().conjugate({"A": [[1.0, 2.0], [0.5, -1.0]]})
    start._set_model(grammar, None, trees)
    with pytest.raises(ValueError, match="negative parameters"):
        plain(init=start).fit(trees)


def test_zeros_of_the_start_can_be_left(trees):
    start = Given()
    lexical = dict(true_grammar().lexical)
    del lexical["A", "y"]
    grammar = LPCFG.from_parameters(true_grammar().binary, lexical, {"S": [1.0]})
    start._set_model(grammar, None, trees)
    model = plain(init=start).fit(trees)
    assert np.all(np.isfinite(model.score_samples(trees)))


@pytest.mark.parametrize(
    ("fraction", "place"),
    [
        (None, "lpcfg_sk.em._emlpcfg.maximize"),
        (None, "lpcfg_sk.em._expectation.expected_counts"),
        (0.1, "lpcfg_sk.em._emlpcfg.maximize"),
        (0.1, "lpcfg_sk.em._training_trees.smoothed_emissions"),
    ],
)
def test_an_interrupt_leaves_a_usable_model(trees, fraction, place, monkeypatch):
    # A user who presses Ctrl-C in the fourth iteration.
    module, name = place.rsplit(".", 1)
    original = getattr(importlib.import_module(module), name)
    calls = iter(range(100))

    def interrupted(*args, **kwargs):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(place, interrupted)
    model = EMLPCFG(m=2, validation_fraction=fraction, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(trees)
    monkeypatch.undo()
    assert model.n_iter_ == (4 if "smoothed_emissions" in place else 3)
    assert len(model.lower_bounds_) == model.n_iter_
    assert not model.converged_
    assert model.grammar_.is_probabilistic
    assert len(model.predict([["x", "z"]])) == 1


def test_held_out_trees_that_are_impossible_choose_nothing(trees, monkeypatch):
    monkeypatch.setattr(
        "lpcfg_sk.em._training_trees.HeldOut.score", lambda *args: float("-inf")
    )
    model = EMLPCFG(m=2, smoothing=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Held-out trees have probability zero"):
        model.fit(trees)
    assert model.validation_scores_ == []
    assert model.converged_
    assert model.n_iter_ > 5


def test_weights_mean_repetition(trees):
    weight = np.arange(len(trees)) % 3
    weighted = EMLPCFG(m=2, random_state=0).fit(trees, sample_weight=weight)
    repeated = EMLPCFG(m=2, random_state=0).fit(
        trees[np.repeat(np.arange(len(trees)), weight)]
    )
    assert weighted.grammar_ == repeated.grammar_


def test_transform_gives_posteriors(trees):
    model = EMLPCFG(m=3, random_state=0).fit(trees)
    vectors = model.transform(trees[:20]).blocks["vectors"]
    assert vectors.shape == (trees[:20].n_nodes, 3)
    assert vectors.min() >= 0
    assert_allclose(vectors.sum(axis=1), 1.0, rtol=SUM)


def test_without_tol_the_number_of_iterations_is_given(trees):
    model = plain(tol=None, max_iter=7).fit(trees)
    assert model.n_iter_ == 7
    assert not model.converged_


def test_verbose_reports_on_standard_error(trees, capsys):
    EMLPCFG(m=2, verbose=1, random_state=0).fit(trees)
    captured = capsys.readouterr()
    assert "iteration 1" in captured.err
    assert "held-out" in captured.err
    assert captured.out == ""


@pytest.mark.slow
@pytest.mark.parametrize(("m", "least"), [(8, 0.833), (16, 0.843)])
def test_wsj(wsj_train, wsj_dev, m, least):
    model = EMLPCFG(m=m, decoder="max-marginal", random_state=0)
    assert make_parser(model).fit(wsj_train).score(wsj_dev) >= least


@pytest.mark.parametrize("validation_fraction", [None, 0.3])
def test_unknown_names_in_m_are_told_once(trees, validation_fraction):
    m = {"NPP": 4, **{f"X{i}": 2 for i in range(5)}}
    model = EMLPCFG(
        m, n_init=2, max_iter=2, tol=None, validation_fraction=validation_fraction
    )
    with pytest.warns(TreebankWarning, match=r"'NPP', 'X0', .*'X3', \.\.\.") as caught:
        model.fit(trees)
    assert len(caught) == 1
    assert set(model.m_.values()) == {1}


@pytest.mark.parametrize(
    ("m", "given"),
    [
        (lambda a, n: None, "None"),
        (lambda a, n: float("nan"), "nan"),
        ({"S": "x"}, "'x'"),
        ({"S": 1.5}, "1.5"),
        (True, "True"),
    ],
)
def test_numbers_of_states_are_whole(m, given):
    with pytest.raises(ValueError, match=f"m gives {given} latent states for 'S'"):
        EMLPCFG(m).fit(Treebank(["(S (S x) (S y))"] * 12))


@pytest.mark.parametrize("learner", [EMLPCFG, PivotLPCFG, SpectralLPCFG])
def test_any_mapping_gives_the_numbers_of_states(learner):
    trees = Treebank(["(S (A x) (B y))", "(S (B y) (A x))"] * 20)
    parser = make_parser(learner(MappingProxyType({"S": 1})))
    assert set(parser.fit(trees)[-1].m_.values()) == {1}
