"""Words that are given with their tags."""

import warnings

import numpy as np
import pytest

from lpcfg_sk import LPCFG, PCFG, SpectralLPCFG, Treebank, make_parser
from lpcfg_sk.metrics import paired_bootstrap
from lpcfg_sk.parsing._charts import ChartModel
from lpcfg_sk.parsing._pruning import ChartPruner
from lpcfg_sk.parsing._sentences import SentenceCharts
from lpcfg_sk.parsing._tags import TagBackoff, unknown_weights
from lpcfg_sk.spectral import treebank_to_tagged_sequences
from tests.reference import charts as ref
from tests.tolerances import EXACT, SUM

pytestmark = pytest.mark.slow_without_jit

TREES = [
    "(S (NP (N dogs)) (VP (V bark)))",
    "(S (NP (N dogs)) (VP (V saw) (NP (D the) (N cat))))",
    "(S (NP (D the) (N cat)) (VP (V slept)))",
]
DECODERS = ["mbr", "max-marginal", "max-rule-product", "viterbi"]


def parser(decoder="auto", prune=3e-4):
    learner = PCFG(0.0, decoder=decoder, prune=prune)
    return make_parser(learner, min_count=1).fit(Treebank(TREES))


def without_warnings(method, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return method(*arguments)


@pytest.mark.parametrize("prune", [3e-4, None])
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    ("sentence", "tree"),
    [
        # Training has dogs as a noun phrase of its own, never after an article.
        (
            [("the", "D"), ("dogs", "N"), ("slept", "V")],
            "(S (NP (D the) (N dogs)) (VP (V slept)))",
        ),
        # A known word with a tag that it never had.
        (
            [("the", "D"), ("bark", "N"), ("slept", "V")],
            "(S (NP (D the) (N bark)) (VP (V slept)))",
        ),
        # No tree of the grammar has these tags.
        (
            [("the", "D"), ("cat", "V"), ("slept", "V")],
            "(S (NP (D the) (V cat)) (VP (V slept)))",
        ),
    ],
    ids=["chain", "new tag", "no tree"],
)
def test_given_tags_are_kept_and_always_have_a_parse(decoder, prune, sentence, tree):
    model = parser(decoder, prune)
    predicted = without_warnings(model.predict, [sentence])
    assert str(predicted[0]) == tree
    X = model[:-1].transform(Treebank([sentence]))
    parses = model[-1].parse_kbest(X, 5)[0]
    assert str(parses[0][0]) == tree
    assert len({str(tree) for tree, _ in parses}) == len(parses)
    assert all(found.tags() == [t for _, t in sentence] for found, _ in parses)


def test_given_tags_are_certain_in_span_marginals():
    model = parser()
    sentence = [("the", "D"), ("cat", "V"), ("slept", "V")]
    frame = model[-1].span_marginals(model[:-1].transform(Treebank([sentence])))[0]
    tags = frame[frame["tag"]]
    assert list(zip(tags["label"], tags["marginal"], strict=True)) == [
        ("D", 1.0),
        ("V", 1.0),
        ("V", 1.0),
    ]


def test_probabilities_follow_given_tags_to_the_letter():
    model = parser()
    learner, steps = model[-1], model[:-1]
    sentences = [
        [("dogs", "N"), ("bark", "V")],
        [("dogs", "V"), ("bark", "V")],
        ["dogs", "bark"],
    ]
    logs = learner.sentence_log_prob(steps.transform(Treebank(sentences)))
    np.testing.assert_allclose(logs[0], logs[2], rtol=EXACT)
    assert logs[1] == -np.inf


@pytest.mark.parametrize("draw", range(3))
def test_values_under_given_tags_equal_the_formula(seed, draw):
    rng = np.random.default_rng([seed, draw])
    coarse = ref.random_grammar(rng, max_states=1)
    m = {a: int(rng.integers(1, 4)) for a in "ABCDE"}
    fine = LPCFG.from_parameters(
        {(a, b, c): rng.random((m[a], m[b], m[c])) for a, b, c in coarse.binary},
        {(a, x): rng.random(m[a]) for a, x in coarse.lexical if (a, x) != ("D", "y")},
        {a: rng.random(m[a]) for a in coarse.root},
    )
    plain = LPCFG.from_parameters(
        coarse.binary,
        {rule: v for rule, v in coarse.lexical.items() if rule != ("D", "y")},
        coarse.root,
    )
    within, novel, other = 0.3, 0.7, 0.2
    backoff = TagBackoff(plain, within=within, novel=novel, other=other)
    pruner = ChartPruner(plain, 1e-300)
    sentence = [("x", "C"), ("y", "D"), "z", ("x", "E")]
    charts = SentenceCharts(
        ChartModel(fine, pruner), Treebank([sentence]), tag_backoff=backoff
    )
    frequency = ref.label_frequencies(plain)
    size = sum(frequency.values())
    weight = dict(zip(plain.words, unknown_weights(plain.arrays), strict=True))

    def mass(label, word):
        return frequency[label] / size * float(plain.lexical.get((label, word), [0])[0])

    lexical = {}
    for i, token in enumerate(sentence):
        word, tag = (token, None) if isinstance(token, str) else token
        for a in "CDE":
            value = fine.lexical.get((a, word), np.zeros(m[a]))
            if tag == a and mass(a, word):
                share = mass(a, word) / sum(mass(a, x) for x in "xyz")
                value = value + within * share * sum(
                    fine.lexical.get((a, x), np.zeros(m[a])) for x in "xyz"
                )
            elif tag == a:
                share = sum(mass(b, word) for b in "CDE")
                share /= sum(weight[x] * mass(a, x) for x in "xyz")
                value = (
                    novel
                    * share
                    * sum(
                        weight[x] * fine.lexical.get((a, x), np.zeros(m[a]))
                        for x in "xyz"
                    )
                )
            elif tag is not None:
                value = other * value
            lexical[a, f"{word}{i}"] = value
    there = LPCFG.from_parameters(fine.binary, lexical, fine.root)
    words = [f"{t if isinstance(t, str) else t[0]}{i}" for i, t in enumerate(sentence)]
    parses = ref.all_parses(there, words)
    z = sum(value for _, value in parses)
    chart = charts.chart(0)
    np.testing.assert_allclose(np.exp(chart.log_prob), z, rtol=SUM)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("learner", [PCFG(), SpectralLPCFG(8)])
def test_gold_tags_do_not_lose_f1_on_wsj_dev(wsj_train, wsj_dev, learner):
    model = make_parser(learner, horizontal=1).fit(wsj_train)
    gold = wsj_dev[np.flatnonzero(wsj_dev.lengths <= 30)]
    tagged = Treebank(treebank_to_tagged_sequences(gold))
    with_tags = without_warnings(model.predict, tagged)
    without = model.predict(gold.unparsed())
    result = paired_bootstrap(gold, with_tags, without, random_state=0)
    # A difference of one bracket in a thousand is noise; a loss would be significant.
    assert result.difference >= 0.0 or result.p_value > 0.05
    assert [t.tags() for t in with_tags] == [t.tags() for t in gold]
