"""Grammars and automata: parameters and what they compute."""

from lpcfg_sk.grammar._arrays import GrammarArrays
from lpcfg_sk.grammar._binary_normal_form import (
    BinaryNormalForm,
    binomials_to_theta,
    theta_to_binomials,
)
from lpcfg_sk.grammar._cfg import CFG, Rule
from lpcfg_sk.grammar._estimates import coarse_pcfg
from lpcfg_sk.grammar._lexicon import smooth_lexicon
from lpcfg_sk.grammar._lpcfg import LPCFG
from lpcfg_sk.grammar._rules import RuleIndex
from lpcfg_sk.grammar._wta import WTA

__all__ = [
    "CFG",
    "LPCFG",
    "WTA",
    "BinaryNormalForm",
    "GrammarArrays",
    "Rule",
    "RuleIndex",
    "binomials_to_theta",
    "coarse_pcfg",
    "smooth_lexicon",
    "theta_to_binomials",
]
