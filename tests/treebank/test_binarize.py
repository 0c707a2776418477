"""TreeBinarizer as an estimator, and on whole corpora."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from lpcfg_sk import RareWords, Treebank, TreeBinarizer
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import decode_label, decode_table, head_token, unbinarize

TREES = [
    "(ROOT (S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ barks)) (. .)))",
    "(ROOT (S (NP (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat)))))",
    "(ROOT (NP (NN dog)))",
    "(ROOT (S (NP (NN cat)) (VP (VBZ sleeps)) here (. .)))",
] * 3

SETTINGS = list(itertools.product(("right", "left", "head"), (0, 1, 2, None), (1, 2)))
CHECKS = dict(tree_checks(TreeBinarizer(horizontal=1), Treebank(TREES)))


@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


@pytest.mark.parametrize(
    "corpora", [("wsj_train", "wsj_dev"), ("gum_train", "gum_dev")]
)
def test_every_tree_of_every_corpus_comes_back(corpora, request):
    train, dev = map(request.getfixturevalue, corpora)
    for direction, horizontal, vertical in SETTINGS:
        binarizer = TreeBinarizer(direction, horizontal=horizontal, vertical=vertical)
        binarizer.fit(train)
        for treebank in (train, dev):
            binary = binarizer.transform(treebank)
            assert binarizer.inverse_transform(binary) == treebank
            leaf = binary.size == 1
            assert not set(binary.label[leaf]) & set(binary.label[~leaf])
            assert binary.n_nodes == 2 * binary.n_tokens - len(binary)


def test_size_of_the_grammar(wsj_train):
    binary = TreeBinarizer().fit_transform(wsj_train)
    left = np.flatnonzero(binary.size > 1) + 1
    right = left + binary.size[left]
    rules = np.stack([binary.label[left - 1], binary.label[left], binary.label[right]])
    assert len(np.unique(rules[0])) == 82
    assert len(np.unique(binary.label[binary.size == 1])) == 147
    assert len(np.unique(rules, axis=1).T) == 2666
    assert not any("~" in label for label in binary.labels)


def test_size_of_the_grammar_with_fewer_labels(wsj_train):
    # Counts of a program that drops the unlabelled root, repeated labels of a chain
    # and the second of two alternatives (PRT|ADVP), all of which an inverse needs.
    binary = TreeBinarizer().fit_transform(wsj_train)
    names = []
    for label in binary.labels:
        intermediate, chain = decode_label(label)
        chain = [x.split("|")[0] for x in chain if x != "ROOT"]
        chain = [x for x, _ in itertools.groupby(chain)]
        names.append((intermediate, *(chain[-1:] if intermediate else chain)))
    label = np.array([names.index(x) for x in names])[binary.label]
    left = np.flatnonzero(binary.size > 1) + 1
    rules = label[np.stack([left - 1, left, left + binary.size[left]])]
    assert len(np.unique(rules[0])) == 68
    assert len(np.unique(label[binary.size == 1])) == 138
    assert len(np.unique(rules, axis=1).T) == 2528


@pytest.mark.parametrize("direction", ["right", "left", "head"])
def test_heads_of_a_corpus_survive(wsj_dev, direction):
    binary = TreeBinarizer(direction, horizontal=1).fit_transform(wsj_dev)
    of_a_node = ~decode_table(binary.labels).intermediate[binary.label]

    def heads(treebank, chosen):
        tree = np.repeat(np.arange(len(treebank)), np.diff(treebank.node_offsets))
        columns = (tree, treebank.start, treebank.stop, head_token(treebank))
        return set(zip(*(c[chosen].tolist() for c in columns), strict=True))

    assert heads(binary, of_a_node) == heads(wsj_dev, np.full(wsj_dev.n_nodes, True))


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    ("direction", "vertical"), [("right", 1), ("left", 3), ("head", 2)]
)
def test_a_tree_100000_deep(direction, vertical):
    n = 100_000
    unary = Treebank(["(X " * n + "(Y w)" + ")" * n])
    nested = Treebank(["(X (A a) " * n + "(A a)" + " (A a))" * n])
    binarizer = TreeBinarizer(direction, vertical=vertical)
    for treebank in (unary, nested):
        binary = binarizer.fit_transform(treebank)
        assert binary.n_nodes == 2 * treebank.n_tokens - 1
        assert unbinarize(binary) == treebank


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("direction", ["right", "left", "head"])
def test_a_node_with_50000_children(direction):
    n = 50_000
    treebank = Treebank(["(NP " + "(DT a) (NN b) " * (n // 2) + ")"])
    for horizontal in (0, 2):
        binarizer = TreeBinarizer(direction, horizontal=horizontal)
        binary = binarizer.fit_transform(treebank)
        assert binary.n_nodes == 2 * n - 1
        assert unbinarize(pickle.loads(pickle.dumps(binary))) == treebank
    with pytest.raises(ValueError, match=r"horizontal=None .* smaller horizontal"):
        TreeBinarizer(direction, horizontal=None).fit_transform(treebank)


@pytest.mark.slow_without_jit
def test_endless_vertical_memory_is_refused():
    treebank = Treebank(["(X (A a) " * 20_000 + "(A a)" + ")" * 20_000])
    assert unbinarize(TreeBinarizer(vertical=50).fit_transform(treebank)) == treebank
    with pytest.raises(ValueError, match="vertical=20000"):
        TreeBinarizer(vertical=20_000).fit_transform(treebank)


def test_all_siblings_are_remembered_up_to_a_limit():
    treebank = Treebank(["(NP " + "(NN b) " * 1000 + ")"])
    binary = TreeBinarizer(horizontal=None).fit_transform(treebank)
    assert max(map(len, binary.labels)) == len("@NP") + 998 * len("|NN")
    assert unbinarize(binary) == treebank


def test_rare_memories_are_forgotten_from_the_oldest_on():
    wide = "(NP (DT a) (JJ b) (JJ c) (NN d))"
    treebank = Treebank([wide] * 3 + ["(NP (RB a) (JJ b) (JJ c) (NN d))"])
    names = {}
    for least in (1, 2, 4, 5):
        binarizer = TreeBinarizer(horizontal=2, memory_min_count=least).fit(treebank)
        binary = binarizer.transform(treebank)
        assert binarizer.inverse_transform(binary) == treebank
        names[least] = sorted(x for x in binary.labels if x.startswith("@"))
    assert names[1] == ["@NP|DT", "@NP|DT|JJ", "@NP|RB", "@NP|RB|JJ"]
    assert names[2] == ["@NP", "@NP|DT", "@NP|DT|JJ"]
    # Three nodes of @NP|DT|JJ and one of @NP|RB|JJ are four of @NP|JJ.
    assert names[4] == ["@NP", "@NP|JJ"]
    assert names[5] == ["@NP"]
    new = Treebank(["(NP (NN a) (JJ b) (NN c))", "(NP (DT a) (JJ b) (NN c))"])
    binarizer = TreeBinarizer(horizontal=1, memory_min_count=3).fit(treebank)
    first, second = map(str, binarizer.transform(new))
    assert first == "(NP (NN a) (@NP (JJ b) (NN c)))"
    assert second == "(NP (DT a) (@NP|DT (JJ b) (NN c)))"


def test_frequent_memories_of_a_corpus(wsj_train):
    full = TreeBinarizer(horizontal=2).fit_transform(wsj_train)
    binarizer = TreeBinarizer(horizontal=2, memory_min_count=50)
    binary = binarizer.fit_transform(wsj_train)
    assert binarizer.inverse_transform(binary) == wsj_train
    counts = np.bincount(binary.label, minlength=len(binary.labels))
    remembers = np.array([x.startswith("@") and "|" in x for x in binary.labels])
    assert counts[remembers].min() >= 50
    assert set(np.array(binary.labels)[remembers]) == binarizer.memories_
    assert len(binary.labels) < len(full.labels) / 3


def test_the_same_label_in_both_roles_is_told_apart():
    train = Treebank(
        ["(S (X a) (X b))", "(S (X a) (X (NN b) (NN c)))", "(S (NN c) (NP (X d)))"]
    )
    binarizer = TreeBinarizer().fit(train)
    assert binarizer.preterminals_ == {"X", "NN"}
    binary = binarizer.transform(train)
    assert [str(t) for t in binary] == [
        "(S (X a) (X b))",
        "(S (X a) (X~ (NN b) (NN c)))",
        "(S (NN c) (NP+X d))",
    ]
    new = Treebank(["(S (S a) (NN (Q (NN a) (NN b))))", "(Q (Q a) (NN (NN a) (NN b)))"])
    assert [str(t) for t in binarizer.transform(new)] == [
        "(S (S~ a) (NN+Q (NN a) (NN b)))",
        "(Q (Q~ a) (NN~ (NN a) (NN b)))",
    ]
    assert unbinarize(binarizer.transform(new)) == new


def test_a_slip_of_the_annotator_marks_the_slip_only():
    trees = ["(S (NN a) (NN b))"] * 9 + ["(S (NN (NN a) (NN b)) (NN c))"]
    binary = TreeBinarizer().fit_transform(Treebank(trees))
    assert str(binary[0]) == trees[0]
    assert str(binary[9]) == "(S (NN~ (NN a) (NN b)) (NN c))"


def test_sentences_without_trees_pass():
    mixed = Treebank(
        ["(S (A+B a) (B b) (C c))", ["a", "b"], [("a", "A+B"), ("b", "S")]]
    )
    binarizer = TreeBinarizer().fit(mixed)
    binary = binarizer.transform(mixed)
    assert binary.is_parsed.tolist() == [True, False, False]
    assert [binary.labels[i] for i in binary.tag[-2:]] == ["A\\+B", "S~"]
    assert (binary.tag[:-2] == -1).all()
    assert binary.sentences() == mixed.sentences()
    assert binarizer.inverse_transform(binary) == mixed
    only_words = Treebank([["a"], ["b", "c"]])
    assert TreeBinarizer().fit(only_words).transform(only_words) == only_words


def test_words_stay_and_blocks_go():
    treebank = RareWords(min_count=3).fit_transform(Treebank(TREES))
    tall = treebank.replace(blocks={"vectors": np.zeros((treebank.n_nodes, 2))})
    binary = TreeBinarizer().fit_transform(tall)
    assert binary.blocks == {}
    assert binary.words is treebank.words
    np.testing.assert_array_equal(binary.word, treebank.word)
    restored = unbinarize(binary.replace(blocks={"a": np.zeros((binary.n_nodes, 1))}))
    assert restored.blocks == {}
    np.testing.assert_array_equal(restored.word, treebank.word)


def test_binarised_trees_are_binarised_anew():
    treebank = Treebank(TREES)
    left = TreeBinarizer("left", horizontal=2).fit_transform(treebank)
    right = TreeBinarizer().fit_transform(treebank)
    assert TreeBinarizer().fit_transform(left) == right
    assert TreeBinarizer().fit(treebank).transform(right) == right
    assert unbinarize(unbinarize(right)) == treebank


def test_rows_do_not_depend_on_their_neighbours():
    treebank = Treebank(TREES)
    binarizer = TreeBinarizer("head", horizontal=1, vertical=2).fit(treebank)
    binary = binarizer.transform(treebank)
    assert [binarizer.transform(treebank[[i]])[0] for i in range(4)] == binary[
        :4
    ].tolist()


def test_parameters_pickle_and_pipeline():
    binarizer = TreeBinarizer("head", horizontal=None, head_rules={"S": ("left", [])})
    assert clone(binarizer).get_params() == binarizer.get_params()
    fitted = pickle.loads(pickle.dumps(binarizer.fit(Treebank(TREES))))
    assert fitted.transform(TREES) == binarizer.transform(TREES)
    pipeline = make_pipeline(TreeBinarizer(), RareWords(min_count=2))
    pipeline.set_params(treebinarizer__direction="left")
    assert pipeline.fit(TREES).transform(TREES).binarized
    assert not hasattr(TreeBinarizer(), "set_output")


@pytest.mark.parametrize(
    "params",
    [
        {"direction": "up"},
        {"horizontal": -1},
        {"horizontal": 1.5},
        {"memory_min_count": 0},
        {"vertical": 0},
        {"head_rules": "english"},
    ],
)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match=f"The {next(iter(params))!r} parameter"):
        TreeBinarizer(**params).fit(Treebank(TREES))


def test_not_fitted():
    with pytest.raises(NotFittedError):
        TreeBinarizer().transform(Treebank(TREES))
