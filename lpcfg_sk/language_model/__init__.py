"""Language models over words: aggregate Markov and Kneser-Ney."""

from lpcfg_sk.language_model._aggregate import AggregateMarkovLM
from lpcfg_sk.language_model._arpa import read_arpa, write_arpa
from lpcfg_sk.language_model._counting import SentenceFile
from lpcfg_sk.language_model._interpolation import InterpolatedLM
from lpcfg_sk.language_model._kneser_ney import KneserNeyLM, NGramTable

__all__ = [
    "AggregateMarkovLM",
    "InterpolatedLM",
    "KneserNeyLM",
    "SentenceFile",
    "read_arpa",
    "write_arpa",
]
