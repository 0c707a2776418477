import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lpcfg_sk import (
    EMLPCFG,
    LPCFG,
    PCFG,
    MarginEMPCFG,
    SpectralLPCFG,
    Treebank,
    TreeBinarizer,
    make_parser,
)
from lpcfg_sk._base import DECODERS, BaseLPCFG
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import ChartMemoryError, ParseFailureWarning, TreebankWarning
from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays
from lpcfg_sk.metrics import f1_score
from lpcfg_sk.treebank import RuleIndex
from tests.reference import charts as ref
from tests.tolerances import SUM

TREES = [
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
    "(S (NP (D a) (J big) (N cat)) (VP (V slept)))",
    "(S (NP (N dogs)) (VP (V saw) (NP (D the) (J old) (N fox)) (PP (P in) (N it))))",
    "(S (NP (N dogs)) (VP (V slept)))",
    "(S (NP (NP (D the) (N cat)) (PP (P in) (NP (N town)))) (VP (V slept)))",
    "(FRAG (NP (N dogs)))",
]


class Counting(BaseLPCFG):
    """Relative frequencies, with one state or copies of it."""

    def __init__(
        self,
        m=1,
        *,
        decoder="auto",
        prune=3e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            decoder=decoder,
            prune=prune,
            max_memory=max_memory,
            on_failure=on_failure,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.m = m

    def fit(self, X, y=None, *, sample_weight=None):
        index = RuleIndex.from_treebank(X)
        self._set_model(self._grammar(index, self.m), self._grammar(index, 1), X)
        return self

    def _grammar(self, index, m):
        counts = index.count()
        total = counts.label_count
        n_labels = len(total)
        binary = counts.rule_count / total[index.rule_parent]
        lexical = counts.lexical_count / total[index.lex_label]
        root = counts.root_count / index.n_trees
        arrays = GrammarArrays(
            n_states=np.full(n_labels, m),
            rule_parent=index.rule_parent,
            rule_left=index.rule_left,
            rule_right=index.rule_right,
            rule_offset=np.arange(len(binary) + 1) * m**3,
            binary=np.repeat(binary, m**3) / m**2,
            word_offset=index.word_offset,
            lex_label=index.lex_label,
            lex_offset=np.arange(len(lexical) + 1) * m,
            lexical=np.repeat(lexical, m),
            root_label=index.root_label,
            root_offset=np.arange(len(root) + 1) * m,
            root=np.repeat(root, m) / m,
        )
        return LPCFG.from_arrays(index.nonterminals, index.words, arrays)


@pytest.fixture(scope="module")
def trees():
    return TreeBinarizer().fit_transform(Treebank(TREES))


@pytest.fixture(scope="module")
def model(trees):
    return Counting().fit(trees)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("prune", [None, 3e-4])
def test_predict_gives_full_trees_over_the_tokens(trees, decoder, m, prune):
    model = Counting(m, decoder=decoder, prune=prune).fit(trees)
    predicted = model.predict(trees)
    assert predicted.sentences() == trees.sentences()
    assert not predicted.binarized
    assert predicted[0] == Treebank(TREES)[0]
    assert str(predicted[-1]) == TREES[-1]
    assert model.score(trees) > 0.9


def test_score_is_the_f1_of_predict(model, trees):
    gold = Treebank(TREES)
    score = model.score(trees)
    assert score == f1_score(gold, model.predict(trees))
    assert score == model.score(trees.unparsed(), gold)
    assert score == model.score(trees, trees)
    weight = np.array([2.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    expected = f1_score(gold, model.predict(trees), sample_weight=weight)
    assert model.score(trees, sample_weight=weight) == expected


def test_score_does_not_count_the_root():
    rooted = Treebank([f"(ROOT {tree})" for tree in TREES])
    model = Counting().fit(TreeBinarizer().fit_transform(rooted))
    assert all(tree.label == "ROOT" for tree in model.predict(rooted))
    # Nothing is right but the root.
    wrong = [f"(ROOT {tree}".replace("P ", "Q ").replace("S ", "Z ") for tree in TREES]
    wrong = Treebank([tree.replace("FRAG", "GARF") + ")" for tree in wrong])
    assert model.score(wrong) == 0.0


def test_copies_of_states_change_nothing(trees, model):
    copied = Counting(4).fit(trees)
    for decoder in ("max-marginal", "mbr", "max-rule-product"):
        one = model.set_params(decoder=decoder).predict(trees)
        assert one == copied.set_params(decoder=decoder).predict(trees)
    np.testing.assert_allclose(
        model.sentence_log_prob(trees), copied.sentence_log_prob(trees), rtol=SUM
    )
    model.set_params(decoder="auto")


def test_sentence_without_a_parse_gets_a_flat_tree(model):
    sentences = Treebank([["dogs", "slept"], ["the", "the", "in"], ["saw"]])
    for decoder in DECODERS:
        model.set_params(decoder=decoder)
        with pytest.warns(ParseFailureWarning, match="2 of 3 sentences have no parse"):
            predicted = model.predict(sentences)
        assert predicted.sentences() == sentences.sentences()
        assert str(predicted[0]) == TREES[3]
        assert str(predicted[1]) == "(S (D the) (D the) (P in))"
        assert str(predicted[2]) == "(S (V saw))"
    model.set_params(decoder="auto")
    assert len(model.span_marginals(sentences)[1]) == 0
    assert model.parse_kbest(sentences, 3)[1] == []


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    ("trees", "flat"),
    [
        (
            ["(ROOT (FRAG (NP (N a))))"] * 5 + ["(ROOT (S (NP (N b)) (VP v)))"],
            "(ROOT (S (N q) (N r) (N t)))",
        ),
        (["(S (A b))"], "(S (A q) (A r) (A t))"),
        (["(A b)"], "(A (A q) (A r) (A t))"),
        (["(S (X (Y+Z a) b))"], "(S (X (Y+Z q) (Y+Z r) (Y+Z t)))"),
    ],
)
def test_the_tree_of_last_resort_has_one_root_chain_and_a_tag_a_word(
    trees, flat, decoder
):
    trees = TreeBinarizer().fit_transform(trees)
    model = Counting(decoder=decoder).fit(trees)
    with pytest.warns(ParseFailureWarning):
        assert str(model.predict([["q", "r", "t"]])[0]) == flat


def test_unknown_words_are_parsed(model):
    sentences = [["a", "zebra", "slept"], ["qua", "qui", "quo", "que"], ["zebra"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = model.predict(sentences)
    assert str(predicted[0]) == "(S (NP (D a) (N zebra)) (VP (V slept)))"
    assert predicted.sentences() == sentences
    assert predicted[2].label == "FRAG"
    # No tree of the grammar has these words, whatever predict makes of them.
    np.testing.assert_array_equal(model.sentence_log_prob(sentences), -np.inf)


def test_given_tags_are_kept(model):
    sentence = ["dogs", "saw", "the", "cat"]
    assert model.predict([sentence])[0].tags() == ["N", "V", "D", "N"]
    odd = [("dogs", "J"), "cat", "slept"]
    with pytest.warns(ParseFailureWarning):
        assert model.predict([odd])[0].tags() == ["J", "N", "V"]
    tagged = [("the", "D"), ("zebra", "N"), ("zebra", "V")]
    assert model.predict([tagged])[0].tags() == ["D", "N", "V"]
    unheard = [("dogs", "NOSUCHTAG"), "slept"]
    with pytest.warns(TreebankWarning, match="1 given tag was never seen"):
        assert str(model.predict([unheard])[0]) == TREES[3]


def test_probabilities(model, trees):
    tree_logs = model.score_samples(trees)
    sentence_logs = model.sentence_log_prob(trees)
    assert np.isfinite(tree_logs).all()
    assert np.all(sentence_logs >= tree_logs - SUM)
    frames = model.marginals(trees, normalize=True)
    np.testing.assert_allclose(
        [frame["marginal"].sum() for frame in frames], 2 * trees.lengths - 1, rtol=SUM
    )
    plain = model.marginals(trees)
    for log, frame in zip(sentence_logs, plain, strict=True):
        assert list(frame.columns) == ["label", "start", "end", "marginal"]
        np.testing.assert_allclose(frame["marginal"].max(), np.exp(log), rtol=SUM)


def test_span_marginals_are_those_of_original_labels(model, trees):
    gold = Treebank(TREES)
    for row, frame in enumerate(model.span_marginals(trees)):
        assert list(frame.columns) == ["label", "start", "end", "marginal", "tag"]
        n = trees.lengths[row]
        tags = frame[frame["tag"]]
        sums = tags.groupby("start")["marginal"].sum()
        np.testing.assert_allclose(sums, np.ones(n), rtol=SUM)
        assert not frame["label"].str.contains("[@+]", regex=True).any()
        if row in (0, 3):
            # These sentences have one parse.
            nodes = gold[[row]].to_frame()
            expected = set(zip(nodes.label, nodes.start, nodes.stop, strict=True))
            assert (
                set(zip(frame.label, frame.start, frame.end, strict=True)) == expected
            )
            np.testing.assert_allclose(frame["marginal"], 1.0, rtol=SUM)


def test_parse_kbest(model, trees):
    parses = model.parse_kbest(trees, k=5)
    for row, found in enumerate(parses):
        best, score = found[0]
        assert best.words() == trees.sentences()[row]
        assert score <= model.sentence_log_prob(trees[[row]])[0] + SUM
        scores = [s for _, s in found]
        assert scores == sorted(scores, reverse=True)
        assert len({str(tree) for tree, _ in found}) == len(found)
    model.set_params(decoder="viterbi")
    assert [found[0][0] for found in parses] == model.predict(trees).tolist()
    model.set_params(decoder="auto")
    with pytest.raises(ValueError, match="k must be"):
        model.parse_kbest(trees, 0)


def test_jobs_change_nothing(model, trees):
    many = trees[np.tile(np.arange(len(trees)), 40)]
    two = Counting(n_jobs=2).fit(trees)
    assert model.predict(many) == two.predict(many)
    np.testing.assert_array_equal(
        model.sentence_log_prob(many), two.sentence_log_prob(many)
    )


def test_viterbi_refuses_signed_grammars(seed):
    rng = np.random.default_rng(seed)
    grammar = ref.random_grammar(rng)
    signed = grammar.conjugate(ref.random_transforms(rng, grammar))
    model = Counting(prune=None)
    model._set_model(signed, None, Treebank([["x"]]))
    with pytest.raises(ValueError, match="negative parameters"):
        model.set_params(decoder="viterbi").predict([["x", "y"]])
    plain = Counting(prune=None, decoder="max-marginal")
    plain._set_model(grammar, None, Treebank([["x"]]))
    assert model.set_params(decoder="auto").predict([["x", "y"]]) == plain.predict(
        [["x", "y"]]
    )


def test_bad_input(model):
    small = Counting(max_memory=1000, on_failure="raise")
    with pytest.raises(ChartMemoryError, match=r"row 1 \(50 words\).*raise max_memory"):
        small.fit(TreeBinarizer().fit_transform(TREES)).predict(
            [["dogs"], ["dogs"] * 50]
        )
    with pytest.raises(NotFittedError):
        Counting().predict([["dogs"]])
    assert len(model.predict(Treebank([]))) == 0


def test_score_takes_gold_trees_for_each_sentence(model, trees):
    assert 0 <= model.score(trees, TREES) <= 1
    with pytest.raises(ValueError, match="none of these 6 rows has one"):
        model.score(trees.unparsed())


@pytest.mark.parametrize("n_jobs", [0, 1.5])
def test_jobs_that_joblib_refuses_are_refused(trees, n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        PCFG(n_jobs=n_jobs).fit(trees)


def test_fit_transform_takes_weights_and_iterators():
    plain = Treebank(["(S (A x) (B y))", "(S (B y) (A x))"])
    weighted = PCFG().fit(plain, sample_weight=[3.0, 1.0]).transform(plain)
    again = PCFG().fit_transform(iter(plain), None, sample_weight=[3.0, 1.0])
    np.testing.assert_array_equal(weighted.vectors, again.vectors)
    with config_context(enable_metadata_routing=True):
        model = PCFG().set_fit_request(sample_weight=True)
        routed = model.fit_transform(iter(plain), sample_weight=[3.0, 1.0])
    np.testing.assert_array_equal(weighted.vectors, routed.vectors)


def test_pickle_knows_its_version(model, trees):
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(trees) == model.predict(trees)
    state = model.__getstate__()
    state["_lpcfg_sk_version"] = "0.0"
    fresh = Counting()
    with pytest.warns(UserWarning, match=r"pickled by lpcfg_sk 0\.0"):
        fresh.__setstate__(state)
    assert "_lpcfg_sk_version" not in vars(fresh)


@pytest.mark.parametrize("weight", [1e-300, 1e300])
@pytest.mark.parametrize("learner", [EMLPCFG(1), SpectralLPCFG(1), MarginEMPCFG()])
def test_weights_beyond_the_range_of_products_are_refused(learner, weight):
    X = make_parser(learner)[:-1].fit_transform(load_toy(8))
    with pytest.raises(ValueError, match="sample_weight"):
        clone(learner).fit(X, sample_weight=[weight] + [1.0] * 7)
