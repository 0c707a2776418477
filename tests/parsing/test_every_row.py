"""Rows that cannot be parsed as asked, warnings about them, and unseen punctuation."""

import copy
import threading
import warnings

import numpy as np
import pytest
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    MarginEMPCFG,
    Treebank,
    VotingParser,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ChartMemoryError, ParseError, ParseFailureWarning
from lpcfg_sk.metrics import f1_score

TREES = load_toy(200)
WORDS = ["he", "worked", "again", "."]
NO_PARSE = ["worked", "he"]


@pytest.fixture(scope="module")
def fitted():
    em = EMLPCFG(4, max_iter=2, tol=None, validation_fraction=None, random_state=0)
    return make_parser(em).fit(TREES)


def statuses(parser, X):
    trees, status = parser.predict(X, return_status=True)
    assert trees.sentences() == Treebank(X).sentences()
    tagged = status["status"].isin(["empty", "skipped"])
    np.testing.assert_array_equal(trees.is_parsed, ~tagged)
    assert (status["reason"] == "").tolist() == (status["status"] == "parsed").tolist()
    return status["status"].tolist()


def test_every_row_has_a_status(fitted):
    X = [[], WORDS, NO_PARSE, [], WORDS]
    expected = fitted.predict([WORDS])[0]
    with pytest.warns(ParseFailureWarning, match=r"1 of 5 .* \(the first is row 2\)"):
        trees = fitted.predict(X)
    assert trees[1] == trees[4] == expected
    assert str(trees[2]).startswith("(S (")
    assert statuses(fitted, X) == ["empty", "parsed", "flat", "empty", "parsed"]


@pytest.mark.slow_without_jit
def test_charts_that_do_not_fit_become_coarser(fitted):
    parser = copy.deepcopy(fitted)
    X = [TREES[i].words() for i in range(40)]
    X.insert(3, WORDS * 80)
    parser.set_params(learner__prune=None, learner__max_memory=300_000)
    found = statuses(parser, X)
    assert found[3] == "flat"
    assert set(found) == {"parsed", "coarser", "flat"}
    trees, _ = parser.predict(X, return_status=True)
    parser.set_params(learner__n_jobs=2)
    assert parser.predict(X, return_status=True)[0] == trees
    # A coarser chart is that of a higher threshold.
    row = found.index("coarser")
    parser.set_params(learner__prune=3e-4, learner__max_memory=2**31)
    assert trees[row] == parser.predict([X[row]])[0]


@pytest.mark.slow_without_jit
def test_rows_are_named_by_their_number_in_the_whole(fitted):
    parser = copy.deepcopy(fitted).set_params(learner__max_memory=300_000)
    X = [WORDS, [], WORDS * 80]
    _, status = parser.predict(X, return_status=True)
    assert "row 2 (320 words)" in status["reason"][2]
    parser.set_params(learner__on_failure="raise")
    with pytest.raises(ChartMemoryError, match=r"row 2 \(320 words\)"):
        parser.predict(X)
    with pytest.raises(ParseError, match="row 1 has no parse under the grammar"):
        parser.predict([WORDS, NO_PARSE])


@pytest.mark.slow_without_jit
def test_long_sentences_show_progress(fitted, capsys):
    parser = copy.deepcopy(fitted).set_params(learner__verbose=1)
    parser.predict([WORDS, WORDS * 60], return_status=True)
    assert "row 1: parsing 240 words" in capsys.readouterr().err


def test_other_answers_of_rows_that_do_not_fit(fitted):
    parser = copy.deepcopy(fitted).set_params(learner__max_memory=200_000)
    X = [WORDS, WORDS * 80, []]
    for method, empty in (
        ("sentence_log_prob", lambda x: x == -np.inf),
        ("marginals", lambda frame: frame.empty),
        ("span_marginals", lambda frame: frame.empty),
        ("parse_kbest", lambda parses: parses == []),
    ):
        with pytest.warns(RuntimeWarning, match="1 of 3 sentences do not fit"):
            answers = getattr(parser, method)(X)
        assert [bool(empty(answer)) for answer in answers] == [False, True, True]
        strict = copy.deepcopy(parser).set_params(learner__on_failure="raise")
        with pytest.raises(ChartMemoryError, match="row 1"):
            getattr(strict, method)(X)


def test_other_parsers_answer_every_row():
    X = [[], WORDS, NO_PARSE]
    vote = VotingParser(
        [("a", make_parser(PCFG())), ("b", make_parser(PCFG(), direction="left"))]
    ).fit(TREES)
    margin = make_parser(MarginEMPCFG()).fit(TREES)
    for model in (vote, margin):
        assert statuses(model, X) == ["empty", "parsed", "flat"]
        assert len(model.span_marginals(X)[0]) == 0
    assert statuses(vote.set_params(on_failure="skip"), X)[2] == "skipped"
    with pytest.raises(ParseError, match="row 2"):
        vote.set_params(on_failure="raise").predict(X)
    for name in "ab":
        vote.named_estimators_[name][-1].max_memory = 100_000
    with pytest.raises(ChartMemoryError, match="row 1"):
        vote.predict([WORDS, WORDS * 40])
    vote.set_params(on_failure="flat")
    assert statuses(vote, [WORDS, WORDS * 40]) == ["parsed", "flat"]
    assert [len(f) > 0 for f in vote.span_marginals([WORDS, []])] == [True, False]
    with pytest.warns(RuntimeWarning, match="on 1 of 2 sentences the charts of some"):
        frames = vote.span_marginals([WORDS, WORDS * 40])
    assert frames[1].empty
    vote.named_estimators_["b"][-1].max_memory = 2**31
    _, status = vote.predict([WORDS, WORDS * 10], return_status=True)
    assert status["status"].tolist() == ["parsed", "parsed"]
    assert status["reason"].str.contains("1 of 2 members").tolist() == [False, True]
    with pytest.warns(ParseFailureWarning, match="some members of the vote only"):
        vote.predict([WORDS * 10])


def test_warnings_point_at_the_line_that_asked(fitted):
    with pytest.warns(ParseFailureWarning) as caught:
        fitted.predict([NO_PARSE])
        Pipeline(fitted.steps).predict([NO_PARSE])
        fitted[-1].predict(fitted[:-1].transform([NO_PARSE]))
    assert [w.filename for w in caught] == [__file__] * 3
    # A thread has no line of a user's own, and must not fail for that.
    done = []
    with pytest.warns(ParseFailureWarning):
        thread = threading.Thread(
            target=lambda: done.append(fitted.predict([NO_PARSE]))
        )
        thread.start()
        thread.join()
    assert len(done) == 1


def test_a_search_warns_once():
    # The same words in an order that no training tree has.
    odd = Treebank(["(S (VBD worked) (PRP he))"] * 9)
    X = TREES[:60] + odd
    search = GridSearchCV(make_parser(), {"learner__decoder": ["mbr", "viterbi"]}, cv=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search.set_params(cv=[(np.arange(60), np.arange(60, 69))] * 3).fit(X)
    failures = [w for w in caught if w.category is ParseFailureWarning]
    assert len(failures) == 1
    assert failures[0].filename == __file__


def test_scorers_of_scikit_learn():
    X = TREES[:60]
    own = cross_val_score(make_parser(min_count=1), X, cv=3)
    made = cross_val_score(
        make_parser(min_count=1), X, X.tolist(), cv=3, scoring=make_scorer(f1_score)
    )
    np.testing.assert_array_equal(made, own)


@pytest.fixture(scope="module")
def penn():
    trees = [
        "(S (NP (PRP he)) (VP (VBD said)) (`` ``) (INTJ (UH hello)) ('' '') (. .))",
        "(S (NP (PRP he)) (VP (VBD left)) (PRN (-LRB- -LRB-) (ADVP (RB early))"
        " (-RRB- -RRB-)) (. .))",
        "(S (NP (PRP he)) (VP (VBD left)) (: --) (ADVP (RB early)) (: ...) (. .))",
        "(S (NP (PRP he)) (VP (VBD did) (RB n't) (VP (VB go))) (. .))",
    ]
    return make_parser(PCFG()).fit(trees * 4)


@pytest.mark.parametrize(
    ("text", "as_penn"),
    [
        ('he said " hello " .', "he said `` hello '' ."),
        ("he said “ hello ” .", "he said `` hello '' ."),
        ("he said ‘ hello ’ .", "he said `` hello '' ."),
        ("he said « hello » .", "he said `` hello '' ."),
        ("he left ( early ) .", "he left -LRB- early -RRB- ."),
        ("he left [ early ] .", "he left -LRB- early -RRB- ."),
        ("he left — early … .", "he left -- early ... ."),
        ("he left – early ... .", "he left -- early ... ."),
        ("he did n’t go .", "he did n't go ."),
    ],
)
def test_any_punctuation_has_the_brackets_of_penn_tokens(penn, text, as_penn):
    tree, expected = penn.predict([text, as_penn])
    assert tree.words() == text.split()
    assert tree.spans() == expected.spans()
    assert tree == type(tree).from_string(str(tree))


def test_marks_that_training_saw_stay():
    trees = ['(S (Q ") (N a) (Q "))', "(S (N a) (Q ''))"] * 4
    words = make_parser(PCFG(), min_count=1).fit(trees)[:-1].transform(['" a ” ``'])
    assert [words.words[i] for i in words.word] == ['"', "a", "''", '"']
