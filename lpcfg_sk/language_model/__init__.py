"""Language models over words: aggregate Markov and Kneser-Ney."""

from lpcfg_sk.language_model._aggregate import AggregateMarkovLM
from lpcfg_sk.language_model._kneser_ney import KneserNeyLM, NGramTable

__all__ = ["AggregateMarkovLM", "KneserNeyLM"]

# Shared with other packages, but not public.
_shared = (NGramTable,)
