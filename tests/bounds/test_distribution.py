import numpy as np
import pytest

from lpcfg_sk import CFG, Treebank
from lpcfg_sk.bounds import (
    count_derivations,
    distribution_constants,
    tail_fit,
)
from lpcfg_sk.inspection import TailFitDisplay
from lpcfg_sk.treebank import delexicalize
from tests.tolerances import EXACT, ITERATIVE

TREES = [
    "(S (A a) (S b))",
    "(S b)",
    "(S (A a) (S (A a) (S b)))",
    "(S b)",
    "(S (A a) (S b))",
    "(S b)",
]


def geometric(c, alpha, lengths, total=100_000):
    return [["w"] * l for l in lengths for _ in range(round(total * c * alpha**l))]


@pytest.mark.slow_without_jit
def test_tail_fit_recovers_an_exponential():
    fit = tail_fit(geometric(0.2, 0.9, range(5, 60)))
    frequency = 1 / sum(0.2 * 0.9**l for l in range(5, 60))
    assert fit.mode == 5
    np.testing.assert_allclose(fit.alpha, 0.9, rtol=1e-3)
    np.testing.assert_allclose(fit.c, 0.2 * frequency, rtol=1e-2)
    assert fit.points.index.tolist() == list(range(6, 60))
    # Rounding of counts is all the error there is.
    assert fit.squared_error < 55 * 1e-10
    assert fit.points["held_out"].isna().sum() == 27


def test_tail_fit_is_the_least_squares_fit(wsj_dev):
    fit = tail_fit(wsj_dev)
    used = fit.points[fit.points["held_out"].isna()]
    l, p = used.index.to_numpy(), used["frequency"].to_numpy()
    residual = p - fit.c * fit.alpha**l
    assert fit.fit_error == pytest.approx((residual**2).sum(), rel=EXACT)
    # Both partial derivatives vanish.
    np.testing.assert_allclose(residual @ fit.alpha**l, 0, atol=EXACT)
    np.testing.assert_allclose(residual @ (l * fit.alpha ** (l - 1)), 0, atol=ITERATIVE)
    rng = np.random.default_rng(0)
    for _ in range(200):
        c, alpha = rng.uniform(0, 2 * fit.c), rng.uniform(0.5, 1)
        assert ((p - c * alpha**l) ** 2).sum() >= fit.fit_error


def test_tail_fit_of_english(wsj_train, wsj_dev):
    fit = tail_fit(wsj_train)
    # The paper has (0.19, 0.92) for the whole Penn Treebank, squared error 0.0005.
    assert fit.c == pytest.approx(0.19, abs=0.02)
    assert fit.alpha == pytest.approx(0.92, abs=0.015)
    assert fit.squared_error < 0.0005
    other = tail_fit(wsj_train, held_out=wsj_dev)
    assert other.alpha == pytest.approx(fit.alpha, abs=0.005)
    assert other.points["held_out"].notna().all()


def test_new_data_is_only_compared_with():
    sentences = geometric(0.2, 0.8, range(1, 20))
    fit = tail_fit(sentences, held_out=[["w"] * 2, ["w"] * 3] * 2 + [["w"]] * 4)
    np.testing.assert_allclose(fit.alpha, 0.8, rtol=1e-3)
    assert fit.points["held_out"].tolist() == [0.25, 0.25] + [0.0] * 16
    expected = ((fit.points["held_out"] - fit.points["curve"]) ** 2).sum()
    assert fit.squared_error == pytest.approx(expected, rel=EXACT)


def test_too_short_a_tail():
    with pytest.raises(ValueError, match="0 points above its most frequent length 2"):
        tail_fit([["a", "b"], ["a"], ["a", "b"]])
    with pytest.raises(ValueError, match="fewer than two lengths"):
        tail_fit([["a"]] * 3 + [["a"] * 2] + [["a"] * 9])
    with pytest.raises(ValueError, match="empty treebank"):
        tail_fit([])


@pytest.mark.slow_without_jit
def test_display_draws_the_points():
    fit = tail_fit(geometric(0.2, 0.9, range(5, 60)))
    display = TailFitDisplay.from_treebank(geometric(0.2, 0.9, range(5, 60)))
    assert display.plot(linewidth=3) is display
    assert display.fit.alpha == fit.alpha
    frequency, held_out, curve = display.lines_
    np.testing.assert_array_equal(frequency.get_ydata(), fit.points["frequency"])
    assert len(held_out.get_xdata()) == 27
    np.testing.assert_array_equal(curve.get_ydata(), fit.points["curve"])
    assert curve.get_linewidth() == 3
    assert display.ax_.get_xlabel() == "sentence length l"
    display.figure_.clear()


def test_constants_by_hand():
    # S -> A S 4 times, S -> b 6 times, A -> a 4 times: θ = 0.4, 0.6, 1.
    # Lengths 1, 3, 5: p = 0.6, 0.24, 0.096, each step of 2 rules is 0.4.
    constants = distribution_constants(Treebank(TREES))
    assert constants.alpha == pytest.approx(5 / 3, rel=EXACT)
    r = 0.4**0.5
    assert constants.r == pytest.approx(r, rel=EXACT)
    assert constants.L == pytest.approx(0.6 / r, rel=EXACT)
    assert constants.q == pytest.approx(r, rel=EXACT)
    assert constants.B == pytest.approx(1.0, rel=EXACT)
    assert distribution_constants(Treebank(TREES), r=0.9).L == pytest.approx(
        0.6 / 0.9, rel=EXACT
    )


def test_constants_bound_the_sample(wsj_dev):
    X = delexicalize(wsj_dev)
    grammar = CFG.from_treebank(X)
    constants = distribution_constants(X, grammar)
    assert constants == distribution_constants(X)
    assert 0 < constants.r < constants.q < 1 < constants.alpha < 4
    assert 1 < constants.B < X.lengths.mean()


def test_ambiguity_of_the_grammar_counts_in_q():
    grammar = CFG.from_string("S -> S S | a")
    X = Treebank(["(S a)", "(S a)", "(S (S a) (S a))", "(S (S a) (S (S a) (S a)))"] * 3)
    sample = distribution_constants(X, grammar)
    whole = distribution_constants(X, grammar, derivations="grammar")
    assert sample.q == pytest.approx(sample.r, rel=EXACT)
    assert whole.q == pytest.approx(whole.r * 2 ** (2 / 5), rel=EXACT)
    assert whole[:3] == sample[:3]


def test_trees_outside_the_grammar_are_counted():
    grammar = CFG.from_string("S -> A S | b\nA -> a")
    with pytest.warns(UserWarning, match="1 of 7 trees are no derivations"):
        constants = distribution_constants(Treebank([*TREES, "(S c)"]), grammar)
    assert constants == distribution_constants(Treebank(TREES), grammar)
    with pytest.raises(ValueError, match="none of the 1 trees"):
        distribution_constants(Treebank(["(S c)"]), grammar)
    with pytest.raises(ValueError, match="row 1 is a sentence without a tree"):
        distribution_constants(Treebank([TREES[0], ["a", "b"]]))
    with pytest.raises(ValueError, match="'sample' or 'grammar', got 'all'"):
        distribution_constants(Treebank(TREES), derivations="all")
    with pytest.raises(ValueError, match="r must lie"):
        distribution_constants(Treebank(TREES), r=1.0)
    with pytest.raises(ValueError, match="do not fall with their length"):
        distribution_constants(Treebank(["(S a)", "(S (B b))"]), grammar=None)


@pytest.mark.parametrize(
    "text",
    [
        "S -> A B | A x B | S S\nA -> a | B\nB -> b | a",
        "S -> T 'x' | 'x' T T\nT -> 'a' | U\nU -> 'b'",
        "S -> 'x' 'y' S 'z' | 'x'",
    ],
)
def test_counts_equal_enumeration(text):
    grammar = CFG.from_string(text)

    def leftmost(form, steps):
        """Ways to rewrite a list of nonterminals to nothing in so many steps."""
        if not form or steps == 0:
            return int(not form and steps == 0)
        first, *rest = form
        return sum(
            leftmost(
                [s for s, t in zip(r.rhs, r.terminal, strict=True) if not t] + rest,
                steps - 1,
            )
            for r in grammar.rules
            if r.lhs == first
        )

    wanted = [leftmost([grammar.start], k) for k in range(9)]
    assert count_derivations(grammar, 8) == wanted
    assert sum(wanted) > 3


def test_unary_cycles_are_counted_by_their_rules():
    grammar = CFG.from_string("A -> B | a\nB -> A", unary_cycles="allow")
    assert count_derivations(grammar, 6) == [0, 1, 0, 1, 0, 1, 0]
    assert count_derivations(grammar, 0) == [0]
    with pytest.raises(ValueError, match="max_length must not be negative"):
        count_derivations(grammar, -1)
