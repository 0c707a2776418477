import copy
import pickle
import sys
import weakref

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import resample, shuffle
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.fixes import parse_version

import lpcfg_sk
from lpcfg_sk import Tree, Treebank
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.treebank import SymbolTable, concatenate

TEXTS = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "(S (NP (NNS cats)) (VP (VBP see) (NP (DT the) (NNS dogs)) (ADVP (RB now))))",
    "(FRAG (UH yes))",
    "(X yes)",
    "(S (NP a) b (VP (VP c) d))",
    "(X (X (X (X z))))",
]


@pytest.fixture
def treebank():
    return Treebank(TEXTS)


def test_columns_are_preorder(treebank):
    rows = treebank[0].draw()
    assert rows.splitlines()[0] == "S"
    np.testing.assert_array_equal(treebank.size[:6], [6, 3, 1, 1, 2, 1])
    np.testing.assert_array_equal(treebank.parent[:6], [-1, 0, 1, 1, 0, 4])
    np.testing.assert_array_equal(treebank.start[:6], [0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(treebank.stop[:6], [3, 2, 1, 2, 3, 3])
    assert treebank.node_offsets[1] == 6


@pytest.mark.parametrize("text", TEXTS)
def test_strings_trees_and_nltk_trees_agree(text):
    nltk = pytest.importorskip("nltk")
    from_text = Treebank([text])
    tree = from_text[0]
    assert str(tree) == text
    other = nltk.Tree.fromstring(text)
    assert Treebank([tree]) == from_text == Treebank([other])
    assert tree.to_nltk() == other
    assert tree.words() == other.leaves()


def test_mixed_rows_keep_their_order():
    rows = [TEXTS[0], ["no", "tree"], Tree.from_string(TEXTS[1]), TEXTS[2]]
    treebank = Treebank(rows)
    assert [str(t) for t in treebank] == [TEXTS[0], "no tree", TEXTS[1], TEXTS[2]]
    np.testing.assert_array_equal(treebank.is_parsed, [True, False, True, True])
    assert treebank[1].label is None
    assert treebank[1].children == ("no", "tree")
    assert Treebank(treebank.tolist()) == treebank


def test_given_tags_become_label_ids():
    treebank = Treebank([[("dogs", "NNS"), "bark"], ["x"]])
    assert treebank.labels[treebank.tag[0]] == "NNS"
    np.testing.assert_array_equal(treebank.tag[1:], [-1, -1])
    assert pickle.loads(pickle.dumps(treebank)) == treebank
    assert treebank[:1] != Treebank([["dogs", "bark"]])


@pytest.mark.parametrize(
    "key",
    [
        slice(1, 4),
        slice(None, None, -1),
        slice(0, 5, 2),
        [3, 0, 0],
        np.array([5, -1]),
        np.array([True, False, True, True, False, False]),
        [],
        np.array([], dtype=int),
    ],
    ids=str,
)
def test_rows_by_any_key(treebank, key):
    trees = np.empty(len(treebank), dtype=object)
    trees[:] = treebank.tolist()
    expected = trees[key] if len(np.atleast_1d(key)) or isinstance(key, slice) else []
    for form in (key, (key, ...)):
        part = treebank[form]
        assert isinstance(part, Treebank)
        assert part.tolist() == list(expected)
        assert part == Treebank(list(expected))
        assert part.shape == (len(expected),)


@pytest.mark.parametrize("row", [0, -1, np.int64(2), np.int32(-6), np.array(3)])
def test_one_row_is_a_tree(treebank, row):
    assert treebank[row] == treebank[row, ...] == treebank.tolist()[row]
    assert isinstance(treebank[row], Tree)


@pytest.mark.parametrize(
    "key",
    [
        6,
        -7,
        [0, 6],
        (0, 1),
        (0, ..., 0),
        "S",
        1.0,
        [0.5],
        np.zeros(5, bool),
        [[0, 1]],
        (),
        (0,),
        np.array(True),
    ],
    ids=str,
)
def test_wrong_keys_are_index_errors(treebank, key):
    with pytest.raises(IndexError):
        treebank[key]


def test_contiguous_slices_share_memory(treebank):
    part = treebank[1:4]
    for name in ("label", "size", "parent", "start", "stop", "token", "word"):
        assert np.shares_memory(getattr(part, name), getattr(treebank, name))
    assert part.labels is treebank.labels


def test_columns_are_read_only(treebank):
    with pytest.raises(ValueError, match="read-only"):
        treebank.label[0] = 3


def test_blocks_travel_with_their_nodes(treebank):
    n = treebank.n_nodes
    dense = np.arange(2 * n, dtype=float).reshape(n, 2)
    sparse = scipy.sparse.csr_matrix(np.eye(n))
    tall = treebank.replace(blocks={"vectors": dense, "inside": sparse})
    part = tall[[3, 1]]
    lo, hi = treebank.node_offsets[1:3]
    first = treebank.node_offsets[3]
    np.testing.assert_array_equal(part.vectors[0], dense[first])
    np.testing.assert_array_equal(part.vectors[1:], dense[lo:hi])
    np.testing.assert_array_equal(
        part.blocks["inside"].toarray()[1:, lo:hi], np.eye(hi - lo)
    )
    joined = concatenate([tall[:2], tall[2:]])
    np.testing.assert_array_equal(joined.vectors, dense)
    with pytest.raises(ValueError, match="rows"):
        treebank.replace(blocks={"vectors": dense[1:]})
    with pytest.raises(AttributeError, match="transform"):
        _ = treebank.vectors


def test_pickle_of_a_slice_is_small_and_canonical(treebank):
    many = concatenate([treebank] * 500)
    one = many[[1]]
    assert len(pickle.dumps(one)) < 2_000 < len(pickle.dumps(many))
    alone = Treebank([TEXTS[1]])
    assert joblib.hash(one) == joblib.hash(alone) == joblib.hash(many[7:8])
    assert joblib.hash(one) != joblib.hash(many[[0]])
    back = pickle.loads(pickle.dumps(many))
    assert back == many
    assert back.words is back.tokens


def test_fitted_vocabulary_survives_pickling(treebank):
    words = SymbolTable(["UNK", "dog"], backoff=[0, 0])
    word = np.zeros(treebank.n_tokens, dtype=np.int32)
    mapped = treebank.replace(word=word, words=words)
    back = pickle.loads(pickle.dumps(mapped[:1]))
    assert back.words == words
    np.testing.assert_array_equal(back.word, 0)
    assert back.sentences() == treebank[:1].sentences()


def test_equality_goes_by_strings_not_ids(treebank):
    backwards = Treebank(TEXTS[::-1])[::-1]
    assert backwards.labels.strings != treebank.labels.strings
    assert backwards == treebank
    assert hash(backwards) == hash(treebank)
    assert treebank != Treebank([*TEXTS[:-1], "(X (X (X (Y z))))"])
    assert treebank != Treebank([*TEXTS[:-1], "(X (X (X (X y))))"])
    assert treebank != TEXTS


def test_weakref_size_copy(treebank):
    assert weakref.ref(treebank)() is treebank
    assert sys.getsizeof(treebank) > treebank.nbytes > 0
    assert copy.deepcopy(treebank) == treebank == copy.copy(treebank)
    assert not hasattr(treebank, "fit")
    assert not hasattr(treebank, "iloc")
    assert not hasattr(treebank, "__array__")


def test_treebanks_are_immutable(treebank):
    treebank = treebank.replace(blocks={"ids": np.arange(treebank.n_nodes)})
    for name in ("labels", "blocks", "unheard_of"):
        with pytest.raises(AttributeError, match=f"{name!r} cannot be set.*replace"):
            setattr(treebank, name, ())
    with pytest.raises(AttributeError, match="'labels' cannot be deleted"):
        del treebank.labels
    for mapping in (treebank.blocks, treebank.block_names):
        with pytest.raises(TypeError):
            mapping["ids"] = 1
    for copied in (
        Treebank(treebank),
        copy.copy(treebank),
        copy.deepcopy(treebank),
        pickle.loads(pickle.dumps(treebank)),
        treebank[:],
    ):
        assert copied == treebank
        np.testing.assert_array_equal(copied.blocks["ids"], treebank.blocks["ids"])


def test_given_blocks_are_not_kept_by_reference(treebank):
    blocks = {"ids": np.arange(treebank.n_nodes)}
    tall = treebank.replace(blocks=blocks)
    blocks["more"] = blocks["ids"]
    assert list(tall.blocks) == ["ids"]


def test_arrays_hold_whole_trees(treebank):
    for made in (
        np.asarray(treebank),
        np.asarray(treebank, dtype=object),
        np.array(treebank.tolist(), dtype=object),
        np.concatenate([treebank[:2], treebank[2:]]),
        pd.Series(treebank).to_numpy(),
    ):
        assert made.shape == (len(treebank),)
        assert made.tolist() == treebank.tolist()
    assert np.asarray(treebank[:0]).shape == (0,)
    assert np.asarray(treebank[0]).shape == ()
    assert np.asarray(treebank[0]).item() == treebank[0]
    with pytest.raises(TypeError, match="dtype object"):
        np.asarray(treebank[0], dtype=float)
    with pytest.raises(ValueError, match="without a copy"):
        treebank[0].__array__(copy=False)


def test_tables_are_no_treebanks():
    frame = pd.DataFrame({"tree": ["(S (A a))"]})
    with pytest.raises(TypeError, match=r"DataFrame.*pass the column"):
        Treebank(frame)
    assert Treebank(frame["tree"]) == Treebank(["(S (A a))"])


@pytest.mark.parametrize("trees", [["the dog"], [["the"], "dog"], ["", " the\tdog "]])
def test_a_string_is_a_sentence(trees):
    sentences = [t.split() if isinstance(t, str) else t for t in trees]
    assert Treebank(trees).sentences() == sentences
    assert not Treebank(trees).is_parsed.any()


def test_strings_of_one_word_each_look_like_a_mistake():
    with pytest.warns(TreebankWarning, match=r"\['the dog'\]") as caught:
        Treebank(["the", "dog"])
    assert caught[0].filename == __file__


def test_to_frame_has_a_row_a_node(treebank):
    frame = treebank.to_frame()
    assert len(frame) == treebank.n_nodes
    assert frame["token"].dropna().tolist() == [
        word for sentence in treebank.sentences() for word in sentence
    ]
    assert frame["label"].isna().sum() == 2


def test_empty_treebank():
    empty = Treebank([])
    assert len(empty) == 0
    assert not empty
    assert empty.sentences() == empty.tolist() == []
    assert pickle.loads(pickle.dumps(empty)) == empty
    assert len(empty.to_frame()) == 0
    assert concatenate([empty, Treebank(TEXTS)]) == Treebank(TEXTS)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ("(S (NP a))", "wrap it in a list"),
        (3, "iterable"),
        ([3], "item 0 is a int"),
        ([TEXTS[0], {"a": 1}], "item 1 is a dict"),
        ([["a", 3]], "item 0"),
    ],
)
def test_what_is_no_tree_is_refused(trees, message):
    with pytest.raises(TypeError, match=message):
        Treebank(trees)


def test_deep_and_wide_objects_need_no_stack():
    depth = 100_000
    deep = "(X " * depth + "(Y z)" + ")" * depth
    treebank = Treebank([deep])
    tree = treebank[0]
    assert str(tree) == deep
    assert tree == Treebank([tree])[0]
    assert hash(tree) == hash(pickle.loads(pickle.dumps(tree)))
    node = tree
    for _ in range(depth):
        node = node.children[0]
    assert node.label == "Y"
    wide = Tree("X", [Tree("Y", ["z"])] * 50_000)
    assert len(Treebank([wide])[0].children) == 50_000


class Lengths(TransformerMixin, BaseEstimator):
    """Passes treebanks through, noting what it was given."""

    def fit(self, X, y=None):
        assert isinstance(X, Treebank)
        self.n_trees_ = len(X)
        return self

    def transform(self, X):
        return X


class MeanLength(BaseEstimator):
    """Scores by closeness to the mean length of the training trees."""

    def __init__(self, shrink=0.0):
        self.shrink = shrink

    def fit(self, X, y=None, *, sample_weight=None):
        assert isinstance(X, Treebank)
        self.mean_ = np.average(X.lengths, weights=sample_weight) * (1 - self.shrink)
        return self

    def score(self, X, y=None, *, sample_weight=None):
        assert isinstance(X, Treebank)
        error = np.abs(X.lengths - self.mean_)
        return -float(np.average(error, weights=sample_weight))


def test_scikit_learn_slices_treebanks(treebank):
    X = concatenate([treebank] * 4)
    pipe = Pipeline([("pass", Lengths()), ("last", MeanLength())])
    reference = cross_val_score(pipe, X, cv=3)
    assert len(reference) == 3
    train, test = train_test_split(X, random_state=0)
    assert isinstance(train, Treebank)
    assert len(train) + len(test) == len(X)
    assert isinstance(shuffle(X, random_state=0), Treebank)
    assert isinstance(resample(X, random_state=0), Treebank)
    assert _safe_indexing(X, 3) == X[3]
    learning_curve(pipe, X, None, cv=2, train_sizes=[0.5, 1.0])
    grid = {"last__shrink": [0.0, 0.5]}
    one = GridSearchCV(pipe, grid, cv=3).fit(X)
    two = GridSearchCV(pipe, grid, cv=3, n_jobs=2).fit(X)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    assert clone(pipe).fit(X).score(X) == pipe.fit(X).score(X)


@pytest.mark.xfail(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    raises=UnsetMetadataPassedError,
    reason="older searches do not route weights to the score of a Pipeline's last step",
    strict=False,
)
def test_metadata_routing_slices_weights(treebank):
    X = concatenate([treebank] * 4)
    with sklearn.config_context(enable_metadata_routing=True):
        last = (
            MeanLength()
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        search = GridSearchCV(
            Pipeline([("pass", Lengths()), ("last", last)]),
            {"last__shrink": [0.0, 0.5]},
            cv=GroupKFold(n_splits=2),
        )
        search.fit(
            X,
            sample_weight=np.arange(len(X)) + 1.0,
            groups=np.arange(len(X)) % 4,
        )
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipeline_memory_recognises_equal_treebanks(treebank, tmp_path):
    memory = joblib.Memory(tmp_path, verbose=0)
    calls = []

    @memory.cache(ignore=["log"])
    def count(X, log):
        log.append(1)
        return len(X)

    assert count(treebank, calls) == count(Treebank(TEXTS), calls) == len(TEXTS)
    assert len(calls) == 1


def test_importing_the_package_is_quick_and_compiles_nothing():
    import subprocess

    code = (
        "import sys, time; t = time.process_time(); import lpcfg_sk; "
        "assert 'numba' not in sys.modules; print(time.process_time() - t)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert float(out.stdout) < 1.5


@pytest.mark.parametrize("name", lpcfg_sk.__all__)
def test_every_public_name_resolves(name):
    assert getattr(lpcfg_sk, name) is not None
    assert name in dir(lpcfg_sk)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = lpcfg_sk.nope
