import numpy as np
import pytest

from lpcfg_sk import (
    InsideFeatures,
    OutsideFeatures,
    SpectralLPCFG,
    Treebank,
    make_parser,
)
from lpcfg_sk.bounds import (
    moment_error,
    parameter_errors,
    separability_report,
    spectral_error,
    spectral_sample_size,
)
from tests.tolerances import EXACT

SETTING = {"N": 4, "m": 2, "n": 10, "sigma": 0.3, "xi": 0.5, "gamma": 0.05}


def test_propagation_is_exact_where_one_error_is_left():
    """With N = 0 and no root error the bound is m δ, the base of the induction."""
    none = {"Delta": 0.0, "kappa": 0.0, "gamma": 0.1}
    assert spectral_error(0, m=3, delta=0.01, **none) == pytest.approx(0.03, rel=EXACT)
    one = spectral_error(5, m=2, Delta=0.01, delta=0.0, kappa=0.0, gamma=0.1)
    assert one == pytest.approx(2 * (1.1**5 - 1), rel=EXACT)
    full = spectral_error(5, m=2, Delta=0.01, delta=0.2, kappa=0.3, gamma=0.1)
    assert full == pytest.approx(2 * (1.3 * 1.1**5 * 1.2**6 - 1), rel=EXACT)
    # Small errors do not drown in 1 + x.
    assert spectral_error(1, m=1, Delta=0, delta=0, kappa=1e-18, gamma=1) > 0


def test_parameter_errors_by_hand():
    errors = parameter_errors(
        m=4, n=9, sigma=0.5, xi=0.25, eps_omega_pre=0.01, eps_omega_in=0.02,
        eps_D=0.03, eps_d=0.04, eps_pi=0.05,
    )  # fmt: skip
    assert errors["Delta"] == pytest.approx(
        16 / 3 / 0.25**2 * (0.02 / 0.25 + 0.03 / 1.5), rel=EXACT
    )
    assert errors["delta"] == pytest.approx(
        4 * (0.01 / 0.25 + 0.04 * 3 / 1.5), rel=EXACT
    )
    assert errors["kappa"] == pytest.approx(2 / 3**0.5 * 2 / 0.5 * 0.05, rel=EXACT)
    with pytest.raises(ValueError, match=r"at most sigma / 3"):
        parameter_errors(
            m=2, n=2, sigma=0.1, xi=1.0, eps_omega_pre=0.05, eps_omega_in=0.0,
            eps_D=0.0, eps_d=0.0, eps_pi=0.0,
        )  # fmt: skip


def test_moment_error_holds_for_sampled_means():
    """Means of random unit vectors stay within the bound, with room to spare."""
    rng = np.random.default_rng(0)
    truth = np.full(4, 0.25)
    bound = moment_error(200, n_nonterminals=1, delta=0.05)
    errors = [
        np.linalg.norm(rng.multinomial(200, truth) / 200 - truth) for _ in range(500)
    ]
    assert np.mean(np.array(errors) > bound) <= 0.05
    assert moment_error(800, n_nonterminals=1, delta=0.05) == pytest.approx(
        bound / 2, rel=EXACT
    )


def test_sample_sizes_meet_the_error_through_the_lemmas():
    """The numbers, put back through lemmas 19, 15 and 12, give at most ε."""
    epsilon, delta, n_nonterminals = 0.2, 0.05, 6
    need = spectral_sample_size(
        epsilon, delta, n_nonterminals=n_nonterminals, **SETTING
    )

    def final_error(samples):
        error = {
            name: moment_error(count, n_nonterminals=n_nonterminals, delta=delta)
            for name, count in samples.items()
        }
        parameters = parameter_errors(
            m=2, n=10, sigma=0.3, xi=0.5,
            eps_omega_in=error["omega_in"], eps_omega_pre=error["omega_pre"],
            eps_D=error["moments_in"], eps_d=error["moments_pre"],
            eps_pi=error["roots"],
        )  # fmt: skip
        return spectral_error(4, m=2, gamma=0.05, **parameters)

    reached = final_error(need)
    assert 0.3 * epsilon < reached <= epsilon
    assert final_error({name: count / 4 for name, count in need.items()}) > epsilon


def test_sample_sizes_scale_as_the_theorem_says():
    def size(**changes):
        setting = {**SETTING, "n_nonterminals": 6, **changes}
        return spectral_sample_size(0.1, 0.05, constants=(1, 1, 1, 1, 1), **setting)

    base, sharp = size(), size(sigma=0.15)
    expected = {
        "omega_in": 16, "omega_pre": 16, "moments_in": 4, "moments_pre": 4, "roots": 4
    }  # fmt: skip
    for name, factor in expected.items():
        assert sharp[name] / base[name] == pytest.approx(factor, rel=1e-2)
    # The number of words counts for the lexical moments, and only there.
    words = size(n=20)
    assert words["moments_pre"] / base["moments_pre"] == pytest.approx(2, rel=1e-2)
    assert words["omega_pre"] == base["omega_pre"]
    assert size(gamma=0.1)["omega_pre"] == base["omega_pre"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"gamma": -1.0}, "gamma must be positive"),
        ({"xi": float("nan")}, "xi must be positive"),
        ({"m": 0}, "m must be positive"),
    ],
)
def test_bad_numbers_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        spectral_sample_size(0.1, 0.05, n_nonterminals=6, **{**SETTING, **change})
    with pytest.raises(ValueError, match="delta is a probability"):
        spectral_sample_size(0.1, 1.5, n_nonterminals=6, **SETTING)
    with pytest.raises(ValueError, match="epsilon must be at most"):
        spectral_sample_size(9.0, 0.5, n_nonterminals=6, **SETTING)
    with pytest.raises(ValueError, match="Delta must not be negative"):
        spectral_error(1, m=1, Delta=-1.0, delta=0.0, kappa=0.0, gamma=0.1)


@pytest.fixture(scope="module")
def trees():
    return Treebank(
        [
            "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
            "(S (NP (D a) (N cat)) (VP (V saw) (NP (D the) (N cat))))",
            "(S (NP (D a) (N dog)) (VP (V ate) (NP (NP (D the) (N dog)) (N food))))",
        ]
        * 5
    )


def test_report_shows_the_singular_values_of_the_theorem(trees):
    parser = make_parser(SpectralLPCFG(m=2, m_max=3)).fit(trees)
    model = parser[-1]
    report = separability_report(parser)
    assert set(report.index) == set(model.m_)
    assert report["sigma_m"].is_monotonic_increasing
    assert report["count"].sum() == 15 * 9 + 10
    # Features divided by their largest norm: the theorem's ‖φ‖, ‖ψ‖ ≤ 1.
    X = parser[:-1].transform(trees)
    scaled = OutsideFeatures(scaling=5.0).fit_transform(
        InsideFeatures(scaling=5.0).fit_transform(X)
    )
    label = np.array(X.labels.strings)[X.label]
    for a in report.index:
        phi, psi = (
            scaled.blocks[side][label == a].toarray().astype(float)
            for side in ("inside", "outside")
        )
        phi = phi / np.linalg.norm(phi, axis=1).max()
        psi = psi / np.linalg.norm(psi, axis=1).max()
        sigma = np.linalg.svd(phi.T @ psi / len(phi), compute_uv=False)
        row = report.loc[a]
        m = int(row["m"])
        assert row["sigma_1"] == pytest.approx(sigma[0], rel=1e-5)
        assert row["sigma_m"] == pytest.approx(sigma[m - 1], rel=1e-4)
        assert row["condition"] == pytest.approx(sigma[0] / sigma[m - 1], rel=1e-4)
        spread = np.sqrt(np.mean(np.sum(psi**2, axis=1)))
        assert row["xi"] == pytest.approx(sigma[m - 1] / spread, rel=1e-4)
        assert row["xi"] >= row["sigma_m"]
        noise = moment_error(len(phi), n_nonterminals=len(report), delta=0.05)
        assert row["noise"] == pytest.approx(noise, rel=EXACT)
        assert row["limits"] == (noise > row["sigma_m"] / 3)


def test_report_bounds_the_true_xi():
    """On a grammar with known states, ``xi`` is at most σ_m(I^a)."""
    from lpcfg_sk.spectral._decomposition import decompose
    from lpcfg_sk.spectral._node_features import NodeFeatures

    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, size=4000)
    inside = np.eye(3)[
        [rng.choice(3, p=[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]][h]) for h in state]
    ]
    outside = np.eye(2)[[rng.choice(2, p=[[0.8, 0.2], [0.3, 0.7]][h]) for h in state]]
    from scipy import sparse

    nodes = NodeFeatures.from_blocks(
        sparse.csr_matrix(inside),
        sparse.csr_matrix(outside),
        np.zeros(4000, dtype=np.int32),
        np.ones(4000),
        1,
    )
    (p,) = decompose(nodes, np.array([2]))
    xi = p.singular_values[1] / (p.phi_norm * p.psi_rms)
    means = np.stack([inside[state == h].mean(axis=0) for h in (0, 1)], axis=1)
    assert 0 < xi <= np.linalg.svd(means, compute_uv=False)[1]
