"""
A bigram language model with latent states
==========================================

The aggregate Markov model predicts a word from the class of the word before it,
:math:`p(w_2 | w_1) = \\sum_h r(h | w_1) s(w_2 | h)`. EM fits it slowly, from a
random start; the pivot method finds the classes first, and EM then needs an
iteration or two. Kneser-Ney is the yardstick.

The text is the Brown corpus under ``$LPCFG_SK_DATA/brown`` where it is installed, else
sentences drawn from a toy treebank.
"""

# %%
# The data.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from lpcfg_sk.datasets import load_toy
from lpcfg_sk.language_model import AggregateMarkovLM, KneserNeyLM

folder = Path(os.environ.get("LPCFG_SK_DATA", "data")) / "brown"
if folder.exists():
    train, test = (
        [line.split() for line in (folder / name).read_text("utf-8").splitlines()]
        for name in ("train.txt", "dev.txt")
    )
    train, held_out, test = train[:12000], test[:1000], test[1000:3000]
    sizes = [4, 16, 64]
else:
    sentences = load_toy(900).sentences()
    train, held_out, test = sentences[:600], sentences[600:700], sentences[700:]
    sizes = [2, 4, 8]

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
