"""Arguments of all commands, declared without importing what the commands need.

The docstring of each ``_add_*`` function is the help text of its command.
"""

import argparse
import inspect
import os

import lpcfg_sk

__all__ = ["make_argument_parser"]

_LEARNERS = ("pcfg", "em", "spectral", "pivot", "pivot+em")


def make_argument_parser():
    """Make the parser of the command line.

    Returns
    -------
    parser : ArgumentParser
        Its result holds ``command``, the name of a function, and ``module``, where
        that function is, beside the arguments of the command.
    """
    parser = argparse.ArgumentParser(
        prog="lpcfg-sk",
        description="Learn grammars with latent states from treebanks, and parse.",
    )
    parser.add_argument(
        "--version", action="version", version=f"lpcfg_sk {lpcfg_sk.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, add_arguments) in _COMMANDS.items():
        description = inspect.getdoc(add_arguments)
        command = commands.add_parser(
            name,
            help=description.splitlines()[0],
            description=description,
            formatter_class=_Formatter,
        )
        add_arguments(command)
        command.set_defaults(module=f"lpcfg_sk._cli.{module}")
    return parser


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the paragraphs of descriptions, and leaves out defaults None and False."""

    def _get_help_string(self, action):
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)

    def _fill_text(self, text, width, indent):
        fill = super()._fill_text
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(fill(part, width, indent) for part in paragraphs)


def _add_demo(parser):
    """Train, parse and score on the toy treebank of the package, and show a table."""
    parser.add_argument(
        "--trees", type=_positive, default=2000, help="trees to train on"
    )
    _add_json(parser)


def _add_train(parser):
    """Learn a parser from a treebank and save it."""
    _add_treebank(parser)
    parser.add_argument(
        "-o", "--output", type=_output_file, required=True, help="file of the model"
    )
    _add_json(parser)
    parser.add_argument("-m", type=_positive, default=16, help="latent states")
    _add_learner(parser)


def _add_parse(parser):
    """Parse sentences, one per line, as they come in.

    Tokens are separated by white space; with --tags a token is word/TAG. Brackets in
    words are taken as -LRB- and -RRB-, as treebanks write them. The answer to a line is
    a line with its tree, and an empty line for an empty one.

    With --kbest it is a line "score TAB tree" for each tree, with --marginals a line
    "label TAB start TAB end TAB posterior" for each bracket; an empty line ends each
    answer. Spans are 0-based and half-open: the bracket is over the tokens start to end
    - 1. With --json the answer is one line with a JSON value, null for an empty line.
    """
    _add_model(parser)
    parser.add_argument("input", nargs="?", default="-", help="sentences; - for stdin")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--kbest", type=_positive, help="number of trees per sentence")
    answer.add_argument(
        "--marginals", action="store_true", help="write span posteriors, no trees"
    )
    parser.add_argument("--tags", action="store_true", help="tokens are word/TAG")
    _add_json(parser, "write one JSON value per line")
    parser.add_argument(
        "--batch", type=_positive, default=100, help="sentences parsed together"
    )
    _add_jobs(parser)


def _add_evaluate(parser):
    """Score predicted trees against gold trees, in EVALB's layout.

    Both files hold one tree per line; an empty line is a sentence without a parse.
    """
    parser.add_argument("gold", help="gold trees")
    parser.add_argument("predicted", help="predicted trees")
    parser.add_argument(
        "--params", default="collins", help="'collins', 'none', or an EVALB .prm file"
    )
    parser.add_argument("--summary", action="store_true", help="write totals alone")
    _add_json(parser, "write totals as JSON")


def _add_select(parser):
    """Choose the number of latent states by cross-validation."""
    _add_treebank(parser)
    parser.add_argument(
        "-m",
        type=_positive_list,
        default="4,8,16",
        help="numbers to try, with commas and no blanks between them",
    )
    parser.add_argument("--cv", type=_positive, default=3, help="number of folds")
    _add_json(parser)
    _add_learner(parser)


def _add_minimize(parser):
    """Compress a grammar to fewer states by its singular value tree automaton.

    The automaton gives trees without labels the probabilities that the grammar gives
    them. It is dense, with n^3 weights for n states, whereas a grammar has weights for
    its rules only: the automaton is smaller only with few states (-n). Without -n all
    states are kept that the probabilities need. The file of -o is for Python, where
    WTA.load reads it; parse and inspect do not.
    """
    _add_model(parser)
    parser.add_argument(
        "-o", "--output", type=_output_file, help="file of the automaton, for WTA.load"
    )
    parser.add_argument(
        "-n", "--states", type=_positive, help="states to keep (default: all)"
    )
    _add_json(parser)


def _add_inspect(parser):
    """Show what a model has learnt: its sizes and the meaning of its latent states."""
    _add_model(parser)
    parser.add_argument("--label", help="nonterminal whose states to describe")
    parser.add_argument("--top", type=_positive, default=5, help="expansions per state")
    _add_json(parser)


# Name of each command: module with the function of that name, and its arguments.
_COMMANDS = {
    "demo": ("_learn", _add_demo),
    "train": ("_learn", _add_train),
    "parse": ("_parse", _add_parse),
    "evaluate": ("_evaluate", _add_evaluate),
    "select": ("_learn", _add_select),
    "minimize": ("_models", _add_minimize),
    "inspect": ("_models", _add_inspect),
}


def _add_model(parser):
    parser.add_argument("model", help="file that train wrote")


def _add_json(parser, help="write JSON"):
    parser.add_argument("--json", action="store_true", help=help)


def _add_treebank(parser):
    parser.add_argument(
        "treebank", nargs="+", help="files, folders or patterns of bracketed trees"
    )
    parser.add_argument(
        "--format", choices=("ptb", "export"), default="ptb", help="format of the trees"
    )
    parser.add_argument("--encoding", default="utf-8", help="encoding of the trees")
    parser.add_argument(
        "--skip-errors",
        action="store_true",
        help="leave malformed trees out instead of stopping",
    )


def _add_learner(parser):
    parser.add_argument(
        "--learner", choices=_LEARNERS, default="spectral", help="which learner"
    )
    parser.add_argument(
        "--direction",
        choices=("right", "left", "head"),
        default="right",
        help="direction of the binarisation",
    )
    parser.add_argument(
        "--horizontal", type=int, default=1, help="siblings that a label remembers"
    )
    parser.add_argument(
        "--vertical", type=int, default=1, help="ancestors that a label remembers"
    )
    _add_jobs(parser)
    parser.add_argument("--seed", type=int, default=0, help="random seed")


def _add_jobs(parser):
    parser.add_argument(
        "--jobs",
        type=_n_jobs,
        help="number of threads, -1 for one per core (default: 1)",
    )


def _whole_number(text):
    try:
        return int(text)
    except ValueError:
        return 0


def _positive(text):
    value = _whole_number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def _positive_list(text):
    return [_positive(part) for part in text.split(",")]


def _n_jobs(text):
    value = _whole_number(text)
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of threads; expected one from 1 on, or -1 for one "
            "per core"
        )
    return value


def _output_file(text):
    """Path of a file in a folder that exists, so that no long work is lost."""
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is a folder; expected the name of a file"
        )
    folder = os.path.dirname(text) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder!r}")
    return text
