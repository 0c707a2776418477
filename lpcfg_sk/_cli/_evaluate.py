"""The command that scores trees: evaluate."""

import json

from lpcfg_sk._cli._console import emit, emit_table
from lpcfg_sk.metrics import parseval_files, parseval_report, parseval_summary


def evaluate(arguments):
    """Print EVALB's report."""
    params = None if arguments.params == "none" else arguments.params
    frame = parseval_files(arguments.gold, arguments.predicted, params)
    if arguments.json:
        emit(json.dumps({k: frame.attrs[k] for k in ("all", "cutoff")}, default=float))
    elif arguments.summary:
        emit_table(parseval_summary(frame, detailed=True))
    else:
        emit(parseval_report(frame).rstrip("\n"))
