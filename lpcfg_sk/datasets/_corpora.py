"""Corpora that NLTK distributes, if the user has downloaded them."""

import io
import os
import re
import sys
import zipfile
from itertools import pairwise
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from lpcfg_sk._validation import StrOptions, validate_params
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
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
#: A sentence of Alpino.
_ALPINO_SENTENCE = re.compile(r"<alpino_ds\b.*?</alpino_ds>", re.DOTALL)
#: What brackets cannot have inside a word.
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-", " ": "_"})


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


def load_alpino(path=None):
    """Load the Dutch treebank Alpino that NLTK distributes.

    Nothing is downloaded: do so once by ``nltk.download("alpino")``.

    Parameters
    ----------
    path : path-like, default=None
        A folder with the file ``alpino.xml``, at any depth, or a .zip archive of it.
        Where None, the folders in which NLTK looks are searched.

    Returns
    -------
    trees : Treebank
        Trees of categories (``cat``) over parts of speech (``pos``), in the order of
        the words. Alpino's structures are dependencies, many of which cross: such
        sentences, and malformed ones, are left out, and counted in one
        :class:`TreebankWarning`. Nodes that only point to another one are dropped.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_alpino
    >>> try:
    ...     trees = load_alpino(path="no/such/folder")
    ... except FileNotFoundError as error:
    ...     print("nltk.download" in str(error))
    True
    """
    files, n_read, n_left_out = corpus_files("alpino", r"alpino\.xml", path), 0, 0
    brackets = {}
    for name, content in files.items():
        sentences = _ALPINO_SENTENCE.findall(_decode(content))
        trees = [_alpino_brackets(text) for text in sentences]
        n_read += len(trees)
        n_left_out += trees.count(None)
        brackets[name] = "\n".join(tree for tree in trees if tree is not None).encode()
    if n_read == n_left_out:
        raise ValueError(
            f"{', '.join(files)} has {n_read} sentences and none without crossing "
            "branches; expected elements <alpino_ds> with nested <node>s"
        )
    if n_left_out:
        warn_caller(
            f"{n_left_out} of {n_read} sentences of Alpino have crossing branches or "
            "are malformed, and were left out",
            TreebankWarning,
        )
    return _read_brackets(brackets, keep_functions=True)


def _alpino_brackets(text):
    """Write one sentence in brackets; None where it is not a tree over its words."""
    try:
        node = ElementTree.fromstring(text).find("node")
        found = None if node is None else _alpino_node(node)
    except (ElementTree.ParseError, ValueError, KeyError):
        return None
    return None if found is None else found[2]


def _alpino_node(node):
    """First and last position of a node, and its brackets; None without words."""
    if "word" in node.attrib:
        begin, word = int(node.attrib["begin"]), node.attrib["word"]
        label = node.attrib["pos"].translate(_ESCAPES)
        return begin, begin, f"({label} {word.translate(_ESCAPES)})"
    children = [_alpino_node(child) for child in node.findall("node")]
    children = sorted(child for child in children if child is not None)
    if not children:
        return None
    if any(left[1] >= right[0] for left, right in pairwise(children)):
        raise ValueError("crossing branches")
    label = node.attrib["cat"].translate(_ESCAPES)
    inside = " ".join(child[2] for child in children)
    return children[0][0], children[-1][1], f"({label} {inside})"


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


#: Largest file that is read from an archive; the corpora have a few megabytes.
_MAX_BYTES = 2**30


def data_folders():
    """Folders in which NLTK looks for its data, in its order.

    Returns
    -------
    list of Path
        ``NLTK_DATA``, ``nltk_data`` in the home folder, and those of the system.
    """
    given = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    folders = [Path(folder).expanduser() for folder in given if folder]
    home = os.path.expanduser("~")
    if home != "~":
        folders.append(Path(home, "nltk_data"))
    below = ("", "share", "lib")
    folders += [Path(sys.prefix, part, "nltk_data") for part in below]
    if os.name == "nt":
        system = [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    else:
        system = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    return folders + [Path(folder, "nltk_data") for folder in system]


def corpus_files(package, pattern, path=None):
    """Read the files of a corpus, from its folder or from the archive of it.

    Parameters
    ----------
    package : str
        Name of the corpus for ``nltk.download``.
    pattern : str
        Regular expression that matches the names of its files.
    path : path-like, default=None
        The folder of the corpus, which may hold the files at any depth, a .zip archive
        of it, or a folder of NLTK's data; where None, NLTK's folders are searched.

    Returns
    -------
    files : dict of str to bytes
        Content by path, in the order of the file names.

    Raises
    ------
    FileNotFoundError
        If there are no such files.
    """
    names = package, f"{package}.zip"
    if path is None:
        folders = [folder / "corpora" for folder in data_folders()]
        places = [folder / name for folder in folders for name in names]
    else:
        # A folder of NLTK's data also holds other corpora with similar file names.
        folders = [Path(path), Path(path, "corpora")]
        places = [folder / name for folder in folders for name in names] + [Path(path)]
    for place in places:
        if files := _read(place, re.compile(pattern)):
            return files
    if path is not None:
        raise FileNotFoundError(
            f"{path} has no files of the corpus {package!r}, whose names match "
            f"{pattern!r}; give the folder or the .zip file that "
            f'nltk.download("{package}") makes'
        )
    searched = ", ".join(str(folder) for folder in data_folders())
    raise FileNotFoundError(
        f"the corpus {package!r} is not on this machine; download it once by import "
        f'nltk; nltk.download("{package}"), or give the path of its folder '
        f"(searched: {searched})"
    )


def _read(place, pattern):
    """Read the files whose names match below a folder or in an archive."""
    if place.is_dir():
        found = [p for p in place.rglob("*") if pattern.fullmatch(p.name)]
        found = sorted((p for p in found if p.is_file()), key=lambda p: (p.name, p))
        return {str(p): p.read_bytes() for p in found}
    if not place.is_file():
        return {}
    if not zipfile.is_zipfile(place):
        return {str(place): place.read_bytes()} if pattern.fullmatch(place.name) else {}
    with zipfile.ZipFile(place) as archive:
        found = [
            (PurePosixPath(info.filename), info)
            for info in archive.infolist()
            if pattern.fullmatch(PurePosixPath(info.filename).name)
        ]
        large = [str(name) for name, info in found if info.file_size > _MAX_BYTES]
        if large:
            raise ValueError(
                f"{large[0]} in {place} has more than {_MAX_BYTES} bytes, which no "
                "file of this corpus has; unpack the archive and give its folder"
            )
        found.sort(key=lambda entry: (entry[0].name, entry[0]))
        return {f"{place}/{name}": archive.read(info) for name, info in found}
