import numpy as np
import pytest
from sklearn.base import clone

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    ShardedTreebank,
    Treebank,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk._kernels._chart_inside import ItemVectors
from lpcfg_sk._kernels._em_batches import add_rule_counts
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.em._expectation import count_sentences
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.parsing import ChartParser
from lpcfg_sk.parsing._sentences import full_charts
from lpcfg_sk.treebank import concatenate
from tests.reference import charts as ref
from tests.tolerances import EXACT, SUM

SENTENCES = [["x", "y"], ["y", "x", "z"], ["x", "x", "y", "z"]]
FIXED = {"max_iter": 3, "tol": None, "validation_fraction": None, "random_state": 0}
TREES = load_toy(160)
GOLD, RAW, TEST = TREES[:60], TREES[60:130].unparsed(), TREES[130:]
MIXED = concatenate([GOLD, RAW])
LEARNERS = {"pcfg": PCFG(), "em": EMLPCFG(2, **FIXED)}


def learner_of(name, **params):
    return clone(LEARNERS[name]).set_params(**params)


pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)


@pytest.mark.kernels
@pytest.mark.parametrize("draw", range(4))
def test_counts_of_rules_equal_the_reference(seed, draw):
    grammar = ref.random_grammar(np.random.default_rng([seed, draw]))
    charts = full_charts(grammar, Treebank(SENTENCES))
    tensors, offset = charts.model.tensors, grammar.arrays.rule_offset
    for row, sentence in enumerate(SENTENCES):
        chart = charts.chart(row)
        found = np.zeros(len(tensors.binary))
        alpha = ItemVectors(chart.vector_offset, chart.inside, chart.exponent)
        add_rule_counts(
            chart.forest, tensors, alpha, chart.outside, 1 / chart.total, found
        )
        found *= tensors.binary
        expected = ref.expected_rule_counts(grammar, sentence)
        for number, rule in enumerate(grammar.binary):
            piece = found[offset[number] : offset[number + 1]]
            np.testing.assert_allclose(
                piece, expected[rule].ravel(), rtol=EXACT, atol=EXACT
            )


def test_the_reference_equals_all_trees_and_states(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed), max_states=2)
    for sentence in SENTENCES[:2]:
        one = ref.expected_rule_counts(grammar, sentence)
        two = ref.enumerated_rule_counts(grammar, sentence)
        for rule in one:
            np.testing.assert_allclose(one[rule], two[rule], rtol=SUM, atol=SUM)


def test_counts_of_a_corpus_add_up(seed):
    grammar = ref.random_grammar(np.random.default_rng(seed))
    parser = ChartParser(grammar, None, prune=None)
    weight = np.array([1.0, 0.5, 2.0])
    found = count_sentences(parser, Treebank(SENTENCES), weight)
    total = sum(
        w * sum(c.sum() for c in ref.expected_rule_counts(grammar, s).values())
        for w, s in zip(weight, SENTENCES, strict=True)
    )
    rules = found.rule_counts(grammar, 2.0, binarized=False)
    np.testing.assert_allclose(rules.rule_count.sum(), 2 * total, rtol=SUM)
    # Every word has one tag, every tree one root, and n - 1 binary rules.
    lengths = np.array([len(s) for s in SENTENCES])
    np.testing.assert_allclose(rules.lexical_count.sum(), 2 * weight @ lengths)
    np.testing.assert_allclose(rules.root_count.sum(), 2 * weight.sum())
    np.testing.assert_allclose(total, weight @ (lengths - 1), rtol=SUM)
    assert rules.words == ("x", "y", "z")


@pytest.mark.parametrize("name", LEARNERS)
def test_unambiguous_sentences_count_as_their_trees(name):
    # Each sentence has one tree, so expected counts are those of the tree.
    trees = ["(S (A x) (B y))", "(S (A x) (S (A x) (B y)))", "(S (A u) (B y))"] * 10
    raw = [["x"] * k + ["y"] for k in (1, 2, 3)] * 4
    right = ["(S (A x) (B y))", "(S (A x) (S (A x) (B y)))"]
    right = [*right, "(S (A x) (S (A x) (S (A x) (B y))))"] * 4
    learner = learner_of(name, n_unlabeled_iter=1)
    smoothing = "smoothing" if name == "pcfg" else "lexicon_alpha"
    learner = learner.set_params(**{smoothing: 0.0})
    semi = learner.set_params(unlabeled_weight=0.5).fit([*trees, *raw])
    weights = np.r_[np.ones(len(trees)), np.full(len(raw), 0.5)]
    full = PCFG(0.0).fit([*trees, *right], sample_weight=weights)
    assert semi.n_failed_ == 0
    np.testing.assert_allclose(
        semi.coarse_.log_prob(Treebank(right)), full.score_samples(right), rtol=SUM
    )
    if name == "pcfg":
        assert semi.counts_.weight == full.counts_.weight


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("name", LEARNERS)
def test_likelihood_of_sentences_rises(name):
    # Plain EM on trees and sentences, over full charts.
    options = {"smoothing": 0.0} if name == "em" else {}
    alpha = "lexicon_alpha" if name == "em" else "smoothing"
    X = TreeBinarizer().fit_transform(MIXED)
    trees, raw = X[: len(GOLD)], X[len(GOLD) :]
    objective = []
    for n_iter in (0, 1, 2, 4):
        learner = learner_of(
            name,
            n_unlabeled_iter=n_iter,
            unlabeled_weight=0.7,
            **options,
            **{alpha: 0.0},
        )
        # A sentence with an unknown word has no probability at first.
        known = np.isfinite(
            learner.set_params(n_unlabeled_iter=0).fit(trees).sentence_log_prob(raw)
        )
        rows = np.r_[np.ones(len(GOLD), dtype=bool), known]
        learner.set_params(n_unlabeled_iter=n_iter).fit(X[rows])
        logs = learner.sentence_log_prob(raw[known])
        objective.append(learner.score_samples(trees).sum() + 0.7 * logs.sum())
    assert known.sum() > 10
    assert np.all(np.diff(objective) > 0)


@pytest.mark.parametrize("name", LEARNERS)
def test_trees_alone_are_learnt_as_before(name):
    plain = make_parser(learner_of(name)).fit(GOLD)[-1].grammar_.to_frame()
    for X, changes in (
        (GOLD, {"unlabeled_weight": 3.0}),
        (GOLD, {"n_unlabeled_iter": 7}),
    ):
        learner = learner_of(name, **changes)
        assert make_parser(learner).fit(X)[-1].grammar_.to_frame().equals(plain)


@pytest.mark.parametrize("name", LEARNERS)
def test_sentences_of_weight_zero_are_left_out(name):
    X = TreeBinarizer().fit_transform(MIXED)
    weights = np.r_[np.ones(len(GOLD)), np.zeros(len(RAW))]
    learner = learner_of(name, n_unlabeled_iter=2, unlabeled_weight=0.5)
    one = learner.fit(X, sample_weight=weights).grammar_.to_frame()
    two = learner.fit(X[: len(GOLD)]).grammar_.to_frame()
    three = learner.set_params(unlabeled_weight=0.0).fit(X).grammar_.to_frame()
    assert one.equals(two) and two.equals(three)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("name", LEARNERS)
def test_words_of_sentences_enter_the_lexicon(name):
    learner = learner_of(name, n_unlabeled_iter=2, unlabeled_weight=0.5)
    unknown = [
        ["Zorgle" if word == "Anna" else word for word in tree.words()]
        for tree in TREES
        if "Anna" in tree.words()
    ]
    X = [*TREES[:40], *unknown]
    parser = make_parser(learner).fit(X)
    grammar = parser[-1].grammar_
    assert "Zorgle" in grammar.words and grammar.is_probabilistic
    assert grammar.words == parser[-1].coarse_.words
    assert parser.predict(TEST).sentences() == TEST.sentences()


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("name", LEARNERS)
def test_jobs_and_shards_of_sentences(name, tmp_path):
    learner = learner_of(name, n_unlabeled_iter=1, unlabeled_weight=0.5)
    parser = make_parser(learner)
    one = parser.fit(MIXED)[-1].grammar_.to_frame()
    jobs = clone(parser).set_params(learner__n_jobs=2)
    two = jobs.fit(MIXED)[-1].grammar_.to_frame()
    assert one.equals(two)
    for number, part in enumerate((MIXED[:70], MIXED[70:])):
        part.save(tmp_path / f"{number}.tb")
    sharded = parser.fit(ShardedTreebank(tmp_path))[-1].grammar_.to_frame()
    np.testing.assert_allclose(one["value"], sharded["value"], rtol=1e-6, atol=1e-12)


def test_failures_are_counted_and_warned_of_once():
    X = [*["(S (A x) (A x))", "(S (A x) (A y))"] * 4, ["x"] * 3, ["x", "y"]]
    for learner in (PCFG(), EMLPCFG(1, **FIXED)):
        with pytest.warns(ParseFailureWarning, match="1 of 2 sentences") as caught:
            learner.fit(X)
        assert len(caught) == 1 and learner.n_failed_ == 1
        with pytest.raises(ValueError, match="needs trees beside sentences"):
            learner.fit(RAW)
        with pytest.raises(ValueError, match="row 2 of the sentences without"):
            learner.fit([*X, []])
    with pytest.raises(ValueError, match="SelfTrainingParser"):
        PCFG().partial_fit(X)


@pytest.mark.slow_without_jit
def test_iterations_with_sentences_are_reported(capsys):
    learner = EMLPCFG(1, verbose=1, n_unlabeled_iter=1, **FIXED)
    make_parser(learner).fit(MIXED)
    report = f"iteration 1 with sentences: {len(RAW) - learner.n_failed_} parsed"
    assert report in capsys.readouterr().err
