import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline

import lpcfg_sk
from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    SelfTrainingParser,
    ShardedTreebank,
    SpectralLPCFG,
    TreeBinarizer,
    VotingParser,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.semi_supervised._automatic_trees import mean_bracket_posteriors
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import concatenate

# A grammar of a few trees does not parse every sentence.
pytestmark = [
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.slow_without_jit,
]

TREES = load_toy(200)
GOLD, RAW, TEST = TREES[:80], TREES[80:160].unparsed(), TREES[160:]
MIXED = concatenate([GOLD, RAW])
TEACHER = make_parser(PCFG(), horizontal=1)


def frame_of(parser):
    return parser.student_[-1].grammar_.to_frame()


def automatic(weight=0.5):
    """The student, made by hand."""
    teacher = clone(TEACHER).fit(GOLD)
    trees, failed = teacher[-1]._parse(teacher[:-1].transform(RAW))
    good = np.setdiff1d(np.arange(len(RAW)), failed)
    both = concatenate([GOLD, trees[good]])
    weights = np.append(np.ones(len(GOLD)), np.full(len(good), weight))
    return clone(TEACHER).fit(both, learner__sample_weight=weights), good


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_student_learns_from_trees_and_automatic_trees(weight):
    by_hand, good = automatic(weight)
    parser = SelfTrainingParser(TEACHER, unlabeled_weight=weight).fit(MIXED)
    assert frame_of(parser).equals(by_hand[-1].grammar_.to_frame())
    assert parser.n_automatic_ == [len(good)]
    assert parser.n_failed_ == [len(RAW) - len(good)]
    assert parser.predict(TEST) == by_hand.predict(TEST)


def test_the_order_of_trees_and_sentences_does_not_matter():
    order = np.random.default_rng(0).permutation(len(MIXED))
    one = SelfTrainingParser(TEACHER).fit(MIXED)
    two = SelfTrainingParser(TEACHER).fit(MIXED[order])
    assert frame_of(one).equals(frame_of(two))


def test_rows_of_all_kinds():
    rows = [str(GOLD[0]), *GOLD[1:].tolist(), *RAW.sentences()]
    one = SelfTrainingParser(TEACHER).fit(MIXED)
    two = SelfTrainingParser(TEACHER).fit(rows)
    assert frame_of(one).equals(frame_of(two))


@pytest.mark.parametrize("weight", [0.5, 0.0])
def test_without_sentences_the_parser_is_the_teacher(weight):
    X = MIXED if weight == 0 else GOLD
    parser = SelfTrainingParser(TEACHER, unlabeled_weight=weight).fit(X)
    plain = clone(TEACHER).fit(GOLD)
    assert frame_of(parser).equals(plain[-1].grammar_.to_frame())
    assert parser.n_automatic_ == []


def test_without_sentences_a_student_learns_from_the_trees():
    student = make_parser(PCFG(), direction="left")
    parser = SelfTrainingParser(TEACHER, student).fit(GOLD)
    plain = clone(student).fit(GOLD)
    assert frame_of(parser).equals(plain[-1].grammar_.to_frame())


def test_a_frozen_teacher_is_not_fitted_again():
    teacher = make_parser(PCFG(), direction="left").fit(GOLD)
    before = teacher[-1].grammar_
    student = make_parser(PCFG())
    parser = SelfTrainingParser(FrozenEstimator(teacher), student).fit(RAW)
    assert teacher[-1].grammar_ is before
    assert sum(parser.n_automatic_ + parser.n_failed_) == len(RAW)
    alone = SelfTrainingParser(FrozenEstimator(teacher)).fit(GOLD[:9])
    assert alone.student_ is teacher
    again = SelfTrainingParser(FrozenEstimator(teacher)).fit(MIXED)
    assert again.student_ is not teacher
    assert again.student_["binarize"].direction == "left"


def test_a_second_round_parses_with_the_first_student():
    twice = SelfTrainingParser(TEACHER, n_rounds=2).fit(MIXED)
    first = SelfTrainingParser(TEACHER).fit(MIXED)
    second = SelfTrainingParser(FrozenEstimator(first.student_)).fit(MIXED)
    assert frame_of(twice).equals(frame_of(second))
    assert len(twice.n_automatic_) == 2


def test_weights_of_rows():
    # RareWords counts rows, whatever their weights.
    parser = SelfTrainingParser(Pipeline([("b", TreeBinarizer()), ("l", PCFG())]))
    weights = np.r_[np.full(80, 2), np.zeros(60), np.full(20, 3)].astype(int)
    weighted = clone(parser).fit(MIXED, sample_weight=weights)
    assert sum(weighted.n_automatic_ + weighted.n_failed_) == 20
    repeated = clone(parser).fit(MIXED[np.repeat(np.arange(len(MIXED)), weights)])
    one, two = (p.score_samples(TEST[:20]) for p in (weighted, repeated))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_confidence_is_the_mean_posterior_of_brackets():
    teacher = clone(TEACHER).fit(GOLD)
    trees = teacher.predict(TEST[:10])
    frames = teacher[-1].span_marginals(teacher[:-1].transform(TEST[:10]))
    found = mean_bracket_posteriors(teacher, trees)
    for row, frame in enumerate(frames):
        posterior = {
            (r.label, r.start, r.end): r.marginal
            for r in frame.itertuples()
            if not r.tag
        }
        nodes = trees[[row]].to_frame()
        inner = nodes[nodes["token"].isna() | (nodes["stop"] - nodes["start"] > 1)]
        values = [
            posterior.get((r.label, r.start, r.stop), 0.0) for r in inner.itertuples()
        ]
        # The quick marginals are right up to about the threshold of the pruning.
        assert found[row] == pytest.approx(np.mean(values), abs=5e-3)


def test_unsure_trees_are_left_out():
    loose = SelfTrainingParser(TEACHER, min_confidence=0.0).fit(MIXED)
    strict = SelfTrainingParser(TEACHER, min_confidence=0.98).fit(MIXED)
    assert loose.n_unsure_ == [0]
    assert 0 < strict.n_unsure_[0] < len(RAW)
    assert strict.n_automatic_[0] == loose.n_automatic_[0] - strict.n_unsure_[0]
    vote = VotingParser([("one", TEACHER), ("two", make_parser(PCFG()))])
    assert SelfTrainingParser(vote, min_confidence=0.98).fit(MIXED).n_unsure_[0] > 0


@pytest.mark.filterwarnings("error")
def test_jobs_do_not_change_a_bit_and_progress_is_reported(capsys):
    X = concatenate([load_toy(300), RAW])
    one = SelfTrainingParser(TEACHER, min_confidence=0.5, n_jobs=1).fit(X)
    two = SelfTrainingParser(TEACHER, min_confidence=0.5, n_jobs=2, verbose=1).fit(X)
    assert frame_of(one).equals(frame_of(two))
    assert f"round 1 of 1: parsed {len(RAW)} of {len(RAW)}" in capsys.readouterr().err


def test_shards_give_the_same_student_and_leave_no_files(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    order = np.random.default_rng(1).permutation(len(MIXED))
    for number, rows in enumerate(np.array_split(order, 3)):
        MIXED[rows].save(tmp_path / f"{number}.tb")
    X = ShardedTreebank(tmp_path)
    one = SelfTrainingParser(TEACHER).fit(X)
    two = SelfTrainingParser(TEACHER).fit(MIXED[order])
    assert frame_of(one).equals(frame_of(two))
    vote = VotingParser([("one", TEACHER), ("two", make_parser(PCFG()))])
    by_vote = [SelfTrainingParser(vote).fit(data) for data in (X, MIXED[order])]
    assert by_vote[0].predict(TEST) == by_vote[1].predict(TEST)
    assert not list((tmp_path / "temporary").iterdir())


def test_grid_search_over_the_student_and_the_weight():
    fixed = {"max_iter": 2, "tol": None, "validation_fraction": None}
    student = make_parser(EMLPCFG(1, random_state=0, **fixed))
    parser = SelfTrainingParser(TEACHER, student)
    search = GridSearchCV(
        parser,
        {"student__learner__m": [1, 2], "unlabeled_weight": [0.0, 0.5]},
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(MIXED)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_.student_[-1].m_
    assert max(best.values()) <= 2


def test_score_ignores_rows_without_trees():
    parser = SelfTrainingParser(TEACHER).fit(MIXED)
    plain = clone(TEACHER).fit(GOLD)
    for model in (parser, plain, parser.student_):
        assert model.score(concatenate([TEST, RAW])) == model.score(TEST)
    weights = np.arange(1.0, 1 + len(TEST) + len(RAW))
    mixed = concatenate([RAW, TEST])
    assert plain[-1].score(plain[:-1].transform(mixed), sample_weight=weights) == plain[
        -1
    ].score(plain[:-1].transform(TEST), sample_weight=weights[len(RAW) :])
    with pytest.raises(ValueError, match="none of these 80 rows has one"):
        parser.score(RAW)


def test_cross_validation_of_trees_and_sentences():
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(
        SelfTrainingParser(TEACHER), MIXED, cv=cv, error_score="raise"
    )
    assert np.isfinite(scores).all()


def test_metadata_routing():
    weights = np.linspace(1.0, 2.0, len(MIXED))
    plain = SelfTrainingParser(TEACHER).fit(MIXED, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        parser = SelfTrainingParser(TEACHER).set_fit_request(sample_weight=True)
        search = GridSearchCV(
            parser.set_score_request(sample_weight=True),
            {"n_rounds": [1]},
            cv=KFold(2, shuffle=True, random_state=0),
            error_score="raise",
        ).fit(MIXED, sample_weight=weights)
    assert frame_of(search.best_estimator_).equals(frame_of(plain))


def test_methods_of_the_last_step_of_a_pipeline():
    vote = SelfTrainingParser(VotingParser([("one", TEACHER)]))
    assert hasattr(vote, "span_marginals") and not hasattr(vote, "parse_kbest")
    parser = SelfTrainingParser(TEACHER).fit(MIXED)
    kbest = parser.parse_kbest(TEST.sentences()[:3], 2)
    assert [tree.words() for tree, _ in kbest[0]] == [TEST[0].words()] * len(kbest[0])
    again = SelfTrainingParser(FrozenEstimator(parser), min_confidence=0.9).fit(MIXED)
    assert again.n_unsure_[0] > 0


def test_saved_pickled_and_shown(tmp_path):
    parser = SelfTrainingParser(TEACHER, make_parser(PCFG())).fit(MIXED)
    lpcfg_sk.save(parser, tmp_path / "model")
    for again in (
        lpcfg_sk.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(parser)),
    ):
        assert again.predict(TEST) == parser.predict(TEST)
        assert again.n_automatic_ == parser.n_automatic_
    html = parser._repr_html_()
    assert "teacher" in html and "student" in html and "TreeBinarizer" in html


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="needs rows with trees to fit its teacher"):
        SelfTrainingParser(TEACHER).fit(RAW)
    with pytest.raises(ValueError, match="unlabeled_weight"):
        SelfTrainingParser(TEACHER, unlabeled_weight=-1).fit(MIXED)
    with pytest.raises(ValueError, match="put the TreeBinarizer into the teacher"):
        SelfTrainingParser(PCFG()).fit(TreeBinarizer().fit_transform(MIXED))
    for learner in (SpectralLPCFG(2), VotingParser([("one", TEACHER)])):
        with pytest.raises(ValueError, match="SelfTrainingParser"):
            learner.fit(MIXED)


CHECKS = list(
    tree_checks(
        SelfTrainingParser(make_parser(PCFG(), min_count=1)),
        TREES[:24],
        skip=["check_parameters_default_constructible"],
    )
)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("check", [c for _, c in CHECKS], ids=[n for n, _ in CHECKS])
def test_common_checks(check):
    check()
