"""
A part-of-speech tagger from spectral learning
==============================================

Tagged sentences are trees that branch to the right, and a hidden Markov model whose
tags have latent states is an L-PCFG over such trees. So a tagger is a parser: the
same features, the same learner, the same marginals.

The text is the sample of the Penn Treebank where NLTK has it
(``nltk.download("treebank")``), else the toy treebank.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lpcfg_sk import PCFG, SpectralLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.spectral import (
    tagged_sequences_to_treebank,
    treebank_to_tagged_sequences,
)


def tagged_text():
    """Tagged sentences, and where they come from."""
    try:
        from nltk.corpus import treebank

        sentences = [
            [(word, tag) for word, tag in sentence if tag != "-NONE-"]
            for sentence in treebank.tagged_sents()
        ]
        return sentences, "Penn Treebank sample of nltk"
    except (ImportError, LookupError):
        return treebank_to_tagged_sequences(load_toy(1200)), "toy treebank"


# %%
# The trees of two sentences.

sentences, source = tagged_text()
sentences = [s for s in sentences if 3 <= len(s) <= 40][:2400]
cut = 4 * len(sentences) // 5
train = tagged_sequences_to_treebank(sentences[:cut])
test = tagged_sequences_to_treebank(sentences[cut:])
print(f"{source}: {len(train)} sentences to learn from, {len(test)} to tag")
print(train[0])
print(train[1])

# %%
# Tags of the words of `test`, for a growing number of latent states. With one state
# and no features the model is the treebank PCFG of these trees. It chooses the next tag
# given the tag, as a hidden Markov model does, and in the same step whether the next
# word is the last one, on which an ordinary hidden Markov model decides given the next
# tag alone, or not at all. (In the toy treebank words all but decide their tags, so
# that there is nothing to gain; real text is another matter.)


def accuracy(tagger):
    predicted = treebank_to_tagged_sequences(tagger.predict(test.unparsed()))
    pairs = [
        (one, two)
        for gold, guess in zip(sentences[cut:], predicted, strict=True)
        for (_, one), (_, two) in zip(gold, guess, strict=True)
    ]
    return sum(one == two for one, two in pairs) / len(pairs)


rows = [("chain PCFG", 1, accuracy(make_parser(PCFG()).fit(train)))]
for m in (2, 4, 8):
    tagger = make_parser(SpectralLPCFG(m=m)).fit(train)
    rows.append(("spectral", m, accuracy(tagger)))
table = pd.DataFrame(rows, columns=["model", "m", "accuracy"])
print(table.round(4).to_string(index=False))

# %%
# A latent state splits a tag by its surroundings. The vectors of the nodes, projected
# inside features, show it: verbs that are followed by the same things lie close.

words = tagger[:-1].transform(train)
vectors = tagger[-1].transform(words).vectors
frequent = pd.Series([tag for s in sentences[:cut] for _, tag in s]).value_counts()
tag = next(t for t in frequent.index if t.startswith("VB"))
nodes = np.flatnonzero(words.label == words.labels.index(f"{tag}>"))
tree = np.searchsorted(words.node_offsets, nodes, side="right") - 1
token = words.token[words.token_offsets[tree] + words.start[nodes]]
verb = pd.Series([words.tokens[i] for i in token])
figure, ax = plt.subplots(layout="constrained")
ax.scatter(*vectors[nodes, 1:3].T, s=8, color="0.85")
for name in verb.value_counts().index[:6]:
    ax.scatter(*vectors[nodes[verb == name], 1:3].T, s=14, label=name)
ax.set(
    title=f"Positions tagged {tag}, the most frequent words in colour",
    xlabel="second component",
    ylabel="third component",
)
ax.legend(fontsize="small")
plt.show()
