"""Two treebanks side by side: shared ids, and the comparison of their brackets."""

import re
from itertools import chain
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._brackets_match import (
    DELETE,
    DELETE_FOR_LENGTH,
    NO_BRACKET,
    QUOTE,
    BracketColumns,
    EqualLabels,
    compare_brackets,
)
from lpcfg_sk._ragged import offsets, read_only
from lpcfg_sk.exceptions import TreebankFormatError
from lpcfg_sk.metrics._evalb_parameters import check_parameters
from lpcfg_sk.treebank import check_treebank

_QUOTATION_MARKS = ("'", '"', "/")

#: The white space of C, which is narrower than that of ``str``.
_ITEM = re.compile(
    r"\((?P<label>[^ \t\n\v\f\r()]*)(?:[ \t\n\v\f\r]+(?P<word>[^ \t\n\v\f\r()]+)"
    r"[ \t\n\v\f\r]*\))?|(?P<close>\))|(?P<bare>[^ \t\n\v\f\r()]+)"
)


class Side(NamedTuple):
    """One treebank of a comparison; a row without a tree has no leaves either."""

    node_offsets: np.ndarray
    label: np.ndarray
    size: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    leaf_offsets: np.ndarray
    word: np.ndarray
    labels: tuple
    tokens: tuple

    @classmethod
    def from_treebank(cls, treebank):
        parsed = treebank.is_parsed
        return cls(
            treebank.node_offsets,
            treebank.label,
            treebank.size,
            treebank.start,
            treebank.stop,
            offsets(np.where(parsed, treebank.lengths, 0)),
            treebank.token[np.repeat(parsed, treebank.lengths)],
            treebank.labels.strings,
            treebank.tokens.strings,
        )

    @classmethod
    def from_lines(cls, lines, name):
        """Read one tree per line; a line may also hold no tree, or several.

        Unlike in a treebank, unlabelled brackets stay unlabelled and brackets
        without words are left out.
        """
        labels, tokens = {}, {}
        label, size, start, stop, word = [], [], [], [], []
        node_offsets, leaf_offsets = [0], [0]
        for number, line in enumerate(lines, 1):
            first, n_words, stack = len(label), 0, []
            for item in _ITEM.finditer(line):
                if item["close"]:
                    if not stack:
                        raise _malformed(name, number, item, "')' without '('")
                    node = stack.pop()
                    if start[node] == n_words:
                        del label[node:], size[node:], start[node:], stop[node:]
                        continue
                    size[node] = len(label) - node
                    stop[node] = n_words
                elif item["bare"]:
                    raise _malformed(
                        name, number, item, "a word without a pre-terminal"
                    )
                else:
                    label.append(labels.setdefault(item["label"], len(labels)))
                    start.append(n_words)
                    if item["word"] is None:
                        stack.append(len(size))
                        size.append(0)
                        stop.append(0)
                    else:
                        word.append(tokens.setdefault(item["word"], len(tokens)))
                        n_words += 1
                        size.append(1)
                        stop.append(n_words)
            if stack:
                raise TreebankFormatError(
                    f"{len(stack)} brackets are never closed", name, number
                )
            node_offsets.append(node_offsets[-1] + len(label) - first)
            leaf_offsets.append(leaf_offsets[-1] + n_words)
        columns = [np.array(c, dtype=np.int32) for c in (label, size, start, stop)]
        return cls(
            np.array(node_offsets, dtype=np.int64),
            *columns,
            np.array(leaf_offsets, dtype=np.int64),
            np.array(word, dtype=np.int32),
            tuple(labels),
            tuple(tokens),
        )


def _malformed(path, number, item, what):
    return TreebankFormatError(
        f"{what}; expected one tree per line", str(path), number, item.start() + 1
    )


class Alignment(NamedTuple):
    """Result of a comparison: counts per sentence, and the state of each node."""

    counts: np.ndarray
    gold_state: np.ndarray
    test_state: np.ndarray
    gold_name: np.ndarray
    test_name: np.ndarray
    names: tuple


def align_treebanks(gold, predicted, params, *, parsed=False):
    """Compare two treebanks.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order.
    params : "collins", path-like, None or ParsevalParameters
        Settings.
    parsed : bool, default=False
        Whether every gold row must have a tree.

    Returns
    -------
    alignment : Alignment
    """
    params = check_parameters(params)
    gold = check_treebank(gold, estimator="gold", allow_empty=True)
    predicted = check_treebank(predicted, estimator="predicted", allow_empty=True)
    if len(gold) != len(predicted):
        raise ValueError(
            f"gold has {len(gold)} trees and predicted has {len(predicted)}; expected "
            "the same sentences in the same order (an unparsed row where there is no "
            "parse)"
        )
    if parsed and not gold.is_parsed.all():
        row = int(np.flatnonzero(~gold.is_parsed)[0])
        raise ValueError(
            f"gold row {row} is a sentence without a tree "
            f"({int((~gold.is_parsed).sum())} such rows); leave them out of both sides"
        )
    return align(Side.from_treebank(gold), Side.from_treebank(predicted), params)


def align(gold, test, params):
    """Compare two sides, with ids for the union of their labels and words."""
    ids = {}
    for name in chain(gold.labels, test.labels, ("",), *params.eq_labels):
        ids.setdefault(name, len(ids))
        ids.setdefault(_cut(name), len(ids))
    gold_word, test_word, equal_words, marks = _shared_words(gold, test, params)
    gold_columns, gold_name = _columns(gold, gold_word, marks, ids, params)
    test_columns, test_name = _columns(test, test_word, marks, ids, params)
    counts, gold_state, test_state = compare_brackets(
        gold_columns, test_columns, _equal_labels(ids, params.eq_labels), equal_words
    )
    return Alignment(counts, gold_state, test_state, gold_name, test_name, tuple(ids))


def _cut(label):
    """Cut function tags and indices as EVALB does, from a leading ``-`` too."""
    return label.split("-", 1)[0].split("=", 1)[0]


def _equal_labels(ids, pairs):
    equal = [{i} for i in range(len(ids))]
    for a, b in pairs:
        equal[ids[a]].add(ids[b])
        equal[ids[b]].add(ids[a])
    labels = list(chain.from_iterable(map(sorted, equal)))
    return EqualLabels(
        offsets([len(e) for e in equal]), np.array(labels, dtype=np.int32)
    )


def _shared_words(gold, test, params):
    """Words of both sides in common ids, pairs of equal words, quotation marks."""
    if gold.tokens is test.tokens:
        gold_word, test_word = gold.word, test.word
        wanted = set(chain(*params.eq_words))
        if params.quote_labels:
            wanted.update(_QUOTATION_MARKS)
        ids = {w: i for i, w in enumerate(gold.tokens) if w in wanted} if wanted else {}
    else:
        ids = {}
        gold_word, test_word = (
            _translate(side.word, side.tokens, ids) for side in (gold, test)
        )
    equal = [(ids[a], ids[b]) for a, b in params.eq_words if a in ids and b in ids]
    marks = [ids[mark] for mark in _QUOTATION_MARKS if mark in ids]
    equal = np.array(equal, dtype=np.int32).reshape(-1, 2)
    return gold_word, test_word, equal, np.array(marks, dtype=np.int32)


def _translate(word, tokens, ids):
    occurs = np.zeros(len(tokens), dtype=bool)
    occurs[word] = True
    table = np.full(len(tokens), -1, dtype=np.int32)
    for i in np.flatnonzero(occurs).tolist():
        table[i] = ids.setdefault(tokens[i], len(ids))
    return table[word]


def _has_no_parent(size):
    """Return which nodes are roots, given the subtree sizes of trees in preorder."""
    node = np.arange(len(size))
    ends = np.maximum.accumulate(node + size)
    return node >= np.concatenate([[0], ends])[: len(size)]


def _columns(side, word, marks, ids, params):
    """Columns for the kernel of one side, and the cut label of each node."""
    deleted = set(params.delete_labels)
    deleted.update(*[pair for pair in params.eq_labels if deleted & set(pair)])
    # The last row, which id -1 reads, is that of a word without a pre-terminal.
    names = (*side.labels, "")
    tag = np.array([ids[name] for name in names], dtype=np.int32)
    cut = np.array([ids[_cut(name)] for name in names], dtype=np.int32)
    flags = np.array(
        [
            DELETE * (name in params.delete_labels)
            + DELETE_FOR_LENGTH * (name in params.delete_labels_for_length)
            + QUOTE * (name in params.quote_labels)
            for name in names
        ],
        dtype=np.uint8,
    )
    bracket = cut if params.labeled else np.zeros_like(cut)
    # An empty label inside a tree is a label like others.
    deleted.update(label for label in params.root_labels if label)
    bracket = np.where([_cut(name) in deleted for name in names], NO_BRACKET, bracket)
    bracket = bracket.astype(np.int32)[side.label]
    if "" in params.root_labels:
        unlabelled = np.array([name == "" for name in names])
        bracket[unlabelled[side.label] & _has_no_parent(side.size)] = NO_BRACKET
    leaf = side.label[side.size == 1]
    leaf_flags = flags[leaf]
    if params.quote_labels:
        leaf_flags[~np.isin(word, marks)] &= np.uint8(~np.uint8(QUOTE))
    columns = BracketColumns(
        side.node_offsets,
        side.size,
        bracket,
        side.start,
        side.stop,
        side.leaf_offsets,
        word,
        tag[leaf],
        leaf_flags,
    )
    # Columns of treebanks are read-only and others are not: with one kind of array
    # the kernel is compiled once.
    columns = (read_only(np.ascontiguousarray(column)) for column in columns)
    return BracketColumns(*columns), cut[side.label]
