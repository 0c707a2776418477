import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
)

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    LPCFG,
    PCFG,
    CPCompressor,
    MarginEMPCFG,
    PivotLPCFG,
    Tree,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.inspection import (
    compare,
    describe_state,
    results_table,
    state_table,
    tree_diff,
)
from lpcfg_sk.treebank import delexicalize

pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)
GRAMMAR = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
SENTENCES = [["a", "c"], ["a", "a", "c"], ["c"], ["b", "c"]] * 4
LATENT = LPCFG.from_parameters(
    binary={("S", "A", "A"): np.full((1, 2, 2), 0.25)},
    lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
    root={"S": [1.0]},
)


class Constant(BaseEstimator):
    """Scores the same whatever its parameters."""

    def __init__(self, tol=None, max_iter=1, n_init=1, verbose=0):
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.verbose = verbose

    def fit(self, X, y=None):
        return self

    def score(self, X, y=None):
        return 0.0


def test_results_of_every_search():
    base = MarginEMPCFG(GRAMMAR)
    grid = {"s": [1.2, 1.5, 2.0], "rule_order": ["frequency", "grammar"]}
    searches = [
        GridSearchCV(base, grid, cv=2),
        RandomizedSearchCV(base, grid, n_iter=3, cv=2, random_state=0),
        HalvingGridSearchCV(base, grid, cv=2, min_resources=8, random_state=0),
    ]
    for search in searches:
        table = results_table(search.fit(SENTENCES))
        assert len(table) == len(search.cv_results_["params"])
        assert table["rank"].is_monotonic_increasing
        assert {"s", "rule_order", "mean_score", "std_score"} <= set(table.columns)
    assert "iteration" in table.columns


def test_only_searches_have_results():
    with pytest.raises(TypeError, match=r"fitted search.*GridSearchCV, got Parser"):
        results_table(make_parser(PCFG()).fit(load_toy(10)))
    with pytest.raises(NotFittedError, match="GridSearchCV"):
        results_table(GridSearchCV(MarginEMPCFG(GRAMMAR), {"s": [1.0]}))


@pytest.mark.slow_without_jit
def test_names_are_short_where_they_can_be():
    parser = make_parser(PCFG())
    search = GridSearchCV(
        parser, {"binarize__horizontal": [0, 1], "learner__prune": [3e-4]}, cv=2
    ).fit(load_toy(40))
    assert list(results_table(search).columns[:2]) == ["horizontal", "prune"]


@pytest.mark.slow_without_jit
def test_a_parameter_named_rank_keeps_its_column():
    search = GridSearchCV(CPCompressor(max_iter=3), {"rank": [2, 8]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(TreeBinarizer().fit_transform(delexicalize(load_toy(30))))
    table = results_table(search)
    assert sorted(table["rank"]) == [2, 8]
    assert table["rank"].dtype == np.int64
    assert table["rank_test_score"].tolist() == [1, 2]
    assert table.loc[0, "rank"] == search.best_params_["rank"]


def test_parameters_in_a_table_keep_their_values():
    grid = [
        {"tol": [None, 0.5], "max_iter": [3], "n_init": [1, np.int64(2)]},
        {"tol": [1], "max_iter": [3], "verbose": [0]},
    ]
    search = GridSearchCV(Constant(), grid, cv=2).fit(SENTENCES)
    table = results_table(search).sort_index()
    assert table["max_iter"].dtype == np.int64
    values = table["tol"].tolist()
    assert values == [None, 0.5, None, 0.5, 1]
    assert [type(value) for value in values[3:]] == [float, int]
    assert table["n_init"].tolist()[:4] == [1, 1, 2, 2]
    assert table["n_init"].tolist()[4] is pd.NA
    assert table["verbose"].tolist() == [pd.NA] * 4 + [0]


def test_several_scores():
    def length(estimator, X, y=None):
        return float(len(X))

    search = GridSearchCV(
        MarginEMPCFG(GRAMMAR),
        {"s": [1.2, 1.5]},
        cv=2,
        scoring={"length": length, "other": length},
        refit="other",
    ).fit(SENTENCES)
    table = results_table(search)
    assert {"mean_score_length", "mean_score_other", "rank_other"} <= set(table.columns)


@pytest.mark.slow_without_jit
def test_compare_gives_one_row_a_parser():
    trees = load_toy(40)
    fixed = {"max_iter": 3, "validation_fraction": None, "tol": None}
    parsers = {
        "PCFG": make_parser(PCFG()),
        "EM": make_parser(EMLPCFG(2, random_state=0, **fixed)),
    }
    table = compare(parsers, trees, cv=2)
    assert table.index.tolist() == ["PCFG", "EM"]
    assert ((table["low"] <= table["f1"]) & (table["f1"] <= table["high"])).all()
    assert np.isnan(table.loc["PCFG", "p_value"])
    assert 0 <= table.loc["EM", "p_value"] <= 1
    assert (table["perplexity"] > 1).all()
    assert table.loc["EM", "parameters"] > table.loc["PCFG", "parameters"]
    assert table.loc["EM", "iterations"] == 3
    held = compare(parsers, trees[:30], test=trees[30:])
    assert held["f1"].notna().all()
    assert (table["parse_time"] > 0).all()
    assert "PCFG" in table.to_html()
    assert max(map(len, table.to_string().splitlines())) < 140


@pytest.mark.slow_without_jit
def test_tables_become_latex_and_markdown():
    pytest.importorskip("jinja2")
    pytest.importorskip("tabulate")
    table = compare({"PCFG": make_parser(PCFG())}, load_toy(20), cv=2)
    assert table.to_markdown().count("|") > 20
    assert "\\toprule" in table.to_latex()


def test_describe_state_ranks_expansions():
    table = describe_state(LATENT, "A", 1)
    assert table["expansion"].tolist() == ["y", "x"]
    assert table["lift"].tolist() == pytest.approx([2.0, 0.4])
    assert describe_state(LATENT, "A", 0)["expansion"].tolist() == ["x"]
    assert describe_state(LATENT, "S", 0)["kind"].tolist() == ["rule"]
    with pytest.raises(ValueError, match="no nonterminal 'B'"):
        describe_state(LATENT, "B", 0)
    with pytest.raises(ValueError, match="states 0 to 1, got 2"):
        describe_state(LATENT, "A", 2)
    turn = {"A": np.array([[1.0, -2.0], [0.0, 1.0]])}
    with pytest.raises(ValueError, match="negative parameters"):
        describe_state(LATENT.conjugate(turn), "A", 0)


def test_states_of_grammar_learner_and_pipeline():
    treebank = load_toy(80)
    parser = make_parser(PivotLPCFG(2)).fit(treebank)
    learner = parser[-1]
    pd.testing.assert_frame_equal(state_table(parser), state_table(learner))
    table = describe_state(parser, "NP", 0, top=3)
    pd.testing.assert_frame_equal(
        table, learner.grammar_.describe_state("NP", 0, top=3)
    )
    assert len(table) == 3
    states = state_table(parser).set_index(["nonterminal", "state"])
    assert "pivot" not in state_table(learner.grammar_)
    split = next(a for a, m in learner.m_.items() if m == 2)
    assert states.loc[(split, 1), "pivot"] == learner.pivots_[split][1]
    assert states.loc[("NP", 0), "rules"]
    assert states.loc[("DT", 0), "words"]
    assert not states.loc[("DT", 0), "rules"]


def test_state_table_has_a_row_a_state():
    table = state_table(LATENT)
    assert table["words"].tolist() == ["x", "y, x", ""]
    assert table["rules"].tolist() == ["", "", "A A"]
    expected = pd.DataFrame(
        {"nonterminal": ["A", "A", "S"], "state": [0, 1, 0]},
    )
    pd.testing.assert_frame_equal(table[["nonterminal", "state"]], expected)
    assert table["entropy"].tolist() == pytest.approx([0.0, 0.811278, 0.0], abs=1e-6)


def test_tree_diff():
    gold = Tree.from_string("(S (NP (N a)) (VP (V b) (PP (P c) (N d))))")
    bad = Tree.from_string("(S (NP (N a)) (VP (V b) (NP (P c) (N d))))")
    assert tree_diff(gold, gold) == "4 right, 0 wrong, 0 missed"
    text = tree_diff(gold, bad).splitlines()
    assert text[0] == "3 right, 1 wrong, 1 missed"
    assert set(text[1:]) == {"- NP: c d", "+ PP: c d"}
    assert "\033[31m- NP" in tree_diff(gold, bad, format="ansi")
    assert "color:#cf222e" in tree_diff(gold, bad, format="html")
    with pytest.raises(ValueError, match="different words"):
        tree_diff(gold, Tree.from_string("(S (N a))"))
    with pytest.raises(ValueError, match="format"):
        tree_diff(gold, bad, format="pdf")
