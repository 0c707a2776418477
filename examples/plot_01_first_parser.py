"""
A first parser in ten lines
===========================

From a treebank to a parser and its score. The treebank is drawn from a small English;
:func:`~lpcfg_sk.read_treebank` reads your own.
"""

# %%
# The ten lines. ``make_parser`` puts the usual preprocessing in front of a learner;
# what comes out is an ordinary scikit-learn pipeline.

from lpcfg_sk import SpectralLPCFG, make_parser
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.metrics import parseval_summary

train, test = load_toy(subset="train"), load_toy(subset="test")
parser = make_parser(SpectralLPCFG(m=8))
parser.fit(train)
predicted = parser.predict(test)
summary = parseval_summary(test, predicted)
print(summary.round(2))

# %%
# ``predict`` takes trees, whose words it parses, lists of words, or strings with spaces
# between words. The result has the labels of the treebank; that the grammar inside is
# binary does not show.

sentence = "the old teacher saw a letter about the students in the box ."
words = sentence.split()
tree = parser.predict([words])[0]
print(tree)
print(tree.draw())

# %%
# In a notebook a tree is shown as a picture.

tree

# %%
# How sure is the parser? The posterior probability of each bracket is a triangle of
# spans: the row is the first word, the column the last one. Where the phrase "about the
# students" or "in the box" belongs is open, and several brackets share the probability.

import matplotlib.pyplot as plt

from lpcfg_sk import PivotLPCFG
from lpcfg_sk.inspection import ChartDisplay, tree_diff

probabilistic = make_parser(PivotLPCFG(m=8)).fit(train)
ChartDisplay.from_estimator(probabilistic, words, threshold=0.15)

# %%
# The best trees with their scores say the same in another way.

for other, score in probabilistic.parse_kbest([words], k=3)[0]:
    print(f"{score:8.3f}  {other}")

# %%
# What was wrong? Take the shortest sentence with a mistake: ``-`` marks brackets that
# the parser made up, ``+`` those that it missed.

wrong = [i for i in range(len(test)) if test[i] != predicted[i]]
number = min(wrong, key=lambda i: len(test[i].words()))
print(" ".join(test[number].words()))
print(tree_diff(test[number], predicted[number]))

# %%
# A parser is saved without pickle, so a file can be opened without trusting it.

import tempfile
from pathlib import Path

from lpcfg_sk import load, save

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "english.lpcfg"
    save(parser, path)
    print(path.stat().st_size // 1000, "kB")
    assert load(path).predict([words])[0] == tree
plt.show()
