"""Context-free grammars, and their probabilities by margin EM."""

from lpcfg_sk.cfg._binary_normal_form import (
    BinaryNormalForm,
    binomials_to_theta,
    theta_to_binomials,
)
from lpcfg_sk.cfg._cfg import CFG, Rule
from lpcfg_sk.cfg._expectations import rules_of_trees
from lpcfg_sk.cfg._hardness import assignment_of_tree, sat_grammar
from lpcfg_sk.cfg._margin_em import MarginEMPCFG

__all__ = [
    "CFG",
    "BinaryNormalForm",
    "MarginEMPCFG",
    "Rule",
    "assignment_of_tree",
    "binomials_to_theta",
    "sat_grammar",
    "theta_to_binomials",
]

# Shared with other packages, but not public.
_shared = (rules_of_trees,)
