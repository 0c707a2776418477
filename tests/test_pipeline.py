import pytest

from lpcfg_sk import PCFG, SpectralLPCFG, Treebank, make_parser

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


def test_from_trees_to_trees():
    trees = Treebank(TREES)
    parser = make_parser(min_count=1).fit(trees)
    assert parser.predict(trees) == trees
    assert parser.predict(trees.sentences()) == trees
    assert parser.score(trees) == 1.0
    assert len(parser.score_samples(trees)) == 3
