"""Inside-outside over strings for context-free rules of any length.

Values of a span are divided by a power of two that is kept beside them, so long
strings neither underflow nor lose a bit.
"""

import numpy as np
from numba import njit

# Kinds of growth of an item.
_MANY, _ONE = 1, 2

# In the innermost loops an unsigned index saves the test for a negative one, which is
# a fourth of their time.
_u = np.uintp


@njit(nogil=True, cache=True)
def cfg_inside_outside(
    words,
    n_nonterminals,
    start,
    left_offset,
    terminal_offset,
    trie_left,
    trie_right,
    done_offset,
    done_rule,
    rule_lhs,
    word_offset,
    word_rule,
    unary_rule,
    unary_lhs,
    unary_child,
    begins,
    closure_offset,
    closure_top,
    closure_weight,
    theta,
    weight,
    counts,
    posterior,
):
    """Inside and outside of one string; adds expected rule counts.

    Parameters
    ----------
    words : int array of shape (n,)
        Terminal numbers, -1 for a token that the grammar does not know.
    n_nonterminals, ..., unary_child
        Tables of the grammar.
    closure_offset, closure_top, closure_weight : arrays
        Sums over unary chains.
    theta : float array of shape (n_rules,)
        Rule probabilities.
    weight : float
        Weight of the string; 0 computes the probability alone.
    counts : float array of shape (n_rules,)
        Expected counts times `weight` are added here.
    posterior : float array of shape (n * (n + 1) // 2, N) or (0, 0)
        Expected number of constituents A over each span, where not empty.

    Returns
    -------
    log_probability : float
        -inf where the string has no derivation.
    """
    n = len(words)
    n_symbols = n_nonterminals + len(word_offset) - 1
    n_trie = len(trie_right)
    n_spans = n * (n + 1) // 2
    value = np.zeros((n_spans, n_nonterminals))
    exponent = np.zeros(n_spans, dtype=np.int64)
    alive = np.zeros(n_spans, dtype=np.bool_)
    # Items of a span: those that the next word lets grow, in several ways or by one
    # nonterminal, then finished ones.
    item_offset = np.zeros((n_spans, 4), dtype=np.int64)
    items = np.empty(16 * n_spans + 64, dtype=np.int32)
    item_values = np.empty(len(items))
    n_items = 0
    prefix = np.zeros(n_trie)
    touched = np.empty(n_trie + 1, dtype=np.int32)
    # Items that grow from the current position, each once.
    growing = np.empty(len(terminal_offset), dtype=np.int32)
    is_growing = np.zeros(len(terminal_offset), dtype=np.bool_)
    growth, growth_row = _lookahead(
        words, left_offset, terminal_offset, trie_left, trie_right, begins
    )
    base = np.zeros(n_nonterminals)

    for i in range(n - 1, -1, -1):
        n_growing = 0
        for j in range(i + 1, n + 1):
            span = i * n - i * (i - 1) // 2 + j - i - 1
            reference = 0
            found = False
            for k in range(i + 1, j):
                left = i * n - i * (i - 1) // 2 + k - i - 1
                right = k * n - k * (k - 1) // 2 + j - k - 1
                if alive[left] and alive[right]:
                    both = exponent[left] + exponent[right]
                    if not found or both > reference:
                        reference = both
                        found = True
            for k in range(i + 1, j):
                left = i * n - i * (i - 1) // 2 + k - i - 1
                right = k * n - k * (k - 1) // 2 + j - k - 1
                if not (alive[left] and alive[right]):
                    continue
                factor = 2.0 ** (exponent[left] + exponent[right] - reference)
                right_value = value[right]
                # Half of these products are zero: a branch would cost more.
                for e in range(_u(item_offset[left, 0]), _u(item_offset[left, 1])):
                    left_value = item_values[e] * factor
                    item = _u(items[e])
                    for t in range(_u(left_offset[item]), _u(terminal_offset[item])):
                        prefix[t] += left_value * right_value[_u(trie_right[t])]
                for e in range(_u(item_offset[left, 1]), _u(item_offset[left, 2])):
                    t = _u(left_offset[_u(items[e])])
                    left_value = item_values[e] * factor
                    prefix[t] += left_value * right_value[_u(trie_right[t])]
                if j - k == 1 and words[k] >= 0:
                    symbol = n_nonterminals + words[k]
                    word_value = factor * 2.0 ** (-exponent[right])
                    for e in range(item_offset[left, 0], item_offset[left, 1]):
                        item = items[e]
                        for t in range(terminal_offset[item], left_offset[item + 1]):
                            if trie_right[t] == symbol:
                                prefix[t] += item_values[e] * word_value
            n_touched = 0
            for q in range(n_growing):
                item = growing[q]
                for t in range(_u(left_offset[item]), _u(left_offset[item + 1])):
                    touched[n_touched] = t
                    n_touched += prefix[t] > 0.0
            base[:] = 0.0
            for q in range(n_touched):
                t = touched[q]
                for d in range(_u(done_offset[t]), _u(done_offset[t + 1])):
                    r = _u(done_rule[d])
                    base[_u(rule_lhs[r])] += theta[r] * prefix[t]
            is_word = j - i == 1 and words[i] >= 0
            if is_word:
                for d in range(word_offset[words[i]], word_offset[words[i] + 1]):
                    r = word_rule[d]
                    base[rule_lhs[r]] += theta[r]
            row = value[span]
            for b in range(n_nonterminals):
                if base[b] > 0.0:
                    for c in range(closure_offset[b], closure_offset[b + 1]):
                        row[closure_top[c]] += closure_weight[c] * base[b]
            largest = 1.0 if is_word else 0.0
            for a in range(n_nonterminals):
                largest = max(largest, row[a])
            for q in range(n_touched):
                largest = max(largest, prefix[touched[q]])
            item_offset[span] = n_items
            if largest == 0.0:
                continue
            alive[span] = True
            shift = np.int64(np.floor(np.log2(largest)))
            exponent[span] = reference + shift
            scale = 2.0 ** (-shift)
            while n_items + n_nonterminals + n_touched + 2 > len(items):
                items = _doubled(items)
                item_values = _doubled(item_values)
            for a in range(n_nonterminals):
                row[a] *= scale
            kinds = growth[growth_row[j]]
            trie_kinds = kinds[n_symbols:]
            for kind in range(_MANY, _ONE + 1):
                for a in range(n_nonterminals):
                    items[n_items] = a
                    item_values[n_items] = row[a]
                    n_items += kinds[a] == kind and row[a] > 0.0
                if is_word:
                    items[n_items] = n_nonterminals + words[i]
                    item_values[n_items] = scale
                    n_items += kinds[n_nonterminals + words[i]] == kind
                for q in range(n_touched):
                    t = _u(touched[q])
                    items[n_items] = n_symbols + touched[q]
                    item_values[n_items] = prefix[t] * scale
                    n_items += trie_kinds[t] == kind
                item_offset[span, kind] = n_items
            for q in range(n_touched):
                t = touched[q]
                items[n_items] = n_symbols + t
                item_values[n_items] = prefix[t] * scale
                finished = done_offset[t] < done_offset[t + 1]
                n_items += finished and trie_kinds[t] == 0
                prefix[t] = 0.0
            item_offset[span, 3] = n_items
            for e in range(item_offset[span, 0], item_offset[span, 2]):
                item = items[e]
                if not is_growing[item]:
                    is_growing[item] = True
                    growing[n_growing] = item
                    n_growing += 1
        for q in range(n_growing):
            is_growing[growing[q]] = False

    top = n - 1
    if n == 0 or not alive[top] or value[top, start] == 0.0:
        return -np.inf
    log_probability = np.log(value[top, start]) + exponent[top] * np.log(2.0)
    if weight == 0.0:
        return log_probability

    outside = np.zeros((n_spans, n_nonterminals))
    item_outside = np.zeros(n_items)
    outside[top, start] = weight / value[top, start]
    total = np.zeros(n_nonterminals)
    for i in range(n):
        for j in range(n, i, -1):
            span = i * n - i * (i - 1) // 2 + j - i - 1
            if not alive[span]:
                continue
            row = outside[span]
            lo, hi = item_offset[span, 0], item_offset[span, 3]
            for e in range(lo, hi):
                if items[e] < n_nonterminals:
                    row[items[e]] += item_outside[e]
            for b in range(n_nonterminals):
                total[b] = 0.0
                for c in range(closure_offset[b], closure_offset[b + 1]):
                    total[b] += closure_weight[c] * row[closure_top[c]]
            for q in range(len(unary_rule)):
                r = unary_rule[q]
                counts[r] += (
                    total[unary_lhs[q]] * theta[r] * value[span, unary_child[q]]
                )
            if posterior.size > 0:
                for a in range(n_nonterminals):
                    posterior[span, a] += total[a] * value[span, a]
            if j - i == 1:
                if words[i] >= 0:
                    scale = 2.0 ** (-exponent[span])
                    for d in range(word_offset[words[i]], word_offset[words[i] + 1]):
                        r = word_rule[d]
                        counts[r] += total[rule_lhs[r]] * theta[r] * scale
                continue
            n_touched = 0
            for e in range(lo, hi):
                t = items[e] - n_symbols
                if t < 0:
                    continue
                above = item_outside[e]
                for d in range(_u(done_offset[t]), _u(done_offset[t + 1])):
                    r = _u(done_rule[d])
                    part = theta[r] * total[_u(rule_lhs[r])]
                    above += part
                    counts[r] += part * item_values[e]
                prefix[t] = above
                touched[n_touched] = t
                n_touched += above > 0.0
            if n_touched == 0:
                continue
            for k in range(i + 1, j):
                left = i * n - i * (i - 1) // 2 + k - i - 1
                right = k * n - k * (k - 1) // 2 + j - k - 1
                if not (alive[left] and alive[right]):
                    continue
                factor = 2.0 ** (exponent[left] + exponent[right] - exponent[span])
                right_value = value[right]
                right_outside = outside[right]
                symbol_of_word = -1
                word_value = 0.0
                if j - k == 1 and words[k] >= 0:
                    symbol_of_word = n_nonterminals + words[k]
                    word_value = 2.0 ** (-exponent[right])
                for e in range(_u(item_offset[left, 0]), _u(item_offset[left, 1])):
                    item = _u(items[e])
                    left_value = item_values[e] * factor
                    gained = 0.0
                    for t in range(_u(left_offset[item]), _u(terminal_offset[item])):
                        symbol = _u(trie_right[t])
                        gained += prefix[t] * right_value[symbol]
                        right_outside[symbol] += prefix[t] * left_value
                    if symbol_of_word >= 0:
                        for t in range(terminal_offset[item], left_offset[item + 1]):
                            if trie_right[t] == symbol_of_word:
                                gained += prefix[t] * word_value
                    item_outside[e] += gained * factor
                for e in range(_u(item_offset[left, 1]), _u(item_offset[left, 2])):
                    t = _u(left_offset[_u(items[e])])
                    symbol = _u(trie_right[t])
                    above = prefix[t] * factor
                    item_outside[e] += above * right_value[symbol]
                    right_outside[symbol] += above * item_values[e]
            for q in range(n_touched):
                prefix[touched[q]] = 0.0
    return log_probability


@njit(nogil=True, cache=True)
def _lookahead(words, left_offset, terminal_offset, trie_left, trie_right, begins):
    """How items can be extended by symbols that begin with the word at a position.

    Returns one row of kinds of growth for each different word, 0 for none, and the row
    of each position; that of the end of the string is empty.
    """
    n = len(words)
    n_nonterminals, n_terminals = begins.shape
    row = np.zeros(n + 1, dtype=np.int64)
    n_rows = 1
    for j in range(n):
        for earlier in range(j):
            if words[earlier] == words[j]:
                row[j] = row[earlier]
        if row[j] == 0 and words[j] >= 0:
            row[j] = n_rows
            n_rows += 1
    growth = np.zeros((n_rows, len(terminal_offset)), dtype=np.uint8)
    can_begin = np.zeros(n_nonterminals + n_terminals, dtype=np.uint8)
    filled = 0
    for j in range(n):
        if row[j] <= filled:
            continue
        filled = row[j]
        kinds = growth[filled]
        can_begin[:n_nonterminals] = begins[:, words[j]]
        can_begin[n_nonterminals + words[j]] = 1
        for t in range(len(trie_left)):
            kinds[trie_left[t]] |= can_begin[trie_right[t]]
        can_begin[n_nonterminals + words[j]] = 0
        for item in range(len(kinds)):
            one = left_offset[item + 1] - left_offset[item] == 1
            one &= terminal_offset[item] == left_offset[item + 1]
            kinds[item] *= _ONE if one else _MANY
    return growth, row


@njit(nogil=True, cache=True)
def _doubled(array):
    grown = np.empty(2 * len(array), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@njit(nogil=True, cache=True)
def cfg_expected_counts(
    words,
    offsets,
    n_nonterminals,
    start,
    left_offset,
    terminal_offset,
    trie_left,
    trie_right,
    done_offset,
    done_rule,
    rule_lhs,
    word_offset,
    word_rule,
    unary_rule,
    unary_lhs,
    unary_child,
    begins,
    closure_offset,
    closure_top,
    closure_weight,
    theta,
    weights,
    log_probabilities,
    counts,
):
    """Run `cfg_inside_outside` over the strings of a chunk, adding up counts."""
    nothing = np.zeros((0, 0))
    for s in range(len(offsets) - 1):
        log_probabilities[s] = cfg_inside_outside(
            words[offsets[s] : offsets[s + 1]],
            n_nonterminals,
            start,
            left_offset,
            terminal_offset,
            trie_left,
            trie_right,
            done_offset,
            done_rule,
            rule_lhs,
            word_offset,
            word_rule,
            unary_rule,
            unary_lhs,
            unary_child,
            begins,
            closure_offset,
            closure_top,
            closure_weight,
            theta,
            weights[s],
            counts,
            nothing,
        )
