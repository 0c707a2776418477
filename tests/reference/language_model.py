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


def kneser_ney_of_sentences(X, order):
    """Modified Kneser-Ney p(word, history) of sentences, from its definition.

    As Chen and Goodman (1999) and Heafield et al. (2013) have it: one start symbol
    before a sentence and one end symbol after it. N-grams of the highest order, and
    those that begin with the start symbol, have their counts, all others the number of
    distinct words before them. Unigrams are mixed with the uniform distribution.
    """
    counts = defaultdict(Counter)
    before = defaultdict(set)
    outcomes = {"<unk>"}
    for sentence in X:
        padded = ["<s>", *sentence, "</s>"]
        outcomes.update(padded[1:])
        for i in range(1, len(padded)):
            for n in range(1, min(order, i + 1) + 1):
                gram = tuple(padded[i - n + 1 : i + 1])
                counts[n][gram] += 1
                if i - n >= 0:
                    before[gram].add(padded[i - n])
    adjusted, discounts = {}, {}
    for n in range(1, order + 1):
        adjusted[n] = {
            gram: count if n == order or gram[0] == "<s>" else len(before[gram])
            for gram, count in counts[n].items()
        }
        n1, n2, n3, n4 = (
            sum(c == k for c in adjusted[n].values()) for k in (1, 2, 3, 4)
        )
        y = n1 / (n1 + 2 * n2)
        discounts[n] = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]

    def proba(word, history):
        history = tuple(history)
        n = len(history) + 1
        lower = proba(word, history[1:]) if history else 1.0 / len(outcomes)
        followed = {g: c for g, c in adjusted[n].items() if g[:-1] == history}
        if not followed:
            return lower
        total = sum(followed.values())
        removed = sum(discounts[n][min(c, 3) - 1] for c in followed.values())
        count = followed.get((*history, word), 0)
        own = count - discounts[n][min(count, 3) - 1] if count else 0.0
        return (own + removed * lower) / total

    def log_prob(sentence):
        padded = ["<s>", *sentence, "</s>"]
        return sum(
            np.log(proba(padded[i], padded[max(0, i - order + 1) : i]))
            for i in range(1, len(padded))
        )

    return log_prob
