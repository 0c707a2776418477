"""Obvious versions of the language models."""

from collections import Counter, defaultdict

import numpy as np


def em_step(counts, r, s):
    """Expected counts of contexts and outcomes, and the log likelihood (dense)."""
    contexts = np.zeros_like(r)
    outcomes = np.zeros_like(s)
    log_likelihood = 0.0
    for w1, w2 in zip(*np.nonzero(counts), strict=True):
        joint = r[w1] * s[w2]
        if joint.sum() == 0:
            continue
        log_likelihood += counts[w1, w2] * np.log(joint.sum())
        posterior = counts[w1, w2] * joint / joint.sum()
        contexts[w1] += posterior
        outcomes[w2] += posterior
    return contexts, outcomes, log_likelihood


def kneser_ney(tokens, order, discounts, vocabulary):
    """Interpolated Kneser-Ney p(word, history) over one stream, by its recursion.

    ``discounts[n - 1][min(count, 3) - 1]`` is the discount of n-grams.
    """
    full = [
        Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
        for n in range(1, order + 1)
    ]
    tables = []
    for n in range(1, order + 1):
        if n == order:
            tables.append(full[n - 1])
        else:
            before = defaultdict(set)
            for gram in full[n]:
                before[gram[1:]].add(gram[0])
            tables.append({gram: len(words) for gram, words in before.items()})

    def proba(word, history):
        if len(history) == 0:
            lower = 1.0 / len(vocabulary)
        else:
            lower = proba(word, history[1:])
        table = tables[len(history)]
        rows = {gram: c for gram, c in table.items() if gram[:-1] == tuple(history)}
        total = sum(rows.values())
        if total == 0:
            return lower
        levels = discounts[len(history)]
        removed = sum(levels[min(c, 3) - 1] for c in rows.values())
        count = rows.get((*history, word), 0)
        own = count - levels[min(count, 3) - 1] if count else 0.0
        return own / total + removed / total * lower

    return proba
