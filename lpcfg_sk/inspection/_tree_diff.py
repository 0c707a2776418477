"""Differences between two trees as text."""

from html import escape

from lpcfg_sk.treebank import Treebank

_ANSI = {"right": "\033[32m", "wrong": "\033[31m", "missed": "\033[33m"}
_HTML = {"right": "#1a7f37", "wrong": "#cf222e", "missed": "#9a6700"}


def tree_diff(gold, predicted, *, format="text"):
    """Brackets of a predicted tree that are right, wrong and missed.

    Parameters
    ----------
    gold, predicted : Tree
        Two trees over the same words.
    format : {"text", "ansi", "html"}, default="text"
        "text" marks wrong brackets with ``-`` and missed ones with ``+``; "ansi" and
        "html" colour right, wrong and missed ones.

    Returns
    -------
    diff : str
        A summary, then one line per bracket that differs.

    Examples
    --------
    >>> from lpcfg_sk import Tree
    >>> from lpcfg_sk.inspection import tree_diff
    >>> gold = Tree.from_string("(S (NP (N dogs)) (VP (V see) (NP (N cats))))")
    >>> predicted = Tree.from_string("(S (NP (N dogs)) (V see) (NP (N cats)))")
    >>> print(tree_diff(gold, predicted))
    3 right, 0 wrong, 1 missed
    + VP: see cats
    """
    if format not in ("text", "ansi", "html"):
        raise ValueError(f"format is 'text', 'ansi' or 'html', got {format!r}")
    words = gold.words()
    if words != predicted.words():
        raise ValueError("the trees have different words")
    missed, brackets = _brackets(gold), _brackets(predicted)
    wrong = []
    for bracket in brackets:
        if bracket in missed:
            missed.remove(bracket)
        else:
            wrong.append(bracket)
    right = len(brackets) - len(wrong)
    lines = [("right", f"{right} right, {len(wrong)} wrong, {len(missed)} missed")]
    marked = [("wrong", "-", b) for b in wrong] + [("missed", "+", b) for b in missed]
    for kind, mark, (label, begin, end) in sorted(marked, key=lambda x: x[2][1:]):
        lines.append((kind, f"{mark} {label}: {' '.join(words[begin:end])}"))
    if format == "text":
        return "\n".join(text for _, text in lines)
    if format == "ansi":
        return "\n".join(f"{_ANSI[kind]}{text}\033[0m" for kind, text in lines)
    spans = (
        f'<span style="color:{_HTML[kind]}">{escape(text)}</span>'
        for kind, text in lines
    )
    return f"<pre>{'<br>'.join(spans)}</pre>"


def _brackets(tree):
    treebank = Treebank([tree])
    inner = (treebank.size > 1) & (treebank.label >= 0)
    columns = (treebank.label, treebank.start, treebank.stop)
    brackets = zip(*(column[inner].tolist() for column in columns), strict=True)
    return [(treebank.labels[label], *span) for label, *span in brackets]
