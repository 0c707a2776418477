"""Labels of binarised trees."""

from hypothesis import given
from hypothesis import strategies as st

from lpcfg_sk.treebank import decode_label, decode_table
from lpcfg_sk.treebank._labels import (
    BARE,
    encode_label,
    forget_oldest,
    memory_length,
)
from tests.reference.binarize import decode

text = st.text(alphabet="AB+@|^~\\-<0", max_size=4) | st.text(max_size=3)
texts = st.lists(text, max_size=3)


@given(st.lists(text, min_size=1, max_size=4), st.booleans(), texts)
def test_nodes_are_read_as_written(chain, marked, ancestors):
    label = encode_label(chain, marked=marked, ancestors=ancestors)
    assert decode_label(label) == (False, tuple(chain))


@given(text, texts, st.lists(text | st.none(), max_size=3))
def test_intermediate_nodes_are_read_as_written(owner, ancestors, siblings):
    label = encode_label(
        [owner], intermediate=True, ancestors=ancestors, siblings=siblings
    )
    assert decode_label(label) == (True, (owner,))
    assert memory_length(label) == len(siblings)
    if siblings:
        assert forget_oldest(label) == encode_label(
            [owner], intermediate=True, ancestors=ancestors, siblings=siblings[1:]
        )


@given(
    st.tuples(st.lists(text, min_size=1, max_size=3), st.booleans(), texts),
    st.tuples(st.lists(text, min_size=1, max_size=3), st.booleans(), texts),
)
def test_different_parts_give_different_labels(one, two):
    labels = [encode_label(c, marked=m, ancestors=a) for c, m, a in (one, two)]
    assert (labels[0] == labels[1]) == (one == two)
    assert BARE not in labels


@given(st.text(alphabet="AB+@|^~\\bare0", max_size=8))
def test_any_string_can_be_read(label):
    assert decode_label(label) == decode(label)


def test_usual_labels_stay_as_they_are():
    for label in ("NP", "NN", "-LRB-", "PRP$", "``", ",", "NP-SBJ", "<s>", "WP$"):
        assert encode_label([label]) == label


def test_table():
    table = decode_table(["S", "NP+NN", "@NP|DT", BARE, "@S"])
    assert table.originals == ("S", "NP", "NN")
    assert table.intermediate.tolist() == [False, False, True, False, True]
    assert table.chain_offsets.tolist() == [0, 1, 3, 4, 4, 5]
    assert table.chain.tolist() == [0, 1, 2, 1, 0]
    assert decode_table([]).chain_offsets.tolist() == [0]
