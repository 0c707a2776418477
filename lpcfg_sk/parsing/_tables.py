"""Rule tables in the forms that the chart kernels read."""

import numpy as np

from lpcfg_sk._kernels._chart_forest import RuleTables, fill_pair_slots
from lpcfg_sk._kernels._coarse_tables import CoarseTables
from lpcfg_sk._ragged import offsets


def _packed(key, n_keys, *columns):
    """Sort columns by a key; return the offsets of each key and the columns."""
    order = np.argsort(key, kind="stable")
    begin = offsets(np.bincount(key, minlength=n_keys))
    return begin, *(np.ascontiguousarray(column[order]) for column in columns)


def rule_tables(arrays):
    """List the rules of a grammar by the pair of their children.

    Parameters
    ----------
    arrays : GrammarArrays
        The grammar.

    Returns
    -------
    RuleTables
    """
    n_labels = np.int64(max(len(arrays.n_states), 1))
    keys = arrays.rule_left.astype(np.int64) * n_labels + arrays.rule_right
    pairs, pair_of_rule = np.unique(keys, return_inverse=True)
    left, right = (ids.astype(np.int32) for ids in np.divmod(pairs, n_labels))
    begin, rules = _packed(
        pair_of_rule, len(pairs), np.arange(len(keys), dtype=np.int32)
    )
    n_slots = 4
    while n_slots < 2 * len(pairs):
        n_slots *= 2
    slots = np.full(n_slots, -1, dtype=np.int32)
    fill_pair_slots(left, right, slots)
    return RuleTables(arrays.rule_parent, left, right, begin, rules, slots)


def coarse_tables(arrays, probabilities, root):
    """Pack the rules of a plain PCFG by the kind of their children.

    Parameters
    ----------
    arrays : GrammarArrays
        Symbols and rules.
    probabilities : ndarray of float64, shape (n_rules,)
        One weight a rule.
    root : ndarray of float64, shape (n_roots,)
        One weight a root.

    Returns
    -------
    CoarseTables
    """
    n_labels = len(arrays.n_states)
    parent, left, right = arrays.rule_parent, arrays.rule_left, arrays.rule_right
    wide_label = np.unique(parent).astype(np.int32)
    wide = np.full(n_labels, -1, dtype=np.int32)
    wide[wide_label] = np.arange(len(wide_label), dtype=np.int32)
    n_wide = len(wide_label)
    is_wide = wide >= 0
    is_tag = np.zeros(n_labels, dtype=bool)
    is_tag[arrays.lex_label] = True

    def rules(chosen):
        return wide[parent[chosen]], left[chosen], right[chosen], probabilities[chosen]

    a, b, c, p = rules(is_wide[left] & is_wide[right])
    left_label, place_left = np.unique(wide[b], return_inverse=True)
    right_label, place_right = np.unique(wide[c], return_inverse=True)
    place_left, place_right = place_left.astype(np.int32), place_right.astype(np.int32)
    ii = _packed(place_left, len(left_label), place_right, a, p)
    up = _packed(a, n_wide, place_left, place_right, p)
    a, b, c, p = rules(is_tag[left] & is_wide[right])
    pi = _packed(b, n_labels, wide[c], a, p)
    a, b, c, p = rules(is_wide[left] & is_tag[right])
    ip = _packed(c, n_labels, wide[b], a, p)
    a, b, c, p = rules(is_tag[left] & is_tag[right])
    pp = _packed(b, n_labels, c, a, p)
    prior = expected_counts(arrays, probabilities, root)
    labels = (wide_label, left_label, right_label)
    return CoarseTables(*labels, *ii, *up, *pi, *ip, *pp, prior[wide_label], prior)


def expected_counts(arrays, probabilities, root, n_steps=200):
    """Return how often each nonterminal is expected in a tree of a PCFG.

    Parameters
    ----------
    arrays : GrammarArrays
        Symbols and rules.
    probabilities : ndarray of float64, shape (n_rules,)
        One weight a rule.
    root : ndarray of float64, shape (n_roots,)
        One weight a root.
    n_steps : int, default=200
        Depth of the trees that count; grammars whose trees never end, or weights that
        are no probabilities, give counts all the same.

    Returns
    -------
    ndarray of float64, shape (n_nonterminals,)
        Relative to their sum.
    """
    n_labels = len(arrays.n_states)
    level = np.bincount(arrays.root_label, weights=root, minlength=n_labels)
    total = level.copy()
    for _ in range(n_steps):
        mass = probabilities * level[arrays.rule_parent]
        level = np.bincount(arrays.rule_left, weights=mass, minlength=n_labels)
        level += np.bincount(arrays.rule_right, weights=mass, minlength=n_labels)
        total += level
        if not 1e-12 * total.sum() < level.sum() < 1e100:
            break
    return total / max(total.sum(), np.finfo(float).tiny)
