from collections import Counter

import numpy as np
import pandas as pd
import pytest

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    AggregateMarkovLM,
    LatentStateSearchCV,
    MarginEMPCFG,
    SpectralLPCFG,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import (
    ChartDisplay,
    ComparisonDisplay,
    ConvergenceDisplay,
    LatentStateDisplay,
    SingularValueDisplay,
    StateCurveDisplay,
    StateNumbersDisplay,
    TailFitDisplay,
    state_numbers,
)

plt = pytest.importorskip("matplotlib.pyplot")

TREES = load_toy(24)
BINARY = TreeBinarizer().fit_transform(TREES)
GRAMMAR = CFG.from_string("S -> 'a' S | 'b' S | 'c'")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def em():
    return make_parser(
        EMLPCFG(3, max_iter=3, tol=None, validation_fraction=None, random_state=0)
    ).fit(TREES)


def test_singular_values_of_a_pipeline():
    spectral = make_parser(SpectralLPCFG(4, random_state=0)).fit(TREES)
    display = SingularValueDisplay.from_estimator(spectral, most=3).plot()
    assert len(display.lines_) == 3
    assert display.ax_.get_yscale() == "log"
    # Those that occur most often.
    counts = spectral[-1].counts_
    chosen = [counts[a] for a in display.singular_values]
    several = [a for a, v in spectral[-1].singular_values_.items() if len(v) > 1]
    assert chosen == sorted((counts[a] for a in several), reverse=True)[:3]
    one = SingularValueDisplay.from_estimator(spectral, nonterminals=["NP"])
    assert list(one.singular_values) == ["NP"]
    with pytest.raises(ValueError, match="no singular values for ZZ"):
        SingularValueDisplay.from_estimator(spectral, nonterminals=["ZZ"])
    with pytest.raises(ValueError, match="PCFG does not have"):
        SingularValueDisplay.from_estimator(make_parser(PCFG()).fit(TREES))


def test_numbers_of_states():
    parser = make_parser(SpectralLPCFG("singular_values", m_max=4))
    table = state_numbers(parser.fit(TREES))
    learner = parser[-1]
    assert dict(zip(table["nonterminal"], table["m"], strict=True)) == learner.m_
    assert table["count"].is_monotonic_decreasing
    display = StateNumbersDisplay.from_estimator(parser, most=3)
    assert [bar.get_width() for bar in display.bars_] == table["m"][:3].tolist()
    assert display.line_ is None
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list(
        table["nonterminal"][:3]
    )
    with pytest.raises(ValueError, match="EMLPCFG does not have"):
        state_numbers(EMLPCFG(2, max_iter=1, tol=None).fit(BINARY))
    with pytest.raises(ValueError, match="no columns"):
        StateNumbersDisplay(table[["count"]])


def test_numbers_of_states_of_a_search():
    search = LatentStateSearchCV(
        make_parser(SpectralLPCFG(2)), candidates=(1, 2), n_nonterminals=2, cv=2
    ).fit(TREES)
    table = state_numbers(search)
    assert table["nonterminal"].tolist() == list(search.counts_)
    assert table["base"].tolist() == [2, 2]
    display = StateNumbersDisplay.from_estimator(search)
    assert display.line_.get_xdata().tolist() == [2, 2]


def test_convergence_of_em_and_of_margins(em):
    display = ConvergenceDisplay.from_estimator(em).plot()
    assert display.name == "mean log likelihood"
    assert len(display.line_.get_xdata()) == 3
    model = MarginEMPCFG(GRAMMAR).fit([["a", "c"], ["c"]])
    display = ConvergenceDisplay.from_estimator(model)
    assert display.name == "log-loss"
    # The last iteration is no choice.
    assert display.chosen is None
    chosen = ConvergenceDisplay([3.0, 2.0, 1.9], "log-loss", 1).plot()
    assert chosen.ax_.get_legend() is not None
    with pytest.raises(ValueError, match="lower_bounds_ or log_losses_, which PCFG"):
        ConvergenceDisplay.from_estimator(make_parser(PCFG()).fit(TREES))


def test_iterations_after_the_chosen_one_are_marked():
    rng = np.random.default_rng(0)
    X = [[f"w{i}" for i in rng.integers(12, size=9)] for _ in range(30)]
    model = AggregateMarkovLM(6, prior=None, unigram_weight=0.1, random_state=0)
    model.fit(X[:20], X_val=X[20:])
    display = ConvergenceDisplay.from_estimator(model)
    assert display.chosen == model.n_iter_ < len(model.lower_bounds_) - 1


def test_state_curves_in_the_order_of_numbers():
    table = pd.DataFrame(
        {
            "m": [2, 3, 2, 3],
            "prune": [20.0, 20.0, 5.0, 5.0],
            "mean_score": [0.6, 0.7, 0.65, 0.72],
            "std_score": 0.01,
        }
    )
    ax = StateCurveDisplay(table).plot().ax_
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["5.0", "20.0"]
    assert all(tick == round(tick) for tick in ax.get_xticks())
    half = StateCurveDisplay(table.assign(m=table["m"] / 10)).plot().ax_
    assert any(tick != round(tick) for tick in half.get_xticks())
    _, ax = plt.subplots()
    ax.set_xscale("log", base=2)
    assert StateCurveDisplay(table).plot(ax).ax_.get_xscale() == "log"


def test_state_curves():
    table = pd.DataFrame(
        {
            "m": [2, 4, 2, 4],
            "horizontal": [0, 0, 1, 1],
            "mean_score": [0.6, 0.7, 0.65, 0.72],
            "std_score": 0.01,
            "rank": [4, 2, 3, 1],
        }
    )
    display = StateCurveDisplay(table).plot()
    assert len(display.containers_) == 2
    assert len(StateCurveDisplay(table[:2]).plot().containers_) == 1
    legend = display.ax_.get_legend()
    assert legend.get_title().get_text() == "horizontal"
    named = table[:2].assign(m=["few", "many"])
    ticks = StateCurveDisplay(named).plot().ax_.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["few", "many"]
    mixed = table[:2].assign(m=["cohen2013", ["rule"]])
    ticks = StateCurveDisplay(mixed).plot().ax_.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["['rule']", "cohen2013"]
    with pytest.raises(ValueError, match="no columns"):
        StateCurveDisplay(table, x="s")
    # A parameter may be called as a column of the results.
    ranks = table.rename(columns={"rank": "rank_test_score", "m": "rank"})
    ax = StateCurveDisplay(ranks, x="rank").plot().ax_
    assert ax.get_legend().get_title().get_text() == "horizontal"
    ax = StateCurveDisplay(ranks, x="horizontal").plot().ax_
    assert ax.get_legend().get_title().get_text() == "rank"
    mixed = table[:2].assign(m=pd.Series([10, 2.5], dtype=object))
    curve = StateCurveDisplay(mixed).plot().containers_[0]
    assert curve.lines[0].get_xdata().tolist() == [2.5, 10.0]


def test_chart_of_a_sentence(em):
    words = TREES[0].words()
    _, ax = plt.subplots()
    display = ChartDisplay.from_estimator(em, words).plot(ax)
    assert display.ax_ is ax
    heat = display.image_.get_array()
    assert heat.shape == (len(words), len(words))
    assert heat[0, -1] == pytest.approx(1.0, abs=0.05)
    lower = np.tril_indices(len(words), -1)
    assert np.ma.getmaskarray(heat)[lower].all()
    np_only = ChartDisplay.from_estimator(em, words, label="NP").plot()
    assert np_only.image_.get_array().max() <= 1.0 + 1e-9


def test_latent_states(em):
    display = LatentStateDisplay.from_estimator(em, "NP").plot()
    assert len(display.bars_) == em[-1].grammar_.m["NP"]
    assert display.ax_.get_title() == "Latent states of NP"
    named = LatentStateDisplay("NP", display.states, ["p", "q", "r"]).plot()
    assert "state 1, pivot q" in [text.get_text() for text in named.ax_.texts]
    with pytest.raises(ValueError, match="no nonterminal 'ZZ'"):
        LatentStateDisplay.from_estimator(em, "ZZ")
    # By default the states of the nonterminal that has the most rules.
    grammar = em[-1].grammar_
    n_rules = Counter(a for a, _, _ in grammar.binary if grammar.m[a] > 1)
    chosen = LatentStateDisplay.from_estimator(em).nonterminal
    assert n_rules[chosen] == max(n_rules.values())


def test_chart_of_a_sentence_in_any_form(em):
    tree = load_toy(1)[0]
    forms = (tree, tree.words(), " ".join(tree.words()), [" ".join(tree.words())])
    for sentence in forms:
        display = ChartDisplay.from_estimator(em, sentence)
        assert display.words == tree.words()
        assert display.image_.get_array().max() > 0.5


def test_long_names_of_latent_states_are_wrapped():
    names = ["a rule with a name " * 4, "short"]
    state = pd.DataFrame({"expansion": names, "probability": [0.7, 0.3]})
    display = LatentStateDisplay("NP", [state], ["a long pivot " * 12]).plot()
    (heading,) = display.ax_.texts
    assert max(map(len, heading.get_text().split("\n"))) <= 64
    long, short = (label.get_text() for label in display.ax_.get_yticklabels())
    assert max(map(len, long.split("\n"))) <= 32
    assert short == "short"
    # Every line has its place.
    first, second = display.ax_.get_yticks()
    n_lines = long.count("\n") + 1
    assert second - first == pytest.approx((n_lines + 1) / 2)
    assert first >= heading.get_text().count("\n") + 1


@pytest.mark.slow_without_jit
def test_comparison():
    table = pd.DataFrame(
        {"f1": [80.0, 88.0], "low": [78.0, 86.5], "high": [82.0, 89.0]},
        index=["PCFG", "Spectral"],
    )
    display = ComparisonDisplay(table).plot()
    assert display.container_[0].get_xdata().tolist() == [80.0, 88.0]
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert names == ["PCFG", "Spectral"]
    fitted = ComparisonDisplay.from_estimators({"PCFG": make_parser()}, TREES, cv=2)
    assert fitted.table.index.tolist() == ["PCFG"]


@pytest.mark.parametrize(
    "make",
    [
        lambda em, **where: ConvergenceDisplay.from_estimator(em, **where),
        lambda em, **where: ChartDisplay.from_estimator(
            em, TREES[0].words(), label="NP", **where
        ),
        lambda em, **where: LatentStateDisplay.from_estimator(em, "NP", **where),
        lambda em, **where: TailFitDisplay.from_treebank(load_toy(300), **where),
    ],
    ids=["convergence", "chart", "latent", "tail"],
)
def test_manners_of_scikit_learn(em, make):
    """Made where one says, or in a figure of its own that a second plot replaces."""
    _, ax = plt.subplots()
    display = make(em, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel()
    before = plt.get_fignums()
    alone = make(em)
    assert len(plt.get_fignums()) == len(before) + 1
    assert alone.plot(ax=plt.subplots()[1]) is alone
    assert len(plt.get_fignums()) == len(before) + 1
    assert alone.ax_.figure is alone.figure_
