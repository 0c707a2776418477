"""Corpora that NLTK distributes, if the user has downloaded them."""

import io
import re

from lpcfg_sk._validation import StrOptions, validate_params
from lpcfg_sk.datasets._nltk_data import corpus_files
from lpcfg_sk.treebank import read_treebank

#: Numbers of the files wsj_0001 to wsj_0199 in each part of the Penn sample.
_PENN_PARTS = {
    "train": (1, 159),
    "dev": (160, 179),
    "test": (180, 199),
    "all": (1, 199),
}
#: Tokens of Brown before the dev part, and before the test part.
_BROWN_CUTS = (800_000, 1_000_000)

_PART = {"part": [StrOptions({"train", "dev", "test", "all"})]}

#: Leaves of a tag alone, which is the word, as ``(,)``.
_BARE = re.compile(r"\(([^\s()])\)")
#: Leaves with a lemma after the word.
_LEMMA = re.compile(r"\(([^\s()]+)[ \t]+([^\s()]+)[ \t]+[^\s()]+[ \t]*\)")
#: Empty subjects of CESS.
_EMPTY = re.compile(r"\([^\s()]+[ \t]+\*0\*[ \t]*\)")
#: Syntactic functions before the labels of Floresta, as ``SUBJ:np``.
_FUNCTION = re.compile(r"\([^\s():]+:(?=[^\s()])")
#: What stands around a tree on a line of the Sinica treebank.
_IDENTIFIER = re.compile(r"^#\S+[ \t]+", re.MULTILINE)
_APPENDIX = re.compile(r"(?<=\))#.*$", re.MULTILINE)
#: A label before its children, or a leaf.
_SINICA_TOKEN = re.compile(r"([^\s()|]+)(\(?)")


@validate_params(_PART, prefer_skip_nested_validation=True)
def load_penn_sample(part="train", path=None):
    """Load the sample of the Penn Treebank that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("treebank")``. The corpus is
    (C) LDC 1995, and made available for non-commercial use.

    Parameters
    ----------
    part : {"train", "dev", "test", "all"}, default="train"
        Files wsj_0001 to 0159, 0160 to 0179, 0180 to 0199, or all of them.
    path : path-like, default=None
        A folder with files wsj_*.mrg, at any depth, or a .zip archive of it. Where
        None, the folders in which NLTK looks are searched.

    Returns
    -------
    trees : Treebank
        Trees without traces and function tags.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_penn_sample
    >>> try:
    ...     trees = load_penn_sample("train", path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    first, last = _PENN_PARTS[part]
    files = {
        name: content
        for name, content in corpus_files("treebank", r"wsj_\d{4}\.mrg", path).items()
        if first <= int(name[-8:-4]) <= last
    }
    if not files:
        raise FileNotFoundError(
            f"the Penn sample has no file from wsj_{first:04} to wsj_{last:04}, which "
            f"are its part {part!r}; its download is not complete"
        )
    return _read_brackets(files)


@validate_params(_PART, prefer_skip_nested_validation=True)
def load_brown(part="train", path=None):
    """Load the sentences of the Brown corpus, without their tags.

    Nothing is downloaded: do so once by ``nltk.download("brown")``. The corpus may be
    used for non-commercial purposes.

    Parameters
    ----------
    part : {"train", "dev", "test", "all"}, default="train"
        The first 800,000 tokens, the next 200,000, the rest, or all of them, in the
        order of the files. The cuts are exact and go through a sentence. Genres come
        one after the other, so that the parts differ in genre.
    path : path-like, default=None
        A folder with the files ca01 to cr09, at any depth, or a .zip archive of it.
        Where None, the folders in which NLTK looks are searched.

    Returns
    -------
    sentences : list of list of str
        The tokens of each sentence.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_brown
    >>> try:
    ...     sentences = load_brown("dev", path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    files = corpus_files("brown", r"c[a-z]\d\d", path)
    begin, end = {
        "train": (0, _BROWN_CUTS[0]),
        "dev": _BROWN_CUTS,
        "test": (_BROWN_CUTS[1], None),
        "all": (0, None),
    }[part]
    sentences, n_before = [], 0
    for content in files.values():
        for line in _decode(content).splitlines():
            words = [token.rpartition("/")[0] or token for token in line.split()]
            stop = None if end is None else max(0, end - n_before)
            own = words[max(0, begin - n_before) : stop]
            n_before += len(words)
            if own:
                sentences.append(own)
    return sentences


def load_cess_esp(path=None):
    """Load the Spanish treebank CESS-ESP that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("cess_esp")``. The corpus is
    for research, and to be cited as Martí et al. (2007).

    Parameters
    ----------
    path : path-like, default=None
        A folder with files .tbf, at any depth, or a .zip archive of it. Where None,
        the folders in which NLTK looks are searched.

    Returns
    -------
    trees : Treebank
        Trees without empty subjects (``*0*``), lemmas and functions. Malformed trees
        are left out, and counted in one :class:`TreebankWarning`.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_cess_esp
    >>> try:
    ...     trees = load_cess_esp(path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    return _load_cess("cess_esp", path)


def load_cess_cat(path=None):
    """Load the Catalan treebank CESS-CAT that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("cess_cat")``. The corpus is
    for research, and to be cited as Martí et al. (2007).

    Parameters
    ----------
    path : path-like, default=None
        A folder with files .tbf, at any depth, or a .zip archive of it. Where None,
        the folders in which NLTK looks are searched.

    Returns
    -------
    trees : Treebank
        As those of :func:`load_cess_esp`.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_cess_cat
    >>> try:
    ...     trees = load_cess_cat(path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    return _load_cess("cess_cat", path)


def _load_cess(package, path):
    def clean(text):
        return _EMPTY.sub("(-NONE- *0*)", _one_word_leaves(text))

    files = corpus_files(package, r"[^.].*\.tbf", path)
    return _read_brackets(files, clean, on_error="skip")


@validate_params({"keep_functions": ["boolean"]}, prefer_skip_nested_validation=True)
def load_floresta(path=None, *, keep_functions=False):
    """Load the Portuguese treebank Floresta that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("floresta")``.

    Parameters
    ----------
    path : path-like, default=None
        A folder with files .ptb, at any depth, or a .zip archive of it. Where None,
        the folders in which NLTK looks are searched.
    keep_functions : bool, default=False
        Whether labels keep the function before the form: ``SUBJ:np``, otherwise
        ``np``.

    Returns
    -------
    trees : Treebank
        Trees without lemmas. Malformed trees are left out, and counted in one
        :class:`TreebankWarning`.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_floresta
    >>> try:
    ...     trees = load_floresta(path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """

    def clean(text):
        text = _one_word_leaves(text)
        return text if keep_functions else _FUNCTION.sub("(", text)

    files = corpus_files("floresta", r"[^.].*\.ptb", path)
    options = {"comments": "#", "on_error": "skip", "keep_functions": True}
    return _read_brackets(files, clean, **options)


def load_sinica(path=None):
    """Load the sample of the Chinese Sinica treebank that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("sinica_treebank")``. Its
    licence is CC BY-NC-SA 2.5.

    Parameters
    ----------
    path : path-like, default=None
        A folder with the file ``parsed``, at any depth, or a .zip archive of it.
        Where None, the folders in which NLTK looks are searched.

    Returns
    -------
    trees : Treebank
        Trees without semantic roles. Malformed trees are left out, and counted in one
        :class:`TreebankWarning`.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_sinica
    >>> try:
    ...     trees = load_sinica(path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    files = corpus_files("sinica_treebank", "parsed", path)
    options = {"on_error": "skip", "keep_functions": True}
    return _read_brackets(files, _sinica_brackets, **options)


def _sinica_brackets(text):
    """Write ``S(agent:NP(Head:Nh:X)|Head:VA:Y)`` as ``(S (NP (Nh X)) (VA Y))``."""
    text = _APPENDIX.sub("", _IDENTIFIER.sub("", text))
    return _SINICA_TOKEN.sub(_without_role, text).replace("|", " ")


def _without_role(match):
    token, opening = match.groups()
    fields = token.split(":")
    return f"({fields[-1]} " if opening else f"({' '.join(fields[-2:])})"


def _one_word_leaves(text):
    """Write ``(,)`` as ``(, ,)``, and ``(tag word lemma)`` as ``(tag word)``."""
    return _LEMMA.sub(r"(\1 \2)", _BARE.sub(r"(\1 \1)", text))


def _read_brackets(files, clean=None, **options):
    """Read the trees of files in memory; errors name the files."""
    texts = []
    for name, content in files.items():
        text = _decode(content)
        texts.append(io.StringIO(text if clean is None else clean(text)))
        texts[-1].name = name
    return read_treebank(texts, **options)


def _decode(content):
    """Decode UTF-8, or else the encoding of NLTK's older corpora."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("iso-8859-15")
