"""Punctuation marks that stand for each other: Penn tokens and ordinary characters."""

import numpy as np

# Marks that a parser may not know, and what to take in their place: the first one that
# it knows.
_EQUIVALENTS = {
    "( -LRB- （": "-LRB- (",
    ") -RRB- ）": "-RRB- )",
    "[ -LSB- 【 〔": "-LSB- [ -LRB- (",
    "] -RSB- 】 〕": "-RSB- ] -RRB- )",
    "{ -LCB-": "-LCB- { -LRB- (",
    "} -RCB-": "-RCB- } -RRB- )",
    "— – ― ‒ − --- --": "-- — – -",
    "‐ ‑": "- --",
    "… ... .. ....": "... … ..",
    "“ „ ‟ « 「 『 ``": '`` “ « "',
    "” » 」 』 ''": "'' ” » \"",
    "‘ ‚ ‛ ‹ `": '` ‘ `` “ "',
    "’ › ′": "' ’ '' ” \"",
    "， 、 ،": ",",
    "。 ． ۔ ।": ".",
    "？ ؟": "?",
    "！": "!",
    "； ؛": ";",
    "：": ":",
}
_TABLE = {
    mark: known.split()
    for marks, known in _EQUIVALENTS.items()
    for mark in marks.split()
}
# Marks that open at their first, third, ... occurrence in a sentence, and close at the
# others.
_STRAIGHT = {
    '"': (["``", "“", "«"], ["''", "”", "»"]),
    "'": (["`", "‘", "``", "“"], ["’", "''", "”"]),
}
_APOSTROPHES = str.maketrans("’ʼ＇", "'''")


def with_known_marks(treebank, seen, known):
    """Replace punctuation marks that a parser has never seen by equivalent ones.

    Straight quotes open and close in turn within a sentence. A word with a curly
    apostrophe stands for the word with a straight one.

    Parameters
    ----------
    treebank : Treebank
        Any sentences.
    seen : container of str
        Tokens of the training data, which stay as they are.
    known : container of str
        Tokens that may be taken instead.

    Returns
    -------
    treebank : Treebank
        The same sentences with other tokens, or the treebank itself.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank._punctuation import with_known_marks
    >>> penn = {"``", "''", "-LRB-", "-RRB-"}
    >>> sentence = Treebank([['"', "Yes", '"', "(", "he", ")"]])
    >>> with_known_marks(sentence, penn, penn).sentences()[0]
    ['``', 'Yes', "''", '-LRB-', 'he', '-RRB-']
    """
    names = treebank.tokens
    replaced = {}
    for i in np.unique(treebank.token).tolist():
        if names[i] not in seen:
            pair = [_first(marks, known) for marks in _candidates(names[i])]
            if pair != [None, None]:
                replaced[i] = pair
    if not replaced:
        return treebank
    tokens = {name: i for i, name in enumerate(names)}
    token = np.array(treebank.token)
    for i, pair in replaced.items():
        places = np.flatnonzero(treebank.token == i)
        row = np.searchsorted(treebank.token_offsets, places, side="right")
        # How many of these marks stand before each one in its sentence.
        before = np.arange(len(places)) - np.searchsorted(row, row)
        for parity, mark in enumerate(pair):
            if mark is not None:
                new = tokens.setdefault(mark, len(tokens))
                token[places[before % 2 == parity]] = new
    return treebank.replace(
        token=token, word=token, tokens=tuple(tokens), words=tuple(tokens)
    )


def _candidates(token):
    """Return what may stand for a token: where it opens, and where it closes."""
    if token in _STRAIGHT:
        return _STRAIGHT[token]
    marks = _TABLE.get(token, [token.translate(_APOSTROPHES)])
    return marks, marks


def _first(marks, known):
    return next((mark for mark in marks if mark in known), None)
