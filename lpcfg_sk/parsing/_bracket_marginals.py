"""Marginals of brackets over original labels, and minimum-Bayes-risk trees."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk._kernels import _decode_brackets as kernel
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._kernels._decode_brackets import BracketChains, Brackets
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.treebank import decode_table

#: Root of a flat tree where the grammar's root is a bare word, as in `unbinarize`.
_UNKNOWN_PHRASE = "X"


class BracketTable(NamedTuple):
    """Original labels that the nonterminals of a grammar stand for.

    A label that occurs twice in one unary chain is two brackets.

    Attributes
    ----------
    names : tuple of str
        Original label of each bracket.
    tag_names : tuple of str or None
        The tags; None for a word without one.
    chains : BracketChains
        Brackets of each nonterminal; none for intermediate nonterminals over several
        words.
    tag : ndarray of int32
        Tag of each nonterminal over one word.
    top : ndarray of int32
        Bracket that stands for each nonterminal at the root of a flat tree: its
        highest label, also of an intermediate one, and ``X`` for a bare word.
    """

    names: tuple
    tag_names: tuple
    chains: BracketChains
    tag: np.ndarray
    top: np.ndarray

    @classmethod
    def from_labels(cls, labels, binarized):
        """Read the labels of a grammar.

        Parameters
        ----------
        labels : sequence of str
            Nonterminals.
        binarized : bool
            Whether a :class:`TreeBinarizer` made them; if not, they are the originals.

        Returns
        -------
        BracketTable
        """
        if binarized:
            table = decode_table(labels)
            bounds = zip(table.chain_offsets[:-1], table.chain_offsets[1:], strict=True)
            chains = [
                tuple(table.originals[x] for x in table.chain[low:high].tolist())
                for low, high in bounds
            ]
            inner = table.intermediate.tolist()
        else:
            chains = [(label,) for label in labels]
            inner = [False] * len(chains)
        names, tags = {}, {}

        def brackets(chain):
            seen = [(x, chain[:i].count(x)) for i, x in enumerate(chain)]
            return [names.setdefault(key, len(names)) for key in seen]

        wide = [[] if i else brackets(c) for c, i in zip(chains, inner, strict=True)]
        leaf = [brackets(chain[:-1]) for chain in chains]
        tag = [
            tags.setdefault(chain[-1] if chain else None, len(tags)) for chain in chains
        ]
        roots = [chain[0] if chain else _UNKNOWN_PHRASE for chain in chains]
        top = [names.setdefault((name, 0), len(names)) for name in roots]
        chains = BracketChains(len(names), *_ragged(wide), *_ragged(leaf))
        names = tuple(name for name, _ in names)
        tag, top = (np.array(ids, dtype=np.int32) for ids in (tag, top))
        return cls(names, tuple(tags), chains, tag, top)


def _ragged(lists):
    """Return offsets and values of lists of integers."""
    values = np.array([x for items in lists for x in items], dtype=np.int32)
    return offsets([len(items) for items in lists]), values


def bracket_marginals(table, n_words, row_span, item_offset, item_label, posterior):
    """Turn posteriors of items into posteriors of original brackets.

    Parameters
    ----------
    table : BracketTable
        Brackets of the nonterminals.
    n_words, row_span, item_offset, item_label : ndarray
        Items of each span, see :class:`lpcfg_sk._kernels._chart_forest.Forest`.
    posterior : ndarray of float64
        Posterior of each item. Those of signed models count by their magnitude,
        rescaled to the sum 2n - 1 that the items of a tree have.

    Returns
    -------
    Brackets
    """
    n_items = np.diff(item_offset[row_span])
    weight = np.abs(posterior)
    row = np.repeat(np.arange(len(n_words)), n_items)
    total = np.bincount(row, weight, minlength=len(n_words))
    weight *= np.repeat((2 * n_words - 1) / np.where(total > 0.0, total, 1.0), n_items)
    words = ragged_indices(row_span[:-1], n_words)
    is_word = np.zeros(len(item_offset) - 1, dtype=np.bool_)
    is_word[words] = True
    offset = np.zeros(len(item_offset), dtype=np.int64)
    bracket, value, depth = kernel.collect_brackets(
        is_word, item_offset, item_label, weight, table.chains, offset
    )
    n_tags = item_offset[words + 1] - item_offset[words]
    tags = ragged_indices(item_offset[words], n_tags)
    tag_weight = np.zeros((len(words), len(table.tag_names)))
    place = (np.repeat(np.arange(len(words)), n_tags), table.tag[item_label[tags]])
    np.add.at(tag_weight, place, weight[tags])
    return Brackets(n_words, row_span, offset, bracket, value, depth, tag_weight)


def bracket_trees(table, brackets, penalty):
    """Build the trees that maximise Σ (P(X, i, j) − λ) over their brackets.

    Parameters
    ----------
    table : BracketTable
        Names of brackets and tags.
    brackets : Brackets
        Marginals.
    penalty : float
        λ, which trades precision for recall.

    Returns
    -------
    list of ndarray of int32, shape (4, n_nodes)
        Label, parent, start and stop of the nodes of each sentence, in preorder; tags
        are numbered after the brackets.
    """
    n_rows = len(brackets.n_words)
    n_places = len(brackets.bracket) + len(brackets.tag_weight) + n_rows
    nodes = np.empty((n_places, 5), dtype=np.int32)
    tag = np.argmax(brackets.tag_weight, axis=1) + len(table.names)
    node_offsets = np.zeros(n_rows + 1, dtype=np.int64)
    kernel.bracket_trees(brackets, penalty, tag.astype(np.int32), nodes, node_offsets)
    return np.split(nodes[: node_offsets[-1], :4].T, node_offsets[1:-1], axis=1)


def flat_brackets(table, root, wide, leaves):
    """Nodes of a flat tree over original labels: a root, and one tag per word.

    Parameters
    ----------
    table : BracketTable
        Brackets of the nonterminals.
    root : int
        Nonterminal over the whole sentence.
    wide : bool
        Whether it covers several words, so that all its labels are taken; of a chain
        above one word only the first label is taken.
    leaves : ndarray of int32
        Nonterminal over each word, of which the tag is taken.

    Returns
    -------
    ndarray of int32, shape (4, n_nodes)
        Label, parent, start and stop, as :func:`bracket_tree` gives them.
    """
    n = len(leaves)
    begin, end = table.chains.wide_offset[root : root + 2]
    chain = table.chains.wide_bracket[begin:end]
    chain = chain if wide else chain[:1]
    if not len(chain):
        # A root is needed: words without one would be several trees.
        chain = table.top[root : root + 1]
    depth, place = len(chain), np.arange(n)
    nodes = np.zeros((4, depth + n), dtype=np.int32)
    nodes[:, :depth] = chain, np.arange(depth) - 1, np.zeros(depth), np.full(depth, n)
    tags = len(table.names) + table.tag[leaves]
    nodes[:, depth:] = tags, np.full(n, depth - 1), place, place + 1
    return nodes


def bracket_frame(table, brackets):
    """Put the marginals of a sentence into a DataFrame.

    Parameters
    ----------
    table : BracketTable
        Names of brackets and tags.
    brackets : Brackets or None
        Marginals of one sentence; None gives a frame without rows.

    Returns
    -------
    DataFrame
        Columns label, start, end, marginal, tag; a word without a tag of its own has
        the label NA.
    """
    if brackets is None:
        empty, none = np.zeros(0), np.zeros(0, dtype=np.int32)
        tags = np.zeros((0, len(table.tag_names)))
        ends = np.zeros((3, 1), dtype=np.int64)
        brackets = Brackets(*ends, none, empty, empty, tags)
    start, end = span_bounds(int(brackets.n_words[0]))
    span = np.repeat(np.arange(len(start)), np.diff(brackets.offset))
    # The second of two equal labels in a chain adds to the first.
    first = {}
    same = np.array([first.setdefault(x, i) for i, x in enumerate(table.names)], int)
    keys, place = np.unique(
        span * np.int64(len(table.names) + 1) + same[brackets.bracket],
        return_inverse=True,
    )
    span, label = np.divmod(keys, len(table.names) + 1)
    word, tag = np.nonzero(brackets.tag_weight)
    names = [table.names[x] for x in label] + [table.tag_names[x] for x in tag]
    marginal = np.bincount(place, weights=brackets.weight, minlength=len(keys))
    frame = pd.DataFrame(
        {
            "label": pd.array(names, dtype="string"),
            "start": np.concatenate([start[span], word]),
            "end": np.concatenate([end[span], word + 1]),
            "marginal": np.concatenate([marginal, brackets.tag_weight[word, tag]]),
            "tag": np.arange(len(names)) >= len(keys),
        }
    )
    order = np.lexsort((frame["tag"], -frame["end"], frame["start"]))
    return frame.iloc[order].reset_index(drop=True)
