"""One EM iteration over part-of-speech sequences, against plain Python.

Usage: ``python benchmarks/margin.py [sentences for plain Python]``. The corpus is the
training part of the Penn Treebank sample under ``$LPCFG_SK_DATA``, the grammar its
treebank CFG over tags, the probabilities its relative frequencies. The rival is
inside-outside over dictionaries, as nltk's chart parsers are written, on the same
prefix tree of right-hand sides and the same closure of unary rules; both sides are
timed on the same sample of sentences and must give the same expected counts. All times
are CPU seconds, after one warm-up.
"""

import os
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from lpcfg_sk import CFG, MarginEMPCFG, read_treebank
from lpcfg_sk.cfg._derivations import encode, expected_rule_counts
from lpcfg_sk.cfg._rules import rule_weights
from lpcfg_sk.treebank import delexicalize

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("LPCFG_SK_DATA", DEFAULT))
MAX_WORDS = 40


class PlainPython:
    """Inside-outside over dictionaries of items."""

    def __init__(self, grammar, theta):
        tables = grammar.tables()
        self.start = tables.start
        self.n_nonterminals = tables.n_nonterminals
        self.n_symbols = tables.n_nonterminals + tables.n_terminals
        self.theta = theta.tolist()
        self.lhs = tables.rule_lhs.tolist()
        self.extensions = defaultdict(dict)
        for t, (left, right) in enumerate(
            zip(tables.trie_left.tolist(), tables.trie_right.tolist(), strict=True)
        ):
            self.extensions[left][right] = self.n_symbols + t
        self.rules = defaultdict(list)
        for r, item in enumerate(tables.rule_item.tolist()):
            if item >= self.n_nonterminals:
                self.rules[item].append(r)
        self.unary = list(
            zip(
                tables.unary_rule.tolist(),
                tables.unary_lhs.tolist(),
                tables.unary_child.tolist(),
                strict=True,
            )
        )
        weights = rule_weights(tables, theta)
        chains = list(
            zip(weights.chain_top.tolist(), weights.chain.tolist(), strict=True)
        )
        self.above = [chains[lo:hi] for lo, hi in pairwise(weights.chain_offset)]

    def expected_counts(self, sentence, counts):
        """Add expected rule counts, and return the log probability."""
        n = len(sentence)
        chart = {}
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                chart[i, i + width] = self._inside(chart, sentence, i, i + width)
        probability = chart[0, n].get(self.start, 0.0)
        if probability == 0.0:
            return -np.inf
        outside = {span: defaultdict(float) for span in chart}
        outside[0, n][self.start] = 1.0 / probability
        for width in range(n, 0, -1):
            for i in range(n - width + 1):
                self._outside(chart, outside, i, i + width, counts)
        return np.log(probability)

    def _inside(self, chart, sentence, i, j):
        cell = defaultdict(float)
        if j - i == 1:
            cell[self.n_nonterminals + sentence[i]] = 1.0
        for k in range(i + 1, j):
            right = chart[k, j]
            for item, p in chart[i, k].items():
                for symbol, longer in self.extensions.get(item, {}).items():
                    if symbol in right:
                        cell[longer] += p * right[symbol]
        base = defaultdict(float)
        for item, p in cell.items():
            for r in self.rules.get(item, ()):
                base[self.lhs[r]] += self.theta[r] * p
        for b, p in base.items():
            for a, weight in self.above[b]:
                cell[a] += weight * p
        return cell

    def _outside(self, chart, outside, i, j, counts):
        cell, out = chart[i, j], outside[i, j]
        total = defaultdict(float)
        for b in range(self.n_nonterminals):
            for a, weight in self.above[b]:
                if a in out:
                    total[b] += weight * out[a]
        for r, a, b in self.unary:
            if a in total and b in cell:
                counts[r] += total[a] * self.theta[r] * cell[b]
        for item, p in cell.items():
            for r in self.rules.get(item, ()):
                part = self.theta[r] * total.get(self.lhs[r], 0.0)
                if part > 0.0:
                    counts[r] += part * p
                    out[item] += part
        for k in range(i + 1, j):
            left, right = chart[i, k], chart[k, j]
            left_out, right_out = outside[i, k], outside[k, j]
            for item, p in left.items():
                for symbol, longer in self.extensions.get(item, {}).items():
                    if longer in out and symbol in right:
                        left_out[item] += out[longer] * right[symbol]
                        right_out[symbol] += out[longer] * p


def cpu_seconds(call):
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def main(n_plain=24):
    path = DATA / "wsj" / "train"
    if not path.exists():
        sys.exit(f"no treebank at {path}; set LPCFG_SK_DATA")
    trees = delexicalize(read_treebank(path))
    grammar = CFG.from_treebank(trees)
    theta = MarginEMPCFG(grammar).fit(trees).theta_.to_numpy()
    X = trees[trees.lengths <= MAX_WORDS].unparsed()
    # Evenly over the lengths, so that the sample is as long as the corpus.
    by_length = np.argsort(X.lengths, kind="stable")
    places = (np.arange(n_plain) + 0.5) / n_plain * len(X)
    sample = X[by_length[places.astype(int)]]
    one = np.ones(len(sample))
    expected_rule_counts(grammar, sample[:1], theta, one[:1])

    fast, (log_fast, counts_fast) = cpu_seconds(
        lambda: expected_rule_counts(grammar, sample, theta, one)
    )
    plain = PlainPython(grammar, theta)
    words, bounds = encode(grammar, sample).tolist(), sample.token_offsets
    counts_plain = [0.0] * len(theta)
    slow, log_plain = cpu_seconds(
        lambda: [
            plain.expected_counts(words[lo:hi], counts_plain)
            for lo, hi in pairwise(bounds)
        ]
    )
    np.testing.assert_allclose(log_plain, log_fast, rtol=1e-9)
    np.testing.assert_allclose(counts_plain, counts_fast, rtol=1e-7, atol=1e-9)

    weights = np.ones(len(X))
    whole, (log_one, counts_one) = cpu_seconds(
        lambda: expected_rule_counts(grammar, X, theta, weights, n_jobs=1)
    )
    log_two, counts_two = expected_rule_counts(grammar, X, theta, weights, n_jobs=2)
    same = np.array_equal(log_one, log_two) and np.array_equal(counts_one, counts_two)

    table = pd.DataFrame(
        {
            "sentences": [len(sample), len(sample), len(X)],
            "tags": [sample.n_tokens, sample.n_tokens, X.n_tokens],
            "CPU [s]": [slow, fast, whole],
            "ms per sentence": [
                1e3 * slow / len(sample),
                1e3 * fast / len(sample),
                1e3 * whole / len(X),
            ],
            "plain / this": [1.0, slow / fast, np.nan],
        },
        index=["plain Python, sample", "lpcfg_sk, sample", f"lpcfg_sk, ≤ {MAX_WORDS}"],
    )
    print(repr(grammar))
    print(table.round(4).to_string())
    print(f"n_jobs 1 and 2 give the same bits: {same}")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
