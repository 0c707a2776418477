"""Synthetic grammars and treebanks, and corpora that the user has."""

from lpcfg_sk.datasets._corpora import (
    load_alpino,
    load_brown,
    load_cess_cat,
    load_cess_esp,
    load_floresta,
    load_penn_sample,
    load_sinica,
)
from lpcfg_sk.datasets._random import make_lpcfg, make_treebank
from lpcfg_sk.datasets._toy import load_toy

__all__ = [
    "load_alpino",
    "load_brown",
    "load_cess_cat",
    "load_cess_esp",
    "load_floresta",
    "load_penn_sample",
    "load_sinica",
    "load_toy",
    "make_lpcfg",
    "make_treebank",
]
