"""Compact model files: a tenth of the size, the same trees."""

import warnings

import numpy as np
import pytest

from lpcfg_sk import (
    EMLPCFG,
    LPCFG,
    PCFG,
    InsideFeatures,
    PivotLPCFG,
    SpectralLPCFG,
    load,
    make_parser,
    save,
)
from lpcfg_sk.bounds import separability_report
from lpcfg_sk.datasets import load_toy, make_lpcfg
from lpcfg_sk.persistence import _compact
from lpcfg_sk.persistence._codec import decode, encode
from tests.persistence import models
from tests.tolerances import ITERATIVE

TREES = load_toy(240)
TRAIN, TEST = TREES[:200], TREES[200:]
FIXED = {"max_iter": 3, "tol": None, "validation_fraction": None}
LEARNERS = {
    "pcfg": PCFG(),
    "spectral": SpectralLPCFG(6),
    "pivot": PivotLPCFG(6),
    "pivot+em": EMLPCFG(6, init=PivotLPCFG(6), random_state=0, **FIXED),
}


@pytest.fixture(scope="module", params=LEARNERS)
def parser(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_parser(LEARNERS[request.param], horizontal=1).fit(TRAIN)


def again(parser, path, **options):
    save(parser, path, **options)
    return load(path)


@pytest.mark.slow_without_jit
def test_small_files_hold_the_same_parser(parser, tmp_path):
    small, whole = tmp_path / "small", tmp_path / "whole"
    loaded = again(parser, small)
    assert again(parser, whole, compact=False)[-1].grammar_ == parser[-1].grammar_
    assert small.stat().st_size < whole.stat().st_size
    # Also from trees, of which the feature steps of the file know nothing.
    for X in (TEST.unparsed(), TEST):
        assert loaded.predict(X) == parser.predict(X)
    assert loaded.score(TEST) == parser.score(TEST)
    np.testing.assert_allclose(
        loaded[-1].score_samples(loaded[:-1].transform(TEST)),
        parser[-1].score_samples(parser[:-1].transform(TEST)),
        rtol=ITERATIVE,
    )
    found, expected = loaded[-1].grammar_, parser[-1].grammar_
    assert found.is_probabilistic == expected.is_probabilistic
    assert found.arrays.is_signed == expected.arrays.is_signed
    # It is a parser like any other: it can be saved and fitted again.
    assert again(loaded, small).predict(TEST) == parser.predict(TEST)
    assert loaded.get_params().keys() == parser.get_params().keys()


def test_what_is_left_out_says_how_to_keep_it(tmp_path):
    parser = make_parser(SpectralLPCFG(2)).fit(TRAIN[:40])
    loaded = again(parser, tmp_path / "model")
    for use in (
        lambda: loaded.transform(TEST),
        lambda: loaded.named_steps["inside"].get_feature_names_out(),
        lambda: separability_report(loaded),
        lambda: loaded[-1].projections_,
    ):
        with pytest.raises(AttributeError, match="compact=False"):
            use()
    with pytest.raises(AttributeError, match="no attribute 'projections_'"):
        SpectralLPCFG().projections_
    whole = again(parser, tmp_path / "model", compact=False)
    found, expected = whole.transform(TEST), parser.transform(TEST)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert loaded.fit(TRAIN[:40]).transform(TEST).vectors.shape == found.vectors.shape


def test_features_on_their_own_are_kept(tmp_path):
    features = InsideFeatures().fit(models.TRAIN)
    loaded = again(features, tmp_path / "model")
    names = loaded.get_feature_names_out()
    assert (names == features.get_feature_names_out()).all()


def round_trip(grammar):
    arrays = {}
    data = encode(grammar, arrays, compact=True)
    return decode(data, arrays), arrays


@pytest.mark.parametrize("m", [1, 3])
def test_zeros_stay_zeros_and_probabilities_sum_to_one(m):
    grammar = make_lpcfg(2, 3, 12, m=m, random_state=0)
    found, _ = round_trip(grammar)
    assert found.is_probabilistic
    for name, values in grammar.arrays._asdict().items():
        got = getattr(found.arrays, name)
        np.testing.assert_allclose(got, values, rtol=ITERATIVE)
        assert ((got == 0) == (values == 0)).all()


def low_rank(m, rank, sign):
    rng = np.random.RandomState(0)
    a, b, c = rng.rand(3, rank, m) - (0.5 if sign else 0.0)
    x = rng.rand(m)
    return LPCFG.from_parameters(
        {("A", "A", "A"): np.einsum("ri,rj,rk->ijk", a, b, c)},
        {("A", f"w{i}"): x * (i + 1) for i in range(40)},
        {"A": rng.rand(m)},
    )


@pytest.mark.parametrize("sign", [False, True])
def test_tensors_of_low_rank_and_parallel_vectors_are_stored_as_such(sign):
    grammar = low_rank(12, 2, sign)
    found, arrays = round_trip(grammar)
    largest = max(array.size for array in arrays.values())
    assert largest == 2**3 + 3 * 2 * 12
    values = grammar.arrays.binary
    error = np.abs(found.arrays.binary - values).max()
    assert error < ITERATIVE * np.abs(values).max()
    np.testing.assert_allclose(
        found.arrays.lexical, grammar.arrays.lexical, rtol=ITERATIVE
    )


def test_values_beyond_single_precision():
    for value in (1e-60, 1e60):
        grammar = LPCFG.from_parameters(
            {("A", "A", "A"): [[[value]]]}, {("A", "x"): [1.0]}, {"A": [1.0]}
        )
        found = round_trip(grammar)[0].arrays.binary[0]
        assert found > 0
        assert value < 1 or found == value


def test_a_file_cannot_unfold_without_bound():
    # One product of three vectors, which a writer would store as a whole tensor.
    grammar = low_rank(64, 1, sign=False)
    found, arrays = round_trip(grammar)
    assert max(array.size for array in arrays.values()) >= 64**3
    np.testing.assert_allclose(
        found.arrays.binary, grammar.arrays.binary, rtol=ITERATIVE
    )
    state = _compact.compact_state(low_rank(12, 2, sign=True))
    m = 100_000
    bomb = {
        **state,
        "n_states": np.array([m]),
        "ranks": np.array([[1, 1, 1]]),
        "binary": np.ones(1 + 3 * m, dtype=np.float32),
    }
    with pytest.raises(ValueError, match="do not fit"):
        _compact.make_compact(bomb)
    bomb = {
        **state,
        "n_states": np.array([1000]),
        "rules": np.zeros((3, 0), dtype=int),
        "ranks": np.zeros((0, 3), dtype=int),
        "binary": np.zeros(0),
        "directions": np.ones(1000, dtype=np.float32),
    }
    with pytest.raises(ValueError, match="directions"):
        _compact.make_compact(bomb)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rules", np.array([[0], [0], [7]])),
        ("rules", np.array([[0], [0]])),
        ("rules", np.array([[0.0], [0.0], [0.0]])),
        ("n_states", np.array([-12])),
        ("n_states", np.array([2**40])),
        ("ranks", np.array([[2, 2, 13]])),
        ("ranks", np.array([[2, 0, 2]])),
        ("binary", np.ones(79, dtype=np.float32)),
        ("binary", np.ones(80, dtype=int)),
        ("binary", np.full(80, np.nan)),
        ("floors", np.zeros(2)),
        ("lex_label", np.full(40, 9)),
        ("direction", np.full(40, 40)),
        ("direction", np.zeros(39, dtype=int)),
        ("scale", np.ones(39)),
        ("directions", np.ones(13)),
        ("n_entries", np.full(40, 2)),
        ("root_label", np.array([1])),
        ("probabilistic", True),
    ],
)
def test_foreign_states_are_refused(name, value):
    state = _compact.compact_state(low_rank(12, 2, sign=True))
    assert state["binary"].shape == (80,)
    with pytest.raises(ValueError):
        _compact.make_compact({**state, name: value})


@pytest.mark.slow
def test_models_of_a_corpus_are_small_and_parse_alike(wsj_train, wsj_dev, tmp_path):
    em = EMLPCFG(16, init=PivotLPCFG(16), random_state=0, **FIXED)
    sentences = wsj_dev.unparsed()[:100]
    # The sizes of the user guide, which were 144 and 119 MB before.
    for learner in (SpectralLPCFG(16), em):
        parser = make_parser(learner, horizontal=1).fit(wsj_train)
        loaded = again(parser, tmp_path / "model")
        assert (tmp_path / "model").stat().st_size < 15 * 2**20
        assert loaded.predict(sentences) == parser.predict(sentences)
