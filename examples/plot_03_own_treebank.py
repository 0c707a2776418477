"""
Your own treebank: formats, unknown words, heads
================================================

What treebanks look like in practice, and where to say so: bracketed text over several
lines with traces and function tags, malformed trees, words never seen before, and a
language for which the English defaults are wrong.
"""

# %%
# Files in Penn format. A path, a folder, a pattern, a list of those or an open file
# will do, gzipped or not. Traces go, function tags are cut from the labels, and a
# nameless root is called ROOT.

import io
import warnings

import matplotlib.pyplot as plt

from lpcfg_sk import (
    PCFG,
    RareWords,
    Treebank,
    TreeBinarizer,
    make_parser,
    read_treebank,
)
from lpcfg_sk.datasets import load_toy

text = """
( (S
    (NP-SBJ-1 (DT The) (NN parser))
    (VP (VBZ seems)
      (S (NP-SBJ (-NONE- *-1))
         (VP (TO to) (VP (VB work)))))
    (. .)) )
( (S (NP-SBJ (PRP It)) (VP (VBZ does) (-LRB- -LRB-) (ADVP (RB mostly)) (-RRB- -RRB-))))
"""
treebank = read_treebank(io.StringIO(text))
for tree in treebank:
    print(tree)

# %%
# A malformed tree is an error that names the place. ``on_error="skip"`` leaves it out,
# and says how many there were.

broken = "(S (NP (NN dogs)) (VP (VBP bark)))\n(S (NP (NN cats)\n(S (VP (VB go)))\n"
try:
    read_treebank(io.StringIO(broken))
except ValueError as error:
    print(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    good = read_treebank(io.StringIO(broken), on_error="skip")
print(len(good), "trees;", caught[0].message)

# %%
# Trees also come from strings, from ``nltk.Tree`` and from lists of words. Tables are
# for looking: one row per node.

small = Treebank(["(S (NP (NN dogs)) (VP (VBP bark)))"])
print(small.to_frame().to_string())

# %%
# Learners want binary trees without unary chains. ``TreeBinarizer`` gets them there and
# back; its labels tell how. Trees are split to the right, to the left, or around their
# heads, and may remember siblings and parents.

flat = Treebank(["(NP (DT the) (JJ old) (NN dog) (ADVP (RB here)))"])
for direction in ("right", "left", "head"):
    binarizer = TreeBinarizer(direction, horizontal=1)
    binary = binarizer.fit_transform(flat)
    print(f"{direction:6}", binary[0])
    assert binarizer.inverse_transform(binary) == flat

# %%
# Heads are found by rules, English ones by default. For another set of labels give your
# own: a side to start from, and labels in order of preference.

german = Treebank(["(CS (NP (ART der) (ADJA alte) (NN Hund)) (VVFIN bellt))"])
rules = {"CS": ("left", ["VVFIN", "VP"]), "NP": ("right", ["NN", "NE"])}
heads = TreeBinarizer("head", head_rules=rules)
print(heads.fit_transform(german)[0])

# %%
# Unknown words are replaced by classes of their spelling, which are learnt from the
# treebank: the parser then knows that an unknown word in *-ed* is a verb more often
# than not. Rare words are smoothed by their classes. The words of the trees stay as
# they are.

rare = RareWords().fit(load_toy(400))
new = rare.transform([["Zorbs", "unzorbed", "the", "zorbing", "dog", "in", "1984"]])
print([new.words[i] for i in new.word])
print(rare.classes_frame().head(8))

# %%
# Instead of learnt classes, a function from a word to its class, or to several from
# fine to coarse:


def german_signature(word):
    kind = "CAP" if word[0].isupper() else "low"
    return [f"{kind}-{word[-2:]}", kind]


rare = RareWords(min_count=2, min_class_count=1, signature=german_signature)
rare.fit([["der", "Hund", "bellt"], ["der", "Mond", "scheint"]])
new = rare.transform([["der", "Grund", "grollt"]])
print([new.words[i] for i in new.word])

# %%
# All of these are parameters of ``make_parser``, and so of a search. How much do rare
# words matter here? For a plain PCFG little, as long as frequent words are kept: the
# curve moves by chance up to 20 or so, and falls where verbs and prepositions go.

trees = load_toy(900)
train, test = trees[:600], trees[600:]
counts = [1, 2, 3, 5, 10, 20, 50]
scores = []
for min_count in counts:
    parser = make_parser(PCFG(), min_count=min_count).fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores.append(100 * parser.score(test))

figure, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
ax.plot(counts, scores, "o-")
ax.set(
    xscale="log", xlabel="least count of a word that is kept", ylabel="F1 of the PCFG"
)
ax.set_xticks(counts, labels=map(str, counts))
ax.minorticks_off()

# %%
# Tags that you already have are kept: give pairs.

tagged = [("zorbs", "NNS"), ("dax", "VBP"), (".", ".")]
print(parser.predict([tagged])[0])
plt.show()
