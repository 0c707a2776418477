"""A page to look at the errors of a parser."""

import os
import warnings
from collections import Counter
from html import escape
from itertools import pairwise

import numpy as np
import pandas as pd

from lpcfg_sk._files import written_in_one_step
from lpcfg_sk._kernels._brackets_match import UNMATCHED
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.inspection._displays import learner_and_input
from lpcfg_sk.inspection._report_page import PAGE, SCRIPT, STYLE
from lpcfg_sk.metrics import (
    align_treebanks,
    bracket_counts,
    f1_score,
    label_report,
    length_report,
    parseval,
    parseval_summary,
)
from lpcfg_sk.treebank import check_treebank

#: Labels of the table of confusions; more would not fit a page.
_MOST_LABELS = 12
#: Rows of the table of labels.
_MOST_ROWS = 15
_NO_LABEL = "–"
_SCORES = {
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "complete_match": "Exact match",
    "tag_accuracy": "Tags",
    "n_sentences": "Sentences",
    "n_valid": "Valid",
}


def report(parser, treebank, path, *, title="Parsing errors"):
    """Write a page that shows the errors of a parser on gold trees.

    One HTML file that needs no network: scores by length and by label, confused
    labels, and each sentence with its gold and its predicted tree side by side.
    Brackets that differ are coloured by their posterior probability; sentences can
    be sorted by F1 and filtered by label and words.

    Parameters
    ----------
    parser : estimator or Pipeline
        A fitted parser; with a method ``span_marginals``, else without posteriors.
    treebank : Treebank or iterable of trees
        Gold trees.
    path : str or path-like
        The file to write.
    title : str, default="Parsing errors"
        Heading of the page.

    See Also
    --------
    tree_diff : Differences of two trees as text.

    Notes
    -----
    A sentence takes about 4 kB. Brackets are matched as by
    :func:`~lpcfg_sk.metrics.f1_score`, without the root and without punctuation; the
    table of scores is that of :func:`~lpcfg_sk.metrics.parseval_summary`, which leaves
    out the sentences that EVALB leaves out.

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk import make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> from lpcfg_sk.inspection import report
    >>> trees = load_toy(60)
    >>> parser = make_parser().fit(trees[:40])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = os.path.join(folder, "errors.html")
    ...     report(parser, trees[40:], page)
    ...     os.path.getsize(page) > 1000
    True
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        # Checked before the parser runs, not after it.
        raise FileNotFoundError(f"there is no folder {folder!r} for the page")
    gold = check_treebank(treebank, estimator="report", parsed=True)
    if not hasattr(parser, "predict"):
        raise TypeError(
            "report takes a fitted parser, gold trees and a path; got a "
            f"{type(parser).__name__} for the parser"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = parser.predict(gold)
        learner, seen = learner_and_input(parser, gold)
        marginals = [None] * len(gold)
        if hasattr(learner, "span_marginals"):
            marginals = learner.span_marginals(seen)
    for warning in caught:
        # Sentences without a parse are in the table.
        if not issubclass(warning.category, ParseFailureWarning):
            warn_caller(warning.message, warning.category)
    by_label = label_report(gold, predicted)
    by_length = length_report(gold, predicted)
    sentences, confusion, wrong = _sentences(gold, predicted, marginals)
    f1 = 100 * f1_score(gold, predicted)
    about = f"{len(gold)} sentences, parsed by {type(learner).__name__}: F1 {f1:.2f}."
    text = PAGE.format(
        title=escape(title),
        about=escape(about),
        style=STYLE,
        script=SCRIPT,
        scores=_scores(gold, predicted),
        lengths=_rates(by_length[by_length["n_sentences"] > 0]),
        labels=_rates(by_label.head(_MOST_ROWS)),
        confusion=_confusion(confusion),
        options="".join(f"<option>{escape(label)}</option>" for label in sorted(wrong)),
        sentences="\n".join(sentences),
    )
    with written_in_one_step(path) as file:
        file.write(text.encode("utf-8", "replace"))


def _sentences(gold, predicted, marginals):
    """Articles of all sentences, counts of confused labels, labels with an error."""
    alignment = align_treebanks(gold, predicted, "collins")
    counts = bracket_counts(gold, predicted)
    sides = (
        _Side(gold, alignment.gold_state, "missed"),
        _Side(predicted, alignment.test_state, "wrong"),
    )
    articles, confusion, wrong = [], Counter(), set()
    for row, frame in enumerate(marginals):
        posterior = _posteriors(frame)
        missed, false = (side.errors(row) for side in sides)
        labels = {label for label, *_ in (*missed, *false)}
        wrong |= labels
        confusion.update(_pairs(missed, false))
        matched, n_gold, n_predicted = (int(part[row]) for part in counts)
        f1 = 2 * matched / (n_gold + n_predicted) if n_gold + n_predicted else 1.0
        words = gold[row].words()
        sentence = escape(" ".join(words))
        trees = "".join(
            f'<div class="side"><h3>{name}</h3>{side.boxes(row, posterior)}</div>'
            for name, side in zip(("Gold", "Predicted"), sides, strict=True)
        )
        articles.append(
            f'<article data-row="{row}" data-f1="{f1:.6f}" data-length="{len(words)}" '
            f'data-labels="{escape(" ".join(sorted(labels)))}" '
            f'data-words="{sentence}"><header><strong>{row + 1}</strong>'
            f"<span>F1 {100 * f1:.1f}</span><span class=soft>{matched} right, "
            f"{n_predicted - matched} wrong, {n_gold - matched} missed; {len(words)} "
            f'words</span></header><div class="sides">{trees}</div></article>'
        )
    return articles, confusion, wrong


def _posteriors(frame):
    if frame is None:
        return None
    columns = (frame[name].tolist() for name in ("label", "start", "end", "marginal"))
    return {(label, i, j): p for label, i, j, p in zip(*columns, strict=True)}


def _pairs(missed, false):
    """Pair missed and wrong brackets of one span; `_NO_LABEL` stands for no bracket."""
    spans = {}
    for side, brackets in enumerate((missed, false)):
        for label, *span in brackets:
            spans.setdefault(tuple(span), ([], []))[side].append(label)
    for gold, predicted in spans.values():
        n = max(len(gold), len(predicted))
        gold += [_NO_LABEL] * (n - len(gold))
        predicted += [_NO_LABEL] * (n - len(predicted))
        yield from zip(gold, predicted, strict=True)


class _Side:
    """Trees of one side, and which of their brackets the other side lacks."""

    def __init__(self, treebank, state, kind):
        self.treebank = treebank
        self.kind = kind
        self.differs = (state == UNMATCHED) & (treebank.size > 1)
        self.bounds = list(pairwise(treebank.node_offsets.tolist()))

    def _nodes(self, row):
        """Yield label, start, stop, size and whether it differs, of each node."""
        tb, (begin, end) = self.treebank, self.bounds[row]
        columns = (tb.label, tb.start, tb.stop, tb.size, self.differs)
        columns = (column[begin:end].tolist() for column in columns)
        for label, *rest in zip(*columns, strict=True):
            yield tb.labels[label] if label >= 0 else "", *rest

    def errors(self, row):
        """List the brackets that the other side lacks."""
        return [(a, i, j) for a, i, j, _, differs in self._nodes(row) if differs]

    def boxes(self, row, posterior):
        """Nested boxes of a tree, as HTML."""
        words = self.treebank[row].words()
        parts, open_until = [], []
        for node, (label, i, j, size, differs) in enumerate(self._nodes(row)):
            while open_until and open_until[-1] == node:
                parts.append("</span>")
                open_until.pop()
            name = escape(label)
            if size == 1:
                word = escape(words[i])
                parts.append(f"<span class=w><i>{name}</i>{word}</span> ")
                continue
            extra = ""
            if differs:
                p = None if posterior is None else posterior.get((label, i, j), 0.0)
                known = "" if p is None else f", posterior {p:.2f}"
                depth = 0.5 if p is None else min(1.0, max(0.0, p))
                extra = f' style="--p:{depth:.2f}" title="{name} {self.kind}{known}"'
            cls = f"b {self.kind}" if differs else "b"
            parts.append(f'<span class="{cls}"{extra}><b>{name}</b>')
            open_until.append(node + size)
        parts.append("</span>" * len(open_until))
        return "".join(parts)


def _scores(gold, predicted):
    summary = parseval_summary(parseval(gold, predicted))
    rows = []
    for column, name in _SCORES.items():
        if column in summary:
            cells = "".join(_number(value) for value in summary[column])
            rows.append(f"<tr><td>{name}</td>{cells}</tr>")
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in summary.index)
    return _table(f"<tr><th></th>{heads}</tr>", rows)


def _number(value):
    text = "" if pd.isna(value) else f"{value:.2f}".removesuffix(".00")
    return f"<td>{text}</td>"


def _rates(frame):
    counts = [c for c in ("n_sentences", "support", "predicted") if c in frame]
    titles = {"n_sentences": "sentences", "support": "gold"}
    heads = "".join(f"<th>{titles.get(c, c)}</th>" for c in counts)
    rows = [
        f"<tr><td>{escape(str(name))}</td>"
        f'<td><span class="bar" style="--p:{row["f1"] / 100:.3f}"><i></i></span></td>'
        f"<td>{row['f1']:.1f}</td>"
        + "".join(f"<td>{row[c]:.0f}</td>" for c in counts)
        + "</tr>"
        for name, row in frame.iterrows()
    ]
    return _table(f"<tr><th></th><th></th><th>F1</th>{heads}</tr>", rows)


def _confusion(counts):
    total = Counter()
    for (gold, predicted), n in counts.items():
        total[gold] += n
        total[predicted] += n
    total.pop(_NO_LABEL, None)
    names = [*(name for name, _ in total.most_common(_MOST_LABELS)), _NO_LABEL]
    largest = max(counts.values(), default=1)
    rows = []
    for gold in names:
        cells = []
        for predicted in names:
            n = counts[gold, predicted]
            depth = f' class=cell style="--p:{np.sqrt(n / largest):.2f}"' if n else ""
            cells.append(f"<td{depth}>{n or ''}</td>")
        rows.append(f"<tr><th>{escape(gold)}</th>{''.join(cells)}</tr>")
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    return _table(f"<tr><th></th>{heads}</tr>", rows)


def _table(head, rows):
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'
