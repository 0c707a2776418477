"""L-PCFGs: parameters in tensor form, and what they compute."""

from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays
from lpcfg_sk.lpcfg._lexicon import smooth_lexicon
from lpcfg_sk.lpcfg._lpcfg import LPCFG
from lpcfg_sk.lpcfg._maximization import (
    Estimates,
    Layout,
    coarse_pcfg,
    divide,
    grammar_of_lexicon,
    grammar_of_parameters,
    independent_children,
    maximize,
    requested_states,
    smoothed_emissions,
)
from lpcfg_sk.lpcfg._trees import posterior_vectors

__all__ = [
    "LPCFG",
    "GrammarArrays",
    "coarse_pcfg",
    "independent_children",
    "smooth_lexicon",
]
