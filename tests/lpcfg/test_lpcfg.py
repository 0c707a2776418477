import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lpcfg_sk import LPCFG, Treebank
from lpcfg_sk.lpcfg import GrammarArrays, posterior_vectors
from tests.reference import lpcfg as reference
from tests.tolerances import EXACT, SUM


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def grammar():
    return LPCFG.from_parameters(
        binary={
            ("S", "A", "A"): np.full((1, 2, 2), 0.125),
            ("S", "S", "A"): np.full((1, 1, 2), 0.25),
        },
        lexical={("A", "x"): [1.0, 0.5], ("A", "y"): [0.0, 0.5]},
        root={"S": [1.0]},
    )


def random_case(rng, n_trees=12, **options):
    grammar = reference.random_grammar(rng, **options)
    return grammar, [reference.random_tree(rng, grammar) for _ in range(n_trees)]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("case", range(4))
def test_tree_values_equal_the_sum_over_annotations(case, signed):
    rng = np.random.default_rng(case)
    grammar, trees = random_case(rng, signed=signed)
    signs, logs = grammar.tree_values(trees)
    expected = np.array([reference.tree_value(grammar, t) for t in trees])
    assert_allclose(signs * np.exp(logs), expected, rtol=EXACT, atol=0)
    log_prob = grammar.log_prob(trees)
    assert np.all(np.isneginf(log_prob[expected <= 0]))
    assert_allclose(
        log_prob[expected > 0], np.log(expected[expected > 0]), rtol=0, atol=1e-11
    )


def test_the_recursion_twin_agrees_with_enumeration(rng):
    grammar, trees = random_case(rng)
    for tree in trees:
        value = reference.inside(grammar, tree) @ grammar.root[tree.label]
        assert_allclose(value, reference.tree_value(grammar, tree), rtol=EXACT, atol=0)


@pytest.mark.parametrize("signed", [False, True])
def test_posteriors_equal_enumeration(rng, signed):
    grammar, trees = random_case(rng, signed=signed)
    vectors = posterior_vectors(grammar, trees)
    assert vectors.shape == (Treebank(trees).n_nodes, max(grammar.m.values()))
    expected = [p for t in trees for p in reference.posteriors(grammar, t)]
    for row, posterior in zip(vectors, expected, strict=True):
        assert_allclose(row[: len(posterior)], posterior, rtol=1e-9, atol=1e-10)
        assert not row[len(posterior) :].any()


def test_posteriors_of_impossible_trees_are_zero(grammar):
    vectors = posterior_vectors(grammar, ["(S (A z) (A x))", "(S (A x) (A x))"])
    assert not vectors[:3].any()
    assert_allclose(vectors[3:].sum(axis=1), 1.0, rtol=EXACT, atol=0)
    assert posterior_vectors(grammar, []).shape == (0, 2)


@pytest.mark.parametrize("signed", [False, True])
def test_conjugation_changes_no_tree(rng, signed):
    grammar, trees = random_case(rng, signed=signed)
    transforms = {
        a: rng.standard_normal((m, m)) + 2 * np.eye(m) for a, m in grammar.m.items()
    }
    other = grammar.conjugate(transforms)
    assert other != grammar
    signs, logs = grammar.tree_values(trees)
    other_signs, other_logs = other.tree_values(trees)
    assert_allclose(
        other_signs * np.exp(other_logs), signs * np.exp(logs), rtol=SUM, atol=1e-12
    )


def test_conjugation_follows_theorem_3(rng):
    grammar, _ = random_case(rng)
    g = {a: rng.standard_normal((m, m)) + 2 * np.eye(m) for a, m in grammar.m.items()}
    other = grammar.conjugate(g)
    for (a, b, c), tensor in grammar.binary.items():
        expected = np.einsum(
            "hjk,lj,nk,hi->iln", tensor, g[b], g[c], np.linalg.inv(g[a])
        )
        assert_allclose(other.binary[a, b, c], expected, rtol=SUM, atol=1e-12)
    for (a, x), vector in grammar.lexical.items():
        expected = vector @ np.linalg.inv(g[a])
        assert_allclose(other.lexical[a, x], expected, rtol=SUM, atol=1e-12)
    for a, vector in grammar.root.items():
        assert_allclose(other.root[a], g[a] @ vector, rtol=SUM, atol=1e-12)


def test_conjugation_refuses_wrong_matrices(grammar):
    with pytest.raises(ValueError, match="no nonterminal 'B'"):
        grammar.conjugate({"B": np.eye(2)})
    with pytest.raises(ValueError, match="2 by 2"):
        grammar.conjugate({"A": np.eye(3)})
    with pytest.raises(ValueError, match="invertible"):
        grammar.conjugate({"A": np.zeros((2, 2))})


def test_mappings_give_back_the_parameters(rng):
    grammar, _ = random_case(rng)
    again = LPCFG.from_parameters(
        dict(grammar.binary), dict(grammar.lexical), dict(grammar.root)
    )
    assert again == grammar
    assert hash(again) == hash(grammar)
    assert grammar.n_parameters == sum(
        v.size
        for view in (grammar.binary, grammar.lexical, grammar.root)
        for v in view.values()
    )


def test_views_are_read_only_and_know_what_they_lack(grammar):
    with pytest.raises(ValueError, match="read-only"):
        grammar.binary["S", "A", "A"][0, 0, 0] = 1
    for view, keys in (
        (grammar.binary, [("S", "A", "S"), ("S", "A"), "S", ("Z", "A", "A")]),
        (grammar.lexical, [("A", "z"), ("S", "x"), "A"]),
        (grammar.root, ["A", "Z"]),
    ):
        for key in keys:
            assert key not in view
    assert list(grammar.root) == ["S"]
    assert len(grammar.lexical) == 2


def test_unknown_symbols_have_probability_zero(grammar):
    trees = [
        "(S (A z) (A x))",
        "(S (B x) (A x))",
        "(T (A x) (A x))",
        "(A x)",
        "(S (A x) (S (A x) (A x)))",
    ]
    assert np.all(np.isneginf(grammar.log_prob(trees)))
    assert np.isfinite(grammar.log_prob(["(S (S (A x) (A x)) (A y))"])).all()


def test_unknown_word_stands_for_words_that_are_not_known():
    grammar = LPCFG.from_parameters(
        lexical={("A", "x"): [0.75], ("A", "?"): [0.25]},
        root={"A": [1.0]},
        unknown_word="?",
    )
    assert_allclose(
        np.exp(grammar.log_prob(["(A x)", "(A never)"])), [0.75, 0.25], rtol=EXACT
    )
    with pytest.raises(ValueError, match="not among the words"):
        LPCFG.from_parameters(
            lexical={("A", "x"): [1.0]}, root={"A": [1.0]}, unknown_word="?"
        )


def test_words_back_off_to_their_signature_class():
    from lpcfg_sk.treebank import SymbolTable

    grammar = LPCFG.from_parameters(
        lexical={("A", "x"): [0.75], ("A", "CLASS"): [0.25]}, root={"A": [1.0]}
    )
    trees = Treebank(["(A x)", "(A new)"])
    words = SymbolTable(["x", "new", "CLASS"], backoff=[2, 2, 2])
    trees = trees.replace(words=words, word=[0, 1])
    assert_allclose(np.exp(grammar.log_prob(trees)), [0.75, 0.25], rtol=EXACT)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_very_deep_tree_neither_recurses_nor_underflows(side):
    depth = 100_000
    grammar = LPCFG.from_parameters(
        binary={
            ("S", "S", "A"): [[[0.01]]],
            ("S", "A", "S"): [[[0.01]]],
            ("S", "A", "A"): [[[0.01]]],
        },
        lexical={("A", "x"): [0.5]},
        root={"S": [1.0]},
    )
    tree = "(S (A x) (A x))"
    if side == "left":
        tree = "(S " * (depth - 1) + tree + " (A x))" * (depth - 1)
    else:
        tree = "(S (A x) " * (depth - 1) + tree + ")" * (depth - 1)
    expected = depth * np.log(0.01) + (depth + 1) * np.log(0.5)
    assert_allclose(grammar.log_prob([tree]), expected, rtol=SUM, atol=0)


def test_log_prob_wants_binary_trees(grammar):
    with pytest.raises(ValueError, match="TreeBinarizer"):
        grammar.log_prob(["(S (A x) (A x) (A x))"])
    with pytest.raises(ValueError, match="without a tree"):
        grammar.log_prob([["x", "x"]])
    assert grammar.log_prob([]).shape == (0,)


def test_n_jobs_changes_no_bit(rng):
    grammar, trees = random_case(rng, n_trees=30)
    trees = Treebank(trees * 300)
    assert np.array_equal(
        grammar.log_prob(trees, n_jobs=1), grammar.log_prob(trees, n_jobs=2)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lexical": {("A", "x"): [1.0]}}, "at least one root"),
        ({"root": {"A": [1.0]}}, "at least one root and one rule"),
        (
            {"lexical": {("A", "x"): [1.0]}, "root": {"A": [0.5, 0.5]}},
            "'A' 2 latent states, but another parameter gives it 1",
        ),
        (
            {"binary": {("A", "B"): [[[1.0]]]}, "root": {"A": [1.0]}},
            r"Keys of binary must be \(a, b, c\)",
        ),
        (
            {"lexical": {("A", "x"): [np.nan]}, "root": {"A": [1.0]}},
            "finite",
        ),
        (
            {"lexical": {("A", "x"): [[1.0]]}, "root": {"A": [1.0]}},
            "1 axes",
        ),
        ({"lexical": {("A", "x"): []}, "root": {"A": [1.0]}}, "non-empty"),
        ({"lexical": {("A", 1): [1.0]}, "root": {"A": [1.0]}}, "strings"),
    ],
)
def test_from_parameters_says_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        LPCFG.from_parameters(**parameters)


def test_from_parameters_wants_mappings():
    with pytest.raises(TypeError, match="binary must map"):
        LPCFG.from_parameters(binary=[1], root={"A": [1.0]})
    with pytest.raises(TypeError, match="from_parameters"):
        LPCFG()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("n_states", lambda v: v * 0, "at least 1"),
        ("rule_parent", lambda v: v + 9, "nonterminal ids"),
        ("rule_offset", lambda v: v + 1, "offsets of binary"),
        ("binary", lambda v: v[:-1], "binary must hold"),
        ("lexical", lambda v: v * np.nan, "finite"),
        ("word_offset", lambda v: v[:-1], "word_offset"),
        ("root_label", lambda v: v + 0.5, "integers"),
        ("root", lambda v: v[:, None], "one axis"),
        ("lex_label", lambda v: v * 0 + 1, "offsets of lexical"),
    ],
)
def test_from_arrays_checks_everything(grammar, name, change, message):
    wrong = grammar.arrays._replace(**{name: change(getattr(grammar.arrays, name))})
    with pytest.raises(ValueError, match=message):
        LPCFG.from_arrays(grammar.nonterminals, grammar.words, wrong)


def test_from_arrays_wants_sorted_rules(grammar):
    a = grammar.arrays
    wrong = a._replace(rule_left=a.rule_left[::-1])
    with pytest.raises(ValueError, match=r"offsets of binary|sorted"):
        LPCFG.from_arrays(grammar.nonterminals, grammar.words, wrong)
    with pytest.raises(ValueError, match="named twice"):
        LPCFG.from_arrays(("A", "A"), grammar.words, a)
    with pytest.raises(ValueError, match="2 entries for 3"):
        LPCFG.from_arrays(("A", "B", "C"), grammar.words, a)


def test_pickle_repr_and_inequality(grammar):
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar
    assert isinstance(again.arrays, GrammarArrays)
    assert repr(grammar) == (
        "<LPCFG of 2 nonterminals (1 to 2 states), 2 binary rules, 2 words>"
    )
    assert grammar != "grammar"
    assert grammar.conjugate({"A": 2 * np.eye(2)}) != grammar


def test_to_frame_lists_every_parameter(rng):
    grammar, _ = random_case(rng)
    frame = grammar.to_frame()
    assert len(frame) == grammar.n_parameters
    for row in frame.sample(50, random_state=0).itertuples():
        if row.kind == "binary":
            value = grammar.binary[row.parent, row.left, row.right][
                row.state, row.left_state, row.right_state
            ]
        elif row.kind == "lexical":
            value = grammar.lexical[row.parent, row.word][row.state]
        else:
            value = grammar.root[row.parent][row.state]
        assert row.value == value


def test_normalized_and_is_probabilistic(rng, grammar):
    assert grammar.is_probabilistic
    unnormalised = LPCFG.from_parameters(
        {r: 2 * t for r, t in grammar.binary.items()},
        {r: 3 * t for r, t in grammar.lexical.items()},
        {"S": [5.0]},
    )
    assert not unnormalised.is_probabilistic
    again = unnormalised.normalized()
    for values, expected in zip(again.arrays, grammar.arrays, strict=True):
        assert_allclose(values, expected, rtol=EXACT, atol=0)
    assert not reference.random_grammar(rng, signed=True).is_probabilistic
    with pytest.raises(ValueError, match="negative"):
        reference.random_grammar(rng, signed=True).normalized()


def test_a_state_that_is_never_reached_may_have_no_rules():
    grammar = LPCFG.from_parameters(
        binary={("S", "A", "A"): [[[1.0, 0.0], [0.0, 0.0]]]},
        lexical={("A", "x"): [1.0, 0.0]},
        root={"S": [1.0]},
    )
    assert grammar.is_probabilistic
    assert str(grammar.sample(1, 0)[0]) == "(S (A x) (A x))"
