"""Sentences of part-of-speech tags."""

import numpy as np

from lpcfg_sk.treebank._symbols import SymbolTable
from lpcfg_sk.treebank._validation import check_treebank

__all__ = ["delexicalize"]


def delexicalize(treebank):
    """Replace every word by its part-of-speech tag.

    Parameters
    ----------
    treebank : Treebank
        Trees, whose pre-terminals are the tags, and sentences with given tags.
        Not binarised: there a pre-terminal may hold a chain of labels.

    Returns
    -------
    treebank : Treebank
        The same trees over the tags as tokens and as words, without node features.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import delexicalize
    >>> tags = delexicalize(Treebank(["(S (NP (DT the) (NN dog)) (VBZ barks))"]))
    >>> tags.sentences()
    [['DT', 'NN', 'VBZ']]
    >>> print(tags[0])
    (S (NP (DT DT) (NN NN)) (VBZ VBZ))
    """
    treebank = check_treebank(treebank, estimator="delexicalize", allow_empty=True)
    if treebank.binarized:
        raise ValueError(
            "delexicalize takes trees before binarisation, whose pre-terminals are "
            "tags; call it before TreeBinarizer, or on its inverse_transform"
        )
    in_tree = np.repeat(treebank.is_parsed, treebank.lengths)
    tag = np.array(treebank.tag)
    tag[in_tree] = treebank.label[treebank.size == 1]
    missing = np.flatnonzero(tag < 0)
    if len(missing):
        token = missing[0]
        row = int(np.searchsorted(treebank.token_offsets, token, side="right")) - 1
        word = treebank.tokens[treebank.token[token]]
        if in_tree[token]:
            raise ValueError(
                f"the word {word!r} of tree {row} has siblings and no pre-terminal of "
                "its own, so it has no tag; give each word a pre-terminal"
            )
        raise ValueError(
            f"the word {word!r} of row {row}, which has no tree, has no tag either; "
            "leave such rows out, or tag them"
        )
    used, ids = np.unique(tag, return_inverse=True)
    tags = SymbolTable(treebank.labels[i] for i in used)
    return treebank.replace(
        token=ids.astype(np.int32),
        word=ids.astype(np.int32),
        tokens=tags,
        words=tags,
        blocks={},
        block_names={},
    )
