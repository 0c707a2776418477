"""Spectral learning of L-PCFGs."""

from lpcfg_sk.spectral._decomposition import Projection, decompose, project_label
from lpcfg_sk.spectral._family import SpectralFamily
from lpcfg_sk.spectral._node_features import SIDES, NodeFeatures
from lpcfg_sk.spectral._sequences import (
    tagged_sequences_to_treebank,
    treebank_to_tagged_sequences,
)
from lpcfg_sk.spectral._spectral import SpectralLPCFG

__all__ = [
    "Projection",
    "SpectralLPCFG",
    "tagged_sequences_to_treebank",
    "treebank_to_tagged_sequences",
]
