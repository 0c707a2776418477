"""Best derivation of a string under context-free rules of any length."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def cfg_best_tree(
    words,
    n_nonterminals,
    start,
    left_offset,
    trie_left,
    trie_right,
    done_offset,
    done_rule,
    rule_lhs,
    rule_item,
    word_offset,
    word_rule,
    chain_offset,
    chain_top,
    chain_score,
    next_hop,
    rule_score,
    bonus,
):
    """Derivation with the largest sum of rule scores and constituent scores.

    Parameters
    ----------
    words : int array of shape (n,)
        Terminal numbers, -1 for a token that the grammar does not know.
    n_nonterminals, ..., word_rule
        Tables of the grammar.
    chain_offset, chain_top, chain_score, next_hop : arrays
        Best chains of unary rules.
    rule_score : float array of shape (n_rules,)
        Score of a rule, -inf to forbid it.
    bonus : float array of shape (n * (n + 1) // 2, N) or (0, 0)
        Score of a constituent A over a span.

    Returns
    -------
    score : float
        -inf where the string has no derivation.
    label, size, parent : int32 arrays
        Nodes of the tree in preorder; the label of a bare word is -1.
    """
    n = len(words)
    n_symbols = n_nonterminals + len(word_offset) - 1
    n_spans = n * (n + 1) // 2
    n_trie = len(trie_right)
    use_bonus = bonus.size > 0
    best = np.full((n_spans, n_nonterminals), -np.inf)
    bottom = np.full((n_spans, n_nonterminals), -1, dtype=np.int32)
    base_rule = np.full((n_spans, n_nonterminals), -1, dtype=np.int32)
    item_offset = np.zeros((n_spans, 2), dtype=np.int64)
    items = np.empty(16 * n_spans + 64, dtype=np.int32)
    scores = np.empty(len(items))
    splits = np.empty(len(items), dtype=np.int32)
    n_items = 0
    prefix = np.full(n_trie, -np.inf)
    split = np.zeros(n_trie, dtype=np.int32)
    touched = np.empty(n_trie, dtype=np.int32)
    base = np.empty(n_nonterminals)

    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            span = i * n - i * (i - 1) // 2 + j - i - 1
            n_touched = 0
            for k in range(i + 1, j):
                left = i * n - i * (i - 1) // 2 + k - i - 1
                right = k * n - k * (k - 1) // 2 + j - k - 1
                right_best = best[right]
                right_word = -2
                if j - k == 1:
                    right_word = n_nonterminals + words[k]
                for e in range(item_offset[left, 0], item_offset[left, 1]):
                    item = items[e]
                    for t in range(left_offset[item], left_offset[item + 1]):
                        symbol = trie_right[t]
                        if symbol < n_nonterminals:
                            v = scores[e] + right_best[symbol]
                        elif symbol == right_word:
                            v = scores[e]
                        else:
                            continue
                        if v > prefix[t]:
                            if prefix[t] == -np.inf:
                                touched[n_touched] = t
                                n_touched += 1
                            prefix[t] = v
                            split[t] = k
            base[:] = -np.inf
            for q in range(n_touched):
                t = touched[q]
                for d in range(done_offset[t], done_offset[t + 1]):
                    r = done_rule[d]
                    v = rule_score[r] + prefix[t]
                    if v > base[rule_lhs[r]]:
                        base[rule_lhs[r]] = v
                        base_rule[span, rule_lhs[r]] = r
            is_word = width == 1 and words[i] >= 0
            if is_word:
                for d in range(word_offset[words[i]], word_offset[words[i] + 1]):
                    r = word_rule[d]
                    if rule_score[r] > base[rule_lhs[r]]:
                        base[rule_lhs[r]] = rule_score[r]
                        base_rule[span, rule_lhs[r]] = r
            row = best[span]
            for b in range(n_nonterminals):
                if base[b] == -np.inf:
                    continue
                for c in range(chain_offset[b], chain_offset[b + 1]):
                    a = chain_top[c]
                    v = base[b] + chain_score[c]
                    if use_bonus:
                        v += bonus[span, b]
                        x = a
                        while x != b:
                            v += bonus[span, x]
                            x = next_hop[x, b]
                    if v > row[a]:
                        row[a] = v
                        bottom[span, a] = b
            while n_items + n_nonterminals + n_touched + 1 > len(items):
                items = _double(items)
                scores = _double(scores)
                splits = _double(splits)
            item_offset[span, 0] = n_items
            for a in range(n_nonterminals):
                if row[a] > -np.inf and left_offset[a] < left_offset[a + 1]:
                    items[n_items] = a
                    scores[n_items] = row[a]
                    n_items += 1
            if is_word:
                item = n_nonterminals + words[i]
                if left_offset[item] < left_offset[item + 1]:
                    items[n_items] = item
                    scores[n_items] = 0.0
                    n_items += 1
            for q in range(n_touched):
                t = touched[q]
                items[n_items] = n_symbols + t
                scores[n_items] = prefix[t]
                splits[n_items] = split[t]
                n_items += 1
                prefix[t] = -np.inf
            item_offset[span, 1] = n_items

    top = n - 1
    if n == 0 or best[top, start] == -np.inf:
        nothing = np.zeros(0, dtype=np.int32)
        return -np.inf, nothing, nothing, nothing

    most = 2 * n * (n_nonterminals + 1)
    label = np.empty(most, dtype=np.int32)
    parent = np.empty(most, dtype=np.int32)
    n_nodes = 0
    # Tasks: symbol, begin, end, parent; depth first, left to right.
    tasks = np.empty((2 * n + 2, 4), dtype=np.int32)
    tasks[0, 0] = start
    tasks[0, 1] = 0
    tasks[0, 2] = n
    tasks[0, 3] = -1
    n_tasks = 1
    while n_tasks > 0:
        n_tasks -= 1
        symbol, i, j, above = tasks[n_tasks]
        if symbol >= n_nonterminals:
            label[n_nodes] = -1
            parent[n_nodes] = above
            n_nodes += 1
            continue
        span = i * n - i * (i - 1) // 2 + j - i - 1
        lowest = bottom[span, symbol]
        while True:
            label[n_nodes] = symbol
            parent[n_nodes] = above
            above = n_nodes
            n_nodes += 1
            if symbol == lowest:
                break
            symbol = next_hop[symbol, lowest]
        item = rule_item[base_rule[span, lowest]]
        if item < n_symbols:
            continue
        while item >= n_symbols:
            t = item - n_symbols
            span = i * n - i * (i - 1) // 2 + j - i - 1
            e = item_offset[span, 0]
            while items[e] != item:
                e += 1
            tasks[n_tasks, 0] = trie_right[t]
            tasks[n_tasks, 1] = splits[e]
            tasks[n_tasks, 2] = j
            tasks[n_tasks, 3] = above
            n_tasks += 1
            j = splits[e]
            item = trie_left[t]
        tasks[n_tasks, 0] = item
        tasks[n_tasks, 1] = i
        tasks[n_tasks, 2] = j
        tasks[n_tasks, 3] = above
        n_tasks += 1
    size = np.ones(n_nodes, dtype=np.int32)
    for node in range(n_nodes - 1, 0, -1):
        size[parent[node]] += size[node]
    return best[top, start], label[:n_nodes].copy(), size, parent[:n_nodes].copy()


@njit(nogil=True, cache=True)
def _double(array):
    grown = np.empty(2 * len(array), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
