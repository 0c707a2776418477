"""The command that parses sentences: parse."""

import io
import itertools
import json
import math
import re
import sys
import warnings

from sklearn.pipeline import Pipeline

from lpcfg_sk._cli._console import Progress, emit, note, say
from lpcfg_sk._cli._inputs import begins_tree, files_of_lines
from lpcfg_sk.ensemble import VotingParser
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.parsing import RowReport
from lpcfg_sk.persistence import load
from lpcfg_sk.treebank import read_treebank, tokenize

_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
#: Words of a sentence that takes seconds.
_LONG = 200


def parse(arguments):
    """Parse batch by batch, so that memory does not grow with the input."""
    parser = load_parser(arguments.model)
    _set_learners(parser, n_jobs=arguments.jobs)
    if arguments.max_memory is not None:
        _set_learners(parser, max_memory=arguments.max_memory)
    if arguments.scores and not isinstance(parser, Pipeline):
        raise ValueError("an ensemble votes, and has no log probability; omit --scores")
    if arguments.kbest and not isinstance(parser, Pipeline):
        raise ValueError("an ensemble has one best tree; omit --kbest")
    answers = _Answers(parser, arguments)
    live = sys.stdin.isatty() or sys.stdout.isatty()
    with Progress("sentences", shown=not live) as progress:
        for batch in _sentence_batches(arguments):
            answers.answer(batch)
            sys.stdout.flush()
            progress.step(len(batch))
    answers.finish()


def load_parser(path):
    """Load the parser of a file that train wrote."""
    parser = load(path)
    if not isinstance(parser, Pipeline | VotingParser):
        raise ValueError(
            f"{path} holds a {type(parser).__name__}; expected a parser with its "
            "preprocessing, as train and save(make_parser(...)) write it"
        )
    return parser


def _set_learners(parser, **settings):
    """Set parameters of the learner, or of all members of an ensemble."""
    members = [parser]
    if isinstance(parser, VotingParser):
        members = parser.estimators_
        if "n_jobs" in settings:
            parser.set_params(**settings)
    for member in members:
        member[-1].set_params(**settings)


def _sentence_batches(arguments):
    """Yield batches of (number of the line, tokens or what is wrong with the line)."""
    opened = files_of_lines(arguments.input or ["-"], arguments.batch)
    files = map(_with_kind, opened)
    number = 0
    for holds_trees, group in itertools.groupby(files, key=lambda file: file[0]):
        batches = itertools.chain.from_iterable(batches for _, batches in group)
        if holds_trees:
            batches = _sentences_of_trees(batches, arguments)
        else:
            batches = ([_tokens(line, arguments) for line in b] for b in batches)
        for batch in batches:
            yield list(enumerate(batch, start=number + 1))
            number += len(batch)


def _with_kind(batches):
    """Return whether a file begins with a tree, and all its batches."""
    first, head = [], b""
    for batch in batches:
        first.append(batch)
        head = next((line for line in batch if line.strip()), b"")
        if head:
            break
    is_tree = begins_tree(head.decode("utf-8", "replace"))
    return is_tree, itertools.chain(first, batches)


def _sentences_of_trees(batches, arguments):
    """Read trees from the lines, and return batches of their sentences."""
    lines = [line.rstrip(b"\n") for batch in batches for line in batch]
    together = io.BytesIO(b"\n".join(lines))
    together.name = ", ".join(arguments.input) or "-"
    treebank = read_treebank(together)
    say(f"the input holds trees: parsing the sentences of {len(treebank)} trees")
    rows = [
        list(zip(tree.words(), tree.tags(), strict=True))
        if arguments.tags
        else tree.words()
        for tree in treebank
    ]
    size = arguments.batch
    return (rows[begin : begin + size] for begin in range(0, len(rows), size))


def _tokens(line, arguments):
    """Tokens of a line, brackets as in treebanks; or the error of a bad line."""
    try:
        text = line.decode("utf-8-sig")
        if arguments.tokenize:
            tokens = tokenize(text.strip())
        else:
            tokens = text.translate(_ESCAPES).split()
    except UnicodeDecodeError as error:
        bytes_ = error.object[error.start : error.start + 8]
        return ValueError(f"sentences are read as utf-8, which {bytes_!r} is not")
    if not arguments.tags:
        return tokens
    pairs = []
    for token in tokens:
        word, slash, tag = token.rpartition("/")
        if not (word and slash and tag):
            return ValueError(f"expected word/TAG, got {token!r}")
        pairs.append((word, tag))
    return pairs


class _Answers:
    """Writes the answer to each line, and counts the lines that could not be parsed."""

    def __init__(self, parser, arguments):
        self.parser = parser
        self.arguments = arguments
        self.unread = []
        self.too_long = []
        self.report = RowReport(0, {})

    def answer(self, batch):
        """Answer each line; a line that fails does not affect the others."""
        limit = self.arguments.max_length or math.inf
        wanted = [
            (number, row)
            for number, row in batch
            if not isinstance(row, ValueError) and 0 < len(row) <= limit
        ]
        texts = dict(self._parse(wanted)) if wanted else {}
        for number, row in batch:
            if isinstance(row, ValueError):
                self.unread.append((number, row))
                row = []
            if not row:
                # An empty line stays an empty line: output lines follow input lines.
                emit("null" if self.arguments.json else "")
            elif number in texts:
                emit(texts[number])
            else:
                self.too_long.append(number)
                emit(self._flat(row))

    def finish(self):
        """Say how many lines could not be parsed."""
        self.report.warn("line")
        if self.too_long:
            say(
                f"warning: {len(self.too_long)} sentences, the first in line "
                f"{self.too_long[0]}, exceed --max-length and got flat trees"
            )
        if self.unread:
            number, error = self.unread[0]
            raise ValueError(
                f"{len(self.unread)} lines could not be read and got empty answers; "
                f"line {number}: {error}"
            )

    def _parse(self, rows):
        """Return pairs of the number of a line and the answer to it."""
        numbers, sentences = zip(*rows, strict=True)
        for number, sentence in rows:
            if len(sentence) > _LONG:
                note(f"line {number}: parsing {len(sentence)} words")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            texts, statuses = _texts(self.parser, list(sentences), self.arguments)
        self.report.n_rows += len(numbers)
        self.report.notes.update(
            (number, status)
            for number, status in zip(numbers, statuses, strict=False)
            if status != ("parsed", "")
        )
        first, last = numbers[0], numbers[-1]
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        for warning in caught:
            message = f"{where}: {_by_line(warning.message, numbers)}"
            warnings.warn(message, warning.category, stacklevel=2)
        return zip(numbers, texts, strict=True)

    def _flat(self, row):
        """Answer to a sentence that exceeds --max-length: a flat tree."""
        arguments = self.arguments
        if arguments.marginals or arguments.kbest:
            return "[]" if arguments.json else ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParseFailureWarning)
            alone = self.parser.predict([[token] for token in row])
        tags = [tree.tags()[0] for tree in alone]
        words = [token if isinstance(token, str) else token[0] for token in row]
        leaves = " ".join(f"({t} {w})" for t, w in zip(tags, words, strict=True))
        score = -math.inf if arguments.scores else None
        return _tree_text(f"({alone[0].label} {leaves})", score, arguments.json)


def _by_line(message, numbers):
    """Replace rows of the batch by lines of the input in a message."""
    lines = {f"row {row}": f"line {number}" for row, number in enumerate(numbers)}
    return re.sub(r"\brow \d+", lambda row: lines.get(row[0], row[0]), str(message))


def _texts(parser, sentences, arguments):
    """Answers to sentences as text, and the status and reason of each tree."""
    as_json = arguments.json
    if arguments.marginals:
        frames = parser.span_marginals(sentences)
        return [_marginal_text(frame, as_json) for frame in frames], ()
    if arguments.kbest:
        kbest = parser.parse_kbest(sentences, arguments.kbest)
        return [_kbest_text(parses, as_json) for parses in kbest], ()
    trees, report = parser.predict(sentences, return_status=True)
    scores = [None] * len(trees)
    if arguments.scores:
        scores = parser.score_samples(trees).tolist()
    pairs = zip(trees, scores, strict=True)
    texts = [_tree_text(str(tree), score, as_json) for tree, score in pairs]
    return texts, report.itertuples(index=False, name=None)


def _tree_text(tree, score, as_json):
    if as_json:
        answer = {"tree": tree}
        if score is not None:
            answer["log_prob"] = score if math.isfinite(score) else None
        return json.dumps(answer)
    return tree if score is None else f"{score:.6f}\t{tree}"


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
