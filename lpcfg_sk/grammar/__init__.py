"""Grammars and automata: parameters and what they compute."""

from lpcfg_sk.grammar._arrays import GrammarArrays
from lpcfg_sk.grammar._lexicon import smooth_lexicon
from lpcfg_sk.grammar._lpcfg import LPCFG
from lpcfg_sk.grammar._rules import RuleIndex

__all__ = ["LPCFG", "GrammarArrays", "RuleIndex", "smooth_lexicon"]
