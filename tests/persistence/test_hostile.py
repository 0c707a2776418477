"""Model files that another program made: each was accepted once, and did harm."""

import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    LPCFG,
    WTA,
    AggregateMarkovLM,
    KneserNeyLM,
    MarginEMPCFG,
    Treebank,
    TreeBinarizer,
    VotingParser,
    load,
    read_treebank,
    save,
)
from lpcfg_sk._files import checked_csr, load_arrays, save_arrays
from lpcfg_sk.language_model import InterpolatedLM, read_arpa, write_arpa
from tests.persistence import models


def changed(name, path, change):
    """Save a fitted estimator after `change(estimator)`."""
    estimator = models.make(name)
    change(estimator)
    save(estimator, path, compact=False)
    return path


def assert_refused(path, match="do not belong together"):
    with pytest.raises(ValueError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("m", [-1, 2**31, 0.5, True])
def test_projections_of_a_wrong_number_of_states_are_refused(m, tmp_path):
    def change(model):
        model.m_ = dict.fromkeys(model.m_, m)

    assert_refused(changed("SpectralLPCFG", tmp_path / "model", change))


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_singular_values_are_finite_and_positive(value, tmp_path):
    def change(model):
        name = next(iter(model.projections_))
        own = model.projections_[name]
        values = np.full_like(own.singular_values, value)
        model.projections_[name] = own._replace(singular_values=values)

    assert_refused(changed("SpectralLPCFG", tmp_path / "model", change))


@pytest.mark.parametrize("value", [5.0, -1.0, np.nan])
def test_probabilities_of_rules_are_probabilities(value, tmp_path):
    rules = "S -> A\nA -> B | C\nB -> A\nC -> 'x'"
    model = MarginEMPCFG(CFG.from_string(rules, unary_cycles="allow")).fit([["x"]] * 3)
    model.theta_ = model.theta_ * 0 + value
    save(model, tmp_path / "model")
    assert_refused(tmp_path / "model")


def test_probabilities_of_a_sure_cycle_end_in_an_answer_or_an_error(tmp_path):
    rules = "S -> A\nA -> B | C\nB -> A\nC -> 'x'"
    model = MarginEMPCFG(CFG.from_string(rules, unary_cycles="allow")).fit([["x"]] * 3)
    model.theta_ = model.theta_ * 0 + 1.0
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for decoder in ("viterbi", "max-marginal"):
        again.decoder = decoder
        try:
            trees = again.predict([["x"]])
        except ValueError as error:
            assert "cycle" in str(error)
        else:
            assert trees.sentences() == [["x"]]


def test_a_language_model_has_the_symbols_of_its_mode(tmp_path):
    def change(model):
        model.mode = "sentence"
        model.vocabulary_ = model.vocabulary_[:1]
        model._index = {model.vocabulary_[0]: 0}
        model.r_, model.s_ = model.r_[:3], np.ones_like(model.s_[:1])
        model.unigram_ = np.ones(1)

    assert_refused(changed("AggregateMarkovLM", tmp_path / "model", change))


@pytest.mark.parametrize("name", ["r_", "s_", "pi_", "unigram_"])
@pytest.mark.parametrize("value", [np.nan, -0.5, 1e30])
def test_states_of_words_have_probabilities(name, value, tmp_path):
    def change(model):
        array = getattr(model, name).copy()
        array.flat[0] = value
        setattr(model, name, array)

    assert_refused(changed("AggregateMarkovLM", tmp_path / "model", change))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        *(("proba", 0, value) for value in (np.nan, np.inf, -0.5)),
        *(("backoff", -1, value) for value in (np.nan, 1e308)),
        *(("keys", 0, value) for value in (-1, 2**62)),
        *(("outcome", 0, value) for value in (-1, 2**31 - 1)),
        *(("offsets", -1, value) for value in (0, 2**62)),
        ("history_keys", -1, 2**62),
    ],
)
def test_tables_of_ngrams_hold_probabilities_and_ids(name, place, value, tmp_path):
    def change(model):
        array = getattr(model._levels[1], name).copy()
        array[place] = value
        setattr(model._levels[1], name, array)

    assert_refused(changed("KneserNeyLM", tmp_path / "model", change), "n-grams")


def test_probabilities_of_an_arpa_model_are_not_negative(tmp_path):
    arpa = tmp_path / "model.arpa"
    write_arpa(models.make("KneserNeyLM"), arpa)
    model, path = read_arpa(arpa), tmp_path / "model"
    save(model, path)
    expected = load(path).score_samples(models.SENTENCES)
    np.testing.assert_array_equal(expected, model.score_samples(models.SENTENCES))
    for level in model._levels:
        before, level.proba = level.proba, np.full_like(level.proba, -1.0)
        save(model, path)
        assert_refused(path, "n-grams")
        # Zero, and not nan, where it was done by hand.
        assert not np.isnan(model.score_samples(models.SENTENCES)).any()
        level.proba = before


@pytest.mark.parametrize("position", [10**8, -1, 625, 1.5])
def test_states_of_random_numbers_are_in_range(position, tmp_path):
    path = tmp_path / "model"
    save(EMLPCFG(2, random_state=np.random.RandomState(0)), path)
    assert load(path).random_state.uniform() == np.random.RandomState(0).uniform()
    _, meta, arrays = load_arrays(path, "estimator", 2)
    items = meta["state"]["random_state"]["state"]["items"]
    next(item for item in items if item[0] == "position")[1] = position
    save_arrays(path, "estimator", 2, meta, arrays)
    assert_refused(path, "random number generator is out of range")


def test_keys_of_sparse_automata_do_not_wrap():
    n = 2**22
    one = np.array([n - 1])
    with pytest.raises(ValueError, match="at most 2097151 states"):
        WTA(np.zeros(n), (one, one, one, np.ones(1)), {})


def test_unpruned_votes_share_no_charts_of_other_rules():
    X = models.prepared(models.TRAIN)
    members = [
        EMLPCFG(1, max_iter=1, tol=None, validation_fraction=None, prune=None).fit(X)
        for _ in range(3)
    ]
    grammar = members[1].grammar_
    a = grammar.arrays
    k = len(a.rule_parent) // 2
    members[1].grammar_ = LPCFG.from_arrays(
        grammar.nonterminals,
        grammar.words,
        a._replace(
            rule_parent=a.rule_parent[-k:],
            rule_left=a.rule_left[-k:],
            rule_right=a.rule_right[-k:],
            rule_offset=a.rule_offset[: k + 1],
            binary=a.binary[-k:],
        ),
        unknown_word=grammar.unknown_word,
    )
    vote = VotingParser([(f"m{i}", m) for i, m in enumerate(members)])
    vote.estimators_ = members
    groups = vote._ballot(models.TEST).electorate.groups
    assert [group.numbers for group in groups] == [[0, 2], [1]]


def test_emissions_of_a_warm_start_are_one_vector_per_rule(tmp_path):
    def change(model):
        *ids, values = model._emissions
        model._emissions = (*ids, values[:-1])

    assert_refused(changed("EMLPCFG", tmp_path / "model", change))
    # The same attributes, set by hand.
    model = models.make("EMLPCFG").set_params(warm_start=True, max_iter=1)
    change(model)
    model.fit(models.prepared(models.TRAIN))
    assert len(model._emissions[2]) == sum(model.m_[a] for a in _labels(model))


def _labels(model):
    return [model.grammar_.nonterminals[i] for i in model._emissions[1]]


def _arrays(n_states, **more):
    none, start = np.zeros(0, np.int32), np.zeros(1, np.int64)
    arrays = {
        "n_states": np.array(n_states, np.int32),
        **dict.fromkeys(("rule_parent", "rule_left", "rule_right"), none),
        **dict.fromkeys(("lex_label", "root_label"), none),
        **dict.fromkeys(("rule_offset", "lex_offset", "root_offset"), start),
        **dict.fromkeys(("binary", "lexical", "root"), np.zeros(0)),
        "word_offset": start,
    }
    return type(models.GRAMMAR.arrays)(**{**arrays, **more})


def test_numbers_of_parameters_do_not_wrap():
    one, two = np.zeros(1, np.int32), np.ones(1, np.int32)
    arrays = _arrays(
        [2**20, 2**22],
        rule_parent=one,
        rule_left=two,
        rule_right=two,
        rule_offset=np.zeros(2, np.int64),
    )
    with pytest.raises(ValueError, match=r"binary must hold 1\.84e\+19 values"):
        LPCFG.from_arrays(["A", "B"], [], arrays)


def test_states_without_parameters_are_refused():
    LPCFG.from_arrays(["A", "B"], [], _arrays([1, 1]))
    with pytest.raises(ValueError, match="occurs neither in a rule nor at a root"):
        LPCFG.from_arrays(["A", "B"], [], _arrays([1, 2**30]))


def test_an_array_that_many_values_name_is_refused(tmp_path):
    path = tmp_path / "model"
    name = {"$": "array", "name": "a0"}
    data = {"$": "dict", "items": [[i, name] for i in range(1000)]}
    save_arrays(path, "estimator", 2, data, {"a0": np.zeros(2**17)})
    tracemalloc.start()
    assert_refused(path, "a0")
    assert tracemalloc.get_traced_memory()[1] < 8 * path.stat().st_size
    tracemalloc.stop()


@pytest.mark.parametrize("parameter", [{"prune": -1.0}, {"max_memory": 0}])
def test_parameters_of_fitted_models_are_those_of_a_fit(parameter, tmp_path):
    save(models.make("PCFG").set_params(**parameter), tmp_path / "model")
    assert_refused(tmp_path / "model", next(iter(parameter)))


@pytest.mark.parametrize("version", ["Infinity", "NaN", "1e400"])
def test_versions_that_are_no_numbers_are_refused(version, tmp_path):
    path = tmp_path / "model"
    header = {"format": "lpcfg_sk", "kind": "estimator", "meta": {}, "arrays": []}
    text = f'{json.dumps(header)[:-1]}, "version": {version}}}'
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(text.encode(), np.uint8))
    assert_refused(path, "not written by lpcfg_sk")


# -- attributes that are set by hand -------------------------------------------


def _by_hand(name, **attributes):
    model = models.make(name)
    vars(model).update(attributes)
    return model


@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
@pytest.mark.parametrize("prune", [3e-4, None])
@pytest.mark.parametrize("name", ["PCFG", "EMLPCFG", "SpectralLPCFG", "PivotLPCFG"])
def test_a_grammar_set_by_hand_is_aligned_by_name_or_refused(name, prune):
    model = _by_hand(name, grammar_=models.GRAMMAR, prune=prune)
    words = [tree.words() for tree in model.predict(models.TEST)]
    assert words == models.TEST.sentences()
    # Its nonterminals have two states, those of a plain PCFG one.
    model.coarse_ = model.grammar_
    with pytest.raises(ValueError, match="do not belong together"):
        model.predict(models.TEST)


def test_arrays_of_a_grammar_cannot_be_set():
    with pytest.raises(AttributeError):
        models.GRAMMAR.arrays = models.GRAMMAR.arrays._replace(
            rule_left=models.GRAMMAR.arrays.rule_left + 2**20
        )


def test_a_pickled_grammar_is_checked_like_one_of_a_file():
    restore, parts = models.GRAMMAR.__reduce__()
    assert restore(*parts) == models.GRAMMAR
    for i in range(len(parts[2])):
        damaged = list(parts[2])
        damaged[i] = damaged[i][:-1] + 2**20
        with pytest.raises(ValueError):
            restore(*parts[:2], tuple(damaged), parts[3])


def test_pickled_automata_and_rules_are_checked_like_those_of_a_file():
    wta, rules = models.make("WTA"), models.RULES
    for value in (wta, rules):
        again = pickle.loads(pickle.dumps(value))
        assert again == value or np.array_equal(again.alpha, value.alpha)
    for name in "ijk":
        damaged = models.make("WTA")
        tensor = damaged.tensors[0]
        vars(tensor)[name] = getattr(tensor, name) + wta.n_states
        with pytest.raises(ValueError, match="integers from 0"):
            pickle.loads(pickle.dumps(damaged))
    damaged = CFG.from_string("S -> 'a' | A\nA -> 'b'")
    damaged.rules = damaged.rules[:2]
    with pytest.raises(ValueError, match="'A' in rule S -> A has no rules"):
        pickle.loads(pickle.dumps(damaged))


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("PCFG", {"prune": np.inf}),
        ("PCFG", {"prune": -1.0}),
        ("PCFG", {"max_memory": np.nan}),
        ("AggregateMarkovLM", {"unigram_weight": np.nan}),
    ],
)
def test_parameters_set_after_a_fit_are_those_of_a_fit(name, parameter):
    # Without a check a threshold of infinity took forever, and nan gave nan.
    model = models.make(name)
    X = models.SENTENCES if name.endswith("LM") else models.TEST
    use = model.score_samples if name.endswith("LM") else model.predict
    use(X)
    model.set_params(**parameter)
    with pytest.raises(ValueError, match=next(iter(parameter))):
        use(X)


@pytest.mark.parametrize("m", [-1, 10**6, 2**31 - 1])
def test_states_that_singular_vectors_do_not_have_are_refused(m):
    model = models.make("SpectralLPCFG")
    model.m_ = dict.fromkeys(model.m_, m)
    with pytest.raises(ValueError, match=r"fit the singular vectors|negative"):
        model.transform(models.prepared(models.TRAIN)[:4])


def test_probabilities_that_are_none_are_refused_before_they_parse():
    model = models.make("MarginEMPCFG")
    for theta in (model.theta_ * 0 - 1, model.theta_ * 0 + 5, model.theta_[:-1]):
        model.theta_ = theta
        for method in (model.predict, model.score_samples, model.sample):
            with pytest.raises(ValueError, match="one probability between 0 and 1"):
                method(*([models.STRINGS] if method != model.sample else []))


@pytest.mark.parametrize("name", ["r_", "s_"])
@pytest.mark.parametrize("cut", [np.s_[:1], np.s_[:, :1]])
def test_words_without_parameters_are_refused(name, cut):
    model = models.make("AggregateMarkovLM")
    setattr(model, name, getattr(model, name)[cut])
    with pytest.raises(ValueError, match="one row of parameters"):
        model.score_samples(models.SENTENCES)


# -- where files are written to ------------------------------------------------


def test_a_saved_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "model"
    for mode in (0o600, 0o640, 0o444):
        path.unlink(missing_ok=True)
        path.touch()
        path.chmod(mode)
        save(TreeBinarizer(), path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "model", tmp_path / "link"
    link.symlink_to(target)
    for direction in ("left", "right"):
        save(TreeBinarizer(direction=direction), link)
        assert link.is_symlink() and load(target).direction == direction
    assert os.listdir(tmp_path / "folder") == ["model"]


_WRITERS = {
    "estimator": (lambda path: save(TreeBinarizer(), path), load),
    "LPCFG": (models.GRAMMAR.save, LPCFG.load),
    "treebank": (models.TEST.save, Treebank.open),
    "text": (models.TEST.write, read_treebank),
    "arpa": (lambda path: write_arpa(models.make("KneserNeyLM"), path), read_arpa),
}


@pytest.mark.parametrize("kind", _WRITERS)
def test_devices_and_pipes_are_written_to(kind, tmp_path):
    write, read = _WRITERS[kind]
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    write(link)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe, copy = tmp_path / "pipe", tmp_path / "copy"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: copy.write_bytes(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert read(copy) is not None


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_a_pipe_without_a_name_is_written_to(tmp_path):
    code = (
        "from lpcfg_sk import TreeBinarizer, save\nsave(TreeBinarizer(), '/dev/stdout')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    (tmp_path / "model").write_bytes(done.stdout)
    assert isinstance(load(tmp_path / "model"), TreeBinarizer)


def test_train_does_not_write_over_its_trees(tmp_path, capsys):
    from lpcfg_sk._cli import main

    folder = tmp_path / "trees"
    folder.mkdir()
    path, link = folder / "a.mrg", tmp_path / "link"
    path.write_text("(S (NP a) (VP b))\n")
    link.symlink_to(path)
    for treebank, output in (
        (path, path),
        (path, link),
        (folder, path),
        (folder / "*.mrg", path),
    ):
        assert main(["train", str(treebank), "-o", str(output)]) == 1
        assert path.read_text() == "(S (NP a) (VP b))\n"
    # Nor any other command over anything that it reads.
    other = tmp_path / "other"
    other.write_text("a b\na b\n")
    for command in (
        ["train", str(path), "--raw", str(other)],
        ["lm", "train", str(other)],
        ["minimize", str(other)],
        ["report", str(other), str(path)],
    ):
        assert main([*command, "-o", str(other)]) == 1
        assert "is read by this command" in capsys.readouterr().err
        assert other.read_text() == "a b\na b\n"


def test_closed_streams_of_the_command_line_are_no_crash(tmp_path):
    trees = tmp_path / "trees"
    models.TEST.write(trees)
    for arguments, status in ((["train", "no"], 2), (["convert", str(trees)], 0)):
        closed = subprocess.run(
            [sys.executable, "-m", "lpcfg_sk", *arguments],
            preexec_fn=lambda: [os.close(number) for number in (0, 1, 2)],
            check=False,
        )
        assert closed.returncode == status


@pytest.mark.parametrize("name", ["r_", "s_", "pi_", "unigram_"])
def test_shares_of_states_and_words_sum_to_one(name, tmp_path):
    def change(model):
        setattr(model, name, getattr(model, name) * 0)

    assert_refused(changed("AggregateMarkovLM", tmp_path / "model", change))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weights", [[-0.5, 1.5], [0.0, 0.0], [1.0, 1.0]])
def test_weights_of_a_mixture_are_shares(weights, tmp_path):
    members = [AggregateMarkovLM(1, max_iter=1), KneserNeyLM(order=2)]
    model = InterpolatedLM(members).fit(models.SENTENCES)
    model.weights_ = np.array(weights)
    save(model, tmp_path / "model")
    assert_refused(tmp_path / "model", "weights that sum to one")


@pytest.mark.parametrize("size", [1e308, float("inf"), 2**63, -1, 0.5])
def test_shapes_of_sparse_matrices_are_sizes(size):
    parts = np.ones(1), np.array([0]), np.array([0, 1])
    for shape in ((1, size), (size, 1)):
        with pytest.raises(ValueError, match="no shape"):
            checked_csr(*parts, shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_doubles_cannot_hold_are_an_error():
    huge, small = np.full((3, 2), 1e308), np.full((3, 2), 0.2)
    dense = np.linspace(0.0, 0.1, 27).reshape(3, 3, 3)
    factors = huge, small * [[10.0, 1.0]], small
    wta = WTA([1.0, 0.0, 0.5], {"X": dense, "Y": factors}, {"a": [0.1, 0.2, 0.3]})
    with pytest.raises(ValueError, match="too large"):
        wta.sentence_value([["a"] * 3])


@pytest.mark.parametrize("part", ["binary", "lexical", "root"])
@pytest.mark.parametrize("value", [1e308, -1e101])
def test_parameters_whose_products_overflow_are_refused(part, value, tmp_path):
    # A file with 1e308 in it was accepted once, and `transform` gave nan.
    model = models.make("EMLPCFG")
    save(model, tmp_path / "model", compact=False)
    arrays = model.grammar_.arrays
    huge = arrays._replace(**{part: np.full_like(getattr(arrays, part), value)})
    with pytest.raises(ValueError, match=f"{part} must hold values of at most 1e.100"):
        LPCFG.from_arrays(model.grammar_.nonterminals, model.grammar_.words, huge)
    version, meta, stored = load_arrays(tmp_path / "model", "estimator", 2)
    for name, array in stored.items():
        if np.array_equal(array, getattr(arrays, part)):
            stored[name] = np.full_like(array, value)
    save_arrays(tmp_path / "model", "estimator", version, meta, stored)
    assert_refused(tmp_path / "model", match="products would overflow")
