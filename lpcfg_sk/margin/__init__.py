"""Empirical risk minimisation with proper approximations."""

from lpcfg_sk.margin._hardness import assignment_of_tree, sat_grammar
from lpcfg_sk.margin._margin_em import MarginEMPCFG

__all__ = ["MarginEMPCFG", "assignment_of_tree", "sat_grammar"]
