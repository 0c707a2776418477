"""Trees that hypothesis makes."""

from hypothesis import strategies as st

from lpcfg_sk import Tree

# Labels that look like what binarisation writes, and ordinary ones.
ODD = ["\\bare", "\\0", "@", "@A", "A~", "A^B", "A|B", "A+B", "\\", "-<", "\\+", "A\\"]
labels = st.one_of(
    st.sampled_from(["A", "B", "NP", "VP", "NN", ",", "-LRB-"]),
    st.sampled_from(ODD),
    st.text(alphabet="AB+@|^~\\-<0", min_size=1, max_size=3),
)
words = st.sampled_from(["a", "b", "@", "UNK", "+"])


def trees(labels=labels, max_children=5, max_leaves=12):
    """Trees with unary chains, wide nodes, bare words."""
    below = st.builds(lambda label, word: Tree(label, [word]), labels, words)
    return st.recursive(
        below,
        lambda inner: st.one_of(
            st.builds(lambda label, child: Tree(label, [child]), labels, inner),
            st.builds(
                Tree,
                labels,
                st.lists(st.one_of(inner, words), min_size=1, max_size=max_children),
            ),
        ),
        max_leaves=max_leaves,
    )
