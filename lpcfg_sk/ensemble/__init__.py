"""Many grammars voting on brackets."""

from lpcfg_sk.ensemble._presets import make_ensemble
from lpcfg_sk.ensemble._voting import VotingParser

__all__ = ["VotingParser", "make_ensemble"]
