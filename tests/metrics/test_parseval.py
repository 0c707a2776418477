import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpcfg_sk.exceptions import TreebankFormatError, TreebankWarning
from lpcfg_sk.metrics import (
    ParsevalParameters,
    parseval,
    parseval_files,
    parseval_report,
    parseval_summary,
)
from lpcfg_sk.treebank import Treebank
from tests.metrics.strategies import LABELS, pairs, parameters
from tests.reference import parseval as reference

pytestmark = pytest.mark.kernels

COLUMNS = [
    "length",
    "status",
    "matched_brackets",
    "gold_brackets",
    "test_brackets",
    "cross_brackets",
    "words",
    "correct_tags",
]


def rows_of(frame):
    return [tuple(row) for row in frame[COLUMNS].to_numpy().tolist()]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def assert_agrees(frame, gold, test, prm):
    expected = [reference.sentence(a, b, prm) for a, b in zip(gold, test, strict=True)]
    assert rows_of(frame) == expected
    short = [row for row in expected if row[0] <= prm["cutoff_len"]]
    for key, rows in (("all", expected), ("cutoff", short)):
        for name, value in reference.totals(rows).items():
            found = frame.attrs[key][name]
            assert found == value or (math.isnan(found) and math.isnan(value)), name


# -- the program's own files ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prm", "result"),
    [
        ("sample", "sample.prm", "sample.rsl-new"),
        ("bug/bug", "new.prm", "bug/bug.rsl-recomputed"),
        ("bug/bug", "nk.prm", "bug/bug.rsl-recomputed"),
    ],
)
def test_report_is_that_of_the_program(evalb_dir, name, prm, result):
    frame = parseval_files(
        evalb_dir / f"{name}.gld", evalb_dir / f"{name}.tst", evalb_dir / prm
    )
    expected = (evalb_dir / result).read_text(encoding="utf-8")
    assert parseval_report(frame) == expected


def test_builtin_collins_settings_are_those_of_the_file_without_the_root(evalb_dir):
    builtin = vars(ParsevalParameters.collins())
    file = vars(ParsevalParameters.from_file(evalb_dir / "COLLINS.prm"))
    assert file.pop("delete_labels") == ("TOP", *builtin.pop("delete_labels"))
    assert file.pop("root_labels") == ()
    assert builtin.pop("root_labels") == ("TOP", "ROOT", "S1", "VROOT", "")
    assert file == builtin


def test_the_file_of_collins_counts_a_root_that_it_does_not_name(evalb_dir):
    tree = "(ROOT (S (NP (PRP I)) (VP (VBP am))))"
    assert counts(tree, tree, evalb_dir / "COLLINS.prm")[2:5] == [4, 4, 4]
    top = tree.replace("ROOT", "TOP")
    assert counts(top, top, evalb_dir / "COLLINS.prm")[2:5] == [3, 3, 3]
    # With the label that it deletes, a pre-terminal loses its word, as in EVALB.
    assert counts("(TOP yes)", "(TOP yes)", evalb_dir / "COLLINS.prm")[:2] == [1, 2]


def test_treebanks_give_what_files_give(evalb_dir):
    gold, test = evalb_dir / "bug" / "bug.gld", evalb_dir / "bug" / "bug.tst"
    prm = evalb_dir / "new.prm"
    banks = [p.read_text(encoding="utf-8").splitlines() for p in (gold, test)]
    found = parseval(Treebank(banks[0]), Treebank(banks[1]), prm)
    pd.testing.assert_frame_equal(found, parseval_files(gold, test, prm))


# -- against the twin ----------------------------------------------------------------


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(pairs((*LABELS, "")), min_size=1, max_size=4), parameters())
def test_files_agree_with_the_twin(tmp_path, sentences, prm):
    gold, test = map(list, zip(*sentences, strict=True))
    frame = parseval_files(
        write(tmp_path / "gold", gold),
        write(tmp_path / "test", test),
        ParsevalParameters(**prm),
    )
    assert_agrees(frame, gold, test, prm)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(pairs(), min_size=1, max_size=4), parameters())
def test_treebanks_agree_with_the_twin(sentences, prm):
    gold, test = map(list, zip(*sentences, strict=True))
    frame = parseval(gold, test, ParsevalParameters(**prm))
    assert_agrees(frame, gold, test, prm)
    # Symbol tables that both sides share are compared by id.
    both = Treebank(gold + test)
    shared = parseval(both[: len(gold)], both[len(gold) :], ParsevalParameters(**prm))
    pd.testing.assert_frame_equal(shared, frame)


def test_corpus_against_shuffled_labels_agrees_with_the_twin(wsj_dev):
    gold = wsj_dev[:60]
    rng = np.random.default_rng(0)
    label = gold.label.copy()
    inner = np.flatnonzero(gold.size > 1)
    changed = rng.choice(inner, size=len(inner) // 3, replace=False)
    label[changed] = rng.permutation(label[changed])
    test = gold.replace(label=label)
    params = ParsevalParameters.collins()
    frame = parseval(gold, test)
    lines = [[str(tree) for tree in bank] for bank in (gold, test)]
    assert 0 < frame.attrs["all"]["f1"] < 100
    assert_agrees(frame, *lines, vars(params))


# -- single rules --------------------------------------------------------------------


def counts(gold, test, params=None):
    frame = parseval([gold], [test], params)
    return frame.loc[0, COLUMNS].tolist()


def test_function_tags_are_cut_from_brackets_and_not_from_tags():
    found = counts("(S (NP-SBJ=1 (NN-X a)) (V b))", "(S (NP (NN a)) (V b))")
    assert found == [2, 0, 2, 2, 2, 0, 2, 1]


def test_leading_dash_is_cut_too():
    assert counts("(-X- (A a) (B b))", "(=Y (A a) (B b))")[2:5] == [1, 1, 1]


def test_deleted_preterminals_take_their_words_along():
    gold = "(TOP (S (NP (NN a)) (, ,) (VP (VB b)) (X (. .))))"
    test = "(TOP (S (NP (NN a)) (VP (VB b) (, ,)) (. .)))"
    assert counts(gold, test, "collins") == [4, 0, 3, 3, 3, 0, 2, 2]


def test_length_counts_deleted_words_but_not_traces():
    gold = "(S (NP (-NONE- *)) (VP (VB b)) (. .))"
    assert counts(gold, "(S (VP (VB b)) (. .))", "collins")[0] == 2


def test_equal_labels_hold_for_brackets_and_tags():
    found = counts("(S (ADVP (RB up)) (V b))", "(S (PRT (RB up)) (V b))", "collins")
    assert found[2:5] == [2, 2, 2]
    tags = counts("(S (PRT up) (V b))", "(S (ADVP up) (V b))", "collins")
    assert tags[-1] == 2


def test_equal_labels_are_not_transitive():
    params = ParsevalParameters(eq_labels=[("A", "B"), ("B", "C")])
    assert counts("(A (X x) (Y y))", "(C (X x) (Y y))", params)[2] == 0
    # The first free partner is taken, though the second would leave one more pair.
    gold, test = "(B (A (X x) (Y y)))", "(A (C (X x) (Y y)))"
    assert counts(gold, test, params)[2] == 1


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1", "VROOT", "ROOT-1"])
def test_the_root_does_not_count(root):
    gold = f"({root} (S (NP (PRP I)) (VP (VBP am))))"
    test = "(ROOT (S (NP (PRP I)) (XP (VBP am))))"
    assert counts(gold, test, "collins") == [2, 0, 2, 3, 3, 0, 2, 2]
    assert counts(gold, test, ParsevalParameters.collins())[2:5] == [2, 3, 3]
    # Without settings nothing is deleted.
    assert counts(gold, gold, None)[2:5] == [4, 4, 4]


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1", "VROOT"])
def test_the_root_of_a_one_word_sentence_does_not_count(root):
    gold = f"({root} (UH yes))"
    assert counts(gold, gold, "collins") == [1, 0, 0, 0, 0, 0, 1, 1]
    # A word right below the root is still a word.
    assert counts(f"({root} yes)", gold, "collins") == [1, 0, 0, 0, 0, 0, 1, 0]
    fragment = f"({root} (FRAG (UH yes)))"
    assert counts(fragment, gold, "collins") == [1, 0, 0, 1, 0, 0, 1, 1]


def test_unlabelled_roots_do_not_count(tmp_path):
    gold = write(
        tmp_path / "gold", ["( (S (NP (A a)) (B b)))", "((S (A a)))", "( (A a))"]
    )
    test = write(
        tmp_path / "test", ["(S (NP (A a)) (B b))", "(ROOT (S (A a)))", "(A a)"]
    )
    frame = parseval_files(gold, test)
    for name in ("matched", "gold", "test"):
        assert frame[f"{name}_brackets"].tolist() == [2, 1, 0]
    assert parseval_files(gold, gold, None)["gold_brackets"].tolist() == [3, 2, 1]
    # Inside a tree an empty label is a label like others, and so is one that is cut.
    inner = write(tmp_path / "inner", ["(S ( (A a)) (B b))", "(-X- (A a) (B b))"])
    assert parseval_files(inner, inner)["gold_brackets"].tolist() == [2, 1]


def test_label_equal_to_a_deleted_one_is_deleted():
    params = ParsevalParameters(delete_labels=["PRT"], eq_labels=[("ADVP", "PRT")])
    assert counts("(ADVP (S (X x) (Y y)))", "(S (X x) (Y y))", params)[2:5] == [1] * 3


def test_unlabelled_brackets():
    params = ParsevalParameters(labeled=False)
    assert counts("(A (B (X x) (Y y)))", "(C (X x) (Y y))", params)[2:5] == [1, 2, 1]


def test_repeated_brackets_match_once_each():
    gold, test = "(A (A (X x) (Y y)))", "(A (A (A (X x) (Y y))))"
    assert counts(gold, test)[2:5] == [2, 2, 3]


def test_a_test_bracket_crosses_once_however_many_gold_brackets():
    gold = "(S (A (B (C (X x) (Y y)) (Z z)) (W w)) (V v))"
    test = "(S (X x) (D (Y y) (Z z) (W w) (V v)))"
    assert counts(gold, test)[5] == 1


def test_equal_words_and_word_mismatch():
    params = ParsevalParameters(eq_words=[("This", "this")])
    gold, test = "(S (D this) (V is))", "(S (D This) (V is))"
    assert counts(gold, test, params)[1] == 0
    assert counts(gold, test)[1:] == [1, 0, 0, 0, 0, 0, 0]


def test_quotes_come_back_where_one_side_deletes_them():
    params = ParsevalParameters(delete_labels=["''"], quote_labels=["''", "POS"])
    gold, test = "(S (N a) ('' ') (N b))", "(S (N a) (POS ') (N b))"
    assert counts(gold, test, params) == [3, 0, 1, 1, 1, 0, 3, 2]
    assert counts(test, gold, params) == [3, 0, 1, 1, 1, 0, 3, 2]
    strict = ParsevalParameters(delete_labels=["''"])
    assert counts(gold, test, strict)[1] == 1


def test_one_quote_can_come_back_twice():
    params = ParsevalParameters(delete_labels=["''"], quote_labels=["''", "POS"])
    gold, test = "(S ('' ') (N a))", "(S (POS ') (POS ') (N a))"
    assert counts(gold, test, params) == [2, 0, 1, 1, 1, 0, 3, 1]


def test_tree_without_words_left_is_skipped():
    assert counts("(TOP (. .))", "(TOP (. .))", "collins")[:2] == [1, 2]


def test_preterminal_root_has_no_brackets():
    frame = parseval(["(NN a)"], ["(NN a)"])
    assert frame.loc[0, ["recall", "precision", "words", "tag_accuracy"]].tolist() == [
        0.0,
        0.0,
        1,
        100.0,
    ]
    assert math.isnan(frame.attrs["all"]["f1"])
    assert frame.attrs["all"]["complete_match"] == 100.0
    assert "Bracketing FMeasure       =   -nan\n" in parseval_report(frame)
    # Without brackets on one side EVALB leaves these totals out of the line.
    assert "====\n      1     1   100.00\n=== Summary" in parseval_report(frame)


def test_bare_words_have_the_empty_tag():
    assert counts("(S (NP a) b)", "(S (NP a) (X b))") == [2, 0, 1, 1, 1, 0, 2, 1]


# -- sentences without a parse, files, settings --------------------------------------


def test_unparsed_rows_are_skipped_on_one_side_and_errors_on_the_other():
    tree, words = "(S (A a) (B b))", ["a", "b"]
    frame = parseval([tree, words, tree], [words, tree, tree])
    assert frame["status"].tolist() == [2, 1, 0]
    assert frame["length"].tolist() == [2, 0, 2]


def test_empty_treebank():
    frame = parseval([], [])
    assert frame.shape == (0, 12)
    assert frame.attrs["all"]["n_sentences"] == 0
    assert parseval_report(frame).count("\n") > 20


def test_different_numbers_of_trees():
    with pytest.raises(ValueError, match="gold has 2 trees and predicted has 1"):
        parseval(["(S a)", "(S b)"], ["(S a)"])


def test_failed_lines_and_forests(tmp_path):
    gold = write(tmp_path / "gold", ["(S (A a) (B b))"] * 5)
    test = write(tmp_path / "test", ["", "()", "(())", "(A a) (B b)", "( (A a)(B b) )"])
    frame = parseval_files(gold, test)
    assert frame["status"].tolist() == [2, 2, 2, 0, 0]
    assert frame["test_brackets"].tolist() == [0, 0, 0, 0, 0]
    counted = parseval_files(gold, test, None)
    assert counted["test_brackets"].tolist() == [0, 0, 0, 0, 1]
    assert frame["matched_brackets"].tolist() == [0] * 5


def test_file_white_space_is_that_of_c(tmp_path):
    line = "\ufeff( S\t(NN a\u00a0b )\r\n"
    (tmp_path / "gold").write_text(line.replace(" S", "S"), encoding="utf-8")
    with pytest.raises(TreebankFormatError, match="line 1"):
        parseval_files(tmp_path / "gold", tmp_path / "gold")
    line = "\ufeff(S\t(NN a\u00a0b ))\r\n"
    (tmp_path / "gold").write_text(line, encoding="utf-8")
    frame = parseval_files(tmp_path / "gold", tmp_path / "gold")
    assert rows_of(frame) == [(1, 0, 1, 1, 1, 0, 1, 1)]


@pytest.mark.parametrize("line", ["(S (A a)", "(S (A a)))", "(S (A a) b)", "a"])
def test_malformed_lines(tmp_path, line):
    path = write(tmp_path / "gold", ["(S (A a))", line])
    with pytest.raises(TreebankFormatError, match=r"gold, line 2"):
        parseval_files(path, path)


def test_different_numbers_of_lines(tmp_path):
    gold, test = write(tmp_path / "g", ["(S a)"] * 2), write(tmp_path / "t", ["(S a)"])
    with pytest.raises(ValueError, match=r"has 2 lines and .* has 1"):
        parseval_files(gold, test)


def test_too_many_errors_warn():
    gold, test = ["(S (A a))"] * 4, ["(S (A b))"] * 4
    with pytest.warns(TreebankWarning, match="4 of 4 sentences differ"):
        frame = parseval(gold, test, ParsevalParameters(max_error=2))
    assert frame.attrs["all"]["n_error"] == 4
    parseval(gold, test, ParsevalParameters(max_error=3))


def test_summary_of_some_rows():
    gold = ["(S (NP (A a)) (B b))", "(S (A a) (B b) (C c))"]
    test = ["(S (XP (A a)) (B b))", "(S (A a) (B b) (C c))"]
    frame = parseval(gold, test, ParsevalParameters(cutoff_len=2))
    summary = parseval_summary(frame, detailed=True)
    assert summary.index.tolist() == ["all", "len<=2"]
    assert summary["n_sentences"].tolist() == [2, 1]
    for name, key in (("all", "all"), ("len<=2", "cutoff")):
        assert summary.loc[name].to_dict() == frame.attrs[key]
    assert parseval_summary(frame.iloc[1:]).loc["all", "f1"] == 100.0
    again = parseval_summary(gold, test, ParsevalParameters(cutoff_len=2))
    pd.testing.assert_frame_equal(again, summary[again.columns.tolist()])
    assert max(map(len, str(again).splitlines())) <= 80
    with pytest.raises(TypeError, match="made by parseval"):
        parseval_summary(gold)


def test_parameter_file(tmp_path):
    path = tmp_path / "my.prm"
    path.write_text(
        "# comment\n\nDEBUG 1\nDISC_ONLY 0\nLABELED 0   \nCUTOFF_LEN\t70\n"
        "MAX_ERROR 3\nDELETE_LABEL TOP\nDELETE_LABEL_FOR_LENGTH .\nQUOTE_LABEL ''\n"
        "EQ_LABEL A B\nEQ_WORD  This\tthis\n",
        encoding="utf-8",
    )
    expected = ParsevalParameters(
        delete_labels=["TOP"],
        delete_labels_for_length=["."],
        quote_labels=["''"],
        eq_labels=[["A", "B"]],
        eq_words=[("This", "this")],
        cutoff_len=70,
        labeled=False,
        max_error=3,
    )
    assert ParsevalParameters.from_file(path) == expected
    assert "-- len<=70 --" in parseval_report(parseval(["(A a)"], ["(A a)"], path))


@pytest.mark.parametrize(
    "line", ["EQ_LABEL A", "EQ_WORD a b c", "CUTOFF_LEN many", "DELETE_LABEL"]
)
def test_bad_parameter_lines(tmp_path, line):
    path = write(tmp_path / "bad.prm", ["DEBUG 0", line])
    with pytest.raises(TreebankFormatError, match=r"bad.prm, line 2"):
        ParsevalParameters.from_file(path)


def test_unknown_parameters_warn_once(tmp_path):
    path = write(tmp_path / "odd.prm", ["COLOUR 1", " LABELED 0", "DISC_ONLY 1"])
    with pytest.warns(TreebankWarning, match="COLOUR .line 1.*line 2.*DISC_ONLY") as w:
        assert ParsevalParameters.from_file(path) == ParsevalParameters()
    assert len(w) == 1


def test_bad_parameters():
    with pytest.raises(FileNotFoundError, match='"collins"'):
        parseval(["(A a)"], ["(A a)"], "colins")
    with pytest.raises(TypeError, match="got int"):
        parseval(["(A a)"], ["(A a)"], 3)
    with pytest.raises(TypeError, match="sequence of labels"):
        ParsevalParameters(delete_labels="TOP")
    with pytest.raises(ValueError, match="pairs"):
        ParsevalParameters(eq_labels=["AB"])


# -- size ----------------------------------------------------------------------------


def chain(depth, labels="XY"):
    head = "".join(f"({labels[k % len(labels)]} " for k in range(depth))
    return f"{head}(A a){')' * depth}"


def test_unary_chain_of_100000():
    n = 100_000
    frame = parseval([chain(n)], [chain(n - 10, "YXX")], None)
    row = frame.iloc[0]
    assert (row["gold_brackets"], row["test_brackets"]) == (n, n - 10)
    # 50,000 gold X and Y; the other tree has X twice as often as Y.
    assert row["matched_brackets"] == 50_000 + (n - 10) // 3


def test_left_and_right_branching_trees_of_50000_words():
    n = 50_000
    right = "".join("(X (A a) " for _ in range(n - 1)) + "(A a)" + ")" * (n - 1)
    left = "(X " * (n - 1) + "(A a)" + " (A a))" * (n - 1)
    row = parseval([right], [left], None).iloc[0]
    assert row["matched_brackets"] == 1
    assert row["cross_brackets"] == n - 2
