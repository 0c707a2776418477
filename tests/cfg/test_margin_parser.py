"""MarginEMPCFG as a parser: in pipelines, and for grammars of any form."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import (
    CFG,
    PCFG,
    WTA,
    MarginEMPCFG,
    RareWords,
    SVTAMinimizer,
    Treebank,
    VotingParser,
    load,
    make_parser,
    save,
)
from lpcfg_sk.cfg import rules_of_trees
from lpcfg_sk.cfg._empirical_risk import normalised
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.metrics import parseval_scorer
from lpcfg_sk.testing import tree_checks
from lpcfg_sk.treebank import unbinarize
from tests.reference import cfg as reference
from tests.tolerances import EXACT, SUM

pytestmark = pytest.mark.filterwarnings(
    "ignore::lpcfg_sk.exceptions.ParseFailureWarning"
)

TRAIN, TEST = load_toy(400)[:300], load_toy(400)[300:]

#: Right-hand sides of any length, words beside phrases, chains of unary rules.
GRAMMAR = CFG.from_string(
    "S -> A S B | A 'x' B | C | 'x'\nA -> C | 'a' | 'x' A 'x'\nC -> B | 'c' C\n"
    "B -> 'b' | 'a' 'b'"
)
SENTENCES = [s.split() for s in ("x", "b", "a x b", "x a x x b", "c a b x a b")]


@pytest.fixture(scope="module")
def parser():
    return make_parser(MarginEMPCFG(), horizontal=1).fit(TRAIN)


@pytest.fixture(scope="module")
def model():
    """Probabilities of `GRAMMAR` that every sentence can be derived with."""
    fitted = MarginEMPCFG(GRAMMAR, gamma=0.2).fit(SENTENCES)
    rng = np.random.default_rng(0)
    theta = normalised(GRAMMAR, rng.standard_exponential(len(GRAMMAR.rules)))
    fitted.theta_[:] = theta
    return fitted


def derivations(model, sentence):
    """Bracketed derivations of a sentence, with their probabilities."""
    theta = model.theta_.to_numpy()
    return {
        reference.bracketed(GRAMMAR, d): reference.probability(d, theta)
        for d in reference.derivations(GRAMMAR, sentence)
    }


# The rules of one fold do not derive the trees of the other: a search over them, which
# is tested below with the words of RareWords, has no finite score.
CHECKS = dict(
    tree_checks(MarginEMPCFG(), load_toy(40), skip=["check_pipeline_and_search"])
)


@pytest.mark.filterwarnings("ignore:.* rows are not in the language")
@pytest.mark.parametrize("name", CHECKS)
def test_common_checks(name):
    CHECKS[name]()


# -- in a pipeline ---------------------------------------------------------------------


@pytest.mark.slow_without_jit
def test_make_parser_of_margin_em_gives_trees_as_good_as_those_of_a_pcfg(parser):
    pcfg = make_parser(PCFG(), horizontal=1).fit(TRAIN)
    predicted = parser.predict(TEST)
    assert predicted.sentences() == TEST.sentences()
    assert not any("@" in str(tree) or "+" in str(tree) for tree in predicted)
    assert parseval_scorer(parser, TEST) == pytest.approx(pcfg.score(TEST), abs=0.005)
    assert parseval_scorer(pcfg, TEST) == pcfg.score(TEST)
    assert parser.score(TRAIN) < 0


def test_wsj_trees_of_margin_em_are_as_good_as_those_of_a_pcfg(wsj_train, wsj_dev):
    train, dev = wsj_train[:1000], wsj_dev[:60]
    parsers = [
        make_parser(learner, horizontal=1).fit(train)
        for learner in (MarginEMPCFG(), PCFG())
    ]
    found, expected = (parseval_scorer(parser, dev) for parser in parsers)
    assert found == pytest.approx(expected, abs=0.01)


def test_margin_em_reads_the_words_that_rarewords_made():
    trees = ["(S (A x) (B y))"] * 4 + ["(S (A rare) (B y))", "(S (A seldom) (B y))"]
    parser = make_parser(
        MarginEMPCFG(gamma=0), min_count=3, signature="none", min_class_count=1
    ).fit(trees)
    assert set(parser[-1].grammar_.terminals) == {"x", "y", "UNK"}
    tree = parser.predict([["unheard", "y"]])[0]
    assert str(tree) == "(S (A unheard) (B y))"
    seen = RareWords(min_count=3, signature="none").fit_transform(Treebank(trees))
    assert set(CFG.from_treebank(seen).terminals) == {"x", "y", "UNK"}
    # Without smoothing the counts are those of the classes.
    exact = MarginEMPCFG(gamma=0, lexicon_alpha=0).fit(seen)
    assert exact.theta_["A -> 'UNK'"] == pytest.approx(2 / 6)
    assert exact.score(seen) == pytest.approx(-exact.log_losses_[-1])


def test_a_known_word_can_have_a_tag_of_its_class():
    trees = ["(S (N fish) (V swim))"] * 3 + ["(S (N cod) (V go))", "(S (N go) (V cod))"]
    settings = {"min_count": 3, "signature": "none", "min_class_count": 1}
    parser = make_parser(MarginEMPCFG(), **settings).fit(trees)
    pcfg = make_parser(PCFG(), **settings).fit(trees)
    assert str(parser.predict([["swim", "fish"]])[0]) == "(S (N swim) (V fish))"
    grammar = parser[-1].grammar_
    pairs = {(r.lhs, r.rhs[0]) for r in grammar.rules if r.terminal == (True,)}
    assert pairs == {key for key in pcfg[-1].grammar_.lexical if key[1] != "<UNK>"}
    parser = make_parser(MarginEMPCFG(lexicon_alpha=0), **settings).fit(trees)
    assert parser.sentence_log_prob([["swim", "fish"]]) == -np.inf


def test_smoothed_lexicon_of_margin_em_is_that_of_a_pcfg():
    """With no margin the odds of the words of a tag are those of PCFG."""
    parsers = [
        make_parser(learner, horizontal=1).fit(TRAIN)
        for learner in (MarginEMPCFG(gamma=0), PCFG())
    ]
    margin, pcfg = (p[-1] for p in parsers)
    assert margin.objectives_ == margin.log_losses_
    by_tag = {}
    for (tag, word), value in pcfg.grammar_.lexical.items():
        if word != "<UNK>":
            by_tag.setdefault(tag, {})[f"{tag} -> '{word}'"] = float(value[0])
    for tag, rules in by_tag.items():
        rules = {name.replace("''", "'\\''"): v for name, v in rules.items()}
        found = margin.theta_[margin.theta_.index.str.startswith(f"{tag} -> ")]
        expected = np.array([rules[name] for name in found.index])
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=SUM)


@pytest.mark.slow_without_jit
def test_margin_em_has_the_methods_of_a_parser(parser):
    learner, X = parser[-1], parser[:-1].transform(TEST[:10])
    for parses, tree in zip(learner.parse_kbest(X, 3), TEST, strict=False):
        scores = [score for _, score in parses]
        assert scores == sorted(scores, reverse=True)
        assert parses[0][0].words() == tree.words()
        assert "@" not in str(parses[0][0])
    trees = Treebank([learner.parse_kbest(X, 1)[i][0][0] for i in range(10)])
    best = [learner.parse_kbest(X, 1)[i][0][1] for i in range(10)]
    again = parser.score_samples(trees)
    np.testing.assert_allclose(best, again, rtol=SUM)
    for frame in learner.marginals(X, normalize=True):
        assert frame["marginal"].max() <= 1 + 1e-6
        assert {"label", "start", "end", "marginal"} == set(frame.columns)
    spans = learner.span_marginals(X)[0]
    assert not spans["label"].str.contains("@").any()
    assert spans.loc[spans["tag"], "marginal"].sum() == pytest.approx(X.lengths[0])


def test_samples_of_margin_em_are_trees_of_the_original_labels(parser):
    trees = parser[-1].sample(20, random_state=0)
    assert not any("@" in name or "+" in name for name in trees.labels)
    assert trees[:5] == parser[-1].sample(5, random_state=0)
    binary = parser[:-2].transform(trees)
    assert np.isfinite(parser[-1].score_samples(binary)).all()


@pytest.mark.slow_without_jit
def test_margin_em_becomes_an_lpcfg_and_an_automaton(parser):
    learner, X = parser[-1], parser[:-1].transform(TEST[:20])
    grammar = learner.to_lpcfg()
    assert grammar.is_probabilistic
    expected = learner.score_samples(X)
    np.testing.assert_allclose(grammar.log_prob(X), expected, rtol=EXACT)
    np.testing.assert_allclose(
        grammar.sentence_log_prob(X), learner.sentence_log_prob(X), rtol=SUM
    )
    assert WTA.from_pcfg(learner).n_states == len(grammar.nonterminals)
    assert learner.to_wta().words == grammar.words
    small = Treebank(["(S (A x) (B y))"] * 3)
    assert SVTAMinimizer(MarginEMPCFG()).fit(small).wta_.n_states == 3


@pytest.mark.slow_without_jit
def test_margin_em_votes_with_other_parsers(parser):
    vote = VotingParser(
        [("margin", make_parser(MarginEMPCFG())), ("pcfg", make_parser(PCFG()))]
    ).fit(TRAIN)
    assert vote.score(TEST) > 0.7


@pytest.mark.slow_without_jit
def test_a_search_can_score_margin_em_by_f1():
    search = GridSearchCV(
        make_parser(MarginEMPCFG()),
        {"learner__s": [1.2, 3.0]},
        scoring=parseval_scorer,
        cv=2,
    ).fit(TRAIN[:60])
    assert 0.5 < search.best_score_ <= 1


@pytest.mark.slow_without_jit
def test_margin_parsers_survive_files(parser, tmp_path):
    save(parser, tmp_path / "model")
    assert load(tmp_path / "model").predict(TEST) == parser.predict(TEST)
    broken = make_parser(MarginEMPCFG()).fit(TRAIN[:40])
    broken[-1].theta_.iloc[0] = 5.0
    save(broken, tmp_path / "broken")
    with pytest.raises(ValueError, match="probability between 0 and 1"):
        load(tmp_path / "broken")


def test_sentences_beside_trees_use_the_same_words():
    trees = ["(S (A x) (B y))"] * 4 + ["(S (A rare) (B y))", "(S (A seldom) (B y))"]
    rows = Treebank([*Treebank(trees), ["unheard", "y"], ["x", "y"]])
    settings = {"min_count": 3, "signature": "none", "min_class_count": 1}
    parser = make_parser(MarginEMPCFG(), **settings).fit(rows)
    assert parser[-1].n_zero_probability_ == 0
    assert np.diff(parser[-1].objectives_).max() <= 1e-12


# -- grammars of any form --------------------------------------------------------------


def test_kbest_trees_of_any_grammar_are_those_of_enumeration(model):
    for sentence, found in zip(SENTENCES, model.parse_kbest(SENTENCES, 4), strict=True):
        expected = derivations(model, sentence)
        best = sorted(expected.values(), reverse=True)[:4]
        np.testing.assert_allclose([np.exp(s) for _, s in found], best, rtol=EXACT)
        np.testing.assert_allclose([expected[str(t)] for t, _ in found], best)
    assert model.parse_kbest([["x", "never"], []], 2) == [[], []]
    with pytest.raises(ValueError, match="k must be"):
        model.parse_kbest(SENTENCES, 0)


def test_lpcfg_of_any_grammar_has_its_tree_and_sentence_probabilities(model):
    grammar = model.to_lpcfg()
    assert grammar.is_probabilistic
    np.testing.assert_allclose(
        grammar.sentence_log_prob(SENTENCES),
        model.sentence_log_prob(SENTENCES),
        rtol=EXACT,
    )
    binary = grammar.sample(200, random_state=0)
    trees = unbinarize(binary)
    assert rules_of_trees(GRAMMAR, trees)[2].all()
    np.testing.assert_allclose(
        grammar.log_prob(binary), model.score_samples(trees), rtol=EXACT
    )
    # An automaton sums over the labels of a tree.
    values = model.to_wta().value(binary)
    np.testing.assert_array_equal(values, WTA.from_pcfg(grammar).value(binary))
    assert (values >= np.exp(grammar.log_prob(binary)) * (1 - EXACT)).all()
    assert (values <= np.exp(grammar.sentence_log_prob(binary)) * (1 + EXACT)).all()


@pytest.mark.parametrize("normalize", [False, True])
def test_marginals_of_any_grammar_are_those_of_enumeration(model, normalize):
    theta = model.theta_.to_numpy()
    frames = model.marginals(SENTENCES, normalize=normalize)
    for sentence, frame in zip(SENTENCES, frames, strict=True):
        expected, total = {}, 0.0
        for d in reference.derivations(GRAMMAR, sentence):
            p = reference.probability(d, theta)
            total += p
            for span in reference.constituents(GRAMMAR, d)[0]:
                expected[span] = expected.get(span, 0.0) + p
        found = frame.set_index(["label", "start", "end"])["marginal"].to_dict()
        assert found.keys() == expected.keys()
        for span, value in found.items():
            scale = total if normalize else 1.0
            assert value == pytest.approx(expected[span] / scale, rel=SUM)
    assert len(model.marginals([["never"]])[0]) == 0


@pytest.mark.parametrize("decoder", ["mbr", "max-rule-product"])
def test_all_decoders_parse_with_any_grammar(model, decoder):
    model = MarginEMPCFG(GRAMMAR, gamma=0.2, decoder=decoder).fit(SENTENCES)
    trees = model.predict(SENTENCES)
    assert trees.sentences() == SENTENCES
    assert set(trees.to_frame()["label"].dropna()) <= {*"SABC"}


def test_samples_of_any_grammar_follow_its_probabilities(model):
    trees = model.sample(4_000, random_state=0)
    assert rules_of_trees(GRAMMAR, trees)[2].all()
    counts = np.asarray(model.transform(trees).sum(axis=0)).ravel()
    np.testing.assert_allclose(normalised(GRAMMAR, counts), model.theta_, atol=0.04)
    with pytest.raises(ValueError, match="whole number"):
        model.sample(-1)
    growing = MarginEMPCFG(CFG.from_string("S -> S S | 'a'"), gamma=0.5)
    growing.fit([["a"]])
    growing.theta_[:] = [0.9, 0.1]
    with pytest.raises(ValueError, match="grew beyond max_nodes=500"):
        growing.sample(20, random_state=0, max_nodes=500)


def test_several_roots_stay_roots():
    trees = Treebank(["(S (A x) (B y))", "(T (A x) (B z))", "(S (B y))"] * 3)
    model = MarginEMPCFG(gamma=0).fit(trees)
    assert model.grammar_.implicit_start
    assert {t.label for t in model.sample(50, random_state=0)} == {"S", "T"}
    assert "START" not in set(model.marginals(trees[:1])[0]["label"])
    kbest = [str(tree) for tree, _ in model.parse_kbest([["x", "z"]])[0]]
    assert sorted(kbest) == ["(S (A x) (B z))", "(T (A x) (B z))"]
    grammar = model.to_lpcfg()
    assert {name for name in grammar.root} == {"S", "T", "S+B"}
    binary = model.fit(trees[:2]).to_lpcfg()
    assert {name: v[0] for name, v in binary.root.items()} == {"S": 0.5, "T": 0.5}


def test_cycles_of_unary_rules_have_no_lpcfg():
    grammar = CFG.from_string("S -> A | 'x'\nA -> S | 'y'", unary_cycles="allow")
    model = MarginEMPCFG(grammar, gamma=0.1).fit([["x"], ["y"], ["x"]])
    for method in (model.to_lpcfg, model.to_wta, lambda: model.parse_kbest([["x"]])):
        with pytest.raises(ValueError, match="S -> A -> S form a cycle"):
            method()
    # What needs no list of all trees works.
    assert model.sample(5, random_state=0).n_tokens == 5
    assert model.marginals([["x"]], normalize=True)[0]["marginal"].max() > 1
    assert str(model.predict([["x"]])[0]) == "(S x)"
    model.set_params(decoder="max-marginal")
    assert model.predict([["x"]])[0].words() == ["x"]
