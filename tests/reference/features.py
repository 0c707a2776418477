"""Inside and outside features, spelt out node by node."""

from lpcfg_sk.features import Node
from lpcfg_sk.treebank import decode_label, head_token


def first_other_head(up, head):
    other = []
    for i in range(len(up)):
        j = up[i]
        while j >= 0 and head[j] == head[i]:
            j = up[j]
        other.append(head[j] if j >= 0 else -1)
    return other


def production(node):
    if node.is_leaf:
        return f"{node.label}->{node.word}"
    return f"{node.label}->{node.left.label} {node.right.label}"


def tag_of_head(treebank, node, heads):
    position = heads[treebank.node_offsets[node.row] + node.index]
    tree = range(treebank.node_offsets[node.row + 1] - treebank.node_offsets[node.row])
    leaves = [Node(treebank, node.row, i) for i in tree]
    leaves = [leaf for leaf in leaves if leaf.is_leaf]
    return leaves[position].label, position


def inside_features(treebank, node, heads):
    if node.is_leaf:
        return {f"inside:word={production(node)}"}
    a, rule = node.label, production(node)
    return {
        f"inside:left={a} {node.left.label}",
        f"inside:right={a} {node.right.label}",
        f"inside:rule={rule}",
        f"inside:rule+left={rule} | {production(node.left)}",
        f"inside:rule+right={rule} | {production(node.right)}",
        f"inside:head={a} {tag_of_head(treebank, node, heads)[0]}",
        f"inside:length={a} {node.n_words}",
    }


def step(node):
    parent = node.parent
    if parent is None:
        return f"TOP->[{node.label}]"
    if node.index == parent.left.index:
        return f"{parent.label}->[{node.label}] {parent.right.label}"
    return f"{parent.label}->{parent.left.label} [{node.label}]"


def outside_features(treebank, node, heads):
    path = [node]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    steps = [step(n) for n in path]
    labels = [n.label for n in path] + ["TOP", "TOP"]
    a = node.label
    found = {
        f"outside:parent={a} {labels[1]}",
        f"outside:grandparent={a} {labels[1]} {labels[2]}",
        f"outside:left={a} {node.start}",
        f"outside:right={a} {len(node.words) - node.stop}",
    }
    for depth, name in ((1, "rule"), (2, "rule2"), (3, "rule3")):
        if len(steps) >= depth:
            found.add(f"outside:{name}={' | '.join(steps[:depth])}")
    _, own = tag_of_head(treebank, node, heads)
    other = "TOP"
    for above in path:
        tag, position = tag_of_head(treebank, above, heads)
        if position != own:
            other = tag
            break
    if treebank.binarized and decode_label(a).intermediate:
        other, _ = tag_of_head(treebank, node.sibling, heads)
    found.add(f"outside:head={a} {other}")
    return found


def all_features(treebank, extract):
    """One set of names per node."""
    heads = head_token(treebank)
    return [
        extract(treebank, Node(treebank, row, index), heads)
        for row in range(len(treebank))
        for index in range(treebank.node_offsets[row + 1] - treebank.node_offsets[row])
    ]
