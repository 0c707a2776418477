"""Tagged sentences as trees, so that learners of trees apply to sequences."""

import numpy as np

from lpcfg_sk._ragged import offsets
from lpcfg_sk.treebank import SymbolTable, Treebank, check_treebank


def tagged_sequences_to_treebank(sentences):
    """Right-branching trees of tagged sentences.

    A latent-variable hidden Markov model is an L-PCFG over such trees: the node
    ``T>`` at position i emits the word i under its tag T, and passes its state on to
    position i + 1. Every learner and every decoder of trees thus applies to sequences.

    Parameters
    ----------
    sentences : iterable of sequences of (word, tag)
        Tagged sentences, none of them empty.

    Returns
    -------
    treebank : Treebank
        One tree per sentence; its pre-terminals are the tags.

    See Also
    --------
    treebank_to_tagged_sequences : The inverse.

    Notes
    -----
    This is the special case at the end of section 9 of Cohen et al. (2014), called
    refinement hidden Markov model by Stratos, Rush, Cohen and Collins (2013).

    Examples
    --------
    >>> from lpcfg_sk.spectral import tagged_sequences_to_treebank
    >>> sentence = [("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]
    >>> str(tagged_sequences_to_treebank([sentence])[0])
    '(DT> (DT the) (NN> (NN dog) (VBZ barks)))'
    """
    tags, tokens, lengths = {}, {}, []
    tag, token = [], []
    for row, sentence in enumerate(sentences):
        before = len(token)
        for pair in sentence:
            try:
                word, label = pair
                if not (isinstance(word, str) and isinstance(label, str)):
                    raise TypeError
            except (TypeError, ValueError):
                raise TypeError(
                    f"sentence {row} holds {pair!r}; a tagged sentence is a sequence "
                    "of (word, tag) pairs of str"
                ) from None
            token.append(tokens.setdefault(word, len(tokens)))
            tag.append(tags.setdefault(label, len(tags)))
        if len(token) == before:
            raise ValueError(f"sentence {row} is empty; leave it out")
        lengths.append(len(token) - before)
    lengths = np.array(lengths, dtype=np.int64)
    token_offsets = offsets(lengths)
    tag = np.array(tag, dtype=np.int64)
    # Each position has a chain node and a tag, in preorder; the last has only a tag.
    position = np.arange(len(tag)) - np.repeat(token_offsets[:-1], lengths)
    length = np.repeat(lengths, lengths)
    last = position == length - 1
    chain = {
        "label": np.where(last, tag, tag + len(tags)),
        "size": np.where(last, 1, 2 * (length - position) - 1),
        "parent": np.where(position == 0, -1, 2 * (position - 1)),
    }
    leaf = {
        "label": tag,
        "size": np.ones_like(tag),
        "parent": 2 * position,
    }
    kept = np.column_stack([np.ones_like(last), ~last]).ravel()
    columns = {
        name: np.column_stack([chain[name], leaf[name]]).ravel()[kept] for name in chain
    }
    return Treebank.from_columns(
        **columns,
        node_offsets=offsets(2 * lengths - 1),
        token=token,
        token_offsets=token_offsets,
        labels=SymbolTable([*tags, *_chain_labels(tags)]),
        tokens=SymbolTable(tokens),
    )


def treebank_to_tagged_sequences(X):
    """Words and tags of trees.

    Parameters
    ----------
    X : Treebank
        Trees of any shape, such as the predictions of a tagger.

    Returns
    -------
    sentences : list of list of (word, tag)
        The tag is the label of the word's pre-terminal, None where it has none.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.spectral import treebank_to_tagged_sequences
    >>> treebank_to_tagged_sequences(Treebank(["(S (NP (N dogs)) (VP (V bark)))"]))
    [[('dogs', 'N'), ('bark', 'V')]]
    """
    X = check_treebank(
        X, estimator="treebank_to_tagged_sequences", parsed=True, allow_empty=True
    )
    names = (*X.labels.strings, None)
    tags = [names[a] for a in X.label[X.size == 1].tolist()]
    bounds = X.token_offsets.tolist()
    return [
        list(zip(sentence, tags[begin : begin + len(sentence)], strict=True))
        for sentence, begin in zip(X.sentences(), bounds[:-1], strict=True)
    ]


def _chain_labels(tags):
    """One new label for each tag."""
    taken, labels = set(tags), []
    for tag in tags:
        label = f"{tag}>"
        while label in taken:
            label += ">"
        taken.add(label)
        labels.append(label)
    return labels
