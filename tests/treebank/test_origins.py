"""Where rows were read, and what becomes of it."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from lpcfg_sk import RareWords, Treebank, make_parser, read_treebank
from lpcfg_sk.exceptions import TreebankWarning

ONE = "(S (A a) (B b))\n\n(S (-NONE- *))(S (B b)\n (A a))\n (S\n(A a) (B b))\n"
TWO = "junk\n(S (A b))\n(S (A"


def file(name, text):
    opened = io.StringIO(text)
    opened.name = name
    return opened


@pytest.fixture
def treebank():
    with pytest.warns(TreebankWarning):
        return read_treebank(
            [file("one", ONE), file("none", ""), file("two", TWO)], on_error="skip"
        )


def places(treebank):
    return list(treebank.sources.itertuples(index=False, name=None))


def test_rows_know_file_line_and_number(treebank):
    # Trees of traces count, malformed ones do not.
    expected = [("one", 1, 1), ("one", 3, 3), ("one", 5, 4), ("two", 2, 1)]
    assert places(treebank) == expected
    np.testing.assert_array_equal(treebank.groups, [0, 0, 0, 2])
    folds = GroupKFold(2).split(treebank, groups=treebank.groups)
    assert [len(test) for _, test in folds] == [3, 1]


def test_origins_survive(treebank):
    rows = [3, 0]
    expected = [places(treebank)[row] for row in rows]
    part = treebank[rows]
    assert places(part) == expected
    assert places(pickle.loads(pickle.dumps(part))) == expected
    assert places(treebank[0:2]) == places(treebank)[:2]
    assert places(treebank[np.array([False, False, True, True])])[0][1] == 5
    parser = make_parser(min_count=1).fit(treebank)
    assert places(parser.predict(part)) == expected
    assert places(parser[:-1].transform(part)) == expected
    joined = part + Treebank(["(S (A a))"]) + treebank[1:2]
    assert places(joined)[:2] == expected
    assert joined.sources.loc[2].isna().all()
    assert places(joined)[3] == ("one", 3, 3)
    np.testing.assert_array_equal(joined.groups[[1, 3]], joined.groups[1])


def test_equal_files_make_equal_bytes(treebank):
    with pytest.warns(TreebankWarning):
        alone = read_treebank(file("two", TWO), on_error="skip")
    assert pickle.dumps(alone) == pickle.dumps(treebank[3:])
    assert alone == treebank[3:]


def test_lines_of_large_files():
    text = "\n".join(f"(S (A w{i})\n  (B b))" for i in range(40_000))
    sources = read_treebank(file("large", text)).sources
    np.testing.assert_array_equal(sources["line"], 2 * np.arange(40_000) + 1)
    np.testing.assert_array_equal(sources["number"], np.arange(40_000) + 1)


def test_trees_of_memory_have_no_origins():
    treebank = RareWords(1).fit_transform(Treebank(["(S (A a))", ["b"]]))
    assert treebank.sources.isna().all(axis=None)
    assert treebank.groups.tolist() == [-1, -1]
    assert isinstance(treebank.sources, pd.DataFrame)
    with pytest.raises(TypeError):
        treebank + "b"
