"""The command that parses sentences: parse."""

import contextlib
import itertools
import json
import re
import sys
import warnings

from sklearn.pipeline import Pipeline

from lpcfg_sk._cli._console import Progress, emit
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.persistence import load

_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def parse(arguments):
    """Parse batch by batch, so that memory does not grow with the input."""
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


def load_parser(path):
    """Load the pipeline of a file that train wrote."""
    parser = load(path)
    if not isinstance(parser, Pipeline):
        raise ValueError(
            f"{path} holds a {type(parser).__name__}; expected a parser with its "
            "preprocessing, as train and save(make_parser(...)) write it"
        )
    return parser


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
    """Replace rows of the batch by lines of the input in a message."""
    lines = {
        f"row {row}": f"line {number}"
        for row, (number, _) in enumerate(line for line in batch if line[1])
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
