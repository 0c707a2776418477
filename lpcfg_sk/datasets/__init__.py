"""Synthetic grammars and treebanks."""

from lpcfg_sk.datasets._random import make_lpcfg, make_treebank
from lpcfg_sk.datasets._toy import load_toy

__all__ = ["load_toy", "make_lpcfg", "make_treebank"]
