"""The command about language models: lm train and lm score."""

import json
import os
import sys
from itertools import islice

import numpy as np

from lpcfg_sk._cli._console import emit, note, say
from lpcfg_sk._cli._inputs import begins_tree, keep_inputs
from lpcfg_sk.language_model import KneserNeyLM, SentenceFile, read_arpa, write_arpa
from lpcfg_sk.treebank import read_treebank

#: Sentences that are scored together.
_BATCH = 1000


def lm(arguments):
    """Train a model, or score text."""
    {"train": _train, "score": _score}[arguments.lm_command](arguments)


def _train(arguments):
    keep_inputs(arguments.output, arguments.text, arguments.vocabulary)
    vocabulary = None
    if arguments.vocabulary:
        lines = SentenceFile(arguments.vocabulary)
        vocabulary = [word for line in lines for word in line]
    model = KneserNeyLM(
        arguments.order,
        mode="stream" if arguments.stream else "sentence",
        min_count=arguments.min_count,
        vocabulary=vocabulary,
        cutoffs=arguments.cutoffs,
    )
    model.fit(_sentences(arguments.text, lines=not arguments.stream))
    note("writing the model")
    write_arpa(model, arguments.output)
    emit(f"{len(model.vocabulary_)} words, saved to {arguments.output}")


def _score(arguments):
    try:
        model = read_arpa(arguments.model)
    except UnicodeDecodeError:
        raise ValueError(
            f"{arguments.model} is not text in UTF-8; expected a model in ARPA format, "
            "as lm train writes it"
        ) from None
    sentences = iter(_sentences(arguments.text))
    known, unknown, n_sentences = [], [], 0
    # In a stream the first word of a batch follows the last ones of the batch before.
    before, n_before = [], model.order - 1 if model.mode == "stream" else 0
    while batch := list(islice(sentences, _BATCH)):
        n_sentences += len(batch)
        context = [before] if before else []
        table = model.token_scores([*context, *batch]).iloc[len(before) :]
        table = table.assign(sentence=table["sentence"] - len(context))
        for sentence in batch:
            before = [*before, *sentence][-n_before:] if n_before else []
        is_unknown = table["unknown"].to_numpy()
        scores = table["log10_prob"].to_numpy()
        known.append(_sums(scores[~is_unknown]))
        unknown.append(_sums(scores[is_unknown]))
        if arguments.tokens:
            _emit_tokens(table, len(batch), as_json=arguments.json)
    if arguments.tokens:
        return
    (known_sum, n_known), (unknown_sum, n_unknown) = (
        np.sum([(0.0, 0), *parts], axis=0) for parts in (known, unknown)
    )
    report = {
        "sentences": n_sentences,
        "events": int(n_known + n_unknown),
        "unknown": int(n_unknown),
        "log10_prob": known_sum + unknown_sum,
        "perplexity": _perplexity(known_sum + unknown_sum, n_known + n_unknown),
        "perplexity_without_unknown": _perplexity(known_sum, n_known),
    }
    if arguments.json:
        # JSON has no infinity.
        values = {k: v if np.isfinite(v) else None for k, v in report.items()}
        emit(json.dumps(values))
        return
    for name, value in report.items():
        emit(f"{name}\t{value:.6g}" if isinstance(value, float) else f"{name}\t{value}")


def _sentences(path, *, lines=True):
    if path == "-":
        return SentenceFile(sys.stdin, lines=lines)
    sentences = SentenceFile(path, lines=lines)
    # What was read from a pipe cannot be read again.
    first = next(filter(None, sentences), []) if os.path.isfile(path) else []
    if not begins_tree(" ".join(first)):
        return sentences
    treebank = read_treebank(path)
    say(f"{path} holds trees: taking the sentences of {len(treebank)} trees")
    return treebank.sentences()


def _sums(scores):
    return float(scores.sum()), len(scores)


def _perplexity(log10_sum, n):
    return float(10 ** (-log10_sum / n)) if n else float("nan")


def _emit_tokens(table, n_sentences, *, as_json):
    rows = [[] for _ in range(n_sentences)]
    columns = ("sentence", "token", "log10_prob")
    for sentence, token, score in zip(*(table[c] for c in columns), strict=True):
        rows[sentence].append((token, float(score)))
    for row in rows:
        if as_json:
            emit(json.dumps([[t, s if np.isfinite(s) else None] for t, s in row]))
        else:
            emit("".join(f"{token}\t{score:.6g}\n" for token, score in row))
