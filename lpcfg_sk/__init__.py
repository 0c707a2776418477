"""Latent-variable PCFGs and weighted tree automata, the scikit-learn way.

The public names are loaded when they are first used, so that importing the package
is quick and compiles nothing.
"""

from importlib import import_module

__version__ = "0.1.0.dev0"

_HOME = {
    "AggregateMarkovLM": "language_model",
    "CFG": "cfg",
    "CPCompressor": "automata",
    "EMLPCFG": "em",
    "InsideFeatures": "features",
    "KneserNeyLM": "language_model",
    "LPCFG": "lpcfg",
    "LatentStateSearchCV": "model_selection",
    "MarginEMPCFG": "cfg",
    "OutsideFeatures": "features",
    "PCFG": "em",
    "Parser": "parsing",
    "PivotLPCFG": "pivot",
    "RareWords": "treebank",
    "SVTAMinimizer": "automata",
    "SelfTrainingParser": "semi_supervised",
    "ShardedTreebank": "treebank",
    "SpectralLPCFG": "spectral",
    "Tree": "treebank",
    "TreeBinarizer": "treebank",
    "Treebank": "treebank",
    "TreebankFormatError": "exceptions",
    "VotingParser": "ensemble",
    "WTA": "automata",
    "load": "persistence",
    "make_ensemble": "ensemble",
    "make_parser": "_pipeline",
    "read_treebank": "treebank",
    "save": "persistence",
    "write_treebank": "treebank",
}
_SUBPACKAGES = (
    "automata",
    "bounds",
    "cfg",
    "datasets",
    "em",
    "ensemble",
    "exceptions",
    "features",
    "inspection",
    "language_model",
    "lpcfg",
    "metrics",
    "model_selection",
    "parsing",
    "persistence",
    "pivot",
    "semi_supervised",
    "spectral",
    "testing",
    "treebank",
)

__all__ = sorted([*_HOME, *_SUBPACKAGES, "__version__"])


def __getattr__(name):
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
