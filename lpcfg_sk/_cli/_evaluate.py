"""Commands about trees alone: evaluate and convert."""

import json
import sys

from lpcfg_sk._cli._console import emit, emit_table
from lpcfg_sk._cli._inputs import read_trees, tree_lines
from lpcfg_sk._files import written_in_one_step
from lpcfg_sk.metrics import parseval_files, parseval_report, parseval_summary
from lpcfg_sk.treebank import write_treebank


def evaluate(arguments):
    """Print EVALB's report."""
    params = None if arguments.params == "none" else arguments.params
    if arguments.gold == arguments.predicted == "-":
        raise ValueError("only one of the two sides can come from stdin")
    sides = (tree_lines(side) for side in (arguments.gold, arguments.predicted))
    frame = parseval_files(*sides, params)
    if not frame["length"].any():
        raise ValueError(f"{arguments.gold} holds no trees")
    if arguments.json:
        emit(json.dumps({k: frame.attrs[k] for k in ("all", "cutoff")}, default=float))
    elif arguments.summary:
        emit_table(parseval_summary(frame))
    else:
        emit(parseval_report(frame).rstrip("\n"))


def convert(arguments):
    """Write trees in another format, or their sentences."""
    treebank = read_trees(
        arguments.treebank,
        arguments,
        keep_traces=arguments.keep_traces,
        keep_functions=arguments.keep_functions,
    )
    if arguments.output is None:
        _write(treebank, arguments.to, sys.stdout)
    elif arguments.to in ("ptb", "export"):
        # The file is passed by name, which decides whether it is compressed.
        write_treebank(treebank, arguments.output, format=arguments.to, escape=True)
    else:
        with written_in_one_step(arguments.output) as file:
            for line in _sentence_lines(treebank, arguments.to):
                file.write(line.encode())


def _write(treebank, format, file):
    if format in ("ptb", "export"):
        write_treebank(treebank, file, format=format, escape=True)
    else:
        file.writelines(_sentence_lines(treebank, format))


def _sentence_lines(treebank, format):
    for tree in treebank:
        tokens = tree.words()
        if format == "tagged":
            pairs = zip(tokens, tree.tags(), strict=True)
            tokens = (f"{word}/{tag}" for word, tag in pairs)
        yield f"{' '.join(tokens)}\n"
