"""Treebanks in several files, and what learns from them."""

import os
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    PCFG,
    InsideFeatures,
    MarginEMPCFG,
    PivotLPCFG,
    RareWords,
    ShardedTreebank,
    SpectralLPCFG,
    Treebank,
    TreebankFormatError,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.treebank import RuleIndex
from tests.tolerances import EXACT, SUM

pytestmark = [
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning"),
    pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ConvergenceWarning"),
]

TREES = load_toy(80)
BOUNDS = (0, 30, 31, 60, 80)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for begin, end in pairwise(BOUNDS):
        TREES[begin:end].save(folder / f"{begin:03d}.tb")
    return folder


@pytest.fixture(scope="module")
def X(folder):
    return ShardedTreebank(folder)


@pytest.fixture
def few_entries(monkeypatch):
    """Features of all but rare nonterminals are read part by part."""
    monkeypatch.setattr("lpcfg_sk.spectral._decomposition._MOST_ENTRIES", 2000)
    monkeypatch.setattr("lpcfg_sk.spectral._decomposition._PART_ENTRIES", 1500)


def arrays(learner):
    return learner.grammar_.arrays._asdict()


def assert_same_grammar(one, two, rtol):
    assert one.grammar_.nonterminals == two.grammar_.nonterminals
    assert one.grammar_.words == two.grammar_.words
    assert one.binarized_ == two.binarized_
    for name, array in arrays(one).items():
        assert_allclose(arrays(two)[name], array, rtol=rtol, atol=rtol)


# -- the container -----------------------------------------------------------------


def test_rows_are_those_of_the_files_in_order(X):
    assert len(X) == 80
    assert X.shape == (80,)
    assert X.n_shards == 4
    assert X.offsets.tolist() == list(BOUNDS)
    assert X.load() == TREES
    assert [str(t) for t in X] == [str(t) for t in TREES]
    for row in (0, 29, 30, 31, 79, -1, np.int64(7)):
        assert X[row] == TREES[row]
    assert X[5, ...] == TREES[5]
    for row in (80, -81):
        with pytest.raises(IndexError, match="row"):
            X[row]


@pytest.mark.parametrize(
    "key",
    [
        slice(25, 45),
        slice(None, None, 7),
        slice(70, 8, -11),
        slice(3, 3),
        [5, 4, 79, 4],
        np.arange(80) % 3 == 0,
        (np.array([50, 2, 51]), ...),
    ],
    ids=repr,
)
def test_subsets_are_sharded_again(X, key):
    part = X[key]
    assert isinstance(part, ShardedTreebank)
    assert part.load() == TREES[key]
    assert part[1:].load() == TREES[key][1:]
    assert len(part) == len(TREES[key])


@pytest.mark.parametrize("key", [(1, 2), "a", 1.5, [[1]], np.ones(3, bool)], ids=repr)
def test_other_keys_are_refused(X, key):
    with pytest.raises(IndexError):
        X[key]


def test_it_pickles_as_names(X):
    data = pickle.dumps(X[10:20])
    assert len(data) < 2000
    assert pickle.loads(data).load() == TREES[10:20]


def test_bracketed_files_are_shards_too(tmp_path, folder):
    TREES[:9].write(tmp_path / "a.mrg")
    TREES[9:20].save(tmp_path / "b.tb")
    X = ShardedTreebank([tmp_path / "a.mrg", tmp_path / "b.tb"])
    assert X.load() == TREES[:20]
    assert ShardedTreebank(folder / "000.tb").load() == TREES[:30]


def test_what_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ends in \.tb"):
        ShardedTreebank(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no\.tb"):
        ShardedTreebank([tmp_path / "no.tb"])
    with pytest.raises(ValueError, match="at least one file"):
        ShardedTreebank([])
    TREES[:3].save(tmp_path / "a.tb")
    data = bytearray((tmp_path / "a.tb").read_bytes())
    data[-100] ^= 255
    (tmp_path / "a.tb").write_bytes(data)
    with pytest.raises(TreebankFormatError, match="checksum"):
        ShardedTreebank(tmp_path)
    assert len(ShardedTreebank(tmp_path, verify=False)) == 3


def test_an_error_names_the_shard(tmp_path):
    TREES[:3].save(tmp_path / "a.tb")
    with pytest.raises(ValueError, match="TreeBinarizer") as caught:
        PCFG().fit(ShardedTreebank(tmp_path))
    assert any("a.tb" in note for note in caught.value.__notes__)


# -- preprocessing -----------------------------------------------------------------


def test_transformers_learn_what_they_learn_in_memory(X):
    memory = {"horizontal": 1, "memory_min_count": 5}
    whole, sharded = (make_parser(SpectralLPCFG(), **memory) for _ in range(2))
    expected = whole[:-1].fit_transform(TREES)
    found = sharded[:-1].fit_transform(X)
    assert isinstance(found, ShardedTreebank)
    assert whole["binarize"].preterminals_ == sharded["binarize"].preterminals_
    assert whole["binarize"].memories_ == sharded["binarize"].memories_
    assert whole["rarewords"].words_ == sharded["rarewords"].words_
    assert whole["rarewords"].counts_ == sharded["rarewords"].counts_
    assert whole["inside"].n_nodes_ == sharded["inside"].n_nodes_
    loaded = found.load()
    assert loaded == expected
    for side in ("inside", "outside"):
        names = [list(t.block_names[side]) for t in (expected, loaded)]
        assert sorted(names[0]) == sorted(names[1])
        order = [np.argsort(n) for n in names]
        blocks = [
            t.blocks[side][:, o] for t, o in zip((expected, loaded), order, strict=True)
        ]
        assert (blocks[0] != blocks[1]).nnz == 0
        counts = [
            p[side].counts_[o] for p, o in zip((whole, sharded), order, strict=True)
        ]
        assert np.array_equal(*counts)


def width(node):
    return node.stop - node.start


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("templates", ["cohen2013", [width, "rule"]])
def test_rare_features_are_left_out_of_all_shards(X, templates):
    binary = make_parser(PCFG())[:2].fit_transform(TREES)
    sharded = make_parser(PCFG())[:2].fit_transform(X)
    features = InsideFeatures(templates, min_count=5, scaling=1.0)
    whole, parts = clone(features).fit(binary), clone(features).fit(sharded)
    names = [sorted(f.get_feature_names_out()) for f in (whole, parts)]
    assert names[0] == names[1]
    found = parts.transform(sharded).load().blocks["inside"]
    expected = whole.transform(binary).blocks["inside"]
    assert found.nnz == expected.nnz
    assert_allclose(found.sum(), expected.sum(), rtol=SUM)


def test_transformed_shards_are_saved_once_for_all(tmp_path, X):
    steps = make_parser(SpectralLPCFG())[:-1]
    lazy = steps.fit_transform(X)
    saved = lazy.save(tmp_path / "new", n_jobs=2)
    assert sorted(os.listdir(tmp_path / "new")) == [f"{i:05d}.tb" for i in range(4)]
    assert np.array_equal(saved.offsets, X.offsets)
    for one, two in zip(lazy.chunks(), saved.chunks(), strict=True):
        assert one == two
        assert (one.blocks["inside"] != two.blocks["inside"]).nnz == 0
    loaded = saved.load()
    assert list(loaded.block_names["inside"]) == list(lazy.load().block_names["inside"])


def test_features_need_trees(tmp_path):
    Treebank([["a", "b"]]).save(tmp_path / "a.tb")
    with pytest.raises(ValueError, match="no row of X has a tree"):
        InsideFeatures().fit(ShardedTreebank(tmp_path))


# -- inventories --------------------------------------------------------------------


def binary_parts():
    trees = make_parser(PCFG())[:2].fit_transform(TREES)
    return trees, [trees[a:b] for a, b in pairwise(BOUNDS)]


def inventory(treebank):
    index = RuleIndex.from_treebank(treebank)
    return index.count(np.ones(len(treebank)), binarized=True)


def test_inventories_add_up_to_that_of_the_whole():
    whole, parts = binary_parts()
    total = inventory(parts[0])
    for part in parts[1:]:
        total = total + inventory(part)
    for name, expected in vars(inventory(whole)).items():
        assert np.array_equal(getattr(total, name), expected), name


def test_an_inventory_indexes_a_part_in_its_own_ids():
    whole, parts = binary_parts()
    total, expected = inventory(whole), RuleIndex.from_treebank(whole)
    rows = np.arange(BOUNDS[2], BOUNDS[3])
    found = RuleIndex.from_treebank(parts[2], table=total)
    for name, array in vars(expected.take(rows)).items():
        assert np.array_equal(getattr(found, name), array), name


def test_words_without_classes_add_up_too():
    trees = TreeBinarizer().fit_transform(TREES)
    total = inventory(trees[:40]) + inventory(trees[40:])
    for name, expected in vars(inventory(trees)).items():
        assert np.array_equal(getattr(total, name), expected), name


# -- learners -------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_pcfg_of_shards_is_that_of_all_trees(X, n_jobs):
    whole = make_parser(PCFG()).fit(TREES)
    parts = make_parser(PCFG(n_jobs=n_jobs)).fit(X)
    for name, array in arrays(whole[-1]).items():
        assert arrays(parts[-1])[name].tobytes() == array.tobytes()
    assert parts.predict(TREES[:9]) == whole.predict(TREES[:9])
    assert parts.score(X[25:40]) == whole.score(TREES[25:40])


def test_partial_fit_adds_up(X):
    whole, parts = binary_parts()
    pcfg = PCFG()
    for part in parts:
        pcfg.partial_fit(part)
    for name, array in arrays(PCFG().fit(whole)).items():
        assert arrays(pcfg)[name].tobytes() == array.tobytes()
    once = PCFG().fit(parts[0]).partial_fit(whole[30:])
    assert_same_grammar(pcfg, once, EXACT)
    assert_same_grammar(pcfg.fit(parts[1]), PCFG().fit(parts[1]), EXACT)


LEARNERS = {
    "em": EMLPCFG(2, max_iter=3, tol=None, validation_fraction=None, random_state=0),
    "em_pivot": EMLPCFG(
        init=PivotLPCFG(2), max_iter=3, tol=None, validation_fraction=None
    ),
    "spectral": SpectralLPCFG(3),
    "spectral_unscaled": SpectralLPCFG(2, scaling=None, smoothing=None),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_agree_up_to_rounding(X, name):
    whole = make_parser(clone(LEARNERS[name])).fit(TREES)
    parts = make_parser(clone(LEARNERS[name])).fit(X)
    assert_same_grammar(whole[-1], parts[-1], SUM)
    assert whole[-1].m_ == parts[-1].m_
    assert parts.predict(TREES[:10]) == whole.predict(TREES[:10])


def assert_same_decompositions(trees, X):
    whole = make_parser(SpectralLPCFG(3)).fit(trees)[-1]
    parts = make_parser(SpectralLPCFG(3)).fit(X)[-1]
    assert_same_grammar(whole, parts, SUM)
    for a, expected in whole.projections_.items():
        found = parts.projections_[a]
        assert np.array_equal(found.inside, expected.inside)
        for name in ("singular_values", "phi_norm", "psi_norm", "psi_rms"):
            assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=SUM, atol=0
            )


def test_large_nonterminals_are_decomposed_part_by_part(X, few_entries):
    assert_same_decompositions(TREES, X)


@pytest.mark.slow_without_jit
def test_very_large_nonterminals_are_decomposed_by_products(
    tmp_path, few_entries, monkeypatch
):
    # More trees: singular values that are equal leave a choice of vectors.
    trees = load_toy(230)
    for i in range(3):
        trees[80 * i : 80 * i + 80].save(tmp_path / f"{i}.tb")
    monkeypatch.setattr("lpcfg_sk._svd._DENSE_WORK", 100)
    assert_same_decompositions(trees, ShardedTreebank(tmp_path))


def test_decompositions_in_memory_have_the_same_bits(X):
    whole = make_parser(SpectralLPCFG(3)).fit(TREES)[-1]
    parts = make_parser(SpectralLPCFG(3)).fit(X)[-1]
    for a, expected in whole.projections_.items():
        assert parts.projections_[a].U.tobytes() == expected.U.tobytes()


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    "learner",
    [PCFG(), *(LEARNERS[name] for name in ("em", "em_pivot", "spectral"))],
    ids=["pcfg", "em", "em_pivot", "spectral"],
)
def test_weights_are_those_of_the_rows(X, seed, learner):
    weight = np.random.RandomState(seed).randint(0, 3, len(TREES)).astype(float)
    weight[BOUNDS[1] : BOUNDS[2]] = 0
    one, two = (make_parser(clone(learner)) for _ in range(2))
    one.fit(TREES, learner__sample_weight=weight)
    two.fit(X, learner__sample_weight=weight)
    assert_same_grammar(one[-1], two[-1], SUM)


def test_em_holds_out_trees_of_all_shards(X):
    em = EMLPCFG(2, max_iter=6, validation_fraction=0.2, tol=0.01, random_state=0)
    parts = make_parser(clone(em)).fit(X)[-1]
    again = make_parser(clone(em).set_params(n_jobs=2)).fit(X)[-1]
    assert len(parts.validation_scores_) > 0
    assert parts.n_iter_ == int(np.argmax(parts.validation_scores_)) + 1
    assert again.validation_scores_ == parts.validation_scores_
    for name, array in arrays(parts).items():
        assert arrays(again)[name].tobytes() == array.tobytes()
    # The model of the chosen number of iterations on all trees.
    plain = clone(em).set_params(
        validation_fraction=None, max_iter=parts.n_iter_, tol=None
    )
    assert_same_grammar(make_parser(plain).fit(TREES)[-1], parts, SUM)


def test_em_holds_nothing_out_of_too_few_trees(X):
    em = EMLPCFG(2, max_iter=2, tol=None, random_state=0)
    parts = make_parser(em).fit(X[25:40])[-1]
    assert parts.validation_scores_ == []


def test_em_holds_out_no_more_than_memory_should_hold(X, monkeypatch):
    monkeypatch.setattr("lpcfg_sk.em._training_trees._MOST_HELD_OUT", 16)
    taken = []
    join = RuleIndex.concatenate
    monkeypatch.setattr(
        RuleIndex,
        "concatenate",
        lambda indices: taken.append(join(indices)) or taken[-1],
    )
    em = EMLPCFG(2, max_iter=1, tol=None, validation_fraction=0.5, random_state=0)
    make_parser(em).fit(X)
    assert 5 <= taken[0].n_trees <= 32


@pytest.mark.slow_without_jit
def test_em_goes_on_from_the_last_fit(X):
    em = make_parser(clone(LEARNERS["em"])).set_params(learner__warm_start=True)
    em.fit(X).fit(X)
    long = make_parser(clone(LEARNERS["em"])).set_params(learner__max_iter=6).fit(X)
    assert_same_grammar(long[-1], em[-1], SUM)


@pytest.mark.slow_without_jit
def test_temporary_files_are_removed(X, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_parser(SpectralLPCFG(2)).fit(X)
    make_parser(clone(LEARNERS["em"])).fit(X)
    assert os.listdir(tmp_path) == []


def test_one_node_a_tree_is_not_drawn_from_shards(X):
    with pytest.raises(ValueError, match=r"X\.load"):
        make_parser(SpectralLPCFG(2, node_sampling="one")).fit(X)


def test_margin_em_of_trees_and_sentences(tmp_path, X):
    assert CFG.from_treebank(X) == CFG.from_treebank(TREES)
    assert_allclose(
        MarginEMPCFG().fit(X).theta_, MarginEMPCFG().fit(TREES).theta_, rtol=EXACT
    )
    grammar = CFG.from_string("S -> S S | 'a' | 'b' 'a' | 'b' S")
    rows = Treebank([["a", "b", "a"], "(S (S a) (S a))", ["b", "b", "a"], ["c"]] * 6)
    rows[:10].save(tmp_path / "1.tb")
    rows[10:].save(tmp_path / "2.tb")
    weight = np.arange(24) % 4 + 0.5
    model = MarginEMPCFG(grammar, max_iter=5, tol=0.0)
    with pytest.warns(UserWarning, match="6 of 24 rows.*unknown terminals: c"):
        whole = clone(model).fit(rows, sample_weight=weight)
    with pytest.warns(UserWarning, match="6 of 24 rows.*unknown terminals: c"):
        parts = clone(model).fit(ShardedTreebank(tmp_path), sample_weight=weight)
    assert_allclose(parts.theta_, whole.theta_, rtol=SUM)
    assert_allclose(parts.log_losses_, whole.log_losses_, rtol=SUM)


def test_margin_em_needs_a_grammar_for_sentences(tmp_path):
    Treebank([["a", "b"]]).save(tmp_path / "a.tb")
    with pytest.raises(ValueError, match="needs a grammar to learn from sentences"):
        MarginEMPCFG().fit(ShardedTreebank(tmp_path))


@pytest.mark.slow_without_jit
def test_shards_are_parsed_as_trees_in_memory_are(X):
    steps = make_parser(PivotLPCFG(2))
    steps.fit(X)
    # Two shards: rows 28 to 32 lie in three of them.
    assert steps.predict(X[28:32]) == make_parser(PivotLPCFG(2)).fit(TREES).predict(
        TREES[28:32]
    )


def test_sentences_without_a_parse_are_told_by_their_row(tmp_path):
    parser = make_parser(PCFG()).fit(["(S (A a) (B b))"] * 4)
    Treebank([["a", "b"]] * 3).save(tmp_path / "1.tb")
    Treebank([["a", "b"], ["a", "b", "b"]]).save(tmp_path / "2.tb")
    with pytest.warns(ParseFailureWarning, match=r"1 of 5 .*the first is row 4"):
        trees = parser.predict(ShardedTreebank(tmp_path))
    assert [str(tree) for tree in trees[:4]] == ["(S (A a) (B b))"] * 4


@pytest.mark.slow_without_jit
def test_cross_validation_and_search(X):
    parser = make_parser(PCFG())
    expected = cross_val_score(parser, TREES, cv=2)
    assert cross_val_score(parser, X, cv=2).tolist() == expected.tolist()
    grid = {"rarewords__min_count": [2, 4]}
    searches = [GridSearchCV(parser, grid, cv=2).fit(T) for T in (X, TREES)]
    scores = [s.cv_results_["mean_test_score"].tolist() for s in searches]
    assert scores[0] == scores[1]


def test_nothing_is_learnt_from_nothing(X):
    for learner in (PCFG(), EMLPCFG(2), SpectralLPCFG(2)):
        with pytest.raises(ValueError, match="at least one tree"):
            learner.fit(X[:0])
    with pytest.raises(ValueError, match="zero"):
        PCFG().fit(
            RareWords().fit_transform(TreeBinarizer().fit_transform(X)),
            sample_weight=np.zeros(80),
        )
