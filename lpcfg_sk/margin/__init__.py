"""Empirical risk minimisation with proper approximations."""

from lpcfg_sk.margin._margin_em import MarginEMPCFG

__all__ = ["MarginEMPCFG"]
