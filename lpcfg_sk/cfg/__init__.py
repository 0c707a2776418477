"""Context-free grammars, and their probabilities by margin EM."""

from lpcfg_sk.cfg._binary_normal_form import BinaryNormalForm
from lpcfg_sk.cfg._binomials import binomials_to_theta, theta_to_binomials
from lpcfg_sk.cfg._cfg import CFG, hmm_to_cfg
from lpcfg_sk.cfg._derivations import rules_of_trees
from lpcfg_sk.cfg._expectations import (
    entropy,
    excess_risk,
    kl_divergence,
    partition_function,
    renormalize,
    rule_expectations,
    rule_second_moments,
)
from lpcfg_sk.cfg._margin_em import MarginEMPCFG
from lpcfg_sk.cfg._rules import Rule

__all__ = [
    "CFG",
    "BinaryNormalForm",
    "MarginEMPCFG",
    "Rule",
    "binomials_to_theta",
    "entropy",
    "excess_risk",
    "hmm_to_cfg",
    "kl_divergence",
    "partition_function",
    "renormalize",
    "rule_expectations",
    "rule_second_moments",
    "theta_to_binomials",
]
