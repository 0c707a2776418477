"""Commands that fit parsers: demo, compile, train and select."""

import gzip
import json
import os
import tempfile
import time
import warnings

from sklearn.model_selection import GridSearchCV

from lpcfg_sk._cli._arguments import PRESETS
from lpcfg_sk._cli._console import Progress, emit, emit_table, note, say, watched
from lpcfg_sk._cli._inputs import keep_inputs, read_trees
from lpcfg_sk._cli._models import as_lpcfg
from lpcfg_sk._kernels import kernel_folder
from lpcfg_sk._pipeline import make_parser
from lpcfg_sk.automata import WTA, SVTAMinimizer
from lpcfg_sk.cfg import MarginEMPCFG
from lpcfg_sk.datasets import load_penn_sample, load_toy
from lpcfg_sk.em import EMLPCFG, PCFG
from lpcfg_sk.ensemble import VotingParser, make_ensemble
from lpcfg_sk.inspection import compare, report, results_table
from lpcfg_sk.language_model import AggregateMarkovLM
from lpcfg_sk.persistence import load, save
from lpcfg_sk.pivot import PivotLPCFG
from lpcfg_sk.semi_supervised import SelfTrainingParser
from lpcfg_sk.spectral import SpectralLPCFG
from lpcfg_sk.treebank import (
    Treebank,
    concatenate,
    read_treebank,
    write_treebank,
)


def demo(arguments):
    """Compare the learners on the toy treebank, or on the sample of the Penn one."""
    if arguments.corpus == "penn":
        training = load_penn_sample("train")[: arguments.trees]
        test = load_penn_sample("dev")
    else:
        trees = load_toy(arguments.trees + arguments.trees // 5)
        training, test = trees[: arguments.trees], trees[arguments.trees :]
    if len(test) == 0:
        raise ValueError("--trees needs at least 5: a fifth as many are parsed")
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
    duration = f"about {4 + len(training) // 400} seconds"
    if arguments.corpus == "penn":
        duration = "a few minutes"
    say(
        f"five learners on {len(training)} trees: {duration}, and a minute more where "
        "kernels have to be compiled"
    )
    # A run on a few trees compiles the kernels, which the times below leave out.
    compare(parsers, training[:300], test=training[-10:])
    table = compare(parsers, training, test=test, verbose=1)
    if not arguments.json:
        emit(f"Trained on {len(training)} trees, tested on {len(test)}; for example")
        emit(f"  {' '.join(test[0].words())}")
        emit(f"  {test[0]}\n")
    emit_table(table, as_json=arguments.json)


def compile(arguments):
    """Run a few trees through all that the commands call, which compiles it."""
    begin = time.monotonic()
    trees = load_toy(60)
    fixed = {"max_iter": 2, "tol": None, "validation_fraction": None}
    learners = (
        PCFG(),
        MarginEMPCFG(max_iter=2),
        SpectralLPCFG(2),
        PivotLPCFG(2),
        EMLPCFG(2, init=PivotLPCFG(2), **fixed),
        EMLPCFG(2, max_iter=2),
    )
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # Two iterations do not converge.
        warnings.simplefilter("ignore")
        for learner in learners:
            parser = make_parser(learner, horizontal=1).fit(trees)
            say(f"{type(learner).__name__}, {time.monotonic() - begin:.0f} s")
            path = os.path.join(folder, "model")
            save(parser, path)
            _use(load(path), trees[:20], folder)
        members = [("one", make_parser()), ("two", make_parser(horizontal=1))]
        _use(VotingParser(members).fit(trees), trees[:20], folder)
        whole = WTA.from_pcfg(make_parser().fit(trees)[-1])
        whole.distance(SVTAMinimizer(whole, 2).fit(None).wta_)
        AggregateMarkovLM(2, max_iter=1).fit(trees.sentences())
    emit(f"the kernels are compiled and stored in {kernel_folder()}")


def _use(parser, trees, folder):
    """Parse and score in every way that a command does."""
    path = os.path.join(folder, "trees.mrg")
    trees.write(path)
    treebank = read_treebank(path)
    report(parser, treebank, os.path.join(folder, "page.html"))
    tagged = [list(zip(t.words(), t.tags(), strict=True)) for t in treebank]
    write_treebank(parser.predict(tagged), os.path.join(folder, "predicted.mrg"))
    if not hasattr(parser, "steps"):
        return
    learner, seen = parser[-1], parser[:-1].transform(treebank)
    learner.score_samples(seen)
    learner.parse_kbest(seen, 2)


def train(arguments):
    """Read, fit and save."""
    sources = *arguments.treebank, arguments.raw
    keep_inputs(arguments.output, *sources, format=arguments.format)
    if arguments.learner == "self-training" and arguments.raw is None:
        raise ValueError(
            "--learner self-training needs sentences without trees: add --raw FILE"
        )
    parser = _make_parser(arguments, arguments.m, verbose=watched())
    treebank = read_trees(arguments.treebank, arguments)
    note(f"read {len(treebank)} trees")
    parser = _fitted(parser, treebank, arguments)
    members = parser.estimators_ if hasattr(parser, "estimators_") else [parser]
    for member in members:
        member[-1].set_params(verbose=0)
    save(parser, arguments.output)
    grammars = [as_lpcfg(member[-1]) for member in members]
    if arguments.json:
        facts = {
            "model": arguments.output,
            "learner": arguments.learner,
            "trees": len(treebank),
            "nonterminals": max(len(grammar.nonterminals) for grammar in grammars),
            "words": max(len(grammar.words) for grammar in grammars),
            "parameters": sum(grammar.n_parameters for grammar in grammars),
        }
        emit(json.dumps(facts))
        return
    learnt = f"{len(members)} grammars" if len(members) > 1 else grammars[0]
    emit(
        f"{arguments.output}: {arguments.learner} from {len(treebank)} trees, {learnt}"
    )


def select(arguments):
    """Search the grid and print its table."""
    if arguments.learner in PRESETS:
        raise ValueError(
            f"the ensemble {arguments.learner!r} has numbers of states of its own; "
            "use another --learner"
        )
    if arguments.learner == "self-training":
        raise ValueError(
            "select knows no raw sentences; choose the number of states with "
            "--learner pivot+em"
        )
    if arguments.learner in ("pcfg", "margin"):
        raise ValueError(
            f"{arguments.learner!r} learns a plain PCFG, which has no latent states; "
            "use --learner em"
        )
    if arguments.cv < 2:
        raise ValueError("--cv needs at least 2 folds")
    treebank = read_trees(arguments.treebank, arguments)
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


def _fitted(parser, treebank, arguments):
    """Fit a parser to trees and, where there are any, to raw sentences."""
    if arguments.raw is not None:
        opened = gzip.open if arguments.raw.endswith(".gz") else open
        with opened(arguments.raw, "rt", encoding=arguments.encoding) as lines:
            sentences = Treebank([line.split() for line in lines if line.strip()])
        note(f"read {len(sentences)} sentences")
        treebank = concatenate([treebank, sentences])
        if not isinstance(parser, SelfTrainingParser):
            parser = SelfTrainingParser(parser, n_jobs=arguments.jobs)
        parser.set_params(
            unlabeled_weight=arguments.unlabeled_weight, verbose=int(watched())
        )
    parser.fit(treebank)
    # The model is the student, which every other command knows.
    return parser.student_ if isinstance(parser, SelfTrainingParser) else parser


def _make_parser(arguments, m, *, verbose=False):
    if arguments.learner in PRESETS:
        return make_ensemble(
            arguments.learner, n_jobs=arguments.jobs, random_state=arguments.seed
        )
    common = {"n_jobs": arguments.jobs, "verbose": int(verbose)}
    seeded = {**common, "random_state": arguments.seed}
    learner = {
        "pcfg": lambda: PCFG(**common),
        "em": lambda: EMLPCFG(m, **seeded),
        "spectral": lambda: SpectralLPCFG(m, **seeded),
        "margin": lambda: MarginEMPCFG(**seeded),
        "pivot": lambda: PivotLPCFG(m, **common),
        "pivot+em": lambda: EMLPCFG(m, init=PivotLPCFG(m, **common), **seeded),
        "self-training": lambda: EMLPCFG(m, init=PivotLPCFG(m, **common), **seeded),
    }[arguments.learner]()
    return make_parser(
        learner,
        direction=arguments.direction,
        horizontal=arguments.horizontal,
        memory_min_count=arguments.memory_min_count,
        vertical=arguments.vertical,
    )
