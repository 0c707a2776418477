"""Compress a grammar to fewer states by its singular value tree automaton."""

from lpcfg_sk._cli._common import emit, emit_table, output_file, positive


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("model", help="file that train wrote")
    parser.add_argument(
        "-o", "--output", type=output_file, help="file of the automaton"
    )
    parser.add_argument(
        "-n",
        "--states",
        type=positive,
        help="states to keep, default all",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments):
    """Minimise the grammar of a model."""
    import pandas as pd

    from lpcfg_sk import WTA, SVTAMinimizer
    from lpcfg_sk.persistence import load

    learner = load(arguments.model)[-1]
    whole = WTA.from_pcfg(learner.grammar_)
    minimizer = SVTAMinimizer(whole, arguments.states).fit(None)
    small = minimizer.wta_
    table = pd.DataFrame(
        {
            "states": [whole.n_states, small.n_states],
            "parameters": [whole.n_parameters, small.n_parameters],
            "l2_distance": [0.0, whole.distance(small)],
        },
        index=pd.Index(["grammar", "automaton"], name="model"),
    )
    emit_table(table, as_json=arguments.json)
    if arguments.output:
        small.save(arguments.output)
        if not arguments.json:
            emit(f"saved to {arguments.output}")
