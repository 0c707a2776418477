"""Commands that read a saved parser and do not parse: inspect and minimize."""

import pandas as pd

from lpcfg_sk._cli._console import emit, emit_table, note
from lpcfg_sk._cli._parse import load_parser
from lpcfg_sk.automata import WTA, SVTAMinimizer
from lpcfg_sk.inspection import describe_state, state_table


def inspect(arguments):
    """Describe a model or one of its nonterminals."""
    parser = load_parser(arguments.model)
    grammar = as_lpcfg(parser[-1])
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
    if not grammar.arrays.is_signed:
        table = state_table(parser, top=arguments.top)
        if not arguments.json:
            # A nonterminal of a binary grammar has either words or rules.
            table["expansions"] = table.pop("words") + table.pop("rules")
        emit_table(table, as_json=arguments.json, index=False)
    else:
        states = pd.Series(grammar.m, name="states").rename_axis("nonterminal")
        emit_table(states.to_frame(), as_json=arguments.json)


def minimize(arguments):
    """Minimise the grammar of a model."""
    learner = load_parser(arguments.model)[-1]
    whole = WTA.from_pcfg(learner)
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


def as_lpcfg(learner):
    """Return the grammar of a fitted learner as an L-PCFG."""
    return learner.to_lpcfg() if hasattr(learner, "to_lpcfg") else learner.grammar_
