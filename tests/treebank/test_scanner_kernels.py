import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lpcfg_sk._kernels import _scanner as kernel
from lpcfg_sk._kernels._columns import Columns, drop_traces
from lpcfg_sk._kernels._text import invalid_byte
from lpcfg_sk.treebank._penn import (
    BracketScanner,
    SymbolPool,
    TreeColumns,
)
from tests.reference import scanner as reference

pytestmark = pytest.mark.kernels

CODES = {
    getattr(kernel, name): name
    for name in (
        "UNCLOSED",
        "STRAY_CLOSE",
        "STRAY_TEXT",
        "EMPTY",
        "NO_CHILD",
        "NO_LABEL",
        "NUL",
        "UNDECODABLE",
        "TOO_DEEP",
    )
}

# Mostly brackets, so that trees come about; some of each kind of odd byte.
COMMON = [b"(", b"(S ", b"(NP a)", b")", b" ", b"\n", b"\n(", b"a", b"(S (A a) b)\n"]
ODD = ["é".encode(), b"\xff", b"\0", b"\xef\xbb\xbf", b"(-NONE- *)"]
pieces = st.one_of(*[st.sampled_from(COMMON)] * 3, st.sampled_from(ODD))
texts = st.lists(pieces, max_size=25).map(b"".join)
whole_trees = st.recursive(
    st.tuples(st.sampled_from(["A", "-NONE-", "é"]), st.sampled_from([["a"], ["b"]])),
    lambda below: st.tuples(
        st.sampled_from(["S", "NP"]),
        st.lists(st.one_of(below, st.sampled_from(["a", "c"])), min_size=1, max_size=4),
    ),
    max_leaves=10,
)


def as_rows(state):
    """Columns in the form of the reference."""
    labels = [*state["labels"], None]
    result = []
    for t in range(len(state["node_offsets"]) - 1):
        nodes = slice(*state["node_offsets"][t : t + 2])
        words = state["token"][slice(*state["token_offsets"][t : t + 2])]
        rows = zip(
            [labels[i] for i in state["label"][nodes]],
            *(state[name][nodes].tolist() for name in ("size", "parent", "start")),
            state["stop"][nodes].tolist(),
            strict=True,
        )
        result.append((list(rows), [state["tokens"][i] for i in words]))
    return result


def scan(text, *, keep_traces=True, **options):
    columns = TreeColumns(SymbolPool(), keep_traces=keep_traces)
    scanner = BracketScanner(columns, **options)
    scanner.scan(text, final=True)
    return as_rows(columns.finish()), scanner.report


@given(texts, st.sampled_from([None, 1, 2, 3]))
@example(b"(S (A a) b (B (C c) d)) ( (X y))", None)
@example(b"(S a", None)
@example(b"(", None)
@example(b"()", None)
@example(b"( )", None)
@example(b"((A a))", None)
@example(b"(S ((A a)))", None)
@example(b"(S (A ))", None)
@example(b"(S \xff", None)
@settings(deadline=None)
def test_scan_equals_the_reference(text, max_depth):
    rows, report = scan(text, max_depth=max_depth)
    trees, faults = reference.parse_trees(text, max_depth=max_depth)
    assert rows == reference.columns(trees)
    assert report[kernel.FAULTS] == len(faults)
    if faults:
        code, position, tree = faults[0]
        assert CODES[report[kernel.FAULT]] == code
        assert report[kernel.FAULT_POSITION] == position
        assert report[kernel.FAULT_TREE] == tree


@given(texts)
@example(b"(S\n(S a)\n(S\n(S b)\n)")
@example(b"(S a))) x (S b) y")
@example(b"(S (A) (B b)) (S b)\n(S (\n(S c)")
@settings(deadline=None)
def test_skipping_equals_the_reference(text):
    rows, report = scan(text, skip=True)
    trees, faults = reference.parse_trees(text, skip=True)
    assert rows == reference.columns(trees)
    assert report[kernel.FAULTS] == len(faults)
    if faults:
        code, position, tree = faults[0]
        assert CODES[report[kernel.FAULT]] == code
        assert report[kernel.FAULT_POSITION] == position
        assert report[kernel.FAULT_TREE] == tree


@given(st.lists(whole_trees, max_size=5))
@settings(deadline=None)
def test_trace_removal_equals_the_reference(trees):
    text = "".join(map(reference.bracketed, trees)).encode()
    rows, report = scan(text, keep_traces=False)
    left = [reference.without_traces(tree) for tree in trees]
    assert report[kernel.FAULTS] == 0
    assert rows == reference.columns([tree for tree in left if tree is not None])


def test_a_word_left_alone_gets_a_preterminal():
    rows, _ = scan(b"(S (X w (-NONE- *)) (Y (-NONE- *)))", keep_traces=False)
    assert rows == reference.columns([("S", [("X", ["w"])])])


def test_trace_removal_leaves_its_input_alone():
    columns = TreeColumns(SymbolPool(), keep_traces=True)
    text = b"(S (A a) (-NONE- *) (B b)) (-NONE- *) (S (C c) (-NONE- *))"
    BracketScanner(columns).scan(text, final=True)
    trace = columns.pool.add("-NONE-")
    source = Columns(*(column.copy() for column in columns.block))
    for column in source:
        column.flags.writeable = False
    pruned = Columns(*(np.empty_like(column) for column in source))
    assert drop_traces(source, 3, trace, pruned) == (2, 5, 3)
    np.testing.assert_array_equal(pruned.size[:5], [3, 1, 1, 2, 1])
    np.testing.assert_array_equal(pruned.stop[:5], [2, 1, 2, 1, 1])
    np.testing.assert_array_equal(pruned.node_offsets[:3], [0, 3, 5])
    assert drop_traces(columns.block, 3, trace, columns.block) == (2, 5, 3)
    for name in ("label", "size", "parent", "start", "stop"):
        np.testing.assert_array_equal(
            getattr(columns.block, name)[:5], getattr(pruned, name)[:5]
        )


@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\n"),
            max_size=4,
        ),
        max_size=200,
    )
)
@settings(deadline=None, max_examples=30)
def test_interning_numbers_strings_by_first_occurrence(strings):
    pool, ids = SymbolPool(), {}
    for string in strings:
        assert pool.add(string) == ids.setdefault(string, len(ids))
    assert pool.strings() == list(ids)


def test_interning_survives_collisions():
    pool = SymbolPool()
    pool.multiplier = 0  # only the last byte counts
    strings = [f"{i}x" for i in range(600)]
    assert [pool.add(s) for s in strings * 2] == [*range(600)] * 2
    assert np.unique(pool.arrays.hashes[:600]).size == 1


@given(
    st.one_of(
        st.binary(max_size=12),
        st.text(max_size=6).map(str.encode),
        st.text(alphabet="\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff").map(
            lambda s: s.encode("utf-8", "surrogatepass")
        ),
        st.lists(st.integers(0xE0, 0xFF), max_size=3).map(
            lambda heads: bytes(b for h in heads for b in (h, 0x9F, 0x80, 0xBF))
        ),
    )
)
@settings(deadline=None, max_examples=300)
def test_utf8_validation_equals_pythons(data):
    nul = data.find(b"\0")
    try:
        data.decode()
        bad = -1
    except UnicodeDecodeError as error:
        bad = error.start
    expected = min((i for i in (nul, bad) if i >= 0), default=-1)
    array = np.frombuffer(data, dtype=np.uint8)
    assert invalid_byte(array, 0, array.size) == expected


@given(st.text(alphabet="() a\n*'ü", max_size=40).map(str.encode))
@settings(deadline=None)
def test_bounds_and_unmatched_brackets(text):
    array = np.frombuffer(text, dtype=np.uint8)
    n_open, n_tokens = kernel.count_marks(array)
    assert n_open == text.count(b"(")
    assert n_tokens == len(text.replace(b"(", b" ").replace(b")", b" ").split())
    expected = [
        i
        for i in range(len(text))
        if text[i : i + 1] == b"(" and reference.closing_bracket(text, i) is None
    ]
    np.testing.assert_array_equal(kernel.unmatched_brackets(array, 0), expected)
