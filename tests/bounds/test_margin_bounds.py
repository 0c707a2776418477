import math

import pytest

from lpcfg_sk.bounds import (
    boundedness,
    deviation_probability,
    entropy_bound,
    hidden_variable_log_covering_number,
    log_covering_number,
    margin_relative_deviation,
    margin_relative_sample_size,
    margin_sample_size,
    tightness,
)
from tests.tolerances import EXACT, SUM

CONSTANTS = {"N": 10, "s": 1.5, "L": 1.0, "q": 0.8}


def catalan(k):
    """Derivations of k rules of S -> S S | a."""
    return 0 if k % 2 == 0 else math.comb(k - 1, (k - 1) // 2) // ((k + 1) // 2)


def test_entropy_bound_by_hand():
    # k* = 1/log 5 = 0.62, one length below it; 0.8/0.04 = 20.
    value = entropy_bound(L=1.0, r=0.2, q=0.8, Lambda=lambda k: 2**k)
    assert value == pytest.approx(20 * math.log(5) + 2 / math.e, rel=EXACT)
    assert entropy_bound(L=1.0, r=0.2, q=0.8, Lambda=2) == pytest.approx(
        value, rel=EXACT
    )
    # L = e³, r = 1/e: k* = 4; Λ: 2 + 4 + 8 + 16; q/(1-q)² = 2.
    value = entropy_bound(L=math.e**3, r=1 / math.e, q=0.5, Lambda=2)
    assert value == pytest.approx(2 * math.e**3 + 30 / math.e, rel=EXACT)
    # L = e^-2: no short derivations; -log L = 2; q = 0.9.
    value = entropy_bound(L=math.e**-2, r=1 / math.e, q=0.9, Lambda=2)
    assert value == pytest.approx((2 * 9 + 90) * math.e**-2, rel=EXACT)


@pytest.mark.parametrize("stop", [0.7, 0.9, 0.99])
def test_entropy_bound_holds_for_a_branching_process(stop):
    """S -> S S | a, with probabilities 1 - stop and stop."""
    r = math.sqrt(stop * (1 - stop))
    # n words: stop^n (1 - stop)^(n - 1), and k = 2n - 1 rules.
    L = math.sqrt(stop / (1 - stop))
    q = max(r * catalan(k) ** (2 / k) for k in range(1, 400, 2))
    entropy = -sum(
        catalan(2 * n - 1) * p * math.log(p)
        for n in range(1, 150)
        if (p := stop**n * (1 - stop) ** (n - 1)) > 0
    )
    if q < 1:
        assert entropy <= entropy_bound(L=L, r=r, q=q, Lambda=catalan)
    else:
        with pytest.raises(ValueError, match="q must lie strictly between 0 and 1"):
            entropy_bound(L=L, r=r, q=q, Lambda=catalan)


def test_the_branching_processes_cover_both_cases():
    growth = max(catalan(k) ** (2 / k) for k in range(1, 400, 2))
    assert math.sqrt(0.99 * 0.01) * growth < 1 < math.sqrt(0.9 * 0.1) * growth


def test_boundedness_by_hand():
    # m = e²: log m = 2, κ = 3·4·2/0.25 = 96, log² m = 4.
    K, eps_bound, beta = boundedness(math.e**2, s=3.0, N=4, L=2.0, q=0.5)
    assert K == pytest.approx(3 * 4 * 8, rel=EXACT)
    assert eps_bound == pytest.approx(96 * 8 / 16, rel=EXACT)
    assert beta == pytest.approx(math.log(2) - math.log(96 * 8) / 4, rel=EXACT)
    # Strings: q^(4/2).
    assert boundedness(
        math.e**2, s=3.0, N=4, L=2.0, q=0.5, alpha=2.0
    ).eps_bound == pytest.approx(96 * 8 / 4, rel=EXACT)
    with pytest.raises(ValueError, match="m must be at least"):
        boundedness(5.0, s=3.0, N=4, L=2.0, q=0.5, alpha=4.0)


@pytest.mark.parametrize("q", [0.3, 0.9])
@pytest.mark.parametrize("L", [1e-2, 5.0])
def test_beta_bounds_all_larger_m_and_is_the_largest(q, L):
    kwargs = {"s": 0.1, "N": 1, "L": L, "q": q}
    start = 4.0
    beta = boundedness(start, **kwargs).beta
    slack = [
        -beta * math.log(m) ** 2 - math.log(boundedness(m, **kwargs).eps_bound)
        for m in (start * 1.01**i for i in range(2000))
    ]
    assert min(slack) >= -SUM
    assert min(slack) < 0.01


@pytest.mark.parametrize("q", [0.4, 0.8])
def test_the_tail_of_proposition_2_is_what_is_bounded(q):
    """The bound of E[|f|; |f| ≥ K] is above the series of its proof."""
    for m in (3, 10, 100, 5_000):
        x = math.log(m)
        first = math.floor(x * x) + 1
        series = sum(k * q**k for k in range(first, first + 5_000))
        assert 1.5 * 10 * x * series <= boundedness(m, **CONSTANTS | {"q": q}).eps_bound


def test_tightness_by_hand():
    result = tightness(math.e**2, s=1.0, N=6, L=2.0, q=0.5)
    assert result.eps_tail == pytest.approx(24 / (math.e**2 - 1), rel=EXACT)
    assert result.tail_mass == pytest.approx(2 / 0.5 / 16, rel=EXACT)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("L", [0.5, 1e6])
def test_tightness_holds_from_M_on(L, alpha):
    kwargs = {"s": 1.5, "N": 10, "L": L, "q": 0.8, "alpha": alpha}
    M = tightness(10.0, **kwargs).M
    for i in range(200):
        result = tightness(M * 1.05**i, **kwargs)
        assert result.tail_mass <= result.eps_tail * (1 + SUM)
        assert result.M == M
    if L > 1:
        result = tightness(M * 0.999, **kwargs)
        assert result.tail_mass > result.eps_tail
    assert tightness(10.0, **kwargs | {"q": 0.9999}).M == math.inf


def test_covering_numbers_by_hand():
    # 2e·10/ε = e⁴ for ε = 20 e^-3.
    epsilon = 20 * math.e**-3
    expected = math.log(2) + 3 * (4 + math.log(4))
    assert log_covering_number(epsilon, K=10.0, N=3) == pytest.approx(
        expected, rel=EXACT
    )
    # q = 1/2, L = 1/2: m = log2(4 · 0.5 · 16 / (4 · 0.5)) = 4; Z = 2 + 4 + 8 + 16.
    kwargs = {"K": 16.0, "N": 3, "L": 0.5, "q": 0.5}
    value = hidden_variable_log_covering_number(4.0, **kwargs, Lambda=2)
    assert value == pytest.approx(log_covering_number(4.0 / 60, K=16.0, N=3), rel=EXACT)
    same = hidden_variable_log_covering_number(4.0, **kwargs, Lambda=lambda k: 2**k)
    assert same == pytest.approx(value, rel=EXACT)
    # One derivation of each length: Z = 4.
    one = hidden_variable_log_covering_number(4.0, **kwargs, Lambda=1)
    assert one == pytest.approx(log_covering_number(0.5, K=16.0, N=3), rel=EXACT)


def test_big_counts_do_not_overflow():
    kwargs = {"K": 1e6, "N": 3, "L": 1.0, "q": 0.99}
    exact = hidden_variable_log_covering_number(0.1, **kwargs, Lambda=lambda k: 9**k)
    rate = hidden_variable_log_covering_number(0.1, **kwargs, Lambda=9.0)
    assert exact == pytest.approx(rate, rel=SUM)
    with pytest.raises(ValueError, match="Python integers"):
        hidden_variable_log_covering_number(
            0.1, **kwargs, Lambda=lambda k: math.inf if k > 300 else 9.0**k
        )


def first_condition(n, epsilon, delta, *, N, s, L, q, extra=0.0):
    """Theorem 2 as it is printed."""
    K = s * N * math.log(n) ** 3
    inner = 2 * N * (math.log(16 * math.e * K / epsilon) + extra)
    return n >= 128 * K**2 / epsilon**2 * (inner + math.log(32 / delta))


@pytest.mark.parametrize("epsilon", [0.5, 20.0, 1e4])
@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_sample_size_is_where_theorem_2_begins_to_hold(epsilon, delta):
    n = margin_sample_size(epsilon, delta, **CONSTANTS)
    assert isinstance(n, int)
    assert first_condition(n, epsilon, delta, **CONSTANTS)
    assert not first_condition(n * (1 - 1e-9) - 1, epsilon, delta, **CONSTANTS)
    assert all(
        first_condition(n * 1.1**i, epsilon, delta, **CONSTANTS) for i in range(400)
    )
    bound = boundedness(n, **CONSTANTS).eps_bound
    assert bound <= delta * epsilon / 2
    assert deviation_probability(n, epsilon, **CONSTANTS) <= delta


def test_sample_size_where_the_second_condition_decides():
    constants = {"N": 1, "s": 1e-3, "L": 1e9, "q": 0.97}
    n = margin_sample_size(1.0, 0.1, **constants)
    assert first_condition(n // 2, 1.0, 0.1, **constants)
    assert boundedness(n, **constants).eps_bound <= 0.05
    assert boundedness(n * (1 - 1e-9), **constants).eps_bound > 0.05


@pytest.mark.parametrize("Lambda", [2.0, catalan])
def test_sample_size_for_strings_is_where_theorem_3_begins_to_hold(Lambda):
    epsilon, delta = 3.0, 0.05
    kwargs = {"Lambda": Lambda, "alpha": 2.0}
    n = margin_sample_size(epsilon, delta, **CONSTANTS, **kwargs)

    def holds(n):
        K = 1.5 * 10 * math.log(n) ** 3
        m = math.ceil(math.log(4 * K / (epsilon / 8 * 0.2)) / math.log(1 / 0.8))
        count = catalan if callable(Lambda) else lambda k: 2**k
        Z = sum(count(k) for k in range(1, m + 1))
        return first_condition(
            n, epsilon, delta, **CONSTANTS, extra=math.log(2) + math.log(Z)
        )

    assert holds(n)
    assert not holds(n * (1 - 1e-9))
    assert all(holds(n * 1.2**i) for i in range(200))
    assert n > margin_sample_size(epsilon, delta, **CONSTANTS)
    assert deviation_probability(n, epsilon, **CONSTANTS, **kwargs) <= delta


def test_relative_sample_size_by_hand():
    # 512 (2 log 32e + log 320) = 512 · 14.6998; log²n = log(1000)/log(1.25) = 30.96.
    assert margin_relative_sample_size(0.5, 0.1, N=1, L=1.0, q=0.8) == 7527
    # exp(sqrt(log(2·10^6/(0.1·0.5·0.04))/log 1.25)) = exp(11.1289...).
    n = margin_relative_sample_size(0.5, 0.1, N=1, L=1e6, q=0.8)
    tail = math.log(2e6 / (0.05 * 0.04)) / math.log(1.25)
    assert n == math.ceil(math.exp(math.sqrt(tail)))
    assert n > 7527
    # Strings: m = log2(32·2/(0.5·0.5)) = 8, so Z = 2^9 - 2 = 510.
    n = margin_relative_sample_size(0.5, 0.1, N=1, L=2.0, q=0.5, Lambda=2)
    expected = 512 * (2 * math.log(64 * math.e * 510) + math.log(320))
    assert n == math.ceil(expected)


@pytest.mark.parametrize("Lambda", [None, 2.0])
def test_relative_and_absolute_sizes_agree(Lambda):
    rho, delta = 1e-3, 0.05
    constants = {k: v for k, v in CONSTANTS.items() if k != "s"}
    n = margin_relative_sample_size(rho, delta, **constants, Lambda=Lambda)
    K = boundedness(n, **CONSTANTS).K
    assert deviation_probability(n, rho * K, **CONSTANTS, Lambda=Lambda) <= delta
    assert margin_sample_size(rho * K, delta, **CONSTANTS, Lambda=Lambda) <= n
    assert margin_relative_deviation(n, rho, N=10, s=1.5, H=50.0) == pytest.approx(
        2 * rho * K / 50, rel=EXACT
    )


def test_trade_offs_of_table_2():
    sizes = [margin_sample_size(1.0, 0.05, **CONSTANTS | {"s": s}) for s in (1, 2, 3)]
    assert sizes == sorted(sizes)
    tails = [tightness(1e4, **CONSTANTS | {"s": s}).eps_tail for s in (1.0, 2.0, 3.0)]
    assert tails == sorted(tails, reverse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"N": 0}, "N must be positive, got 0"),
        ({"s": -1.0}, "s must be positive"),
        ({"L": 0.0}, "L must be positive"),
        ({"q": 1.0}, "q must lie strictly between 0 and 1, got 1.0"),
        ({"alpha": 0.5}, "alpha must be at least 1"),
        ({"Lambda": 0.5}, "growth rate Lambda must be at least 1"),
        ({"Lambda": lambda k: -1}, r"Lambda\(1\) must not be negative"),
    ],
)
def test_arguments_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        margin_sample_size(1.0, 0.05, **CONSTANTS | change)


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match="epsilon must be positive"):
        margin_sample_size(0.0, 0.05, **CONSTANTS)
    with pytest.raises(ValueError, match="delta must lie"):
        margin_sample_size(1.0, 1.0, **CONSTANTS)
    with pytest.raises(ValueError, match="epsilon must be less than K=2"):
        log_covering_number(3.0, K=2.0, N=1)
    with pytest.raises(TypeError, match="function of k or a growth rate, got str"):
        margin_sample_size(1.0, 0.05, **CONSTANTS, Lambda="2")
    with pytest.raises(ValueError, match="no n below 1e304"):
        margin_sample_size(1e-300, 0.05, **CONSTANTS)
    with pytest.raises(ValueError, match="m must be more than 1"):
        tightness(1.0, **CONSTANTS)
    with pytest.raises(ValueError, match="r must lie"):
        entropy_bound(L=1.0, r=1.5, q=0.5, Lambda=2)
    assert deviation_probability(1e3, 1.0, **CONSTANTS) == 1.0
