"""Score predicted trees against gold trees, in EVALB's layout.

Both files hold one tree a line; an empty line is a sentence without a parse.
"""

import json

from lpcfg_sk._cli._common import emit, emit_table


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("gold", help="gold trees")
    parser.add_argument("predicted", help="predicted trees")
    parser.add_argument(
        "--params", default="collins", help="'collins', 'none', or an EVALB .prm file"
    )
    parser.add_argument("--summary", action="store_true", help="write totals alone")
    parser.add_argument("--json", action="store_true", help="write totals as JSON")


def run(arguments):
    """Print EVALB's report."""
    from lpcfg_sk.metrics import parseval_files, parseval_report, parseval_summary

    params = None if arguments.params == "none" else arguments.params
    frame = parseval_files(arguments.gold, arguments.predicted, params)
    if arguments.json:
        emit(json.dumps({k: frame.attrs[k] for k in ("all", "cutoff")}, default=float))
    elif arguments.summary:
        emit_table(parseval_summary(frame))
    else:
        emit(parseval_report(frame).rstrip("\n"))
