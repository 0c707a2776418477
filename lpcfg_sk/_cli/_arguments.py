"""Arguments of all commands, declared without importing what the commands need.

The docstring of each ``_add_*`` function is the help text of its command.
"""

import argparse
import inspect
import os
import re

import lpcfg_sk

#: Ensembles that `make_ensemble` knows.
PRESETS = ("accurate", "fast", "best")


def make_argument_parser():
    """Make the parser of the command line.

    Returns
    -------
    parser : ArgumentParser
        Its result holds ``command``, the name of a function, and ``module``, where
        that function is, along with the arguments of the command.
    """
    parser = _ArgumentParser(
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


class _ArgumentParser(argparse.ArgumentParser):
    """Allows options between other arguments, and reports errors in one line."""

    _intermixed = False

    def parse_known_args(self, args=None, namespace=None):
        """Parse arguments, see argparse."""
        if self._intermixed or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        # In `parse MODEL --tokenize FILE`, argparse would reject FILE.
        self._intermixed = True
        try:
            namespace, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def error(self, message):
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the paragraphs of descriptions, and leaves out empty defaults."""

    def _get_help_string(self, action):
        if action.default is None or action.default is False or action.default == []:
            return action.help
        return super()._get_help_string(action)

    def _fill_text(self, text, width, indent):
        fill = super()._fill_text
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(fill(part, width, indent) for part in paragraphs)


def _add_demo(parser):
    """Train, parse and score on the toy treebank of the package, and show a table."""
    add = parser.add_argument
    add(
        "--corpus",
        choices=("toy", "penn"),
        default="toy",
        help='the toy treebank, or the Penn sample of nltk.download("treebank")',
    )
    add("--trees", type=_positive, default=2000, help="trees to train on")
    add("--json", action="store_true", help="write JSON")


def _add_compile(parser):
    """Compile all kernels in advance, for container images and clusters.

    numba stores them in its cache, whose folder NUMBA_CACHE_DIR can set.
    """


def _add_train(parser):
    """Learn a parser from a treebank and save it."""
    add = parser.add_argument
    _add_treebank(parser)
    add("-o", "--output", type=_output_file, required=True, help="file of the model")
    add("--json", action="store_true", help="write JSON")
    add("-m", type=_positive, default=16, help="latent states")
    add("--raw", metavar="FILE", help="sentences without trees, one per line, .gz too")
    weight = "weight of a raw sentence, parsed by the model of the trees"
    add("--unlabeled-weight", type=float, default=0.5, help=weight)
    _add_learner(parser)


def _add_parse(parser):
    """Parse sentences, one per line, as they come in.

    Tokens are separated by white space; with --tags a token is word/TAG, and with
    --tokenize raw text is split into tokens. Brackets in words are read as -LRB- and
    -RRB-, as in treebanks. Each line is answered by a line with its tree, an empty line
    by an empty line. From a file of trees the sentences are parsed. A sentence too long
    for --max-length or --max-memory gets a flat tree, and a line that cannot be read
    gets an empty answer; both are counted.

    With --kbest the answer is a line "score TAB tree" for each tree, with --marginals a
    line "label TAB start TAB end TAB posterior" for each bracket; an empty line ends
    each answer. Spans are 0-based and half-open: the bracket covers the tokens start to
    end - 1. With --json the answer is one line with a JSON value, null if it is empty.
    """
    add = parser.add_argument
    add("model", help="file that train wrote")
    sentences = "files, folders or patterns of sentences or trees; - for stdin"
    add("input", nargs="*", default=[], help=sentences)
    add_one = parser.add_mutually_exclusive_group().add_argument
    add_one("--kbest", type=_positive, help="number of trees per sentence")
    add_one("--marginals", action="store_true", help="write span posteriors, no trees")
    score = "write the log probability and a tab before each tree"
    add_one("--scores", action="store_true", help=score)
    add_tokens = parser.add_mutually_exclusive_group().add_argument
    add_tokens("--tags", action="store_true", help="tokens are word/TAG")
    text = "lines are raw text, which nltk splits into Penn tokens"
    add_tokens("--tokenize", action="store_true", help=text)
    length = "longest sentence that is parsed, in tokens"
    add("--max-length", type=_positive, help=length)
    memory = "most memory for the chart of a sentence, such as 500M (default: 2G)"
    add("--max-memory", type=_bytes, help=memory)
    add("--json", action="store_true", help="write one JSON value per line")
    add("--batch", type=_positive, default=100, help="sentences parsed together")
    _add_jobs(parser)


def _add_evaluate(parser):
    """Score predicted trees against gold trees, in EVALB's layout.

    Each side is a file, a folder or a pattern, compressed or not, or - for stdin. In
    files with one tree per line an empty line is a sentence without a parse; in others
    trees may span lines.
    """
    add = parser.add_argument
    add("gold", help="gold trees")
    add("predicted", help="predicted trees")
    settings = "'collins' (without the root), 'none', or an EVALB .prm file"
    add("--params", default="collins", help=settings)
    add("--summary", action="store_true", help="write totals alone")
    add("--json", action="store_true", help="write totals as JSON")


def _add_convert(parser):
    """Write trees in another format, one per line, or extract their sentences.

    Traces, function tags and indices are removed, as in training, unless options keep
    them.
    """
    add = parser.add_argument
    _add_treebank(parser)
    kinds = ("ptb", "export", "sentences", "tokens", "tagged")
    formats = "one tree per line, NEGRA's export format, words (two names), or word/TAG"
    add("--to", choices=kinds, default="ptb", help=formats)
    add("-o", "--output", type=_output_file, help="file to write (default: stdout)")
    add("--keep-traces", action="store_true", help="keep empty elements")
    add("--keep-functions", action="store_true", help="keep function tags")


def _add_select(parser):
    """Choose the number of latent states by cross-validation."""
    add = parser.add_argument
    _add_treebank(parser)
    numbers = "numbers to try, with commas and no blanks between them"
    add("-m", type=_positive_list, default="4,8,16", help=numbers)
    add("--cv", type=_positive, default=3, help="number of folds")
    add("--json", action="store_true", help="write JSON")
    _add_learner(parser)


def _add_minimize(parser):
    """Compress a grammar to fewer states by its singular value tree automaton.

    The automaton gives trees without labels the probabilities that the grammar gives
    them. It is dense, with n^3 weights for n states, whereas a grammar has weights for
    its rules only: the automaton is smaller only with few states (-n). Without -n all
    states that the probabilities need are kept. The file written by -o is for Python,
    where WTA.load reads it; parse and inspect cannot.
    """
    add = parser.add_argument
    add("model", help="file that train wrote")
    add("-o", "--output", type=_output_file, help="file of the automaton, for WTA.load")
    add("-n", "--states", type=_positive, help="states to keep (default: all)")
    most = "most states of the grammar's automaton, before minimisation"
    add("--max-states", type=_positive, default=1000, help=most)
    memory = "most memory for the weights that are kept"
    add("--max-memory", type=_bytes, default="2G", help=memory)
    add("--json", action="store_true", help="write JSON")


def _add_report(parser):
    """Write a page that shows the errors of a model on gold trees.

    One HTML file that needs no network: scores by length and by label, confused
    labels, and gold and predicted trees side by side, to sort and filter.
    """
    add = parser.add_argument
    add("model", help="file that train wrote")
    _add_treebank(parser)
    add("-o", "--output", type=_output_file, required=True, help="file of the page")


def _add_inspect(parser):
    """Show what a model has learnt: its sizes and the meaning of its latent states."""
    add = parser.add_argument
    add("model", help="file that train wrote")
    add("--label", help="nonterminal whose states to describe")
    add("--top", type=_positive, default=5, help="expansions per state")
    add("--json", action="store_true", help="write JSON")


def _add_lm(parser):
    """Train a Kneser-Ney language model on text, or score text with one.

    A line of text is a sentence of tokens with blanks between them. Models are in the
    ARPA format, which other toolkits read too; .gz is compressed.

    train reads the text once and needs memory for its distinct n-grams only. score
    writes the perplexities, with and without words that the model does not know, or
    with --tokens a line "token TAB log10 probability" for each token, and an empty line
    after each sentence.
    """
    commands = parser.add_subparsers(dest="lm_command", metavar="ACTION", required=True)
    train = commands.add_parser("train", help="train a model").add_argument
    train("text", help="text; - for stdin")
    arpa = "file of the model, ARPA format"
    train("-o", "--output", type=_output_file, required=True, help=arpa)
    train("--order", type=_positive, default=3, help="length of n-grams (default: 3)")
    train("--stream", action="store_true", help="run the sentences together")
    train("--min-count", type=int, default=1, help="least count of a known word")
    train("--vocabulary", help="file with the known words, one per line")
    train("--cutoffs", type=_numbers, help="least counts of 2-grams, 3-grams, ...")
    score = commands.add_parser("score", help="score text").add_argument
    score("model", help="file in the ARPA format")
    score("text", nargs="?", default="-", help="text; - for stdin")
    score("--tokens", action="store_true", help="write the tokens' log probabilities")
    score("--json", action="store_true", help="write JSON")


# Name of each command: module with the function of that name, and its arguments.
_COMMANDS = {
    "demo": ("_learn", _add_demo),
    "compile": ("_learn", _add_compile),
    "train": ("_learn", _add_train),
    "parse": ("_parse", _add_parse),
    "evaluate": ("_evaluate", _add_evaluate),
    "convert": ("_evaluate", _add_convert),
    "select": ("_learn", _add_select),
    "minimize": ("_models", _add_minimize),
    "inspect": ("_models", _add_inspect),
    "report": ("_models", _add_report),
    "lm": ("_lm", _add_lm),
}


def _add_treebank(parser):
    add = parser.add_argument
    sources = "files, folders or patterns of bracketed trees; - for stdin"
    add("treebank", nargs="+", help=sources)
    formats = ("ptb", "export")
    add("--format", choices=formats, default="ptb", help="format of the trees")
    add("--encoding", default="utf-8", help="encoding of the trees")
    skip = "leave malformed trees out instead of stopping"
    add("--skip-errors", action="store_true", help=skip)


def _add_learner(parser):
    add = parser.add_argument
    learners = ("pcfg", "em", "spectral", "pivot", "pivot+em", "margin")
    learners += ("self-training", *PRESETS)
    which = "which learner; self-training is pivot+em taught by itself on --raw, the "
    which += "last ones are ensembles with settings of their own"
    add("--learner", choices=learners, default="spectral", help=which)
    sides = ("right", "left", "head")
    direction = "direction of the binarisation"
    add("--direction", choices=sides, default="right", help=direction)
    add("--horizontal", type=int, default=1, help="siblings that a label remembers")
    rare = "a label that is rarer in training forgets its siblings; try 20"
    add("--memory-min-count", type=int, default=1, help=rare)
    add("--vertical", type=int, default=1, help="ancestors that a label remembers")
    _add_jobs(parser)
    add("--seed", type=int, default=0, help="random seed")


def _add_jobs(parser):
    add = parser.add_argument
    jobs = "number of threads, -1 for one per core (default: 1)"
    add("--jobs", type=_n_jobs, help=jobs)


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


def _numbers(text):
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers with commas between them"
        ) from None


def _bytes(text):
    units = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
    found = re.fullmatch(r"(\d+\.?\d*)([KMG]?)B?", text.upper())
    value = int(float(found[1]) * units[found[2]]) if found else 0
    if value < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of bytes; expected one such as 500000000 or 500M"
        )
    return value


def _n_jobs(text):
    value = _whole_number(text)
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of threads; expected one from 1 on, or -1 for one "
            "per core"
        )
    return value


def _output_file(text):
    """Path of a file in an existing folder, so that no results are lost at the end."""
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is a folder; expected the name of a file"
        )
    folder = os.path.dirname(text) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder!r}")
    # The file is first written to a temporary file in the same folder.
    for path in (text, folder):
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise argparse.ArgumentTypeError(f"{path!r} cannot be written to")
    return text
