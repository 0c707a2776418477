"""Workers of a cluster open the shards themselves: the same bytes as here."""

import numpy as np
import pytest
from sklearn.base import clone

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    MarginEMPCFG,
    ShardedTreebank,
    SpectralLPCFG,
    make_parser,
)
from lpcfg_sk.datasets import load_toy

pytestmark = pytest.mark.slow_without_jit

TREES = load_toy(120)


@pytest.fixture(scope="module")
def X(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i in range(4):
        TREES[30 * i : 30 * i + 30].save(folder / f"{i}.tb")
    return ShardedTreebank(folder)


LEARNERS = {
    "pcfg": make_parser(PCFG()),
    "em": make_parser(EMLPCFG(2, max_iter=3, tol=None, random_state=0)),
    "spectral": make_parser(SpectralLPCFG(2)),
    "margin": MarginEMPCFG(),
}


def parameters(learner, X):
    learner = clone(learner).fit(X)
    if isinstance(learner, MarginEMPCFG):
        return [learner.theta_.to_numpy()]
    return list(learner[-1].grammar_.arrays)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_cluster_gives_the_bytes_of_one_core(on_cluster, X, name):
    with on_cluster():
        found = parameters(LEARNERS[name], X)
    for one, two in zip(found, parameters(LEARNERS[name], X), strict=True):
        assert one.tobytes() == two.tobytes()


def test_sentences_are_counted_by_the_workers(on_cluster, tmp_path):
    rows = TREES.unparsed()
    short = rows[rows.lengths < 8]
    for i in range(3):
        short[i::3].save(tmp_path / f"{i}.tb")
    X = ShardedTreebank(tmp_path)
    model = MarginEMPCFG(CFG.from_treebank(TREES), max_iter=2, tol=0.0)
    with on_cluster(), pytest.warns(UserWarning, match="did not converge"):
        found = clone(model).fit(X)
    with pytest.warns(UserWarning, match="did not converge"):
        expected = model.fit(X)
    assert found.theta_.to_numpy().tobytes() == expected.theta_.to_numpy().tobytes()
    assert np.array_equal(found.log_losses_, expected.log_losses_)
