"""Commands that look into a saved parser: inspect, report and minimize."""

import os

import pandas as pd
from sklearn.pipeline import Pipeline

from lpcfg_sk._cli._console import emit, emit_table, say
from lpcfg_sk._cli._inputs import keep_inputs, read_trees
from lpcfg_sk._cli._parse import load_parser
from lpcfg_sk.automata import WTA, SVTAMinimizer
from lpcfg_sk.inspection import describe_state, state_table
from lpcfg_sk.inspection import report as write_report


def inspect(arguments):
    """Describe a model or one of its nonterminals."""
    parser = _load_single(arguments.model)
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


def report(arguments):
    """Write the page of errors."""
    keep_inputs(arguments.output, arguments.model, *arguments.treebank)
    parser = load_parser(arguments.model)
    treebank = read_trees(arguments.treebank, arguments)
    title = f"Errors of {os.path.basename(arguments.model)}"
    write_report(parser, treebank, arguments.output, title=title)
    emit(f"{arguments.output}: {len(treebank)} sentences")


def minimize(arguments):
    """Minimise the grammar of a model."""
    keep_inputs(arguments.output, arguments.model)
    grammar = as_lpcfg(_load_single(arguments.model)[-1])
    # Before the automaton is made, which takes seconds if it is large.
    n_states, n_weights = int(grammar.arrays.n_states.sum()), len(grammar.arrays.binary)
    _check_work(n_states, n_weights, arguments)
    say(f"minimising an automaton of {n_states} states and {n_weights} weights")
    whole = WTA.from_pcfg(grammar)
    small = SVTAMinimizer(whole, arguments.states).fit(None).wta_
    say(f"kept {small.n_states} states; computing the distance")
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


def _load_single(path):
    """Load a parser that has one grammar."""
    parser = load_parser(path)
    if not isinstance(parser, Pipeline):
        raise ValueError(
            f"{path} holds an ensemble of {len(parser.estimators_)} grammars; train "
            "one of its learners alone"
        )
    return parser


def _check_work(n, n_weights, arguments):
    """Reject work that would take hours, or more memory than allowed."""
    if n > arguments.max_states:
        raise ValueError(
            f"the automaton of this grammar has {n} states and {n_weights} weights, "
            f"more than --max-states {arguments.max_states}; time grows with "
            "states times weights (500 states and 4,000 weights take seconds, 3,500 "
            "states and 12 million weights half an hour). Minimise a model with fewer "
            f"latent states, or go on with --max-states {n}"
        )
    kept = min(n, arguments.states or n)
    if 8 * kept**3 > arguments.max_memory:
        raise ValueError(
            f"{kept} states have {kept}^3 weights, {8 * kept**3 / 1e9:.2g} GB, more "
            f"than --max-memory {arguments.max_memory}; keep fewer with -n"
        )


def as_lpcfg(learner):
    """Return the grammar of a fitted learner as an L-PCFG."""
    return learner.to_lpcfg() if hasattr(learner, "to_lpcfg") else learner.grammar_
