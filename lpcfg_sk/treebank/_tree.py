"""One constituency tree."""

import re
import sys

import numpy as np

from lpcfg_sk.treebank._penn import escape_brackets, scan_brackets
from lpcfg_sk.treebank._picture import draw_svg

#: Greatest number of characters of a drawing, which grows with the square of the depth.
_LARGEST_DRAWING = 10_000_000
_BRACKET = re.compile("[()]")


class Tree:
    """One constituency tree, or a node with all that is below it.

    Trees are immutable. No method is recursive, so only memory bounds the depth of a
    tree.

    Parameters
    ----------
    label : str or None
        Label of the root; None for a sentence without a parse, whose children are
        its words.
    children : iterable of Tree or str
        Subtrees and words. A node over exactly one word is a pre-terminal.

    Examples
    --------
    >>> from lpcfg_sk import Tree
    >>> tree = Tree("S", [Tree("NP", [Tree("NNS", ["dogs"])]), Tree("VP", ["bark"])])
    >>> str(tree)
    '(S (NP (NNS dogs)) (VP bark))'
    >>> tree.words()
    ['dogs', 'bark']
    >>> tree == Tree.from_string("(S (NP (NNS dogs)) (VP bark))")
    True
    """

    def __init__(self, label, children):
        if isinstance(children, str):
            raise TypeError(
                f"children are a list of Tree or str, got one str under {label!r}; "
                f"write [{children!r}]"
            )
        children = tuple(children)
        if not children:
            raise ValueError(
                f"node {label!r} has no children; every node covers a word"
            )
        if label is not None and not isinstance(label, str):
            raise TypeError(f"a label is a str, got {type(label).__name__}")
        labels, sizes, words = [label], [1], []
        if len(children) == 1 and isinstance(children[0], str):
            words.append(children[0])
        else:
            for child in children:
                if isinstance(child, str):
                    labels.append(None)
                    sizes.append(1)
                    words.append(child)
                elif isinstance(child, Tree):
                    if child.label is None:
                        raise ValueError(
                            "a sentence without a parse cannot be a subtree"
                        )
                    below = zip((labels, sizes, words), child._content(), strict=True)
                    for column, own in below:
                        column.extend(own)
                else:
                    raise TypeError(
                        "children are Tree or str, "
                        f"got {type(child).__name__} under {label!r}"
                    )
            sizes[0] = len(sizes)
        if label is None:
            if not all(isinstance(child, str) for child in children):
                raise ValueError("a sentence without a parse holds words only")
            labels, sizes = [], []
        self._set(tuple(labels), tuple(sizes), _starts(sizes), tuple(words), 0)

    def _set(self, labels, sizes, starts, words, node):
        self._labels = labels
        self._sizes = sizes
        self._starts = starts
        self._words = words
        self._lo = node
        self._hi = node + sizes[node] if sizes else 0

    @classmethod
    def _from_columns(cls, labels, sizes, starts, words, node=0):
        """Return the subtree at one node of the preorder columns of a tree."""
        tree = cls.__new__(cls)
        tree._set(labels, sizes, starts, words, node)
        return tree

    @classmethod
    def from_string(cls, text):
        r"""Read one bracketed tree, taking labels and words literally.

        Parameters
        ----------
        text : str
            For example ``"(S (NP (NNS dogs)) (VP (VBP bark)))"``. Brackets within
            words are ``\(`` and ``\)``, as ``str(tree)`` writes them.

        Returns
        -------
        tree : Tree

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> print(Tree("NP", [Tree("(", ["("]), Tree("NN", ["x"])]))
        (NP (\( \() (NN x))
        >>> Tree.from_string(r"(NP (\( \() (NN x))").words()
        ['(', 'x']
        """
        if not isinstance(text, str):
            raise TypeError(f"a bracketed tree is a str, got {type(text).__name__}")
        columns = scan_brackets([text])
        labels, tokens = [*columns["labels"], None], columns["tokens"]
        return cls._from_columns(
            tuple(labels[i] for i in columns["label"].tolist()),
            tuple(columns["size"].tolist()),
            tuple(columns["start"].tolist()),
            tuple(tokens[i] for i in columns["token"].tolist()),
        )

    @property
    def label(self):
        """Label of the root, None for a sentence without a parse."""
        return self._labels[self._lo] if self._labels else None

    @property
    def children(self):
        """Tuple of subtrees and words."""
        if not self._labels:
            return self._words
        labels, sizes, starts = self._labels, self._sizes, self._starts
        if self._hi - self._lo == 1:
            return (self._words[starts[self._lo]],)
        children, node = [], self._lo + 1
        while node < self._hi:
            if labels[node] is None:
                children.append(self._words[starts[node]])
            else:
                children.append(
                    Tree._from_columns(labels, sizes, starts, self._words, node)
                )
            node += sizes[node]
        return tuple(children)

    def words(self):
        """List of the words below this node.

        Returns
        -------
        list of str
            From left to right.
        """
        return list(self._span())

    def _span(self):
        if not self._labels:
            return self._words
        # In preorder the node after a subtree starts where the subtree stops.
        stop = self._starts[self._hi] if self._hi < len(self._starts) else None
        return self._words[self._starts[self._lo] : stop]

    def tags(self):
        """List of the pre-terminal labels, None for a bare word.

        Returns
        -------
        tags : list of str or None
        """
        labels, sizes, _ = self._content()
        return [label for label, n in zip(labels, sizes, strict=True) if n == 1]

    def leaves(self):
        """List of the words below this node, as NLTK calls them.

        Returns
        -------
        list of str
        """
        return self.words()

    def pos(self):
        """List of the words with their tags.

        Returns
        -------
        list of (str, str or None)
            None for a bare word.

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> Tree.from_string("(S (NP (NNS dogs)) (VP (VBP bark)))").pos()
        [('dogs', 'NNS'), ('bark', 'VBP')]
        """
        tags = self.tags() or [None] * len(self._words)
        return list(zip(self._span(), tags, strict=True))

    def subtrees(self, filter=None):
        """Yield this tree and all its subtrees, parents before children.

        Parameters
        ----------
        filter : callable, default=None
            Which subtrees to yield, ``filter(tree) -> bool``; all where None.

        Yields
        ------
        Tree

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> tree = Tree.from_string("(S (NP (NNS dogs)) (VP (VBP bark)))")
        >>> [str(t) for t in tree.subtrees(lambda t: t.label == "NP")]
        ['(NP (NNS dogs))']
        """
        columns = (self._labels, self._sizes, self._starts, self._words)
        for node in range(self._lo, self._hi):
            if self._labels[node] is not None:
                tree = Tree._from_columns(*columns, node)
                if filter is None or filter(tree):
                    yield tree

    def height(self):
        """Number of nodes from the root to the deepest word, the word included.

        Returns
        -------
        int
            2 for a pre-terminal over its word, as in NLTK.

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> Tree.from_string("(S (NP (NNS dogs)) (VP bark))").height()
        4
        """
        deepest, ends = 2, []
        for node in range(self._lo, self._hi):
            while ends and ends[-1] == node:
                ends.pop()
            bare = self._labels[node] is None
            deepest = max(deepest, len(ends) + (1 if bare else 2))
            if self._sizes[node] > 1:
                ends.append(node + self._sizes[node])
        return deepest

    def spans(self):
        """List of the labelled spans of all nodes.

        Returns
        -------
        list of (str, int, int)
            Label, first word and the word after the last, in preorder; pre-terminals
            included.

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> Tree.from_string("(S (NP (NNS dogs)) (VP bark))").spans()
        [('S', 0, 2), ('NP', 0, 1), ('NNS', 0, 1), ('VP', 1, 2)]
        """
        labels, sizes, words = self._content()
        # In preorder the node after a subtree starts where the subtree stops.
        starts = (*_starts(sizes), len(words))
        return [
            (label, starts[node], starts[node + sizes[node]])
            for node, label in enumerate(labels)
            if label is not None
        ]

    def productions(self):
        """List of the rules of the tree, as text.

        Returns
        -------
        list of str
            In preorder, written as NLTK writes them, with words in quotes.

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> Tree.from_string("(S (NP (NNS dogs)) (VP bark))").productions()
        ['S -> NP VP', 'NP -> NNS', "NNS -> 'dogs'", "VP -> 'bark'"]
        """
        return [
            " ".join(
                [
                    f"{tree.label} ->",
                    *(repr(c) if isinstance(c, str) else c.label for c in tree),
                ]
            )
            for tree in self.subtrees()
        ]

    def pretty_print(self, stream=None):
        """Print the drawing of the tree.

        Parameters
        ----------
        stream : file, default=None
            Where to print; the standard output where None.
        """
        (stream or sys.stdout).write(self.draw() + "\n")

    def __len__(self):
        return len(self.children)

    def __iter__(self):
        return iter(self.children)

    def __array__(self, dtype=None, copy=None):
        # Without this method numpy would take the trees of a list apart.
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(f"trees make an array of dtype object, not of {dtype}")
        if copy is False:
            raise ValueError("trees cannot be made an array without a copy")
        array = np.empty((), dtype=object)
        array[()] = self
        return array

    def __getitem__(self, i):
        return self.children[i]

    def _content(self):
        return (
            self._labels[self._lo : self._hi],
            self._sizes[self._lo : self._hi],
            self._span(),
        )

    def __eq__(self, other):
        if not isinstance(other, Tree):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self):
        return hash(self._content())

    def __reduce__(self):
        labels, sizes, words = self._content()
        return Tree._from_columns, (labels, sizes, _starts(sizes), words)

    def __str__(self):
        if not self._labels:
            return " ".join(self._words)
        labels, _, words = self._content()
        plain = not _BRACKET.search(" ".join([*filter(None, labels), *words]))
        write = str if plain else escape_brackets
        pieces, ends = [], []
        for node in range(self._lo, self._hi):
            closed = 0
            while ends and ends[-1] == node:
                ends.pop()
                closed += 1
            gap = ")" * closed + (" " if pieces else "")
            label, size = self._labels[node], self._sizes[node]
            label = label and write(label)
            if size > 1:
                pieces.append(f"{gap}({label}")
                ends.append(node + size)
            else:
                word = write(self._words[self._starts[node]])
                pieces.append(
                    f"{gap}{word}" if label is None else f"{gap}({label} {word})"
                )
        pieces.append(")" * len(ends))
        return "".join(pieces)

    def __repr__(self):
        text = str(self)
        return f"Tree({text if len(text) <= 60 else text[:57] + '...'!s})"

    def to_nltk(self):
        """Convert to an ``nltk.Tree`` (needs nltk).

        Returns
        -------
        tree : nltk.Tree
        """
        from nltk import Tree as NltkTree

        if not self._labels:
            raise ValueError("a sentence without a parse has no nltk.Tree")
        root = NltkTree("", [])
        stack = [(root, self._hi)]
        for node in range(self._lo, self._hi):
            while stack[-1][1] <= node:
                stack.pop()
            label, size = self._labels[node], self._sizes[node]
            children = stack[-1][0]
            if size > 1:
                made = NltkTree(label, [])
                children.append(made)
                stack.append((made, node + size))
            else:
                word = self._words[self._starts[node]]
                children.append(word if label is None else NltkTree(label, [word]))
        return root[0]

    def draw(self):
        """Draw the tree as text.

        Returns
        -------
        drawing : str
            One line per node, with words beside their pre-terminals.

        Raises
        ------
        ValueError
            If the drawing would have more than ten million characters.

        Examples
        --------
        >>> from lpcfg_sk import Tree
        >>> print(Tree.from_string("(S (NP (NNS dogs)) (VP (VBP bark)))").draw())
        S
        ├── NP
        │   └── NNS dogs
        └── VP
            └── VBP bark
        """
        size = self._drawing_size()
        if size > _LARGEST_DRAWING:
            raise ValueError(
                f"the drawing would have about {size:,} characters, more than "
                f"{_LARGEST_DRAWING:,}; use str(tree), or draw a subtree"
            )
        lines, stack = [], [(self, "", "")]
        while stack:
            node, first, rest = stack.pop()
            if isinstance(node, str):
                lines.append(first + node)
                continue
            children = node.children
            if len(children) == 1 and isinstance(children[0], str):
                lines.append(f"{first}{node.label} {children[0]}")
                continue
            lines.append(first + (node.label or "·"))
            last = len(children) - 1
            for i, child in reversed(list(enumerate(children))):
                branch = "└── " if i == last else "├── "
                below = "    " if i == last else "│   "
                stack.append((child, rest + branch, rest + below))
        return "\n".join(lines)

    def _drawing_size(self):
        """Return the number of characters of the drawing, without making it."""
        size, ends = sum(map(len, self._span())), []
        for node in range(self._lo, self._hi):
            while ends and ends[-1] == node:
                ends.pop()
            # Four characters per level, the label, a space and the end of the line.
            size += 4 * len(ends) + len(self._labels[node] or "") + 2
            if self._sizes[node] > 1:
                ends.append(node + self._sizes[node])
        return size

    def _repr_svg_(self):
        return draw_svg(self)

    # For galleries and mail, which show only HTML.
    def _repr_html_(self):
        return f'<div style="overflow-x:auto">{self._repr_svg_()}</div>'


def _starts(sizes):
    starts, leaves = [], 0
    for size in sizes:
        starts.append(leaves)
        leaves += size == 1
    return tuple(starts)
