import numpy as np
import pytest

from lpcfg_sk import Treebank, TreeBinarizer
from lpcfg_sk.treebank import delexicalize

TREES = ["(S (NP (DT the) (NN dog)) (VBZ barks))", "(FRAG (NN dog))", "(UH oh)"]


def test_words_become_tags():
    X = Treebank(TREES)
    tags = delexicalize(X)
    assert tags.sentences() == [t.tags() for t in X]
    assert str(tags[0]) == "(S (NP (DT DT) (NN NN)) (VBZ VBZ))"
    assert set(tags.tokens) == {"DT", "NN", "VBZ", "UH"}
    assert tags.words == tags.tokens
    np.testing.assert_array_equal(tags.word, tags.token)
    for column in ("label", "size", "parent", "start", "stop", "node_offsets"):
        np.testing.assert_array_equal(getattr(tags, column), getattr(X, column))
    assert delexicalize(tags) == tags
    assert X == Treebank(TREES)


def test_rows_without_trees_use_given_tags():
    X = Treebank(TREES)
    ids = X.label[X.size == 1]
    mixed = X.unparsed().replace(tag=ids)
    assert delexicalize(mixed).sentences() == delexicalize(X).sentences()
    assert not delexicalize(mixed).is_parsed.any()


def test_trees_and_tagged_rows_together():
    X = Treebank([TREES[0], ["dog", "oh"], TREES[2]])
    tag = np.full(X.n_tokens, -1)
    tag[3], tag[4] = X.labels.index("NN"), X.labels.index("UH")
    assert delexicalize(X.replace(tag=tag)).sentences() == [
        ["DT", "NN", "VBZ"],
        ["NN", "UH"],
        ["UH"],
    ]


def test_features_of_words_do_not_survive():
    X = Treebank(TREES)
    X = X.replace(blocks={"vectors": np.ones((X.n_nodes, 2))})
    assert delexicalize(X).blocks == {}


def test_no_rows():
    assert len(delexicalize(Treebank([]))) == 0


def test_words_without_tags():
    with pytest.raises(ValueError, match="'oh' of row 1, which has no tree"):
        delexicalize(Treebank([TREES[0], ["oh"]]))
    with pytest.raises(ValueError, match="'cat' of tree 1 has siblings"):
        delexicalize(Treebank([TREES[0], "(S (DT the) cat)"]))
    with pytest.raises(ValueError, match="before binarisation"):
        delexicalize(TreeBinarizer().fit_transform(Treebank(TREES)))


def test_corpus(wsj_dev):
    tags = delexicalize(wsj_dev)
    assert len(tags.tokens) < 50
    assert tags.sentences()[:20] == [t.tags() for t in wsj_dev[:20]]
