"""Heads of constituents, found by rules."""

import numpy as np

from lpcfg_sk._kernels._columns import HeadRules
from lpcfg_sk._kernels._columns import find_heads as _find_heads
from lpcfg_sk.treebank._columns import node_columns
from lpcfg_sk.treebank._labels import decode_table

_COLLINS = {
    "ADJP": (
        "left",
        "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB",
    ),
    "ADVP": ("right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": ("right", "CC RB IN"),
    "FRAG": ("right", ""),
    "INTJ": ("left", ""),
    "LST": ("right", "LS :"),
    "NAC": ("left", "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": ("right", "IN TO VBG VBN RP FW"),
    "PRN": ("left", ""),
    "PRT": ("right", "RP"),
    "QP": ("left", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "ROOT": ("left", "S SINV SQ SBARQ FRAG NP VP"),
    "RRC": ("right", "VP NP ADVP ADJP PP"),
    "S": ("left", "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": ("left", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": ("left", "SQ S SINV SBARQ FRAG"),
    "SINV": ("left", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": ("left", "VBZ VBD VBP VB MD VP SQ"),
    "UCP": ("right", ""),
    "VP": ("left", "TO VBD VBN MD VBZ VB VBG VBP AUX AUXG VP ADJP NN NNS NP"),
    "WHADJP": ("left", "CC WRB JJ ADJP"),
    "WHADVP": ("right", "CC WRB"),
    "WHNP": ("left", "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": ("right", "IN TO FW"),
    None: ("right", ""),
}
_NOUN_PHRASE = [
    ("right", [("NN", "NNP", "NNPS", "NNS", "NX", "POS", "JJR")]),
    ("left", ["NP"]),
    ("right", [("$", "ADJP", "PRN"), "CD", ("JJ", "JJS", "RB", "QP")]),
]

#: Head rules for labels of the Penn Treebank, after Magerman (1995) and Collins
#: (1999, appendix A), with ROOT added.
ENGLISH_HEAD_RULES = {
    **{label: (side, names.split()) for label, (side, names) in _COLLINS.items()},
    "NP": _NOUN_PHRASE,
    "NX": _NOUN_PHRASE,
}

_PUNCTUATION = frozenset({",", ".", ":", "``", "''", "-LRB-", "-RRB-", "#", "HYPH"})


def find_heads(treebank, rules=None):
    """Find the head child of every node.

    Parameters
    ----------
    treebank : Treebank
        Trees, binarised or not. For binarised trees the original labels are used, so
        that the head word of a node is the same before and after binarisation.
    rules : dict, default=None
        Maps the label of a parent to ``(direction, labels)``: the children are
        searched for each of the labels in turn, from the ``"left"`` or from the
        ``"right"``, and the first match is the head. The members of a tuple or set
        among the labels are searched for at the same time. A list of such pairs is
        tried in order. If nothing matches, the head is the first child in the (last)
        direction that is not punctuation. The key None is for all other labels.
        By default the rules for English, :data:`ENGLISH_HEAD_RULES`.

    Returns
    -------
    head : ndarray of int32, shape (n_nodes,)
        Index of the head child within its tree; a leaf is its own head.

    Notes
    -----
    Collins' special treatment of coordination is left out: among conjuncts of the
    same label, the direction of the rule decides.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import find_heads
    >>> treebank = Treebank(["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"])
    >>> find_heads(treebank)
    array([4, 3, 2, 3, 5, 5], dtype=int32)
    """
    return _heads_and_tokens(treebank, rules)[0]


def head_token(treebank, rules=None):
    """Find the lexical head of every node.

    Parameters
    ----------
    treebank : Treebank
        Trees, binarised or not.
    rules : dict, default=None
        See :func:`find_heads`.

    Returns
    -------
    token : ndarray of int32, shape (n_nodes,)
        Index of the head word within its sentence.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank import head_token
    >>> treebank = Treebank(["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"])
    >>> head_token(treebank)
    array([2, 1, 0, 1, 2, 2], dtype=int32)
    """
    return _heads_and_tokens(treebank, rules)[1]


def _heads_and_tokens(treebank, rules):
    labels = treebank.labels.strings
    if treebank.binarized:
        table = decode_table(labels)
        intermediate, names = table.intermediate, (*table.originals, None)
        # A bare word has no chain; its name is the None at the end.
        chain = np.append(table.chain, np.int32(len(names) - 1))
        first, stop = table.chain_offsets[:-1], table.chain_offsets[1:]
        bare = first == stop
        upper = np.where(bare, len(names) - 1, chain[first])
        lower = np.where(bare, len(names) - 1, chain[stop - 1])
    else:
        intermediate, names = np.zeros(len(labels), dtype=np.bool_), (*labels, None)
        upper = lower = np.arange(len(labels), dtype=np.int32)
    column = np.append(upper, len(names) - 1).astype(np.int32)
    row, rank = _compile_rules(rules, names)
    return _find_heads(
        node_columns(treebank), HeadRules(intermediate, row[lower], column, rank)
    )


def _compile_rules(rules, names):
    """Return the rows and ranks of head rules over the given labels."""
    rules = ENGLISH_HEAD_RULES if rules is None else rules
    ids = {name: i for i, name in enumerate(names)}
    punctuation = [ids[name] for name in _PUNCTUATION if name in ids]
    default = rules.get(None, ("right", []))
    used = [name for name in rules if name is not None and name in ids]
    rank = np.empty((len(used) + 1, len(names)), dtype=np.int32)
    row = np.zeros(len(names), dtype=np.int32)
    for r, name in enumerate([None, *used]):
        rule = default if name is None else rules[name]
        searches, direction = _searches(name, rule)
        rank[r] = 2 * len(searches) + direction
        rank[r, punctuation] += 2
        for group, (from_right, labels) in reversed(list(enumerate(searches))):
            for label in labels:
                if label in ids:
                    rank[r, ids[label]] = 2 * group + from_right
        if name is not None:
            row[ids[name]] = r
    return row, rank


def _searches(name, rule):
    """Return a list of (from_right, labels), and the direction if all of them fail."""
    searches, from_right = [], 1
    for pair in rule if isinstance(rule, list) else [rule]:
        try:
            direction, labels = pair
            from_right = ("left", "right").index(direction)
        except (TypeError, ValueError):
            raise ValueError(
                f"head rule for {name!r} is {pair!r}, expected a pair (direction, "
                'labels) with direction "left" or "right"'
            ) from None
        if isinstance(labels, str):
            raise ValueError(
                f"head rule for {name!r} has the labels {labels!r}, expected a list "
                "of labels"
            )
        for item in labels:
            group = (item,) if isinstance(item, str) else tuple(item)
            searches.append((from_right, group))
    return searches, from_right
