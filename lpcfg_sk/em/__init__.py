"""Maximum likelihood: the treebank PCFG and expectation maximisation."""

from lpcfg_sk.em._emlpcfg import EMLPCFG
from lpcfg_sk.em._pcfg import PCFG

__all__ = ["EMLPCFG", "PCFG"]
