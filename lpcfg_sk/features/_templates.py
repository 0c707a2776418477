"""Named templates: integer keys of all nodes at once, and their names.

A key is a mixed-radix number over the fitted ids of :class:`Productions`, hence
exact: two features never share a column. Key -1 means that a template has no
feature for a node. Every key holds the label of the node, as the paper's Ω^a needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

__all__ = ["INSIDE_TEMPLATES", "OUTSIDE_TEMPLATES", "FeatureNames"]

#: Larger than any span; keys ``label * WIDTHS + width`` stay below 2**63.
WIDTHS = np.int64(1) << 31


class _Template(ABC):
    """Turns node columns into keys, and keys into names."""

    @abstractmethod
    def keys(self, nodes, productions):
        """Return one int64 key per node, -1 for none."""

    @abstractmethod
    def name(self, key, productions):
        """Return what a key stands for."""


class _LabelPair(_Template):
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


class _Rule(_Template):
    """The rule at a node that has children."""

    def keys(self, nodes, productions):
        return np.where(nodes.left >= 0, nodes.production, -1)

    def name(self, key, productions):
        return productions.name(int(key))


class _Word(_Rule):
    """The rule a → x at a pre-terminal."""

    def keys(self, nodes, productions):
        return np.where(nodes.left < 0, nodes.production, -1)


class _RulePair(_Template):
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


class _Width(_Template):
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


class _RulesAbove(_Template):
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


class _Ancestors(_Template):
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


class _OtherHead(_Template):
    """Label of a node, and the tag of the next head on the way to the root."""

    def keys(self, nodes, productions):
        radix = len(productions.labels) + 1
        tag = np.where(nodes.other_head >= 0, nodes.other_head, radix - 1)
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
    "head": _OtherHead(),
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
        Named templates, or None for callables, whose keys are names.
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
