import pytest

from lpcfg_sk import EMLPCFG, SpectralLPCFG, Treebank, make_parser
from lpcfg_sk.spectral import (
    tagged_sequences_to_treebank,
    treebank_to_tagged_sequences,
)

SENTENCES = [
    [("the", "DT"), ("dog", "NN"), ("barks", "VBZ")],
    [("yes", "UH")],
    [("a", "DT"), ("cat", "NN"), ("saw", "VBD"), ("the", "DT"), ("dog", "NN")],
]


def test_trees_branch_to_the_right():
    trees = tagged_sequences_to_treebank(SENTENCES)
    assert [str(tree) for tree in trees] == [
        "(DT> (DT the) (NN> (NN dog) (VBZ barks)))",
        "(UH yes)",
        "(DT> (DT a) (NN> (NN cat) (VBD> (VBD saw) (DT> (DT the) (NN dog)))))",
    ]
    # All columns, not only those that printing reads.
    assert trees == Treebank([str(tree) for tree in trees])
    for name in ("size", "parent", "start", "stop"):
        column = getattr(Treebank([str(tree) for tree in trees]), name)
        assert getattr(trees, name).tolist() == column.tolist()


def test_round_trip():
    trees = tagged_sequences_to_treebank(SENTENCES)
    assert treebank_to_tagged_sequences(trees) == SENTENCES
    assert treebank_to_tagged_sequences(Treebank(["(S (NP a) b)"])) == [
        [("a", "NP"), ("b", None)]
    ]
    assert treebank_to_tagged_sequences(tagged_sequences_to_treebank([])) == []


def test_labels_of_chains_are_new():
    tricky = [[("a", "N"), ("b", "N>"), ("c", "N>>"), ("d", "N")]]
    trees = tagged_sequences_to_treebank(tricky)
    assert len(set(trees.labels.strings)) == 2 * 3
    assert treebank_to_tagged_sequences(trees) == tricky


def test_long_sentence():
    sentence = [("w", "T")] * 100_000
    trees = tagged_sequences_to_treebank([sentence])
    assert trees.n_nodes == 199_999
    assert treebank_to_tagged_sequences(trees) == [sentence]


def test_bad_input_is_named():
    with pytest.raises(TypeError, match="sentence 1 holds 'dog'"):
        tagged_sequences_to_treebank([[("a", "B")], ["dog"]])
    with pytest.raises(TypeError, match=r"sentence 0 holds \('a', 3\)"):
        tagged_sequences_to_treebank([[("a", 3)]])
    with pytest.raises(ValueError, match="sentence 0 is empty"):
        tagged_sequences_to_treebank([[]])
    with pytest.raises(ValueError, match="without a tree"):
        treebank_to_tagged_sequences([["no", "tags"]])


def test_a_tagger_learns_what_the_context_says():
    """After a or b the word w is A or B: only a chain with memory can know."""
    sentences = [
        [("a", "X"), ("w", "A"), ("w", "A"), (".", "E")],
        [("b", "Y"), ("w", "B"), ("w", "B"), (".", "E")],
    ] * 20
    trees = tagged_sequences_to_treebank(sentences)
    tagger = make_parser(SpectralLPCFG(m=2)).fit(trees)
    words = [[word for word, _ in sentence] for sentence in sentences[:2]]
    assert treebank_to_tagged_sequences(tagger.predict(words)) == sentences[:2]


def test_other_learners_take_the_same_trees():
    trees = tagged_sequences_to_treebank(SENTENCES * 3)
    tagger = make_parser(EMLPCFG(m=2, max_iter=3, tol=None, random_state=0)).fit(trees)
    assert treebank_to_tagged_sequences(tagger.predict(trees)) == SENTENCES * 3
