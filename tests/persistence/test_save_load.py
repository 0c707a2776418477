import json
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import Pipeline

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    MarginEMPCFG,
    RareWords,
    SpectralLPCFG,
    TreeBinarizer,
    load,
    make_parser,
    save,
)
from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.persistence._codec import decode, encode

pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)
TREES = load_toy(80)
GRAMMAR = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
PARSERS = {
    "pcfg": lambda: make_parser(PCFG()),
    "em": lambda: make_parser(
        EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None, random_state=0)
    ),
    "spectral": lambda: make_parser(SpectralLPCFG(2, random_state=0), horizontal=1),
}


@pytest.mark.parametrize("name", PARSERS)
def test_parsers_come_back_to_the_bit(name, tmp_path):
    parser = PARSERS[name]().fit(TREES[:60])
    save(parser, tmp_path / "model", compact=False)
    again = load(tmp_path / "model")
    assert isinstance(again, Pipeline)
    assert [n for n, _ in again.steps] == [n for n, _ in parser.steps]
    assert again.get_params(deep=False).keys() == parser.get_params(deep=False).keys()
    X = TREES[60:]
    assert again.predict(X) == parser.predict(X)
    seen = parser[:-1].transform(X)
    np.testing.assert_array_equal(
        again[-1].score_samples(again[:-1].transform(X)), parser[-1].score_samples(seen)
    )
    # The copy can be fitted and saved again.
    again.fit(TREES[:60])
    save(again, tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == parser.predict(X)


def test_margin_models_and_unfitted_estimators(tmp_path):
    model = MarginEMPCFG(GRAMMAR, s=1.2).fit([["a", "c"], ["c"], ["b", "c"]])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    pd.testing.assert_series_equal(again.theta_, model.theta_)
    pd.testing.assert_frame_equal(again.binomials_, model.binomials_)
    assert again.grammar_ == model.grammar_
    assert again.score([["a", "a", "c"]]) == model.score([["a", "a", "c"]])
    save(TreeBinarizer(direction="left"), tmp_path / "step")
    assert load(tmp_path / "step").direction == "left"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        float("inf"),
        "text",
        [1, [2, None]],
        (1, ("a",)),
        {"a": 1, ("b", 2): [3]},
        {1, 2},
        frozenset({"x"}),
        np.float64(1.5),
        np.int32(7),
    ],
    ids=repr,
)
def test_plain_values(value):
    arrays = {}
    data = json.loads(json.dumps(encode(value, arrays)))
    back = decode(data, arrays)
    assert back == value
    assert type(back) is type(value)


def test_arrays_and_frames():
    arrays = {}
    value = {
        "dense": np.arange(6.0).reshape(2, 3),
        "sparse": scipy.sparse.csr_matrix(np.eye(3)),
        "names": np.array(["a", None], dtype=object),
        "series": pd.Series([1.0, 2.0], index=["x", "y"], name="s"),
    }
    back = decode(json.loads(json.dumps(encode(value, arrays))), arrays)
    np.testing.assert_array_equal(back["dense"], value["dense"])
    np.testing.assert_array_equal(back["sparse"].toarray(), np.eye(3))
    assert back["names"].tolist() == ["a", None]
    pd.testing.assert_series_equal(back["series"], value["series"])
    assert np.isnan(decode(encode(float("nan"), {}), {}))


def test_functions_are_refused_with_advice(tmp_path):
    words = RareWords(signature=lambda word: word[-1]).fit(TREES)
    with pytest.raises(TypeError, match=r"RareWords\.signature is a .*without pickle"):
        save(words, tmp_path / "model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="save method of their own"):
        save(GRAMMAR, tmp_path / "model")


@pytest.mark.parametrize(
    "data",
    [
        {"$": "object", "of": "os:system", "state": {}},
        {"$": "object", "of": "lpcfg_sk.persistence._codec:os.path", "state": {}},
        {"$": "object", "of": "lpcfg_sk.treebank._nope:Tree", "state": {}},
        {"$": "object", "of": "lpcfg_sk.persistence._codec:Pipeline", "state": {}},
        {"$": "object", "of": "lpcfg_sk.persistence._codec:encode", "state": {}},
        {"$": "value", "of": "Nope", "state": {}},
        {"$": "array", "name": "missing"},
        {"$": "strange"},
        {"no": "mark"},
        {"$": "value", "of": "CFG", "state": {"$": "dict", "items": []}},
    ],
    ids=str,
)
def test_foreign_data_is_refused(data):
    with pytest.raises(ValueError):
        decode(data, {})


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "model"
    save(MarginEMPCFG(GRAMMAR).fit([["a", "c"], ["c"]]), path)
    return path


def test_damaged_files_are_value_errors(model_file, seed):
    content = model_file.read_bytes()
    expected = load(model_file)
    rng = np.random.default_rng(seed)
    broken = model_file.with_name("broken")
    for cut in rng.integers(len(content), size=30):
        broken.write_bytes(content[:cut])
        with pytest.raises(ValueError):
            load(broken)
    for place, value in zip(
        rng.integers(len(content), size=100), rng.integers(256, size=100), strict=True
    ):
        mutated = bytearray(content)
        mutated[place] = value
        broken.write_bytes(bytes(mutated))
        try:
            value = load(broken)
        except ValueError as error:
            assert str(broken) in str(error)
        else:
            # Dates and the like, which nobody reads, or the byte that was there.
            pd.testing.assert_series_equal(value.theta_, expected.theta_)
            assert value.score([["a", "c"]]) == expected.score([["a", "c"]])


def test_other_files_are_value_errors(tmp_path, model_file):
    text = tmp_path / "text"
    text.write_text("(S (NP a) (VP b))")
    with pytest.raises(ValueError, match="not a readable lpcfg_sk file"):
        load(text)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not written by lpcfg_sk"):
        load(tmp_path / "other.npz")
    save_arrays(tmp_path / "kind", "LPCFG", 1, {}, {})
    with pytest.raises(ValueError, match="holds a LPCFG"):
        load(tmp_path / "kind")
    save_arrays(tmp_path / "new", "estimator", 99, {}, {})
    with pytest.raises(ValueError, match="Update lpcfg_sk"):
        load(tmp_path / "new")
    save_arrays(tmp_path / "list", "estimator", 2, [1, 2], {})
    with pytest.raises(ValueError, match="no estimator"):
        load(tmp_path / "list")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    assert load_arrays(model_file, "estimator", 2)[0] == 2


def test_an_interrupted_save_leaves_the_old_file(model_file, monkeypatch):
    old = model_file.read_bytes()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(TreeBinarizer(), model_file)
    assert model_file.read_bytes() == old
    assert list(model_file.parent.iterdir()) == [model_file]
