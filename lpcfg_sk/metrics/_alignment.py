"""Two treebanks side by side: shared ids, and the comparison of their brackets."""

import os
import re
from dataclasses import dataclass, replace
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
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankFormatError, TreebankWarning
from lpcfg_sk.treebank import check_treebank

_LISTS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
}
_PAIRS = {"EQ_LABEL": "eq_labels", "EQ_WORD": "eq_words"}
_NUMBERS = {
    "CUTOFF_LEN": "cutoff_len",
    "LABELED": "labeled",
    "MAX_ERROR": "max_error",
}

#: Labels of the node that a treebank or a reader wraps around a sentence. Figures in
#: the literature do not count its bracket. The empty label means an unlabelled root.
ROOT_LABELS = ("TOP", "ROOT", "S1", "VROOT", "")


@dataclass(frozen=True)
class ParsevalParameters:
    """What EVALB reads from a parameter file, and which roots do not count.

    Without arguments nothing is deleted and labels must be equal, as when EVALB runs
    without a parameter file: the root counts, too.

    Parameters
    ----------
    delete_labels : tuple of str, default=()
        ``DELETE_LABEL``. A pre-terminal with such a label is deleted together with its
        word; of a nonterminal only the bracket is deleted.
    delete_labels_for_length : tuple of str, default=()
        ``DELETE_LABEL_FOR_LENGTH``. Pre-terminals that the length does not count.
    eq_labels, eq_words : tuple of pairs of str, default=()
        ``EQ_LABEL``, ``EQ_WORD``. Each pair counts as equal, in both directions. The
        relation is not made transitive.
    quote_labels : tuple of str, default=()
        ``QUOTE_LABEL``. Pre-terminals that may stand over a quotation mark (``'``,
        ``"`` or ``/``). Where the numbers of words differ, a mark that one side
        deletes and the other side keeps is restored.
    cutoff_len : int, default=40
        ``CUTOFF_LEN``. The second block of totals is over sentences up to this length.
    labeled : bool, default=True
        ``LABELED``. Whether the labels of brackets must agree.
    max_error : int or None, default=10
        ``MAX_ERROR``. EVALB gives up at the second error sentence after this many.
        Here all sentences are evaluated, and a warning says so. None never warns.
    root_labels : tuple of str, default=()
        Nonterminals around a whole sentence, whose brackets do not count. The empty
        label stands for an unlabelled root. Unlike with ``DELETE_LABEL``, a word right
        below such a label stays a word of the sentence. EVALB has no such keyword, so
        a ``.prm`` file never sets it.

    See Also
    --------
    parseval : Compare two treebanks.

    Notes
    -----
    As in EVALB, a deleted nonterminal is found by its label after function tags were
    cut and by equal labels, a deleted pre-terminal by exactly its label.

    Examples
    --------
    >>> from lpcfg_sk.metrics import ParsevalParameters
    >>> collins = ParsevalParameters.collins()
    >>> collins.root_labels
    ('TOP', 'ROOT', 'S1', 'VROOT', '')
    >>> collins.delete_labels
    ('-NONE-', ',', ':', '``', "''", '.')
    >>> collins.adding(delete_labels=["-LRB-", "-RRB-"]).delete_labels[-2:]
    ('-LRB-', '-RRB-')
    """

    delete_labels: tuple = ()
    delete_labels_for_length: tuple = ()
    eq_labels: tuple = ()
    eq_words: tuple = ()
    quote_labels: tuple = ()
    cutoff_len: int = 40
    labeled: bool = True
    max_error: int | None = 10
    root_labels: tuple = ()

    def __post_init__(self):
        for name in (*_LISTS.values(), "root_labels"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"{name} is a sequence of labels, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        for name in _PAIRS.values():
            value = tuple(getattr(self, name))
            if not all(not isinstance(p, str) and len(p) == 2 for p in value):
                raise ValueError(f"{name} is a sequence of pairs, got {value!r}")
            object.__setattr__(self, name, tuple(tuple(pair) for pair in value))
        object.__setattr__(self, "labeled", bool(self.labeled))

    @classmethod
    def collins(cls):
        """Return the convention of the literature for the Penn Treebank.

        Returns
        -------
        parameters : ParsevalParameters
            The settings of ``COLLINS.prm``, which deletes ``TOP``, for every name of
            the root: ``TOP``, ``ROOT``, ``S1``, ``VROOT`` and unlabelled roots.
        """
        return cls(
            delete_labels=("-NONE-", ",", ":", "``", "''", "."),
            delete_labels_for_length=("-NONE-",),
            eq_labels=(("ADVP", "PRT"),),
            root_labels=ROOT_LABELS,
        )

    @classmethod
    def from_file(cls, path):
        """Read a parameter file of EVALB.

        Parameters
        ----------
        path : path-like
            A ``.prm`` file. ``DEBUG`` has no meaning here. Keywords that EVALB does not
            know are ignored with a warning.

        Returns
        -------
        parameters : ParsevalParameters
        """
        path = os.fspath(path)
        values = {name: [] for name in (*_LISTS.values(), *_PAIRS.values())}
        unknown = []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip()
                if line.startswith("#") or len(line) < 3:
                    continue
                if line[0].isspace():
                    keyword, value = line.strip(), ""
                else:
                    keyword, _, value = line.replace("\t", " ").partition(" ")
                    value = value.strip()
                place = {"file": path, "line": number}
                if keyword in _LISTS:
                    if not value:
                        raise TreebankFormatError(f"{keyword} without a label", **place)
                    values[_LISTS[keyword]].append(value)
                elif keyword in _PAIRS:
                    pair = tuple(value.split())
                    if len(pair) != 2:
                        raise TreebankFormatError(
                            f"{keyword} takes two values, got {value!r}", **place
                        )
                    values[_PAIRS[keyword]].append(pair)
                elif keyword in _NUMBERS:
                    try:
                        values[_NUMBERS[keyword]] = int(value)
                    except ValueError:
                        raise TreebankFormatError(
                            f"{keyword} takes a number, got {value!r}", **place
                        ) from None
                elif keyword != "DEBUG" and (keyword, value) != ("DISC_ONLY", "0"):
                    unknown.append(f"{keyword} (line {number})")
        if unknown:
            warn_caller(
                f"{path}: EVALB has no parameter {', '.join(unknown)}; passed over",
                TreebankWarning,
            )
        return cls(**values)

    def adding(self, **lists):
        """Return parameters with further labels or pairs.

        Parameters
        ----------
        **lists
            ``delete_labels``, ``eq_labels`` and so on: what to append.

        Returns
        -------
        parameters : ParsevalParameters
        """
        return replace(self, **{k: (*getattr(self, k), *v) for k, v in lists.items()})


def check_parameters(params):
    """Return the parameters that "collins", a path, None or parameters stand for."""
    if isinstance(params, ParsevalParameters):
        return params
    if params is None:
        return ParsevalParameters()
    if params == "collins":
        return ParsevalParameters.collins()
    if isinstance(params, str | os.PathLike):
        try:
            return ParsevalParameters.from_file(params)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"params={os.fspath(params)!r} is no parameter file; expected "
                '"collins", the path of a .prm file, None or ParsevalParameters'
            ) from None
    raise TypeError(
        'params must be "collins", the path of a .prm file, None or '
        f"ParsevalParameters, got {type(params).__name__}"
    )


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
    # The last row, which id -1 reads, is for a word without a pre-terminal.
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
    # An empty label inside a tree is an ordinary label.
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
    # Columns of treebanks are read-only. Making all columns so keeps numba from
    # compiling the kernel twice.
    columns = (read_only(np.ascontiguousarray(column)) for column in columns)
    return BracketColumns(*columns), cut[side.label]
