"""Many grammars voting on brackets."""

from lpcfg_sk.ensemble._voting import VotingParser, make_ensemble

__all__ = ["VotingParser", "make_ensemble"]
