"""Feature templates by name, and the nodes that callables see.

A named template gives integer keys of all nodes at once, and their names.

A key is a mixed-radix number over the fitted ids of :class:`Productions`, hence
exact: two features never share a column. Key -1 means that a template has no
feature for a node. Every key holds the label of the node, as the paper's Ω^a needs.

A template has two methods: ``keys(nodes, productions)`` returns one int64 key per node,
``name(key, productions)`` what a key stands for.
"""

from collections.abc import Sequence

import numpy as np

#: Larger than any span; keys ``label * WIDTHS + width`` stay below 2**63.
WIDTHS = np.int64(1) << 31


class _LabelPair:
    """The label of a node with one of its children's, or with a tag."""

    def __init__(self, pick):
        self._pick = pick

    def keys(self, nodes, productions):
        inner = np.flatnonzero(nodes.left >= 0)
        a, b = nodes.label[inner], self._pick(nodes)[inner]
        return _scatter(
            nodes, inner, a * len(productions.labels) + b, (a >= 0) & (b >= 0)
        )

    def name(self, key, productions):
        a, b = divmod(int(key), len(productions.labels))
        return f"{productions.labels[a]} {productions.labels[b]}"


def _left_label(nodes):
    return nodes.label[nodes.left]


def _right_label(nodes):
    return nodes.label[nodes.right]


def _head_tag(nodes):
    return nodes.head


class _Rule:
    """The rule at a node that has children."""

    def keys(self, nodes, productions):
        return np.where(nodes.left >= 0, nodes.production, -1)

    def name(self, key, productions):
        return productions.name(int(key))


class _Word(_Rule):
    """The rule a → x at a pre-terminal."""

    def keys(self, nodes, productions):
        return np.where(nodes.left < 0, nodes.production, -1)


class _RulePair:
    """The rule at a node with the rule at one of its children."""

    def __init__(self, child):
        self._child = child

    def keys(self, nodes, productions):
        inner = np.flatnonzero(nodes.left >= 0)
        rule = nodes.production[inner]
        below = nodes.production[getattr(nodes, self._child)[inner]]
        known = (rule >= 0) & (below >= 0)
        return _scatter(nodes, inner, rule * len(productions) + below, known)

    def name(self, key, productions):
        rule, below = divmod(int(key), len(productions))
        return f"{productions.name(rule)} | {productions.name(below)}"


class _Width:
    """The label of a node with a number of words."""

    def __init__(self, column, inner_only):
        self._column = column
        self._inner_only = inner_only

    def keys(self, nodes, productions):
        key = nodes.label * WIDTHS + getattr(nodes, self._column)
        valid = nodes.label >= 0
        if self._inner_only:
            valid = valid & (nodes.left >= 0)
        return np.where(valid, key, -1)

    def name(self, key, productions):
        a, width = divmod(int(key), int(WIDTHS))
        return f"{productions.labels[a]} {width}"


class _RulesAbove:
    """The chain of up to `depth` rules above a node, the foot marked.

    A step is "child of rule r, left or right" or, at a root, "top, label a". The
    template has no feature where the path to the root has fewer steps.
    """

    def __init__(self, depth):
        self._depth = depth

    def keys(self, nodes, productions):
        n_steps = self._n_steps(productions)
        if n_steps**self._depth >= 2**63:
            raise ValueError(
                f"the treebank has {productions.n_rules} rules, too many for keys of "
                f"{self._depth} rules above a node; leave that template out, or use a "
                "coarser binarisation"
            )
        rule = nodes.production[nodes.up]
        step = np.where(rule >= 0, 2 * rule + nodes.is_right, -1)
        root = nodes.up < 0
        step[root] = np.where(
            nodes.label >= 0, 2 * productions.n_rules + nodes.label, -1
        )[root]
        key, known = step.copy(), step >= 0
        place = nodes.up
        for _ in range(self._depth - 1):
            known &= place >= 0
            key = key * n_steps + step[place]
            known &= step[place] >= 0
            place = nodes.up[place]
        return np.where(known, key, -1)

    def name(self, key, productions):
        n_steps, key, steps = self._n_steps(productions), int(key), []
        for _ in range(self._depth):
            key, step = divmod(key, n_steps)
            steps.append(self._step_name(step, productions))
        return " | ".join(reversed(steps))

    @staticmethod
    def _n_steps(productions):
        return 2 * productions.n_rules + len(productions.labels)

    @staticmethod
    def _step_name(step, productions):
        if step >= 2 * productions.n_rules:
            return f"TOP->[{productions.labels[step - 2 * productions.n_rules]}]"
        rule, is_right = divmod(step, 2)
        a, b, c = productions.symbols(rule)
        return f"{a}->{b} [{c}]" if is_right else f"{a}->[{b}] {c}"


class _Ancestors:
    """The labels of a node and of its nearest ancestors.

    The place above a root has a symbol of its own.
    """

    def __init__(self, depth):
        self._depth = depth

    def keys(self, nodes, productions):
        radix = len(productions.labels) + 1
        known = nodes.label >= 0
        key, place = nodes.label.copy(), np.arange(len(nodes.label))
        for _ in range(self._depth):
            place = np.where(place >= 0, nodes.up[place], -1)
            label = np.where(place >= 0, nodes.label[place], radix - 1)
            known &= label >= 0
            key = key * radix + label
        return np.where(known, key, -1)

    def name(self, key, productions):
        names = [*productions.labels.strings, "TOP"]
        key, parts = int(key), []
        for _ in range(self._depth + 1):
            key, label = divmod(key, len(names))
            parts.append(names[label])
        return " ".join(reversed(parts))


class _OutsideHead:
    """Label of a node, and the tag of the next head on the way to the root."""

    def keys(self, nodes, productions):
        radix = len(productions.labels) + 1
        tag = np.where(nodes.outside_head >= 0, nodes.outside_head, radix - 1)
        return np.where(nodes.label >= 0, nodes.label * radix + tag, -1)

    def name(self, key, productions):
        names = [*productions.labels.strings, "TOP"]
        a, tag = divmod(int(key), len(names))
        return f"{names[a]} {names[tag]}"


def _scatter(nodes, where, keys, known):
    out = np.full(len(nodes.label), -1, dtype=np.int64)
    out[where[known]] = keys[known]
    return out


#: Inside templates of Cohen et al. (2013) by name.
INSIDE_TEMPLATES = {
    "left": _LabelPair(_left_label),
    "right": _LabelPair(_right_label),
    "rule": _Rule(),
    "rule+left": _RulePair("left"),
    "rule+right": _RulePair("right"),
    "head": _LabelPair(_head_tag),
    "length": _Width("n_words", inner_only=True),
    "word": _Word(),
}

#: Outside templates of Cohen et al. (2013) by name.
OUTSIDE_TEMPLATES = {
    "rule": _RulesAbove(1),
    "rule2": _RulesAbove(2),
    "rule3": _RulesAbove(3),
    "parent": _Ancestors(1),
    "grandparent": _Ancestors(2),
    "head": _OutsideHead(),
    "left": _Width("before", inner_only=False),
    "right": _Width("after", inner_only=False),
}


class FeatureNames(Sequence):
    """Readable names of the columns of a block, made one at a time on demand.

    Parameters
    ----------
    prefixes : list of str
        Prefix of the names of each template's features.
    templates : list
        Named templates; None for a callable, whose keys are the names.
    vocabularies : list
        Keys of each template's features.
    productions : Productions
        The ids that keys are made of.
    """

    def __init__(self, prefixes, templates, vocabularies, productions):
        self._prefixes = prefixes
        self._templates = templates
        self._vocabularies = vocabularies
        self._productions = productions
        self._ends = np.cumsum([len(keys) for keys in vocabularies])

    def __len__(self):
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, column):
        if isinstance(column, slice):
            return [self[i] for i in range(*column.indices(len(self)))]
        if not -len(self) <= column < len(self):
            raise IndexError(f"column {column} of {len(self)} features")
        column %= len(self)
        part = int(np.searchsorted(self._ends, column, side="right"))
        keys, template = self._vocabularies[part], self._templates[part]
        key = keys[column - int(self._ends[part]) + len(keys)]
        name = key if template is None else template.name(key, self._productions)
        return f"{self._prefixes[part]}{name}"


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
