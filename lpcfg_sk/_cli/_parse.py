"""Parse sentences, one a line, as they come in.

Tokens are separated by white space; with --tags a token is word/TAG. Brackets in words
are taken as -LRB- and -RRB-, as treebanks write them. The answer to a line is a line
with its tree, and an empty line for an empty one.

With --kbest it is a line "score TAB tree" for each tree, with --marginals a line "label
TAB start TAB end TAB posterior" for each bracket; an empty line ends each answer. Spans
are 0-based and half-open: the bracket is over the tokens start to end - 1. With --json
the answer is one line with a JSON value, null for an empty line.
"""

import contextlib
import itertools
import json
import re
import sys
import warnings

from lpcfg_sk._cli._common import (
    Progress,
    add_jobs_argument,
    emit,
    load_parser,
    positive,
)

_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("model", help="file that train wrote")
    parser.add_argument("input", nargs="?", default="-", help="sentences; - for stdin")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--kbest", type=positive, help="number of trees a sentence")
    answer.add_argument(
        "--marginals",
        action="store_true",
        help="write span posteriors, no trees",
    )
    parser.add_argument("--tags", action="store_true", help="tokens are word/TAG")
    parser.add_argument("--json", action="store_true", help="one JSON value a line")
    parser.add_argument(
        "--batch", type=positive, default=100, help="sentences parsed together"
    )
    add_jobs_argument(parser)


def run(arguments):
    """Parse batch by batch, so that memory does not grow with the input."""
    from lpcfg_sk.exceptions import ChartMemoryError

    parser = load_parser(arguments.model)
    parser.set_params(**{f"{parser.steps[-1][0]}__n_jobs": arguments.jobs})
    with contextlib.ExitStack() as stack:
        lines = sys.stdin
        if arguments.input != "-":
            lines = stack.enter_context(open(arguments.input, encoding="utf-8"))
        numbered = enumerate(_tokens(lines), start=1)
        # A person who types wants an answer to each line.
        size = 1 if lines.isatty() else arguments.batch
        shown = not (lines.isatty() or sys.stdout.isatty())
        progress = stack.enter_context(Progress("sentences", shown=shown))
        while batch := list(itertools.islice(numbered, size)):
            try:
                with warnings.catch_warnings(record=True) as caught:
                    _answer(parser, batch, arguments)
            except ChartMemoryError as error:
                raise MemoryError(_by_line(error, batch)) from error
            first, last = batch[0][0], batch[-1][0]
            where = f"line {first}" if first == last else f"lines {first} to {last}"
            for warning in caught:
                message = f"{where}: {_by_line(warning.message, batch)}"
                warnings.warn(message, warning.category, stacklevel=2)
            sys.stdout.flush()
            progress.step(len(batch))


def _tokens(lines):
    """Tokens of each line, brackets as in treebanks."""
    try:
        for line in lines:
            yield line.translate(_ESCAPES).split()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{lines.name}: sentences are read as {lines.encoding}, which these bytes "
            f"are not: {error.object[error.start : error.start + 8]!r}"
        ) from error


def _by_line(message, batch):
    """A message that names lines of the input for rows of the batch."""
    lines = {
        f"row {row}": f"line {number}"
        for row, (number, _) in enumerate(filled for filled in batch if filled[1])
    }
    return re.sub(r"\brow \d+", lambda row: lines.get(row[0], row[0]), str(message))


def _answer(parser, batch, arguments):
    filled = [(n, tokens) for n, tokens in batch if tokens]
    sentences = [_tagged(t, n) if arguments.tags else t for n, t in filled]
    results = iter(_parses(parser, sentences, arguments)) if sentences else iter(())
    for _, tokens in batch:
        # An empty line stays an empty line: output lines follow input lines.
        emit(next(results) if tokens else "null" if arguments.json else "")


def _tagged(tokens, number):
    pairs = []
    for token in tokens:
        word, slash, tag = token.rpartition("/")
        if not (word and slash and tag):
            raise ValueError(f"line {number}: expected word/TAG, got {token!r}")
        pairs.append((word, tag))
    return pairs


def _parses(parser, sentences, arguments):
    if not (arguments.kbest or arguments.marginals):
        trees = map(str, parser.predict(sentences))
        return (json.dumps({"tree": t}) if arguments.json else t for t in trees)
    seen, learner = parser[:-1].transform(sentences), parser[-1]
    if arguments.marginals:
        frames = learner.span_marginals(seen)
        return (_marginal_text(frame, arguments.json) for frame in frames)
    kbest = learner.parse_kbest(seen, arguments.kbest)
    return (_kbest_text(parses, arguments.json) for parses in kbest)


def _marginal_text(frame, as_json):
    rows = frame.sort_values(["start", "end", "label"], kind="stable")
    if as_json:
        return rows.to_json(orient="records")
    return "".join(
        f"{r.label}\t{r.start}\t{r.end}\t{r.marginal:.6g}\n" for r in rows.itertuples()
    )


def _kbest_text(parses, as_json):
    if as_json:
        return json.dumps([{"tree": str(t), "score": float(s)} for t, s in parses])
    return "".join(f"{score:.6f}\t{tree}\n" for tree, score in parses)
