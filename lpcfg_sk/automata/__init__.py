"""Weighted tree automata, minimised and compressed (Rabusseau et al. 2016)."""

from lpcfg_sk.automata._compressor import bracketing_counts, bracketing_f1
from lpcfg_sk.automata._conversion import automaton_data, automaton_parts
from lpcfg_sk.automata._cp import CPCompressor
from lpcfg_sk.automata._hankel import (
    hankel_matrix,
    insert_tree,
    wta_from_hankel,
)
from lpcfg_sk.automata._minimizer import SVTAMinimizer, critical_gamma
from lpcfg_sk.automata._wta import WTA

__all__ = [
    "WTA",
    "CPCompressor",
    "SVTAMinimizer",
    "bracketing_counts",
    "bracketing_f1",
    "critical_gamma",
    "hankel_matrix",
    "insert_tree",
    "wta_from_hankel",
]
