"""EVALB: scores of each sentence, totals, and the program's report."""

import numpy as np
import pandas as pd

from lpcfg_sk._kernels._brackets_match import (
    CORRECT_TAGS,
    CROSSING,
    ERROR,
    GOLD,
    LENGTH,
    MATCHED,
    SKIP,
    STATUS,
    TEST,
    VALID,
    WORDS,
)
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.metrics._alignment import (
    ParsevalParameters,
    Side,
    align,
    align_treebanks,
    check_parameters,
)

#: Columns of counts of the result, and of the kernel.
COUNTS = {
    "matched_brackets": MATCHED,
    "gold_brackets": GOLD,
    "test_brackets": TEST,
    "cross_brackets": CROSSING,
    "words": WORDS,
    "correct_tags": CORRECT_TAGS,
}

_HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
"""
_RULE = "=" * 76 + "\n"
_ROW = "%4d  %3d    %d  %6.2f %6.2f   %3d    %3d  %3d    %3d   %4d  %4d   %6.2f\n"
_ROW_COLUMNS = [
    "ID",
    "length",
    "status",
    "recall",
    "precision",
    *COUNTS,
    "tag_accuracy",
]
_TOTAL_BRACKETS = (
    "                {recall:6.2f} {precision:6.2f} {matched_brackets:6d}"
    " {gold_brackets:5d} {test_brackets:5d}  {cross_brackets:5d}"
)
_TOTAL_TAGS = "  {words:5d} {correct_tags:5d}   {tag_accuracy:6.2f}\n"
_SUMMARY_COLUMNS = [
    "n_valid",
    "f1",
    "precision",
    "recall",
    "complete_match",
    "tag_accuracy",
]
_SUMMARY_LINES = (
    ("Number of sentence        = %6d", "n_sentences"),
    ("Number of Error sentence  = %6d", "n_error"),
    ("Number of Skip  sentence  = %6d", "n_skip"),
    ("Number of Valid sentence  = %6d", "n_valid"),
    ("Bracketing Recall         = %6.2f", "recall"),
    ("Bracketing Precision      = %6.2f", "precision"),
    ("Bracketing FMeasure       = %6.2f", "f1"),
    ("Complete match            = %6.2f", "complete_match"),
    ("Average crossing          = %6.2f", "average_crossing"),
    ("No crossing               = %6.2f", "no_crossing"),
    ("2 or less crossing        = %6.2f", "two_or_less_crossing"),
    ("Tagging accuracy          = %6.2f", "tag_accuracy"),
)


def parseval(gold, predicted, params="collins"):
    """Compare predicted trees with gold trees as EVALB does.

    Parameters
    ----------
    gold, predicted : Treebank or iterable of trees
        The same sentences in the same order. An unparsed row of `predicted` is a
        sentence without a parse. Labels may have function tags: those of brackets
        are cut at the first ``-`` or ``=``, those of pre-terminals are not.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings: "collins" for those of ``COLLINS.prm``, where the root never counts; a
        ``.prm`` file, which is followed to the letter; or None for no deletions and
        strict equality.

    Returns
    -------
    frame : DataFrame
        One row per sentence: ``ID`` (from 1), ``length``, ``status`` (0 valid; 1 error,
        the words differ; 2 skipped, no parse), ``recall``, ``precision`` (in percent),
        ``matched_brackets``, ``gold_brackets``, ``test_brackets``, ``cross_brackets``,
        ``words``, ``correct_tags``, ``tag_accuracy`` (in percent). Rows that are not
        valid hold zeros. ``frame.attrs["all"]`` and ``frame.attrs["cutoff"]`` are
        dicts of totals over the valid sentences (see :func:`parseval_summary`),
        ``frame.attrs["cutoff_len"]`` the greatest length that the second one counts.

    See Also
    --------
    parseval_files : The same for two files with one tree per line.
    parseval_report : The result in EVALB's layout.
    f1_score : One number, in which failures count.

    Notes
    -----
    Details are those of the program, including the surprising ones:

    * A bracket is a labelled span of the words that are not deleted. Brackets without
      words do not count; several with the same label and span count separately.
    * Figures of the literature do not count the root, and neither does "collins":
      ``TOP``, ``ROOT``, ``S1``, ``VROOT`` and unlabelled roots. The file
      ``COLLINS.prm`` deletes ``TOP`` only, so with the path of that file a root
      ``ROOT`` counts, as in EVALB.
    * Labels start before the first ``-``: a nonterminal ``-X-`` has the empty label.
    * A sentence whose predicted words are all deleted is skipped, even where the gold
      tree is the same.
    * The F-measure is nan where recall and precision are zero, and a ratio of 0/0
      elsewhere is zero.

    A word without a pre-terminal, which EVALB cannot read, has the empty tag.

    The time is linear in the size of the trees.

    Examples
    --------
    >>> from lpcfg_sk.metrics import parseval
    >>> gold = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"]
    >>> predicted = ["(S (NP (DT the)) (VP (NN dog) (VBZ barks)))"]
    >>> frame = parseval(gold, predicted)
    >>> frame.loc[0, ["matched_brackets", "gold_brackets", "cross_brackets"]].tolist()
    [1, 3, 1]
    >>> round(frame.attrs["all"]["f1"], 2)
    33.33
    """
    params = check_parameters(params)
    return _frame(align_treebanks(gold, predicted, params).counts, params)


def parseval_files(gold_path, predicted_path, params="collins"):
    r"""Compare two files with one tree per line as EVALB does.

    Parameters
    ----------
    gold_path, predicted_path : path-like or open text file
        Files of bracketed trees, which are not cleaned: traces, function tags and
        unlabelled brackets stay. An empty line, ``()`` or ``(())`` is a sentence
        without a parse; several trees on a line are the pieces of one parse.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`.

    Returns
    -------
    frame : DataFrame
        See :func:`parseval`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lpcfg_sk.metrics import parseval_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gold, test = Path(folder, "gold"), Path(folder, "test")
    ...     _ = gold.write_text("(S (NP (PRP I)) (VP (VBP am)))\n(S (VP (VB go)))\n")
    ...     _ = test.write_text("(S (NP (PRP I)) (XP (VBP am)))\n()\n")
    ...     parseval_files(gold, test)[["ID", "status", "recall"]]
       ID  status     recall
    0   1       0  66.666667
    1   2       2   0.000000
    """
    params = check_parameters(params)
    gold, test = _read_side(gold_path), _read_side(predicted_path)
    n_gold, n_test = len(gold.node_offsets) - 1, len(test.node_offsets) - 1
    if n_gold != n_test:
        raise ValueError(
            f"{_name(gold_path)} has {n_gold} lines and {_name(predicted_path)} has "
            f"{n_test}; expected the same sentences, "
            "one per line (an empty line where there is no parse)"
        )
    return _frame(align(gold, test, params).counts, params)


def _read_side(source):
    if hasattr(source, "read"):
        return Side.from_lines(source, _name(source))
    with open(source, encoding="utf-8-sig", newline="\n") as lines:
        return Side.from_lines(lines, _name(source))


def _name(source):
    return str(getattr(source, "name", source))


def _frame(counts, params):
    status = counts[:, STATUS]
    n_error = int((status == ERROR).sum())
    if params.max_error is not None and n_error > params.max_error + 1:
        warn_caller(
            f"the words of {n_error} of {len(status)} sentences differ between gold "
            f"and predicted; EVALB gives up after MAX_ERROR={params.max_error}, and "
            "the totals leave these sentences out. Check that both sides hold the same "
            "sentences in the same order; a tag that the settings delete on one side "
            "only (punctuation) takes a word away, too",
            TreebankWarning,
        )
    length = counts[:, LENGTH]
    counts = np.where((status == VALID)[:, None], counts, 0)
    numbers = {name: counts[:, column] for name, column in COUNTS.items()}
    frame = pd.DataFrame(
        {
            "ID": np.arange(1, len(status) + 1),
            "length": length,
            "status": status,
            "recall": _percent(numbers["matched_brackets"], numbers["gold_brackets"]),
            "precision": _percent(
                numbers["matched_brackets"], numbers["test_brackets"]
            ),
            **numbers,
            "tag_accuracy": _percent(numbers["correct_tags"], numbers["words"]),
        }
    )
    frame.attrs["cutoff_len"] = params.cutoff_len
    frame.attrs.update(_both_totals(frame))
    return frame


def _percent(part, whole):
    # EVALB's order of operations, so that rounding to two digits agrees.
    return np.divide(100.0 * part, whole, out=np.zeros(len(part)), where=whole > 0)


def _ratio(part, whole):
    return part / whole if whole > 0 else 0.0


def _both_totals(frame):
    within = frame[frame["length"] <= frame.attrs["cutoff_len"]]
    return {"all": _totals(frame), "cutoff": _totals(within)}


def _totals(frame):
    valid = frame[frame["status"] == VALID]
    n_valid = len(valid)
    sums = {name: int(valid[name].sum()) for name in COUNTS}
    matched, gold, test = (valid[f"{k}_brackets"] for k in ("matched", "gold", "test"))
    crossing = valid["cross_brackets"]
    recall = _ratio(100.0 * sums["matched_brackets"], sums["gold_brackets"])
    precision = _ratio(100.0 * sums["matched_brackets"], sums["test_brackets"])
    f1 = np.nan
    if precision + recall > 0:
        f1 = 2 * precision * recall / (precision + recall)
    complete = int(((matched == gold) & (matched == test)).sum())
    return {
        "n_sentences": len(frame),
        "n_error": int((frame["status"] == ERROR).sum()),
        "n_skip": int((frame["status"] == SKIP).sum()),
        "n_valid": n_valid,
        "recall": recall,
        "precision": precision,
        "f1": f1,
        "complete_match": _ratio(100.0 * complete, n_valid),
        "average_crossing": _ratio(1.0 * sums["cross_brackets"], n_valid),
        "no_crossing": _ratio(100.0 * int((crossing == 0).sum()), n_valid),
        "two_or_less_crossing": _ratio(100.0 * int((crossing <= 2).sum()), n_valid),
        "tag_accuracy": _ratio(100.0 * sums["correct_tags"], sums["words"]),
        **sums,
    }


def is_parseval_frame(frame):
    """Whether a frame has the columns of :func:`parseval`."""
    return isinstance(frame, pd.DataFrame) and set(_ROW_COLUMNS) <= set(frame.columns)


def _check_frame(frame):
    if not is_parseval_frame(frame):
        raise TypeError(
            f"expected a DataFrame made by parseval, got {type(frame).__name__}"
        )
    if "cutoff_len" not in frame.attrs:
        frame = frame.copy()
        frame.attrs["cutoff_len"] = ParsevalParameters().cutoff_len
    return frame


def parseval_summary(gold, predicted=None, params="collins", *, detailed=False):
    """Totals of a comparison, over all sentences and over those up to a length.

    Parameters
    ----------
    gold : DataFrame of parseval, or Treebank or iterable of trees
        A result, whole or some rows of it, or the gold trees.
    predicted : Treebank or iterable of trees, default=None
        Predicted trees where `gold` is not a result.
    params : "collins", path-like, None or ParsevalParameters, default="collins"
        Settings, see :func:`parseval`.
    detailed : bool, default=False
        Whether to give all columns, instead of those that fit a line.

    Returns
    -------
    summary : DataFrame
        Rows ``all`` and ``len<=40`` (40 is the ``cutoff_len`` of the settings); columns
        ``n_valid`` (sentences that count), and in percent, as EVALB has them, ``f1``,
        ``precision``, ``recall``, ``complete_match`` and ``tag_accuracy``.

        With `detailed` also ``n_sentences``, ``n_error``, ``n_skip``,
        ``average_crossing``, ``no_crossing`` and ``two_or_less_crossing`` (in percent),
        and the sums of the columns of counts.

    Examples
    --------
    >>> from lpcfg_sk.metrics import parseval_summary
    >>> trees = ["(S (NP (PRP I)) (VP (VBP am)))"]
    >>> parseval_summary(trees, trees)
             n_valid     f1  precision  recall  complete_match  tag_accuracy
    all            1  100.0      100.0   100.0           100.0         100.0
    len<=40        1  100.0      100.0   100.0           100.0         100.0
    """
    if predicted is None:
        frame = _check_frame(gold)
    else:
        frame = parseval(gold, predicted, params)
    totals = _both_totals(frame)
    rows = ["all", f"len<={frame.attrs['cutoff_len']}"]
    summary = pd.DataFrame([totals["all"], totals["cutoff"]], index=rows)
    return summary if detailed else summary[_SUMMARY_COLUMNS]


def parseval_report(frame):
    """Write a comparison in the layout of EVALB, byte for byte.

    Parameters
    ----------
    frame : DataFrame
        Result of :func:`parseval` or :func:`parseval_files`.

    Returns
    -------
    report : str
        What EVALB prints. Totals are those of the rows of `frame`. An F-measure of
        0/0 is ``-nan``, as on the machines where EVALB usually runs.

    Examples
    --------
    >>> from lpcfg_sk.metrics import parseval, parseval_report
    >>> trees = ["(S (NP (PRP I)) (VP (VBP am)))"]
    >>> print(parseval_report(parseval(trees, trees)))
      Sent.                        Matched  Bracket   Cross        Correct Tag
     ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
    ============================================================================
       1    2    0  100.00 100.00     3      3    3      0      2     2   100.00
    ============================================================================
                    100.00 100.00      3     3     3      0      2     2   100.00
    === Summary ===
    ...
    """
    frame = _check_frame(frame)
    rows = frame[_ROW_COLUMNS].itertuples(index=False, name=None)
    totals = _both_totals(frame)
    return "".join(
        [
            _HEAD,
            _RULE,
            *(_ROW % row for row in rows),
            _RULE,
            _total_line(totals["all"]),
            "=== Summary ===\n",
            "\n-- All --\n",
            _summary_block(totals["all"]),
            f"\n-- len<={frame.attrs['cutoff_len']} --\n",
            _summary_block(totals["cutoff"]),
        ]
    )


def _total_line(totals):
    line = _TOTAL_TAGS.format_map(totals)
    if totals["gold_brackets"] > 0 and totals["test_brackets"] > 0:
        line = _TOTAL_BRACKETS.format_map(totals) + line
    return line


def _summary_block(totals):
    lines = []
    for template, name in _SUMMARY_LINES:
        value = totals[name]
        if np.isnan(value):
            template, value = template.replace("%6.2f", "%6s"), "-nan"
        lines.append(template % value + "\n")
    return "".join(lines)
