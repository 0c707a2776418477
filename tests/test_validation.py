import numpy as np
import pytest
from sklearn.utils._param_validation import make_constraint

from lpcfg_sk import PCFG, WTA, PivotLPCFG, RareWords, Treebank
from lpcfg_sk._validation import N_JOBS, N_STATES
from lpcfg_sk.treebank import check_treebank


@pytest.mark.parametrize(
    ("constraints", "good", "bad"),
    [
        (N_JOBS, [None, 1, 4, -1, -2, np.int64(2)], [0, 1.5, "all"]),
        (N_STATES, [1, {"NP": 2}, max], [0, 2.5, None, "many"]),
    ],
)
def test_shared_constraints(constraints, good, bad):
    def accepted(value):
        return any(make_constraint(c).is_satisfied_by(value) for c in constraints)

    assert all(map(accepted, good))
    assert not any(map(accepted, bad))


def test_rows_without_a_tree_are_told_to_whoever_asks():
    rows = ["(S (A a) (B b))", ["a", "b"], ["b"]]
    message = r"PivotLPCFG needs trees here, but row 1 .* \(2 such rows\)"
    with pytest.raises(ValueError, match=message):
        PivotLPCFG().fit(rows)
    wta = WTA([1.0], [[[0.1]]], {"a": [1.0]})
    with pytest.raises(ValueError, match="WTA needs trees here"):
        wta.value(rows)


def test_only_a_learner_is_told_of_make_parser():
    wide = Treebank(["(S (A a) (B b) (C c))"])
    with pytest.raises(ValueError, match=r"or use make_parser\(PCFG\(\)\)"):
        PCFG().fit(wide)
    for asker in (RareWords(), "LPCFG"):
        with pytest.raises(ValueError, match=r"put a TreeBinarizer before it$"):
            check_treebank(wide, estimator=asker, binary=True)
    plain = Treebank(["(S (A a) (B b))"])
    with pytest.raises(ValueError, match=r"use make_parser\(PivotLPCFG\(\)\), or"):
        PivotLPCFG().fit(plain)
    with pytest.raises(ValueError, match="block; put InsideFeatures"):
        check_treebank(plain, estimator="asker", blocks=("inside",))
