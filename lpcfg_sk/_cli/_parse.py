"""Parse sentences, one a line, as they come in.

Tokens are separated by white space; with --tags a token is word/TAG.
"""

import contextlib
import itertools
import json
import sys

from lpcfg_sk._cli._common import emit, positive


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("model", help="file that train wrote")
    parser.add_argument("input", nargs="?", default="-", help="sentences; - for stdin")
    parser.add_argument("--kbest", type=positive, help="number of trees a sentence")
    parser.add_argument(
        "--marginals",
        action="store_true",
        help="write span posteriors, no trees",
    )
    parser.add_argument("--tags", action="store_true", help="tokens are word/TAG")
    parser.add_argument("--json", action="store_true", help="one JSON value a line")
    parser.add_argument(
        "--batch", type=positive, default=100, help="sentences parsed together"
    )
    parser.add_argument("--jobs", type=int, default=None, help="number of threads")


def run(arguments):
    """Parse batch by batch, so that memory does not grow with the input."""
    from lpcfg_sk.persistence import load

    parser = load(arguments.model)
    parser.set_params(**{f"{parser.steps[-1][0]}__n_jobs": arguments.jobs})
    with contextlib.ExitStack() as stack:
        lines = sys.stdin
        if arguments.input != "-":
            lines = stack.enter_context(open(arguments.input, encoding="utf-8"))
        numbered = ((n, line.split()) for n, line in enumerate(lines, start=1))
        # A person who types wants an answer to each line.
        size = 1 if lines.isatty() else arguments.batch
        while batch := list(itertools.islice(numbered, size)):
            _answer(parser, batch, arguments)
            sys.stdout.flush()


def _answer(parser, batch, arguments):
    filled = [(n, tokens) for n, tokens in batch if tokens]
    sentences = [_tagged(t, n) if arguments.tags else t for n, t in filled]
    results = iter(_parses(parser, sentences, arguments)) if sentences else iter(())
    for _, tokens in batch:
        # An empty line stays an empty line: output lines follow input lines.
        emit(next(results) if tokens else "")


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
    return "\n".join(
        f"{r.label}\t{r.start}\t{r.end}\t{r.marginal:.6g}" for r in rows.itertuples()
    )


def _kbest_text(parses, as_json):
    if as_json:
        return json.dumps([{"tree": str(t), "score": float(s)} for t, s in parses])
    return "\n".join(f"{score:.6f}\t{tree}" for tree, score in parses)
