"""A node of a binary tree, as template callables see it."""

__all__ = ["Node"]


class Node:
    """A node of a binary tree, as template callables see it.

    Parameters
    ----------
    treebank : Treebank
        Binary trees.
    row : int
        Which tree.
    index : int
        Position of the node within its tree, in preorder.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.features import Node
    >>> node = Node(Treebank(["(S (NP I) (VP (V saw) (NP her)))"]), 0, 2)
    >>> node.label, node.n_words, node.left.word, node.parent.label
    ('VP', 2, 'saw', 'S')
    """

    __slots__ = ("_base", "_treebank", "index", "row")

    def __init__(self, treebank, row, index):
        self._treebank = treebank
        self._base = int(treebank.node_offsets[row])
        self.row = row
        self.index = index

    def _at(self, index):
        return Node(self._treebank, self.row, index)

    @property
    def label(self):
        """Label of the node."""
        return self._treebank.labels[self._treebank.label[self._base + self.index]]

    @property
    def is_leaf(self):
        """Whether the node is a pre-terminal."""
        return self._treebank.size[self._base + self.index] == 1

    @property
    def start(self):
        """Number of words before the node."""
        return int(self._treebank.start[self._base + self.index])

    @property
    def stop(self):
        """Number of words up to the end of the node."""
        return int(self._treebank.stop[self._base + self.index])

    @property
    def n_words(self):
        """Number of words below the node."""
        return self.stop - self.start

    @property
    def word(self):
        """Word of a pre-terminal as models see it, None for other nodes."""
        return self.words[self.start] if self.is_leaf else None

    @property
    def words(self):
        """Words of the whole sentence as models see them."""
        bank = self._treebank
        begin, end = bank.token_offsets[self.row : self.row + 2]
        return [bank.words[i] for i in bank.word[begin:end].tolist()]

    @property
    def tokens(self):
        """Words of the whole sentence as they are spelt."""
        bank = self._treebank
        begin, end = bank.token_offsets[self.row : self.row + 2]
        return [bank.tokens[i] for i in bank.token[begin:end].tolist()]

    @property
    def left(self):
        """Left child, None for a pre-terminal."""
        return None if self.is_leaf else self._at(self.index + 1)

    @property
    def right(self):
        """Right child, None for a pre-terminal."""
        if self.is_leaf:
            return None
        first = self.index + 1
        return self._at(first + int(self._treebank.size[self._base + first]))

    @property
    def parent(self):
        """Parent, None for the root."""
        parent = int(self._treebank.parent[self._base + self.index])
        return None if parent < 0 else self._at(parent)

    @property
    def sibling(self):
        """The other child of the parent, None for the root."""
        parent = self.parent
        if parent is None:
            return None
        return parent.right if self.index == parent.index + 1 else parent.left

    def __repr__(self):
        return f"<Node {self.label} {self.start}:{self.stop} of tree {self.row}>"
