"""Pairs of trees that agree, disagree and fail in all the ways EVALB knows."""

from itertools import pairwise

from hypothesis import strategies as st

LABELS = ("S", "NP", "VP", "VP-SBJ", "NP=1", "ADVP", "PRT", "TOP", "-X-")
TAGS = ("NN", "VBZ", "POS", "NN-1", "ADVP", "TOP", ".", "``", "''", "-NONE-")
WORDS = ("a", "b", "B", "'", '"', "/")


@st.composite
def brackets(draw, words, depth=4, labels=LABELS):
    """One bracketed line over the given words, with unary chains."""
    if len(words) == 1:
        text = f"({draw(st.sampled_from(TAGS))} {words[0]})"
        chain = draw(st.lists(st.sampled_from(labels), max_size=2))
    else:
        if depth == 0:
            cuts = list(range(1, len(words)))
        else:
            cut = st.integers(1, len(words) - 1)
            cuts = sorted(draw(st.sets(cut, min_size=1, max_size=3)))
        bounds = [0, *cuts, len(words)]
        text = " ".join(
            draw(brackets(words[a:b], depth - 1, labels)) for a, b in pairwise(bounds)
        )
        chain = draw(st.lists(st.sampled_from(labels), min_size=1, max_size=3))
    for label in chain:
        text = f"({label} {text})"
    return text


@st.composite
def pairs(draw, labels=LABELS):
    """Gold line, predicted line."""
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
    gold = draw(brackets(words, labels=labels))
    other = list(words)
    change = draw(st.sampled_from(["none", "none", "none", "drop", "case", "quote"]))
    if change == "drop" and len(other) > 1:
        other.pop()
    elif change == "case":
        other = ["B" if word == "b" else word for word in other]
    elif change == "quote":
        other.insert(draw(st.integers(0, len(other))), '"')
    return gold, draw(brackets(other, labels=labels))


def parameters():
    """Keyword arguments of ParsevalParameters."""
    label_pairs = st.sampled_from(
        [("ADVP", "PRT"), ("PRT", "NP"), ("NP", "VP"), ("NN", "POS"), ("S", "TOP")]
    )
    return st.fixed_dictionaries(
        {
            "delete_labels": st.lists(
                st.sampled_from(["TOP", "NP", ".", "``", "''", "-NONE-", "POS"])
            ).map(tuple),
            "delete_labels_for_length": st.sampled_from([(), ("-NONE-", ".")]),
            "eq_labels": st.lists(label_pairs, max_size=3).map(tuple),
            "eq_words": st.sampled_from([(), (("b", "B"),), (("b", "B"), ("B", "a"))]),
            "quote_labels": st.sampled_from([(), ("``", "''", "POS", "NN", "VBZ")]),
            "cutoff_len": st.integers(1, 6),
            "labeled": st.booleans(),
            "max_error": st.none(),
            "root_labels": st.sampled_from([(), ("TOP", "S"), ("TOP", "")]),
        }
    )
