"""Singular value tree automata: minimisation and compression."""

from lpcfg_sk.svta._bracketing import bracketing_counts, bracketing_f1
from lpcfg_sk.svta._cp import CPCompressor
from lpcfg_sk.svta._gamma import critical_gamma
from lpcfg_sk.svta._minimizer import SVTAMinimizer

__all__ = [
    "CPCompressor",
    "SVTAMinimizer",
    "bracketing_counts",
    "bracketing_f1",
    "critical_gamma",
]
