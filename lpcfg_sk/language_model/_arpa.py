"""N-gram models in the ARPA format, which SRILM and KenLM read and write."""

import gzip

import numpy as np

from lpcfg_sk._files import written_in_one_step
from lpcfg_sk.language_model._base import UNK
from lpcfg_sk.language_model._kneser_ney import KneserNeyLM, NGramTable

_UNK, _START, _END = "<unk>", "<s>", "</s>"
# What the format writes for a probability of zero.
_NEVER = -99.0


def write_arpa(model, path):
    """Write a Kneser-Ney model in the ARPA format.

    Parameters
    ----------
    model : KneserNeyLM
        A fitted model. The unknown word is written as ``<unk>``.
    path : str or path-like
        The file; ``.gz`` is compressed.

    See Also
    --------
    read_arpa : Reads such files.

    Notes
    -----
    The file has logarithms to base 10. The probability of an n-gram that it does not
    list is the weight of its history times the probability after the shorter one,
    which is exactly what interpolated Kneser-Ney gives. All digits are written.

    Examples
    --------
    >>> import tempfile
    >>> from lpcfg_sk.language_model import KneserNeyLM, read_arpa, write_arpa
    >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
    >>> model = KneserNeyLM(3, mode="sentence").fit(X)
    >>> with tempfile.NamedTemporaryFile(suffix=".arpa") as file:
    ...     write_arpa(model, file.name)
    ...     again = read_arpa(file.name)
    >>> bool(abs(again.perplexity(X) - model.perplexity(X)) < 1e-9)
    True
    """
    names = [str(word) for word in model.vocabulary_]
    if wrong := [w for w in names if not w or any(c.isspace() for c in w)]:
        raise ValueError(f"the ARPA format has no words with white space: {wrong[0]!r}")
    reserved = {_UNK, _START, _END} & set(names[len(model._special()) :])
    if reserved:
        raise ValueError(f"{reserved.pop()} is a symbol of the ARPA format, not a word")
    names[UNK] = _UNK
    names.append(_START)
    lines = (line.encode() for line in _lines(_list_ngrams(model), names))
    with written_in_one_step(path) as file:
        if str(path).endswith(".gz"):
            # Without a time stamp the same model gives the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.writelines(lines)
        else:
            file.writelines(lines)


def _lines(orders, names):
    yield "\\data\\\n"
    for n, (grams, _, _) in enumerate(orders, start=1):
        yield f"ngram {n}={len(grams)}\n"
    for n, (grams, proba, backoff) in enumerate(orders, start=1):
        yield f"\n\\{n}-grams:\n"
        for gram, p, weight in zip(grams.tolist(), proba, backoff, strict=True):
            words = " ".join(names[i] for i in gram)
            tail = "" if n == len(orders) else f"\t{weight!r}"
            yield f"{p!r}\t{words}{tail}\n"
    yield "\n\\end\\\n"


def read_arpa(path, *, unk_token="<unk>", score_unk=False):
    r"""Read an n-gram model from a file in the ARPA format.

    Parameters
    ----------
    path : str or path-like
        The file; ``.gz`` is read too.
    unk_token : str, default="<unk>"
        Name of the unknown word in the model; in the file it is ``<unk>`` or
        ``<UNK>``.
    score_unk : bool, default=False
        Whether unknown words count as outcomes when scoring.

    Returns
    -------
    model : KneserNeyLM
        A model with the probabilities of the file, whatever smoothing made them; its
        ``discounts_`` are 0. It is in sentence mode where the file has ``<s>`` and
        ``</s>``.

    Raises
    ------
    ValueError
        If the file is not in the format; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> from lpcfg_sk.language_model import read_arpa
    >>> with tempfile.NamedTemporaryFile("w", suffix=".arpa") as file:
    ...     _ = file.write("\\data\\\nngram 1=2\n\n\\1-grams:\n"
    ...                    "-0.30103 a\n-0.30103 b\n\n\\end\\\n")
    ...     file.flush()
    ...     model = read_arpa(file.name)
    >>> model.predict_proba([[]]).round(3)
    array([[0. , 0.5, 0.5]])
    """
    orders, words = _read(path)
    sentence = _START in words and _END in words
    unknown = next((w for w in (_UNK, "<UNK>") if w in words), unk_token)
    if unk_token in words and unk_token != unknown:
        raise ValueError(f"{path} has a word {unk_token!r}; give another unk_token")
    model = KneserNeyLM(
        len(orders),
        mode="sentence" if sentence else "stream",
        score_unk=score_unk,
        unk_token=unk_token,
        min_count=1,
    )
    special = model._special()
    left_out = {unknown, _START, *special} if sentence else {unknown}
    model._name_outcomes([*special, *(w for w in words if w not in left_out)])
    place = {**model._index, unknown: UNK}
    if sentence:
        # The id of the start symbol in histories of the model.
        place[_START] = len(model._index)
    number = np.array([place[word] for word in words], dtype=np.int64)
    orders = [(number[grams], proba, backoff) for grams, proba, backoff in orders]
    try:
        model._levels = _levels(model, orders)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    model.discounts_ = [level.discounts for level in model._levels]
    return model


def _list_ngrams(model):
    """Return words, log probability and log weight of the n-grams of each order."""
    n_outcomes = len(model.vocabulary_)
    histories = _histories(model)
    orders = []
    for n, level in enumerate(model._levels, start=1):
        history = level.keys // n_outcomes
        grams = np.column_stack([histories[n - 1][history], level.outcome])
        if n == 1:
            grams = np.arange(n_outcomes + (model.mode == "sentence"))[:, None]
        if n < model.order:
            grams = np.unique(np.concatenate([grams, histories[n]]), axis=0)
        weight = np.ones(len(grams))
        if n < model.order:
            # The format lists the weight of a history with the equal n-gram.
            weight[_find_rows(grams, histories[n])] = model._levels[n].backoff
        predicted = grams[:, -1] < n_outcomes
        nearest = np.full((len(grams), model.order - 1), -1)
        nearest[:, : n - 1] = grams[:, :-1][:, ::-1]
        proba = np.zeros(len(grams))
        proba[predicted] = model._probabilities(
            nearest[predicted], grams[predicted, -1]
        )
        orders.append((grams, _log10(proba), _log10(weight)))
    return orders


def _histories(model):
    """Words of the histories of each level, the oldest first."""
    base = len(model.vocabulary_) + 1
    found = [np.zeros((1, 0), np.int64)]
    for level in model._levels[1:]:
        shorter, oldest = np.divmod(level.history_keys, base)
        found.append(np.column_stack([oldest, found[-1][shorter]]))
    return found


def _levels(model, orders):
    """Tables of the n-grams of a file."""
    n_outcomes, base = len(model._index), len(model._index) + 1
    needed = [np.zeros((1, 0), np.int64)]
    # For every history, all shorter ones are listed as well.
    longer = np.zeros((0, len(orders)), np.int64)
    for n in range(len(orders), 1, -1):
        grams, shorter = orders[n - 1][0], orders[n - 2][0]
        longer = np.unique(
            np.concatenate([grams[:, :-1], longer[:, 1:], shorter]), axis=0
        )
        needed.insert(1, longer)
    # Probabilities of each order are computed from the levels below, as they are added.
    model._levels = levels = []
    ids = np.zeros(1, np.int64)
    for n, (grams, log_p, _) in enumerate(orders, start=1):
        histories, backoff = needed[n - 1], np.ones(1)
        keys = np.zeros(1, np.int64)
        if n > 1:
            parent = ids[_find_rows(needed[n - 2], histories[:, 1:])]
            keys = parent * base + histories[:, 0]
            order = np.argsort(keys)
            histories, keys = histories[order], keys[order]
            needed[n - 1], ids = histories, np.arange(len(keys))
            known, _, weight = orders[n - 2]
            backoff = np.ones(len(keys))
            backoff[_find_rows(histories, known)] = 10.0**weight
        predicted = grams[:, -1] < n_outcomes
        grams, proba = grams[predicted], 10.0 ** log_p[predicted]
        proba[log_p[predicted] <= _NEVER] = 0.0
        history = _find_rows(histories, grams[:, :-1])
        if n == 1:
            # Unigrams are not interpolated with a uniform distribution.
            backoff = np.zeros(1)
        else:
            lower = model._probabilities(grams[:, -2:0:-1], grams[:, -1])
            proba -= backoff[history] * lower
            # Differences this small are rounding errors, and may be negative.
            proba[np.abs(proba) <= 1e-15] = 0.0
        gram_keys = history * n_outcomes + grams[:, -1]
        order = np.argsort(gram_keys)
        if (np.diff(gram_keys[order]) == 0).any():
            raise ValueError(f"a {n}-gram is listed twice")
        levels.append(
            NGramTable(
                keys, gram_keys[order], proba[order], backoff, np.zeros(3), n_outcomes
            )
        )
    return levels


def _find_rows(table, rows):
    """Places of rows in a table of different rows."""
    both, inverse = np.unique(
        np.concatenate([table, rows]), axis=0, return_inverse=True
    )
    place = np.full(len(both), -1)
    place[inverse.ravel()[: len(table)]] = np.arange(len(table))
    return place[inverse.ravel()[len(table) :]]


def _log10(values):
    with np.errstate(divide="ignore"):
        return np.maximum(np.log10(values), _NEVER).tolist()


def _read(path):
    """Return the n-grams of each order as numbers of words, and these numbers."""
    sizes, orders, words, n = [], [], {}, None
    ended = False
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            line = line.strip()
            if line == "\\end\\":
                ended = True
                break
            if line == "\\data\\":
                n = 0
            elif line.startswith("\\") and line.endswith("-grams:"):
                n = (n or 0) + 1
                if line != f"\\{n}-grams:" or n > len(sizes):
                    raise _error(path, number, f"expected the {n}-grams, got {line!r}")
                orders.append([])
            elif line.startswith("ngram ") and n == 0:
                sizes.append(_number(line.partition("=")[2], int, path, number))
            elif line and n:
                orders[-1].append(_entry(line, n, len(sizes), words, path, number))
            elif line and n == 0:
                raise _error(path, number, f"expected 'ngram N=...', got {line!r}")
    if not ended or len(orders) != len(sizes) or not sizes:
        raise ValueError(
            f"{path} is not a whole ARPA file: expected \\data\\, the n-grams of "
            f"{len(sizes)} orders, and \\end\\"
        )
    found = []
    for n, (size, entries) in enumerate(zip(sizes, orders, strict=True), start=1):
        if len(entries) != size:
            raise ValueError(f"{path} has {len(entries)} {n}-grams, announced {size}")
        grams = np.array([gram for gram, _, _ in entries], np.int64).reshape(-1, n)
        values = np.array([row[1:] for row in entries], float).reshape(-1, 2)
        found.append((grams, values[:, 0], values[:, 1]))
    return found, words


def _entry(line, n, n_orders, words, path, number):
    """Read one n-gram: ids of its words, log probability and log weight."""
    fields = line.split()
    if len(fields) - n not in ((1, 2) if n < n_orders else (1,)):
        raise _error(
            path, number, f"expected a probability and {n} words, got {line!r}"
        )
    gram = fields[1 : n + 1]
    if n == 1:
        if gram[0] in words:
            raise _error(path, number, f"the word {gram[0]!r} is listed twice")
        words[gram[0]] = len(words)
    if unknown := [word for word in gram if word not in words]:
        raise _error(path, number, f"{unknown[0]!r} is not among the 1-grams")
    weight = _number(fields[-1], float, path, number) if len(fields) > n + 1 else 0.0
    proba = _number(fields[0], float, path, number)
    return tuple(words[word] for word in gram), proba, weight


def _number(text, kind, path, number):
    try:
        return kind(text)
    except ValueError:
        raise _error(path, number, f"expected a number, got {text!r}") from None


def _error(path, number, message):
    return ValueError(f"{path}, line {number}: {message}")
