import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lpcfg_sk import InsideFeatures, OutsideFeatures, Treebank, TreeBinarizer
from lpcfg_sk._kernels._columns import first_other_head
from lpcfg_sk.features import Node
from lpcfg_sk.testing import tree_checks
from tests.reference import features as reference

pytestmark = pytest.mark.kernels

TREES = [
    "(ROOT (S (NP (DT the) (JJ big) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat))"
    " (PP (IN in) (NP (NN town))))) (. .)))",
    "(ROOT (S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN dog)))))",
    "(X (UH yes))",
    "(ROOT (S (NP (DT the) (NN cat)) (VP (VBD ran) (ADVP (RB away))) (. .)))",
]
BOTH = [
    (InsideFeatures, "inside", reference.inside_features),
    (OutsideFeatures, "outside", reference.outside_features),
]


@pytest.fixture
def trees():
    return TreeBinarizer().fit_transform(Treebank(TREES))


def named_rows(block, names):
    return [
        set(names[block.indices[block.indptr[i] : block.indptr[i + 1]]])
        for i in range(block.shape[0])
    ]


@pytest.mark.parametrize(("cls", "block", "extract"), BOTH)
def test_every_node_has_the_features_of_the_templates(trees, cls, block, extract):
    features = cls()
    X = features.fit_transform(trees)
    names = features.get_feature_names_out()
    assert X.blocks[block].shape == (trees.n_nodes, len(names))
    assert len(set(names)) == len(names)
    assert named_rows(X.blocks[block], names) == reference.all_features(trees, extract)
    assert set(X.blocks[block].data) == {1.0}
    assert X == trees


@pytest.mark.parametrize(("cls", "block", "extract"), BOTH)
def test_unseen_features_are_ignored_whatever_the_ids(trees, cls, block, extract):
    # Another treebank numbers its symbols differently.
    train, test = trees[:2], trees[[3, 2, 1, 0]]
    test = pickle.loads(pickle.dumps(test))
    features = cls().fit(train)
    X = features.transform(test)
    names = features.get_feature_names_out()
    known = set(names)
    expected = [row & known for row in reference.all_features(test, extract)]
    assert named_rows(X.blocks[block], names) == expected
    assert any(row - known for row in reference.all_features(test, extract))


@pytest.mark.parametrize("cls", [InsideFeatures, OutsideFeatures])
def test_fit_then_transform_is_fit_transform(trees, cls):
    block = cls()._block
    one = cls(min_count=2, scaling=5.0).fit_transform(trees).blocks[block]
    two = cls(min_count=2, scaling=5.0).fit(trees).transform(trees).blocks[block]
    assert one.shape == two.shape
    assert (one != two).nnz == 0


def test_min_count_leaves_rare_features_out(trees):
    everything = InsideFeatures()
    counts = np.asarray(
        everything.fit_transform(trees).blocks["inside"].sum(axis=0)
    ).ravel()
    np.testing.assert_array_equal(counts, everything.counts_)
    names = everything.get_feature_names_out()
    frequent = InsideFeatures(min_count=2).fit(trees)
    np.testing.assert_array_equal(frequent.get_feature_names_out(), names[counts >= 2])
    assert 0 < frequent.n_features_out_ < len(names)


def test_scaling_divides_by_the_root_of_the_count(trees):
    features = OutsideFeatures(scaling=3.0)
    block = features.fit_transform(trees).blocks["outside"]
    expected = np.sqrt(trees.n_nodes / (features.counts_ + 3.0))
    np.testing.assert_allclose(block.data, expected[block.indices], rtol=1e-6, atol=0)


def word_shapes(node):
    if node.is_leaf:
        return [node.label, f"{node.word[0]}-", f"{node.word[0]}-"]
    return None


def first_token(node):
    return (node.label, node.tokens[node.start])


def test_callables_give_one_several_or_no_features(trees):
    features = InsideFeatures(templates=[word_shapes, "rule", first_token])
    X = features.fit_transform(trees)
    names = features.get_feature_names_out()
    rows = named_rows(X.blocks["inside"], names)
    for i, row in enumerate(rows):
        tree = int(np.searchsorted(trees.node_offsets, i, side="right")) - 1
        node = Node(trees, tree, i - int(trees.node_offsets[tree]))
        expected = {f"inside:first_token={first_token(node)}"}
        if node.is_leaf:
            expected |= {
                f"inside:word_shapes={node.label}",
                f"inside:word_shapes={node.word[0]}-",
            }
        else:
            expected.add(f"inside:rule={reference.production(node)}")
        assert row == expected
    # A feature named twice at a node has the value 2.
    assert X.blocks["inside"].max() == 2.0
    again = features.transform(trees)
    assert (again.blocks["inside"] != X.blocks["inside"]).nnz == 0


def test_min_count_counts_nodes(trees):
    def twice_at_leaves(node):
        return [node.label] * (2 if node.is_leaf else 1)

    once = InsideFeatures([lambda node: node.label], min_count=2).fit(trees)
    twice = InsideFeatures([twice_at_leaves], min_count=2).fit(trees)
    assert once.vocabularies_ == twice.vocabularies_
    np.testing.assert_array_equal(once.counts_, twice.counts_)


@pytest.mark.parametrize("cls", [InsideFeatures, OutsideFeatures])
@pytest.mark.parametrize("min_count", [1, 2])
def test_columns_are_sorted_by_the_ids_of_the_treebank(trees, cls, min_count):
    features = cls(min_count=min_count).fit(trees)
    assert features.productions_.labels.strings == trees.labels.strings
    assert features.productions_.words.strings == trees.words.strings
    productions = features.productions_
    ids = [
        tuple(map(trees.labels.index, productions.symbols(i)))
        for i in range(productions.n_rules)
    ]
    assert ids == sorted(set(ids))
    ids = [
        (trees.labels.index(a), trees.words.index(x))
        for a, x, _ in map(
            productions.symbols, range(productions.n_rules, len(productions))
        )
    ]
    assert ids == sorted(set(ids))
    for vocabulary in features.vocabularies_:
        assert np.all(np.diff(vocabulary) > 0)


@pytest.mark.parametrize("cls", [InsideFeatures, OutsideFeatures])
def test_chunks_of_memory_have_the_features_of_the_whole(trees, cls, monkeypatch):
    trees = trees[[0, 1, 2, 3] * 3]
    whole = cls(min_count=2, scaling=1.0)
    expected = whole.fit_transform(trees).blocks[whole._block]
    monkeypatch.setattr("lpcfg_sk.treebank._treebank._CHUNK_SIZE", 40)
    assert len(trees.chunk_offsets) > 3
    parts = clone(whole)
    found = parts.fit_transform(trees).blocks[whole._block]
    assert (found != expected).nnz == 0
    np.testing.assert_array_equal(parts.counts_, whole.counts_)
    assert list(parts.get_feature_names_out()) == list(whole.get_feature_names_out())


def test_node_knows_its_surroundings():
    trees = Treebank([["x", "y"], "(S (A a) (B (C c) (D d)))"])
    node = Node(trees, 1, 2)
    assert node.label == "B"
    assert (node.start, node.stop, node.n_words) == (1, 3, 2)
    assert node.word is None
    assert node.right.word == "d"
    assert node.parent.sibling is None
    assert node.sibling.label == "A"
    assert node.sibling.sibling.label == "B"
    assert node.left.left is None
    assert node.left.right is None
    assert node.words == node.tokens == ["a", "c", "d"]
    assert repr(node) == "<Node B 1:3 of tree 1>"


def test_sentences_without_trees_pass(trees):
    mixed = Treebank(["(S (A a) (B b))", ["a", "b", "c"], "(S (A b) (B a))"])
    X = InsideFeatures().fit_transform(OutsideFeatures().fit_transform(mixed))
    assert len(X) == 3
    assert X.blocks["inside"].shape[0] == X.n_nodes == 6
    plain = InsideFeatures().fit_transform(mixed[[0, 2]])
    assert (plain.blocks["inside"] != X.blocks["inside"]).nnz == 0
    features = InsideFeatures().fit(mixed)
    assert features.transform(mixed[[1]]).blocks["inside"].shape[0] == 0


@pytest.mark.parametrize("cls", [InsideFeatures, OutsideFeatures])
def test_bad_input_is_named(cls):
    binary = Treebank(["(S (A a) (B b))"])
    with pytest.raises(ValueError, match="no row of X has a tree"):
        cls().fit(Treebank([["a", "b"]]))
    with pytest.raises(ValueError, match="binary trees"):
        cls().fit(Treebank(["(S (A a) (B b) (C c))"]))
    with pytest.raises(ValueError, match="'suffix' is no template"):
        cls(templates=["rule", "suffix"]).fit(binary)
    with pytest.raises(ValueError, match="at least one template"):
        cls(templates=[]).fit(binary)
    with pytest.raises(ValueError, match="min_count"):
        cls(min_count=0).fit(binary)
    with pytest.raises(NotFittedError):
        cls().transform(binary)


def test_transformers_clone_and_pickle(trees):
    features = OutsideFeatures(["rule", "left"], min_count=2).fit(trees)
    copy = pickle.loads(pickle.dumps(features))
    one, two = (f.transform(trees).blocks["outside"] for f in (features, copy))
    assert (one != two).nnz == 0
    assert clone(features).get_params() == features.get_params()


def test_output_is_a_treebank_under_every_configuration(trees):
    with config_context(transform_output="pandas"):
        X = InsideFeatures().fit_transform(trees)
        assert isinstance(X, Treebank)
        assert isinstance(InsideFeatures().fit(trees).transform(trees), Treebank)
    assert not hasattr(InsideFeatures(), "set_output")


def test_first_other_head_walks_up(seed):
    rng = np.random.default_rng(seed)
    up = np.array([-1] + [rng.integers(0, i) for i in range(1, 60)])
    head = rng.integers(0, 3, size=60)
    up.flags.writeable = head.flags.writeable = False
    np.testing.assert_array_equal(
        first_other_head(up, head), reference.first_other_head(up, head)
    )


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pair
        for cls in (InsideFeatures, OutsideFeatures)
        for pair in tree_checks(
            cls(min_count=2), TreeBinarizer().fit_transform(Treebank(TREES * 3))
        )
    ],
)
def test_common_checks(name, check):
    check()
