"""The parser that users meet, beside its parts."""

import builtins
import copy

import joblib
import nltk
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import EMLPCFG, LPCFG, PCFG, WTA, Parser, Treebank, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.treebank import tokenize

TREES = load_toy(80)
WORDS = ["he", "worked", "again", "."]


@pytest.fixture(scope="module")
def parser():
    em = EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None, random_state=0)
    return make_parser(em).fit(TREES)


@pytest.mark.parametrize(
    "method", ["marginals", "span_marginals", "sentence_log_prob", "score_samples"]
)
def test_methods_are_those_of_the_learner_behind_its_preprocessing(parser, method):
    X = TREES[:5]
    seen = parser[:-1].transform(X)
    for own, expected in zip(
        getattr(parser, method)(X), getattr(parser[-1], method)(seen), strict=True
    ):
        if isinstance(own, pd.DataFrame):
            pd.testing.assert_frame_equal(own, expected)
        else:
            assert own == expected


def test_other_methods(parser):
    seen = parser[:-1].transform([WORDS])
    assert parser.parse_kbest([WORDS], 3) == parser[-1].parse_kbest(seen, 3)
    assert parser.sample(4, 1) == parser[-1].sample(4, 1)
    trees = TREES[:6]
    np.testing.assert_array_equal(
        parser.mixture_log_prob(trees, weight=0.1),
        parser[-1].mixture_log_prob(parser[:-1].transform(trees), weight=0.1),
    )
    bare = Parser([("learner", PCFG())]).fit(Treebank(["(S (A a) (B b))"]))
    assert len(bare.parse_kbest([["a", "b"]], 2)[0]) == 1


def test_a_parser_is_a_pipeline(tmp_path):
    parser = make_parser(memory=str(tmp_path), min_count=1)
    search = GridSearchCV(parser, {"learner__decoder": ["mbr", "viterbi"]}, cv=2)
    best = search.fit(TREES).best_estimator_
    assert type(best) is type(clone(best)) is Parser
    assert len(best.parse_kbest([WORDS], 2)[0]) > 0
    assert not hasattr(best[:-1], "parse_kbest")
    with config_context(enable_metadata_routing=True):
        assert best.fit(TREES).predict([WORDS]).sentences() == [WORDS]


def test_the_report_of_rows_is_not_part_of_the_model(parser):
    before = joblib.hash(parser)
    parser.predict([WORDS, ""])
    assert parser.parse_report_["status"].tolist() == ["parsed", "empty"]
    assert joblib.hash(parser) == before
    assert not hasattr(copy.deepcopy(parser), "parse_report_")


def test_nltk_takes_the_parser(parser):
    wrapped = parser.to_nltk_parser()
    assert isinstance(wrapped, nltk.parse.api.ParserI)
    best = wrapped.parse_one(WORDS)
    assert best == parser.predict([WORDS])[0].to_nltk()
    assert wrapped.parse_all(WORDS, 2)[0].leaves() == WORDS
    assert wrapped.parse_one(["worked"]) is None
    found = [list(trees) for trees in wrapped.parse_sents([[], WORDS])]
    assert found == [[], [best]]


def test_nltk_is_optional(parser, monkeypatch):
    real = builtins.__import__

    def without_nltk(name, *args, **options):
        if name.startswith("nltk"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_nltk)
    for needs_nltk in (parser.to_nltk_parser, lambda: tokenize("a b")):
        with pytest.raises(ImportError, match=r"pip install nltk"):
            needs_nltk()


def test_notebooks_show_data_and_models(parser):
    html = (TREES[:2] + Treebank([WORDS]))._repr_html_()
    assert html.count("<svg") == 3
    assert "sentences without a tree" in html
    assert "#000" not in html
    wide = Treebank([["word"] * 30 + ["<b>"] * 3])._repr_html_()
    assert "&lt;b&gt;" in wide
    assert Treebank([])._repr_html_().startswith("<div>")
    grammar = parser[-1].grammar_
    assert isinstance(grammar, LPCFG)
    assert "<td>2" in grammar._repr_html_() or "2</td>" in grammar._repr_html_()
    assert "states" in WTA.from_pcfg(grammar)._repr_html_()


def test_the_root_of_a_wide_tree_is_at_its_left():
    narrow = TREES[0]._repr_svg_()
    wide = type(TREES[0])("S", [f"word{i}" for i in range(100)])._repr_svg_()

    def root(svg):
        width = float(svg.split('width="')[1].split('"')[0])
        return float(svg.split('<text x="')[1].split('"')[0]) / width

    assert 0.2 < root(narrow) < 0.8
    assert root(wide) < 0.05
