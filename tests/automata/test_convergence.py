"""Which sums over all trees are finite, and what distances of large automata cost."""

import numpy as np
import pytest

from lpcfg_sk import PCFG, WTA, SVTAMinimizer
from lpcfg_sk.automata import _sums
from lpcfg_sk.automata._tensors import DenseTensor
from lpcfg_sk.exceptions import NotStronglyConvergentError
from tests.automata.test_minimizer import TREES
from tests.reference.wta import random_wta
from tests.tolerances import SUM

pytestmark = pytest.mark.slow_without_jit


def branching(p, leaf):
    """The automaton of f(t) = p^size(t) leaf^(size(t) + 1)."""
    return WTA([1.0], [[[p]]], {"a": [leaf]})


@pytest.mark.parametrize(
    ("p", "leaf", "strong", "square"),
    [
        # Catalan numbers grow as 4^size: Σ f needs p leaf < 1/4, Σ f² its square root.
        (0.49, 0.5, True, True),
        (0.5, 0.5, False, True),
        (0.6, 0.8, False, True),
        (1.0, 0.51, False, False),
        (0.99, 0.5, False, True),
        (1.0, 0.5, False, False),
    ],
)
def test_strong_convergence_is_that_of_the_paper(p, leaf, strong, square):
    wta = branching(p, leaf)
    assert wta.is_strongly_convergent is strong
    assert wta.is_square_convergent is square
    assert (-wta).is_strongly_convergent is strong
    assert wta.is_convergent is square
    if not square:
        with pytest.raises(NotStronglyConvergentError, match=r"\|t\|·f\(t\)²"):
            wta.singular_values()


@pytest.mark.parametrize(("relative", "strong"), [(-SUM, True), (SUM, False)])
def test_strong_convergence_ends_at_a_quarter(relative, strong):
    wta = branching(0.5 * (1 + relative), 0.5)
    assert wta.is_strongly_convergent is strong


def expected_size(wta, height):
    """Sum of |t| f(t), |t| counted in nodes, over all trees up to a height."""
    T = wta.tensors[0].to_dense()
    leaves = wta.omega_matrix.sum(axis=0)
    total = sizes = np.zeros(wta.n_states)
    for _ in range(height):
        right, left = T @ total, total @ T
        sizes = leaves + right @ total + right @ sizes + left @ sizes
        total = leaves + right @ total
    return wta.alpha @ sizes


@pytest.mark.parametrize("n_states", [2, 5, 70])
@pytest.mark.parametrize("form", ["dense", "sparse", "cp"])
def test_strong_convergence_agrees_with_sums_over_trees(n_states, form):
    rng = np.random.default_rng(n_states)
    factors = rng.random((3, n_states, 3)) / n_states
    T = tuple(factors)
    if form != "cp":
        T = np.einsum("ir,jr,kr->ijk", *factors)
        if form == "sparse":
            T[rng.random(T.shape) < 0.5] = 0.0
            index = np.nonzero(T)
            T = (*index, T[index])
    omega = {"a": rng.random(n_states), "b": rng.random(n_states)}
    wta = WTA(rng.random(n_states), T, omega)

    def bounded(gamma):
        with np.errstate(over="ignore", invalid="ignore"):
            short, long = (expected_size(wta.reweight(gamma), h) for h in (200, 400))
        return bool(np.isfinite(long) and long <= short * (1 + 1e-6))

    low, high = 1e-3, 1e3
    assert bounded(low)
    assert not bounded(high)
    while high / low > 1.02:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if bounded(middle) else (low, middle)
    assert wta.reweight(0.97 * low).is_strongly_convergent is True
    assert wta.reweight(1.03 * high).is_strongly_convergent is False


def test_a_grammar_of_a_treebank_is_strongly_convergent():
    wta = WTA.from_pcfg(PCFG().fit(TREES))
    assert wta.is_strongly_convergent is True
    gamma = SVTAMinimizer(wta, 1, gamma="max").fit().gamma_
    # The γ of SVTA* leaves the range that the paper asks for.
    assert wta.reweight(gamma).is_square_convergent
    assert wta.reweight(gamma).is_strongly_convergent is False


def test_strong_convergence_with_weights_of_both_signs():
    def signed(p):
        return WTA([1.0], [[[p]]], {"a": [0.5], "b": [-0.5]})

    # The sum of absolute values is finite for p < 1/4, that of squares for p² < 1/2.
    assert signed(0.2).is_strongly_convergent is True
    assert signed(0.6).is_strongly_convergent is None
    assert signed(0.9).is_strongly_convergent is False
    # A signed form of a function of positive values, which diverges.
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    twice = branching(0.9, 0.5) + branching(0.2, 0.7)
    assert twice.is_square_convergent
    assert twice.is_strongly_convergent is False
    assert twice.conjugate(basis).is_strongly_convergent is False


def test_useless_states_and_finite_sums_converge_strongly():
    finite = WTA([1.0, 0.0], ([0], [1], [1], [50.0]), {"a": [0.0, 9.0]})
    assert finite.is_strongly_convergent is True
    unobserved = WTA(
        [1.0, 0.0], ([0, 1], [0, 1], [0, 1], [0.1, 9.0]), {"a": [1.0, 1.0]}
    )
    assert unobserved.is_strongly_convergent is True
    assert (unobserved * 0.0).is_strongly_convergent is True


def test_distance_to_ones_own_minimum_does_not_minimise_beyond_the_limit(monkeypatch):
    rng = np.random.default_rng(0)
    n = 100
    i, j, k = rng.integers(0, n, size=(3, 8 * n))
    omega = {f"w{x}": row for x, row in enumerate(rng.random((20, n)) ** 8 / 20)}
    wta = WTA(np.full(n, 1 / n), (i, j, k, rng.random(8 * n) / 20), omega)
    small = wta.minimize()
    assert small.n_states > 80
    calls, contract = [], DenseTensor.contract

    def counted(self, *args):
        calls.append(self.n)
        return contract(self, *args)

    def minimum(*args):
        raise AssertionError("nothing need be minimised")

    monkeypatch.setattr(DenseTensor, "contract", counted)
    monkeypatch.setattr(_sums, "minimum", minimum)
    assert wta.distance(small) <= 1e-7 * wta.norm()
    # Contractions of n³ weights take almost all the time; eighty were made before.
    assert len(calls) <= 20


def test_redundant_automata_are_still_subtracted():
    rng = np.random.default_rng(0)
    f = random_wta(rng, 4)
    many = f
    for _ in range(5):
        many = many + many
    assert many.n_states == 128
    assert many.distance(32.0 * f + f * 0.0) <= 1e-12 * many.norm()
