"""One object of every kind of file, large enough for each array to be used, and uses.

Beside the small models of ``tests.persistence.models`` there are parsers of trees with
chains of unary rules and rare words, grammars with cycles, votes, automata of all three
kinds of tensors, and treebanks with blocks of features.
"""

import os
import tempfile
import warnings

import numpy as np
import pandas as pd
import scipy.sparse

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    LPCFG,
    PCFG,
    WTA,
    AggregateMarkovLM,
    InsideFeatures,
    KneserNeyLM,
    MarginEMPCFG,
    OutsideFeatures,
    PivotLPCFG,
    RareWords,
    SelfTrainingParser,
    ShardedTreebank,
    SpectralLPCFG,
    SVTAMinimizer,
    Tree,
    Treebank,
    TreeBinarizer,
    VotingParser,
    make_parser,
    save,
)
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.language_model import InterpolatedLM, read_arpa, write_arpa
from lpcfg_sk.metrics import parseval
from lpcfg_sk.treebank import concatenate
from tests.persistence import models

TOY = load_toy(60)
TRAIN = TOY[:50]
SENTENCES = [s for s in TOY[50:].sentences() if len(s) <= 9][:3]
SHORT = Treebank([t for t in TOY if len(t.words()) <= 9][:3])
UNKNOWN = [["zebra", *SENTENCES[0][1:]]]
CYCLE = CFG.from_string(
    "S -> A B | A | 'x' B 'y' | S S\nA -> B | C | 'x'\nB -> A | 'y' A\nC -> 'x' 'y'",
    unary_cycles="allow",
)
CHAINS = CFG.from_string("S -> A B C | A\nA -> B | 'x'\nB -> C | 'y' A\nC -> 'z'")


def _em():
    return EMLPCFG(2, max_iter=2, tol=None, validation_fraction=None, random_state=0)


def _sparse_wta():
    i, j, k = np.array([[0, 1, 2, 0], [1, 2, 1, 2], [2, 0, 1, 1]])
    weight = np.array([0.2, 0.1, 0.3, 0.1])
    return WTA([1.0, 0.0, 0.5], (i, j, k, weight), _OMEGA, unknown_word="b")


_OMEGA = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.1, 0.0]}
_CP = tuple(np.full((3, 2), 0.2) + np.eye(3, 2) * x for x in (0.1, 0.2, 0.3))
_DENSE = np.linspace(0.0, 0.1, 27).reshape(3, 3, 3)


def _of_arpa():
    with tempfile.TemporaryDirectory() as folder:
        write_arpa(models.make("KneserNeyLM"), f"{folder}/model.arpa")
        return read_arpa(f"{folder}/model.arpa")


def _blocks():
    words = RareWords(min_count=2).fit(TRAIN)
    X = words.transform(TreeBinarizer().fit_transform(SHORT))
    return OutsideFeatures().fit_transform(InsideFeatures().fit_transform(X))


MAKERS = {
    **{name: lambda name=name: models.make(name) for name in models.MAKERS},
    "toy PCFG": lambda: make_parser(PCFG(), min_count=2).fit(TRAIN),
    "toy memories": lambda: make_parser(
        EMLPCFG(2, max_iter=2, tol=None, random_state=0),
        horizontal=1,
        memory_min_count=3,
    ).fit(TRAIN),
    "toy full charts": lambda: make_parser(PCFG(prune=None)).fit(TRAIN[:20]),
    "toy EM": lambda: make_parser(_em(), min_count=2).fit(TRAIN),
    "toy spectral": lambda: make_parser(
        SpectralLPCFG(2, random_state=0), rarewords__min_count=2
    ).fit(TRAIN),
    "toy margin": lambda: make_parser(MarginEMPCFG(), min_count=2).fit(TRAIN),
    "toy vote": lambda: VotingParser(
        [
            ("em", make_parser(_em())),
            ("other", make_parser(_em().set_params(random_state=1))),
            ("spectral", make_parser(SpectralLPCFG(2, random_state=0))),
        ]
    ).fit(TRAIN),
    "toy pivot": lambda: make_parser(
        EMLPCFG(2, init=PivotLPCFG(2), max_iter=2, tol=None, random_state=0)
    ).fit(TRAIN),
    "toy self-training": lambda: SelfTrainingParser(
        make_parser(PCFG(), min_count=2)
    ).fit(concatenate([TRAIN, TRAIN[:5].unparsed()])),
    "margin cycle": lambda: MarginEMPCFG(CYCLE, max_iter=3).fit([["x", "y"]] * 9),
    "margin chains": lambda: MarginEMPCFG(
        CHAINS, max_iter=3, decoder="max-marginal"
    ).fit([["x", "y", "x", "z"], ["x"], ["z"]] * 3),
    "SVTA of trees": lambda: SVTAMinimizer(n_states=3).fit(
        TreeBinarizer().fit_transform(TRAIN[:10])
    ),
    "Markov of sentences": lambda: AggregateMarkovLM(
        2, mode="sentence", init="pivot", max_iter=3, random_state=0
    ).fit(models.SENTENCES),
    "Kneser-Ney of ARPA": _of_arpa,
    "Kneser-Ney bigrams": lambda: KneserNeyLM(order=2, mode="sentence").fit(
        models.SENTENCES
    ),
    "mixture of language models": lambda: InterpolatedLM(
        [AggregateMarkovLM(2, max_iter=3, random_state=0), KneserNeyLM(order=2)]
    ).fit(models.SENTENCES),
    "sparse WTA": _sparse_wta,
    "CP WTA": lambda: WTA([1.0, 0.0, 0.5], _CP, _OMEGA),
    "labelled WTA": lambda: WTA([1.0, 0.0, 0.5], {"X": _DENSE, "Y": _CP}, _OMEGA),
    "Treebank": lambda: SHORT,
    "Treebank with blocks": _blocks,
    "shards": lambda: SHORT,
}
#: Ending of names whose files leave out what parsing does not need.
COMPACT = ", compact"
MAKERS |= {
    name + COMPACT: MAKERS[name]
    for name in (
        "toy PCFG",
        "toy EM",
        "toy spectral",
        "toy vote",
        "toy pivot",
        "PivotLPCFG",
    )
}


def write(name, path):
    """Fit and save the object of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = MAKERS[name]()
    if isinstance(value, LPCFG | WTA | Treebank):
        value.save(path)
    else:
        save(value, path, compact=name.endswith(COMPACT))


def ask(name, value, draw=list):
    """What an object says, or raises, by method; `draw` chooses among their names."""
    answers, uses = {}, _uses(name, value)
    for method in draw(list(uses)):
        try:
            answers[method] = None, _plain(uses[method]())
        except Exception as error:
            answers[method] = error, None
    return answers


def _uses(name, value):
    if isinstance(value, ShardedTreebank):
        return _uses_of_shards(value)
    if isinstance(value, Treebank):
        return _uses_of_treebank(value)
    if isinstance(value, WTA):
        return _uses_of_automaton(value, name)
    if isinstance(value, LPCFG):
        X = models.TEST
        uses = dict.fromkeys(("log_prob", "sentence_log_prob", "marginals"), (X,))
        uses |= {"sample": (3, 0), **dict.fromkeys(("to_wta", "to_frame"), ())}
    elif name.startswith("Margin") or name.startswith("margin"):
        X = [["x", "y"], ["x", "y", "x", "z"], ["x", "q"]]
        if name.startswith("Margin"):
            X = models.STRINGS
        uses = _uses_of_parser(X, X) | {"to_lpcfg": ()}
        if name == "margin cycle":
            for method in ("parse_kbest", "span_marginals", "to_lpcfg"):
                del uses[method]
    elif hasattr(value, "perplexity"):
        X = models.TEST.sentences()
        methods = ("score_samples", "score", "perplexity", "event_report")
        uses = dict.fromkeys((*methods, "predict_proba"), (X,))
    else:
        X = SHORT if name.startswith("toy") else models.TEST
        if name == "SVTA of trees":
            X = TreeBinarizer().fit_transform(SHORT)
        if name.startswith(("EMLPCFG", "SpectralLPCFG", "PivotLPCFG")):
            X = models.prepared(models.TRAIN)[:4]
        uses = _uses_of_parser(X, X.sentences())
        if hasattr(value, "wta_"):
            uses["transform"] = (value.wta_,)
        if name == "CPCompressor":
            # A fit, as long as the parameters in the file say.
            del uses["transform"]
    calls = {
        method: lambda method=method, arguments=arguments: getattr(value, method)(
            *arguments
        )
        for method, arguments in uses.items()
        if hasattr(value, method)
    }
    if name.startswith("toy"):
        calls["predict unknown"] = lambda: value.predict(UNKNOWN)
    if name == "EMLPCFG":
        calls["fit on"] = lambda: _fit_on(value)
    if "pectral" in name:
        # Its parameters are no probabilities.
        calls.pop("sample", None)
    if name.endswith(COMPACT):
        calls.pop("transform", None)
    return {**calls, "save": lambda: _save(value, compact=name.endswith(COMPACT))}


def _uses_of_parser(X, sentences):
    methods = ("predict", "score_samples", "score", "transform", "inverse_transform")
    uses = dict.fromkeys(methods, (X,))
    more = ("sentence_log_prob", "marginals", "span_marginals")
    uses |= dict.fromkeys(more, (sentences,))
    return uses | {"parse_kbest": (sentences, 3), "sample": (2, 0)}


def _fit_on(model):
    model.set_params(warm_start=True, max_iter=1).fit(models.prepared(models.TRAIN))
    return model.grammar_


def _uses_of_automaton(wta, name):
    X = models.TEST if name == "WTA" else ["(X (X a) (X (X b) (X a)))", "(X b)"]
    if name == "labelled WTA":
        X[0] = "(Y (X a) (X (X b) (X a)))"
    uses = {
        method: lambda method=method: getattr(wta, method)(X)
        for method in ("value", "log_value", "condition_numbers", "sentence_value")
    }
    for method in ("gram_matrices", "spectral_radius", "singular_values"):
        uses[method] = getattr(wta, method)
    uses["truncate"] = lambda: wta.truncate(2).value(X)
    uses["distance"] = lambda: wta.distance(wta)
    return {**uses, "save": lambda: _save(wta)}


def _uses_of_treebank(X):
    def learn():
        return (
            make_parser(SpectralLPCFG(1), rarewords__min_count=1)
            .fit(X)
            .predict(SENTENCES)
        )

    def restored():
        return TreeBinarizer().fit(X).inverse_transform(X)

    return {
        "tolist": X.tolist,
        "to_frame": X.to_frame,
        "slice": lambda: X[[1, 0]].tolist(),
        "restored": restored,
        "learn": restored if X.binarized else learn,
        "parseval": lambda: parseval(X, X),
        "write": lambda: X.write(os.devnull),
        "blocks": lambda: [block.sum() for block in X.blocks.values()],
        "save": lambda: X.save(os.devnull),
    }


def _uses_of_shards(X):
    binarized = TreeBinarizer().fit(X)
    return {
        "tolist": lambda: X.load().tolist(),
        "learn": lambda: PCFG().fit(binarized.transform(X)).predict(SENTENCES),
        "subset": lambda: X[[1, 0]].load().tolist(),
    }


def _save(value, *, compact=False):
    if hasattr(value, "save"):
        value.save(os.devnull)
    else:
        save(value, os.devnull, compact=compact)


# -- answers that can be compared ----------------------------------------------------


def _plain(answer):
    """Take an answer apart into arrays of numbers and strings."""
    if isinstance(answer, Treebank):
        blocks = [_plain(block) for block in answer.blocks.values()]
        return [[str(tree) for tree in answer], *blocks]
    if scipy.sparse.issparse(answer):
        return answer.toarray()
    if isinstance(answer, pd.DataFrame):
        columns = [answer[name] for name in answer]
        return [
            c.to_numpy() if c.dtype.kind == "f" else c.astype(str).tolist()
            for c in columns
        ]
    if isinstance(answer, np.ndarray | int | float | str | pd.Series):
        return np.asarray(answer)
    if isinstance(answer, list | tuple):
        return [_plain(part) for part in answer]
    return str(answer) if isinstance(answer, Tree) else repr(answer)


def n_nan(answer):
    """Number of nans in an answer."""
    if isinstance(answer, list):
        return sum(n_nan(part) for part in answer)
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return int(np.isnan(answer).sum())
    return 0


def equal(one, two):
    """Whether two answers are the same, with nan equal to nan."""
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(equal, one, two))
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        same_kind = one.dtype.kind == two.dtype.kind
        floats = one.dtype.kind == "f" and same_kind
        return same_kind and np.array_equal(one, two, equal_nan=floats)
    return type(one) is type(two) and one == two
