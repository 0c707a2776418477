"""Brackets of two trees over the same words: matches, crossings and tags.

All of it is linear in the size of the trees. Brackets come in preorder, that is
sorted by (start, -stop), also after words were deleted; so those of the same span
are found by merging the two lists, and the innermost gold bracket around every
boundary between two words, which decides about crossing, by one sweep with a stack.
"""

import numpy as np
from numba import njit

STATUS, LENGTH, MATCHED, GOLD, TEST, CROSSING, WORDS, CORRECT_TAGS = range(8)
N_COUNTS = 8

VALID, ERROR, SKIP = 0, 1, 2

DELETE, DELETE_FOR_LENGTH, QUOTE = 1, 2, 4

NO_BRACKET, UNMATCHED, MATCH = -1, 0, 1


@njit(nogil=True, cache=True)
def _quotes(flags):
    """Token and word index of each quote, the index counting kept words only."""
    n_quotes = 0
    for k in range(flags.size):
        if flags[k] & QUOTE:
            n_quotes += 1
    token = np.empty(n_quotes, np.int64)
    index = np.empty(n_quotes, np.int64)
    n_quotes = 0
    kept = 0
    for k in range(flags.size):
        if flags[k] & QUOTE:
            token[n_quotes] = k
            index[n_quotes] = kept
            n_quotes += 1
        if not flags[k] & DELETE:
            kept += 1
    return token, index


@njit(nogil=True, cache=True)
def _restore_quotes(gold_flags, test_flags, gold_copies, test_copies):
    """Give deleted quotes back where the other side kept a quote at the same index.

    A quote that came back on the gold side stands one index later from then on, so a
    second quote of the test side can bring it back once more: copies may exceed one.
    """
    gold_token, gold_index = _quotes(gold_flags)
    test_token, test_index = _quotes(test_flags)
    n_gold = gold_token.size
    next_kept = np.empty(n_gold + 1, np.int64)
    next_kept[n_gold] = n_gold
    for j in range(n_gold - 1, -1, -1):
        if gold_flags[gold_token[j]] & DELETE:
            next_kept[j] = next_kept[j + 1]
        else:
            next_kept[j] = j
    j = 0
    gold_shift = 0
    test_shift = 0
    for i in range(test_token.size):
        here = test_index[i] + test_shift
        while j < n_gold and gold_index[j] + gold_shift < here:
            j += 1
        if test_flags[test_token[i]] & DELETE:
            k = next_kept[j]
            if k < n_gold and gold_index[k] + gold_shift == here:
                test_copies[test_token[i]] += 1
                test_shift += 1
        elif (
            j < n_gold
            and gold_index[j] + gold_shift == here
            and gold_flags[gold_token[j]] & DELETE
        ):
            gold_copies[gold_token[j]] += 1
            gold_shift += 1
    return gold_shift, test_shift


@njit(nogil=True, cache=True)
def _lay_out(copies, word, tag, position, kept):
    """Write kept words and tags in order; ``position[k]`` counts those before k."""
    n = 0
    for k in range(word.size):
        position[k] = n
        for _ in range(copies[k]):
            kept[0, n] = word[k]
            kept[1, n] = tag[k]
            n += 1
    position[word.size] = n


@njit(nogil=True, cache=True)
def _collect(size, bracket, start, stop, position, brackets, nodes):
    """List the brackets that count, as spans of kept words; return how many."""
    n = 0
    for i in range(size.size):
        if size[i] == 1 or bracket[i] < 0:
            continue
        a = position[start[i]]
        b = position[stop[i]]
        if a == b:
            continue
        brackets[0, n] = a
        brackets[1, n] = b
        brackets[2, n] = bracket[i]
        nodes[n] = i
        n += 1
    return n


@njit(nogil=True, cache=True)
def _same_words(gold, test, n, equal_words):
    for k in range(n):
        a = gold[k]
        b = test[k]
        if a == b:
            continue
        equal = False
        for e in range(equal_words.shape[0]):
            p = equal_words[e, 0]
            q = equal_words[e, 1]
            if (a == p and b == q) or (a == q and b == p):
                equal = True
                break
        if not equal:
            return False
    return True


@njit(nogil=True, cache=True)
def _match(gold, n_gold, test, n_test, equal_offsets, equal, first, follow, hits):
    """Pair brackets of equal spans and labels, each with the first free partner.

    ``gold`` and ``test`` have rows start, stop, label. ``first[label]`` is the first
    free test bracket of a label within the span at hand, ``follow`` the next one;
    label equality need not be transitive, so the order of pairing matters.
    """
    matched = 0
    i = 0
    j = 0
    while i < n_gold and j < n_test:
        a = gold[0, i]
        b = gold[1, i]
        if a != test[0, j] or b != test[1, j]:
            if a < test[0, j] or (a == test[0, j] and b > test[1, j]):
                i += 1
            else:
                j += 1
            continue
        i_stop = i + 1
        while i_stop < n_gold and gold[0, i_stop] == a and gold[1, i_stop] == b:
            i_stop += 1
        j_stop = j + 1
        while j_stop < n_test and test[0, j_stop] == a and test[1, j_stop] == b:
            j_stop += 1
        for k in range(j_stop - 1, j - 1, -1):
            label = test[2, k]
            follow[k] = first[label]
            first[label] = k
        for k in range(i, i_stop):
            label = gold[2, k]
            partner = -1
            for e in range(equal_offsets[label], equal_offsets[label + 1]):
                candidate = first[equal[e]]
                if candidate >= 0 and (partner < 0 or candidate < partner):
                    partner = candidate
            if partner >= 0:
                first[test[2, partner]] = follow[partner]
                hits[0, k] = MATCH
                hits[1, partner] = MATCH
                matched += 1
        for k in range(j, j_stop):
            first[test[2, k]] = -1
        i = i_stop
        j = j_stop
    return matched


@njit(nogil=True, cache=True)
def _crossings(gold, n_gold, test, n_test, n_words, left, right, stack):
    """Number of test brackets that cross at least one gold bracket.

    ``left[x], right[x]`` is the innermost gold bracket with left < x < right. A test
    bracket [a, b) is crossed from the left iff right[a] < b, from the right iff
    left[b] > a, since the brackets around one boundary are nested.
    """
    top = 0
    i = 0
    for x in range(n_words + 1):
        while top > 0 and gold[1, stack[top - 1]] <= x:
            top -= 1
        if top > 0:
            left[x] = gold[0, stack[top - 1]]
            right[x] = gold[1, stack[top - 1]]
        else:
            left[x] = -1
            right[x] = n_words + 1
        while i < n_gold and gold[0, i] == x:
            stack[top] = i
            top += 1
            i += 1
    crossing = 0
    for j in range(n_test):
        if right[test[0, j]] < test[1, j] or left[test[1, j]] > test[0, j]:
            crossing += 1
    return crossing


@njit(nogil=True, cache=True)
def _correct_tags(gold, test, n, equal_offsets, equal):
    correct = 0
    for k in range(n):
        a = gold[k]
        for e in range(equal_offsets[a], equal_offsets[a + 1]):
            if equal[e] == test[k]:
                correct += 1
                break
    return correct


@njit(nogil=True, cache=True)
def _widest(offsets):
    widest = 0
    for t in range(offsets.size - 1):
        widest = max(widest, offsets[t + 1] - offsets[t])
    return widest


@njit(nogil=True, cache=True)
def compare_brackets(
    gold_nodes,
    gold_size,
    gold_bracket,
    gold_start,
    gold_stop,
    gold_leaves,
    gold_word,
    gold_tag,
    gold_flags,
    test_nodes,
    test_size,
    test_bracket,
    test_start,
    test_stop,
    test_leaves,
    test_word,
    test_tag,
    test_flags,
    equal_offsets,
    equal_labels,
    equal_words,
):
    """Compare the trees of two treebanks pair by pair, as EVALB does.

    Parameters
    ----------
    gold_nodes, gold_leaves : int64 arrays of n + 1 offsets
        Nodes and leaves of each tree; a row without a tree has neither.
    gold_size, gold_bracket, gold_start, gold_stop : int32 arrays, one entry a node
        Nodes in preorder; ``bracket`` is the label that counts, -1 for a deleted one.
    gold_word, gold_tag, gold_flags : int32, int32, uint8 arrays, one entry a leaf
        Ids shared by both sides; ``DELETE``, ``DELETE_FOR_LENGTH``, ``QUOTE`` bits.
    test_nodes, ..., test_flags
        The same of the other side.
    equal_offsets, equal_labels : int64, int32 arrays
        The labels that count as equal to label a, itself among them, are
        ``equal_labels[equal_offsets[a]:equal_offsets[a + 1]]``.
    equal_words : int32 array of shape (n_pairs, 2)
        Pairs of words that count as equal.

    Returns
    -------
    counts : int64 array of shape (n, N_COUNTS)
        Brackets are counted for every pair; matches, crossings and tags only where
        the status is ``VALID``.
    gold_state, test_state : int8 arrays, one entry a node
        ``NO_BRACKET``, ``UNMATCHED`` or ``MATCH``.
    """
    n = gold_nodes.size - 1
    counts = np.zeros((n, N_COUNTS), np.int64)
    gold_state = np.full(gold_size.size, NO_BRACKET, np.int8)
    test_state = np.full(test_size.size, NO_BRACKET, np.int8)
    # A restored quote can come back once for every quote of the other side.
    n_leaves = _widest(gold_leaves) + _widest(test_leaves)
    n_nodes = max(_widest(gold_nodes), _widest(test_nodes))
    gold_copies = np.empty(n_leaves, np.int64)
    test_copies = np.empty(n_leaves, np.int64)
    gold_position = np.empty(n_leaves + 1, np.int64)
    test_position = np.empty(n_leaves + 1, np.int64)
    gold_kept = np.empty((2, n_leaves), np.int32)
    test_kept = np.empty((2, n_leaves), np.int32)
    gold_brackets = np.empty((3, n_nodes), np.int64)
    test_brackets = np.empty((3, n_nodes), np.int64)
    gold_node = np.empty(n_nodes, np.int64)
    test_node = np.empty(n_nodes, np.int64)
    first = np.full(equal_offsets.size - 1, -1, np.int64)
    follow = np.empty(n_nodes, np.int64)
    hits = np.empty((2, n_nodes), np.int8)
    left = np.empty(n_leaves + 1, np.int64)
    right = np.empty(n_leaves + 1, np.int64)

    for t in range(n):
        g0, g1 = gold_leaves[t], gold_leaves[t + 1]
        h0, h1 = test_leaves[t], test_leaves[t + 1]
        n_gold_words = 0
        length = 0
        for k in range(g0, g1):
            keep = 0 if gold_flags[k] & DELETE else 1
            gold_copies[k - g0] = keep
            n_gold_words += keep
            length += 0 if gold_flags[k] & DELETE_FOR_LENGTH else 1
        n_test_words = 0
        for k in range(h0, h1):
            keep = 0 if test_flags[k] & DELETE else 1
            test_copies[k - h0] = keep
            n_test_words += keep

        status = VALID
        if n_test_words == 0:
            status = SKIP
        elif n_gold_words != n_test_words:
            more_gold, more_test = _restore_quotes(
                gold_flags[g0:g1], test_flags[h0:h1], gold_copies, test_copies
            )
            n_gold_words += more_gold
            n_test_words += more_test
            if n_gold_words != n_test_words:
                status = ERROR
        _lay_out(
            gold_copies, gold_word[g0:g1], gold_tag[g0:g1], gold_position, gold_kept
        )
        _lay_out(
            test_copies, test_word[h0:h1], test_tag[h0:h1], test_position, test_kept
        )
        if status == VALID and not _same_words(
            gold_kept[0], test_kept[0], n_gold_words, equal_words
        ):
            status = ERROR

        i0, i1 = gold_nodes[t], gold_nodes[t + 1]
        j0, j1 = test_nodes[t], test_nodes[t + 1]
        n_gold = _collect(
            gold_size[i0:i1],
            gold_bracket[i0:i1],
            gold_start[i0:i1],
            gold_stop[i0:i1],
            gold_position,
            gold_brackets,
            gold_node,
        )
        n_test = _collect(
            test_size[j0:j1],
            test_bracket[j0:j1],
            test_start[j0:j1],
            test_stop[j0:j1],
            test_position,
            test_brackets,
            test_node,
        )
        hits[:, : max(n_gold, n_test)] = UNMATCHED
        counts[t, STATUS] = status
        counts[t, LENGTH] = length
        counts[t, GOLD] = n_gold
        counts[t, TEST] = n_test
        if status == VALID:
            counts[t, MATCHED] = _match(
                gold_brackets,
                n_gold,
                test_brackets,
                n_test,
                equal_offsets,
                equal_labels,
                first,
                follow,
                hits,
            )
            counts[t, CROSSING] = _crossings(
                gold_brackets,
                n_gold,
                test_brackets,
                n_test,
                n_gold_words,
                left,
                right,
                follow,
            )
            counts[t, WORDS] = n_gold_words
            counts[t, CORRECT_TAGS] = _correct_tags(
                gold_kept[1], test_kept[1], n_gold_words, equal_offsets, equal_labels
            )
        for k in range(n_gold):
            gold_state[i0 + gold_node[k]] = hits[0, k]
        for k in range(n_test):
            test_state[j0 + test_node[k]] = hits[1, k]
    return counts, gold_state, test_state
