"""EVALB as a slow, literal reading of what the program does, one line a tree."""

import math

SPACE = " \t\n\v\f\r"


def read_line(line, prm):
    """Words (word, tag), brackets [start, end, label, is unlabelled root], quote marks,
    length.
    """
    words, brackets, quotes, stack, length = [], [], [], [], 0
    p = 0
    while p < len(line):
        if line[p] in SPACE:
            p += 1
        elif line[p] == "(":
            label, p = _take(line, p + 1)
            q = p
            while q < len(line) and line[q] in SPACE:
                q += 1
            word, q = _take(line, q)
            if q > p and word and line[q] == ")":
                if label not in prm["delete_labels_for_length"]:
                    length += 1
                if label in prm["quote_labels"] and word in ("'", '"', "/"):
                    quotes.append(
                        {
                            "word": (word, label),
                            "index": len(words),
                            "bracket": len(brackets),
                            "open": list(stack),
                        }
                    )
                if label not in prm["delete_labels"]:
                    words.append((word, label))
                p = q + 1
            else:
                unlabelled_root = not stack and label == ""
                stack.append(len(brackets))
                brackets.append([len(words), None, label, unlabelled_root])
        else:
            assert line[p] == ")", f"reading {line!r}"
            brackets[stack.pop()][1] = len(words)
            p += 1
    assert not stack, f"unbalanced {line!r}"
    return words, brackets, quotes, length


def _take(line, p):
    q = p
    while q < len(line) and line[q] not in SPACE + "()":
        q += 1
    return line[p:q], q


def equal(a, b, pairs):
    return a == b or (a, b) in pairs or (b, a) in pairs


def fix_quotes(gold, test, prm):
    deleted = prm["delete_labels"]
    for i, quote in enumerate(test[2]):
        index = quote["index"]
        for j, other in enumerate(gold[2]):
            a, b = other["word"][1], quote["word"][1]
            if other["index"] != index or a == b:
                continue
            if a in deleted and b not in deleted:
                reinsert(other, gold)
                for later in gold[2][j:]:
                    later["index"] += 1
            elif b in deleted and a not in deleted:
                reinsert(quote, test)
                for later in test[2][i:]:
                    later["index"] += 1


def reinsert(quote, side):
    words, brackets = side[0], side[1]
    words.insert(quote["index"], quote["word"])
    for k, bracket in enumerate(brackets):
        if k >= quote["bracket"]:
            bracket[0] += 1
            bracket[1] += 1
    for k in quote["open"]:
        brackets[k][1] += 1


def counted_brackets(brackets, prm):
    kept = []
    roots = prm["root_labels"]
    for start, end, label, unlabelled_root in brackets:
        if start == end or (unlabelled_root and "" in roots):
            continue
        for stop in "-=":
            label = label.split(stop)[0]
        if label and label in roots:
            continue
        if not any(equal(label, d, prm["eq_labels"]) for d in prm["delete_labels"]):
            kept.append((start, end, label))
    return kept


def sentence(gold_line, test_line, prm):
    """Length, status, matched, gold, test, crossing, words, correct tags."""
    gold, test = read_line(gold_line, prm), read_line(test_line, prm)
    length = gold[3]
    if not test[0]:
        return (length, 2, 0, 0, 0, 0, 0, 0)
    if len(gold[0]) != len(test[0]):
        fix_quotes(gold, test, prm)
    words = list(zip(gold[0], test[0], strict=False))
    if len(gold[0]) != len(test[0]) or not all(
        equal(a[0], b[0], prm["eq_words"]) for a, b in words
    ):
        return (length, 1, 0, 0, 0, 0, 0, 0)
    ours, theirs = (counted_brackets(side[1], prm) for side in (gold, test))
    free, matched = [True] * len(theirs), 0
    for start, end, label in ours:
        for j, (start2, end2, label2) in enumerate(theirs):
            same = not prm["labeled"] or equal(label, label2, prm["eq_labels"])
            if free[j] and start == start2 and end == end2 and same:
                free[j] = False
                matched += 1
                break
    crossing = sum(
        any(s < a < e < b or a < s < b < e for s, e, _ in ours) for a, b, _ in theirs
    )
    tags = sum(equal(a[1], b[1], prm["eq_labels"]) for a, b in words)
    n_words = len(words)
    return (length, 0, matched, len(ours), len(theirs), crossing, n_words, tags)


def totals(rows):
    """What the summary of EVALB shows, of rows of :func:`sentence`."""
    valid = [row for row in rows if row[1] == 0]
    n = len(valid)
    matched, gold, test, crossing, words, tags = (
        sum(row[k] for row in valid) for k in range(2, 8)
    )
    recall = 100.0 * matched / gold if gold else 0.0
    precision = 100.0 * matched / test if test else 0.0
    f1 = math.nan
    if matched:
        f1 = 2 * precision * recall / (precision + recall)
    return {
        "n_sentences": len(rows),
        "n_error": sum(row[1] == 1 for row in rows),
        "n_skip": sum(row[1] == 2 for row in rows),
        "n_valid": n,
        "recall": recall,
        "precision": precision,
        "f1": f1,
        "complete_match": 100.0 * sum(r[2] == r[3] == r[4] for r in valid) / n
        if n
        else 0.0,
        "average_crossing": crossing / n if n else 0.0,
        "no_crossing": 100.0 * sum(r[5] == 0 for r in valid) / n if n else 0.0,
        "two_or_less_crossing": 100.0 * sum(r[5] <= 2 for r in valid) / n if n else 0.0,
        "tag_accuracy": 100.0 * tags / words if words else 0.0,
        "matched_brackets": matched,
        "gold_brackets": gold,
        "test_brackets": test,
        "cross_brackets": crossing,
        "words": words,
        "correct_tags": tags,
    }
