"""Spelling: tokens of raw text, equivalent punctuation marks, classes of words."""

import re
import unicodedata

import numpy as np

#: The class of words about which nothing is known.
UNK = "UNK"

#: How many words a class borrows from the next coarser class, see
#: :func:`~lpcfg_sk.lpcfg.smooth_lexicon`; chosen on training trees.
CLASS_STRENGTH = 6.0

# Longest ending and beginning that make a class, chosen on training trees.
_LONGEST_ENDING = 4
_LONGEST_BEGINNING = 1

# Endings that tell the part of speech; if several fit, the longest counts.
_ENGLISH_ENDINGS = frozenset(
    {"able", "ible", "ment", "ness", "less", "ing", "ion", "ity", "ent", "ant", "ive"}
    | {"ous", "ful", "est", "ist", "ism", "ize", "ate", "ed", "er", "or", "ly", "al"}
    | {"ic", "an", "y"}
)


def spelling_classes(word, *, initial=False):
    """Return the classes of a word of any language by shape, ending and beginning.

    Parameters
    ----------
    word : str
        The word in its original spelling.
    initial : bool, default=False
        Whether it is the first word of its sentence, where a capital tells little.

    Returns
    -------
    endings, beginnings, shapes : tuple of tuple of str
        Each from the finest to the coarsest. Letters of endings and beginnings are
        in lower case. Shapes describe script, case, digits and hyphens; the names of
        endings and beginnings include the shape.

    Examples
    --------
    >>> from lpcfg_sk.treebank._spelling import spelling_classes
    >>> endings, beginnings, shapes = spelling_classes("Undoing")
    >>> endings[:2]
    ('UNK-latin-capital-*oing', 'UNK-latin-capital-*ing')
    >>> beginnings
    ('UNK-latin-capital-u*',)
    >>> shapes
    ('UNK-latin-capital', 'UNK-latin')
    >>> spelling_classes("1,234.5")[2]
    ('UNK-number-0,0.0', 'UNK-number')
    >>> spelling_classes("?!")[2], spelling_classes("€")[2]
    (('UNK-punctuation',), ('UNK-symbol',))
    >>> spelling_classes("東京")[0]
    ('UNK-cjk-*東京', 'UNK-cjk-*京')
    """
    letter = next((c for c in reversed(word) if c.isalpha()), None)
    digits = any(c.isnumeric() and not c.isalpha() for c in word)
    if letter is None:
        if digits:
            pattern = re.sub(r"\d+", "0", word)
            return (), (), (f"{UNK}-number-{pattern}", f"{UNK}-number")
        marks = any(unicodedata.category(c).startswith("P") for c in word)
        return (), (), (f"{UNK}-{'punctuation' if marks else 'symbol'}",)
    script = unicodedata.name(letter, "unnamed").split()[0].lower()
    shapes = [f"{UNK}-{script}"]
    case = _case(word, initial)
    hyphen = any(unicodedata.category(c) in ("Pd", "Pc") for c in word[1:-1])
    for part in (case, digits and "digits", hyphen and "hyphen"):
        if part:
            shapes.append(f"{shapes[-1]}-{part}")
    shape, lower = shapes[-1], word.lower()
    longest = min(_LONGEST_ENDING, len(lower))
    endings = tuple(f"{shape}-*{lower[-n:]}" for n in range(longest, 0, -1))
    longest = min(_LONGEST_BEGINNING, len(lower) - 1)
    beginnings = tuple(f"{shape}-{lower[:n]}*" for n in range(longest, 0, -1))
    return endings, beginnings, tuple(reversed(shapes))


def _case(word, initial):
    """Name the capitals of a word, None in scripts that have none."""
    capitals = sum(c.isupper() for c in word)
    small = any(c.islower() for c in word)
    if not capitals:
        return "lower" if small else None
    if not word[0].isupper():
        return "mixed"
    if initial and capitals == 1:
        return "first"
    return "capital" if small or capitals == 1 else "capitals"


def english_signature(word, *, initial=False, known_lower=False):
    """Return the signature of an English word, as in the Berkeley parser.

    Parameters
    ----------
    word : str
        The word in its original spelling.
    initial : bool, default=False
        Whether it is the first word of its sentence, where a capital tells little.
    known_lower : bool, default=False
        Whether the word was seen in lower case.

    Returns
    -------
    signature : str
        ``UNK`` and the parts that apply: capitals, digits, hyphen, ending.

    Examples
    --------
    >>> from lpcfg_sk.treebank._spelling import english_signature
    >>> english_signature("unscrupulously"), english_signature("Smith")
    ('UNK-LC-ly', 'UNK-CAP')
    >>> english_signature("Honestly", initial=True, known_lower=True)
    'UNK-INIT-KNOWN-ly'
    >>> english_signature("12.5"), english_signature("mid-1990s")
    ('UNK-NUM', 'UNK-LC-NUM-DASH-s')
    """
    parts = [UNK]
    capitals = sum(c.isupper() for c in word)
    if word[:1].isupper():
        if initial and capitals == 1:
            parts.append("INIT")
            if known_lower:
                parts.append("KNOWN")
        elif capitals > 1 and not any(c.islower() for c in word):
            parts.append("CAPS")
        else:
            parts.append("CAP")
    elif capitals:
        parts.append("CAP")
    elif any(c.isalpha() for c in word):
        parts.append("LC")
    digit = any(c.isdigit() for c in word)
    dash = "-" in word[1:]
    if digit:
        parts.append("NUM")
    if dash:
        parts.append("DASH")
    lower = word.lower()
    if len(word) >= 3 and lower[-1] == "s" and lower[-2] not in "siu'":
        parts.append("s")
    elif len(word) >= 5 and not (digit and capitals):
        ending = next(
            (e for n in (4, 3, 2, 1) if (e := lower[-n:]) in _ENGLISH_ENDINGS), None
        )
        if ending is not None:
            parts.append(ending)
    return "-".join(parts)


def coarser(signature):
    """Yield a signature and all coarser ones, each with one part fewer.

    Parameters
    ----------
    signature : str
        The finest signature.

    Yields
    ------
    signature : str
        The last one is ``UNK``.

    Examples
    --------
    >>> from lpcfg_sk.treebank._spelling import coarser
    >>> list(coarser("UNK-LC-ly"))
    ['UNK-LC-ly', 'UNK-LC', 'UNK']
    """
    parts = signature.split("-")
    for n in range(len(parts), 0, -1):
        yield "-".join(parts[:n])


def tokenize(text):
    r"""Split a sentence of raw text into the tokens of the Penn Treebank.

    Parameters
    ----------
    text : str
        One sentence.

    Returns
    -------
    tokens : list of str
        A row for ``predict``. Quotes become two backticks or two apostrophes, brackets
        ``-LRB-`` and ``-RRB-``, the apostrophe ``’`` within a word ``'``, and
        contractions are split (``do n't``).

    Raises
    ------
    ImportError
        If nltk, whose Treebank tokenizer is used, is not installed.

    Examples
    --------
    >>> from lpcfg_sk.treebank import tokenize
    >>> tokenize('He didn\'t say "no" (yet).')
    ['He', 'did', "n't", 'say', '``', 'no', "''", '-LRB-', 'yet', '-RRB-', '.']
    """
    if not isinstance(text, str):
        raise TypeError(
            f"tokenize takes one sentence as a str, got {type(text).__name__}; for "
            "several, [tokenize(text) for text in texts]"
        )
    try:
        from nltk.tokenize import NLTKWordTokenizer
    except ImportError:
        raise ImportError(
            "tokenize needs nltk: pip install nltk (or lpcfg_sk[nltk]); a sentence "
            "whose tokens are separated by spaces needs no tokenizer"
        ) from None
    # NLTK takes this apostrophe for a quote, and leaves the ellipsis at its word.
    text = _APOSTROPHE.sub("'", text).replace("…", " … ")
    return NLTKWordTokenizer().tokenize(text, convert_parentheses=True)


_APOSTROPHE = re.compile(r"(?<=\w)’(?=\w)")

# Marks that a parser may not know, and their replacements: the first one that the
# parser knows is taken.
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
        Tokens of the training data, which are not replaced.
    known : container of str
        Tokens that may be taken instead.

    Returns
    -------
    treebank : Treebank
        The same sentences with other tokens, or the treebank itself.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.treebank._spelling import with_known_marks
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
    """Return the replacements of a token, as an opening and as a closing mark."""
    if token in _STRAIGHT:
        return _STRAIGHT[token]
    marks = _TABLE.get(token, [token.translate(_APOSTROPHES)])
    return marks, marks


def _first(marks, known):
    return next((mark for mark in marks if mark in known), None)
