import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from lpcfg_sk import EMLPCFG, PCFG, TreeBinarizer, VotingParser
from lpcfg_sk._kernels._chart_spans import span_bounds, span_count, span_index
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.ensemble import _voting
from lpcfg_sk.parsing import _charts
from lpcfg_sk.treebank import SymbolTable

TRAIN = TreeBinarizer(horizontal=1).fit_transform(load_toy(80))
TEST = TRAIN[:30]
# Models of few trees do not parse all sentences.
pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)
EM = EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return clone(EM).fit(TRAIN)


def copied(model):
    return pickle.loads(pickle.dumps(model))


def test_all_methods_share_one_parser(fitted, monkeypatch):
    model = copied(fitted)
    parser = model._parser()
    model.predict(TEST[:3])
    single = parser._single_model

    def fail(*args, **kwargs):
        raise AssertionError("a second parser was built")

    monkeypatch.setattr("lpcfg_sk._base.ChartParser", fail)
    for method in (
        model.predict,
        model.span_marginals,
        model.marginals,
        model.parse_kbest,
        model.sentence_log_prob,
    ):
        method(TEST[:3])
    assert model._parser() is parser and parser._single_model is single


@pytest.mark.parametrize(
    "change",
    [{"decoder": "viterbi"}, {"prune": None}, {"prune": 0.2}, {"max_memory": 2**30}],
)
def test_changed_settings_make_another_parser(fitted, change):
    model, untouched = copied(fitted), copied(fitted).set_params(**change)
    before = model._parser()
    model.set_params(**change)
    assert model._parser() is not before
    assert model.predict(TEST[:10]) == untouched.predict(TEST[:10])
    (name, value), *_ = change.items()
    setattr(model, name, getattr(fitted, name))
    assert model._parser().decoder == before.decoder
    assert model.predict(TEST[:10]) == fitted.predict(TEST[:10])
    assert getattr(untouched, name) == value


def test_a_memory_limit_counts_after_the_first_sentence(fitted):
    model = copied(fitted)
    model.predict(TEST[:1])
    model.set_params(max_memory=1, on_failure="raise")
    with pytest.raises(MemoryError):
        model.predict(TEST[:1])


def test_another_fit_makes_another_parser():
    model = PCFG().fit(TRAIN[:20])
    model.predict(TEST[:1])
    model.fit(TRAIN)
    assert model.predict(TEST) == PCFG().fit(TRAIN).predict(TEST)
    model.grammar_ = model.coarse_ = PCFG().fit(TRAIN[:20]).grammar_
    assert model._parser().grammar is model.grammar_


def test_the_parser_is_no_part_of_the_learner(fitted):
    model = copied(fitted)
    names, state = set(vars(model)), joblib.hash(model.__getstate__())
    size = len(pickle.dumps(model))
    model.predict(TEST[:2])
    assert set(vars(model)) == names
    assert joblib.hash(model.__getstate__()) == state
    assert len(pickle.dumps(model)) == size
    assert copied(model)._parser() is not model._parser()
    parser = weakref.ref(model._parser())
    del model
    gc.collect()
    assert parser() is None


def test_threads_share_a_parser(fitted):
    model = copied(fitted)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda i: model.predict(TEST[i : i + 1]), range(16)))
    expected = fitted.predict(TEST[:16])
    assert [tree for part in parts for tree in part] == expected.tolist()


def test_a_model_with_the_rules_of_its_pruner_is_not_copied(fitted, monkeypatch):
    model = fitted._parser().model
    arrays = fitted.grammar_.arrays
    assert model.shares_words
    for mine, theirs in (
        (model.tensors.binary, arrays.binary),
        (model.tensors.rule_offset, arrays.rule_offset),
        (model.lexicon.lexical, arrays.lexical),
    ):
        assert np.shares_memory(mine, theirs)
    monkeypatch.setattr(_charts, "_same_rules", lambda one, two: False)
    by_name = _charts.ChartModel(fitted.grammar_, model.pruner)
    pairs = [
        (model.n_states, by_name.n_states),
        (model.root_offset, by_name.root_offset),
        *zip(model.tensors, by_name.tensors, strict=True),
        *zip(model.lexicon, by_name.lexicon, strict=True),
    ]
    for one, two in pairs:
        np.testing.assert_array_equal(one, two)


def test_an_ensemble_groups_its_members_once():
    vote = VotingParser([("one", PCFG()), ("two", clone(EM))]).fit(TRAIN)
    expected = copied(vote).predict(TEST)
    vote.predict(TEST[:1])
    electorate = _voting._ELECTORATES[vote]
    assert vote.predict(TEST) == expected
    assert _voting._ELECTORATES[vote] is electorate
    vote.weights = [1.0, 0.0]
    assert vote.predict(TEST) == vote.estimators_[0].predict(TEST)
    vote.weights = None
    vote.estimators_[1].fit(TRAIN[:20])
    assert vote.predict(TEST) == copied(vote).predict(TEST)
    vote.estimators_[0].prune = vote.estimators_[1].prune = 0.3
    assert vote.predict(TEST) == copied(vote).predict(TEST)


def test_spans_are_numbered_from_narrow_to_wide():
    for n in range(6):
        start, stop = span_bounds(n)
        assert len(start) == len(stop) == span_count(n)
        spans = [(i, i + w) for w in range(1, n + 1) for i in range(n - w + 1)]
        assert list(zip(start.tolist(), stop.tolist(), strict=True)) == spans
        assert [span_index(i, j, n) for i, j in spans] == list(range(len(spans)))


@pytest.mark.parametrize("ids", [[], [2, -1], [0, 1, 2, 2, -1, 1, 0]])
def test_ids_are_translated_like_whole_tables(ids):
    one, two = SymbolTable(["a", "b", "c"]), SymbolTable(["c", "x", "a"])
    table = [*one.map_to(two).tolist(), -1]
    translated = one.translate(np.array(ids, dtype=np.int32), two)
    assert translated.dtype == np.int32
    assert translated.tolist() == [table[i] for i in ids]
