"""Train, parse and score on the toy treebank of the package, and show a table."""

from lpcfg_sk._cli._common import emit, emit_table, note, positive, watched


def add_arguments(parser):
    """Declare the arguments of the command."""
    parser.add_argument(
        "--trees", type=positive, default=2000, help="trees to train on"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments):
    """Compare the learners on the toy treebank."""
    from lpcfg_sk import EMLPCFG, PCFG, PivotLPCFG, SpectralLPCFG, make_parser
    from lpcfg_sk.datasets import load_toy
    from lpcfg_sk.inspection import compare

    trees = load_toy(arguments.trees + arguments.trees // 5)
    train, test = trees[: arguments.trees], trees[arguments.trees :]
    # Ten times as fast as choosing the number of iterations on held-out trees.
    fixed = {"max_iter": 30, "tol": None, "validation_fraction": None}
    em = {"random_state": 0, **fixed}
    learners = {
        "PCFG": PCFG(),
        "EM, m=8": EMLPCFG(8, **em),
        "Spectral, m=8": SpectralLPCFG(8, random_state=0),
        "Pivot, m=8": PivotLPCFG(8),
        "Pivot + EM, m=8": EMLPCFG(8, init=PivotLPCFG(8), **em),
    }
    parsers = {name: make_parser(learner) for name, learner in learners.items()}
    note("The first run compiles the kernels, which takes about a minute.")
    # A first look at a few trees compiles, so that the times below are those of work.
    compare(parsers, train[:300], test=train[-10:])
    table = compare(parsers, train, test=test, verbose=watched())
    if not arguments.json:
        emit(f"Trained on {len(train)} trees, tested on {len(test)}; for example")
        emit(f"  {' '.join(test[0].words())}")
        emit(f"  {test[0]}\n")
    emit_table(table, as_json=arguments.json)
