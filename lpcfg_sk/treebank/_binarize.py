"""Binarisation of trees, and its inverse."""

from collections import Counter
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from lpcfg_sk._kernels import _binarize as kernel
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.treebank._columns import node_columns
from lpcfg_sk.treebank._heads import find_heads
from lpcfg_sk.treebank._labels import (
    BARE,
    decode_table,
    encode_label,
    forget_oldest,
    memory_length,
)
from lpcfg_sk.treebank._sharded import over_chunks
from lpcfg_sk.treebank._validation import (
    TreebankTransformerMixin,
    check_treebank,
    transforms_shards,
)

_DIRECTIONS = {"right": kernel.RIGHT, "left": kernel.LEFT, "head": kernel.HEAD}

# Most labels that the distinct labels of a treebank may remember in all. That is
# enough for nodes of 4,000 children that remember all siblings, about 30 MB of text.
_MAX_PIECES = 2**23

# Label of a one-word tree whose root is predicted to be a bare word.
_UNKNOWN_PHRASE = "X"


class TreeBinarizer(TreebankTransformerMixin, BaseEstimator):
    r"""Collapse unary chains into one label and make all trees binary.

    Afterwards every nonterminal is either an in-terminal, which has two children,
    or a pre-terminal, which has a word, as L-PCFGs assume. The labels hold what
    :meth:`inverse_transform` needs to restore the original trees exactly.

    Parameters
    ----------
    direction : {"right", "left", "head"}, default="right"
        How a node with children ``B C D`` is split. From left to right:
        ``A -> B @A``, ``@A -> C D``; from right to left: ``A -> @A D``,
        ``@A -> B C``; or towards the head child: first the children to the right of
        it are split off, outermost first, then those to the left.
    horizontal : int or None, default=0
        How many of the siblings split off last an intermediate node remembers in
        its label: ``@A|B`` for 1. None for all of them.
    memory_min_count : int, default=1
        An intermediate label that occurs fewer times than this in the training trees
        forgets its oldest siblings, one by one, until the label occurs often enough or
        no sibling is left: ``@NP|RB`` becomes ``@NP``. With 20, sentences need fewer
        rules that training never saw, and the grammar is smaller.
    vertical : int, default=1
        How many generations a label includes: with 2 an NP under S is ``NP^S``. A
        single pre-terminal keeps its label.
    head_rules : dict, default=None
        Rules that find head children for ``direction="head"``, see
        :func:`find_heads`. By default those for English.

    Attributes
    ----------
    preterminals_ : frozenset of str
        The original labels that stand over words more often than over several
        children. A label in its unusual role is marked with ``~``, so that no
        label has both roles.

    memories_ : frozenset of str or None
        The intermediate labels that remember siblings; None where all do.

    See Also
    --------
    unbinarize : The inverse as a function.
    decode_label : Meaning of a label.

    Notes
    -----
    A chain of unary nodes becomes one node labelled by all of them, ``S+VP``, also
    above a pre-terminal, ``NP+NN``. A word that has siblings but no pre-terminal
    gets the label ``\bare``. Sentences without a tree do not change, and neither do
    tokens and words. Feature blocks are dropped, because their nodes no longer exist.
    Trees that are already binarised are restored first.

    With ``horizontal=None`` the labels of a node with n children remember n²/2 labels
    in all. `transform` raises an error if that exceeds eight million.

    Examples
    --------
    >>> from lpcfg_sk import Treebank, TreeBinarizer
    >>> treebank = Treebank(["(S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ barks)))"])
    >>> binarizer = TreeBinarizer(horizontal=1)
    >>> binary = binarizer.fit_transform(treebank)
    >>> str(binary[0])
    '(S (NP (DT the) (@NP|DT (JJ old) (NN dog))) (VP+VBZ barks))'
    >>> binarizer.inverse_transform(binary) == treebank
    True
    """

    _parameter_constraints = {
        "direction": [StrOptions(set(_DIRECTIONS))],
        "horizontal": [Interval(Integral, 0, None, closed="left"), None],
        "memory_min_count": [Interval(Integral, 1, None, closed="left")],
        "vertical": [Interval(Integral, 1, None, closed="left")],
        "head_rules": [dict, None],
    }

    def __init__(
        self,
        direction="right",
        *,
        horizontal=0,
        memory_min_count=1,
        vertical=1,
        head_rules=None,
    ):
        self.direction = direction
        self.horizontal = horizontal
        self.memory_min_count = memory_min_count
        self.vertical = vertical
        self.head_rules = head_rules

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn which labels are those of pre-terminals, and which are frequent.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees.
        y : None
            Ignored.

        Returns
        -------
        self : TreeBinarizer
        """
        X = check_treebank(X, estimator=self, sharded=True)
        excess = Counter()
        for part in over_chunks(self._leaf_excess, X):
            excess.update(part)
        self.preterminals_ = frozenset(name for name, n in excess.items() if n > 0)
        self.memories_ = None
        if self.memory_min_count > 1:
            self.memories_ = self._frequent_memories(X)
        return self

    def _frequent_memories(self, X):
        """Return the intermediate labels that keep their memory."""
        counts = Counter()
        for part in over_chunks(self._memory_counts, X):
            counts.update(part)
        kept = set()
        # Longest memories come first, because they add to the counts of shorter ones.
        for length in range(max((n for n, _ in counts), default=0), 0, -1):
            labels = {label: n for (k, label), n in counts.items() if k == length}
            for label, n in labels.items():
                if n >= self.memory_min_count:
                    kept.add(label)
                else:
                    counts[length - 1, forget_oldest(label)] += n
        return frozenset(kept)

    def _memory_counts(self, X):
        """Count labels with memory by its length and their name."""
        binary = self.transform(X)
        n = np.bincount(binary.label[binary.label >= 0], minlength=len(binary.labels))
        lengths = map(memory_length, binary.labels)
        named = zip(lengths, binary.labels, n.tolist(), strict=True)
        return {(length, label): k for length, label, k in named if length}

    def _leaf_excess(self, X):
        """Return how much more often each label is over a word than over nodes."""
        treebank = self._check(X, allow_empty=False)
        size, label = treebank.size, treebank.label
        over_word = label[(size == 1) & (label >= 0)]
        # The first child of a node comes right after it.
        over_several = label[(size > 1) & (np.append(size[1:], 0) != size - 1)]
        counts = (
            np.bincount(labels, minlength=len(treebank.labels))
            for labels in (over_word, over_several)
        )
        names = treebank.labels.strings
        return dict(zip(names, np.subtract(*counts).tolist(), strict=True))

    @transforms_shards
    def transform(self, X):
        """Make trees binary.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees; sentences without a tree do not change.

        Returns
        -------
        treebank : Treebank
            Binary trees over the same tokens.
        """
        treebank = self._check(X)
        if treebank.n_nodes == 0:
            # Sentences to parse, often one at a time: only tags have labels.
            tag, labels = self._tags(treebank, [])
            empty = {"blocks": {}, "block_names": {}}
            return treebank.replace(tag=tag, labels=labels, **empty, binarized=True)
        head = np.zeros(0, dtype=np.int32)
        if self.direction == "head":
            head = find_heads(treebank, self.head_rules)
        pair, start, stop, node_offsets, keys, pieces = kernel.binarize_trees(
            node_columns(treebank),
            head,
            len(treebank.labels),
            _DIRECTIONS[self.direction],
            # Larger than any number of siblings or ancestors to remember.
            -1 if self.horizontal is None else min(self.horizontal, 2**31),
            min(self.vertical, 2**31),
            _MAX_PIECES,
        )
        if pieces > _MAX_PIECES:
            raise ValueError(
                f"with horizontal={self.horizontal} and vertical={self.vertical} the "
                f"labels of these trees would remember more than {_MAX_PIECES} labels "
                "in all; choose a smaller horizontal or vertical, such as 2"
            )
        size, parent = kernel.link_binary(start, stop, node_offsets)
        label, strings = self._label_strings(pair, keys, treebank.labels.strings)
        label, strings = self._forget_rare_memories(label, strings)
        tag, strings = self._tags(treebank, strings)
        return treebank.replace(
            label=label,
            size=size,
            parent=parent,
            start=start,
            stop=stop,
            node_offsets=node_offsets,
            tag=tag,
            labels=strings,
            blocks={},
            block_names={},
            binarized=True,
            check=False,
        )

    def inverse_transform(self, X):
        """Restore the original trees, from the labels alone.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees made by a TreeBinarizer with any setting, or by a parser that
            learned from such trees.

        Returns
        -------
        treebank : Treebank
            See :func:`unbinarize`.
        """
        return unbinarize(check_treebank(X, estimator=self, allow_empty=True))

    def _check(self, X, allow_empty=True):
        treebank = check_treebank(X, estimator=self, allow_empty=allow_empty)
        return unbinarize(treebank) if treebank.binarized else treebank

    def _marked(self, label, leaf):
        return leaf != (label in self.preterminals_)

    def _label_strings(self, pairs, keys, names):
        """Return the label of each pair, as an id and as a table of strings."""
        used, label = np.unique(pairs, return_inverse=True)
        first, second = (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()

        def path(pair):
            symbols = []
            while pair >= 0 and first[pair] not in (kernel.ANCESTORS, kernel.SIBLINGS):
                symbol = second[pair]
                symbols.append(names[symbol] if symbol < len(names) else None)
                pair = first[pair]
            return symbols[::-1]

        strings = []
        for pair in used.tolist():
            base, memory = first[pair], second[pair]
            if first[base] in (kernel.INNER, kernel.LEAF):
                chain = path(second[base])
                string = BARE
                if chain != [None]:
                    leaf = first[base] == kernel.LEAF
                    string = encode_label(
                        chain,
                        marked=self._marked(chain[-1], leaf),
                        ancestors=path(memory),
                    )
            else:
                string = encode_label(
                    [names[second[first[base]]]],
                    ancestors=path(second[base]),
                    intermediate=True,
                    siblings=path(memory),
                )
            strings.append(string)
        return label.astype(np.int32), strings

    def _forget_rare_memories(self, label, strings):
        """Return labels and their strings with memories that training supports."""
        # Files of earlier versions have no such attribute.
        memories = getattr(self, "memories_", None)
        if memories is None:
            return label, strings
        table, ids = {}, []
        for string in strings:
            while memory_length(string) and string not in memories:
                string = forget_oldest(string)
            ids.append(table.setdefault(string, len(table)))
        return np.array(ids, dtype=np.int32)[label], list(table)

    def _tags(self, treebank, strings):
        """Return given tags as labels of pre-terminals, which join the table."""
        ids = {s: i for i, s in enumerate(strings)}
        mapping = np.full(len(treebank.labels) + 1, -1, dtype=np.int32)
        for tag in np.unique(treebank.tag[treebank.tag >= 0]).tolist():
            name = treebank.labels[tag]
            string = encode_label([name], marked=self._marked(name, leaf=True))
            mapping[tag] = ids.setdefault(string, len(ids))
        return mapping[treebank.tag], list(ids)


def unbinarize(treebank):
    """Restore the original trees of binarised ones, from their labels alone.

    Chains of labels become unary nodes again, and the children of an intermediate
    node become children of the nearest node above it that is not intermediate.

    Parameters
    ----------
    treebank : Treebank
        Trees made by :class:`TreeBinarizer`, or by a parser that learned from them.

    Returns
    -------
    treebank : Treebank
        Trees over the same tokens, words and tags. Feature blocks are dropped, because
        their nodes no longer exist.

    Notes
    -----
    A parser may put labels in places where a TreeBinarizer would not; all words are
    kept. An intermediate root, or an intermediate node over a word, gets the label of
    the node that was split (``@NP`` becomes ``NP``). A bare word that is a whole tree
    becomes an ``X``.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import unbinarize
    >>> str(unbinarize(Treebank(["(S+VP (VB ask) (@VP (NP+PRP me) (NP+NN now)))"]))[0])
    '(S (VP (VB ask) (NP (PRP me)) (NP (NN now))))'
    """
    table = decode_table(treebank.labels)
    originals = dict.fromkeys((*table.originals, _UNKNOWN_PHRASE))
    nodes = kernel.unbinarize_trees(
        node_columns(treebank),
        table.intermediate,
        table.chain_offsets,
        table.chain,
        list(originals).index(_UNKNOWN_PHRASE),
    )
    # A tag is the lowest label of its chain; a bare word has none.
    lowest = np.append(table.chain, np.int32(-1))[table.chain_offsets[1:] - 1]
    lowest[np.diff(table.chain_offsets) == 0] = -1
    return treebank.replace(
        **nodes._asdict(),
        tag=np.append(lowest, np.int32(-1))[treebank.tag],
        labels=originals,
        blocks={},
        block_names={},
        binarized=False,
        check=False,
    )
