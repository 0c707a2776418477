"""Treebanks: columns of trees, reading and writing, binarisation, rare words."""

from lpcfg_sk.treebank._binarize import TreeBinarizer, unbinarize
from lpcfg_sk.treebank._delexicalize import delexicalize
from lpcfg_sk.treebank._heads import ENGLISH_HEAD_RULES, find_heads, head_token
from lpcfg_sk.treebank._labels import LabelParts, LabelTable, decode_label, decode_table
from lpcfg_sk.treebank._rarewords import RareWords
from lpcfg_sk.treebank._reader import read_treebank
from lpcfg_sk.treebank._sharded import ShardedTreebank
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._tree import Tree
from lpcfg_sk.treebank._treebank import Treebank, concatenate
from lpcfg_sk.treebank._validation import check_sample_weight, check_treebank
from lpcfg_sk.treebank._writer import write_treebank

__all__ = [
    "ENGLISH_HEAD_RULES",
    "LabelParts",
    "LabelTable",
    "RareWords",
    "ShardedTreebank",
    "SymbolTable",
    "Tree",
    "TreeBinarizer",
    "Treebank",
    "check_sample_weight",
    "check_treebank",
    "concatenate",
    "decode_label",
    "decode_table",
    "delexicalize",
    "find_heads",
    "head_token",
    "read_treebank",
    "unbinarize",
    "write_treebank",
]
