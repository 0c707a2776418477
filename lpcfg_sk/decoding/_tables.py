"""Rule tables in the forms that the chart kernels read."""

import numpy as np

from lpcfg_sk._kernels._chart_forest import RuleTables, fill_pair_slots
from lpcfg_sk._kernels._coarse import CoarseTables
from lpcfg_sk.grammar._arrays import offsets


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


def coarse_tables(arrays, probabilities):
    """Pack the rules of a plain PCFG by the kind of their children.

    Parameters
    ----------
    arrays : GrammarArrays
        Symbols and rules.
    probabilities : ndarray of float64, shape (n_rules,)
        One weight a rule.

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
    keys = wide[b].astype(np.int64) * n_wide + wide[c]
    pairs, pair = np.unique(keys, return_inverse=True)
    pair_left, pair_right = np.divmod(pairs, max(n_wide, 1))
    ii = (
        *_packed(pair_left, n_wide, pair_right.astype(np.int32)),
        *_packed(pair, len(pairs), a, p),
    )
    up_ii = _packed(a, n_wide, pair.astype(np.int32), p)
    a, b, c, p = rules(is_tag[left] & is_wide[right])
    pi = _packed(b, n_labels, wide[c], a, p)
    up_pi = _packed(a, n_wide, b, wide[c], p)
    a, b, c, p = rules(is_wide[left] & is_tag[right])
    ip = _packed(c, n_labels, wide[b], a, p)
    up_ip = _packed(a, n_wide, c, wide[b], p)
    a, b, c, p = rules(is_tag[left] & is_tag[right])
    pp = _packed(b, n_labels, c, a, p)
    up_pp = _packed(a, n_wide, b, c, p)
    return CoarseTables(wide_label, *ii, *pi, *ip, *pp, *up_ii, *up_pi, *up_ip, *up_pp)
