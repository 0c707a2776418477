"""Binarisation, its inverse and head rules, one obvious step after the other."""

from lpcfg_sk import Tree


def escape(label):
    if label == "":
        return "\\0"
    return "".join("\\" + c if c in "\\+@|^~" else c for c in label)


def spell(chain, marked, ancestors):
    mark = "~" if marked else ""
    return "+".join(map(escape, chain)) + mark + spell_ancestors(ancestors)


def spell_ancestors(ancestors):
    return "".join("^" + escape(label) for label in ancestors)


def is_word(child):
    return isinstance(child, str)


def is_leaf(tree):
    return len(tree.children) == 1 and is_word(tree.children[0])


def binarize(tree, head_of, horizontal, vertical, preterminals, ancestors=()):
    """Binary tree of a tree; `head_of(node)` gives the position of the head child."""
    chain, node = [tree.label], tree
    while len(node.children) == 1 and not is_word(node.children[0]):
        node = node.children[0]
        chain.append(node.label)
    marked = is_leaf(node) != (chain[-1] in preterminals)
    remembered = ancestors[: vertical - 1]
    if is_leaf(node):
        if len(chain) == 1:
            remembered = ()
        return Tree(spell(chain, marked, remembered), node.children)
    above = (*reversed(chain), *ancestors)
    children = [
        Tree("\\bare", [c])
        if is_word(c)
        else binarize(c, head_of, horizontal, vertical, preterminals, above)
        for c in node.children
    ]
    names = ["\\bare" if is_word(c) else escape(c.label) for c in node.children]
    head = head_of(node)

    def build(lo, hi, memory):
        if hi - lo == 1:
            return children[lo]
        if not memory:
            label = spell(chain, marked, remembered)
        else:
            kept = memory if horizontal is None else memory[len(memory) - horizontal :]
            if horizontal is not None and horizontal > len(memory):
                kept = memory
            label = "@" + escape(chain[-1]) + spell_ancestors(remembered)
            label += "".join("|" + name for name in kept)
        if hi - 1 > head:
            last = names[hi - 1]
            return Tree(label, [build(lo, hi - 1, [*memory, last]), children[hi - 1]])
        return Tree(label, [children[lo], build(lo + 1, hi, [*memory, names[lo]])])

    return build(0, len(children), [])


def parts_between(text, separators):
    """Split at separators that no backslash precedes; the first part and the rest."""
    parts, current, i = [], "", 0
    while i < len(text):
        if text[i] == "\\":
            current += text[i : i + 2]
            i += 2
            continue
        if text[i] in separators:
            parts.append(current)
            current = ""
        else:
            current += text[i]
        i += 1
    return [*parts, current]


def unescape(text):
    if text == "\\0":
        return ""
    out, i = "", 0
    while i < len(text):
        if text[i] == "\\" and text[i + 1 : i + 2] in tuple("\\+@|^~"):
            i += 1
        out += text[i]
        i += 1
    return out


def decode(label):
    """Pair (intermediate, chain)."""
    if label == "\\bare":
        return False, ()
    intermediate = label.startswith("@")
    text = parts_between(label[intermediate:], "|^")[0]
    pieces = parts_between(text, "~")
    if len(pieces) > 1 and pieces[-1] == "":
        text = text[:-1]
    return intermediate, tuple(unescape(p) for p in parts_between(text, "+"))


def unbinarize(tree):
    expanded = expand(tree, root=True)
    assert len(expanded) == 1
    return expanded[0]


def expand(tree, root=False):
    """Trees and words that a node of a binary tree becomes."""
    intermediate, chain = decode(tree.label)
    if is_leaf(tree):
        below = list(tree.children)
        if not chain and not root:
            return below
    else:
        below = [x for c in tree.children for x in ([c] if is_word(c) else expand(c))]
        if (intermediate or not chain) and not root:
            return below
    for label in reversed(chain or ("X",)):
        below = [Tree(label, below)]
    return below


def head_position(label, children, rules):
    """Position of the head child; `children` are labels, None for a bare word."""
    punctuation = {",", ".", ":", "``", "''", "-LRB-", "-RRB-", "#", "HYPH"}
    rule = rules.get(label, rules.get(None, ("right", [])))
    direction = "right"
    for direction, groups in rule if isinstance(rule, list) else [rule]:
        order = range(len(children))
        if direction == "right":
            order = reversed(order)
        order = list(order)
        for group in groups:
            wanted = {group} if isinstance(group, str) else set(group)
            for i in order:
                if children[i] in wanted:
                    return i
    order = list(range(len(children)))
    if direction == "right":
        order.reverse()
    for i in order:
        if children[i] not in punctuation:
            return i
    return order[0]


def head_by_rules(rules):
    def head_of(node):
        names = [None if is_word(c) else c.label for c in node.children]
        return head_position(node.label, names, rules)

    return head_of


def heads(tree, rules):
    """Lists over the preorder: label, words, head word of every node."""
    start = 0
    nodes = []

    def visit(node):
        nonlocal start
        place = len(nodes)
        nodes.append(None)
        begin = start
        if is_word(node) or is_leaf(node):
            start += 1
            nodes[place] = (begin, start, begin)
            return begin
        below = [visit(c) for c in node.children]
        names = [None if is_word(c) else c.label for c in node.children]
        head = below[head_position(node.label, names, rules)]
        nodes[place] = (begin, start, head)
        return head

    visit(tree)
    return nodes
