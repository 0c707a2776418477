"""Latent-variable PCFGs and weighted tree automata, the scikit-learn way.

The public names are loaded when they are first used, so that importing the package
is quick and compiles nothing.
"""

from importlib import import_module

__version__ = "0.1.0.dev0"

_HOME = {
    "AggregateMarkovLM": "language_model",
    "CFG": "grammar",
    "CPCompressor": "svta",
    "EMLPCFG": "em",
    "InsideFeatures": "features",
    "KneserNeyLM": "language_model",
    "LPCFG": "grammar",
    "MarginEMPCFG": "margin",
    "OutsideFeatures": "features",
    "PCFG": "em",
    "PivotLPCFG": "pivot",
    "RareWords": "treebank",
    "SVTAMinimizer": "svta",
    "ShardedTreebank": "treebank",
    "SpectralLPCFG": "spectral",
    "Tree": "treebank",
    "TreeBinarizer": "treebank",
    "Treebank": "treebank",
    "TreebankFormatError": "exceptions",
    "VotingParser": "ensemble",
    "WTA": "grammar",
    "load": "persistence",
    "make_ensemble": "ensemble",
    "make_parser": "_pipeline",
    "read_treebank": "treebank",
    "save": "persistence",
    "write_treebank": "treebank",
}
_SUBPACKAGES = (
    "bounds",
    "datasets",
    "decoding",
    "em",
    "ensemble",
    "exceptions",
    "features",
    "grammar",
    "inspection",
    "language_model",
    "margin",
    "metrics",
    "persistence",
    "pivot",
    "spectral",
    "svta",
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
