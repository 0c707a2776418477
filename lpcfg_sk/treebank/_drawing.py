from xml.sax.saxutils import escape


def draw_text(tree):
    """Draw a tree with one line a node.

    Parameters
    ----------
    tree : Tree
        What to draw.

    Returns
    -------
    drawing : str
    """
    lines, stack = [], [(tree, "", "")]
    while stack:
        node, first, rest = stack.pop()
        if isinstance(node, str):
            lines.append(first + node)
            continue
        children = node.children
        if len(children) == 1 and isinstance(children[0], str):
            lines.append(f"{first}{node.label} {children[0]}")
            continue
        lines.append(first + (node.label or "·"))
        last = len(children) - 1
        for i, child in reversed(list(enumerate(children))):
            branch = "└── " if i == last else "├── "
            below = "    " if i == last else "│   "
            stack.append((child, rest + branch, rest + below))
    return "\n".join(lines)


_ROW, _CHAR, _GAP = 44, 8.4, 14


def draw_svg(tree):
    """Draw a tree as a stand-alone SVG picture.

    Parameters
    ----------
    tree : Tree
        What to draw. Words are aligned on the bottom row.

    Returns
    -------
    svg : str
    """
    nodes, edges = _layout(tree)
    depth = max(row for row, *_ in nodes)
    width = max(x + len(text) * _CHAR / 2 for _, x, text, _ in nodes) + _GAP
    height = (depth + 1) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height}" viewBox="0 0 {width:.0f} {height}" '
        'font-family="sans-serif" font-size="14" text-anchor="middle">'
    ]
    bottom = depth
    place = [(bottom if is_word else row, x) for row, x, _, is_word in nodes]
    for parent, child in edges:
        (r1, x1), (r2, x2) = place[parent], place[child]
        dash = ' stroke-dasharray="2,3"' if nodes[child][3] else ""
        parts.append(
            f'<line x1="{x1:.1f}" y1="{r1 * _ROW + 24}" x2="{x2:.1f}" '
            f'y2="{r2 * _ROW + 8}" stroke="#888"{dash}/>'
        )
    for (row, x), (_, _, text, is_word) in zip(place, nodes, strict=True):
        style = 'fill="#000"' if is_word else 'fill="#1f4e79" font-weight="bold"'
        parts.append(f'<text x="{x:.1f}" y="{row * _ROW + 20}" {style}>')
        parts.append(f"{escape(text)}</text>")
    parts.append("</svg>")
    return "".join(parts)


def _layout(tree):
    """Rows, centres and texts of all nodes, and the edges between them."""
    nodes, edges, order = [], [], []
    stack = [(tree, 0, -1)]
    while stack:
        node, row, parent = stack.pop()
        is_word = isinstance(node, str)
        index = len(nodes)
        nodes.append([row, 0.0, node if is_word else (node.label or "·"), is_word])
        if parent >= 0:
            edges.append((parent, index))
        order.append(index)
        if not is_word:
            stack.extend((c, row + 1, index) for c in reversed(node.children))
    children = [[] for _ in nodes]
    parents = {child: parent for parent, child in edges}
    for parent, child in edges:
        children[parent].append(child)
    x = _GAP
    for index in order:
        if nodes[index][3]:
            # A pre-terminal may be wider than its word.
            above = nodes[parents[index]][2]
            half = max(len(nodes[index][2]), len(above)) * _CHAR / 2
            nodes[index][1] = x + half
            x += 2 * half + _GAP
    for index in reversed(order):
        if children[index]:
            centres = [nodes[c][1] for c in children[index]]
            nodes[index][1] = (centres[0] + centres[-1]) / 2
    return nodes, edges
