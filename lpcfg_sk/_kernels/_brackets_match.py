"""Brackets of two trees over the same words: matches, crossings and tags.

Everything is linear in the size of the trees. Brackets come in preorder, that is,
sorted by (start, -stop), also after words were deleted. Those of the same span are
therefore found by merging the two lists, and the innermost gold bracket around every
boundary between two words, which decides about crossing, by one sweep with a stack.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import HELPER, KERNEL, held, longest

STATUS, LENGTH, MATCHED, GOLD, TEST, CROSSING, WORDS, CORRECT_TAGS = range(8)
N_COUNTS = 8

VALID, ERROR, SKIP = 0, 1, 2

DELETE, DELETE_FOR_LENGTH, QUOTE = 1, 2, 4

NO_BRACKET, UNMATCHED, MATCH = -1, 0, 1


class BracketColumns(NamedTuple):
    """Trees of one side of a comparison; a row without a tree has no leaves either."""

    node_offsets: np.ndarray  # int64 (n_trees + 1,), nodes of each tree, in preorder
    size: np.ndarray  # int32 (n_nodes,), nodes of the subtree
    bracket: np.ndarray  # int32 (n_nodes,), label that counts, or NO_BRACKET
    start: np.ndarray  # int32 (n_nodes,), first word
    stop: np.ndarray  # int32 (n_nodes,), word after the last one
    leaf_offsets: np.ndarray  # int64 (n_trees + 1,), words of each tree
    word: np.ndarray  # int32 (n_leaves,), ids that both sides share
    tag: np.ndarray  # int32 (n_leaves,), ids that both sides share
    flags: np.ndarray  # uint8 (n_leaves,), DELETE, DELETE_FOR_LENGTH and QUOTE


class EqualLabels(NamedTuple):
    """Labels that equal label a, a included: ``labels[offsets[a]:offsets[a + 1]]``."""

    offsets: np.ndarray  # int64 (n_labels + 1,)
    labels: np.ndarray  # int32, ascending for each label


class _Layout(NamedTuple):
    """Work space for the words and brackets of one tree that count."""

    copies: np.ndarray  # (n_leaves,), how often each word is kept
    position: np.ndarray  # (n_leaves + 1,), number of kept words before each word
    kept: np.ndarray  # (2, n_leaves), kept words and tags
    brackets: np.ndarray  # (3, n_nodes), start, stop and label of each bracket
    node: np.ndarray  # (n_nodes,), node of each bracket


class _Scratch(NamedTuple):
    """Work space for one pair of trees."""

    first: np.ndarray  # (n_labels,), first free test bracket of each label, or -1
    follow: np.ndarray  # (n_nodes,), next test bracket of the label; stack of a sweep
    hits: np.ndarray  # (2, n_nodes), state of each gold and each test bracket
    left: np.ndarray  # (n_leaves + 1,), begin and end of the innermost gold bracket
    right: np.ndarray  # around each boundary between words


@njit(**HELPER)
def _keep_words(flags, copies):
    """Keep each word that is not deleted once, and return the number of kept words."""
    n_kept = 0
    for i in range(flags.size):
        copies[i] = (flags[i] & DELETE) == 0
        n_kept += copies[i]
    return n_kept


@njit(**HELPER)
def _quotes(flags):
    """Token and word index of each quote, the index counting kept words only."""
    token = np.empty(flags.size, dtype=np.int64)
    index = np.empty(flags.size, dtype=np.int64)
    n_quotes = 0
    n_kept = 0
    for i in range(flags.size):
        if flags[i] & QUOTE:
            token[n_quotes] = i
            index[n_quotes] = n_kept
            n_quotes += 1
        if (flags[i] & DELETE) == 0:
            n_kept += 1
    return token[:n_quotes], index[:n_quotes]


@njit(**HELPER)
def _restore_quotes(gold_flags, test_flags, gold_copies, test_copies):
    """Restore deleted quotes where the other side kept a quote at the same index.

    A quote that was restored on the gold side stands one index later from then on, so
    a second quote of the test side can restore it once more: copies may exceed one.

    Parameters
    ----------
    gold_flags, test_flags : ndarray of uint8
        Flags of the words of one tree.
    gold_copies, test_copies : ndarray of int64
        How often each word is kept; changed in place.

    Returns
    -------
    gold_shift, test_shift : int
        Number of words restored on each side.
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


@njit(**HELPER)
def _lay_out(side, t, layout):
    """Write the kept words and tags of tree t, and how many come before each."""
    copies, position, kept = layout.copies, layout.position, layout.kept
    begin, end = side.leaf_offsets[t], side.leaf_offsets[t + 1]
    word = side.word[begin:end]
    tag = side.tag[begin:end]
    n = 0
    for k in range(word.size):
        position[k] = n
        for _ in range(copies[k]):
            kept[0, n] = word[k]
            kept[1, n] = tag[k]
            n += 1
    position[word.size] = n


@njit(**HELPER)
def _collect(side, t, layout):
    """List the brackets of tree t that count, as spans of kept words."""
    position, brackets, node = layout.position, layout.brackets, layout.node
    begin, end = side.node_offsets[t], side.node_offsets[t + 1]
    size = side.size[begin:end]
    bracket = side.bracket[begin:end]
    start = side.start[begin:end]
    stop = side.stop[begin:end]
    n = 0
    for i in range(size.size):
        a, b = position[start[i]], position[stop[i]]
        if size[i] > 1 and bracket[i] >= 0 and a < b:
            brackets[0, n], brackets[1, n], brackets[2, n] = a, b, bracket[i]
            node[n] = i
            n += 1
    return n


@njit(**HELPER)
def _same_words(gold, test, n, equal_words):
    """Whether the first n words of both sides agree.

    Parameters
    ----------
    gold, test : ndarray of int32
        Kept words.
    n : int
        Number of words on both sides.
    equal_words : ndarray of int32, shape (n_pairs, 2)
        Pairs of words that count as equal.

    Returns
    -------
    bool
    """
    for k in range(n):
        a, b = gold[k], test[k]
        equal = a == b
        if not equal:
            for e in range(len(equal_words)):
                p, q = equal_words[e, 0], equal_words[e, 1]
                equal |= (a == p and b == q) or (a == q and b == p)
        if not equal:
            return False
    return True


@njit(**HELPER)
def _match(gold, n_gold, test, n_test, equal, scratch):
    """Pair brackets of equal spans and labels, each with the first free partner.

    Label equality need not be transitive, so the order of pairing matters.

    Parameters
    ----------
    gold, test : ndarray of int64, shape (3, n_nodes)
        Start, stop and label of each bracket, in preorder.
    n_gold, n_test : int
        Number of brackets.
    equal : EqualLabels
        Labels that count as equal.
    scratch : _Scratch
        ``hits`` is set to ``MATCH`` for both brackets of a pair.

    Returns
    -------
    matched : int
        Number of pairs.
    """
    equal_offsets, equal_labels = equal.offsets, equal.labels
    first, follow, hits = scratch.first, scratch.follow, scratch.hits
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
                candidate = first[equal_labels[e]]
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


@njit(**HELPER)
def _crossings(gold, n_gold, test, n_test, n_words, scratch):
    """Count the test brackets that cross at least one gold bracket.

    ``left[x], right[x]`` is the innermost gold bracket with left < x < right. A test
    bracket [a, b) is crossed from the left iff right[a] < b, from the right iff
    left[b] > a, since the brackets around one boundary are nested.

    Parameters
    ----------
    gold, test : ndarray of int64, shape (3, n_nodes)
        Start, stop and label of each bracket, in preorder.
    n_gold, n_test : int
        Number of brackets.
    n_words : int
        Number of kept words.
    scratch : _Scratch
        ``left``, ``right`` and ``follow`` are overwritten.

    Returns
    -------
    crossing : int
    """
    left, right, stack = scratch.left, scratch.right, scratch.follow
    depth = 0
    i = 0
    for x in range(n_words + 1):
        while depth > 0 and gold[1, stack[depth - 1]] <= x:
            depth -= 1
        if depth > 0:
            left[x] = gold[0, stack[depth - 1]]
            right[x] = gold[1, stack[depth - 1]]
        else:
            left[x] = -1
            right[x] = n_words + 1
        while i < n_gold and gold[0, i] == x:
            stack[depth] = i
            depth += 1
            i += 1
    crossing = 0
    for j in range(n_test):
        if right[test[0, j]] < test[1, j] or left[test[1, j]] > test[0, j]:
            crossing += 1
    return crossing


@njit(**HELPER)
def _correct_tags(gold, test, n, equal):
    """Count the words whose tags count as equal.

    Parameters
    ----------
    gold, test : ndarray of int32
        Tags of the kept words.
    n : int
        Number of words.
    equal : EqualLabels
        Labels that count as equal.

    Returns
    -------
    correct : int
    """
    offsets, labels = equal.offsets, equal.labels
    correct = 0
    for k in range(n):
        a = gold[k]
        for e in range(offsets[a], offsets[a + 1]):
            if labels[e] == test[k]:
                correct += 1
                break
    return correct


@njit(**HELPER)
def _empty_layout(n_leaves, n_nodes):
    """Return work space for trees of at most these numbers of words and nodes."""
    return _Layout(
        np.empty(n_leaves, np.int64),
        np.empty(n_leaves + 1, np.int64),
        np.empty((2, n_leaves), np.int32),
        np.empty((3, n_nodes), np.int64),
        np.empty(n_nodes, np.int64),
    )


@held
@njit(**KERNEL)
def compare_brackets(gold, test, equal_labels, equal_words):
    """Compare the trees of two treebanks pair by pair, as EVALB does.

    Parameters
    ----------
    gold, test : BracketColumns
        The two sides, with the same number of trees.
    equal_labels : EqualLabels
        Labels that count as equal.
    equal_words : ndarray of int32, shape (n_pairs, 2)
        Pairs of words that count as equal.

    Returns
    -------
    counts : ndarray of int64, shape (n_trees, N_COUNTS)
        Brackets are counted for every pair; matches, crossings and tags only where
        the status is ``VALID``.
    gold_state, test_state : ndarray of int8, shape (n_nodes,)
        ``NO_BRACKET``, ``UNMATCHED`` or ``MATCH``.
    """
    n = gold.node_offsets.size - 1
    counts = np.zeros((n, N_COUNTS), np.int64)
    gold_state = np.full(gold.size.size, NO_BRACKET, np.int8)
    test_state = np.full(test.size.size, NO_BRACKET, np.int8)
    # A quote can be restored once for every quote of the other side.
    n_leaves = longest(gold.leaf_offsets) + longest(test.leaf_offsets)
    n_nodes = max(longest(gold.node_offsets), longest(test.node_offsets))
    gold_layout = _empty_layout(n_leaves, n_nodes)
    test_layout = _empty_layout(n_leaves, n_nodes)
    scratch = _Scratch(
        np.full(equal_labels.offsets.size - 1, -1, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty((2, n_nodes), np.int8),
        np.empty(n_leaves + 1, np.int64),
        np.empty(n_leaves + 1, np.int64),
    )
    hits = scratch.hits

    for t in range(n):
        gold_flags = gold.flags[gold.leaf_offsets[t] : gold.leaf_offsets[t + 1]]
        test_flags = test.flags[test.leaf_offsets[t] : test.leaf_offsets[t + 1]]
        n_gold_words = _keep_words(gold_flags, gold_layout.copies)
        n_test_words = _keep_words(test_flags, test_layout.copies)

        status = VALID
        if n_test_words == 0:
            status = SKIP
        elif n_gold_words != n_test_words:
            more_gold, more_test = _restore_quotes(
                gold_flags, test_flags, gold_layout.copies, test_layout.copies
            )
            n_gold_words += more_gold
            n_test_words += more_test
            if n_gold_words != n_test_words:
                status = ERROR
        _lay_out(gold, t, gold_layout)
        _lay_out(test, t, test_layout)
        if status == VALID and not _same_words(
            gold_layout.kept[0], test_layout.kept[0], n_gold_words, equal_words
        ):
            status = ERROR

        n_gold = _collect(gold, t, gold_layout)
        n_test = _collect(test, t, test_layout)
        for k in range(max(n_gold, n_test)):
            hits[0, k] = UNMATCHED
            hits[1, k] = UNMATCHED
        counts[t, STATUS] = status
        counts[t, LENGTH] = 0
        for i in range(gold_flags.size):
            if (gold_flags[i] & DELETE_FOR_LENGTH) == 0:
                counts[t, LENGTH] += 1
        counts[t, GOLD] = n_gold
        counts[t, TEST] = n_test
        if status == VALID:
            gold_brackets, test_brackets = gold_layout.brackets, test_layout.brackets
            counts[t, MATCHED] = _match(
                gold_brackets, n_gold, test_brackets, n_test, equal_labels, scratch
            )
            counts[t, CROSSING] = _crossings(
                gold_brackets, n_gold, test_brackets, n_test, n_gold_words, scratch
            )
            counts[t, WORDS] = n_gold_words
            counts[t, CORRECT_TAGS] = _correct_tags(
                gold_layout.kept[1], test_layout.kept[1], n_gold_words, equal_labels
            )
        for k in range(n_gold):
            gold_state[gold.node_offsets[t] + gold_layout.node[k]] = hits[0, k]
        for k in range(n_test):
            test_state[test.node_offsets[t] + test_layout.node[k]] = hits[1, k]
    return counts, gold_state, test_state
