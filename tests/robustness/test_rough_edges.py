"""Parameters and data at the end of their range: an answer, or a clear error."""

import joblib
import numpy as np
import pytest

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    LPCFG,
    PCFG,
    WTA,
    MarginEMPCFG,
    RareWords,
    Treebank,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.parsing import marginals
from tests.persistence import models

TOY = load_toy(40)


@pytest.mark.parametrize("prune", [3e-4, None])
def test_a_limit_of_memory_of_any_size_is_a_limit(prune):
    parser = make_parser(PCFG(prune=prune)).fit(TOY[:30])
    expected = parser.predict(TOY[30:33])
    assert parser.set_params(learner__max_memory=2**70).predict(TOY[30:33]) == expected


def test_a_limit_of_any_size_holds_for_other_charts():
    model = MarginEMPCFG(CFG.from_string("S -> 'a' S | 'b'"), max_memory=2**70)
    model.fit([["a", "b"], ["b"], ["b"]])
    assert model.predict([["a", "b"]]).sentences() == [["a", "b"]]
    wta = WTA([1.0], np.full((1, 1, 1), 0.3), {"a": [1.0]})
    np.testing.assert_allclose(
        wta.sentence_value([["a"] * 3], max_memory=2**70), [2 * 0.3**2]
    )


@pytest.mark.parametrize(
    "rows",
    [np.array([0, 1], np.float16), np.array([0.0, 1.0]), np.array([0, None]), 2**70],
)
def test_rows_that_are_no_whole_numbers_are_an_index_error(rows):
    with pytest.raises(IndexError, match="treebank"):
        TOY[rows]


@pytest.mark.parametrize("answer", [None, 3, [None]])
def test_a_signature_that_is_no_string_is_named(answer):
    words = RareWords(min_count=3, signature=lambda token: answer)
    with pytest.raises(TypeError, match=r"signature\('.*'\) returned"):
        words.fit(TOY)


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore")
def test_a_pool_of_plain_processes_gives_the_same_bytes(monkeypatch):
    monkeypatch.setattr("lpcfg_sk.em._expectation.CHUNK_WORK", 50)
    monkeypatch.setattr("lpcfg_sk.em._expectation._NODES_PER_RULE", 1)
    X = models.prepared(models.TRAIN)
    model = EMLPCFG(2, max_iter=2, tol=None, random_state=0)
    expected = model.fit(X).grammar_.arrays
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        found = model.fit(X).grammar_.arrays
    for one, two in zip(found, expected, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize(
    ("left", "right"),
    [([1.0], [0.0, 0.0]), ([0.0], [1.0, 0.5]), ([1.0], [1.0, 1.0])],
    ids=["zero", "zero left", "sums to zero"],
)
def test_a_sentence_of_value_zero_has_no_normalized_marginals(left, right):
    grammar = LPCFG.from_parameters(
        {("S", "A", "B"): [[[1.0, -1.0]]]},
        {("A", "x"): left, ("B", "y"): right},
        {"S": [1.0]},
    )
    with pytest.warns(ParseFailureWarning, match="value zero"):
        frame = marginals(grammar, Treebank([["x", "y"]]), normalize=True)[0]
    assert list(frame.columns) == ["label", "start", "end", "marginal"]
    assert len(frame) == 0
