"""The search over numbers of states."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_score

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    LatentStateSearchCV,
    SpectralLPCFG,
    load,
    make_parser,
    save,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.model_selection._folds import Fold, RefitFamily, make_family
from lpcfg_sk.spectral import SpectralFamily
from lpcfg_sk.testing import tree_checks

pytestmark = [
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ConvergenceWarning"),
]
TREES = load_toy(120)
SETTINGS = {"candidates": (1, 2, 4), "n_nonterminals": 2, "cv": 3}


def spectral(m=2, **options):
    return make_parser(SpectralLPCFG(m, **options))


def searched(estimator=None, **settings):
    estimator = spectral() if estimator is None else estimator
    return LatentStateSearchCV(estimator, **{**SETTINGS, **settings})


@pytest.fixture(scope="module")
def family():
    X = spectral()[:-1].fit_transform(TREES)
    return X, SpectralFamily(SpectralLPCFG(3), X, m_max=6)


def assert_same_grammar(one, two):
    for a, b in zip(one.grammar_.arrays, two.grammar_.arrays, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("changes", [{}, {"NP": 6}, {"NP": 1, "DT": 5, "VP": 2}])
def test_members_of_a_family_are_what_a_fit_gives(family, changes):
    X, members = family
    m = {**members.base, **changes}
    expected = SpectralLPCFG(m, m_max=6).fit(X)
    assert members.fit(m).m_ == expected.m_
    assert_same_grammar(members.fit(m), expected)
    # Tensors of rules without a changed nonterminal come from another member.
    known = members.fit(members.base)
    assert_same_grammar(members.fit(m, known), expected)


@pytest.mark.parametrize(
    "options", [{"ridge": 0.1}, {"smoothing": None, "scaling": None}]
)
def test_members_have_the_parameters_of_the_learner(family, options):
    X, _ = family
    members = SpectralFamily(SpectralLPCFG(2, **options), X, m_max=4)
    known = members.fit(members.base)
    m = {**members.base, "NP": 4}
    expected = SpectralLPCFG(m, m_max=4, **options).fit(X)
    assert_same_grammar(members.fit(m, known), expected)


def test_only_rules_with_changed_nonterminals_are_summed(family, monkeypatch):
    from lpcfg_sk.spectral import _family

    _, members = family
    known = members.fit(members.base)
    chosen = []

    def accumulate(*args, **kwargs):
        chosen.append(kwargs["chosen"])
        return original(*args, **kwargs)

    original = _family.accumulate_moments
    monkeypatch.setattr(_family, "accumulate_moments", accumulate)
    members.fit({**members.base, "NP": 1}, known)
    arrays = known.grammar_.arrays
    np_ = known.grammar_.nonterminals.index("NP")
    parts = arrays.rule_parent, arrays.rule_left, arrays.rule_right
    with_np = np.any([part == np_ for part in parts], axis=0)
    np.testing.assert_array_equal(chosen[0], np.flatnonzero(with_np))
    assert 0 < len(chosen[0]) < len(with_np)


def one_changed(row, nonterminal, count):
    return row.m if nonterminal == row.nonterminal else 2


@pytest.mark.slow_without_jit
def test_scores_are_those_of_cross_validation():
    search = searched(n_nonterminals=1).fit(TREES)
    base = cross_val_score(spectral(m_max=4), TREES, cv=3)
    assert search.base_score_ == pytest.approx(base.mean(), abs=1e-12)
    variances = []
    for row in search.results_.itertuples():
        changed = partial(one_changed, row)
        scores = cross_val_score(spectral(changed, m_max=4), TREES, cv=3)
        assert row.mean_score == pytest.approx(scores.mean(), abs=1e-12)
        assert row.gain == pytest.approx((scores - base).mean(), abs=1e-12)
        variances.append((scores - base).var(ddof=1) / 3)
    errors = np.sqrt(np.maximum(variances, np.mean(variances)))
    np.testing.assert_allclose(search.results_["gain_error"], errors, atol=1e-12)


def no_score(estimator, X):
    """Deterministic scores that depend on the numbers of states alone."""
    m = estimator[-1].m_
    return -abs(m["NP"] - 4) - 0.1 * abs(m["DT"] - 1)


def test_a_known_optimum_is_found():
    search = searched(scoring=no_score).fit(TREES)
    assert list(search.counts_) == ["NP", "DT"]
    assert (search.m_["NP"], search.m_["DT"]) == (4, 1)
    assert search.best_score_ == 0.0
    kept = search.results_[search.results_["kept"]]
    assert kept[["nonterminal", "m"]].to_numpy().tolist() == [["NP", 4], ["DT", 1]]
    unsearched = {a: m for a, m in search.base_m_.items() if a not in ("NP", "DT")}
    assert {a: search.m_[a] for a in unsearched} == unsearched
    assert search.best_estimator_[-1].m == search.m_
    assert search.score(TREES) == 0.0


def jointly(estimator, X):
    """NP and DT must change together; each alone gains little, or loses."""
    m = estimator[-1].m_
    return {(2, 2): 0.5, (4, 2): 0.55, (1, 2): 0.6, (4, 4): 1.0}.get(
        (m["NP"], m["DT"]), 0.0
    )


@pytest.mark.parametrize(("width", "best"), [(1, (1, 2)), (2, (4, 4))])
def test_a_beam_finds_what_a_greedy_search_misses(width, best):
    search = searched(scoring=jointly, beam_width=width, refit=False).fit(TREES)
    assert (search.m_["NP"], search.m_["DT"]) == best
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(NotFittedError):
        search.predict(TREES)


def test_passes_end_when_nothing_changes():
    search = searched(scoring=no_score, n_passes=9, n_nonterminals=1, cv=2).fit(TREES)
    # The second pass finds nothing; a third one is not made.
    assert search.results_["step"].max() == 2


def noisy(gains, others=(0.0, 0.0, 0.0)):
    """Score by fold, found by the number of test trees, for NP with 4 and 1 states."""
    places = {30: 0, 40: 1, 50: 2}

    def score(estimator, X):
        m = estimator[-1].m_["NP"]
        return {4: gains, 1: others}.get(m, (0.0, 0.0, 0.0))[places[len(X)]]

    return score


@pytest.mark.parametrize(
    ("scores", "margin", "accepted"),
    [
        ([(0.1, 0.2, 0.3)], 2.0, True),  # mean 0.2, standard error 0.0577
        ([(0.1, 0.2, 0.3)], 4.0, False),
        ([(-0.1, 0.0, 0.4)], 0.5, True),  # mean 0.1, standard error 0.153
        ([(-0.1, 0.0, 0.4)], 1.0, False),
        ([(-0.1, 0.0, 0.1)], 0.0, False),
        ([(0.1, 0.1, 0.1)], 9.0, True),
        # The standard error of the other candidate is 0.577, so 0.41 for both.
        ([(0.1, 0.1, 0.1), (-1.0, 0.0, 1.0)], 0.3, False),
        ([(0.1, 0.1, 0.1), (-1.0, 0.0, 1.0)], 0.2, True),
    ],
)
def test_gains_must_exceed_the_margin(scores, margin, accepted):
    cv = [
        (np.delete(np.arange(120), test), test)
        for test in (np.arange(30), np.arange(30, 70), np.arange(70, 120))
    ]
    search = searched(
        n_nonterminals=1, scoring=noisy(*scores), margin=margin, cv=cv, refit=False
    ).fit(TREES)
    assert search.m_["NP"] == (4 if accepted else 2)


def test_a_single_fold_has_no_standard_error():
    cv = ShuffleSplit(1, test_size=40, random_state=0)
    search = searched(cv=cv, scoring=no_score, margin=9.0).fit(TREES)
    assert search.n_splits_ == 1
    assert search.m_["NP"] == 4
    assert search.results_["gain_error"].isna().all()


@pytest.mark.slow_without_jit
def test_numbers_that_the_data_does_not_support_are_not_tried():
    search = searched(candidates=(2, 200, 300), n_nonterminals=None, cv=2, refit=False)
    search.fit(TREES[:20])
    # Ranks are below 200, so that 200 and 300 are the same.
    tried = search.results_.groupby("nonterminal")["m"].apply(list)
    assert all(len(set(m)) == len(m) <= 1 for m in tried)


@pytest.mark.slow_without_jit
def test_jobs_do_not_change_the_result():
    one, two = (searched(n_jobs=n).fit(TREES) for n in (1, 2))
    assert one.m_ == two.m_
    assert one.results_.equals(two.results_)


@pytest.mark.slow_without_jit
def test_weights_and_groups_reach_the_folds():
    groups = np.arange(len(TREES)) // 10
    search = searched(cv=GroupKFold(2), n_nonterminals=1)
    with pytest.raises(ValueError, match="groups"):
        search.fit(TREES)
    assert search.fit(TREES, groups=groups).n_splits_ == 2
    # A tree of weight 0 is as good as absent.
    weight = np.ones(len(TREES))
    weight[100:] = 0
    # The preprocessing sees all trees, weights or not.
    X = spectral()[:-1].fit_transform(TREES)
    parts = (
        [(np.r_[0:60, 100:120], np.arange(60, 100))],
        [(np.arange(60), np.arange(60, 100))],
    )
    one, two = (
        LatentStateSearchCV(SpectralLPCFG(2), **{**SETTINGS, "cv": cv}) for cv in parts
    )
    one.fit(X, sample_weight=weight)
    assert one.results_.equals(two.fit(X[:100]).results_)
    assert one.counts_ == two.counts_


@pytest.mark.slow_without_jit
def test_other_learners_are_fitted_anew():
    em = EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None, random_state=0)
    search = searched(make_parser(em), n_nonterminals=1, cv=2).fit(TREES)
    base = cross_val_score(make_parser(clone(em)), TREES, cv=2)
    assert search.base_score_ == pytest.approx(base.mean())
    assert set(search.results_["m"]) == {1, 4}
    X = make_parser(em)[:-1].fit_transform(TREES)
    assert isinstance(make_family(em, X, None, 4), RefitFamily)


@pytest.mark.slow_without_jit
def test_a_learner_alone(family):
    X, _ = family
    search = LatentStateSearchCV(SpectralLPCFG(2), **SETTINGS).fit(X)
    assert isinstance(search.best_estimator_, SpectralLPCFG)
    assert search.best_estimator_.m == search.m_
    assert 0.5 < search.score(X) <= 1
    other = LatentStateSearchCV(SpectralLPCFG(2), **SETTINGS, scoring=by_numbers)
    assert other.fit(X).m_["NP"] == 4


def by_numbers(learner, X):
    return float(learner.m_["NP"])


@pytest.mark.slow_without_jit
def test_the_base_may_be_a_rule():
    parser = spectral("singular_values", m_max=3, state_rule="ramp")
    search = searched(parser, n_nonterminals=1).fit(TREES)
    assert search.base_m_ == clone(parser).fit(TREES)[-1].m_


def test_unpruned_charts_are_not_shared():
    trees = TREES[TREES.lengths < 9]
    few = {"n_nonterminals": 1, "candidates": (1, 2), "cv": 2}
    full = searched(spectral(prune=None), **few).fit(trees)
    expected = cross_val_score(spectral(prune=None), trees, cv=2)
    assert full.base_score_ == pytest.approx(expected.mean())


@pytest.mark.slow_without_jit
def test_folds_may_lack_a_nonterminal():
    parser = spectral()
    fold = Fold(parser, TREES[:60], TREES[60:], None, 4, None)
    assert fold.score({"nowhere": 3}) == fold.score({})


@pytest.mark.slow_without_jit
def test_manners(tmp_path):
    search = searched(n_nonterminals=1)
    assert search.get_params()["estimator__learner__m"] == 2
    assert clone(search).get_params().keys() == search.get_params().keys()
    search.set_params(estimator__learner__m=3).fit(TREES)
    assert search.base_m_["NP"] == 3
    assert search.predict(TREES[:5]) == search.best_estimator_.predict(TREES[:5])
    assert not hasattr(searched(make_parser(SpectralLPCFG(2))), "no_such_method")
    save(search, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(search))):
        assert again.predict(TREES[:5]) == search.predict(TREES[:5])
        assert again.m_ == search.m_
        assert again.results_.equals(search.results_)


@pytest.mark.slow_without_jit
def test_progress_is_reported(capsys):
    searched(n_nonterminals=1, verbose=1, refit=False).fit(TREES)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "candidates for NP" in lines[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": (0, 2)}, "different whole numbers"),
        ({"candidates": (2, 2)}, "different whole numbers"),
        ({"candidates": ()}, "different whole numbers"),
        ({"candidates": (1.5,)}, "different whole numbers"),
        ({"n_nonterminals": 0}, "n_nonterminals"),
        ({"beam_width": 0}, "beam_width"),
        ({"margin": -1.0}, "margin"),
        ({"scoring": "f1"}, "scoring"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        searched(**settings).fit(TREES)


def test_learners_without_states_are_refused():
    with pytest.raises(ValueError, match="PCFG does not have"):
        searched(make_parser(PCFG())).fit(TREES)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(name, check, id=name)
        for name, check in tree_checks(
            LatentStateSearchCV(
                spectral(), candidates=(1, 2), n_nonterminals=1, cv=KFold(2)
            ),
            TREES[:30],
            # Preprocessing knows no weights, and copies fall into several folds.
            skip=(
                "check_parameters_default_constructible",
                "check_sample_weight_is_repetition",
            ),
        )
    ],
)
def test_common_checks(name, check):
    check()
