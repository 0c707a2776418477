"""Provably correct learning by pivot features (Cohen and Collins, 2014)."""

from lpcfg_sk.pivot._cca import CCA, cca, check_counts
from lpcfg_sk.pivot._decomposition import (
    AnchorDecomposition,
    PivotDecomposition,
    anchor_decomposition,
    anchor_posteriors,
    conditional_means,
    pivot_decomposition,
)
from lpcfg_sk.pivot._pivot_lpcfg import PivotLPCFG
from lpcfg_sk.pivot._simplex import fast_anchor_words, simplex_least_squares

__all__ = [
    "CCA",
    "AnchorDecomposition",
    "PivotDecomposition",
    "PivotLPCFG",
    "anchor_decomposition",
    "cca",
    "fast_anchor_words",
    "pivot_decomposition",
    "simplex_least_squares",
]
