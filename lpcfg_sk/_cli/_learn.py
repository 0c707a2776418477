"""Commands that fit parsers: demo, train and select."""

import glob
import gzip
import json
import os

from sklearn.model_selection import GridSearchCV

from lpcfg_sk._cli._console import Progress, emit, emit_table, note, watched
from lpcfg_sk._cli._models import as_lpcfg
from lpcfg_sk._pipeline import make_parser
from lpcfg_sk.cfg import MarginEMPCFG
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.em import EMLPCFG, PCFG
from lpcfg_sk.inspection import compare, results_table
from lpcfg_sk.persistence import save
from lpcfg_sk.pivot import PivotLPCFG
from lpcfg_sk.semi_supervised import SelfTrainingParser
from lpcfg_sk.spectral import SpectralLPCFG
from lpcfg_sk.treebank import Treebank, concatenate, read_treebank


def demo(arguments):
    """Compare the learners on the toy treebank."""
    trees = load_toy(arguments.trees + arguments.trees // 5)
    training, test = trees[: arguments.trees], trees[arguments.trees :]
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
    # A run on a few trees compiles the kernels, so that the times below are of work.
    compare(parsers, training[:300], test=training[-10:])
    table = compare(parsers, training, test=test, verbose=watched())
    if not arguments.json:
        emit(f"Trained on {len(training)} trees, tested on {len(test)}; for example")
        emit(f"  {' '.join(test[0].words())}")
        emit(f"  {test[0]}\n")
    emit_table(table, as_json=arguments.json)


def train(arguments):
    """Read, fit and save."""
    _check_output(arguments)
    treebank = _read_trees(arguments)
    note(f"read {len(treebank)} trees")
    parser = _make_parser(arguments, arguments.m, verbose=watched())
    if arguments.raw is not None:
        parser = _self_trained(parser, treebank, arguments)
    else:
        parser.fit(treebank)
    parser.set_params(learner__verbose=0)
    save(parser, arguments.output)
    grammar = as_lpcfg(parser[-1])
    if arguments.json:
        facts = {
            "model": arguments.output,
            "learner": arguments.learner,
            "trees": len(treebank),
            "nonterminals": len(grammar.nonterminals),
            "words": len(grammar.words),
            "parameters": grammar.n_parameters,
        }
        emit(json.dumps(facts))
        return
    emit(
        f"{arguments.output}: {arguments.learner} from {len(treebank)} trees, {grammar}"
    )


def select(arguments):
    """Search the grid and print its table."""
    if arguments.learner in ("pcfg", "margin"):
        raise ValueError(
            f"{arguments.learner!r} learns a plain PCFG, which has no latent states; "
            "use --learner em"
        )
    if arguments.cv < 2:
        raise ValueError("--cv needs at least 2 folds")
    treebank = _read_trees(arguments)
    with Progress("fits", len(arguments.m) * arguments.cv) as progress:

        def f1(estimator, X, y=None):
            score = estimator.score(X)
            progress.step()
            return score

        search = GridSearchCV(
            _make_parser(arguments, arguments.m[0]),
            {"learner__m": arguments.m},
            cv=arguments.cv,
            scoring=f1,
            refit=False,
            # Arguments that every fit refuses are one error, not one per fit.
            error_score="raise",
        ).fit(treebank)
    emit_table(results_table(search), as_json=arguments.json, index=False)


def _read_trees(arguments):
    treebank = read_treebank(
        arguments.treebank,
        format=arguments.format,
        encoding=arguments.encoding,
        on_error="skip" if arguments.skip_errors else "raise",
    )
    if len(treebank) == 0:
        raise ValueError(
            f"{', '.join(arguments.treebank)}: no trees in the format "
            f"{arguments.format!r}"
        )
    return treebank


def _self_trained(parser, treebank, arguments):
    """Fit a parser to trees, and again to them and its own trees of raw sentences."""
    opened = gzip.open if arguments.raw.endswith(".gz") else open
    with opened(arguments.raw, "rt", encoding=arguments.encoding) as lines:
        sentences = Treebank([line.split() for line in lines if line.strip()])
    note(f"read {len(sentences)} sentences")
    both = SelfTrainingParser(
        parser,
        unlabeled_weight=arguments.unlabeled_weight,
        n_jobs=arguments.jobs,
        verbose=int(watched()),
    )
    # The model is the student, which every other command knows.
    return both.fit(concatenate([treebank, sentences])).student_


def _check_output(arguments):
    """Refuse to write a model over the trees that it is learnt from."""
    output = arguments.output
    if not os.path.isfile(output):
        return
    for pattern in arguments.treebank:
        for path in (pattern, *glob.glob(pattern, recursive=True)):
            folder = os.path.join(os.path.realpath(path), "")
            if os.path.realpath(output).startswith(folder) or (
                os.path.exists(path) and os.path.samefile(path, output)
            ):
                raise ValueError(
                    f"{output} belongs to the treebank; the model needs another file"
                )


def _make_parser(arguments, m, *, verbose=False):
    common = {"n_jobs": arguments.jobs, "verbose": int(verbose)}
    seeded = {**common, "random_state": arguments.seed}
    learner = {
        "pcfg": lambda: PCFG(**common),
        "em": lambda: EMLPCFG(m, **seeded),
        "spectral": lambda: SpectralLPCFG(m, **seeded),
        "margin": lambda: MarginEMPCFG(**seeded),
        "pivot": lambda: PivotLPCFG(m, **common),
        "pivot+em": lambda: EMLPCFG(m, init=PivotLPCFG(m, **common), **seeded),
    }[arguments.learner]()
    return make_parser(
        learner,
        direction=arguments.direction,
        horizontal=arguments.horizontal,
        vertical=arguments.vertical,
    )
