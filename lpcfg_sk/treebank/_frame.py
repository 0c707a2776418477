"""A treebank as a table of nodes."""

import numpy as np
import pandas as pd

__all__ = ["node_frame"]


def node_frame(treebank):
    """Return one row a node; see :meth:`Treebank.to_frame`."""
    counts = np.diff(treebank.node_offsets)
    tree = np.repeat(np.arange(len(treebank)), counts)
    names = np.array([*treebank.labels.strings, None], dtype=object)
    token = np.full(treebank.n_nodes, None, dtype=object)
    leaves = treebank.size == 1
    strings = np.array([*treebank.tokens.strings, None], dtype=object)
    position = treebank.token_offsets[tree[leaves]] + treebank.start[leaves]
    token[leaves] = strings[treebank.token[position]]
    return pd.DataFrame(
        {
            "tree": tree,
            "node": np.arange(treebank.n_nodes) - treebank.node_offsets[tree],
            "parent": treebank.parent,
            "label": pd.array(names[treebank.label], dtype="string"),
            "start": treebank.start,
            "stop": treebank.stop,
            "token": pd.array(token, dtype="string"),
        }
    )
