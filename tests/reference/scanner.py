"""Bracketed text and the export format, read the obvious way.

A tree is a pair of a label and a list of children, which are trees or words.
"""

import re

SPACE = b" \t\n\r\v\f"
_TOKEN = re.compile(rb"[()]|[^() \t\n\r\v\f]+")


class Fault(Exception):
    """Code and byte position of what is wrong."""

    def __init__(self, code, position):
        super().__init__(code, position)
        self.code = code
        self.position = position


def parse_tree(text, position, max_depth=None):
    """Tree whose "(" is at ``position`` of the bytes, and where it ends."""
    stack, fresh = [], False
    marks = list(_TOKEN.finditer(text, position))
    for i, mark in enumerate(marks):
        piece = mark.group()
        if piece == b"(":
            if i + 1 == len(marks):
                break
            following = marks[i + 1].group()
            if following not in (b"(", b")"):
                if marks[i + 1].end() == len(text):
                    break
                decode(following, marks[i + 1].start())
            elif following == b")":
                raise Fault("EMPTY", mark.start())
            elif stack:
                raise Fault("NO_LABEL", mark.start())
            if len(stack) == max_depth:
                raise Fault("TOO_DEEP", mark.start())
            fresh = following not in (b"(", b")")
            stack.append((following.decode() if fresh else "ROOT", []))
        elif piece == b")":
            label, children = stack.pop()
            if not children:
                raise Fault("NO_CHILD", mark.start())
            if not stack:
                return (label, children), mark.end()
            stack[-1][1].append((label, children))
        elif fresh:
            fresh = False
        else:
            if mark.end() == len(text):
                break
            stack[-1][1].append(decode(piece, mark.start()))
    raise Fault("UNCLOSED", position)


def decode(piece, position):
    """Decode a token; NUL and bytes that are no UTF-8 are faults."""
    try:
        string, bad = piece.decode(), None
    except UnicodeDecodeError as error:
        string, bad = "", error.start
    nul = piece.find(b"\0")
    if nul >= 0 and (bad is None or nul < bad):
        raise Fault("NUL", position + nul)
    if bad is not None:
        raise Fault("UNDECODABLE", position + bad)
    return string


def parse_trees(text, skip=False, max_depth=None, margin=0):
    """All trees of the bytes, and the faults as (code, position, tree number)."""
    trees, faults, seen, position = [], [], 0, 0
    while True:
        gap = text.find(b"(", position)
        end = len(text) if gap < 0 else gap
        stray = re.search(
            rb"[^ \t\n\r\v\f]", text[position:end].replace(b"\xef\xbb\xbf", b"   ")
        )
        if stray:
            at = position + stray.start()
            code = "STRAY_CLOSE" if text[at : at + 1] == b")" else "STRAY_TEXT"
            if code == "STRAY_TEXT":
                try:
                    decode(_TOKEN.match(text, at).group(), at)
                except Fault as fault:
                    code, at = fault.code, fault.position
            faults.append((code, at, seen + 1))
            if not skip:
                break
        if gap < 0:
            break
        seen += 1
        try:
            tree, position = parse_tree(text, gap, max_depth)
            trees.append(tree)
        except Fault as fault:
            closed = closing_bracket(text, gap)
            if skip and closed is None:
                faults.append(("UNCLOSED", gap, seen))
            else:
                faults.append((fault.code, fault.position, seen))
            if not skip:
                break
            if closed is None:
                line = re.compile(rb"\n[ \t]{0,%d}(?=\()" % margin).search(text, gap)
                if line is None:
                    break
                position = line.end()
            else:
                position = closed
    return trees, faults


def closing_bracket(text, position):
    """Where the bracket at ``position`` is closed, None for nowhere."""
    depth = 0
    for i in range(position, len(text)):
        depth += (text[i : i + 1] == b"(") - (text[i : i + 1] == b")")
        if depth == 0:
            return i + 1
    return None


def without_traces(tree):
    """Tree without leaves labelled -NONE-, None where nothing is left."""
    label, children = tree
    if label == "-NONE-" and is_preterminal(tree):
        return None
    kept = [c if isinstance(c, str) else without_traces(c) for c in children]
    kept = [c for c in kept if c is not None]
    return (label, kept) if kept else None


def is_preterminal(tree):
    return len(tree[1]) == 1 and isinstance(tree[1][0], str)


def bracketed(tree):
    """One line of brackets, recursively."""
    if isinstance(tree, str):
        return tree
    return f"({tree[0]} {' '.join(map(bracketed, tree[1]))})"


def columns(trees):
    """Rows (label, size, parent, start, stop) of each tree, and its words."""
    result = []
    for tree in trees:
        rows, words = [], []
        _add_rows(tree, -1, rows, words)
        result.append((rows, words))
    return result


def _add_rows(tree, parent, rows, words):
    index, start = len(rows), len(words)
    rows.append(None)
    if isinstance(tree, str):
        label = None
        words.append(tree)
    else:
        label = tree[0]
        if is_preterminal(tree):
            words.append(tree[1][0])
        else:
            for child in tree[1]:
                _add_rows(child, index, rows, words)
    rows[index] = (label, len(rows) - index, parent, start, len(words))


def export_sentence(rows):
    """Tree of an export sentence given as (word or number, label, parent) rows.

    Words come in order, nodes have int numbers; None where branches cross.
    """
    words = [(i, row) for i, row in enumerate(rows) if isinstance(row[0], str)]
    nodes = {row[0]: row for row in rows if not isinstance(row[0], str)}

    def build(number):
        parts = []
        for i, (word, tag, parent) in words:
            if parent == number:
                parts.append(([i], (tag, [word])))
        for child, (_, label, parent) in nodes.items():
            if parent == number:
                below = build(child)
                if below is None:
                    return None
                parts.append((below[0], (label, below[1])))
        parts.sort(key=lambda part: part[0])
        places = [i for part in parts for i in part[0]]
        if not parts or places != list(range(places[0], places[0] + len(places))):
            return None
        return places, [part[1] for part in parts]

    top = build(0)
    return None if top is None else ("ROOT", top[1])
