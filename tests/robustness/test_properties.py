"""Properties of all learners over random treebanks.

The common checks (``lpcfg_sk.testing``) fix one treebank; here hypothesis draws
the grammar that trees come from, also degenerate ones.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from lpcfg_sk import (
    EMLPCFG,
    PCFG,
    KneserNeyLM,
    PivotLPCFG,
    SpectralLPCFG,
    VotingParser,
    load,
    make_parser,
    save,
)
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from tests.tolerances import ITERATIVE

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow_without_jit,
]

_EM = {"max_iter": 2, "tol": None, "validation_fraction": None, "random_state": 0}
LEARNERS = {
    "pcfg": PCFG(),
    "em": EMLPCFG(2, **_EM),
    "spectral": SpectralLPCFG(2, random_state=0),
    "pivot": PivotLPCFG(2),
}
PARSERS = {name: make_parser(learner) for name, learner in LEARNERS.items()}
PARSERS["voting"] = VotingParser(
    [("a", make_parser(PCFG())), ("b", make_parser(EMLPCFG(2, **_EM)))]
)

few = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@st.composite
def treebanks(draw):
    """Trees of a random grammar; at least one, of any length."""
    grammar = make_lpcfg(
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 12)),
        m=draw(st.integers(1, 2)),
        mean_length=draw(st.sampled_from([2.5, 4.0, 8.0])),
        random_state=draw(st.integers(0, 1000)),
    )
    n = draw(st.sampled_from([1, 2, 5, 15]))
    return make_treebank(grammar, n, random_state=draw(st.integers(0, 1000)))


def _is_over(tree, sentence):
    return list(tree.words()) == list(sentence) and str(tree).count("(") >= len(
        sentence
    )


@pytest.mark.parametrize("name", PARSERS)
@few
@given(X=treebanks(), strange=st.lists(st.text("ab-1é", min_size=1), max_size=4))
def test_any_treebank_makes_a_parser(name, X, strange):
    parser = clone(PARSERS[name]).fit(X)
    sentences = [*X.sentences()[:4], ["word"], [*strange, "x"]]
    trees = parser.predict(sentences)
    assert len(trees) == len(sentences)
    assert all(map(_is_over, trees, sentences))
    assert 0 <= parser.score(X) <= 1
    # Fitting again gives the same, to the bit.
    assert clone(parser).fit(X).predict(sentences) == trees


@pytest.mark.parametrize("name", LEARNERS)
@few
@given(X=treebanks())
def test_no_parameter_is_nan_and_files_keep_them(name, X, tmp_path_factory):
    parser = clone(PARSERS[name]).fit(X)
    grammar = parser[-1].grammar_
    for values in (grammar.arrays.binary, grammar.arrays.lexical, grammar.arrays.root):
        assert np.isfinite(values).all()
    scores = parser[-1].score_samples(parser[:-1].transform(X))
    assert not np.isnan(scores).any()
    path = tmp_path_factory.mktemp("models") / "model"
    save(parser, path, compact=False)
    assert load(path)[-1].grammar_ == grammar


@pytest.mark.parametrize("name", ["pcfg", "pivot"])
@few
@given(X=treebanks(), seed=st.integers(0, 99))
def test_the_order_of_trees_does_not_matter(name, X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    prepared = PARSERS[name][:-1].fit_transform(X)
    one = clone(LEARNERS[name]).fit(prepared)
    two = clone(LEARNERS[name]).fit(prepared[order])
    np.testing.assert_allclose(
        one.score_samples(prepared),
        two.score_samples(prepared),
        rtol=ITERATIVE,
        atol=ITERATIVE,
    )


@pytest.mark.parametrize("name", ["pcfg", "em", "pivot"])
@few
@given(X=treebanks(), data=st.data())
def test_a_weight_is_a_number_of_copies(name, X, data):
    weights = data.draw(
        st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X)).filter(any)
    )
    prepared = PARSERS[name][:-1].fit_transform(X)
    copies = prepared[np.repeat(np.arange(len(X)), weights)]
    learner = clone(LEARNERS[name])
    weighted = clone(learner).fit(prepared, sample_weight=np.array(weights, float))
    np.testing.assert_allclose(
        weighted.score_samples(copies),
        clone(learner).fit(copies).score_samples(copies),
        rtol=ITERATIVE,
        atol=ITERATIVE,
    )


@few
@given(
    X=st.lists(
        st.lists(st.sampled_from("abcde"), min_size=1, max_size=6),
        min_size=1,
        max_size=8,
    ),
    order=st.integers(1, 4),
    mode=st.sampled_from(["stream", "sentence"]),
)
def test_language_models_are_distributions(X, order, mode):
    model = KneserNeyLM(order, mode=mode, min_count=1).fit(X)
    histories = [[], ["a"], ["zebra", "b"], X[0]]
    proba = model.predict_proba(histories)
    assert (proba > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=ITERATIVE)
