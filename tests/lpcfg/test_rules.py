from collections import Counter

import numpy as np
import pytest

from lpcfg_sk import Treebank
from lpcfg_sk.lpcfg import requested_states
from lpcfg_sk.treebank import RuleIndex, SymbolTable, weighted_trees
from tests.reference import lpcfg as reference


@pytest.fixture
def trees(seed):
    rng = np.random.default_rng(seed)
    grammar = reference.random_grammar(rng, density=0.3)
    return [reference.random_tree(rng, grammar, size=6) for _ in range(40)]


def counted(trees, weights):
    """Count rules and roots by walking over the trees."""
    rules, roots, labels = Counter(), Counter(), Counter()
    for tree, weight in zip(trees, weights, strict=True):
        roots[tree.label] += weight
        for node in reference.nodes(tree):
            rules[reference.rule_of(node)] += weight
            labels[node.label] += weight
    return rules, roots, labels


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_equal_a_walk_over_the_trees(trees, weighted):
    weights = np.arange(len(trees)) % 4 if weighted else np.ones(len(trees))
    index = RuleIndex.from_treebank(Treebank(trees)).count(weights)
    rules, roots, labels = counted(trees, weights.tolist())
    names, words = index.nonterminals, index.words
    assert list(names) == sorted(labels)
    found = {
        (names[a], names[b], names[c]): n
        for a, b, c, n in zip(
            index.rule_parent,
            index.rule_left,
            index.rule_right,
            index.rule_count,
            strict=True,
        )
    }
    found |= {
        (names[a], words[x]): n
        for a, x, n in zip(
            index.lex_label, index.lex_word, index.lexical_count, strict=True
        )
    }
    assert found == dict(rules)
    assert dict(
        zip(
            [names[a] for a in index.root_label],
            index.root_count,
            strict=True,
        )
    ) == dict(roots)
    assert dict(zip(names, index.label_count, strict=True)) == dict(labels)


def test_every_node_knows_its_rule(trees):
    index = RuleIndex.from_treebank(Treebank(trees))
    names, words = index.nonterminals, index.words
    listed = [n for t in trees for n in reference.nodes(t)]
    for node, label, rule, entry in zip(
        listed, index.label, index.rule, index.entry, strict=True
    ):
        assert names[label] == node.label
        if reference.is_leaf(node):
            assert rule == -1
            assert names[index.lex_label[entry]] == node.label
            assert words[index.lex_word[entry]] == node.children[0]
        else:
            assert entry == -1
            ids = index.rule_parent[rule], index.rule_left[rule], index.rule_right[rule]
            assert tuple(names[i] for i in ids) == reference.rule_of(node)


def test_rules_and_entries_are_sorted(trees):
    index = RuleIndex.from_treebank(Treebank(trees))
    rules = list(zip(index.rule_parent, index.rule_left, index.rule_right, strict=True))
    assert rules == sorted(set(rules))
    entries = list(zip(index.lex_word, index.lex_label, strict=True))
    assert entries == sorted(set(entries))
    assert index.word_offset[-1] == len(entries)


def test_take_keeps_ids(trees):
    index = RuleIndex.from_treebank(Treebank(trees))
    rows = np.arange(len(trees)) % 3 == 1
    part = index.take(rows)
    assert part.n_trees == rows.sum()
    counts, of_all = part.count(), index.count(rows.astype(float))
    for name in ("rule_count", "lexical_count", "root_count", "label_count"):
        assert np.array_equal(getattr(counts, name), getattr(of_all, name)), name
    alone = RuleIndex.from_treebank(Treebank(trees)[rows])
    assert [part.words[i] for i in part.word] == [alone.words[i] for i in alone.word]


def test_symbols_of_other_rows_do_not_leak():
    trees = Treebank(["(S (A x) (A y))", "(T (B z) (B z))"])
    index = RuleIndex.from_treebank(trees[:1])
    assert index.nonterminals == ("A", "S")
    assert index.words == ("x", "y")
    assert index.backoff is None


def test_classes_of_words_are_words():
    trees = Treebank(["(S (A x) (A y))"])
    words = SymbolTable(["x", "y", "C", "D"], backoff=[2, 3, 2, 3])
    index = RuleIndex.from_treebank(trees.replace(words=words, word=[0, 3]))
    assert index.words == ("C", "D", "x")
    assert index.backoff.tolist() == [0, 1, 0]


def test_only_binary_trees_are_indexed():
    with pytest.raises(ValueError, match="binary"):
        RuleIndex.from_treebank(Treebank(["(S (A x) (A x) (A x))"]))
    with pytest.raises(ValueError, match="without a tree"):
        RuleIndex.from_treebank(Treebank([["x"]]))


def test_trees_of_weight_zero_are_left_out():
    trees = Treebank(["(S (A x) (A y))", "(T (B z) (B z))"])
    kept, weight = weighted_trees(trees, [0, 2], "PCFG")
    assert [str(t) for t in kept] == ["(T (B z) (B z))"]
    assert weight.tolist() == [2.0]


@pytest.mark.parametrize("m", [0, -1, 1.5, {"NP": 0}, lambda a, n: 0])
def test_wrong_numbers_of_states_are_refused(m):
    with pytest.raises(ValueError, match="'NP'"):
        requested_states(m, ["NP"], [3])
