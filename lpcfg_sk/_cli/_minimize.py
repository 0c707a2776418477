"""Compress a grammar to fewer states by its singular value tree automaton.

The automaton gives trees without labels the probabilities that the grammar gives them.
It is dense, with n^3 weights for n states, where a grammar has weights of its rules
alone: only few states (-n) make it smaller. Without -n all states are kept that the
probabilities need. The file of -o is for Python, where WTA.load reads it; parse and
inspect do not.
"""

from lpcfg_sk._cli._common import (
    emit,
    emit_table,
    load_parser,
    note,
    output_file,
    positive,
)


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("model", help="file that train wrote")
    parser.add_argument(
        "-o", "--output", type=output_file, help="file of the automaton, for WTA.load"
    )
    parser.add_argument(
        "-n", "--states", type=positive, help="states to keep (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments):
    """Minimise the grammar of a model."""
    import pandas as pd

    from lpcfg_sk import WTA, SVTAMinimizer

    learner = load_parser(arguments.model)[-1]
    whole = WTA.from_pcfg(learner.grammar_)
    note(f"minimising an automaton of {whole.n_states} states")
    small = SVTAMinimizer(whole, arguments.states).fit(None).wta_
    note(f"kept {small.n_states} states; computing the distance")
    table = pd.DataFrame(
        {
            "states": [whole.n_states, small.n_states],
            "weights": [whole.n_parameters, small.n_parameters],
            "l2_distance": [0.0, whole.distance(small)],
        },
        index=pd.Index(["grammar", "automaton"], name="model"),
    )
    emit_table(table, as_json=arguments.json)
    if arguments.output:
        small.save(arguments.output)
        if not arguments.json:
            emit(f"saved to {arguments.output}")
