"""Bracket marginals over original labels, and minimum-Bayes-risk trees of them."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lpcfg_sk._kernels import _decode_mbr as kernel
from lpcfg_sk._ragged import offsets
from lpcfg_sk.parsing._charts import span_bounds
from lpcfg_sk.treebank._labels import decode_table


class BracketTable(NamedTuple):
    """What the nonterminals of a grammar stand for in original trees.

    A label that occurs twice in one unary chain is two brackets.

    Attributes
    ----------
    names : tuple of str
        Original label of each bracket.
    tag_names : tuple of str or None
        The tags; None for a word without one.
    wide_offset, wide_bracket : ndarray
        Brackets of each nonterminal over several words, from the top down; none for
        intermediate nonterminals.
    leaf_offset, leaf_bracket : ndarray
        The same over one word, without the tag.
    tag : ndarray of int32
        Tag of each nonterminal over one word.
    """

    names: tuple
    tag_names: tuple
    wide_offset: np.ndarray
    wide_bracket: np.ndarray
    leaf_offset: np.ndarray
    leaf_bracket: np.ndarray
    tag: np.ndarray

    @classmethod
    def from_labels(cls, labels, binarized):
        """Read the labels of a grammar.

        Parameters
        ----------
        labels : sequence of str
            Nonterminals.
        binarized : bool
            Whether a :class:`TreeBinarizer` made them; else each stands for itself.

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
        return cls(
            tuple(name for name, _ in names),
            tuple(tags),
            offsets([len(x) for x in wide]),
            np.array([x for xs in wide for x in xs], dtype=np.int32),
            offsets([len(x) for x in leaf]),
            np.array([x for xs in leaf for x in xs], dtype=np.int32),
            np.array(tag, dtype=np.int32),
        )


class Brackets(NamedTuple):
    """Weights of the brackets of one sentence.

    Attributes
    ----------
    n : int
        Number of words.
    offset : ndarray of int64
        Span s has the brackets ``offset[s]:offset[s + 1]``.
    bracket : ndarray of int32
        Number in a :class:`BracketTable`.
    weight : ndarray of float64
        Marginal P(X, i, j).
    depth : ndarray of float64
        Mean depth within the unary chains that hold the bracket.
    tag_weight : ndarray of float64, shape (n, n_tags)
        Marginals of the tags of each word.
    """

    n: int
    offset: np.ndarray
    bracket: np.ndarray
    weight: np.ndarray
    depth: np.ndarray
    tag_weight: np.ndarray


def bracket_marginals(table, n, item_offset, item_label, posterior):
    """Turn posteriors of items into those of original brackets.

    Parameters
    ----------
    table : BracketTable
        What the nonterminals stand for.
    n : int
        Number of words.
    item_offset, item_label : ndarray
        Items of each span, see :class:`lpcfg_sk._kernels._chart_forest.Forest`.
    posterior : ndarray of float64
        Posterior of each item. Those of signed models count by their magnitude,
        rescaled to the sum 2n - 1 that the items of a tree have.

    Returns
    -------
    Brackets
    """
    weight = np.abs(posterior)
    weight *= (2 * n - 1) / weight.sum()
    offset = np.zeros(len(item_offset), dtype=np.int64)
    bracket, value, depth = kernel.collect_brackets(
        n,
        item_offset,
        item_label,
        weight,
        table.wide_offset,
        table.wide_bracket,
        table.leaf_offset,
        table.leaf_bracket,
        len(table.names),
        offset,
    )
    n_leaves = item_offset[n]
    tag_weight = np.zeros((n, len(table.tag_names)))
    word = np.repeat(np.arange(n), np.diff(item_offset[: n + 1]))
    tag = table.tag[item_label[:n_leaves]]
    np.add.at(tag_weight, (word, tag), weight[:n_leaves])
    return Brackets(n, offset, bracket, value, depth, tag_weight)


def bracket_tree(table, brackets, penalty):
    """Build the tree that maximises Σ (P(X, i, j) − λ) over its brackets.

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
    label, parent, start, stop : ndarray of int32
        Nodes in preorder; tags are numbered after the brackets.
    """
    nodes = np.empty((len(brackets.bracket) + brackets.n + 1, 5), dtype=np.int32)
    tag = np.argmax(brackets.tag_weight, axis=1) + len(table.names)
    count = kernel.bracket_tree(
        brackets.n,
        brackets.offset,
        brackets.bracket,
        brackets.weight,
        brackets.depth,
        penalty,
        tag.astype(np.int32),
        nodes,
    )
    return nodes[:count, :4].T


def flat_brackets(table, root, wide, leaves):
    """Nodes of a flat tree over original labels: one root, and a tag a word.

    Parameters
    ----------
    table : BracketTable
        What the nonterminals stand for.
    root : int
        Nonterminal over the whole sentence.
    wide : bool
        Whether it is one over several words, all of whose labels are taken; of the
        chain above one word only the top is.
    leaves : ndarray of int32
        Nonterminal over each word, of which the tag is taken.

    Returns
    -------
    ndarray of int32, shape (4, n_nodes)
        Label, parent, start and stop, as :func:`bracket_tree` gives them.
    """
    n = len(leaves)
    chain = table.wide_bracket[table.wide_offset[root] : table.wide_offset[root + 1]]
    chain = chain if wide else chain[:1]
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
        Marginals; None gives a frame without rows.

    Returns
    -------
    DataFrame
        Columns label, start, end, marginal, tag; a word without a tag of its own has
        the label NA.
    """
    if brackets is None:
        empty, none = np.zeros(0), np.zeros(0, dtype=np.int32)
        tags = np.zeros((0, len(table.tag_names)))
        brackets = Brackets(0, np.zeros(1, dtype=np.int64), none, empty, empty, tags)
    start, end = span_bounds(brackets.n)
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
