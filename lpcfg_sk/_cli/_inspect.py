"""Show what a model has learnt: its sizes and the meaning of its latent states."""

from lpcfg_sk._cli._common import emit, emit_table, load_parser, positive


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument("model", help="file that train wrote")
    parser.add_argument("--label", help="nonterminal whose states to describe")
    parser.add_argument("--top", type=positive, default=5, help="expansions a state")
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments):
    """Describe a model or one of its nonterminals."""
    import pandas as pd

    from lpcfg_sk.inspection import describe_state, state_table

    parser = load_parser(arguments.model)
    grammar = parser[-1].grammar_
    label = arguments.label
    if label is not None:
        states = [
            describe_state(grammar, label, h, top=arguments.top).assign(state=h)
            for h in range(grammar.m.get(label, 1))
        ]
        table = pd.concat(states, ignore_index=True)
        table.insert(0, "state", table.pop("state"))
        emit_table(table, as_json=arguments.json, index=False)
        return
    if not arguments.json:
        emit(f"{grammar}, {grammar.n_parameters} parameters")
        emit(f"steps: {', '.join(name for name, _ in parser.steps)}")
    if min(grammar.arrays.binary.min(initial=0), grammar.arrays.lexical.min()) >= 0:
        table = state_table(parser, top=arguments.top)
        if not arguments.json:
            # A nonterminal of a binary grammar has either words or rules.
            table["expansions"] = table.pop("words") + table.pop("rules")
        emit_table(table, as_json=arguments.json, index=False)
    else:
        states = pd.Series(grammar.m, name="states").rename_axis("nonterminal")
        emit_table(states.to_frame(), as_json=arguments.json)
