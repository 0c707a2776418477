"""
Choosing the number of latent states
====================================

A search over ``m`` repeats most of its work unless it is told not to: features do not
depend on ``m``, and the singular vectors for a small ``m`` are the first ones of a
larger decomposition. Two caches are enough to do all of that once a fold:

* ``memory`` of the pipeline keeps the fitted preprocessing, as for every scikit-learn
  pipeline;
* ``memory`` and ``m_max`` of :class:`~lpcfg_sk.SpectralLPCFG` keep a decomposition of
  ``m_max`` vectors, of which every smaller ``m`` takes the leading ones.
"""

# %%
# A small treebank, and a pipeline from trees to a parser.

import tempfile
import time

import matplotlib.pyplot as plt
from joblib import Memory
from sklearn.model_selection import GridSearchCV

from lpcfg_sk import SpectralLPCFG, make_parser
from lpcfg_sk.bounds import separability_report
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import (
    SingularValueDisplay,
    StateCurveDisplay,
    results_table,
)

treebank = load_toy(900)
states = [1, 2, 4, 8, 16]

# %%
# Fit once at the largest ``m``, to have something to compare with (the first fit of
# all compiles, and is not counted).

make_parser(SpectralLPCFG(m=2)).fit(treebank[:50])
begin = time.process_time()
make_parser(SpectralLPCFG(m=states[-1])).fit(treebank[:600])
single = time.process_time() - begin

# %%
# The search. ``cache`` would be a directory of yours; then a second search, over
# smoothing for instance, starts from what the first one left.

with tempfile.TemporaryDirectory() as directory:
    cache = Memory(directory, verbose=0)
    learner = SpectralLPCFG(m_max=states[-1], memory=cache)
    search = GridSearchCV(
        make_parser(learner, memory=cache), {"learner__m": states}, cv=3
    )
    search.fit(treebank)

print(results_table(search).round(3).to_string())
fits = search.cv_results_["mean_fit_time"]
print(f"one fit at m={states[-1]}: {single:.2f} s")
print("fits of a fold, in order:", ", ".join(f"{t:.2f} s" for t in fits))

# %%
# The first fit of each fold pays for the features and for ``m_max`` singular vectors;
# the others only multiply. Which number of states is best shows in the scores, and
# why it is enough in the singular values, which fall quickly after the first few.

best = search.best_estimator_
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
StateCurveDisplay.from_estimator(search, ax=left)
left.set(xscale="log", xlabel="latent states m", ylabel="F1, mean and deviation")
left.set_xticks(states, labels=map(str, states))
left.minorticks_off()
common = ["NP", "VP", "PP", "SBAR", "@S"]
SingularValueDisplay.from_estimator(best, nonterminals=common, ax=right)

# %%
# The guarantee of the method is limited by the nonterminal with the smallest m-th
# singular value; the report puts it first.

print(separability_report(best).head().round(4).to_string())
plt.show()
