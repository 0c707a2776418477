"""
A bigram language model with latent states
==========================================

The aggregate Markov model predicts a word from the class of the word before it,
:math:`p(w_2 | w_1) = \\sum_h r(h | w_1) s(w_2 | h)`. EM fits it slowly, from a
random start; the pivot method finds the classes first, and EM then starts close to
where it ends. Kneser-Ney is the yardstick.

The text is the Brown corpus where NLTK has it (``nltk.download("brown")``), else the
sentences of the toy treebank.
"""

# %%
# The data.

import matplotlib.pyplot as plt
import pandas as pd

from lpcfg_sk.datasets import load_toy
from lpcfg_sk.language_model import AggregateMarkovLM, KneserNeyLM

try:
    from nltk.corpus import brown

    sentences = [list(map(str.lower, words)) for words in brown.sents()[:15000]]
    sizes = [4, 16, 64]
except (ImportError, LookupError):
    sentences = load_toy(1500).sentences()
    sizes = [2, 4, 8]
n = len(sentences) // 10
train, held_out, test = sentences[: 8 * n], sentences[8 * n : 9 * n], sentences[9 * n :]
print(len(train), "sentences, for example:", " ".join(train[0]))

# %%
# Perplexity and number of iterations, chosen on held-out sentences.

rows = []
curves = {}
for m in sizes:
    for init in ("random", "pivot"):
        model = AggregateMarkovLM(m, init=init, max_iter=100, random_state=0)
        model.fit(train, X_val=held_out)
        rows.append(
            {
                "m": m,
                "init": init,
                "iterations": model.n_iter_,
                "perplexity": model.perplexity(test),
            }
        )
        curves[init] = model.validation_scores_
for order in (2, 3):
    model = KneserNeyLM(order).fit(train)
    rows.append({"init": f"Kneser-Ney {order}", "perplexity": model.perplexity(test)})
print(pd.DataFrame(rows).to_string(index=False, float_format="%.1f", na_rep=""))

# %%
# On the toy sentences EM goes on from the pivots for 6 to 30 iterations, with four
# classes for more than from a random start, but has less to gain by them. On Brown,
# with 16 classes or more, one iteration or none is best.

# %%
# A perplexity says nothing unless one knows what it counts.

print(model.event_report(test))

# %%
# Why the start matters: held-out log probability by iteration, for the largest m.

figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
for init, scores in curves.items():
    ax.plot(scores, "o-", label=f"init={init!r}", markersize=3)
ax.set(xlabel="EM iteration", ylabel="mean log probability (held out)")
ax.legend()
plt.show()
