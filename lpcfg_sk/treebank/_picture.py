"""Pictures of trees, and small tables of figures, for notebooks."""

import re
from html import escape

#: Height of a row, width of a character and gap between words of a picture, in pixels.
_ROW, _CHAR, _GAP = 44, 8.4, 14
#: Width of a picture that needs scrolling on most screens.
_WIDE = 1200
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_svg(tree):
    """Draw a tree as a stand-alone SVG picture, with all words on the bottom row.

    Parameters
    ----------
    tree : Tree
        Any tree.

    Returns
    -------
    svg : str
        In the colour of text on the page, whether light or dark.
    """
    nodes, edges = _layout(tree)
    depth = max(row for row, *_ in nodes)
    width = max(x + len(text) * _CHAR / 2 for _, x, text, _ in nodes) + _GAP
    height = (depth + 1) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height}" viewBox="0 0 {width:.0f} {height}" '
        'font-family="sans-serif" font-size="14" text-anchor="middle" '
        'fill="currentColor" style="max-width:none">'
    ]
    place = [(depth if is_word else row, x) for row, x, _, is_word in nodes]
    for parent, child in edges:
        (r1, x1), (r2, x2) = place[parent], place[child]
        dash = ' stroke-dasharray="2,3"' if nodes[child][3] else ""
        parts.append(
            f'<line x1="{x1:.1f}" y1="{r1 * _ROW + 24}" x2="{x2:.1f}" '
            f'y2="{r2 * _ROW + 8}" stroke="#888"{dash}/>'
        )
    for (row, x), (_, _, text, is_word) in zip(place, nodes, strict=True):
        style = "" if is_word else ' font-weight="bold"'
        parts.append(f'<text x="{x:.1f}" y="{row * _ROW + 20}"{style}>')
        parts.append(f"{escape(text, quote=False)}</text>")
    parts.append("</svg>")
    return _NOT_IN_XML.sub("\ufffd", "".join(parts))


def _layout(tree):
    """Return rows, centres and texts of all nodes, and the edges between them."""
    nodes, edges = [], []
    stack = [(tree, 0, -1)]
    while stack:
        node, row, parent = stack.pop()
        is_word = isinstance(node, str)
        index = len(nodes)
        nodes.append([row, 0.0, node if is_word else (node.label or "·"), is_word])
        if parent >= 0:
            edges.append((parent, index))
        if not is_word:
            stack.extend((c, row + 1, index) for c in reversed(node.children))
    x = _GAP
    for parent, child in edges:
        if nodes[child][3]:
            # A pre-terminal may be wider than its word.
            half = max(len(nodes[child][2]), len(nodes[parent][2])) * _CHAR / 2
            nodes[child][1] = x + half
            x += 2 * half + _GAP
    # A parent is above the middle of its first and its last child; in a wide picture
    # above the first one, so that the root is in sight before the picture is scrolled.
    last, share = {}, 0.5 if x <= _WIDE else 0.0
    for parent, child in reversed(edges):
        centre = nodes[child][1]
        right = last.setdefault(parent, centre)
        nodes[parent][1] = centre + share * (right - centre)
    return nodes, edges


def figures_html(title, figures, below=""):
    """Write a heading and a table of two columns.

    Parameters
    ----------
    title : str
        Name of the object.
    figures : mapping of str to object
        Names and values; whole numbers are written with commas.
    below : str, default=""
        HTML that follows the table.

    Returns
    -------
    html : str

    Examples
    --------
    >>> from lpcfg_sk.treebank import figures_html
    >>> "<td>1,200</td>" in figures_html("Treebank", {"trees": 1200})
    True
    """
    texts = {
        name: f"{value:,}" if isinstance(value, int) else str(value)
        for name, value in figures.items()
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f"<td>{escape(text)}</td></tr>"
        for name, text in texts.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>"
