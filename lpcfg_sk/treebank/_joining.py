"""Columns of several treebanks, one after the other."""

import numpy as np
import scipy.sparse

from lpcfg_sk.treebank._columns import empty_columns
from lpcfg_sk.treebank._indexing import translate, union_of_tables

__all__ = ["joined_columns"]


def joined_columns(banks):
    """Return the state of the treebank that has the rows of all.

    Parameters
    ----------
    banks : list of Treebank
        Their symbol tables are united; blocks that one of them lacks are left out.

    Returns
    -------
    state : dict
        Arguments of :meth:`Treebank.from_columns`.
    """
    if not banks:
        return empty_columns()
    labels, label_maps = union_of_tables([b.labels for b in banks])
    tokens, token_maps = union_of_tables([b.tokens for b in banks])
    if all(b.words is b.tokens for b in banks):
        words, word_maps = tokens, token_maps
    else:
        words, word_maps = union_of_tables([b.words for b in banks])
    state = {
        name: np.concatenate([getattr(b, name) for b in banks])
        for name in ("size", "parent", "start", "stop")
    }
    for name, maps in (("label", label_maps), ("tag", label_maps)):
        state[name] = np.concatenate(
            [translate(getattr(b, name), m) for b, m in zip(banks, maps, strict=True)]
        )
    state["token"] = np.concatenate(
        [translate(b.token, m) for b, m in zip(banks, token_maps, strict=True)]
    )
    state["word"] = np.concatenate(
        [translate(b.word, m) for b, m in zip(banks, word_maps, strict=True)]
    )
    for name in ("node_offsets", "token_offsets"):
        counts = np.concatenate([np.diff(getattr(b, name)) for b in banks])
        state[name] = np.concatenate([[0], np.cumsum(counts)])
    shared = [k for k in banks[0].blocks if all(k in b.blocks for b in banks)]
    state["blocks"] = {
        k: (
            np.concatenate([b.blocks[k] for b in banks])
            if isinstance(banks[0].blocks[k], np.ndarray)
            else scipy.sparse.vstack([b.blocks[k] for b in banks], format="csr")
        )
        for k in shared
    }
    state["block_names"] = {
        k: v for k, v in banks[0].block_names.items() if k in shared
    }
    state.update(labels=labels, tokens=tokens, words=words)
    state["binarized"] = all(b.binarized for b in banks)
    return state
