import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import EMLPCFG, PCFG, Treebank, VotingParser, make_ensemble, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.testing import tree_checks
from tests.tolerances import SUM

# A grammar of 120 trees does not parse every sentence.
pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)

FIXED = {"max_iter": 3, "validation_fraction": None, "tol": None}
TREES = load_toy(160)
TRAIN, TEST = TREES[:120], TREES[120:]


def members():
    return [
        ("right", make_parser(PCFG())),
        ("em", make_parser(EMLPCFG(2, random_state=0, **FIXED))),
        ("left", make_parser(PCFG(), direction="left", horizontal=1)),
    ]


@pytest.fixture(scope="module")
def voting():
    return VotingParser(members()).fit(TRAIN)


@pytest.mark.slow_without_jit
def test_one_member_alone_is_its_own_minimum_risk_tree():
    member = make_parser(PCFG(decoder="mbr")).fit(TRAIN)
    alone = VotingParser([("only", make_parser(PCFG()))]).fit(TRAIN)
    assert alone.predict(TEST) == member.predict(TEST)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("keep", [0, 1, 2])
def test_weights_of_one_and_zero_reduce_to_a_member(voting, keep):
    weights = [0.0, 0.0, 0.0]
    weights[keep] = 1.0
    voting = clone(voting).set_params(weights=weights).fit(TRAIN)
    name, member = members()[keep]
    member.set_params(learner__decoder="mbr").fit(TRAIN)
    assert voting.predict(TEST) == member.predict(TEST)
    assert voting.named_estimators_[name] is voting.estimators_[keep]


def test_marginals_are_the_weighted_mean(voting):
    weights = np.array([0.5, 0.3, 0.2])
    weighted = clone(voting).set_params(weights=weights * 7).fit(TRAIN)
    X = TEST[:5]
    parts = [m[-1].span_marginals(m[:-1].transform(X)) for m in weighted.estimators_]
    for row, frame in enumerate(weighted.span_marginals(X)):
        expected = {}
        for weight, part in zip(weights, parts, strict=True):
            for r in part[row].itertuples():
                key = (r.label, r.start, r.end, r.tag)
                expected[key] = expected.get(key, 0.0) + weight * r.marginal
        found = {
            (r.label, r.start, r.end, r.tag): r.marginal for r in frame.itertuples()
        }
        for key, value in expected.items():
            assert found.get(key, 0.0) == pytest.approx(value, abs=SUM)
        tags = frame[frame["tag"]].groupby("start")["marginal"].sum()
        np.testing.assert_allclose(tags, 1.0, rtol=SUM)


def test_members_share_preprocessing_and_coarse_charts(voting):
    right, em, left = voting.estimators_
    assert right.named_steps["binarize"] is em.named_steps["binarize"]
    assert right.named_steps["binarize"] is not left.named_steps["binarize"]
    from lpcfg_sk.ensemble._members import group_members

    assert [g.numbers for g in group_members(voting.estimators_)] == [[0, 1], [2]]


@pytest.mark.slow_without_jit
def test_every_tree_is_well_formed(voting):
    predicted = voting.predict(TEST)
    assert predicted.sentences() == TEST.sentences()
    assert not predicted.binarized
    roots = {tree.label for tree in predicted}
    assert roots <= {tree.label for tree in TRAIN}
    assert (predicted.label >= 0).all()


@pytest.mark.slow_without_jit
def test_a_higher_penalty_gives_fewer_brackets(voting):
    sizes = [
        clone(voting).set_params(bracket_penalty=p).fit(TRAIN).predict(TEST).n_nodes
        for p in (0.05, 0.43, 0.95)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.slow_without_jit
def test_drop_and_frozen_members(voting):
    frozen = make_parser(PCFG()).fit(TRAIN)
    mixed = VotingParser(
        [
            ("kept", FrozenEstimator(frozen)),
            ("gone", "drop"),
            ("left", make_parser(PCFG(), direction="left", horizontal=1)),
        ],
        weights=[1, 5, 1],
    ).fit(TRAIN)
    assert mixed.estimators_[0] is frozen
    assert len(mixed.estimators_) == 2
    plain = clone(voting).set_params(em="drop").fit(TRAIN)
    assert plain.predict(TEST) == mixed.predict(TEST)


def test_parameters_reach_the_members(voting):
    copied = clone(voting).set_params(em__learner__m=3, right__binarize__horizontal=1)
    assert dict(copied.estimators)["em"]["learner"].m == 3
    assert copied.get_params()["right__binarize__horizontal"] == 1


@pytest.mark.slow_without_jit
def test_jobs_and_pickles_change_nothing(voting):
    other = clone(voting).set_params(n_jobs=2).fit(TRAIN)
    again = pickle.loads(pickle.dumps(voting))
    expected = voting.predict(TEST)
    assert other.predict(TEST) == expected == again.predict(TEST)
    for one, two in zip(
        voting.span_marginals(TEST[:3]), other.span_marginals(TEST[:3]), strict=True
    ):
        np.testing.assert_array_equal(one["marginal"], two["marginal"])


@pytest.mark.slow_without_jit
def test_search_over_weights_and_penalty():
    search = GridSearchCV(
        VotingParser(members()[::2]),
        {"weights": [None, [1, 0]], "bracket_penalty": [0.3, 0.43]},
        cv=2,
    ).fit(TRAIN)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("estimators", "weights", "message"),
    [
        ([], None, "at least one"),
        ([("a", "drop")], None, "dropped"),
        ([("a", 3)], None, "member 'a' is no parser"),
        ([make_parser(PCFG())], None, "member 0 is Parser"),
        ([("a", make_parser(PCFG())), "drop"], None, "member 1 is str"),
        ([("a__b", make_parser(PCFG()))], None, "__"),
        ([("a", make_parser(PCFG()))] * 2, None, "not unique"),
        ([("a", make_parser(PCFG()))], [1, 2], "one weight"),
        ([("a", make_parser(PCFG()))], [-1], "not negative"),
        ([("a", make_parser(PCFG()))], [0], "weight zero"),
    ],
)
def test_bad_members_are_refused(estimators, weights, message):
    with pytest.raises((ValueError, TypeError), match=message):
        VotingParser(estimators, weights=weights).fit(TRAIN)


def test_changes_after_fit_are_refused(voting):
    with pytest.raises(ValueError, match="changed after fit"):
        copy.deepcopy(voting).set_params(em="drop").predict(TEST)
    with pytest.raises(ValueError, match="not negative"):
        copy.deepcopy(voting).set_params(weights=[1, 1, -1]).predict(TEST)


def test_unknown_words_and_one_word(voting):
    X = Treebank([["zzz", "qqq", "xxx"], ["zzz"]])
    assert voting.predict(X).sentences() == X.sentences()


def test_presets():
    accurate, fast = make_ensemble(), make_ensemble("fast", rarewords__min_count=2)
    assert len(accurate.teacher.estimators) == 12
    assert len(fast.teacher.estimators) == 4
    assert dict(fast.teacher.estimators)["left1-em"]["rarewords"].min_count == 2
    best = make_ensemble("best", unlabeled_weight=0.7, vertical=2)
    members = dict(best.student.estimators)
    assert members["left1-pivot"]["learner"].init.m == 24
    assert members["left1-pivot"]["binarize"].vertical == 2
    assert dict(best.teacher.estimators)["left1-pivot"]["learner"].init.m == 16
    assert best.unlabeled_weight == 0.7
    with pytest.raises(ValueError, match="preset"):
        make_ensemble("huge")


def test_parameters_of_a_step_go_to_the_members_that_have_it():
    members = dict(make_ensemble(inside__min_count=2, vertical=2).teacher.estimators)
    assert members["left1-spectral"]["inside"].min_count == 2
    assert members["left1-spectral"]["outside"].min_count == 1
    assert members["left1-pivot"]["binarize"].vertical == 2
    with pytest.raises(TypeError, match="'inside__counts' is no parameter"):
        make_ensemble("fast", inside__counts=2)
    with pytest.raises(TypeError, match="rarewords__min_count, inside__min_count"):
        make_ensemble(min_count=2)


@pytest.mark.slow_without_jit
def test_presets_learn_from_trees_and_sentences():
    X = [*TRAIN, *TEST.sentences()]
    parser = make_ensemble("fast").set_params(teacher__estimators=members()[::2])
    alone = clone(parser).fit(TRAIN)
    assert alone.predict(TEST) == VotingParser(members()[::2]).fit(TRAIN).predict(TEST)
    both = parser.fit(X)
    assert sum(both.n_automatic_ + both.n_failed_) == len(TEST)
    assert len(both.student_.estimators_) == 2


@pytest.mark.parametrize("preset", ["accurate", "fast"])
def test_seeds_of_presets(preset):
    def seeds(random_state):
        made = make_ensemble(preset, random_state=random_state)
        return [parser[-1].random_state for _, parser in made.teacher.estimators]

    assert set(seeds(None)) == {None}
    assert max(seeds(3)) - 3 == len(set(seeds(3))) - 1
    assert seeds(np.random.RandomState(1)) == seeds(np.random.RandomState(1))
    assert len(set(seeds(np.random.RandomState(1)))) == len(set(seeds(3)))


CHECKS = list(
    tree_checks(
        VotingParser(members()[::2]),
        TRAIN[:24],
        skip=["check_parameters_default_constructible"],
    )
)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("check", [c for _, c in CHECKS], ids=[n for n, _ in CHECKS])
def test_common_checks(check):
    check()
