"""One small fitted object of every kind that can be saved.

``python -m tests.persistence.models FOLDER`` writes them, with their predictions: the
files of a release, which all later releases have to read.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse

from lpcfg_sk import (
    CFG,
    EMLPCFG,
    LPCFG,
    PCFG,
    WTA,
    AggregateMarkovLM,
    CPCompressor,
    InsideFeatures,
    KneserNeyLM,
    LatentStateSearchCV,
    MarginEMPCFG,
    OutsideFeatures,
    PivotLPCFG,
    RareWords,
    SelfTrainingParser,
    SpectralLPCFG,
    SVTAMinimizer,
    TreeBinarizer,
    VotingParser,
    load,
    make_parser,
    save,
)
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.treebank import Treebank, concatenate

GRAMMAR = make_lpcfg(2, 3, 12, m=2, mean_length=4.0, random_state=0)
TREES = make_treebank(GRAMMAR, 40, random_state=0)
TRAIN, TEST = TREES[:30], TREES[30:34]
RULES = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
STRINGS = [["a", "c"], ["c"], ["b", "c"], ["a", "b", "c"]]
SENTENCES = TRAIN.sentences()


def prepared(X):
    words = RareWords(min_count=1).fit(X)
    inside = InsideFeatures().fit(words.transform(X))
    with_inside = inside.transform(words.transform(X))
    return OutsideFeatures().fit(with_inside).transform(with_inside)


def _em(m=2, **options):
    fixed = {"max_iter": 2, "tol": None, "validation_fraction": None}
    return EMLPCFG(m, random_state=0, **fixed, **options)


def _parser(learner):
    return make_parser(learner, min_count=1)


MAKERS = {
    "TreeBinarizer": lambda: TreeBinarizer(direction="left").fit(TRAIN),
    "RareWords": lambda: RareWords(min_count=2).fit(TRAIN),
    "InsideFeatures": lambda: InsideFeatures(scaling=5.0).fit(TRAIN),
    "OutsideFeatures": lambda: OutsideFeatures().fit(TRAIN),
    "PCFG": lambda: PCFG().fit(TRAIN),
    "EMLPCFG": lambda: _em(init=PivotLPCFG(2)).fit(prepared(TRAIN)),
    "SpectralLPCFG": lambda: SpectralLPCFG({"A0": 2}, random_state=0).fit(
        prepared(TRAIN)
    ),
    "PivotLPCFG": lambda: PivotLPCFG(2).fit(prepared(TRAIN)),
    "Pipeline": lambda: _parser(_em()).fit(TRAIN),
    "LatentStateSearchCV": lambda: LatentStateSearchCV(
        _parser(_em()), candidates=(1, 2), n_nonterminals=1, cv=2
    ).fit(TRAIN),
    "VotingParser": lambda: VotingParser(
        [("pcfg", _parser(PCFG())), ("em", _parser(_em()))], weights=[1.0, 2.0]
    ).fit(TRAIN),
    "SelfTrainingParser": lambda: SelfTrainingParser(_parser(PCFG())).fit(
        concatenate([TRAIN, TRAIN[:5].unparsed()])
    ),
    "MarginEMPCFG": lambda: MarginEMPCFG(RULES, s=1.2).fit(STRINGS),
    "SVTAMinimizer": lambda: SVTAMinimizer(GRAMMAR, 3).fit(),
    "CPCompressor": lambda: CPCompressor(
        PCFG(), 2, max_iter=50, random_state=np.random.RandomState(0)
    ).fit(TRAIN),
    "AggregateMarkovLM": lambda: AggregateMarkovLM(2, max_iter=3, random_state=0).fit(
        SENTENCES
    ),
    "KneserNeyLM": lambda: KneserNeyLM(order=3).fit(SENTENCES),
    "LPCFG": lambda: GRAMMAR,
    "WTA": lambda: WTA.from_pcfg(GRAMMAR),
}

METHODS = (
    "transform",
    "predict",
    "score_samples",
    "sentence_log_prob",
    "log_prob",
    "value",
)
_WITH_SAVE = {"LPCFG": LPCFG, "WTA": WTA}


def make(name):
    """Fit the object of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[name]()


def write(name, value, path):
    """Save by the function or by the method."""
    value.save(path) if name in _WITH_SAVE else save(value, path, compact=False)


def read(name, path):
    """Load by the function or by the method."""
    return _WITH_SAVE[name].load(path) if name in _WITH_SAVE else load(path)


def answers(name, value):
    """What an object says of the test data, as JSON data."""
    X = TEST
    if name in ("EMLPCFG", "SpectralLPCFG", "PivotLPCFG"):
        X = prepared(TRAIN)[:4]
    if name == "MarginEMPCFG":
        X = STRINGS
    if name.endswith("LM"):
        X = TEST.sentences()
    said = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in METHODS:
            # Compressors of automata transform automata, not trees.
            if hasattr(value, method) and not (
                method == "transform" and hasattr(value, "wta_")
            ):
                said[method] = _plain(getattr(value, method)(X))
    return said


def _plain(result):
    if scipy.sparse.issparse(result):
        result = result.toarray()
    if not isinstance(result, Treebank):
        return np.asarray(result, dtype=float).tolist()
    blocks = {
        name: [float(block.sum()), float(np.abs(block).max())]
        for name, block in result.blocks.items()
    }
    words = [result.words[i] for i in result.word]
    return [[str(tree) for tree in result], words, blocks]


def main(folder):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for name in MAKERS:
        value = make(name)
        write(name, value, folder / f"{name}.lpcfg")
        text = json.dumps(answers(name, value), indent=1)
        (folder / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1])
