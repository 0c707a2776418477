"""The figures of the paper on the PTB sample, by the code of the benchmark."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from lpcfg_sk import PCFG, WTA, CPCompressor, SVTAMinimizer
from lpcfg_sk.automata import bracketing_f1

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STATES = [12, 16, 24, 32, 48]


@pytest.fixture(scope="module")
def figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
        yield importlib.import_module("papers.automata")


@pytest.fixture(scope="module")
def original(figures, wsj_train):
    return WTA.from_pcfg(PCFG(smoothing=0).fit(figures.tag_trees(wsj_train)))


@pytest.mark.slow
def test_l2_error_of_svta_and_cp(original):
    assert (original.n_states, len(original.singular_values())) == (114, 107)
    norm = original.norm()
    svta = [original.distance(original.truncate(n)) / norm for n in STATES]
    np.testing.assert_allclose(svta, [0.169, 0.123, 0.039, 0.013, 0.0022], rtol=0.15)
    for n, error in zip(STATES, svta, strict=True):
        rank = round(n**3 / (3 * original.n_states))
        cp = CPCompressor(original, rank, tol=1e-3, random_state=0).fit()
        assert original.distance(cp.wta_) / norm > 2 * error


@pytest.mark.slow
def test_svta_star_brackets_better(original, figures, wsj_dev):
    test = figures.tag_trees(wsj_dev)
    test = test[test.lengths <= 20]
    gamma = SVTAMinimizer(original, 1, gamma="max").fit().gamma_
    wins = 0
    for n in [8, *STATES]:
        scores = []
        for g in (None, gamma):
            model = SVTAMinimizer(original, n, gamma=g).fit()
            scores.append(bracketing_f1(test, model.predict(test)))
        wins += scores[1] >= scores[0]
    assert wins >= 4


@pytest.mark.slow
def test_svta_of_tags_is_the_grammar(original, figures, wsj_train):
    trees = figures.tag_trees(wsj_train)
    svta = original.minimize()
    sign, log = original.log_value(trees)
    svta_sign, svta_log = svta.log_value(trees)
    np.testing.assert_array_equal(sign, svta_sign)
    np.testing.assert_allclose(svta_log, log, rtol=0, atol=1e-8)
    values = original.singular_values()
    for gram in svta.gram_matrices():
        np.testing.assert_allclose(gram, np.diag(values), rtol=0, atol=1e-8 * values[0])


@pytest.mark.slow
def test_cost_at_211_states():
    import time
    import tracemalloc

    spec = importlib.util.spec_from_file_location(
        "svta_scaling", BENCHMARKS / "svta_scaling.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.sparse(np.random.default_rng(0), 10).minimize()
    wta = module.sparse(np.random.default_rng(0), 211)
    tracemalloc.start()
    begin = time.process_time()
    svta = wta.minimize()
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert svta.n_states == 211
    assert seconds <= 5
    assert peak <= 500e6


def test_bins_of_lengths_hold_sentences(figures):
    lengths = np.array([3, 17, 19, 33])
    assert figures.length_bins(lengths, 40) == [(0, 10), (10, 20), (30, 40)]
    assert figures.length_bins(lengths, 60) == [(0, 10), (10, 20), (30, 60)]
    assert figures.length_bins(lengths[:3], 20) == [(0, 10), (10, 20)]
    assert figures.length_bins(lengths[:1], 5) == [(0, 5)]
    assert figures.length_bins(lengths[:0], 2) == []
