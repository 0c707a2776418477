"""Signatures: what the spelling of an unknown word tells about it."""

#: The class of words of which nothing is known.
UNK = "UNK"

# Endings that tell the part of speech; where several fit, the longest counts.
_ENDINGS = frozenset(
    {"able", "ible", "ment", "ness", "less", "ing", "ion", "ity", "ent", "ant", "ive"}
    | {"ous", "ful", "est", "ist", "ism", "ize", "ate", "ed", "er", "or", "ly", "al"}
    | {"ic", "an", "y"}
)


def english_signature(word, *, initial=False, known_lower=False):
    """Signature of an English word, after the Berkeley parser's.

    Parameters
    ----------
    word : str
        The word as it is written.
    initial : bool, default=False
        Whether it is the first of its sentence, where a capital tells little.
    known_lower : bool, default=False
        Whether the word was seen in lower case.

    Returns
    -------
    signature : str
        ``UNK`` and the parts that apply: capitals, digits, hyphen, ending.

    Examples
    --------
    >>> from lpcfg_sk.treebank._signatures import english_signature
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
        ending = next((e for n in (4, 3, 2, 1) if (e := lower[-n:]) in _ENDINGS), None)
        if ending is not None:
            parts.append(ending)
    return "-".join(parts)


def coarser(signature):
    """Signatures from the given one to ``UNK``, each with a part less.

    Parameters
    ----------
    signature : str

    Yields
    ------
    signature : str

    Examples
    --------
    >>> from lpcfg_sk.treebank._signatures import coarser
    >>> list(coarser("UNK-LC-ly"))
    ['UNK-LC-ly', 'UNK-LC', 'UNK']
    """
    parts = signature.split("-")
    for n in range(len(parts), 0, -1):
        yield "-".join(parts[:n])
