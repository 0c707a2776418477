"""The toy treebank, and the compiler of its grammar."""

from collections import Counter

import numpy as np
import pytest

from lpcfg_sk import PCFG, TreeBinarizer, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.datasets._toy import compile_templates
from lpcfg_sk.metrics import f1_score
from lpcfg_sk.parsing import ChartParser
from lpcfg_sk.treebank import head_token
from tests.tolerances import EXACT

SMALL = """
S -> NP[n] VP[n] . : 3
S -> VP[sg] : 1
NP[sg] -> DT NN : 2
NP[n] -> PRP[n] : 1
NP[n] -> NP[m] CC NP[n] : 1
VP[n] -> V[n] NP[m] : 1
VP[n] -> V[n] : 1
DT = the
NN = dog
CC = and
. = .
PRP[sg] = he it
PRP[pl] = they
V[sg] = sees
V[pl] = see
"""
NUMBERS = {"n": {"sg": 0.75, "pl": 0.25}, "m": {"sg": 0.5, "pl": 0.5}}


@pytest.fixture(scope="module")
def small():
    return compile_templates(SMALL, domains=NUMBERS, root=("S", ()))


def test_compiled_probabilities_by_hand(small):
    # S -> NP[sg] VP[sg] . ; NP -> PRP ; VP -> V ; PRP -> he
    he = 0.75 * 0.75 * (1 / 4) * (1 / 2) * (3 / 5)
    # S -> VP[sg] ; VP -> V NP[m] ; NP[sg] -> DT NN
    the_dog = 0.25 * 0.5 * 0.5 * (2 / 4)
    # NP[pl] -> NP[m] CC NP[pl] ; NP[pl] -> PRP
    both = 0.75 * 0.25 * 0.5 * (0.5 * 2 / 4) * (1 / 2) * (1 / 2)
    trees = [
        "(S (NP+PRP he) (@S (VP+V sees) (. .)))",
        "(S+VP (V sees) (NP (DT the) (NN dog)))",
        "(S (NP (NP (DT the) (NN dog)) (@NP (CC and) (NP+PRP they)))"
        " (@S (VP+V see) (. .)))",
        "(S (NP+PRP he) (@S (VP+V see) (. .)))",
    ]
    np.testing.assert_allclose(
        np.exp(small.log_prob(trees)), [he, the_dog, both, 0.0], rtol=EXACT
    )
    assert small.is_probabilistic


def test_states_are_features(small):
    assert small.m["@S"] == small.m["NP+PRP"] == small.m["VP"] == 2
    assert small.m["S"] == small.m["DT"] == 1
    # What is still to come of NP -> NP CC NP is the number of the last one.
    assert small.m["@NP"] == 2


@pytest.fixture(scope="module")
def toy():
    return load_toy(return_grammar=True)


@pytest.mark.slow_without_jit
def test_trees_are_fixed_and_fit_the_grammar(toy):
    treebank, grammar = toy
    assert len(treebank) == 3000
    assert not treebank.binarized
    assert load_toy() == treebank
    assert load_toy(500) == treebank[:500]
    assert load_toy(subset="train") == treebank[:2400]
    assert load_toy(subset="test") == treebank[2400:]
    assert len(load_toy(1, subset="test")) == 0
    assert grammar.is_probabilistic
    binary = TreeBinarizer().fit_transform(treebank)
    assert set(binary.labels) <= set(grammar.nonterminals)
    assert not any("~" in label for label in binary.labels)
    assert np.isfinite(grammar.log_prob(binary)).all()
    assert 12 < treebank.lengths.mean() < 18
    assert treebank.lengths.max() < 150


@pytest.mark.slow_without_jit
def test_subjects_agree_with_verbs(toy):
    treebank, _ = toy
    pairs = Counter()
    for tree in treebank:
        for clause in (tree, *tree.children):
            if isinstance(clause, str) or clause.label != "S":
                continue
            labels = [child.label for child in clause.children]
            if "NP" in labels and "VP" in labels:
                subject = clause.children[labels.index("NP")]
                verb = clause.children[labels.index("VP")].children[0].label
                pairs[subject.children[-1].label, verb] += 1
    assert pairs["NN", "VBZ"] > 50 < pairs["NNS", "VBP"]
    assert pairs["NN", "VBP"] == pairs["NNS", "VBZ"] == 0
    assert pairs["NN", "VBD"] > 50 < pairs["NNS", "VBD"]


def test_words_decide_about_attachment(toy):
    treebank, _ = toy
    heads = head_token(treebank)
    where = {"VP": Counter(), "NP": Counter()}
    for t, words in enumerate(treebank.sentences()):
        lo, hi = treebank.node_offsets[t : t + 2]
        for i in range(lo, hi):
            if treebank.size[i] == 1 or treebank.parent[i] < 0:
                continue
            label = treebank.labels[treebank.label[i]]
            above = treebank.labels[treebank.label[lo + treebank.parent[i]]]
            if label == "PP" and above in where and words[heads[i]] == "with":
                noun = words[treebank.stop[i] - 1]
                where[above][noun] += 1
    assert where["NP"]["beard"] > 5 < where["VP"]["hammer"]
    assert where["VP"]["beard"] == where["NP"]["hammer"] == 0
    assert where["NP"]["stick"] > 5 < where["VP"]["stick"]


@pytest.mark.slow_without_jit
def test_a_plain_pcfg_does_badly_and_the_true_grammar_well(toy):
    treebank, grammar = toy
    train, test = treebank[:2400], treebank[2400:]
    oracle = ChartParser(
        grammar, None, binarized=True, decoder="max-marginal", prune=None
    )
    best, failed = oracle.predict(test)
    assert not failed
    plain = make_parser(PCFG()).fit(train).predict(test)
    assert f1_score(test, best) > 0.94
    assert f1_score(test, plain) < 0.85


def test_bad_parameters():
    with pytest.raises(ValueError, match="subset"):
        load_toy(subset="dev")
    with pytest.raises(ValueError, match="n"):
        load_toy(0)
