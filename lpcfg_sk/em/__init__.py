"""Maximum likelihood: the treebank PCFG and expectation maximisation."""

from lpcfg_sk.em._pcfg import PCFG

__all__ = ["PCFG"]
