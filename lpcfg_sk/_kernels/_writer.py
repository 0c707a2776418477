"""Tree columns to bracketed text."""

from numba import njit

_SPACE = 32
_OPEN = 40
_CLOSE = 41
_NEWLINE = 10


@njit(nogil=True, cache=True)
def bracket_length(label, size, token, label_ends, token_ends):
    """Bytes that the nodes and words of some trees take, without line ends.

    Every labelled node has two brackets and its label, every node but a root has a
    space before it, and a pre-terminal another one before its word.
    """
    length = 0
    for i in range(label.size):
        if label[i] >= 0:
            length += 3 + label_ends[label[i] + 1] - label_ends[label[i]]
            if size[i] == 1:
                length += 1
        else:
            length += 1
    for k in range(token.size):
        length += token_ends[token[k] + 1] - token_ends[token[k]]
    return length


@njit(nogil=True, cache=True)
def _copy(pool, ends, symbol, text, position):
    for i in range(ends[symbol], ends[symbol + 1]):
        text[position] = pool[i]
        position += 1
    return position


@njit(nogil=True, cache=True)
def write_brackets(
    label,
    size,
    parent,
    node_offsets,
    token,
    token_offsets,
    label_pool,
    label_ends,
    token_pool,
    token_ends,
    first,
    last,
    text,
):
    """Write the trees ``first:last``, one a line; return the bytes written.

    Parameters
    ----------
    label, size, parent, node_offsets, token, token_offsets : arrays
        Columns of the trees.
    label_pool, label_ends, token_pool, token_ends : arrays
        Symbol ``i`` is ``pool[ends[i]:ends[i + 1]]``.
    first, last : int
        Which trees.
    text : uint8 array
        Output.
    """
    position = 0
    for t in range(first, last):
        base = node_offsets[t]
        n_nodes = node_offsets[t + 1] - base
        word = token_offsets[t]
        for i in range(n_nodes):
            node = base + i
            if i > 0:
                text[position] = _SPACE
                position += 1
            if label[node] >= 0:
                text[position] = _OPEN
                position = _copy(
                    label_pool, label_ends, label[node], text, position + 1
                )
            if size[node] > 1:
                continue
            if label[node] >= 0:
                text[position] = _SPACE
                position += 1
            position = _copy(token_pool, token_ends, token[word], text, position)
            word += 1
            if label[node] >= 0:
                text[position] = _CLOSE
                position += 1
            up = parent[node]
            while up >= 0 and up + size[base + up] == i + 1:
                text[position] = _CLOSE
                position += 1
                up = parent[base + up]
        text[position] = _NEWLINE
        position += 1
    return position
