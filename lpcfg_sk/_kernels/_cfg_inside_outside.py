"""Inside-outside over strings for context-free rules of any length.

Values of a span are divided by a power of two that is kept beside them, so long
strings neither underflow nor lose a bit.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def cfg_inside_outside(
    words,
    n_nonterminals,
    start,
    left_offset,
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
    # Items of a span: those that the next word lets grow, then finished ones.
    item_offset = np.zeros((n_spans, 3), dtype=np.int64)
    items = np.empty(16 * n_spans + 64, dtype=np.int32)
    item_values = np.empty(len(items))
    n_items = 0
    prefix = np.zeros(n_trie)
    touched = np.empty(n_trie, dtype=np.int32)
    base = np.zeros(n_nonterminals)

    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
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
            n_touched = 0
            for k in range(i + 1, j):
                left = i * n - i * (i - 1) // 2 + k - i - 1
                right = k * n - k * (k - 1) // 2 + j - k - 1
                if not (alive[left] and alive[right]):
                    continue
                factor = 2.0 ** (exponent[left] + exponent[right] - reference)
                right_value = value[right]
                right_word = -2
                if j - k == 1:
                    right_word = n_nonterminals + words[k]
                    word_value = 2.0 ** (-exponent[right])
                for e in range(item_offset[left, 0], item_offset[left, 1]):
                    left_value = item_values[e] * factor
                    item = items[e]
                    for t in range(left_offset[item], left_offset[item + 1]):
                        symbol = trie_right[t]
                        if symbol < n_nonterminals:
                            v = right_value[symbol]
                        elif symbol == right_word:
                            v = word_value
                        else:
                            continue
                        if v > 0.0:
                            if prefix[t] == 0.0:
                                touched[n_touched] = t
                                n_touched += 1
                            prefix[t] += left_value * v
            base[:] = 0.0
            for q in range(n_touched):
                t = touched[q]
                for d in range(done_offset[t], done_offset[t + 1]):
                    r = done_rule[d]
                    base[rule_lhs[r]] += theta[r] * prefix[t]
            is_word = width == 1 and words[i] >= 0
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
                for q in range(n_touched):
                    prefix[touched[q]] = 0.0
                continue
            alive[span] = True
            shift = np.int64(np.floor(np.log2(largest)))
            exponent[span] = reference + shift
            scale = 2.0 ** (-shift)
            while n_items + n_nonterminals + n_touched + 1 > len(items):
                items = _grown_int(items)
                item_values = _grown_float(item_values)
            following = words[j] if j < n else -1
            for a in range(n_nonterminals):
                if row[a] > 0.0:
                    row[a] *= scale
                    if _can_grow(a, following, left_offset, trie_right, begins):
                        items[n_items] = a
                        item_values[n_items] = row[a]
                        n_items += 1
            if is_word:
                item = n_nonterminals + words[i]
                if _can_grow(item, following, left_offset, trie_right, begins):
                    items[n_items] = item
                    item_values[n_items] = scale
                    n_items += 1
            n_closed = 0
            for q in range(n_touched):
                t = touched[q]
                if _can_grow(n_symbols + t, following, left_offset, trie_right, begins):
                    items[n_items] = n_symbols + t
                    item_values[n_items] = prefix[t] * scale
                    n_items += 1
                    prefix[t] = 0.0
                elif done_offset[t] < done_offset[t + 1]:
                    touched[n_closed] = t
                    n_closed += 1
                else:
                    prefix[t] = 0.0
            item_offset[span, 1] = n_items
            for q in range(n_closed):
                t = touched[q]
                items[n_items] = n_symbols + t
                item_values[n_items] = prefix[t] * scale
                n_items += 1
                prefix[t] = 0.0
            item_offset[span, 2] = n_items

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
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            j = i + width
            span = i * n - i * (i - 1) // 2 + j - i - 1
            if not alive[span]:
                continue
            row = outside[span]
            lo, hi = item_offset[span, 0], item_offset[span, 2]
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
            if width == 1:
                if words[i] >= 0:
                    scale = 2.0 ** (-exponent[span])
                    for d in range(word_offset[words[i]], word_offset[words[i] + 1]):
                        r = word_rule[d]
                        counts[r] += total[rule_lhs[r]] * theta[r] * scale
                continue
            any_outside = False
            for e in range(lo, hi):
                t = items[e] - n_symbols
                if t < 0:
                    continue
                above = item_outside[e]
                for d in range(done_offset[t], done_offset[t + 1]):
                    r = done_rule[d]
                    part = theta[r] * total[rule_lhs[r]]
                    above += part
                    counts[r] += part * item_values[e]
                prefix[t] = above
                any_outside = any_outside or above > 0.0
            if any_outside:
                for k in range(i + 1, j):
                    left = i * n - i * (i - 1) // 2 + k - i - 1
                    right = k * n - k * (k - 1) // 2 + j - k - 1
                    if not (alive[left] and alive[right]):
                        continue
                    factor = 2.0 ** (exponent[left] + exponent[right] - exponent[span])
                    right_value = value[right]
                    right_outside = outside[right]
                    right_word = -2
                    if j - k == 1:
                        right_word = n_nonterminals + words[k]
                        word_value = 2.0 ** (-exponent[right])
                    for e in range(item_offset[left, 0], item_offset[left, 1]):
                        item = items[e]
                        gained = 0.0
                        for t in range(left_offset[item], left_offset[item + 1]):
                            above = prefix[t]
                            if above == 0.0:
                                continue
                            symbol = trie_right[t]
                            if symbol < n_nonterminals:
                                v = right_value[symbol]
                                if v > 0.0:
                                    gained += above * v
                                    right_outside[symbol] += (
                                        above * item_values[e] * factor
                                    )
                            elif symbol == right_word:
                                gained += above * word_value
                        item_outside[e] += gained * factor
            for e in range(lo, hi):
                t = items[e] - n_symbols
                if t >= 0:
                    prefix[t] = 0.0
    return log_probability


@njit(nogil=True, cache=True)
def _can_grow(item, following, left_offset, trie_right, begins):
    """Whether some symbol that extends an item can begin with the next word."""
    if following < 0:
        return False
    n_nonterminals = len(begins)
    for t in range(left_offset[item], left_offset[item + 1]):
        symbol = trie_right[t]
        if symbol < n_nonterminals:
            if begins[symbol, following]:
                return True
        elif symbol == n_nonterminals + following:
            return True
    return False


@njit(nogil=True, cache=True)
def _grown_int(array):
    grown = np.empty(2 * len(array), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@njit(nogil=True, cache=True)
def _grown_float(array):
    grown = np.empty(2 * len(array))
    grown[: len(array)] = array
    return grown


@njit(nogil=True, cache=True)
def cfg_expected_counts(
    words,
    offsets,
    n_nonterminals,
    start,
    left_offset,
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
