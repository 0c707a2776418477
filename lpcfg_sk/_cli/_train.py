"""Learn a parser from a treebank and save it."""

from lpcfg_sk._cli._common import (
    add_learner_arguments,
    add_treebank_arguments,
    emit,
    learner_of,
    note,
    positive,
    trees_of,
)


def add_arguments(parser):
    """Declare the arguments of the command."""
    add_treebank_arguments(parser)
    parser.add_argument("-o", "--output", required=True, help="file of the model")
    parser.add_argument("-m", type=positive, default=16, help="latent states")
    add_learner_arguments(parser)


def run(arguments):
    """Read, fit and save."""
    from lpcfg_sk.persistence import save

    treebank = trees_of(arguments, arguments.treebank)
    note(f"read {len(treebank)} trees")
    parser = learner_of(arguments, arguments.m).fit(treebank)
    save(parser, arguments.output)
    grammar = parser[-1].grammar_
    emit(
        f"{arguments.output}: {arguments.learner} from {len(treebank)} trees, {grammar}"
    )
