"""Treebanks: columns of trees, reading and writing, binarisation, rare words."""

from lpcfg_sk.treebank._binarize import TreeBinarizer, unbinarize
from lpcfg_sk.treebank._heads import ENGLISH_HEAD_RULES, find_heads, head_token
from lpcfg_sk.treebank._labels import (
    BARE,
    LabelParts,
    LabelTable,
    decode_label,
    decode_table,
    encode_label,
    escape_label,
)
from lpcfg_sk.treebank._picture import figures_html
from lpcfg_sk.treebank._reader import read_treebank, treebank_files
from lpcfg_sk.treebank._rule_index import RuleIndex, count_rules, leaf_tokens
from lpcfg_sk.treebank._rule_table import (
    RuleCounts,
    RuleKeys,
    RuleTable,
    lexical_keys,
    rule_keys,
    table_of_keys,
)
from lpcfg_sk.treebank._sharded import (
    ShardedTreebank,
    append_rows,
    over_chunks,
)
from lpcfg_sk.treebank._spelling import CLASS_STRENGTH, tokenize
from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._tree import Tree
from lpcfg_sk.treebank._treebank import Treebank, concatenate
from lpcfg_sk.treebank._validation import (
    TreebankInputMixin,
    TreebankTransformerMixin,
    check_sample_weight,
    check_treebank,
    transforms_shards,
    trees_and_sentences,
    weighted_trees,
)
from lpcfg_sk.treebank._words import RareWords, delexicalize
from lpcfg_sk.treebank._writer import write_treebank

__all__ = [
    "ENGLISH_HEAD_RULES",
    "LabelParts",
    "LabelTable",
    "RareWords",
    "RuleCounts",
    "RuleIndex",
    "ShardedTreebank",
    "SymbolTable",
    "Tree",
    "TreeBinarizer",
    "Treebank",
    "concatenate",
    "count_rules",
    "decode_label",
    "decode_table",
    "delexicalize",
    "find_heads",
    "head_token",
    "over_chunks",
    "read_treebank",
    "tokenize",
    "unbinarize",
    "write_treebank",
]
