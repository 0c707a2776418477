import pytest
from sklearn.model_selection import cross_val_predict

from lpcfg_sk import (
    PCFG,
    KneserNeyLM,
    RareWords,
    SpectralLPCFG,
    SVTAMinimizer,
    Treebank,
    make_parser,
)
from lpcfg_sk.datasets import load_toy

TREES = [
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
    "(S (NP (D a) (J big) (N cat)) (VP (V slept)))",
    "(S (NP (N dogs)) (VP (V slept)))",
]


def test_steps_follow_the_learner():
    assert list(make_parser().named_steps) == ["binarize", "rarewords", "learner"]
    assert isinstance(make_parser()[-1], PCFG)
    steps = list(make_parser(SpectralLPCFG()).named_steps)
    assert steps == ["binarize", "rarewords", "inside", "outside", "learner"]


def test_parameters_find_their_step():
    parser = make_parser(
        SpectralLPCFG(m=2), direction="left", horizontal=1, rarewords__min_count=1
    )
    assert parser["binarize"].direction == "left"
    assert parser["binarize"].horizontal == 1
    assert parser["rarewords"].min_count == 1
    with pytest.raises(TypeError, match="'templates' is a parameter of several steps"):
        make_parser(SpectralLPCFG(), templates=())
    with pytest.raises(TypeError, match=r"'m' is no parameter.*binarize__direction"):
        make_parser(PCFG(), m=3)
    with pytest.raises(TypeError, match="must be an estimator such as"):
        make_parser(PCFG)


def test_ambiguous_parameters_name_their_steps():
    steps = "rarewords__min_count, inside__min_count, outside__min_count"
    with pytest.raises(TypeError, match=steps):
        make_parser(SpectralLPCFG(), min_count=2)


@pytest.mark.parametrize("learner", [KneserNeyLM(), RareWords()])
def test_what_does_not_parse_is_refused(learner):
    with pytest.raises(TypeError, match="has no predict"):
        make_parser(learner)
    assert isinstance(make_parser(SVTAMinimizer())[-1], SVTAMinimizer)


def test_iterators_are_read_once():
    parser = make_parser(min_count=1).fit(tree for tree in TREES)
    assert parser.predict(iter(Treebank(TREES).sentences())) == Treebank(TREES)
    assert parser.score(iter(TREES)) == 1.0


@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
def test_cross_val_predict_gives_trees():
    trees = load_toy(60)
    predicted = cross_val_predict(make_parser(PCFG()), trees, cv=2)
    assert predicted.shape == (60,)
    assert Treebank(predicted).sentences() == trees.sentences()
    expected = make_parser(PCFG()).fit(trees[30:]).predict(trees[:30])
    assert Treebank(predicted[:30]) == expected


def test_from_trees_to_trees():
    trees = Treebank(TREES)
    parser = make_parser(min_count=1).fit(trees)
    assert parser.predict(trees) == trees
    assert parser.predict(trees.sentences()) == trees
    assert parser.score(trees) == 1.0
    assert len(parser.score_samples(trees)) == 3
