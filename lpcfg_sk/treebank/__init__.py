"""Treebanks: columns of trees, reading and writing, binarisation, rare words."""

from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._tree import Tree
from lpcfg_sk.treebank._treebank import Treebank, concatenate

__all__ = ["SymbolTable", "Tree", "Treebank", "concatenate"]
