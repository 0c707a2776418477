"""Learn a parser from a treebank and save it."""

import json

from lpcfg_sk._cli._common import (
    add_learner_arguments,
    add_treebank_arguments,
    emit,
    learner_of,
    note,
    output_file,
    positive,
    trees_of,
    watched,
)


def add_arguments(parser):
    """Declare the arguments of the command."""
    add_treebank_arguments(parser)
    parser.add_argument(
        "-o", "--output", type=output_file, required=True, help="file of the model"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("-m", type=positive, default=16, help="latent states")
    add_learner_arguments(parser)


def run(arguments):
    """Read, fit and save."""
    from lpcfg_sk.persistence import save

    treebank = trees_of(arguments, arguments.treebank)
    note(f"read {len(treebank)} trees")
    parser = learner_of(arguments, arguments.m, verbose=watched())
    parser.fit(treebank).set_params(learner__verbose=0)
    save(parser, arguments.output)
    grammar = parser[-1].grammar_
    facts = {
        "model": arguments.output,
        "learner": arguments.learner,
        "trees": len(treebank),
        "nonterminals": len(grammar.nonterminals),
        "words": len(grammar.words),
        "parameters": grammar.n_parameters,
    }
    if arguments.json:
        emit(json.dumps(facts))
        return
    emit(
        f"{arguments.output}: {arguments.learner} from {len(treebank)} trees, {grammar}"
    )
