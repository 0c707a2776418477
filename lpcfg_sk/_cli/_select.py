"""Choose the number of latent states by cross-validation."""

from lpcfg_sk._cli._common import (
    Progress,
    add_learner_arguments,
    add_treebank_arguments,
    emit_table,
    learner_of,
    positive,
    positive_list,
    trees_of,
)


def add_arguments(parser):
    """Declare the arguments of the command."""
    add_treebank_arguments(parser)
    parser.add_argument(
        "-m",
        type=positive_list,
        default="4,8,16",
        help="numbers to try, with commas and no blanks between them",
    )
    parser.add_argument("--cv", type=positive, default=3, help="number of folds")
    parser.add_argument("--json", action="store_true", help="write JSON")
    add_learner_arguments(parser)


def run(arguments):
    """Search the grid and print its table."""
    from sklearn.model_selection import GridSearchCV

    from lpcfg_sk.inspection import results_table

    if arguments.learner == "pcfg":
        raise ValueError("a plain PCFG has no latent states; use --learner em")
    if arguments.cv < 2:
        raise ValueError("--cv needs at least 2 folds")
    treebank = trees_of(arguments, arguments.treebank)
    with Progress("fits", len(arguments.m) * arguments.cv) as progress:

        def f1(estimator, X, y=None):
            score = estimator.score(X)
            progress.step()
            return score

        search = GridSearchCV(
            learner_of(arguments, arguments.m[0]),
            {"learner__m": arguments.m},
            cv=arguments.cv,
            scoring=f1,
            refit=False,
            # Arguments that no fit takes are one error, not one a fit.
            error_score="raise",
        ).fit(treebank)
    emit_table(results_table(search), as_json=arguments.json, index=False)
