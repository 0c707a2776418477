"""L-PCFGs: parameters in tensor form, and what they compute."""

from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays
from lpcfg_sk.lpcfg._lexicon import smooth_lexicon
from lpcfg_sk.lpcfg._lpcfg import LPCFG
from lpcfg_sk.lpcfg._maximization import coarse_pcfg
from lpcfg_sk.lpcfg._rules import RuleIndex

__all__ = ["LPCFG", "GrammarArrays", "RuleIndex", "coarse_pcfg", "smooth_lexicon"]
