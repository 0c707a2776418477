"""Prediction: a tree for every row, coarser charts, flat trees, and a report."""

import sys
import time
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk._parallel import map_chunks, run_apart
from lpcfg_sk._ragged import offsets
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ChartMemoryError, ParseError, ParseFailureWarning
from lpcfg_sk.metrics import f1_score
from lpcfg_sk.parsing._decoders import assemble
from lpcfg_sk.parsing._sentences import LONG
from lpcfg_sk.treebank import (
    TreebankInputMixin,
    check_sample_weight,
    check_treebank,
    concatenate,
    unbinarize,
)

#: Ways to treat a sentence without a tree.
ON_FAILURE = ("flat", "raise", "skip")

_COLUMNS = ("label", "size", "parent", "start", "stop")
_NO_PARSE = "no parse under the grammar"
_WITH_PARSE = ("parsed", "coarser")


class ParserMixin(TreebankInputMixin):
    """Methods of a parser whose ``_parse(X)`` returns trees and a report."""

    def predict(self, X, *, return_status=False):
        """Parse sentences.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Only the words are parsed; a token that is given with a tag keeps it, see
            "Given tags" in the user guide. Shards are parsed one after the other.
        return_status : bool, default=False
            Whether to return the status of each row as well.

        Returns
        -------
        trees : Treebank
            One tree per row over the original tokens, not binarised. An empty row
            stays empty; `on_failure` decides about other rows without a parse.
        status : DataFrame, only if `return_status`
            One row per sentence with the columns ``status`` and ``reason``. The status
            is "parsed", "coarser" (the chart did not fit `max_memory`, so more of it
            was pruned), "flat", "skipped" or "empty".

        Warns
        -----
        ParseFailureWarning
            If sentences did not get the tree asked for; one warning for all of them,
            and none with `return_status`.

        Notes
        -----
        "mbr" and "max-marginal" compute in single precision where no parameter is
        negative, :meth:`marginals` and :meth:`span_marginals` in double precision.
        """
        trees, report = self._parse(X)
        if return_status:
            return trees, report.frame()
        report.warn()
        return trees

    def score(self, X, y=None, *, sample_weight=None):
        """Labelled F1 of the predicted trees.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Sentences to parse, and the gold trees where `y` is None.
        y : Treebank or iterable of trees, default=None
            Gold trees. Rows without one are left out.
        sample_weight : array-like of float, shape (n_sentences,), default=None
            Weights of the sentences.

        Returns
        -------
        f1 : float
            Between 0 and 1, see :func:`~lpcfg_sk.metrics.f1_score`. Sentences whose
            predicted words differ from the gold ones count as wrong, whereas EVALB
            leaves them out.
        """
        X = self._check_sentences(X)
        gold = X if y is None else check_treebank(y, estimator=self)
        X, gold, sample_weight = self._with_trees(X, gold, sample_weight)
        if gold.binarized:
            gold = unbinarize(gold)
        trees, report = self._parse(X)
        report.warn_of_score()
        return f1_score(gold, trees, sample_weight=sample_weight)

    def _with_trees(self, X, gold, sample_weight):
        """Leave out the rows of all three whose gold tree is missing."""
        rows = gold.is_parsed
        if rows.all() and len(rows):
            return X, gold, sample_weight
        if not rows.any():
            raise ValueError(
                f"{type(self).__name__}.score needs a gold tree, and none of these "
                f"{len(rows)} rows has one; in cross-validation of trees and "
                "sentences, shuffle the rows: KFold(5, shuffle=True, random_state=0)"
            )
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, gold)[rows]
        return X[rows], gold[rows], sample_weight


class RowReport:
    """Status of each row of a prediction.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    notes : dict of int to (str, str)
        Status and reason of the rows that do not simply have their tree. A row that is
        "parsed" may have a reason, too: what its tree lacks.
    """

    def __init__(self, n_rows, notes):
        self.n_rows = n_rows
        self.notes = notes

    def frame(self):
        """Return a DataFrame with the columns status and reason."""
        status = np.full(self.n_rows, "parsed", dtype=object)
        reason = np.full(self.n_rows, "", dtype=object)
        for row, note in self.notes.items():
            status[row], reason[row] = note
        columns = {"status": status, "reason": reason}
        return pd.DataFrame(columns, dtype="string")

    def without_parse(self):
        """Return the rows that have no tree of the grammar."""
        notes = self.notes.items()
        return [row for row, (status, _) in notes if status not in _WITH_PARSE]

    def warn(self, row_name="row"):
        """Issue one warning about the rows that did not get the tree asked for."""
        parts = []
        for status, without_parse, what in (
            ("flat", True, "have no parse and got a flat tree"),
            ("skipped", True, "have no parse and were left without a tree"),
            ("flat", False, "do not fit max_memory and got a flat tree"),
            ("skipped", False, "do not fit max_memory and were left without a tree"),
            ("coarser", False, "got their tree from a coarser chart"),
            ("parsed", False, "got their tree from some members of the vote only"),
        ):
            rows = [
                row
                for row, (own, reason) in self.notes.items()
                if own == status and (reason == _NO_PARSE) == without_parse
            ]
            if rows:
                parts.append(
                    f"{len(rows)} of {self.n_rows} sentences {what} (the first is "
                    f"{row_name} {min(rows)})"
                )
        if parts:
            warn_caller("; ".join(parts), ParseFailureWarning)

    def warn_of_score(self):
        """Issue one warning about the sentences that a score counts as wrong."""
        if any(s not in ("empty", "parsed") for s, _ in self.notes.values()):
            warn_caller(
                "some sentences have no parse, or none that fits max_memory; what they "
                "got instead counts as wrong. predict(X, return_status=True) says "
                "which sentences",
                ParseFailureWarning,
            )


class _Piece(NamedTuple):
    """Rows of a treebank, and their trees."""

    rows: np.ndarray
    trees: object


def parse_every_row(
    X, parse, *, coarser=tuple, flat=None, on_failure, n_jobs=None, verbose=0
):
    """Parse all rows, also where some have no parse or too large a chart.

    An empty row stays empty. A row whose chart does not fit goes through the coarser
    parsers, and has a flat tree in the end.

    Parameters
    ----------
    X : Treebank or ShardedTreebank
        Sentences.
    parse : callable
        ``parse(treebank, n_jobs=...)`` returns trees, of which some are flat, and the
        list of the rows that these are; or raises :class:`ChartMemoryError`. It may
        also return a dict of remarks by row: why it is flat, or what its tree lacks.
    coarser : callable, default=tuple
        ``coarser()`` returns an iterable of functions like `parse` with smaller
        charts, each one smaller than the one before.
    flat : callable, default=None
        ``flat(treebank)`` returns flat trees; needed where charts may not fit.
    on_failure : {"flat", "raise", "skip"}
        What to do about rows without a parse, or with one that does not fit.
    n_jobs : int, default=None
        Number of threads.
    verbose : int, default=0
        Whether to report on long sentences.

    Returns
    -------
    trees : Treebank
        One row per row of `X`.
    report : RowReport
    """
    if on_failure not in ON_FAILURE:
        raise ValueError(f"on_failure is one of {ON_FAILURE}, got {on_failure!r}")
    parts, notes = [], {}
    coarser = tuple if on_failure == "raise" else coarser
    for begin, chunk in zip(X.chunk_offsets.tolist(), X.chunks(), strict=False):
        parsers = _Parsers(parse, coarser, flat, on_failure, n_jobs, verbose, begin)
        parts.append(parsers.run(chunk, notes))
    return concatenate(parts), RowReport(len(X), notes)


class _Parsers(NamedTuple):
    """The arguments of :func:`parse_every_row`, and the number of the first row."""

    parse: object
    coarser: object
    flat: object
    on_failure: str
    n_jobs: int | None
    verbose: int
    first: int

    def run(self, treebank, notes):
        """Return the trees of all rows; `notes` gets the status of unusual rows."""
        waiting = np.flatnonzero(treebank.lengths)
        empty = np.flatnonzero(treebank.lengths == 0)
        pieces, reason = [], {}
        if len(empty) or not len(waiting):
            pieces.append(_Piece(empty, _without_trees(treebank[empty])))
            notes.update((self.first + row, ("empty", "no words")) for row in empty)
        lost = []
        for level, parse in enumerate(chain([self.parse], self.coarser())):
            found, failed, errors, remarks = self._attempt(parse, treebank, waiting)
            if self.on_failure == "raise" and (errors or failed):
                self._raise(errors, failed)
            pieces += found
            if level:
                done = np.setdiff1d(waiting, [*errors, *failed]).tolist()
                self._note(done, "coarser", reason, notes)
            else:
                self._note(remarks, "parsed", remarks, notes)
            reason.update({**errors, **dict.fromkeys(failed, _NO_PARSE), **remarks})
            lost += failed
            waiting = np.array(sorted(errors), dtype=np.int64)
            if not len(waiting):
                break
        if len(waiting):
            pieces.append(_Piece(waiting, self.flat(treebank[waiting])))
            lost += waiting.tolist()
        skip = self.on_failure == "skip"
        self._note(lost, "skipped" if skip else "flat", reason, notes)
        trees = _joined(pieces)
        return _remove_trees(trees, lost) if skip and lost else trees

    def _note(self, rows, status, reason, notes):
        for row in rows:
            notes[self.first + row] = (status, reason[row])

    def _attempt(self, parse, treebank, rows):
        """Return pieces, rows without a parse, errors and remarks by row."""
        pieces, failed, errors, remarks = [], [], {}, {}
        lengths = treebank.lengths

        def collect(rows, trees, without, by_row=()):
            pieces.append(_Piece(rows, trees))
            failed.extend(rows[without].tolist())
            remarks.update((int(rows[row]), by_row[row]) for row in by_row)

        # Long sentences are parsed one by one: one that does not fit memory must not
        # stop the others.
        is_long = lengths[rows] > LONG
        together, alone = rows[~is_long], rows[is_long]
        if len(together):
            whole = len(together) == len(treebank)
            part = treebank if whole else treebank[together]
            try:
                collect(together, *parse(part, n_jobs=self.n_jobs))
            except ChartMemoryError:
                alone = rows

        def parse_one(row):
            name, n_words = f"row {self.first + row}", int(lengths[row])
            shown = self.verbose and n_words > LONG
            if shown:
                sys.stderr.write(f"{name}: parsing {n_words} words\n")
            started = time.perf_counter()
            try:
                result = run_apart(parse, treebank[row : row + 1], n_jobs=1)
            except ChartMemoryError as error:
                return str(error).replace("row 0", name, 1)
            if shown:
                seconds = time.perf_counter() - started
                sys.stderr.write(f"{name}: {seconds:.1f} s\n")
            return result

        jobs = [(row,) for row in alone.tolist()]
        results = map_chunks(parse_one, jobs, n_jobs=self.n_jobs) if jobs else ()
        for (row,), result in zip(jobs, results, strict=True):
            if isinstance(result, str):
                errors[row] = result
            else:
                collect(np.array([row]), *result)
        return pieces, failed, errors, remarks

    def _raise(self, errors, failed):
        if errors:
            raise ChartMemoryError(errors[min(errors)])
        raise ParseError(
            f"row {self.first + min(failed)} has {_NO_PARSE} ({len(failed)} such "
            'rows); on_failure="flat" gives them flat trees, "skip" none'
        )


def _joined(pieces):
    """Return the trees of all pieces in the order of the rows."""
    if len(pieces) == 1:
        return pieces[0].trees
    order = np.argsort(np.concatenate([piece.rows for piece in pieces]))
    return concatenate([piece.trees for piece in pieces])[order]


def _remove_trees(treebank, rows):
    """Return a treebank whose rows `rows` have lost their nodes."""
    counts = np.diff(treebank.node_offsets)
    kept = np.ones(len(counts), dtype=bool)
    kept[rows] = False
    nodes = np.repeat(kept, counts)
    columns = {name: getattr(treebank, name)[nodes] for name in _COLUMNS}
    return treebank.replace(**columns, node_offsets=offsets(counts * kept), check=False)


def _without_trees(treebank):
    """Return the sentences in the form of predicted trees."""
    nodes = [np.zeros((4, 0), dtype=np.int32)] * len(treebank)
    return assemble(treebank.unparsed(), (), nodes, binarized=False)
