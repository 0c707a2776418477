import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from lpcfg_sk import PCFG, SelfTrainingParser, ShardedTreebank, Treebank
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.treebank import concatenate

FLAT = ["(S (A x) (A x))", "(S (A x) (A y))"] * 4


def test_sentences_without_a_parse_are_counted_and_warned_of_once():
    X = Treebank([*FLAT, ["x"] * 3, ["x", "y"], ["y"] * 4])
    with pytest.warns(ParseFailureWarning, match="up to 2 sentences") as caught:
        parser = SelfTrainingParser(PCFG(), n_rounds=2).fit(X)
    assert len(caught) == 1
    assert parser.n_failed_ == [2, 2] and parser.n_automatic_ == [1, 1]


def test_methods_of_the_student():
    bare = SelfTrainingParser(PCFG()).fit(FLAT)
    assert len(bare.parse_kbest([["x", "y"]], 2)[0]) == 1
    assert len(bare.span_marginals([["x", "y"]], precise=False)) == 1
    assert len(bare.marginals([["x", "y"]], normalize=True)[0]) == 3
    assert bare.sentence_log_prob([["x", "y"]]).shape == (1,)
    assert bare.score_samples(FLAT).shape == (8,)
    assert len(bare.sample(3, random_state=0)) == 3


def test_a_tree_of_low_posterior_is_unsure(capsys):
    # x x x has the two trees (S (S x x) x) and (S x (S x x)), one of which is chosen.
    trees = [
        "(S (A x) (A x))",
        "(S (S (A x) (A x)) (A x))",
        "(S (A x) (S (A x) (A x)))",
    ]
    X = Treebank([*trees, ["x", "x", "x"], ["x", "x"]])
    options = {"min_confidence": 0.9, "verbose": 1}
    parser = SelfTrainingParser(PCFG(), **options).fit(X)
    assert parser.n_unsure_ == [1] and parser.n_automatic_ == [1]
    assert "parsed 2 of 2 sentences, 0 without a parse, 1 unsure" in (
        capsys.readouterr().err
    )
    weights = np.r_[np.ones(3), 0.5]
    expected = PCFG().fit([*trees, "(S (A x) (A x))"], sample_weight=weights)
    assert parser.student_.grammar_.to_frame().equals(expected.grammar_.to_frame())


def test_shards_of_trees_and_sentences(tmp_path):
    X = concatenate([Treebank(FLAT), Treebank([["x", "y"], ["y", "x"]])])
    X[:5].save(tmp_path / "0.tb")
    X[5:].save(tmp_path / "1.tb")
    shards = ShardedTreebank(tmp_path)
    np.testing.assert_array_equal(shards.is_parsed, X.is_parsed)
    one = SelfTrainingParser(PCFG()).fit(shards)
    two = SelfTrainingParser(PCFG()).fit(X)
    frames = [parser.student_.grammar_.to_frame() for parser in (one, two)]
    assert frames[0].equals(frames[1])


def test_no_tree_for_the_student():
    with pytest.raises(ValueError, match="no tree to fit its student to"):
        teacher = FrozenEstimator(PCFG().fit(FLAT))
        SelfTrainingParser(teacher).fit([["x"] * 3])
